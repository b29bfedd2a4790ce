//! Strided transfers: as pipelines of contiguous ones, or as blocks where the network takes them.
//!
//! A network that announces blocks gathers short runs better than one transfer for each could go. A long run travels on its own as
//! well as in a block, and need not be gathered.

use ndarray::Dimension;

use super::{
    BLOCK_LEVELS, Remote, Scale, Token,
    engine::{Engine, RequestId},
    transfers::Direction,
};
use crate::{
    element::Element,
    error::Result,
    index::Loops,
    memory::buffer::{Source, Target},
};

/// A block whose runs are shorter goes as one, in bytes. What a run costs in a block is its copy, on its own a place in the window
/// and a message; a copy of this many bytes takes about as long as a message takes to be begun.
const BLOCK_RUN: usize = 8 << 10;

/// Adds the gets of a strided block to a request; `at` is the byte offset of its first element in the segment of `rank`.
///
/// The buffer must live until the request is complete: the caller completes the request within the buffer's life.
pub(crate) fn get_strided<T: Element, D: Dimension>(
    engine: &Engine,
    request: RequestId,
    rank: usize,
    at: usize,
    strides: &D,
    to: &Target<'_, T, D>,
) -> Result<()> {
    let loops = Loops::new(to.counts().slice(), bytemuck::cast_slice(strides.slice()), to.strides(), size_of::<T>());
    if goes_as_block(engine, &loops) {
        // SAFETY: all runs lie inside the buffer, which the caller keeps until completion and whose elements are apart; the block
        // lies inside a live array.
        return unsafe { engine.get_block(request, rank, at, &loops, to.first().cast()) };
    }
    each_run(&loops, |remote, local, len| {
        let to = to.first().cast::<u8>().wrapping_offset(local);
        // SAFETY: the run lies inside the buffer, which the caller keeps until completion; the block lies inside a live array.
        unsafe { engine.get(request, rank, at.wrapping_add_signed(remote), to, len) }
    })
}

/// Adds the puts of a strided block to a request; as [`get_strided`].
pub(crate) fn put_strided<T: Element, D: Dimension>(
    engine: &Engine,
    request: RequestId,
    rank: usize,
    at: usize,
    strides: &D,
    from: &Source<'_, T, D>,
) -> Result<()> {
    let loops = Loops::new(from.counts().slice(), bytemuck::cast_slice(strides.slice()), from.strides(), size_of::<T>());
    if goes_as_block(engine, &loops) {
        // SAFETY: as in `get_strided`; elements of an array are apart.
        return unsafe { engine.put_block(request, rank, at, &loops, from.first().cast()) };
    }
    each_run(&loops, |remote, local, len| {
        let from = from.first().cast::<u8>().wrapping_offset(local);
        // SAFETY: as in `get_strided`.
        unsafe { engine.put(request, rank, at.wrapping_add_signed(remote), from, len) }
    })
}

/// Whether a block is one transfer.
fn goes_as_block(engine: &Engine, loops: &Loops) -> bool {
    let takes_blocks = engine.conduit().capabilities().native.blocks && loops.levels().len() <= BLOCK_LEVELS;
    loops.run() < BLOCK_RUN && takes_blocks && loops.runs() > 1
}

/// Visits the runs by their offsets there and here and their length, all in bytes; after an error no more of them.
#[inline]
pub(super) fn each_run(loops: &Loops, mut issue: impl FnMut(isize, isize, usize) -> Result<()>) -> Result<()> {
    let mut issued = Ok(());
    loops.for_each_run(|remote, local| {
        if issued.is_ok() {
            issued = issue(remote, local, loops.run());
        }
    });
    issued
}

impl Engine {
    /// Adds the put of a strided block to a request, one transfer of the window; the conduit announces blocks.
    ///
    /// # Safety
    /// As [`Conduit::put_block`](super::Conduit::put_block), until the request is complete.
    pub(crate) unsafe fn put_block(
        &self,
        request: RequestId,
        rank: usize,
        offset: usize,
        loops: &Loops,
        local: *const u8,
    ) -> Result<()> {
        self.admit(request, rank, Direction::Put)?;
        // SAFETY: the caller's promise.
        unsafe { self.conduit.put_block(Remote { rank, offset }, loops, local, Token(request.0)) };
        Ok(())
    }

    /// Adds the get of a strided block; as [`put_block`](Self::put_block).
    ///
    /// # Safety
    /// As [`Conduit::get_block`](super::Conduit::get_block), until the request is complete.
    pub(crate) unsafe fn get_block(
        &self,
        request: RequestId,
        rank: usize,
        offset: usize,
        loops: &Loops,
        local: *mut u8,
    ) -> Result<()> {
        self.admit(request, rank, Direction::Get)?;
        // SAFETY: the caller's promise.
        unsafe { self.conduit.get_block(Remote { rank, offset }, loops, local, Token(request.0)) };
        Ok(())
    }

    /// Adds an accumulate to a request, one transfer of the window, which dirties its target and keeps its order as a put does; the
    /// conduit announces accumulates.
    ///
    /// # Safety
    /// As [`Conduit::accumulate_block`](super::Conduit::accumulate_block), until the request is complete.
    #[allow(clippy::too_many_arguments, reason = "a block of another rank's memory and what to do with it")]
    pub(crate) unsafe fn accumulate_block(
        &self,
        request: RequestId,
        rank: usize,
        offset: usize,
        loops: &Loops,
        local: *const u8,
        scale: &Scale,
        lock: usize,
    ) -> Result<()> {
        self.admit(request, rank, Direction::Put)?;
        // SAFETY: the caller's promise.
        unsafe { self.conduit.accumulate_block(Remote { rank, offset }, loops, local, scale, lock, Token(request.0)) };
        Ok(())
    }
}
