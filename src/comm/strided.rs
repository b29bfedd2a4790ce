//! Strided transfers as pipelines of contiguous ones.

use ndarray::Dimension;

use super::engine::{Engine, RequestId};
use crate::{
    element::Element,
    error::Result,
    index::Loops,
    memory::buffer::{Source, Target},
};

/// Adds the gets of a strided block to a request; `at` is the byte offset of its first element in the segment of `rank`.
///
/// The buffer must live until the request is complete: whoever calls finishes the request inside the buffer's life.
pub(crate) fn get_strided<T: Element, D: Dimension>(
    engine: &Engine,
    request: RequestId,
    rank: usize,
    at: usize,
    strides: &D,
    to: &Target<'_, T, D>,
) -> Result<()> {
    let loops = Loops::new(to.counts().slice(), bytemuck::cast_slice(strides.slice()), to.strides(), size_of::<T>());
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
    each_run(&loops, |remote, local, len| {
        let from = from.first().cast::<u8>().wrapping_offset(local);
        // SAFETY: as in `get_strided`.
        unsafe { engine.put(request, rank, at.wrapping_add_signed(remote), from, len) }
    })
}

/// Visits the runs by their offsets there and here and their length, all in bytes; after an error no more of them.
#[inline]
fn each_run(loops: &Loops, mut issue: impl FnMut(isize, isize, usize) -> Result<()>) -> Result<()> {
    let mut issued = Ok(());
    loops.for_each_run(|remote, local| {
        if issued.is_ok() {
            issued = issue(remote, local, loops.run());
        }
    });
    issued
}
