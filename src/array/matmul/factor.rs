//! One factor of a product: a matrix or a patch of it, transposed or not.

use ndarray::{Dim, Ix2};

use crate::{
    array::GlobalArray,
    element::Element,
    error::Result,
    index::{IntoPatch, Patch},
};

/// One factor of a [`matmul`](GlobalArray::matmul): op(A). Made from a reference to an array, by [`GlobalArray::t`] or by
/// [`GlobalArray::factor`].
#[derive(Clone, Debug)]
pub struct Factor<'a, T> {
    pub(super) array: &'a GlobalArray<T, Ix2>,
    pub(super) patch: Patch<Ix2>,
    pub(super) transposed: bool,
}

impl<'a, T: Element> From<&'a GlobalArray<T, Ix2>> for Factor<'a, T> {
    fn from(array: &'a GlobalArray<T, Ix2>) -> Self {
        Factor { array, patch: array.whole(), transposed: false }
    }
}

impl<T: Element> GlobalArray<T, Ix2> {
    /// The transposed matrix as a factor of [`matmul`](Self::matmul); nothing is moved.
    #[must_use]
    pub fn t(&self) -> Factor<'_, T> {
        Factor::from(self).t()
    }

    /// A patch as a factor of [`matmul`](Self::matmul); nothing is moved.
    ///
    /// # Errors
    /// A patch outside the array.
    pub fn factor(&self, patch: impl IntoPatch<Ix2>) -> Result<Factor<'_, T>> {
        let patch = patch.into_patch(&self.extents).map_err(|error| self.patch_error("factor", error))?.patch;
        Ok(Factor { array: self, patch, transposed: false })
    }
}

impl<T: Element> Factor<'_, T> {
    /// Transposes the factor; nothing is moved.
    #[must_use]
    pub fn t(mut self) -> Self {
        self.transposed = !self.transposed;
        self
    }

    /// Rows and columns, after the transposition.
    #[must_use]
    pub fn shape(&self) -> [usize; 2] {
        self.turn([self.patch.count()[0], self.patch.count()[1]])
    }

    /// From axes of the factor to axes of the array, or back.
    pub(super) fn turn<V>(&self, [first, second]: [V; 2]) -> [V; 2] {
        if self.transposed { [second, first] } else { [first, second] }
    }

    /// A part of the patch, by positions in it on the axes of the array.
    pub(super) fn window(&self, start: [usize; 2], count: [usize; 2]) -> Patch<Ix2> {
        let step = [self.patch.step(0), self.patch.step(1)];
        let first = |axis: usize| self.patch.start()[axis].wrapping_add_signed(start[axis] as isize * step[axis]);
        Patch::new(Dim([first(0), first(1)]), Dim(count), Dim(step.map(|step| step as usize)))
    }
}
