//! Copies from array to array and from patch to patch.
//!
//! The owner of the destination fetches. Where the source's owner is mapped, elements go straight from part to part, a block of
//! both distributions at a time; else box by box through a private buffer.

use ndarray::Dimension;

use super::{
    check_shapes, patch_fingerprint,
    walk::{part_of, sub_patch},
};
use crate::{
    array::GlobalArray,
    distribution::Piece,
    element::Element,
    error::Result,
    index::{IntoPatch, Patch},
};

/// Bytes that travel at once where the source is not mapped: long enough that the network, not its latency, sets the pace.
const TRANSFER: usize = 1 << 20;

impl<T: Element, D: Dimension> GlobalArray<T, D> {
    /// Copies an array of the same extents and any distribution. Collective; distributed alike it needs no communication.
    ///
    /// # Errors
    /// Different extents or groups; as [`fill`](Self::fill).
    ///
    /// # Source
    /// GA: `GA_Copy`.
    #[doc(alias = "copy_from")]
    #[doc(alias = "GA_Copy")]
    pub fn assign(&mut self, source: &Self) -> Result<()> {
        const OPERATION: &str = "assign";
        self.check_like(OPERATION, source)?;
        self.enter(OPERATION, &[source.id])?;
        let copied = if self.is_aligned(source) {
            self.own_part().copy_from(&source.own_part());
            Ok(())
        } else {
            let whole = self.whole();
            self.fetch(&whole, source, &whole)
        };
        self.leave(OPERATION, copied)
    }

    /// Copies a patch of another array into a patch of the same shape, steps included. Collective.
    ///
    /// An axis that a single index drops counts as one of length 1.
    ///
    /// # Errors
    /// A patch outside its array; different shapes or groups; as [`fill`](Self::fill).
    ///
    /// # Examples
    /// ```
    /// use global_arrays::prelude::*;
    /// # fn main() -> Result<(), Error> {
    /// Launch::new().ranks(2).network("threads").run(|job| {
    ///     let mut a = GlobalArray::<i64, Ix1>::builder(job, [6]).create()?;
    ///     a.map_indexed(|i, _| i as i64)?;
    ///     let mut b = GlobalArray::<i64, Ix1>::builder(job, [10]).zeros().create()?;
    ///     b.copy_patch(s![2..8], &a, s![..;-1])?;
    ///     assert_eq!(b.get(..)?.to_vec(), [0, 0, 5, 4, 3, 2, 1, 0, 0, 0]);
    ///     job.sync()
    /// })
    /// # }
    /// ```
    ///
    /// # Source
    /// GA: `NGA_Copy_patch`.
    pub fn copy_patch(&mut self, patch: impl IntoPatch<D>, source: &Self, source_patch: impl IntoPatch<D>) -> Result<()> {
        const OPERATION: &str = "copy_patch";
        self.check_members(OPERATION, source)?;
        let (patch, source_patch) = (self.resolve(OPERATION, patch)?, source.resolve(OPERATION, source_patch)?);
        check_shapes(OPERATION, (&self.name, patch.count().slice()), (&source.name, &source_patch))?;
        self.enter(OPERATION, &[source.id, patch_fingerprint(&patch), patch_fingerprint(&source_patch)])?;
        let copied = self.fetch(&patch, source, &source_patch);
        self.leave(OPERATION, copied)
    }

    /// Writes what this rank owns of a patch, from a patch of the same shape of another array.
    fn fetch(&self, patch: &Patch<D>, source: &Self, source_patch: &Patch<D>) -> Result<()> {
        if !source.group.inner.direct {
            return self.fetch_boxes(patch, source, source_patch);
        }
        let own_part = self.own_part();
        for own in self.own_pieces(patch) {
            for from in source.distribution.pieces(&part_of(source_patch, &own)) {
                let part = source.part(from.member).expect("a mapped group");
                let at = position(&own, &from.start);
                own_part.copy_block((at, &own.strides), &part, (from.offset, &from.strides), &from.count);
            }
        }
        Ok(())
    }

    fn fetch_boxes(&self, patch: &Patch<D>, source: &Self, source_patch: &Patch<D>) -> Result<()> {
        let most = TRANSFER / size_of::<T>().max(1);
        let mut buffer = vec![T::zeroed(); most.max(1).min(patch.len())];
        self.own_boxes(patch, self.edges(most), |own| {
            let from = sub_patch(source_patch, &own.start, &own.count);
            source.get_into(&from, self.box_view(&own.count, &mut buffer))?;
            self.write_box(own, &self.box_view(&own.count, &mut buffer).view());
            Ok(())
        })
    }
}

/// Where position `start` of a piece lies in its owner's part.
pub(super) fn position<D: Dimension>(piece: &Piece<D>, start: &D) -> usize {
    // Two's complement: strides are signed.
    (0..start.ndim()).fold(piece.offset, |at, axis| at.wrapping_add(start[axis].wrapping_mul(piece.strides[axis])))
}
