//! What statistics count as an operation, beside the rule of `Job::stats`.
//!
//! A patch in block-cyclic pieces of one owner is one operation; a list whose elements three members own is three. All paths count alike.

use std::collections::BTreeMap;

use ndarray::{Dimension, IntoDimension};

use super::GlobalArray;
use crate::{element::Element, index::Patch, sync::Kind};

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
