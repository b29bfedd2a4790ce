//! Transfers with members whose memory is not mapped: a pipeline of contiguous chunks, without packing (ARMCI-Gemini §III-B2).
//!
//! The engine keeps at most a window of chunks in flight.

use ndarray::Dimension;

use super::GlobalArray;
use crate::{
    comm::{
        engine::RequestId,
        strided::{get_strided, put_strided},
    },
    distribution::Piece,
    element::Element,
    error::Result,
    index::Patch,
    job::Kind,
    memory::buffer::{Source, Target},
};

impl<T: Element, D: Dimension> GlobalArray<T, D> {
    /// Adds to a request all gets of a patch from members that are not mapped, then copies from the others, so that the network
    /// works meanwhile. The caller completes the request before the buffer's life ends.
    pub(crate) fn issue_gets(&self, request: RequestId, patch: &Patch<D>, to: &Target<'_, T, D>) -> Result<()> {
        // The patch is checked before its owners are counted.
        let pieces = self.remote_pieces(patch);
        self.count_patch(Kind::Get, patch);
        for (rank, at, piece) in pieces {
            get_strided(self.engine(), request, rank, at, &piece.strides, &to.window(&piece.start, &piece.count))?;
        }
        self.get_mapped(patch, to);
        Ok(())
    }

    /// Adds to a request all puts of a patch to members that are not mapped, then copies to the others; as
    /// [`issue_gets`](Self::issue_gets).
    pub(crate) fn issue_puts(&self, request: RequestId, patch: &Patch<D>, from: &Source<'_, T, D>) -> Result<()> {
        // The patch is checked before its owners are counted.
        let pieces = self.remote_pieces(patch);
        self.count_patch(Kind::Put, patch);
        for (rank, at, piece) in pieces {
            put_strided(self.engine(), request, rank, at, &piece.strides, &from.window(&piece.start, &piece.count))?;
        }
        self.put_mapped(patch, from);
        Ok(())
    }

    /// The pieces of a patch that are not mapped: the owner's rank, the first byte in its segment, the piece.
    fn remote_pieces<'a>(&'a self, patch: &'a Patch<D>) -> impl Iterator<Item = (usize, usize, Piece<D>)> + 'a {
        // The trait that makes patches is open to users: what it promises is checked before memory is named by it.
        assert!(patch.lies_inside(&self.extents), "a patch outside the array");
        self.distribution.pieces(patch).filter(|piece| self.counted_part(piece.member).is_none()).map(|piece| {
            let at = self.offset + piece.offset * size_of::<T>();
            (self.group.inner.rank_of(piece.member), at, piece)
        })
    }
}
