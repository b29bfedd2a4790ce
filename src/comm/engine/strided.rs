//! Strided transfers: as pipelines of contiguous ones, or as blocks where the network takes them.

use std::borrow::Cow;

use ndarray::Dimension;

use super::{Call, Engine, Label, requests::Direction};
use crate::{
    comm::{BLOCK_LEVELS, Operation, Remote, Strided},
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
    call: &Call,
    rank: usize,
    at: usize,
    strides: &D,
    to: &Target<'_, T, D>,
) -> Result<()> {
    let (counts, there) = (to.counts().slice(), bytemuck::cast_slice(strides.slice()));
    if let Some(len) = Loops::one_run(counts, there, to.strides(), size_of::<T>()) {
        // SAFETY: inside the buffer, which the caller keeps until completion; the block lies inside a live array.
        return unsafe { engine.get(call, rank, at, to.first().cast(), len) };
    }
    let loops = Loops::new(counts, there, to.strides(), size_of::<T>());
    if goes_as_block(engine, &loops) {
        let block = Strided { loops: &loops, local: to.first().cast() };
        // SAFETY: all runs lie inside the buffer, which the caller keeps until completion and whose elements are apart; the block
        // lies inside a live array.
        return unsafe { engine.issue(call, Direction::Get, &Operation::GetBlock { from: Remote { rank, offset: at }, block }) };
    }
    each_run(&loops, |remote, local, len| {
        let to = to.first().cast::<u8>().wrapping_offset(local);
        // SAFETY: the run lies inside the buffer, which the caller keeps until completion; the block lies inside a live array.
        unsafe { engine.get(call, rank, at.wrapping_add_signed(remote), to, len) }
    })
}

/// Adds the puts of a strided block to a request; as [`get_strided`].
pub(crate) fn put_strided<T: Element, D: Dimension>(
    engine: &Engine,
    call: &Call,
    rank: usize,
    at: usize,
    strides: &D,
    from: &Source<'_, T, D>,
) -> Result<()> {
    let (counts, there) = (from.counts().slice(), bytemuck::cast_slice(strides.slice()));
    if let Some(len) = Loops::one_run(counts, there, from.strides(), size_of::<T>()) {
        // SAFETY: as in `get_strided`.
        return unsafe { engine.put(call, rank, at, from.first().cast(), len) };
    }
    let loops = Loops::new(counts, there, from.strides(), size_of::<T>());
    if goes_as_block(engine, &loops) {
        let block = Strided { loops: &loops, local: from.first().cast_mut().cast() };
        // SAFETY: as in `get_strided`; elements of an array are apart.
        return unsafe { engine.issue(call, Direction::Put, &Operation::PutBlock { to: Remote { rank, offset: at }, block }) };
    }
    each_run(&loops, |remote, local, len| {
        let from = from.first().cast::<u8>().wrapping_offset(local);
        // SAFETY: as in `get_strided`.
        unsafe { engine.put(call, rank, at.wrapping_add_signed(remote), from, len) }
    })
}

/// Puts a strided block, then raises the word at byte `word` of the same rank's segment, as [`Engine::raise`] does. On return the buffer
/// may be used again. One operation of a network with signals, for a block that is one run of the rank's memory; otherwise `None`, and
/// nothing was done.
pub(crate) fn put_strided_and_raise<T: Element, D: Dimension>(
    engine: &Engine,
    label: &Label,
    (rank, at): (usize, usize),
    strides: &D,
    from: &Source<'_, T, D>,
    word: usize,
) -> Option<Result<()>> {
    let capabilities = engine.conduit().capabilities();
    if !capabilities.native.signals || size_of::<T>() * from.len() > capabilities.longest_transfer {
        return None;
    }
    let bytes = as_one_run(strides, from)?;
    Some(engine.put_and_raise(rank, at, &bytes, word, label))
}

/// The bytes of a buffer in the order of the block that it goes to, if that is one run: the buffer's own, or if they are in another order
/// and few, a copy.
fn as_one_run<'a, T: Element, D: Dimension>(strides: &D, from: &Source<'a, T, D>) -> Option<Cow<'a, [u8]>> {
    let (counts, there) = (from.counts().slice(), bytemuck::cast_slice(strides.slice()));
    if Loops::new(counts, there, there, size_of::<T>()).runs() != 1 {
        return None;
    }
    let (first, len) = (from.first().cast::<u8>(), size_of::<T>() * from.len());
    let loops = Loops::new(counts, there, from.strides(), size_of::<T>());
    if loops.runs() == 1 {
        // SAFETY: one run of elements without padding, which the buffer's life keeps borrowed.
        return Some(Cow::Borrowed(unsafe { std::slice::from_raw_parts(first, len) }));
    }
    (len <= BLOCK_RUN).then(|| {
        let mut packed = vec![0; len];
        loops.for_each_run(|there, here| {
            // SAFETY: a run of the buffer, as above; the runs of the block fill `packed`, because it is one run, from its first byte.
            unsafe {
                let to = packed.as_mut_ptr().wrapping_offset(there);
                first.wrapping_offset(here).copy_to_nonoverlapping(to, loops.run());
            }
        });
        Cow::Owned(packed)
    })
}

/// Returns true if a block is one transfer.
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

#[cfg(test)]
mod tests {
    use ndarray::{Array2, ArrayView2, Ix2, s};

    use super::*;

    /// Elements of 100 columns, each its number.
    fn numbered() -> Array2<u16> {
        Array2::from_shape_fn((100, 100), |(i, j)| (100 * i + j) as u16)
    }

    fn elements(bytes: &[u8]) -> Vec<u16> {
        bytes.chunks_exact(2).map(|pair| u16::from_ne_bytes([pair[0], pair[1]])).collect()
    }

    fn one_run<'a>(strides: [isize; 2], view: &ArrayView2<'a, u16>) -> Option<Cow<'a, [u8]>> {
        let [outer, inner] = strides.map(|stride| stride as usize);
        as_one_run(&Ix2(outer, inner), &Source::whole(view))
    }

    #[test]
    fn what_lies_as_at_its_owner_is_not_copied() {
        let all = numbered();
        let rows = all.slice(s![2..4, ..]);
        let bytes = one_run([100, 1], &rows).expect("two whole rows");
        assert!(matches!(bytes, Cow::Borrowed(_)));
        assert_eq!(elements(&bytes), (200..400).collect::<Vec<u16>>());
        let one = all.slice(s![5..6, 7..8]);
        assert_eq!(elements(&one_run([-3, 17], &one).expect("one element")), [507]);
    }

    #[test]
    fn a_few_bytes_are_packed_in_their_owners_order() {
        let all = numbered();
        let corner = all.slice(s![..2, ..3]);
        assert_eq!(elements(&one_run([3, 1], &corner).expect("a run")), [0, 1, 2, 100, 101, 102]);
        assert_eq!(elements(&one_run([1, 2], &corner).expect("a run")), [0, 100, 1, 101, 2, 102]);
        assert_eq!(elements(&one_run([3, 1], &corner.slice(s![..;-1, ..;-1])).expect("a run")), [102, 101, 100, 2, 1, 0]);
    }

    #[test]
    fn what_is_no_run_or_too_long_to_be_packed_is_refused() {
        let all = numbered();
        let corner = all.slice(s![..2, ..3]);
        for strides in [[4, 1], [3, -1], [6, 2], [1, 3]] {
            assert!(one_run(strides, &corner).is_none(), "{strides:?}");
        }
        assert!(one_run([1, 1], &all.slice(s![..0, ..])).is_none());
        let long = all.slice(s![.., ..99]);
        assert!(size_of_val(&long[[0, 0]]) * long.len() > BLOCK_RUN);
        assert!(one_run([99, 1], &long).is_none());
    }
}
