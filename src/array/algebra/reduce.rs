//! Reductions. Each member reduces its own elements in a fixed order, then the group combines the values (`sync::collectives`). So equal
//! calls give equal bits, with any number of threads, but another distribution may round differently.

use std::ops::Range;

use ndarray::{Dimension, IntoDimension, Ix1, Ix2};
use num_traits::{Float, NumCast, ToPrimitive};

use super::{
    Elements, IntoOperand, Operand, buffer_elements,
    walk::{cut, index_of, piece_elements},
};
use crate::{
    array::GlobalArray,
    calls::located,
    element::{Additive, Element, Number},
    error::Result,
    sync::ops,
};

/// Independent partial results, so that one operation need not wait for the one before.
const LANES: usize = 8;

/// # Reductions
impl<T: Element, D: Dimension> GlobalArray<T, D> {
    /// Combines all elements. Collective; the result is bitwise equal on all members.
    ///
    /// `op` must be associative and commutative up to rounding, and `neutral` must be its neutral element: it is combined with each
    /// member's elements several times.
    ///
    /// # Errors
    /// Same as [`fill`](Self::fill).
    ///
    /// # Examples
    /// ```
    /// use global_arrays::{ops, prelude::*};
    /// # fn main() -> Result<(), Error> {
    /// Launch::new().ranks(3).network("threads").run(|job| {
    ///     let mut a = GlobalArray::<i64, Ix1>::builder(job, [100]).create()?;
    ///     a.map_indexed(|i, _| (i as i64 - 40).pow(2))?;
    ///     assert_eq!(a.reduce(i64::MIN, ops::max)?, 59 * 59);
    ///     Ok(())
    /// })
    /// # }
    /// ```
    ///
    /// # Source
    /// GA: `NGA_Select_elem` without the index; with it: [`argmin`](Self::argmin).
    #[track_caller]
    pub fn reduce(&self, neutral: T, op: impl Fn(T, T) -> T) -> Result<T> {
        located(move || self.all().map_reduce(neutral, |x| x, op))
    }

    /// Combines `f(x)` over all elements, like [`reduce`](Self::reduce). Collective.
    ///
    /// # Errors
    /// Same as [`fill`](Self::fill).
    #[track_caller]
    pub fn map_reduce<U: Element>(&self, neutral: U, f: impl Fn(T) -> U, op: impl Fn(U, U) -> U) -> Result<U> {
        located(move || self.all().map_reduce(neutral, f, op))
    }

    /// Combines `f(index, x)` over all elements, with the index as in [`map_indexed`](Self::map_indexed). Collective.
    ///
    /// # Errors
    /// Same as [`fill`](Self::fill).
    ///
    /// # Examples
    /// A center of mass:
    /// ```
    /// use global_arrays::prelude::*;
    /// # fn main() -> Result<(), Error> {
    /// Launch::new().ranks(2).network("threads").run(|job| {
    ///     let mut mass = GlobalArray1::<f64>::builder(job, [9]).create()?;
    ///     mass.map_indexed(|i, _| 1.0 + i as f64)?;
    ///     let sums = mass.map_reduce_indexed([0.0; 2], |i, m| [m, m * i as f64], ops::sum)?;
    ///     assert_eq!(sums, [45.0, 240.0]);
    ///     job.sync()
    /// })
    /// # }
    /// ```
    #[track_caller]
    pub fn map_reduce_indexed<U: Element>(
        &self,
        neutral: U,
        f: impl Fn(D::Pattern, T) -> U,
        op: impl Fn(U, U) -> U,
    ) -> Result<U> {
        located(move || self.all().map_reduce_indexed(neutral, f, op))
    }
}

impl<T: Element, D: Dimension, S: Dimension> Operand<'_, T, D, S> {
    pub(super) fn map_reduce<U: Element>(&self, neutral: U, f: impl Fn(T) -> U, op: impl Fn(U, U) -> U) -> Result<U> {
        self.reduce_by("reduce", &[self.fingerprint()], Elements::Own, || Ok(self.fold_own(neutral, f, &op)), &op)
    }

    /// The same for closures of the crate.
    pub(super) fn share_map_reduce<U: Element>(
        &self,
        neutral: U,
        f: impl Fn(T) -> U + Send + Sync,
        op: impl Fn(U, U) -> U + Send + Sync,
    ) -> Result<U> {
        self.reduce_by("reduce", &[self.fingerprint()], Elements::Own, || Ok(self.share_fold_own(neutral, f, &op)), &op)
    }

    pub(super) fn map_reduce_indexed<U: Element>(
        &self,
        neutral: U,
        f: impl Fn(D::Pattern, T) -> U,
        op: impl Fn(U, U) -> U,
    ) -> Result<U> {
        let own = || {
            let mut value = neutral;
            self.read_boxes(|own, values| {
                value = values.indexed_iter().fold(value, |value, (at, &x)| op(value, f(self.turned(index_of(own, at)), x)));
            });
            Ok(value)
        };
        self.reduce_by("reduce", &[self.fingerprint()], Elements::Own, own, &op)
    }

    pub(super) fn max_abs(&self) -> Result<T::Real>
    where
        T: Number,
    {
        self.share_map_reduce(T::Real::ZERO, T::magnitude, ops::max_nan)
    }

    pub(super) fn norm_frobenius(&self) -> Result<T::Real>
    where
        T: Number,
    {
        Ok(real(self.share_map_reduce(0.0, |x| wide(x).powi(2), |a, b| a + b)?.sqrt()))
    }

    /// Syncs, the value of what this rank owns, and the members' values combined.
    fn reduce_by<U: Element>(
        &self,
        operation: &'static str,
        with: &[u64],
        uses: Elements,
        own: impl FnOnce() -> Result<U>,
        op: impl Fn(U, U) -> U,
    ) -> Result<U> {
        let section = self.array.enter(operation, with, uses)?;
        let value = section.leave(own())?;
        self.array.group.all_reduce_one(value, op)
    }

    /// In a piece, element `i` of what is read at a time goes to lane `i % LANES`; then the lanes are combined, and the pieces in their order. A
    /// whole array is this rank's part, or with ghost cells the runs of its elements, in pieces of fixed length. Of a patch there is one
    /// piece, which is read box by box.
    fn fold_own<U: Copy>(&self, neutral: U, f: impl Fn(T) -> U, op: impl Fn(U, U) -> U) -> U {
        if self.is_whole() {
            let (mut value, mut buffer) = (neutral, Vec::new());
            self.own_groups(1, piece_elements::<T>(), |runs| {
                value = op(value, self.fold_piece(runs, &mut buffer, neutral, &f, &op));
            });
            return value;
        }
        let mut lanes = [neutral; LANES];
        self.read_boxes(|_, values| fold_into(&mut lanes, values.as_slice_memory_order().unwrap_or_default(), &f, &op));
        lanes.into_iter().reduce(op).unwrap_or(neutral)
    }

    /// The same by several threads, with the same result.
    fn share_fold_own<U: Copy + Send + Sync>(
        &self,
        neutral: U,
        f: impl Fn(T) -> U + Send + Sync,
        op: impl Fn(U, U) -> U + Send + Sync,
    ) -> U {
        if !self.is_whole() {
            return self.fold_own(neutral, f, op);
        }
        let fold = |runs: &[Range<usize>]| self.fold_piece(runs, &mut Vec::new(), neutral, &f, &op);
        self.share_own_groups(1, piece_elements::<T>(), fold).into_iter().fold(neutral, op)
    }

    fn fold_piece<U: Copy>(
        &self,
        runs: &[Range<usize>],
        buffer: &mut Vec<T>,
        neutral: U,
        f: &impl Fn(T) -> U,
        op: &impl Fn(U, U) -> U,
    ) -> U {
        let (part, mut lanes) = (self.array.own_part(), [neutral; LANES]);
        let most = buffer_elements::<T>().next_multiple_of(LANES);
        buffer.resize(most.min(part.len()), T::zeroed());
        for run in runs.iter().flat_map(|run| cut(run.clone(), most)) {
            let values = &mut buffer[..run.len()];
            part.read_slice(run.start, values);
            fold_into(&mut lanes, values, f, op);
        }
        lanes.into_iter().reduce(op).unwrap_or(neutral)
    }

    /// Σ xᵢyᵢ over this operand, which is not transposed, and another.
    pub(super) fn dot<R: Dimension>(&self, other: &Operand<'_, T, D, R>) -> Result<T>
    where
        T: Number,
    {
        const OPERATION: &str = "dot";
        self.check_operand(OPERATION, other)?;
        let own = || {
            if self.matches(other) {
                let pieces = self.share_own_groups(2, piece_elements::<T>(), |runs| {
                    let (own, other) = (self.array.own_part(), other.array.own_part());
                    runs.iter().fold(T::ZERO, |sum, run| sum.plus(own.slice(run.clone()).dot(&other.slice(run.clone()))))
                });
                return Ok(pieces.into_iter().fold(T::ZERO, T::plus));
            }
            let mut sum = T::ZERO;
            self.own_stretches(self, Some(other), 0, |_, xs, ys| {
                sum = xs.iter().zip(ys).fold(sum, |sum, (&x, &y)| sum.plus(x.scaled(y)));
            })?;
            Ok(sum)
        };
        self.reduce_by(OPERATION, &[self.fingerprint(), other.fingerprint()], self.uses(other), own, ops::sum)
    }
}

/// # Sums
impl<T: Additive, D: Dimension> GlobalArray<T, D> {
    /// The sum of all elements; wraps for integers. Collective.
    ///
    /// # Errors
    /// Same as [`fill`](Self::fill).
    #[track_caller]
    pub fn sum(&self) -> Result<T> {
        located(move || self.all().share_map_reduce(T::ZERO, |x| x, ops::sum))
    }
}

/// # Reductions of numbers
impl<T: Number, D: Dimension> GlobalArray<T, D> {
    /// Σ xᵢyᵢ over all elements of `self` and an array, a patch or a transposed array of the same shape, without conjugation.
    /// Collective; with a whole array of the same distribution, only the sum needs communication. For a patch of `self`:
    /// `self.at(patch).dot(..)`.
    ///
    /// # Errors
    /// Different shapes or groups; a patch outside its array; the errors of [`fill`](Self::fill).
    ///
    /// # Source
    /// GA: `GA_Ddot` and similar calls.
    #[doc(alias = "GA_Ddot")]
    #[track_caller]
    pub fn dot(&self, other: impl IntoOperand<T, D>) -> Result<T> {
        located(move || self.all().dot(&other.into_operand().resolve("dot")?))
    }

    /// The largest magnitude; 0 for an array without elements, NaN if any element is NaN. Collective.
    ///
    /// # Errors
    /// Same as [`fill`](Self::fill).
    #[track_caller]
    pub fn max_abs(&self) -> Result<T::Real> {
        located(move || self.all().max_abs())
    }

    /// (Σ |xᵢ|²)^½ over all elements: the Euclidean norm of a vector, the Frobenius norm of a matrix. Collective.
    ///
    /// The squares are added as `f64` and not scaled: for magnitudes beyond 10^±154 they overflow or underflow.
    ///
    /// # Errors
    /// Same as [`fill`](Self::fill).
    ///
    /// # Source
    /// GA: the root of `GA_Ddot` with itself.
    #[track_caller]
    pub fn norm_frobenius(&self) -> Result<T::Real> {
        located(move || self.all().norm_frobenius())
    }
}

/// Combines values with lanes, each with that of its place.
fn fold_into<T: Copy, U: Copy>(lanes: &mut [U; LANES], values: &[T], f: &impl Fn(T) -> U, op: &impl Fn(U, U) -> U) {
    let (rows, rest) = values.as_chunks::<LANES>();
    for row in rows {
        lanes.iter_mut().zip(row).for_each(|(lane, &x)| *lane = op(*lane, f(x)));
    }
    lanes.iter_mut().zip(rest).for_each(|(lane, &x)| *lane = op(*lane, f(x)));
}

/// The axes of what has [`norm_1`](GlobalArray::norm_1): those of vectors and of matrices.
///
/// Sealed. (One trait, and not a method for each: an integer of unknown type in `s![2, ..]` leaves the axes open until the end.)
pub trait VectorOrMatrix: Dimension + sealed::Sealed {}

mod sealed {
    pub trait Sealed {}
}

impl sealed::Sealed for Ix1 {}
impl VectorOrMatrix for Ix1 {}
impl sealed::Sealed for Ix2 {}
impl VectorOrMatrix for Ix2 {}

/// # Norms of vectors and matrices
impl<T: Number, D: VectorOrMatrix> GlobalArray<T, D> {
    /// Of a vector Σ |xᵢ|, of a matrix the largest column sum of magnitudes; NaN if any element is NaN. Collective.
    ///
    /// # Errors
    /// Same as [`fill`](Self::fill).
    ///
    /// # Source
    /// GA: `GA_Norm1`; ScaLAPACK `PDLANGE`.
    #[doc(alias = "GA_Norm1")]
    #[track_caller]
    pub fn norm_1(&self) -> Result<T::Real> {
        located(move || self.all().norm_1())
    }

    /// Of a vector max |xᵢ|, of a matrix the largest row sum of magnitudes; NaN if any element is NaN. Collective.
    ///
    /// # Errors
    /// Same as [`fill`](Self::fill).
    ///
    /// # Source
    /// GA: `GA_Norm_infinity`; ScaLAPACK `PDLANGE`.
    #[doc(alias = "GA_Norm_infinity")]
    #[track_caller]
    pub fn norm_infinity(&self) -> Result<T::Real> {
        located(move || self.all().norm_infinity())
    }
}

impl<T: Number, D: VectorOrMatrix, S: Dimension> Operand<'_, T, D, S> {
    pub(super) fn norm_1(&self) -> Result<T::Real> {
        if D::NDIM == Some(1) {
            return Ok(real(self.share_map_reduce(0.0, wide, |a, b| a + b)?));
        }
        self.largest_sum("norm_1", 1)
    }

    pub(super) fn norm_infinity(&self) -> Result<T::Real> {
        if D::NDIM == Some(1) { self.max_abs() } else { self.largest_sum("norm_infinity", 0) }
    }

    /// The largest of the sums of magnitudes, one for each index of an axis.
    fn largest_sum(&self, operation: &'static str, axis: usize) -> Result<T::Real> {
        let section = self.array.enter(operation, &[self.fingerprint()], Elements::Own)?;
        let mut sums = vec![0.0; self.shape()[axis]];
        // As the matrix lies.
        let axis = if self.transposed { 1 - axis } else { axis };
        self.read_boxes(|own, values| {
            let add = |(at, &x): (D::Pattern, &T)| sums[own.start[axis] + at.into_dimension()[axis]] += wide(x);
            values.indexed_iter().for_each(add);
        });
        section.leave(Ok(()))?;
        self.array.group.all_reduce(&mut sums, |a: f64, b| a + b)?;
        Ok(real(sums.into_iter().fold(0.0, ops::max_nan)))
    }
}

/// The magnitude as what sums of magnitudes are added in.
fn wide<T: Number>(x: T) -> f64 {
    x.magnitude().to_f64().unwrap_or(f64::NAN)
}

/// A sum of magnitudes as the magnitude of an element.
fn real<R: Float>(sum: f64) -> R {
    NumCast::from(sum).unwrap_or_else(R::nan)
}
