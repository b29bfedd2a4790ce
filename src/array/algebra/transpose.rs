//! Transposition. From a mapped owner the transposing kernel copies from part to part. Otherwise square tiles go through a private
//! buffer.

use ndarray::Dimension;

use super::{Operand, copy::position, operand::reversed};
use crate::{element::Element, error::Result};

/// Elements along an edge of a tile that travels at once where the source is not mapped.
const TILE: usize = 256;

impl<T: Element, D: Dimension, S: Dimension> Operand<'_, T, D, S> {
    /// Writes what this rank owns, from a transposed operand of the same shape.
    pub(super) fn fetch_transposed<R: Dimension>(&self, source: &Operand<'_, T, D, R>) -> Result<()> {
        if !source.is_copied_by_blocks_to(self.array) {
            return self.fetch_transposed_tiles(source);
        }
        let own_part = self.array.own_part();
        for own in self.own_pieces() {
            let strides = reversed(&own.strides);
            source.pieces_as_it_lies(&reversed(&own.start), &reversed(&own.count), |from| {
                let part = source.array.part(from.member).expect("a mapped group");
                let at = position(&own, &reversed(&from.start));
                own_part.copy_block((at, &strides), &part, (from.offset, &from.strides), &from.count);
            });
        }
        Ok(())
    }

    fn fetch_transposed_tiles<R: Dimension>(&self, source: &Operand<'_, T, D, R>) -> Result<()> {
        let mut buffer = vec![T::zeroed(); (TILE * TILE).min(self.selection.patch.len())];
        let elements = self.own_boxes(tile, |own| {
            // The buffer lies as the source does.
            let shape = reversed(&own.count);
            source.read(&own.start, &own.count, self.box_view(&shape, &mut buffer).reversed_axes())?;
            self.write_box(own, &self.box_view(&shape, &mut buffer).view().reversed_axes());
            Ok(())
        })?;
        self.array.streamed::<T>(2 * elements);
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
