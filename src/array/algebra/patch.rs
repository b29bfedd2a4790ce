//! Patches as operands: `a.at(s![..])` where an operation takes `&a`, `a.at_mut(s![..])` where it changes `a`.
//!
//! Naming a patch never fails. The operation resolves it into an [`Operand`] and reports errors.
//!
//! An axis that a single index removes is no axis of the operand. So operands have two kinds of axes: `S` are those of the array, `D`
//! those that operations see. An operand turns one into the other, and everything else works with `D`.

use std::{fmt, marker::PhantomData};

use ndarray::{ArrayViewMut, Dimension, IntoDimension};

use super::patch_fingerprint;
use crate::{
    array::GlobalArray,
    calls::located,
    distribution::Piece,
    element::{Additive, Element, Number},
    error::Result,
    index::{IntoPatch, KeptAxes, Patch, PatchError, Selection},
    memory::buffer::Target,
    sync::{fingerprint, ops},
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
    impl<T, D, S> Sealed for super::PatchRef<'_, T, D, S> {}
}

/// A patch of an array that a whole-array operation changes. [`GlobalArray::at_mut`] makes one.
///
/// It has methods of [`GlobalArray`], which are collective too. The rest of the array does not change, but no rank may use it
/// meanwhile. `D` are its axes, `S` those of its array. They differ by the axes that single indices removed.
pub struct PatchMut<'a, T, D, S = D> {
    array: &'a mut GlobalArray<T, S>,
    selection: Result<Selection<S>, PatchError>,
    axes: PhantomData<D>,
}

/// An operand whose patch lies inside its array.
pub(in crate::array) struct Operand<'a, T, D, S = D> {
    pub(in crate::array) array: &'a GlobalArray<T, S>,
    pub(super) selection: Selection<S>,
    /// The axes are reversed when others are removed.
    pub(in crate::array) transposed: bool,
    /// The array with the type that shows that no axis is missing, if the program named all of it.
    whole: Option<&'a GlobalArray<T, D>>,
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
        PatchRef { array: self, selection: patch.into_patch(&self.extents), transposed: false, whole: None }
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

impl<T: Element, D: Dimension> GlobalArray<T, D> {
    /// All of it, for operations that cannot fail to name it.
    pub(super) fn all(&self) -> Operand<'_, T, D> {
        let kept = KeptAxes::all(self.extents.ndim()).expect("creation limits the number of axes");
        Operand { array: self, selection: Selection { patch: self.whole(), kept }, transposed: false, whole: Some(self) }
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

    pub(in crate::array) fn resolve(self, operation: &'static str) -> Result<Operand<'a, T, D, S>> {
        match self.selection {
            // Of one axis there is nothing to reverse.
            Ok(selection) => {
                let transposed = self.transposed && selection.kept.len() > 1;
                Ok(Operand { array: self.array, selection, transposed, whole: self.whole })
            }
            Err(error) => Err(self.array.patch_error(operation, error)),
        }
    }
}

/// A patch has the reductions of a whole array. Indices are those of the patch.
impl<'a, T: Element, D: Dimension, S: Dimension> PatchRef<'a, T, D, S> {
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
        located(move || {
            let (own, transposed) = self.untransposed("map_reduce_indexed")?;
            own.map_reduce_indexed(neutral, |index, x| f(turned::<D>(index, transposed), x), op)
        })
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
        located(move || self.resolve("sum")?.map_reduce(T::ZERO, |x| x, ops::sum))
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
        located(move || {
            let (own, transposed) = self.untransposed("argmin")?;
            Ok(own.select("argmin", |x, y| x < y)?.map(|(value, index)| (value, turned::<D>(index, transposed))))
        })
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
        located(move || {
            let (own, transposed) = self.untransposed("argmax")?;
            Ok(own.select("argmax", |x, y| x > y)?.map(|(value, index)| (value, turned::<D>(index, transposed))))
        })
    }

    /// The operand as it lies, and whether that is not what the program named.
    fn untransposed(self, operation: &'static str) -> Result<(Operand<'a, T, D, S>, bool)> {
        let mut own = self.resolve(operation)?;
        let transposed = std::mem::take(&mut own.transposed);
        Ok((own, transposed))
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
    #[doc(alias = "dot_patch")]
    #[track_caller]
    pub fn dot(self, other: impl IntoOperand<T, D>) -> Result<T> {
        located(move || {
            const OPERATION: &str = "dot";
            let ((own, transposed), mut other) = (self.untransposed(OPERATION)?, other.into_operand().resolve(OPERATION)?);
            // xᵀ · y = x · yᵀ: this side is walked as it lies.
            other.transposed ^= transposed;
            own.dot(&other)
        })
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
    #[doc(alias = "write_patch_to")]
    #[track_caller]
    pub fn write_to(self, to: impl std::io::Write) -> Result<()> {
        located(move || {
            const OPERATION: &str = "write_to";
            self.resolve(OPERATION)?.write_text(OPERATION, to)
        })
    }
}

impl<T: Element, D: Dimension, S: Dimension> PatchMut<'_, T, D, S> {
    /// Sets the elements; see [`GlobalArray::fill`]. Collective.
    ///
    /// # Errors
    /// A patch outside the array; the errors of that method.
    ///
    /// # Source
    /// GA: `NGA_Fill_patch`, `NGA_Zero_patch`.
    #[track_caller]
    pub fn fill(&mut self, value: T) -> Result<()> {
        located(move || self.resolve("fill")?.fill(value))
    }

    /// Replaces each element `x` by `f(x)`; see [`GlobalArray::map`]. Collective.
    ///
    /// # Errors
    /// A patch outside the array; the errors of that method.
    ///
    /// # Source
    /// GA: `GA_Abs_value_patch`, `GA_Recip_patch`, `GA_Add_constant_patch` and similar calls are closures here.
    #[track_caller]
    pub fn map(&mut self, f: impl FnMut(T) -> T) -> Result<()> {
        located(move || self.resolve("map")?.map("map", f))
    }

    /// Copies an operand with the shape of the patch; see [`GlobalArray::assign`]. Collective.
    ///
    /// # Errors
    /// A patch outside its array; the errors of that method.
    ///
    /// # Source
    /// GA: `NGA_Copy_patch`, without its reshaping.
    #[track_caller]
    pub fn assign(&mut self, source: impl IntoOperand<T, D>) -> Result<()> {
        located(move || self.resolve("assign")?.assign(source.into_operand()))
    }

    /// Sets each element to `f(x, y)`; see [`GlobalArray::assign_zip`]. Collective.
    ///
    /// # Errors
    /// A patch outside its array; the errors of that method.
    ///
    /// # Source
    /// GA: `GA_Elem_multiply_patch`, `GA_Elem_divide_patch` and similar calls.
    #[track_caller]
    pub fn assign_zip<A: Element, B: Element>(
        &mut self,
        a: impl IntoOperand<A, D>,
        b: impl IntoOperand<B, D>,
        f: impl FnMut(A, B) -> T,
    ) -> Result<()> {
        located(move || self.resolve("assign_zip")?.assign_zip("assign_zip", a.into_operand(), b.into_operand(), f))
    }

    /// Sets each element to `f(x)`; see [`GlobalArray::assign_map`]. Collective.
    ///
    /// # Errors
    /// A patch outside its array; the errors of that method.
    #[track_caller]
    pub fn assign_map<A: Element>(&mut self, a: impl IntoOperand<A, D>, f: impl FnMut(A) -> T) -> Result<()> {
        located(move || self.resolve("assign_map")?.assign_map(a.into_operand(), f))
    }

    /// Replaces each element `x` by `f(x, y)`; see [`GlobalArray::zip_with`]. Collective.
    ///
    /// # Errors
    /// A patch outside its array; the errors of that method.
    #[track_caller]
    pub fn zip_with<A: Element>(&mut self, a: impl IntoOperand<A, D>, f: impl FnMut(T, A) -> T) -> Result<()> {
        located(move || self.resolve("zip_with")?.zip_with(a.into_operand(), f))
    }

    /// Replaces each element `x` by `f(x, y, z)`; see [`GlobalArray::zip_with2`]. Collective.
    ///
    /// # Errors
    /// A patch outside its array; the errors of that method.
    #[track_caller]
    pub fn zip_with2<A: Element, B: Element>(
        &mut self,
        a: impl IntoOperand<A, D>,
        b: impl IntoOperand<B, D>,
        f: impl FnMut(T, A, B) -> T,
    ) -> Result<()> {
        located(move || self.resolve("zip_with2")?.zip_with2(a.into_operand(), b.into_operand(), f))
    }

    /// Replaces each element `x` by `f(index, x)`, with the index in the patch; see [`GlobalArray::map_indexed`]. Collective.
    ///
    /// # Errors
    /// A patch outside the array; the errors of that method.
    #[track_caller]
    pub fn map_indexed(&mut self, f: impl FnMut(D::Pattern, T) -> T) -> Result<()> {
        located(move || self.resolve("map_indexed")?.map_indexed(f))
    }

    pub(super) fn resolve(&self, operation: &'static str) -> Result<Operand<'_, T, D, S>> {
        match &self.selection {
            Ok(selection) => Ok(Operand { array: self.array, selection: selection.clone(), transposed: false, whole: None }),
            Err(error) => Err(self.array.patch_error(operation, error.clone())),
        }
    }

    /// The array, and the patch of it.
    pub(in crate::array) fn parts(&mut self, operation: &'static str) -> Result<(&mut GlobalArray<T, S>, Patch<S>)> {
        let selection = self.selection.clone().map_err(|error| self.array.patch_error(operation, error))?;
        Ok((self.array, selection.patch))
    }
}

impl<T: Additive, D: Dimension, S: Dimension> PatchMut<'_, T, D, S> {
    /// Sets the elements to zero. Collective.
    ///
    /// # Errors
    /// A patch outside the array; the errors of [`GlobalArray::fill`].
    ///
    /// # Source
    /// GA: `NGA_Zero_patch`.
    #[track_caller]
    pub fn zero(&mut self) -> Result<()> {
        located(move || self.fill(T::ZERO))
    }

    /// Adds `constant` to the elements. Collective.
    ///
    /// # Errors
    /// A patch outside the array; the errors of [`GlobalArray::fill`].
    ///
    /// # Source
    /// GA: `GA_Add_constant_patch`.
    #[track_caller]
    pub fn add_constant(&mut self, constant: T) -> Result<()> {
        located(move || self.resolve("add_constant")?.map("add_constant", |x| x.plus(constant)))
    }

    /// Multiplies the elements by `alpha`; see [`GlobalArray::scale`]. Collective.
    ///
    /// # Errors
    /// A patch outside the array; the errors of that method.
    ///
    /// # Source
    /// GA: `NGA_Scale_patch`.
    #[track_caller]
    pub fn scale(&mut self, alpha: T::Scale) -> Result<()> {
        located(move || self.resolve("scale")?.scale(alpha))
    }

    /// `patch = alpha x + beta y`; see [`GlobalArray::assign_sum`]. Collective.
    ///
    /// # Errors
    /// A patch outside its array; the errors of that method.
    ///
    /// # Source
    /// GA: `NGA_Add_patch`.
    #[track_caller]
    pub fn assign_sum(
        &mut self,
        alpha: T::Scale,
        x: impl IntoOperand<T, D>,
        beta: T::Scale,
        y: impl IntoOperand<T, D>,
    ) -> Result<()> {
        located(move || self.resolve("assign_sum")?.assign_sum((alpha, x.into_operand()), (beta, y.into_operand())))
    }

    /// `patch += alpha x`; see [`GlobalArray::scaled_add`]. Collective.
    ///
    /// # Errors
    /// A patch outside its array; the errors of that method.
    #[track_caller]
    pub fn scaled_add(&mut self, alpha: T::Scale, x: impl IntoOperand<T, D>) -> Result<()> {
        located(move || self.resolve("scaled_add")?.axpby("scaled_add", alpha, x.into_operand(), T::Scale::ONE))
    }

    /// `patch = alpha x + beta patch`; see [`GlobalArray::axpby`]. Collective.
    ///
    /// # Errors
    /// A patch outside its array; the errors of that method.
    #[track_caller]
    pub fn axpby(&mut self, alpha: T::Scale, x: impl IntoOperand<T, D>, beta: T::Scale) -> Result<()> {
        located(move || self.resolve("axpby")?.axpby("axpby", alpha, x.into_operand(), beta))
    }
}

impl<T: Element, D: Dimension, S: Dimension> Operand<'_, T, D, S> {
    /// Elements along each axis, after the transposition.
    pub(in crate::array) fn shape(&self) -> D {
        let shape = self.selection.kept.shape::<D, S>(&self.selection.patch);
        if self.transposed { reversed(&shape) } else { shape }
    }

    /// What members must share of it.
    pub(in crate::array) fn fingerprint(&self) -> u64 {
        let axes = 2 * self.selection.kept.len() as u64;
        fingerprint(&[self.array.id, patch_fingerprint(&self.selection.patch), axes | u64::from(self.transposed)])
    }

    /// Whether it is all of its array, as it lies.
    pub(super) fn is_whole(&self) -> bool {
        let patch = &self.selection.patch;
        let has_all = patch.is_unit_step() && patch.count() == self.array.distribution.extents();
        has_all && !self.transposed && self.selection.kept.len() == patch.ndim()
    }

    /// Whether this rank's parts of both hold the same elements in the same places, and nothing else.
    pub(super) fn matches<U: Element, R: Dimension>(&self, other: &Operand<'_, U, D, R>) -> bool {
        match (self.whole, other.whole) {
            (Some(own), Some(theirs)) => !other.transposed && own.is_dense() && own.distribution == theirs.distribution,
            _ => false,
        }
    }

    /// Reads `count` positions from position `start` on.
    pub(super) fn read(&self, start: &D, count: &D, to: ArrayViewMut<'_, T, D>) -> Result<()> {
        if self.transposed {
            return self.read_as_it_lies(&reversed(start), &reversed(count), to.reversed_axes());
        }
        self.read_as_it_lies(start, count, to)
    }

    /// The same, without the transposition.
    pub(in crate::array) fn read_as_it_lies(&self, start: &D, count: &D, mut to: ArrayViewMut<'_, T, D>) -> Result<()> {
        const OPERATION: &str = "get_into";
        let patch = self.window(start, count);
        let target = Target::of(&mut to, &patch, &self.selection.kept).expect("a view of as many positions");
        self.array.check_job(OPERATION)?;
        self.array.get_block(OPERATION, &patch, &target)
    }

    /// The pieces of some positions, without the transposition.
    pub(super) fn pieces_as_it_lies(&self, start: &D, count: &D, mut f: impl FnMut(Piece<D>)) {
        let window = self.window(start, count);
        self.array.distribution.pieces(&window).for_each(|piece| f(self.without_removed(piece)));
    }

    /// `count` positions from position `start` on, in the array.
    fn window(&self, start: &D, count: &D) -> Patch<S> {
        let Selection { patch, kept } = &self.selection;
        let (mut from, mut counts) = (S::zeros(patch.ndim()), patch.count().clone());
        let axes = (0..patch.ndim()).filter(|&axis| kept.contains(axis));
        for (axis, (&start, &count)) in axes.zip(start.slice().iter().zip(count.slice())) {
            (from[axis], counts[axis]) = (start, count);
        }
        sub_patch(patch, &from, &counts)
    }

    /// A piece of the array without the axes that are none of the operand.
    pub(super) fn without_removed(&self, piece: Piece<S>) -> Piece<D> {
        let kept = &self.selection.kept;
        let some = |of: &S| {
            let mut some = D::zeros(kept.len());
            let axes = (0..of.ndim()).filter(|&axis| kept.contains(axis));
            some.slice_mut().iter_mut().zip(axes).for_each(|(some, axis)| *some = of[axis]);
            some
        };
        Piece {
            member: piece.member,
            offset: piece.offset,
            strides: some(&piece.strides),
            start: some(&piece.start),
            count: some(&piece.count),
        }
    }
}

/// An index, of a transposed operand with its axes in reverse order.
fn turned<D: Dimension>(index: D::Pattern, transposed: bool) -> D::Pattern {
    if transposed { reversed(&index.into_dimension()).into_pattern() } else { index }
}

/// The axes in reverse order.
pub(super) fn reversed<D: Dimension>(axes: &D) -> D {
    let mut reversed = axes.clone();
    reversed.slice_mut().reverse();
    reversed
}

/// `count` positions of a patch from position `start` on.
pub(in crate::array) fn sub_patch<D: Dimension>(patch: &Patch<D>, start: &D, count: &D) -> Patch<D> {
    let (mut first, mut step) = (patch.start().clone(), start.clone());
    for axis in 0..first.ndim() {
        step[axis] = patch.step(axis) as usize;
        // Two's complement: steps are signed.
        first[axis] = first[axis].wrapping_add(start[axis].wrapping_mul(step[axis]));
    }
    Patch::new(first, count.clone(), step)
}

impl<T, D, S: Dimension> fmt::Debug for PatchRef<'_, T, D, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let transposed = if self.transposed { ", transposed" } else { "" };
        write!(f, "PatchRef({}, {:?}{transposed})", self.array.name, self.selection)
    }
}

impl<T, D, S: Dimension> fmt::Debug for PatchMut<'_, T, D, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PatchMut({}, {:?})", self.array.name, self.selection)
    }
}

impl<T, D, S: Dimension> fmt::Debug for Operand<'_, T, D, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Operand({}, {:?}, {})", self.array.name, self.selection, self.transposed)
    }
}

#[cfg(test)]
mod tests {
    use ndarray::Dim;

    use super::*;

    #[test]
    fn a_part_of_a_patch_follows_its_steps() {
        let patch = Patch::new(Dim([9, 1]), Dim([4, 3]), Dim([-2_isize as usize, 3]));
        let part = sub_patch(&patch, &Dim([1, 1]), &Dim([3, 2]));
        assert_eq!(part, Patch::new(Dim([7, 4]), Dim([3, 2]), Dim([-2_isize as usize, 3])));
    }
}
