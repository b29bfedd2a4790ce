//! Transposition of matrices, whole and by patches.
//!
//! As in [`copy`](super::copy) the owner of the destination fetches: for each block of its own, the block of the source that has
//! rows and columns exchanged, straight from part to part by the transposing kernel where the source's owner is mapped; else in
//! square tiles through a private buffer.

use ndarray::{Dim, Ix2};

use super::{check_shapes, copy::position, patch_fingerprint, walk::sub_patch};
use crate::{
    array::GlobalArray,
    distribution::Piece,
    element::Element,
    error::{Error, Result},
    index::{IntoPatch, Patch},
};

/// Elements along an edge of a tile that travels at once where the source is not mapped.
const TILE: usize = 256;

impl<T: Element> GlobalArray<T, Ix2> {
    /// `self = sourceᵀ`. Collective; any distributions.
    ///
    /// # Errors
    /// Extents that are not exchanged; different groups; as [`fill`](Self::fill).
    ///
    /// # Examples
    /// ```
    /// use global_arrays::prelude::*;
    /// # fn main() -> Result<(), Error> {
    /// Launch::new().ranks(2).network("threads").run(|job| {
    ///     let mut a = GlobalArray::<i64, Ix2>::builder(job, [2, 5]).create()?;
    ///     a.map_indexed(|(i, j), _| (10 * i + j) as i64)?;
    ///     let mut t = GlobalArray::<i64, Ix2>::builder(job, [5, 2]).create()?;
    ///     t.transpose_from(&a)?;
    ///     assert_eq!(t.load([4, 1])?, 14);
    ///     job.sync()
    /// })
    /// # }
    /// ```
    ///
    /// # Source
    /// GA: `GA_Transpose`.
    pub fn transpose_from(&mut self, source: &Self) -> Result<()> {
        const OPERATION: &str = "transpose_from";
        self.check_members(OPERATION, source)?;
        let (rows, columns) = (source.shape()[0], source.shape()[1]);
        if self.shape() != [columns, rows] {
            return Err(Error::Mismatch {
                operation: OPERATION,
                what: format!(
                    "array \"{}\" has extents {:?}, which is not the transpose of array \"{}\" with {:?}",
                    self.name,
                    self.shape(),
                    source.name,
                    source.shape()
                ),
            });
        }
        self.enter(OPERATION, &[source.id])?;
        let copied = self.fetch_transposed(&self.whole(), source, &source.whole());
        self.leave(OPERATION, copied)
    }

    /// Copies the transpose of a patch of another matrix into a patch. Collective.
    ///
    /// # Errors
    /// A patch outside its array; shapes that are not exchanged; different groups; as [`fill`](Self::fill).
    ///
    /// # Source
    /// GA: `NGA_Copy_patch` with `trans = 'T'`.
    pub fn copy_patch_transposed(
        &mut self,
        patch: impl IntoPatch<Ix2>,
        source: &Self,
        source_patch: impl IntoPatch<Ix2>,
    ) -> Result<()> {
        const OPERATION: &str = "copy_patch_transposed";
        self.check_members(OPERATION, source)?;
        let (patch, source_patch) = (self.resolve(OPERATION, patch)?, source.resolve(OPERATION, source_patch)?);
        let (rows, columns) = (patch.count()[0], patch.count()[1]);
        check_shapes(OPERATION, (&format!("{}\" transposed \"", self.name), &[columns, rows]), (&source.name, &source_patch))?;
        self.enter(OPERATION, &[source.id, patch_fingerprint(&patch), patch_fingerprint(&source_patch)])?;
        let copied = self.fetch_transposed(&patch, source, &source_patch);
        self.leave(OPERATION, copied)
    }

    fn fetch_transposed(&self, patch: &Patch<Ix2>, source: &Self, source_patch: &Patch<Ix2>) -> Result<()> {
        if !source.group.inner.direct {
            return self.fetch_transposed_tiles(patch, source, source_patch);
        }
        let own_part = self.own_part();
        for own in self.own_pieces(patch) {
            let strides = exchanged(&own.strides);
            let wanted = sub_patch(source_patch, &exchanged(&own.start), &exchanged(&own.count));
            for from in source.distribution.pieces(&wanted) {
                let part = source.part(from.member).expect("a mapped group");
                let at = position(&own, &exchanged(&from.start));
                own_part.copy_block((at, &strides), &part, (from.offset, &from.strides), &from.count);
            }
        }
        Ok(())
    }

    fn fetch_transposed_tiles(&self, patch: &Patch<Ix2>, source: &Self, source_patch: &Patch<Ix2>) -> Result<()> {
        let mut buffer = vec![T::zeroed(); (TILE * TILE).min(patch.len())];
        self.own_boxes(
            patch,
            |_| Dim([TILE, TILE]),
            |own: &Piece<Ix2>| {
                let count = exchanged(&own.count);
                let wanted = sub_patch(source_patch, &exchanged(&own.start), &count);
                source.get_into(&wanted, self.box_view(&count, &mut buffer))?;
                self.write_box(own, &self.box_view(&count, &mut buffer).view().reversed_axes());
                Ok(())
            },
        )
    }
}

/// Rows for columns.
fn exchanged(pair: &Ix2) -> Ix2 {
    Dim([pair[1], pair[0]])
}
