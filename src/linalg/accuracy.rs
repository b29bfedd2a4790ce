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

use num_traits::{Float, NumCast, One, Zero};

use super::field::{Field, wide};

/// Real numbers, and two of them.
pub(super) type Reals<T> = Vec<<T as crate::Number>::Real>;
type Pair<T> = [<T as crate::Number>::Real; 2];

/// A matrix that was factored. All members call each function, with the same arguments, and have the same answer.
pub(super) trait System<T: Field> {
    type Error;

    /// A⁻¹·b.
    fn solve(&self, b: &[T]) -> Result<Vec<T>, Self::Error>;

    /// A⁻ᴴ·b.
    fn solve_adjoint(&self, b: &[T]) -> Result<Vec<T>, Self::Error>;

    /// A·x and |A|·|x|.
    fn product_and_scale(&self, x: &[T]) -> Result<(Vec<T>, Reals<T>), Self::Error>;
}

/// The result of a refinement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Refined {
    /// Corrections that were added.
    pub steps: usize,
    /// The componentwise backward error ω of the solution that was refined: the smallest ω for which it solves exactly a system whose elements differ from those of
    /// a and b by a relative ω at most.
    pub before: f64,
    /// That of the solution that came out.
    pub after: f64,
}

/// Corrections at most.
const STEPS: usize = 5;

/// Refines the solution of A·x = b in place.
pub(super) fn refine<T: Field, S: System<T>>(a: &S, b: &[T], x: &mut Vec<T>) -> Result<Refined, S::Error> {
    let two = T::Real::one() + T::Real::one();
    let (mut residual, [before, mut left]) = backward_error(a, b, x)?;
    let mut refined = Refined { steps: 0, before: wide::<T>(before), after: wide::<T>(before) };
    while refined.steps < STEPS && left > T::Real::epsilon() / two {
        let correction = a.solve(&residual)?;
        let corrected: Vec<T> = x.iter().zip(correction).map(|(x, d)| *x + d).collect();
        let (next, [after, less]) = backward_error(a, b, &corrected)?;
        if less.is_nan() || less >= left {
            break;
        }
        let is_last = less > left / two;
        (*x, residual, left) = (corrected, next, less);
        refined = Refined { steps: refined.steps + 1, after: wide::<T>(after), ..refined };
        if is_last {
            break;
        }
    }
    Ok(refined)
}

/// b − A·x, ω, and the part of ω that a correction can make smaller.
fn backward_error<T: Field, S: System<T>>(a: &S, b: &[T], x: &[T]) -> Result<(Vec<T>, Pair<T>), S::Error> {
    // Rows so small that rounding leaves nothing of them, as in `dgerfs`.
    let least = number::<T>(b.len() + 1) * T::Real::min_positive_value();
    let part = |residual: T::Real, scale: T::Real| {
        if scale.is_zero() && residual.is_zero() {
            [T::Real::zero(); 2]
        } else if !scale.is_finite() {
            [T::Real::nan(); 2]
        } else if scale > least / T::Real::epsilon() {
            [residual / scale; 2]
        } else {
            [residual + least, residual].map(|error| error / (scale + least))
        }
    };
    let (product, scale) = a.product_and_scale(x)?;
    let residual: Vec<T> = b.iter().zip(&product).map(|(b, p)| *b - *p).collect();
    let mut errors = [T::Real::zero(); 2];
    for ((r, s), b) in residual.iter().zip(&scale).zip(b) {
        for (largest, error) in errors.iter_mut().zip(part(r.magnitude(), *s + b.magnitude())) {
            // What is not a number stays.
            *largest = if largest.is_nan() || error <= *largest { *largest } else { error };
        }
    }
    Ok((residual, errors))
}

/// Directions that are tried at most.
const DIRECTIONS: usize = 5;

/// An estimate of ‖A⁻¹‖₁.
pub(super) fn norm_of_inverse<T: Field, S: System<T>>(a: &S, n: usize) -> Result<T::Real, S::Error> {
    let infinite = T::Real::infinity();
    let signs = |v: &[T]| -> Vec<T> {
        let sign = |v: &T| if v.magnitude().is_zero() { T::ONE } else { v.quotient(T::of_real(v.magnitude())) };
        v.iter().map(sign).collect()
    };
    let mut solved = a.solve(&vec![T::of_real(T::Real::one() / number::<T>(n)); n])?;
    let mut best = sum_of_magnitudes(&solved);
    if !best.is_finite() {
        return Ok(infinite);
    }
    let mut known = signs(&solved);
    let mut direction = None;
    for _ in 1..DIRECTIONS {
        // Where the sum of magnitudes grows fastest.
        let slope = a.solve_adjoint(&known)?;
        if !sum_of_magnitudes(&slope).is_finite() {
            return Ok(infinite);
        }
        let size = |i: usize| slope[i].magnitude();
        let steepest = (1..n).fold(0, |best, i| if size(i) >= size(best) { i } else { best });
        if direction.is_some_and(|last: usize| size(last) >= size(steepest)) {
            break;
        }
        direction = Some(steepest);
        let mut unit = vec![T::ZERO; n];
        unit[steepest] = T::ONE;
        solved = a.solve(&unit)?;
        let (sum, new) = (sum_of_magnitudes(&solved), signs(&solved));
        if !sum.is_finite() {
            return Ok(infinite);
        }
        if sum <= best || new == known {
            best = best.max(sum);
            break;
        }
        (best, known) = (sum, new);
    }
    // For matrices that hide their norm from such steps.
    let alternating = |i: usize| {
        let size = T::Real::one() + number::<T>(i) / number::<T>(n.max(2) - 1);
        T::of_real(if i.is_multiple_of(2) { size } else { -size })
    };
    let hidden = a.solve(&(0..n).map(alternating).collect::<Vec<_>>())?;
    let hidden = number::<T>(2) * sum_of_magnitudes(&hidden) / number::<T>(3 * n);
    Ok(if hidden.is_finite() { best.max(hidden) } else { infinite })
}

fn sum_of_magnitudes<T: Field>(v: &[T]) -> T::Real {
    v.iter().fold(T::Real::zero(), |sum, v| sum + v.magnitude())
}

fn number<T: Field>(value: usize) -> T::Real {
    <T::Real as NumCast>::from(value).unwrap_or(T::Real::infinity())
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

        fn norm(&self) -> f64 {
            self.a.columns().into_iter().map(|c| sum_of_magnitudes(&c.to_vec())).fold(0.0, f64::max)
        }

        fn estimate(&self) -> f64 {
            self.norm() * norm_of_inverse(self, self.a.nrows()).unwrap()
        }

        fn condition(&self) -> f64 {
            let norm = |m: &Array2<f64>| m.columns().into_iter().map(|c| sum_of_magnitudes(&c.to_vec())).fold(0.0, f64::max);
            norm(&self.a) * norm(&self.inverse)
        }
    }

    impl System<f64> for Dense {
        type Error = Infallible;

        fn solve(&self, b: &[f64]) -> Result<Vec<f64>, Infallible> {
            Ok((self.inverse.dot(&Array1::from(b.to_vec())) * (1.0 - self.off)).to_vec())
        }

        fn solve_adjoint(&self, b: &[f64]) -> Result<Vec<f64>, Infallible> {
            Ok(self.inverse.t().dot(&Array1::from(b.to_vec())).to_vec())
        }

        fn product_and_scale(&self, x: &[f64]) -> Result<(Vec<f64>, Vec<f64>), Infallible> {
            let x = Array1::from(x.to_vec());
            Ok((self.a.dot(&x).to_vec(), self.a.mapv(f64::abs).dot(&x.mapv(f64::abs)).to_vec()))
        }
    }

    fn hilbert(n: usize) -> Array2<f64> {
        Array2::from_shape_fn((n, n), |(i, j)| 1.0 / (i + j + 1) as f64)
    }

    #[test]
    fn the_condition_of_known_matrices() {
        let estimated = |a: Array2<f64>| Dense::new(a, 0.0).estimate();
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
            assert_eq!(Dense::new(a, 0.0).estimate(), f64::INFINITY);
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
        let b = dense.product_and_scale(&exact).unwrap().0;
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
            let (estimate, exact) = (dense.estimate(), dense.condition());
            prop_assert!(estimate <= 1.000001 * exact && estimate > exact / 10.0, "{} of {}", estimate, exact);
        }
    }
}
