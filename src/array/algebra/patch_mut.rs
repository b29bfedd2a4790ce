//! Patches that operations change: `a.at_mut(s![..])` where an operation changes `a`.

use std::{fmt, marker::PhantomData};

use ndarray::Dimension;

use super::{IntoOperand, copy::ASSIGN, operand::Operand};
use crate::{
    array::GlobalArray,
    calls::located,
    element::{Additive, Element, Number},
    error::Result,
    index::{Patch, PatchError, Selection},
    sync::Group,
};

/// A patch of an array that a whole-array operation changes. [`GlobalArray::at_mut`] makes one.
///
/// It has methods of [`GlobalArray`], which are collective too. The rest of the array does not change, but no rank may use it
/// meanwhile. `D` are its axes, `S` those of its array. They differ by the axes that single indices removed.
pub struct PatchMut<'a, T, D, S = D> {
    pub(super) array: &'a mut GlobalArray<T, S>,
    pub(super) selection: Result<Selection<S>, PatchError>,
    pub(super) axes: PhantomData<D>,
}

impl<T: Element, D: Dimension, S: Dimension> PatchMut<'_, T, D, S> {
    /// Sets the elements; see [`GlobalArray::fill`]. Collective.
    ///
    /// # Errors
    /// A patch outside the array; the errors of that method.
    ///
    /// # Source
    /// GA: `NGA_Fill_patch`, `NGA_Zero_patch`.
    #[doc(alias = "NGA_Fill_patch")]
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
    #[doc(alias("GA_Abs_value_patch", "GA_Recip_patch"))]
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
    /// GA: `NGA_Copy_patch`; with another shape: [`assign_reshaped`](Self::assign_reshaped).
    #[doc(alias = "NGA_Copy_patch")]
    #[track_caller]
    pub fn assign(&mut self, source: impl IntoOperand<T, D>) -> Result<()> {
        located(move || self.resolve(ASSIGN)?.assign(&source.into_operand().resolve(ASSIGN)?))
    }

    /// Sets each element to `f(x, y)`; see [`GlobalArray::assign_zip`]. Collective.
    ///
    /// # Errors
    /// A patch outside its array; the errors of that method.
    ///
    /// # Source
    /// GA: `GA_Elem_multiply_patch`, `GA_Elem_divide_patch` and similar calls.
    #[doc(alias("GA_Elem_divide_patch", "GA_Elem_maximum_patch", "GA_Elem_minimum_patch", "GA_Elem_multiply_patch"))]
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
    #[doc(alias = "GA_Median_patch")]
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
    #[doc(alias = "GA_Patch_enum")]
    #[track_caller]
    pub fn map_indexed(&mut self, f: impl FnMut(D::Pattern, T) -> T) -> Result<()> {
        located(move || self.resolve("map_indexed")?.map_indexed(f))
    }

    /// The group of its array.
    pub(crate) fn group(&self) -> &Group {
        self.array.group()
    }

    pub(crate) fn resolve(&self, operation: &'static str) -> Result<Operand<'_, T, D, S>> {
        match &self.selection {
            Ok(selection) => {
                Ok(Operand { array: self.array, selection: selection.clone(), transposed: false, conjugate: None, whole: None })
            }
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
    #[doc(alias = "NGA_Zero_patch")]
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
    #[doc(alias = "GA_Add_constant_patch")]
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
    #[doc(alias = "NGA_Scale_patch")]
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
    #[doc(alias = "NGA_Add_patch")]
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

impl<T, D, S: Dimension> fmt::Debug for PatchMut<'_, T, D, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PatchMut({}, {:?})", self.array.name, self.selection)
    }
}
