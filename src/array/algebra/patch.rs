//! Patches as operands: `a.at(s![..])` where an operation takes `&a`, `a.at_mut(s![..])` where it changes `a`.
//!
//! Naming a patch never fails. The operation resolves it into an [`Operand`] and reports errors.

use std::fmt;

use ndarray::{ArrayViewMut, Dimension};

use super::patch_fingerprint;
use crate::{
    array::GlobalArray,
    calls::located,
    distribution::Piece,
    element::{Additive, Element, Number},
    error::Result,
    index::{IntoPatch, Patch, PatchError},
    sync::fingerprint,
};

/// A patch of an array, transposed or not, that a whole-array operation reads. [`GlobalArray::at`] and [`GlobalArray::t`] make one,
/// and so does a conversion from a reference to an array; no data move.
#[doc(alias = "Factor")]
pub struct PatchRef<'a, T, D> {
    array: &'a GlobalArray<T, D>,
    patch: Result<Patch<D>, PatchError>,
    transposed: bool,
}

/// A patch of an array that a whole-array operation changes. [`GlobalArray::at_mut`] makes one.
///
/// It has methods of [`GlobalArray`], which are collective too. The rest of the array does not change, but no rank may use it
/// meanwhile. An axis that a single index removes counts as an axis of length 1.
pub struct PatchMut<'a, T, D> {
    array: &'a mut GlobalArray<T, D>,
    patch: Result<Patch<D>, PatchError>,
}

/// An operand whose patch lies inside its array.
pub(in crate::array) struct Operand<'a, T, D> {
    pub(in crate::array) array: &'a GlobalArray<T, D>,
    /// Axes are the array's, not yet reversed.
    pub(in crate::array) patch: Patch<D>,
    pub(in crate::array) transposed: bool,
}

/// # Operands of the algebra
impl<T: Element, D: Dimension> GlobalArray<T, D> {
    /// A patch as an operand of a whole-array operation, in place of `&a`: `b.assign(a.at(s![..2, ..]))`. No data move.
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
    ///     job.sync()
    /// })
    /// # }
    /// ```
    #[doc(alias = "factor")]
    pub fn at(&self, patch: impl IntoPatch<D>) -> PatchRef<'_, T, D> {
        PatchRef { array: self, patch: patch.into_patch(&self.extents).map(|selection| selection.patch), transposed: false }
    }

    /// A patch to be changed by a whole-array operation: `a.at_mut(s![1, ..]).fill(0.0)`. No data move.
    ///
    /// If the patch lies outside the array, the operation returns the error.
    #[doc(alias = "fill_patch")]
    #[doc(alias = "scale_patch")]
    #[doc(alias = "copy_patch")]
    #[doc(alias = "add_patch")]
    #[doc(alias = "matmul_patch")]
    pub fn at_mut(&mut self, patch: impl IntoPatch<D>) -> PatchMut<'_, T, D> {
        let patch = patch.into_patch(&self.extents).map(|selection| selection.patch);
        PatchMut { array: self, patch }
    }

    /// The array with its axes reversed (for a matrix, the transpose) as an operand: `b.assign(a.t())`,
    /// `c.matmul(1.0, a.t(), &b, 0.0)`. No data move.
    ///
    /// # Source
    /// GA: `GA_Transpose`, the `'T'` of `GA_Dgemm` and `NGA_Copy_patch`.
    #[doc(alias = "GA_Transpose")]
    #[doc(alias = "transpose_from")]
    pub fn t(&self) -> PatchRef<'_, T, D> {
        PatchRef::from(self).t()
    }
}

impl<'a, T: Element, D: Dimension> From<&'a GlobalArray<T, D>> for PatchRef<'a, T, D> {
    fn from(array: &'a GlobalArray<T, D>) -> Self {
        PatchRef { array, patch: Ok(array.whole()), transposed: false }
    }
}

impl<'a, T: Element, D: Dimension> PatchRef<'a, T, D> {
    /// Reverses the axes; no data move.
    #[must_use = "a patch does nothing by itself"]
    pub fn t(mut self) -> Self {
        self.transposed = !self.transposed;
        self
    }

    pub(in crate::array) fn resolve(self, operation: &'static str) -> Result<Operand<'a, T, D>> {
        match self.patch {
            // Of one axis there is nothing to reverse.
            Ok(patch) => Ok(Operand { array: self.array, transposed: self.transposed && patch.ndim() > 1, patch }),
            Err(error) => Err(self.array.patch_error(operation, error)),
        }
    }
}

impl<T: Number, D: Dimension> PatchRef<'_, T, D> {
    /// Σ xᵢyᵢ over the patch and another operand of the same shape, without conjugation; see [`GlobalArray::dot`]. Collective.
    ///
    /// # Errors
    /// A patch outside its array; the errors of that method.
    ///
    /// # Source
    /// GA: `NGA_Ddot_patch` and similar calls.
    #[doc(alias = "dot_patch")]
    #[track_caller]
    pub fn dot<'b>(self, other: impl Into<PatchRef<'b, T, D>>) -> Result<T>
    where
        D: 'b,
    {
        located(move || {
            const OPERATION: &str = "dot";
            let (own, mut other) = (self.resolve(OPERATION)?, other.into().resolve(OPERATION)?);
            // xᵀ · y = x · yᵀ: this side is walked as it lies.
            other.transposed ^= own.transposed;
            own.array.dot_on(OPERATION, &own.patch, &other)
        })
    }
}

impl<T: Element + fmt::Display, D: Dimension> PatchRef<'_, T, D> {
    /// Writes the patch as text; see [`GlobalArray::write_to`]. Collective. Axes that a single index drops are shown with length 1.
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
            let operand = self.resolve(OPERATION)?;
            operand.array.write_text(OPERATION, &operand, to)
        })
    }
}

impl<T: Element, D: Dimension> PatchMut<'_, T, D> {
    /// Sets the elements; see [`GlobalArray::fill`]. Collective.
    ///
    /// # Errors
    /// A patch outside the array; the errors of that method.
    ///
    /// # Source
    /// GA: `NGA_Fill_patch`, `NGA_Zero_patch`.
    #[track_caller]
    pub fn fill(&mut self, value: T) -> Result<()> {
        located(move || {
            let patch = self.resolve("fill")?;
            self.array.fill_on(&patch, value)
        })
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
        located(move || {
            let patch = self.resolve("map")?;
            self.array.map_on("map", &patch, f)
        })
    }

    /// Copies an operand with the shape of the patch; see [`GlobalArray::assign`]. Collective.
    ///
    /// # Errors
    /// A patch outside its array; the errors of that method.
    ///
    /// # Source
    /// GA: `NGA_Copy_patch`, without its reshaping.
    #[track_caller]
    pub fn assign<'b>(&mut self, source: impl Into<PatchRef<'b, T, D>>) -> Result<()>
    where
        D: 'b,
    {
        located(move || {
            let patch = self.resolve("assign")?;
            self.array.assign_on(&patch, source.into())
        })
    }

    /// Sets each element to `f(x, y)`; see [`GlobalArray::assign_zip`]. Collective.
    ///
    /// # Errors
    /// A patch outside its array; the errors of that method.
    ///
    /// # Source
    /// GA: `GA_Elem_multiply_patch`, `GA_Elem_divide_patch` and similar calls.
    #[track_caller]
    pub fn assign_zip<'b, A: Element, B: Element>(
        &mut self,
        a: impl Into<PatchRef<'b, A, D>>,
        b: impl Into<PatchRef<'b, B, D>>,
        f: impl FnMut(A, B) -> T,
    ) -> Result<()>
    where
        D: 'b,
    {
        located(move || {
            let patch = self.resolve("assign_zip")?;
            self.array.assign_zip_on("assign_zip", &patch, a.into(), b.into(), f)
        })
    }

    pub(in crate::array) fn resolve(&self, operation: &'static str) -> Result<Patch<D>> {
        self.patch.clone().map_err(|error| self.array.patch_error(operation, error))
    }

    pub(in crate::array) fn array(&mut self) -> &mut GlobalArray<T, D> {
        self.array
    }
}

impl<T: Additive, D: Dimension> PatchMut<'_, T, D> {
    /// Multiplies the elements by `alpha`; see [`GlobalArray::scale`]. Collective.
    ///
    /// # Errors
    /// A patch outside the array; the errors of that method.
    ///
    /// # Source
    /// GA: `NGA_Scale_patch`.
    #[track_caller]
    pub fn scale(&mut self, alpha: T::Scale) -> Result<()> {
        located(move || {
            let patch = self.resolve("scale")?;
            self.array.scale_on(&patch, alpha)
        })
    }

    /// `patch = alpha x + beta y`; see [`GlobalArray::assign_sum`]. Collective.
    ///
    /// # Errors
    /// A patch outside its array; the errors of that method.
    ///
    /// # Source
    /// GA: `NGA_Add_patch`.
    #[track_caller]
    pub fn assign_sum<'b>(
        &mut self,
        alpha: T::Scale,
        x: impl Into<PatchRef<'b, T, D>>,
        beta: T::Scale,
        y: impl Into<PatchRef<'b, T, D>>,
    ) -> Result<()>
    where
        D: 'b,
    {
        located(move || {
            let patch = self.resolve("assign_sum")?;
            self.array.assign_sum_on(&patch, (alpha, x.into()), (beta, y.into()))
        })
    }

    /// `patch += alpha x`; see [`GlobalArray::scaled_add`]. Collective.
    ///
    /// # Errors
    /// A patch outside its array; the errors of that method.
    #[track_caller]
    pub fn scaled_add<'b>(&mut self, alpha: T::Scale, x: impl Into<PatchRef<'b, T, D>>) -> Result<()>
    where
        D: 'b,
    {
        located(move || {
            let patch = self.resolve("scaled_add")?;
            self.array.axpby_on("scaled_add", &patch, alpha, x.into(), T::Scale::ONE)
        })
    }

    /// `patch = alpha x + beta patch`; see [`GlobalArray::axpby`]. Collective.
    ///
    /// # Errors
    /// A patch outside its array; the errors of that method.
    #[track_caller]
    pub fn axpby<'b>(&mut self, alpha: T::Scale, x: impl Into<PatchRef<'b, T, D>>, beta: T::Scale) -> Result<()>
    where
        D: 'b,
    {
        located(move || {
            let patch = self.resolve("axpby")?;
            self.array.axpby_on("axpby", &patch, alpha, x.into(), beta)
        })
    }
}

impl<T: Element, D: Dimension> Operand<'_, T, D> {
    /// Elements along each axis, after the transposition.
    pub(in crate::array) fn shape(&self) -> D {
        if self.transposed { reversed(self.patch.count()) } else { self.patch.count().clone() }
    }

    /// What members must share of it.
    pub(super) fn fingerprint(&self) -> u64 {
        fingerprint(&[self.array.id, patch_fingerprint(&self.patch), u64::from(self.transposed)])
    }

    /// Whether it is all of its array, as it lies.
    pub(super) fn is_whole(&self) -> bool {
        !self.transposed && self.array.is_whole(&self.patch)
    }

    /// Reads `count` positions from position `start` on.
    pub(super) fn read(&self, start: &D, count: &D, to: ArrayViewMut<'_, T, D>) -> Result<()> {
        let patch = self.window(start, count);
        let to = if self.transposed { to.reversed_axes() } else { to };
        self.array.get_into(patch, to)
    }

    /// The elements of the array at the positions of a piece.
    pub(super) fn part(&self, piece: &Piece<D>) -> Patch<D> {
        self.window(&piece.start, &piece.count)
    }

    fn window(&self, start: &D, count: &D) -> Patch<D> {
        if self.transposed {
            sub_patch(&self.patch, &reversed(start), &reversed(count))
        } else {
            sub_patch(&self.patch, start, count)
        }
    }
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

impl<T, D: Dimension> fmt::Debug for PatchRef<'_, T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PatchRef({}, {:?}{})", self.array.name, self.patch, if self.transposed { ", transposed" } else { "" })
    }
}

impl<T, D: Dimension> fmt::Debug for PatchMut<'_, T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PatchMut({}, {:?})", self.array.name, self.patch)
    }
}

impl<T, D: Dimension> fmt::Debug for Operand<'_, T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Operand({}, {:?}, {})", self.array.name, self.patch, self.transposed)
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
