//! Transposition. From a mapped owner the transposing kernel copies from part to part. Otherwise square tiles go through a private
//! buffer.

use ndarray::Dimension;

use super::{Operand, copy::position, patch::reversed};
use crate::{array::GlobalArray, element::Element, error::Result, index::Patch};

/// Elements along an edge of a tile that travels at once where the source is not mapped.
const TILE: usize = 256;

impl<T: Element, D: Dimension> GlobalArray<T, D> {
    /// Writes what this rank owns of a patch, from a transposed operand of its shape.
    pub(super) fn fetch_transposed(&self, patch: &Patch<D>, source: &Operand<'_, T, D>) -> Result<()> {
        if !source.array.group.inner.direct {
            return self.fetch_transposed_tiles(patch, source);
        }
        let own_part = self.own_part();
        for own in self.own_pieces(patch) {
            let strides = reversed(&own.strides);
            for from in source.array.distribution.pieces(&source.part(&own)) {
                let part = source.array.part(from.member).expect("a mapped group");
                let at = position(&own, &reversed(&from.start));
                own_part.copy_block((at, &strides), &part, (from.offset, &from.strides), &from.count);
            }
        }
        Ok(())
    }

    fn fetch_transposed_tiles(&self, patch: &Patch<D>, source: &Operand<'_, T, D>) -> Result<()> {
        let mut buffer = vec![T::zeroed(); (TILE * TILE).min(patch.len())];
        let elements = self.own_boxes(patch, tile, |own| {
            // The buffer lies as the source does.
            let shape = reversed(&own.count);
            source.read(&own.start, &own.count, self.box_view(&shape, &mut buffer).reversed_axes())?;
            self.write_box(own, &self.box_view(&shape, &mut buffer).view().reversed_axes());
            Ok(())
        })?;
        self.streamed::<T>(2 * elements);
        Ok(())
    }
}

/// Square along the first and the last axis, which are contiguous on one side each.
fn tile<D: Dimension>(count: &D) -> D {
    let mut edges = count.clone();
    edges.slice_mut().fill(1);
    if let [first, .., last] = edges.slice_mut() {
        (*first, *last) = (TILE, TILE);
    }
    edges
}
