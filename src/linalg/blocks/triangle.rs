//! Triangular solves on one member: recursive, so that nearly all their work is in the matrix product.
//!
//! The little that is left beside it, here and in `panel` and `solve`, are plain loops that [`vectorized`] compiles for the instruction sets of the
//! processor.

use std::cmp::Ordering;

use ndarray::{ArrayView2, ArrayViewMut2, Axis, CowArray, Ix2, s};
use num_traits::{Float, Zero};

use crate::{linalg::field::Field, memory::vectorized::vectorized};

/// Rows of a triangle up to which a solve is a plain loop.
///
/// Measured on one core of Zen 5, n = 4096, blocks of 192, milliseconds in all solves of LU: 25 with 8 rows, 35 with 16, 82 with
/// 32 (there the compiler gives up on vectors).
const LEAF: usize = 8;

/// c ← c − a·b.
///
/// # Panics
/// When the shapes do not fit.
pub(in crate::linalg) fn multiply_subtract<T: Field>(c: ArrayViewMut2<'_, T>, a: ArrayView2<'_, T>, b: ArrayView2<'_, T>) {
    T::multiply(c, T::ZERO - T::ONE, a, b, T::ONE);
}

/// x ← l⁻¹·x for the lower triangle of l (k × k; the part above is not read), x of k × n. The columns of x are contiguous. A unit triangle has ones on the
/// diagonal, which are not read.
///
/// Recursive: the upper half of x is solved, its product with the square below the upper triangle is subtracted from the
/// lower half, the lower half is solved.
///
/// # Panics
/// When the shapes do not fit or a column is not contiguous.
pub(in crate::linalg) fn solve_lower<T: Field>(l: ArrayView2<'_, T>, x: ArrayViewMut2<'_, T>, unit: bool) {
    let k = l.nrows();
    assert!(l.ncols() == k && x.nrows() == k, "l {:?}, x {:?}", l.dim(), x.dim());
    if k <= LEAF {
        return solve_leaf(l, x, unit);
    }
    let half = (k / 2).next_multiple_of(LEAF);
    let (mut upper, mut lower) = x.split_at(Axis(0), half);
    solve_lower(l.slice(s![..half, ..half]), upper.view_mut(), unit);
    multiply_subtract(lower.view_mut(), l.slice(s![half.., ..half]), upper.view());
    solve_lower(l.slice(s![half.., half..]), lower, unit);
}

/// x ← u⁻¹·x for the upper triangle of u: the same with the order of rows and columns reversed.
pub(in crate::linalg) fn solve_upper<T: Field>(u: ArrayView2<'_, T>, x: ArrayViewMut2<'_, T>, unit: bool) {
    let k = u.nrows();
    assert!(u.ncols() == k && x.nrows() == k, "u {:?}, x {:?}", u.dim(), x.dim());
    if k <= LEAF {
        return solve_upper_leaf(u, x, unit);
    }
    let half = (k / 2).next_multiple_of(LEAF);
    let (mut upper, mut lower) = x.split_at(Axis(0), half);
    solve_upper(u.slice(s![half.., half..]), lower.view_mut(), unit);
    multiply_subtract(upper.view_mut(), u.slice(s![..half, half..]), lower.view());
    solve_upper(u.slice(s![..half, ..half]), upper, unit);
}

/// x ← x·l⁻ᴴ for the lower triangle of l, by columns of x, which are contiguous.
pub(in crate::linalg) fn solve_right<T: Field>(l: ArrayView2<'_, T>, mut x: ArrayViewMut2<'_, T>) {
    let k = l.nrows();
    if k <= LEAF {
        for j in 0..k {
            let (solved, mut rest) = x.view_mut().split_at(Axis(1), j + 1);
            let solved = solved.index_axis_move(Axis(1), j).into_slice().expect("contiguous columns");
            let by = l[[j, j]].conj();
            vectorized(
                #[inline(always)]
                || {
                    solved.iter_mut().for_each(|x| *x = x.quotient(by));
                    for (column, i) in rest.columns_mut().into_iter().zip(j + 1..k) {
                        let (column, factor) = (column.into_slice().expect("contiguous columns"), l[[i, j]].conj());
                        column.iter_mut().zip(solved.iter()).for_each(|(x, solved)| *x -= *solved * factor);
                    }
                },
            );
        }
        return;
    }
    let half = (k / 2).next_multiple_of(LEAF);
    let (mut left, mut right) = x.split_at(Axis(1), half);
    solve_right(l.slice(s![..half, ..half]), left.view_mut());
    multiply_subtract(right.view_mut(), left.view(), adjoint(l.slice(s![half.., ..half])).view());
    solve_right(l.slice(s![half.., half..]), right);
}

/// Overwrites the lower triangle of a Hermitian matrix with its Cholesky factor, and what stands above with numbers that mean nothing.
///
/// # Errors
/// The first column whose diagonal element would not be positive.
pub(in crate::linalg) fn cholesky<T: Field>(mut a: ArrayViewMut2<'_, T>) -> Result<(), usize> {
    let k = a.nrows();
    if k <= LEAF {
        for j in 0..k {
            let rest = (0..j).fold(a[[j, j]].real(), |rest, p| rest - (a[[j, p]] * a[[j, p]].conj()).real());
            if rest.partial_cmp(&T::Real::zero()) != Some(Ordering::Greater) {
                return Err(j);
            }
            let root = T::of_real(rest.sqrt());
            a[[j, j]] = root;
            for i in j + 1..k {
                let sum = (0..j).fold(a[[i, j]], |sum, p| sum - a[[i, p]] * a[[j, p]].conj());
                a[[i, j]] = sum.quotient(root);
            }
        }
        return Ok(());
    }
    let half = (k / 2).next_multiple_of(LEAF);
    let (left, mut right) = a.view_mut().split_at(Axis(1), half);
    let (mut top, mut lower) = left.split_at(Axis(0), half);
    cholesky(top.view_mut())?;
    solve_right(top.view(), lower.view_mut());
    let mut corner = right.slice_mut(s![half.., ..]);
    multiply_subtract(corner.view_mut(), lower.view(), adjoint(lower.view()).view());
    cholesky(corner).map_err(|at| half + at)
}

/// The conjugate transpose; of a real matrix without a copy.
pub(in crate::linalg) fn adjoint<T: Field>(a: ArrayView2<'_, T>) -> CowArray<'_, T, Ix2> {
    if T::IS_REAL { a.reversed_axes().into() } else { a.t().mapv(T::conj).into() }
}

/// One column of x at a time, in a square of fixed size padded by zeros, so that a column is a handful of registers.
fn solve_leaf<T: Field>(l: ArrayView2<'_, T>, mut x: ArrayViewMut2<'_, T>, unit: bool) {
    let k = l.nrows();
    let mut triangle = [[T::ZERO; LEAF]; LEAF];
    let mut diagonal = [T::ONE; LEAF];
    for (j, column) in triangle.iter_mut().enumerate().take(k) {
        for (i, entry) in column.iter_mut().enumerate().take(k).skip(j + 1) {
            *entry = l[[i, j]];
        }
        if !unit {
            diagonal[j] = l[[j, j]];
        }
    }
    let columns = x.columns_mut().into_iter().map(|c| c.into_slice().expect("contiguous columns"));
    vectorized(
        #[inline(always)]
        || {
            for column in columns {
                let mut solution = [T::ZERO; LEAF];
                solution[..k].copy_from_slice(column);
                for j in 0..LEAF {
                    if !unit {
                        solution[j] = solution[j].quotient(diagonal[j]);
                    }
                    let pivot = solution[j];
                    for i in 0..LEAF {
                        solution[i] -= pivot * triangle[j][i];
                    }
                }
                column.copy_from_slice(&solution[..k]);
            }
        },
    );
}

fn solve_upper_leaf<T: Field>(u: ArrayView2<'_, T>, mut x: ArrayViewMut2<'_, T>, unit: bool) {
    for mut column in x.columns_mut() {
        for j in (0..column.len()).rev() {
            if !unit {
                column[j] = column[j].quotient(u[[j, j]]);
            }
            let solved = column[j];
            (0..j).for_each(|i| column[i] -= solved * u[[i, j]]);
        }
    }
}

#[cfg(test)]
mod tests {
    use ndarray::{Array2, ShapeBuilder};
    use num_complex::Complex64;

    use super::*;

    fn random(m: usize, n: usize, seed: u64) -> Array2<f64> {
        let mut state = seed;
        Array2::from_shape_simple_fn((m, n).f(), || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 11) as f64 / (1u64 << 53) as f64 - 0.5
        })
    }

    #[test]
    fn product_is_subtracted_also_on_strided_views() {
        for (m, n, k) in [(0, 3, 2), (3, 0, 2), (3, 2, 0), (1, 1, 1), (7, 5, 3), (40, 33, 65)] {
            let (a, b) = (random(m + 2, k + 1, 1), random(k + 3, n + 1, 2));
            let (a, b) = (a.slice(s![1..m + 1, 1..]), b.slice(s![..k, ..n]));
            let mut c = random(m + 1, n, 3);
            let expected = &c.slice(s![1.., ..]) - &a.dot(&b);
            multiply_subtract(c.slice_mut(s![1.., ..]), a, b);
            for (x, y) in c.slice(s![1.., ..]).iter().zip(&expected) {
                assert!((x - y).abs() < 1e-13, "{x} {y}");
            }
        }
    }

    #[test]
    fn triangular_solve_undoes_the_product() {
        for (k, n) in [(0, 2), (1, 1), (5, 3), (16, 4), (17, 2), (100, 9), (192, 31)] {
            let l = random(k, k, 4);
            let unit = Array2::from_shape_fn((k, k), |(i, j)| if i > j { l[[i, j]] } else { (i == j) as u8 as f64 });
            let solution = random(k, n, 5);
            let product = unit.dot(&solution);
            let mut x = Array2::zeros((k, n).f());
            x.assign(&product);
            solve_lower(l.view(), x.view_mut(), true);
            let scale = x.iter().fold(1.0f64, |m, v| m.max(v.abs()));
            // Random unit triangles are badly conditioned: compare the products.
            for (p, q) in unit.dot(&x).iter().zip(&product) {
                assert!((p - q).abs() < 1e-12 * scale, "k {k}: {p} {q}");
            }
        }
    }

    /// Triangles with a diagonal that is large, so that they are well conditioned.
    #[test]
    fn all_triangles_are_solved_for() {
        for (k, n) in [(0, 2), (1, 1), (7, 3), (16, 4), (17, 5), (60, 9)] {
            let [re, im] = [6, 7].map(|seed| random(k, k, seed));
            let l = Array2::from_shape_fn((k, k).f(), |(i, j)| match i.cmp(&j) {
                Ordering::Greater => Complex64::new(re[[i, j]], im[[i, j]]),
                Ordering::Equal => Complex64::new(k as f64, 1.0),
                Ordering::Less => Complex64::ZERO,
            });
            let u = adjoint(l.view());
            let mut x = Array2::zeros((k, n).f());
            x.assign(&random(k, n, 8).mapv(Complex64::from));
            let is_near = |a: Array2<Complex64>, b: Array2<Complex64>| a.iter().zip(&b).all(|(a, b)| (a - b).norm() < 1e-10);
            let (mut below, mut above) = (x.clone(), x.clone());
            solve_lower(l.view(), below.view_mut(), false);
            solve_upper(u.view(), above.view_mut(), false);
            assert!(is_near(l.dot(&below), x.clone()) && is_near(u.dot(&above), x.clone()), "{k} x {n}");
            let mut right = Array2::zeros((n, k).f());
            right.assign(&x.t());
            solve_right(l.view(), right.view_mut());
            assert!(is_near(right.dot(&u), x.t().to_owned()), "{k} x {n}");
            let mut product = Array2::zeros((k, k).f());
            product.assign(&l.dot(&u));
            cholesky(product.view_mut()).unwrap();
            // The diagonal of the factor is real: it is another one with the same product.
            product.indexed_iter_mut().filter(|((i, j), _)| i < j).for_each(|(_, x)| *x = Complex64::ZERO);
            assert!(is_near(product.dot(&adjoint(product.view())), l.dot(&u)), "{k}");
        }
        for at in [0, 5, 8, 20] {
            let mut a = Array2::eye(21).reversed_axes();
            a[[at, at]] = if at == 8 { f64::NAN } else { 0.0 };
            assert_eq!(cholesky(a.view_mut()), Err(at));
        }
    }
}
