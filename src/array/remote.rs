//! Transfers with members whose memory is not mapped: a pipeline of contiguous chunks, no packing (ARMCI-Gemini §III-B2).
//!
//! The engine keeps at most a window of them in flight.

use ndarray::Dimension;

use super::GlobalArray;
use crate::{
    comm::{
        engine::RequestId,
        strided::{get_strided, put_strided},
    },
    element::Element,
    error::Result,
    index::Patch,
    memory::buffer::{Source, Target},
};

impl<T: Element, D: Dimension> GlobalArray<T, D> {
    /// Starts all gets of a patch from members that are not mapped. The caller finishes the request before the buffer's life ends.
    pub(crate) fn start_gets(&self, operation: &'static str, patch: &Patch<D>, to: &Target<'_, T, D>) -> (RequestId, Result<()>) {
        let request = self.engine().begin(self.label(operation), None);
        let issued = self.distribution.pieces(patch).filter(|piece| self.part(piece.member).is_none()).try_for_each(|piece| {
            let rank = self.group.inner.rank_of(piece.member);
            let at = self.offset + piece.offset * size_of::<T>();
            get_strided(self.engine(), request, rank, at, &piece.strides, &to.window(&piece.start, &piece.count))
        });
        (request, issued)
    }

    /// Starts all puts of a patch to members that are not mapped. The caller finishes the request before the buffer's life ends.
    pub(crate) fn start_puts(
        &self,
        operation: &'static str,
        patch: &Patch<D>,
        from: &Source<'_, T, D>,
    ) -> (RequestId, Result<()>) {
        let request = self.engine().begin(self.label(operation), None);
        let issued = self.distribution.pieces(patch).filter(|piece| self.part(piece.member).is_none()).try_for_each(|piece| {
            let rank = self.group.inner.rank_of(piece.member);
            let at = self.offset + piece.offset * size_of::<T>();
            put_strided(self.engine(), request, rank, at, &piece.strides, &from.window(&piece.start, &piece.count))
        });
        (request, issued)
    }
}
