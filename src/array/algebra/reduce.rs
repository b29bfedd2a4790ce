//! Reductions. Each member reduces its own elements in a fixed order, then the group combines the values (`sync::collectives`). So equal
//! calls give equal bits, but another distribution may round differently.

use ndarray::{Dimension, Ix1, Ix2};
use num_traits::{Float, NumCast, ToPrimitive};

use super::{Operand, PatchRef, buffer_elements, patch_fingerprint};
use crate::{
    array::GlobalArray,
    calls::located,
    element::{Additive, Element, Number},
    error::Result,
    index::Patch,
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
        located(move || self.map_reduce(neutral, |x| x, op))
    }

    /// Combines `f(x)` over all elements, like [`reduce`](Self::reduce). Collective.
    ///
    /// # Errors
    /// Same as [`fill`](Self::fill).
    #[track_caller]
    pub fn map_reduce<U: Element>(&self, neutral: U, f: impl Fn(T) -> U, op: impl Fn(U, U) -> U) -> Result<U> {
        located(move || self.reduce_by("reduce", &[], || Ok(self.fold_own(neutral, f, &op)), &op))
    }

    /// Syncs, the value of what this rank owns, and the members' values combined.
    fn reduce_by<U: Element>(
        &self,
        operation: &'static str,
        with: &[u64],
        own: impl FnOnce() -> Result<U>,
        op: impl Fn(U, U) -> U,
    ) -> Result<U> {
        self.enter(operation, with)?;
        let value = self.leave(operation, own())?;
        self.group.all_reduce_one(value, op)
    }

    /// Element `i` of this rank's part (with ghost cells: of each run of its elements) goes to lane `i % LANES`; then the lanes are combined.
    fn fold_own<U: Copy>(&self, neutral: U, f: impl Fn(T) -> U, op: impl Fn(U, U) -> U) -> U {
        let part = self.own_part();
        let most = buffer_elements::<T>().next_multiple_of(LANES);
        let mut buffer = vec![T::zeroed(); most.min(part.len())];
        let mut lanes = [neutral; LANES];
        self.own_runs(&self.whole(), 1, |run| {
            for at in run.clone().step_by(most) {
                let values = &mut buffer[..most.min(run.end - at)];
                part.read_slice(at, values);
                let (rows, rest) = values.as_chunks::<LANES>();
                for row in rows {
                    lanes.iter_mut().zip(row).for_each(|(lane, &x)| *lane = op(*lane, f(x)));
                }
                lanes.iter_mut().zip(rest).for_each(|(lane, &x)| *lane = op(*lane, f(x)));
            }
        });
        lanes.into_iter().reduce(op).unwrap_or(neutral)
    }

    /// Reads what this rank owns, box by box.
    fn for_own_values(&self, mut f: impl FnMut(D::Pattern, &D, T)) {
        let whole = self.whole();
        let mut buffer = vec![T::zeroed(); buffer_elements::<T>().min(whole.len())];
        let read = self.own_boxes(&whole, self.edges(buffer_elements::<T>()), |own| {
            let mut view = self.box_view(&own.count, &mut buffer);
            self.read_box(own, &mut view);
            view.indexed_iter().for_each(|(position, &x)| f(position, &own.start, x));
            Ok(())
        });
        debug_assert!(read.is_ok(), "no box fails");
        self.streamed::<T>(read.unwrap_or(0));
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
        located(move || self.map_reduce(T::ZERO, |x| x, ops::sum))
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
    #[track_caller]
    pub fn dot<'a>(&self, other: impl Into<PatchRef<'a, T, D>>) -> Result<T>
    where
        D: 'a,
    {
        located(move || self.dot_on("dot", &self.whole(), &other.into().resolve("dot")?))
    }

    pub(super) fn dot_on(&self, operation: &'static str, patch: &Patch<D>, other: &Operand<'_, T, D>) -> Result<T> {
        self.check_operand(operation, patch, other)?;
        let own = || {
            if self.matches(patch, other) {
                let part = self.own_part();
                self.streamed::<T>(2 * part.len());
                return Ok(part.dot(&other.array.own_part()));
            }
            self.dot_own(patch, other)
        };
        self.reduce_by(operation, &[patch_fingerprint(patch), other.fingerprint()], own, ops::sum)
    }

    fn dot_own(&self, patch: &Patch<D>, other: &Operand<'_, T, D>) -> Result<T> {
        let mut sum = T::ZERO;
        let own = Operand { array: self, patch: patch.clone(), transposed: false };
        self.own_pairs(patch, &own, other, false, |xs, ys, _| {
            sum = xs.iter().zip(ys).fold(sum, |sum, (&x, &y)| sum.plus(x.scaled(y)));
        })?;
        Ok(sum)
    }

    /// The largest magnitude; 0 for an array without elements, NaN if any element is NaN. Collective.
    ///
    /// # Errors
    /// Same as [`fill`](Self::fill).
    #[track_caller]
    pub fn max_abs(&self) -> Result<T::Real> {
        located(move || self.map_reduce(T::Real::ZERO, T::magnitude, larger))
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
        located(move || Ok(real(self.map_reduce(0.0, |x| wide(x).powi(2), |a, b| a + b)?.sqrt())))
    }
}

impl<T: Number> GlobalArray<T, Ix1> {
    /// Σ |xᵢ|. Collective.
    ///
    /// # Errors
    /// Same as [`fill`](Self::fill).
    ///
    /// # Source
    /// GA: `GA_Norm1`.
    #[track_caller]
    pub fn norm_1(&self) -> Result<T::Real> {
        located(move || Ok(real(self.map_reduce(0.0, wide, |a, b| a + b)?)))
    }

    /// max |xᵢ|. Collective.
    ///
    /// # Errors
    /// Same as [`fill`](Self::fill).
    ///
    /// # Source
    /// GA: `GA_Norm_infinity`.
    #[track_caller]
    pub fn norm_infinity(&self) -> Result<T::Real> {
        located(move || self.max_abs())
    }
}

impl<T: Number> GlobalArray<T, Ix2> {
    /// The largest column sum of magnitudes; NaN if any element is NaN. Collective.
    ///
    /// # Errors
    /// Same as [`fill`](Self::fill).
    ///
    /// # Source
    /// GA: `GA_Norm1`; ScaLAPACK `PDLANGE`.
    #[track_caller]
    pub fn norm_1(&self) -> Result<T::Real> {
        located(move || self.largest_sum("norm_1", 1))
    }

    /// The largest row sum of magnitudes; NaN if any element is NaN. Collective.
    ///
    /// # Errors
    /// Same as [`fill`](Self::fill).
    ///
    /// # Source
    /// GA: `GA_Norm_infinity`; ScaLAPACK `PDLANGE`.
    #[track_caller]
    pub fn norm_infinity(&self) -> Result<T::Real> {
        located(move || self.largest_sum("norm_infinity", 0))
    }

    /// The largest of the sums of magnitudes, one for each index of an axis.
    fn largest_sum(&self, operation: &'static str, axis: usize) -> Result<T::Real> {
        self.enter(operation, &[])?;
        let mut sums = vec![0.0; self.shape()[axis]];
        self.for_own_values(|(row, column), start, x| sums[start[axis] + [row, column][axis]] += wide(x));
        self.leave(operation, Ok(()))?;
        self.group.all_reduce(&mut sums, |a: f64, b| a + b)?;
        Ok(real(sums.into_iter().fold(0.0, larger)))
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

/// The larger; NaN if either is.
fn larger<R: Float>(a: R, b: R) -> R {
    if b > a || b.is_nan() { b } else { a }
}
