//! Patches as operands: `a.at(s![..])` where an operation takes `&a`, `a.at_mut(s![..])` where it changes `a` (`patch_mut`).
//!
//! Naming a patch never fails. The operation resolves it into an [`Operand`] and reports errors.

use std::{fmt, marker::PhantomData};

use ndarray::Dimension;

use super::{PatchMut, VectorOrMatrix, operand::Operand};
use crate::{
    array::{Frozen, GlobalArray},
    calls::located,
    element::{Additive, Element, Number},
    error::Result,
    index::{IntoPatch, PatchError, Selection},
    sync::ops,
};

/// A patch of an array, transposed or not, that a whole-array operation reads. [`GlobalArray::at`] and [`GlobalArray::t`] make one,
/// and so does a conversion from a reference to an array; no data move.
///
/// `D` are its axes, `S` those of its array. They differ by the axes that single indices removed.
#[doc(alias = "Factor")]
pub struct PatchRef<'a, T, D, S = D> {
    array: &'a GlobalArray<T, S>,
    selection: Result<Selection<S>, PatchError>,
    transposed: bool,
    conjugate: Option<fn(T) -> T>,
    whole: Option<&'a GlobalArray<T, D>>,
}

/// What a whole-array operation reads, with elements `T` and axes `D`: `&a`, a patch `a.at(..)` or a transposed array `a.t()`.
///
/// Sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no operand with elements `{T}` and axes `{D}`",
    label = "not an array or a patch of these elements and axes",
    note = "`&a`, `a.at(patch)` and `a.t()` are operands; a single index in a patch removes its axis"
)]
pub trait IntoOperand<T, D>: sealed::Sealed {
    /// The axes of the array.
    type Axes: Dimension;

    /// The patch.
    fn into_operand<'s>(self) -> PatchRef<'s, T, D, Self::Axes>
    where
        Self: 's,
        T: 's,
        D: 's,
        Self::Axes: 's;
}

mod sealed {
    pub trait Sealed {}
    impl<T, D> Sealed for &super::GlobalArray<T, D> {}
    impl<T, D> Sealed for &super::Frozen<T, D> {}
    impl<T, D, S> Sealed for super::PatchRef<'_, T, D, S> {}
}

/// # Operands of the algebra
impl<T: Element, D: Dimension> GlobalArray<T, D> {
    /// A patch as an operand of a whole-array operation, in place of `&a`: `b.assign(a.at(s![..2, ..]))`. A single index removes its
    /// axis, as in [`get`](Self::get): a row of a matrix is a vector. No data move.
    ///
    /// If the patch lies outside the array, the operation that takes it returns the error.
    ///
    /// # Examples
    /// ```
    /// use global_arrays::prelude::*;
    /// # fn main() -> Result<(), Error> {
    /// Launch::new().ranks(2).network("threads").run(|job| {
    ///     let mut a = GlobalArray::<i64, Ix1>::builder(job, [6]).create()?;
    ///     a.map_indexed(|i, _| i as i64)?;
    ///     let mut b = GlobalArray::<i64, Ix1>::builder(job, [10]).zeros().create()?;
    ///     b.at_mut(s![2..8]).assign(a.at(s![..;-1]))?;
    ///     assert_eq!(b.get(..)?.to_vec(), [0, 0, 5, 4, 3, 2, 1, 0, 0, 0]);
    ///     assert_eq!(a.at(s![..3]).dot(b.at(s![2..5]))?, 0 * 5 + 1 * 4 + 2 * 3);
    ///     let mut m = GlobalArray::<i64, Ix2>::builder(job, [4, 6]).zeros().create()?;
    ///     m.at_mut(s![2, ..]).assign(&a)?; // row 2
    ///     assert_eq!(m.at(s![2, 3..]).sum()?, 3 + 4 + 5);
    ///     job.sync()
    /// })
    /// # }
    /// ```
    #[doc(alias = "factor")]
    pub fn at<P: IntoPatch<D>>(&self, patch: P) -> PatchRef<'_, T, P::Output, D> {
        PatchRef { array: self, selection: patch.into_patch(&self.extents), transposed: false, conjugate: None, whole: None }
    }

    /// A patch to be changed by a whole-array operation: `a.at_mut(s![1, ..]).fill(0.0)`. No data move.
    ///
    /// If the patch lies outside the array, the operation returns the error.
    #[doc(alias = "fill_patch")]
    #[doc(alias = "scale_patch")]
    #[doc(alias = "copy_patch")]
    #[doc(alias = "add_patch")]
    #[doc(alias = "matmul_patch")]
    pub fn at_mut<P: IntoPatch<D>>(&mut self, patch: P) -> PatchMut<'_, T, P::Output, D> {
        let selection = patch.into_patch(&self.extents);
        PatchMut { array: self, selection, axes: PhantomData }
    }

    /// The array with its axes reversed (for a matrix, the transpose) as an operand: `b.assign(a.t())`,
    /// `c.matmul(1.0, a.t(), &b, 0.0)`. No data move.
    ///
    /// # Source
    /// GA: `GA_Transpose`, the `'T'` of `GA_Dgemm` and `NGA_Copy_patch`.
    #[doc(alias = "GA_Transpose")]
    #[doc(alias = "transpose_from")]
    pub fn t(&self) -> PatchRef<'_, T, D> {
        self.into_operand().t()
    }
}

impl<T: Number, D: Dimension> GlobalArray<T, D> {
    /// The array with its axes reversed and its elements conjugated, as an operand: `c.matmul(one, a.h(), &b, zero)`. Of real numbers the
    /// same as [`t`](Self::t). No data move.
    ///
    /// # Source
    /// The `'C'` of BLAS.
    #[doc(alias = "hermitian")]
    pub fn h(&self) -> PatchRef<'_, T, D> {
        self.into_operand().h()
    }
}

impl<T: Element, D: Dimension> IntoOperand<T, D> for &GlobalArray<T, D> {
    type Axes = D;

    fn into_operand<'s>(self) -> PatchRef<'s, T, D>
    where
        Self: 's,
    {
        PatchRef { whole: Some(self), ..self.at(..) }
    }
}

impl<T: Element, D: Dimension> IntoOperand<T, D> for &Frozen<T, D> {
    type Axes = D;

    fn into_operand<'s>(self) -> PatchRef<'s, T, D>
    where
        Self: 's,
    {
        self.array().into_operand()
    }
}

impl<T: Element, D: Dimension, S: Dimension> IntoOperand<T, D> for PatchRef<'_, T, D, S> {
    type Axes = S;

    fn into_operand<'s>(self) -> PatchRef<'s, T, D, S>
    where
        Self: 's,
    {
        self
    }
}

impl<'a, T: Element, D: Dimension, S: Dimension> PatchRef<'a, T, D, S> {
    /// Reverses the axes; no data move.
    #[must_use = "a patch does nothing by itself"]
    pub fn t(mut self) -> Self {
        self.transposed = !self.transposed;
        self
    }

    /// The name of its array.
    pub(crate) fn array_name(&self) -> &str {
        self.array.name()
    }

    pub(crate) fn resolve(self, operation: &'static str) -> Result<Operand<'a, T, D, S>> {
        match self.selection {
            // Of one axis there is nothing to reverse.
            Ok(selection) => {
                let transposed = self.transposed && selection.kept.len() > 1;
                Ok(Operand { array: self.array, selection, transposed, conjugate: self.conjugate, whole: self.whole })
            }
            Err(error) => Err(self.array.patch_error(operation, error)),
        }
    }
}

impl<T: Number, D: Dimension, S: Dimension> PatchRef<'_, T, D, S> {
    /// Reverses the axes and conjugates the elements; no data move. A patch of one axis is conjugated only: `x.at(..).h()` is x̄, for
    /// [`dot`](Self::dot).
    #[must_use = "a patch does nothing by itself"]
    pub fn h(mut self) -> Self {
        self.conjugate = (!T::IS_REAL && self.conjugate.is_none()).then_some(T::conj as fn(T) -> T);
        self.t()
    }
}

/// Reductions of a patch. Indices are those of the patch, and so is the order of its elements.
impl<T: Element, D: Dimension, S: Dimension> PatchRef<'_, T, D, S> {
    /// Combines all elements; see [`GlobalArray::reduce`]. Collective.
    ///
    /// # Errors
    /// A patch outside the array; the errors of that method.
    #[track_caller]
    pub fn reduce(self, neutral: T, op: impl Fn(T, T) -> T) -> Result<T> {
        located(move || self.resolve("reduce")?.map_reduce(neutral, |x| x, op))
    }

    /// Combines `f(x)` over all elements; see [`GlobalArray::map_reduce`]. Collective.
    ///
    /// # Errors
    /// A patch outside the array; the errors of that method.
    #[track_caller]
    pub fn map_reduce<U: Element>(self, neutral: U, f: impl Fn(T) -> U, op: impl Fn(U, U) -> U) -> Result<U> {
        located(move || self.resolve("map_reduce")?.map_reduce(neutral, f, op))
    }

    /// Combines `f(index, x)` over all elements; see [`GlobalArray::map_reduce_indexed`]. Collective.
    ///
    /// # Errors
    /// A patch outside the array; the errors of that method.
    #[track_caller]
    pub fn map_reduce_indexed<U: Element>(self, neutral: U, f: impl Fn(D::Pattern, T) -> U, op: impl Fn(U, U) -> U) -> Result<U> {
        located(move || self.resolve("map_reduce_indexed")?.map_reduce_indexed(neutral, f, op))
    }

    /// The sum of all elements; see [`GlobalArray::sum`]. Collective.
    ///
    /// # Errors
    /// A patch outside the array; the errors of that method.
    #[track_caller]
    pub fn sum(self) -> Result<T>
    where
        T: Additive,
    {
        located(move || self.resolve("sum")?.share_map_reduce(T::ZERO, |x| x, ops::sum))
    }

    /// The smallest element and its index; see [`GlobalArray::argmin`]. Collective.
    ///
    /// # Errors
    /// A patch outside the array; the errors of that method.
    #[track_caller]
    pub fn argmin(self) -> Result<Option<(T, D::Pattern)>>
    where
        T: PartialOrd,
    {
        located(move || self.resolve("argmin")?.select("argmin", |x, y| x < y))
    }

    /// The largest element and its index; see [`GlobalArray::argmax`]. Collective.
    ///
    /// # Errors
    /// A patch outside the array; the errors of that method.
    #[track_caller]
    pub fn argmax(self) -> Result<Option<(T, D::Pattern)>>
    where
        T: PartialOrd,
    {
        located(move || self.resolve("argmax")?.select("argmax", |x, y| x > y))
    }
}

impl<T: Number, D: Dimension, S: Dimension> PatchRef<'_, T, D, S> {
    /// The largest magnitude; see [`GlobalArray::max_abs`]. Collective.
    ///
    /// # Errors
    /// A patch outside the array; the errors of that method.
    #[track_caller]
    pub fn max_abs(self) -> Result<T::Real> {
        located(move || self.resolve("max_abs")?.max_abs())
    }

    /// (Σ |xᵢ|²)^½; see [`GlobalArray::norm_frobenius`]. Collective.
    ///
    /// # Errors
    /// A patch outside the array; the errors of that method.
    #[track_caller]
    pub fn norm_frobenius(self) -> Result<T::Real> {
        located(move || self.resolve("norm_frobenius")?.norm_frobenius())
    }

    /// Σ xᵢyᵢ over the patch and another operand of the same shape, without conjugation; see [`GlobalArray::dot`]. Collective.
    ///
    /// # Errors
    /// A patch outside its array; the errors of that method.
    ///
    /// # Source
    /// GA: `NGA_Ddot_patch` and similar calls.
    #[doc(alias = "NGA_Ddot_patch")]
    #[doc(alias = "dot_patch")]
    #[track_caller]
    pub fn dot(self, other: impl IntoOperand<T, D>) -> Result<T> {
        located(move || {
            const OPERATION: &str = "dot";
            let (mut own, mut other) = (self.resolve(OPERATION)?, other.into_operand().resolve(OPERATION)?);
            // xᵀ · y = x · yᵀ: this side is walked as it lies.
            other.transposed ^= std::mem::take(&mut own.transposed);
            own.dot(&other)
        })
    }
}

impl<T: Number, D: VectorOrMatrix, S: Dimension> PatchRef<'_, T, D, S> {
    /// See [`GlobalArray::norm_1`]. Collective.
    ///
    /// # Errors
    /// A patch outside the array; the errors of that method.
    #[track_caller]
    pub fn norm_1(self) -> Result<T::Real> {
        located(move || self.resolve("norm_1")?.norm_1())
    }

    /// See [`GlobalArray::norm_infinity`]. Collective.
    ///
    /// # Errors
    /// A patch outside the array; the errors of that method.
    #[track_caller]
    pub fn norm_infinity(self) -> Result<T::Real> {
        located(move || self.resolve("norm_infinity")?.norm_infinity())
    }
}

impl<T: Element + fmt::Display, D: Dimension, S: Dimension> PatchRef<'_, T, D, S> {
    /// Writes the patch as text; see [`GlobalArray::write_to`]. Collective.
    ///
    /// # Errors
    /// A patch outside the array; the errors of that method.
    ///
    /// # Source
    /// GA: `NGA_Print_patch`.
    #[doc(alias = "NGA_Print_patch")]
    #[doc(alias = "write_patch_to")]
    #[track_caller]
    pub fn write_to(self, to: impl std::io::Write) -> Result<()> {
        located(move || {
            const OPERATION: &str = "write_to";
            self.resolve(OPERATION)?.write_text(OPERATION, to)
        })
    }

    /// Writes the patch to the standard output of member 0; see [`GlobalArray::print`]. Collective.
    ///
    /// # Errors
    /// A patch outside the array; the errors of that method.
    #[track_caller]
    pub fn print(self) -> Result<()> {
        located(move || self.resolve("print")?.write_text("print", std::io::stdout()))
    }
}

impl<T, D, S: Dimension> fmt::Debug for PatchRef<'_, T, D, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let transposed = match (self.transposed, self.conjugate) {
            (true, None) => ", transposed",
            (true, Some(_)) => ", transposed and conjugated",
            (false, Some(_)) => ", conjugated",
            (false, None) => "",
        };
        write!(f, "PatchRef({}, {:?}{transposed})", self.array.name, self.selection)
    }
}
