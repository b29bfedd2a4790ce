//! What is multiplied.

use std::ops::Range;

use ndarray::{ArrayView2, s};

use crate::{element::Element, error::Result};

/// A matrix that is read block by block. An element is read once each time it is packed.
pub trait Factor<T> {
    /// Rows and columns.
    fn shape(&self) -> [usize; 2];

    /// Elements of the largest block to ask for, and of the memory for it. `None` if blocks are not copied.
    fn piece(&self) -> Option<usize>;

    /// A block, by its rows and columns: as it is, or copied into `memory`.
    ///
    /// # Errors
    /// What the copy may return.
    fn block<'m>(&'m self, block: [Range<usize>; 2], memory: &'m mut [T]) -> Result<ArrayView2<'m, T>>;
}

impl<T: Element> Factor<T> for ArrayView2<'_, T> {
    fn shape(&self) -> [usize; 2] {
        self.dim().into()
    }

    fn piece(&self) -> Option<usize> {
        None
    }

    fn block<'m>(&'m self, [rows, columns]: [Range<usize>; 2], _: &'m mut [T]) -> Result<ArrayView2<'m, T>> {
        Ok(self.slice(s![rows, columns]))
    }
}

/// The transposed matrix.
pub(super) struct Transposed<'a, T>(pub(super) &'a dyn Factor<T>);

impl<T> Factor<T> for Transposed<'_, T> {
    fn shape(&self) -> [usize; 2] {
        let [rows, columns] = self.0.shape();
        [columns, rows]
    }

    fn piece(&self) -> Option<usize> {
        self.0.piece()
    }

    fn block<'m>(&'m self, [rows, columns]: [Range<usize>; 2], memory: &'m mut [T]) -> Result<ArrayView2<'m, T>> {
        Ok(self.0.block([columns, rows], memory)?.reversed_axes())
    }
}
