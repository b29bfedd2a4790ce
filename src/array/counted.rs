//! What counts as an operation, where a job counts them.
//!
//! A call counts once for each owner that it touches, with the bytes of the elements it touches there, however many transfers it
//! takes: a patch in block-cyclic pieces of one owner is one operation, a list that three members own is three. What is made of
//! several patches, a halo for instance, counts by each of them. The same on every path, so that a program's figures do not depend
//! on its network.
//!
//! The shortest paths know nothing of it. While operations are counted they find no memory mapped
//! ([`Segments`](crate::memory::segments::Segments)) and fall through to the longer paths behind them; there each operation is counted and then
//! done, by the processor where memory is mapped all the same.

use std::collections::BTreeMap;

use ndarray::{Dimension, IntoDimension};

use super::GlobalArray;
use crate::{element::Element, index::Patch, job::Kind};

impl<T: Element, D: Dimension> GlobalArray<T, D> {
    /// Counts an operation on a patch that lies inside the array.
    #[cold]
    pub(super) fn count_patch(&self, kind: Kind, patch: &Patch<D>) {
        self.count_owners(kind, || self.distribution.pieces(patch).map(|piece| (piece.member, piece.count.size())));
    }

    /// Counts an operation on a list of elements; what is not in the array does not count.
    #[cold]
    pub(super) fn count_list<I: IntoDimension<Dim = D> + Copy>(&self, kind: Kind, subscripts: &[I]) {
        let inside =
            |index: &D| index.ndim() == self.extents.ndim() && index.slice().iter().zip(self.extents.slice()).all(|(i, n)| i < n);
        self.count_owners(kind, || {
            let indices = subscripts.iter().map(|&subscript| subscript.into_dimension()).filter(inside);
            indices.map(|index| (self.distribution.locate(&index).member, 1))
        });
    }

    /// Counts once for each owner, from owners and numbers of elements.
    fn count_owners<P: Iterator<Item = (usize, usize)>>(&self, kind: Kind, pieces: impl FnOnce() -> P) {
        if self.group.inner.job.counts.is_none() {
            return;
        }
        let mut elements = BTreeMap::new();
        pieces().for_each(|(member, count)| *elements.entry(member).or_insert(0) += count);
        for (member, count) in elements {
            self.group.inner.count(kind, member, count * size_of::<T>());
        }
    }
}
