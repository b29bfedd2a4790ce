//! The accuracy of a solution: refinement, and an estimate of the condition number.
//!
//! *Refinement.* The residual r = b − A·x is computed with the matrix itself. The solution of A·d = r is added to x. The measure is the componentwise
//! backward error, ω = maxᵢ |b − A·x|ᵢ / (|A|·|x| + |b|)ᵢ: the smallest ω for which x solves exactly a system whose entries differ from those of A and b
//! by a relative ω at most (W. Oettli, W. Prager, Numer. Math. 6, 1964). As in LAPACK's `dgerfs`, refinement ends when ω is no more than rounding, or was
//! not halved. A row whose numbers are so small that rounding decides what is left of them has an ω near 1 whatever x is: it does not end the refinement of the
//! others. Unlike there, a correction that makes ω larger is not kept.
//!
//! *Condition number.* κ₁ = ‖A‖₁·‖A⁻¹‖₁ bounds how much larger the error of x may be than those of A and b. The norm of the inverse is estimated
//! from solutions of systems with A and Aᵀ, as in LAPACK's `dlacn2` (W. W. Hager, SIAM J. Sci. Stat. Comput. 5, 1984; N. J. Higham, ACM Trans.
//! Math. Softw. 14, 1988): the estimate is never above the norm but for rounding, and seldom below a third of it. Where a solution is not finite, it is
//! infinite.

use crate::report::largest;

/// A matrix that was factored. All ranks call each function, with the same arguments, and have the same answer.
pub(crate) trait FactoredSystem {
    type Error;

    /// A⁻¹·b.
    fn solve(&self, b: &[f64]) -> Result<Vec<f64>, Self::Error>;

    /// A⁻ᵀ·b.
    fn solve_transposed(&self, b: &[f64]) -> Result<Vec<f64>, Self::Error>;

    /// A·x and |A|·|x|.
    fn product_and_scale(&self, x: &[f64]) -> Result<[Vec<f64>; 2], Self::Error>;

    /// ‖A‖₁, the largest sum of magnitudes of a column.
    fn norm(&self) -> Result<f64, Self::Error>;
}

/// What refinement has done.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Refined {
    /// Corrections that were added.
    pub(crate) steps: usize,
    /// ω of the solution that was refined, and of the one that came out.
    pub(crate) before: f64,
    pub(crate) after: f64,
}

/// Corrections at most.
const STEPS: usize = 5;

/// Refines the solution of A·x = b in place.
pub(crate) fn refine<F: FactoredSystem>(a: &F, b: &[f64], x: &mut Vec<f64>) -> Result<Refined, F::Error> {
    let (mut residual, [before, mut left]) = backward_error(a, b, x)?;
    let mut refined = Refined { steps: 0, before, after: before };
    while refined.steps < STEPS && left > f64::EPSILON / 2.0 {
        let correction = a.solve(&residual)?;
        let corrected: Vec<f64> = x.iter().zip(correction).map(|(x, d)| x + d).collect();
        let (next, [after, less]) = backward_error(a, b, &corrected)?;
        if less.is_nan() || less >= left {
            break;
        }
        let is_last = less > left / 2.0;
        (*x, residual, left) = (corrected, next, less);
        refined = Refined { steps: refined.steps + 1, before, after };
        if is_last {
            break;
        }
    }
    Ok(refined)
}

/// b − A·x, ω, and the part of ω that a correction can make smaller.
fn backward_error<F: FactoredSystem>(a: &F, b: &[f64], x: &[f64]) -> Result<(Vec<f64>, [f64; 2]), F::Error> {
    // Rows so small that rounding leaves nothing of them, as in `dgerfs`.
    let least = (b.len() + 1) as f64 * f64::MIN_POSITIVE;
    let part = |residual: f64, scale: f64| match scale {
        0.0 if residual == 0.0 => [0.0; 2],
        _ if !scale.is_finite() => [f64::NAN; 2],
        _ if scale > least / f64::EPSILON => [residual.abs() / scale; 2],
        _ => [residual.abs() + least, residual.abs()].map(|error| error / (scale + least)),
    };
    let [product, scale] = a.product_and_scale(x)?;
    let residual: Vec<f64> = b.iter().zip(&product).map(|(b, p)| b - p).collect();
    let parts: Vec<[f64; 2]> = residual.iter().zip(&scale).zip(b).map(|((r, s), b)| part(*r, s + b.abs())).collect();
    let errors = [0, 1].map(|which| largest(parts.iter().map(|part| part[which])));
    Ok((residual, errors))
}

/// An estimate of the condition number κ₁.
pub(crate) fn condition<F: FactoredSystem>(a: &F, n: usize) -> Result<f64, F::Error> {
    Ok(a.norm()? * norm_of_inverse(a, n)?)
}

/// Directions that are tried at most.
const DIRECTIONS: usize = 5;

fn norm_of_inverse<F: FactoredSystem>(a: &F, n: usize) -> Result<f64, F::Error> {
    let signs = |v: &[f64]| -> Vec<f64> { v.iter().map(|v| 1.0_f64.copysign(*v)).collect() };
    let mut solved = a.solve(&vec![1.0 / n as f64; n])?;
    let mut best = sum_of_magnitudes(&solved);
    if !best.is_finite() {
        return Ok(f64::INFINITY);
    }
    let mut known = signs(&solved);
    let mut direction = None;
    for _ in 1..DIRECTIONS {
        // Where the sum of magnitudes grows fastest.
        let slope = a.solve_transposed(&known)?;
        if !sum_of_magnitudes(&slope).is_finite() {
            return Ok(f64::INFINITY);
        }
        let steepest = (0..n).max_by(|&i, &j| slope[i].abs().total_cmp(&slope[j].abs())).unwrap_or(0);
        if direction.is_some_and(|last: usize| slope[last].abs() >= slope[steepest].abs()) {
            break;
        }
        direction = Some(steepest);
        let mut unit = vec![0.0; n];
        unit[steepest] = 1.0;
        solved = a.solve(&unit)?;
        let (sum, new) = (sum_of_magnitudes(&solved), signs(&solved));
        if !sum.is_finite() {
            return Ok(f64::INFINITY);
        }
        if sum <= best || new == known {
            best = best.max(sum);
            break;
        }
        (best, known) = (sum, new);
    }
    // For matrices that hide their norm from such steps.
    let alternating = |i: usize| (1.0 - 2.0 * (i % 2) as f64) * (1.0 + i as f64 / (n.max(2) - 1) as f64);
    let hidden = a.solve(&(0..n).map(alternating).collect::<Vec<_>>())?;
    let hidden = 2.0 * sum_of_magnitudes(&hidden) / (3 * n) as f64;
    Ok(if hidden.is_finite() { best.max(hidden) } else { f64::INFINITY })
}

fn sum_of_magnitudes(v: &[f64]) -> f64 {
    v.iter().map(|v| v.abs()).sum()
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use ndarray::{Array1, Array2, s};
    use proptest::prelude::*;

    use super::*;

    /// A matrix and a wrong inverse of it: a part `off` of each entry is missing.
    struct Dense {
        a: Array2<f64>,
        inverse: Array2<f64>,
        off: f64,
    }

    impl Dense {
        /// By elimination with pivots on \[A I\].
        fn new(a: Array2<f64>, off: f64) -> Self {
            let n = a.nrows();
            let mut both = Array2::zeros((n, 2 * n));
            both.slice_mut(s![.., ..n]).assign(&a);
            both.slice_mut(s![.., n..]).diag_mut().fill(1.0);
            for j in 0..n {
                let pivot = (j..n).max_by(|&i, &k| f64::total_cmp(&both[[i, j]].abs(), &both[[k, j]].abs())).unwrap();
                for k in 0..2 * n {
                    both.swap([j, k], [pivot, k]);
                }
                let row = &both.row(j) / both[[j, j]];
                for i in (0..n).filter(|&i| i != j) {
                    let factor = both[[i, j]];
                    both.row_mut(i).scaled_add(-factor, &row);
                }
                both.row_mut(j).assign(&row);
            }
            Dense { inverse: both.slice(s![.., n..]).to_owned(), a, off }
        }

        fn condition(&self) -> f64 {
            let norm = |m: &Array2<f64>| m.columns().into_iter().map(|c| sum_of_magnitudes(&c.to_vec())).fold(0.0, f64::max);
            norm(&self.a) * norm(&self.inverse)
        }
    }

    impl FactoredSystem for Dense {
        type Error = Infallible;

        fn solve(&self, b: &[f64]) -> Result<Vec<f64>, Infallible> {
            Ok((self.inverse.dot(&Array1::from(b.to_vec())) * (1.0 - self.off)).to_vec())
        }

        fn solve_transposed(&self, b: &[f64]) -> Result<Vec<f64>, Infallible> {
            Ok(self.inverse.t().dot(&Array1::from(b.to_vec())).to_vec())
        }

        fn product_and_scale(&self, x: &[f64]) -> Result<[Vec<f64>; 2], Infallible> {
            let x = Array1::from(x.to_vec());
            Ok([self.a.dot(&x).to_vec(), self.a.mapv(f64::abs).dot(&x.mapv(f64::abs)).to_vec()])
        }

        fn norm(&self) -> Result<f64, Infallible> {
            Ok(self.a.columns().into_iter().map(|c| sum_of_magnitudes(&c.to_vec())).fold(0.0, f64::max))
        }
    }

    fn hilbert(n: usize) -> Array2<f64> {
        Array2::from_shape_fn((n, n), |(i, j)| 1.0 / (i + j + 1) as f64)
    }

    #[test]
    fn the_condition_of_known_matrices() {
        let estimated = |a: Array2<f64>| condition(&Dense::new(a.clone(), 0.0), a.nrows()).unwrap();
        // N. J. Higham, Accuracy and Stability of Numerical Algorithms: the inverse of a Hilbert matrix has whole entries.
        for (n, exact) in [(1, 1.0), (2, 27.0), (3, 748.0), (4, 28_375.0), (5, 943_656.0)] {
            assert!((estimated(hilbert(n)) / exact - 1.0).abs() < 1e-9, "{n}: {} for {exact}", estimated(hilbert(n)));
        }
        let diagonal = Array2::from_diag(&Array1::from(vec![2.0, -0.25, 1.0, 8.0]));
        assert_eq!(estimated(diagonal), 32.0);
        // The steps end where they begin: the inverse maps the first vector to itself, and the last unit vector too.
        let (n, far) = (4, 1000.0);
        let mut hides = Array2::eye(n);
        for (i, j, sign) in [(0, 0, 1.0), (1, 1, 1.0), (0, 1, -1.0), (1, 0, -1.0)] {
            hides[[i, j]] -= sign * far / (1.0 + 2.0 * far);
        }
        assert!((600.0..2001.1).contains(&estimated(hides.clone())), "{}", estimated(hides));
    }

    #[test]
    fn what_is_not_finite_is_seen() {
        // Its inverse has a number that is infinite, at any place.
        for small in 0..3 {
            let mut a = Array2::eye(3);
            a[[small, small]] = 1e-310;
            assert_eq!(condition(&Dense::new(a, 0.0), 3), Ok(f64::INFINITY));
        }
        let dense = Dense::new(Array2::eye(3), 0.0);
        for (at, value) in [(0, f64::NAN), (2, f64::NAN), (0, f64::INFINITY), (1, f64::INFINITY)] {
            let mut x = vec![1.0; 3];
            x[at] = value;
            let refined = refine(&dense, &[1.0; 3], &mut x).unwrap();
            assert!(refined.steps == 0 && refined.after.is_nan(), "{refined:?}");
        }
        // Too large to be added up, though the solution fits.
        let huge = Dense::new(ndarray::arr2(&[[1e308, -1e308], [1e308, 1e308]]), 0.0);
        assert!(refine(&huge, &[0.0, 1e308], &mut vec![1.0, 1.0]).unwrap().after.is_nan());
        // Rows of numbers that are hardly there.
        let tiny = Dense::new(Array2::eye(2), 0.0);
        let refined = refine(&tiny, &[5e-324, 1.0], &mut vec![1e-323, 1.0]).unwrap();
        assert!(refined.before <= 1.0, "{refined:?}");
        // Of such a row a residual of 0 says little.
        let refined = refine(&tiny, &[1e-310, 1.0], &mut vec![1e-310, 1.0]).unwrap();
        assert!(refined.steps == 0 && refined.after > 0.9 && refined.after <= 1.0, "{refined:?}");
    }

    #[test]
    fn a_row_of_tiny_numbers_does_not_end_refinement() {
        let dense = Dense::new(Array2::eye(2), 1e-4);
        for tiny in [1e-310, 5e-324] {
            let b = [tiny, 1.0];
            for first in [tiny, 0.0, tiny * (1.0 - 1e-4)] {
                let mut x = vec![first, 1.0 - 1e-4];
                let refined = refine(&dense, &b, &mut x).unwrap();
                assert!(refined.steps > 1 && (x[1] - 1.0).abs() < 1e-15 && refined.after > 0.9, "{x:?} {refined:?}");
            }
        }
    }

    #[test]
    fn refinement_mends_a_wrong_solve() {
        let a = hilbert(4);
        let exact = [1.0, -2.0, 3.0, 4.0];
        let dense = Dense::new(a, 1e-4);
        let b = dense.product_and_scale(&exact).unwrap()[0].clone();
        let mut x = dense.solve(&b).unwrap();
        let refined = refine(&dense, &b, &mut x).unwrap();
        assert!(refined.before > 1e-5 && refined.after < 4e-16 && (3..=STEPS).contains(&refined.steps), "{refined:?}");
        assert!(x.iter().zip(exact).all(|(x, e)| (x - e).abs() < 1e-10), "{x:?}");
        // Nothing is left to do, and nothing to divide by.
        let mut nothing = vec![0.0; 4];
        assert_eq!(refine(&dense, &[0.0; 4], &mut nothing), Ok(Refined { steps: 0, before: 0.0, after: 0.0 }));
        // A solver that does not solve makes nothing worse.
        let useless = Dense { off: 3.0, ..dense };
        let mut same = x.clone();
        same[0] += 1e-3;
        let before = same.clone();
        let refined = refine(&useless, &b, &mut same).unwrap();
        assert!(refined.steps == 0 && refined.after == refined.before && same == before, "{refined:?}");
    }

    proptest! {
        /// Never above the condition number, and of such matrices never far below it.
        #[test]
        fn the_estimate_is_a_lower_bound(n in 1_usize..9, seed in any::<u64>()) {
            let mut state = seed;
            let mut next = || {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (state >> 11) as f64 / (1_u64 << 53) as f64 - 0.5
            };
            let dense = Dense::new(Array2::from_shape_simple_fn((n, n), &mut next), 0.0);
            let (estimate, exact) = (condition(&dense, n).unwrap(), dense.condition());
            prop_assert!(estimate <= 1.000001 * exact && estimate > exact / 10.0, "{} of {}", estimate, exact);
        }
    }
}
