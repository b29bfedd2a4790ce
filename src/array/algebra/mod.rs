//! Algebra on whole arrays and on patches.
//!
//! | file | contents |
//! |---|---|
//! | `elementwise` | fill, scale, map, αx + βy, products |
//! | `parallel` | the same by several threads |
//! | `patch`, `patch_mut`, `operand` | patches as operands and results |
//! | `copy`, `transpose`, `reshape` | copies of any distribution |
//! | `reduce`, `select`, `sum_axis` | sums, norms, products, extremes |
//! | `matvec` | products of a matrix and a vector |
//! | `diagonal`, `values` | diagonals; scaling of rows and columns |
//! | `symmetrize` | symmetric and antisymmetric parts |
//! | `show` | arrays as text |
//! | `walk` | a rank's share of a patch |
//! | `unsynced` | the two syncs of an operation, and operations that share one |
//!
//! # Guarantees
//!
//! Every operation is collective over the group of its array. It starts with a sync: what any member issued before is complete, on all
//! arrays. It ends with a sync: all see the result, and no member still reads operands. ([`Group::unsynced`](crate::Group::unsynced)
//! leaves out those that nobody needs.) Both syncs compare the call, its arrays and its
//! patches (`sync::agreement`), but no values: each member applies its own number or closure to the elements that it owns.
//!
//! Arrays that are used together must be spread over the same ranks in the same order. With the same distribution, each rank works only
//! on its own parts. Otherwise the owner of the result fetches.
//!
//! # Assumptions
//!
//! No epoch is open, because the handles are borrowed. If other ranks write meanwhile, the result is unspecified, but no access is
//! undefined: all go through [`Part`](crate::memory::part::Part) or private buffers of [`BUFFER`] bytes.
//!
//! # Threads
//!
//! With the feature `rayon` a rank of several cores divides its part among the threads of its pool: `fill`, `scale`, sums of arrays,
//! copies of one distribution, `dot`, sums and norms of whole arrays. The pieces have fixed bounds, with and without the feature, so that
//! results have the same bits for any number of threads.
//!
//! # Virtual time
//!
//! Each member declares the bytes that it reads and writes ([`GlobalArray::streamed`]), but no arithmetic, which is faster than memory.
//! What a closure computes is not known.

// The order of the methods in the documentation.
mod patch;
mod patch_mut;

mod operand;

mod elementwise;
#[cfg(feature = "rayon")]
mod parallel;

mod copy;
mod reshape;
mod transpose;

mod symmetrize;

mod matvec;

mod diagonal;

mod reduce;
mod select;
mod sum_axis;

mod show;

mod walk;

mod unsynced;
mod values;

use ndarray::Dimension;

use super::GlobalArray;
use crate::{
    element::Element,
    error::{Error, Result},
    index::Patch,
    sync::fingerprint,
};
pub(crate) use operand::{Operand, reversed};
pub use patch::{IntoOperand, PatchRef};
pub use patch_mut::PatchMut;
pub use reduce::VectorOrMatrix;
pub use show::Summary;
pub use symmetrize::Halve;
pub(crate) use unsynced::Elements;
pub use values::{IntoValues, Values};

/// Bytes of a private buffer: with a second operand and a result still within a first-level cache of 48 KiB.
const BUFFER: usize = 16 << 10;

/// Elements of a private buffer.
const fn buffer_elements<T>() -> usize {
    let bytes = if size_of::<T>() == 0 { 1 } else { size_of::<T>() };
    if bytes > BUFFER { 1 } else { BUFFER / bytes }
}

impl<T: Element, D: Dimension> GlobalArray<T, D> {
    /// This rank has read from memory, or written to it, so many elements.
    fn streamed<U>(&self, elements: usize) {
        self.group.work(0.0, (elements * size_of::<U>()) as f64);
    }

    /// Another array that takes part: sound, and over the same ranks in the same order.
    pub(crate) fn check_members<U: Element, E: Dimension>(
        &self,
        operation: &'static str,
        other: &GlobalArray<U, E>,
    ) -> Result<()> {
        other.check_sound(operation)?;
        if self.group.is_like(&other.group) {
            return Ok(());
        }
        Err(Error::Mismatch {
            operation: operation.into(),
            what: format!(
                "array \"{}\" is spread over {} ranks, array \"{}\" over {} ranks: they must be the same ranks of one job in the same order",
                self.name,
                self.group.size(),
                other.name,
                other.group.size()
            ),
        })
    }

    /// Whether this rank's part is its elements and nothing else: no ghost cells.
    fn is_dense(&self) -> bool {
        self.distribution.ghosts().is_none()
    }

    pub(super) fn whole(&self) -> Patch<D> {
        Patch::whole(self.distribution.extents())
    }
}

impl<T: Element, D: Dimension, S: Dimension> Operand<'_, T, D, S> {
    /// Another operand that takes part: of the same shape, and over the same ranks.
    fn check_operand<U: Element, R: Dimension>(&self, operation: &'static str, other: &Operand<'_, U, D, R>) -> Result<()> {
        self.array.check_members(operation, other.array)?;
        let (shape, other_shape) = (self.shape(), other.shape());
        if shape == other_shape {
            return Ok(());
        }
        let (name, shape, other_shape) = (&self.array.name, shape.slice(), other_shape.slice());
        let what =
            format!("array \"{name}\" takes part with shape {shape:?} but array \"{}\" with {other_shape:?}", other.array.name);
        Err(Error::Mismatch { operation: operation.into(), what })
    }
}

/// A patch as a part of a fingerprint.
fn patch_fingerprint<D: Dimension>(patch: &Patch<D>) -> u64 {
    let axis = |hash, axis: usize| {
        let (start, count) = (patch.start().slice()[axis], patch.count().slice()[axis]);
        fingerprint(&[hash, start as u64, count as u64, patch.step(axis) as u64])
    };
    (0..patch.ndim()).fold(0, axis)
}
