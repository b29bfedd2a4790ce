//! Eigenvalues, least squares and singular values by the crate faer.
//!
//! A matrix is scaled first, so that its norm is near 1, by a power of two, so that nothing is rounded. LAPACK does so if squares would overflow or vanish; faer's
//! divide and conquer for eigenvalues (0.24) also loses accuracy where the norm is large. The threads of a call end with it. There is no method for a part of the
//! eigenvalues: all are computed.
//!
//! # Source
//! The crate [faer](https://docs.rs/faer): `self_adjoint_evd`, `qr`, `svd`, `triangular_solve`.

use std::ops::Range;

use faer::{
    ColMut, Conj, MatMut, MatRef, Par, Spec,
    dyn_stack::{MemBuffer, MemStack},
    linalg::{
        evd::{self, ComputeEigenvectors},
        qr::no_pivoting::{factor, solve},
        svd::{self, ComputeSvdVectors},
        triangular_solve as triangle,
    },
    traits::ComplexField,
};
use ndarray::{Array2, ArrayView1, ShapeBuilder, s};
use num_traits::{Float, NumCast, One, Zero};

use super::answer::{Failure, Spectrum, Values};
use crate::{
    Number,
    error::{MatrixError, Result},
    sync::Crew,
};

/// Calls `work` in a thread of a pool, which has one for each of these cores.
pub(super) fn on_cores<R: Send>(cores: &[usize], work: impl FnOnce() -> R + Send) -> Result<R> {
    let threads = cores.len().max(1);
    let places = if cores.is_empty() { Vec::new() } else { vec![cores.to_vec(); threads] };
    Ok(Crew::new(0, threads, &places)?.pool().install(work))
}

/// What faer does for one type of elements, whose traits of faer are not known elsewhere.
#[derive(Debug)]
pub struct Routines<T: Number> {
    pub(super) eigh: Eigh<T>,
    pub(super) least_squares: fn(&mut Array2<T>, &mut Array2<T>) -> Result<(), Failure>,
    pub(super) svd: Svd<T>,
}

type Real<T> = <T as Number>::Real;
type Eigh<T> = fn(Array2<T>, Option<&Array2<T>>, Spectrum) -> Result<(Values<T>, Array2<T>), Failure>;
type Svd<T> = fn(Array2<T>) -> Result<([Array2<T>; 2], Values<T>), Failure>;

impl<T: Number + ComplexField<Real = Real<T>>> Routines<T> {
    pub(super) const ALL: Self = Routines { eigh: Self::eigh, least_squares: Self::least_squares, svd: Self::svd };

    fn eigh(mut h: Array2<T>, l: Option<&Array2<T>>, spectrum: Spectrum) -> Result<(Values<T>, Array2<T>), Failure> {
        let (order, par) = (h.nrows(), Par::rayon(0));
        if let Some(l) = l {
            // All of h, by its lower triangle; then x = l⁻¹ h, and c from c lᴴ = x.
            for row in 0..order {
                (row + 1..order).for_each(|column| h[[row, column]] = Number::conj(h[[column, row]]));
            }
            triangle::solve_lower_triangular_in_place(of(l), change(&mut h), par);
            triangle::solve_lower_triangular_in_place_with_conj(of(l), Conj::Yes, change(&mut h).transpose_mut(), par);
        }
        let scale = Self::normalize(&mut h, Self::dust());
        let (mut values, mut vectors) = (vec![T::ZERO; order], Array2::zeros((order, order).f()));
        let params = Spec::default();
        let mut space = MemBuffer::new(evd::self_adjoint_evd_scratch::<T>(order, ComputeEigenvectors::Yes, par, params));
        let diagonal = ColMut::from_slice_mut(&mut values).as_diagonal_mut();
        evd::self_adjoint_evd(of(&h), diagonal, Some(change(&mut vectors)), par, MemStack::new(&mut space), params)
            .map_err(|_| MatrixError::NotConverged { info: 0 })?;
        let mut values = Self::unscaled(&values, scale);
        let part = Self::part(&values, spectrum);
        values.truncate(part.end);
        let values = values.split_off(part.start);
        let mut vectors = vectors.slice_move(s![.., part]);
        if let Some(l) = l {
            triangle::solve_upper_triangular_in_place_with_conj(of(l).transpose(), Conj::Yes, change(&mut vectors), par);
        }
        Ok((values, vectors))
    }

    fn least_squares(a: &mut Array2<T>, b: &mut Array2<T>) -> Result<(), Failure> {
        let (rows, columns, right, par) = (a.nrows(), a.ncols(), b.ncols(), Par::rayon(0));
        // Columns may have any units: nothing is dust.
        let [of_a, of_b] = [&mut *a, &mut *b].map(|matrix| Self::normalize(matrix, Zero::zero()));
        let block = factor::recommended_block_size::<T>(rows, columns);
        let (mut reflectors, params) = (Array2::zeros((block, columns).f()), Spec::default());
        let factoring = factor::qr_in_place_scratch::<T>(rows, columns, block, par, params);
        let mut space = MemBuffer::new(factoring.or(solve::solve_lstsq_in_place_scratch::<T>(rows, columns, block, right, par)));
        factor::qr_in_place(change(a), change(&mut reflectors), par, MemStack::new(&mut space), params);
        if let Some(at) = a.diag().iter().position(|x| *x == T::ZERO) {
            return Err(MatrixError::Dependent { at }.into());
        }
        let q = of(a);
        solve::solve_lstsq_in_place(q, of(&reflectors), q, change(b), par, MemStack::new(&mut space));
        // One after the other: their ratio may overflow where the result does not.
        let [up, down] = [of_a, of_b.recip()].map(|factor| T::from_real_impl(&factor));
        b.mapv_inplace(|x| x.scaled(up).scaled(down));
        Ok(())
    }

    fn svd(mut a: Array2<T>) -> Result<([Array2<T>; 2], Values<T>), Failure> {
        let (rows, columns, par) = (a.nrows(), a.ncols(), Par::rayon(0));
        let few = rows.min(columns);
        let scale = Self::normalize(&mut a, Self::dust());
        let (mut values, mut u, mut vt) = (vec![T::ZERO; few], Array2::zeros((rows, few).f()), Array2::zeros((few, columns)));
        let (thin, params) = (ComputeSvdVectors::Thin, Spec::default());
        let mut space = MemBuffer::new(svd::svd_scratch::<T>(rows, columns, thin, thin, par, params));
        let diagonal = ColMut::from_slice_mut(&mut values).as_diagonal_mut();
        let v = change(&mut vt).transpose_mut();
        svd::svd(of(&a), diagonal, Some(change(&mut u)), Some(v), par, MemStack::new(&mut space), params)
            .map_err(|_| MatrixError::NotConverged { info: 0 })?;
        vt.mapv_inplace(Number::conj);
        Ok(([u, vt], Self::unscaled(&values, scale)))
    }

    /// What has no effect beside a norm of 1, and whose square would vanish.
    fn dust() -> Real<T> {
        Real::<T>::min_positive_value().sqrt()
    }

    /// Multiplies a matrix by a power of two, which is returned, so that its norm is near 1. Smaller elements than `dust` become zero.
    fn normalize(matrix: &mut Array2<T>, dust: Real<T>) -> Real<T> {
        let (zero, one, least) = (Real::<T>::zero(), Real::<T>::one(), Real::<T>::min_positive_value());
        let largest = matrix.iter().fold(least, |largest, x| largest.max(x.magnitude()));
        let sum = |row: ArrayView1<'_, T>| row.iter().fold(zero, |sum, x| sum + x.magnitude() / largest);
        let norm = matrix.rows().into_iter().map(sum).fold(zero, Float::max);
        // Powers up to this one have reciprocals.
        let most = -least.log2();
        let exponent = (-largest.log2().floor() - norm.log2().floor()).max(-most).min(most);
        let power = (one + one).powi(NumCast::from(exponent).unwrap_or_default());
        let factor = T::from_real_impl(&power);
        matrix.mapv_inplace(|x| {
            let x = x.scaled(factor);
            if x.magnitude() < dust { T::ZERO } else { x }
        });
        power
    }

    /// Real numbers, as they were before that.
    fn unscaled(values: &[T], power: Real<T>) -> Values<T> {
        values.iter().map(|value| T::real_part_impl(value) / power).collect()
    }

    /// Where the eigenvalues are, among all in ascending order.
    fn part(values: &[Real<T>], spectrum: Spectrum) -> Range<usize> {
        let real = |limit: f64| NumCast::from(limit).unwrap_or(Real::<T>::infinity());
        let up_to = |limit: f64| values.partition_point(|&value| value <= real(limit));
        match spectrum {
            Spectrum::All => 0..values.len(),
            Spectrum::Lowest(count) => 0..count.min(values.len()),
            Spectrum::Interval(low, high) => up_to(low)..up_to(high),
        }
    }
}

/// A matrix without gaps, row by row or column by column, as faer sees it.
fn of<T>(matrix: &Array2<T>) -> MatRef<'_, T> {
    let (rows, columns) = matrix.dim();
    let elements = matrix.as_slice_memory_order().unwrap_or_default();
    match matrix.is_standard_layout() {
        true => MatRef::from_row_major_slice(elements, rows, columns),
        false => MatRef::from_column_major_slice(elements, rows, columns),
    }
}

/// The same, to be overwritten.
fn change<T>(matrix: &mut Array2<T>) -> MatMut<'_, T> {
    let ((rows, columns), is_by_rows) = (matrix.dim(), matrix.is_standard_layout());
    let elements = matrix.as_slice_memory_order_mut().unwrap_or_default();
    match is_by_rows {
        true => MatMut::from_row_major_slice_mut(elements, rows, columns),
        false => MatMut::from_column_major_slice_mut(elements, rows, columns),
    }
}

#[cfg(test)]
mod tests {
    use num_complex::Complex;

    use super::*;

    /// The same numbers in each run, between -1 and 1.
    fn number(i: usize, j: usize) -> f64 {
        (1.0 + (i * 31 + j * 17) as f64 + 0.5 * (i * j) as f64).sin()
    }

    fn real(re: f64) -> Complex<f64> {
        Complex::new(re, 0.0)
    }

    fn hermitian(order: usize) -> Array2<Complex<f64>> {
        Array2::from_shape_fn((order, order), |(i, j)| {
            let side = if i == j { 0.0 } else { (i as f64 - j as f64).signum() };
            Complex::new(number(i.max(j), i.min(j)), side * number(i.min(j), i.max(j)))
        })
    }

    /// The largest element of h v - s v λ and of vᴴ s v - 1, in units of rounding.
    fn errors(h: &Array2<Complex<f64>>, s: &Array2<Complex<f64>>, (values, v): &(Vec<f64>, Array2<Complex<f64>>)) -> [f64; 2] {
        let lambda = Array2::from_diag(&values.iter().map(|&x| real(x)).collect::<ndarray::Array1<_>>());
        let largest = |a: &Array2<Complex<f64>>| {
            a.iter().fold(0.0, |most: f64, x| if x.is_finite() { most.max(x.norm()) } else { f64::INFINITY })
        };
        let residual = h.dot(v) - s.dot(v).dot(&lambda);
        let metric = v.t().mapv(|x| x.conj()).dot(s).dot(v) - Array2::<Complex<f64>>::eye(values.len());
        [largest(&residual) / largest(h), largest(&metric)].map(|error| error / f64::EPSILON / h.nrows() as f64)
    }

    /// Of an order from which on faer divides and conquers.
    #[test]
    fn matrices_of_any_norm_have_small_residuals() {
        let order = 140;
        let q = hermitian(order);
        let cases = [
            ("as it is", q.clone()),
            ("of large norm", Array2::from_elem((order, order), real(1.0)) + &q),
            ("scaled", q.mapv(|x| x * 2f64.powi(40))),
            ("graded", Array2::from_shape_fn((order, order), |(i, j)| q[[i, j]] * 0.03f64.powi((i + j) as i32))),
            ("of rank 1", Array2::from_shape_fn((order, order), |(i, j)| real(0.1f64.powi((i + j) as i32)))),
        ];
        for (name, h) in cases {
            let Ok(found) = (Routines::ALL.eigh)(h.clone(), None, Spectrum::All) else { panic!("{name}") };
            let errors = errors(&h, &Array2::eye(order), &found);
            assert!(errors.iter().all(|&error| error < 50.0), "{name}: {errors:?}");
        }
    }

    #[test]
    fn a_generalized_problem_has_vectors_that_are_orthonormal_by_its_metric() {
        for order in [1, 2, 9, 40] {
            let l = Array2::from_shape_fn((order, order), |(i, j)| match i.cmp(&j) {
                std::cmp::Ordering::Less => real(0.0),
                std::cmp::Ordering::Equal => real(2.0 + number(i, j)),
                std::cmp::Ordering::Greater => Complex::new(number(i, j), number(j, i)) / order as f64,
            });
            let (h, s) = (hermitian(order), l.dot(&l.t().mapv(|x| x.conj())));
            for spectrum in [Spectrum::All, Spectrum::Lowest(order.div_ceil(2)), Spectrum::Interval(-0.5, 0.5)] {
                let Ok(found) = (Routines::ALL.eigh)(h.clone(), Some(&l), spectrum) else { panic!("{order}") };
                let errors = errors(&h, &s, &found);
                assert!(errors.iter().all(|&error| error < 50.0), "{order}, {spectrum:?}: {errors:?}");
            }
        }
    }

    /// A column in small units is no dependent one.
    #[test]
    fn columns_of_any_size_have_least_squares() {
        let a = Array2::from_shape_fn((5, 2), |(i, j)| if j == 0 { 1e12f32 } else { 1e-12 * i as f32 });
        let (mut factors, mut x) = (a.reversed_axes().as_standard_layout().into_owned().reversed_axes(), Array2::ones((5, 1)));
        assert!((Routines::ALL.least_squares)(&mut factors, &mut x).is_ok());
        assert!((x[[0, 0]] * 1e12 - 1.0).abs() < 1e-5 && (x[[1, 0]] * 1e-12).abs() < 1e-5, "{x}");
    }
}
