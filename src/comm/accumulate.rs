//! Accumulates into memory that is not mapped: lock, get, add, put through three buffers, unlock (ARMCI-Gemini §III-B3, Fig. 6).
//!
//! ```text
//!  buffer 0   get ------- add --- put -------          get ...
//!  buffer 1               get ------- add --- put -------
//!  buffer 2                           get ------- add --- put ---
//! ```
//!
//! While one chunk is added, the next is on its way here and the one before on its way back.

use std::time::Duration;

use ndarray::Dimension;

use super::{
    AtomicOp,
    engine::{Engine, Label, RequestId, Waiter},
};
use crate::{
    element::Accumulate,
    error::Result,
    index::Loops,
    memory::{
        buffer::Source,
        stripes::{Held, Stripes},
    },
};

/// Bytes of each of the three buffers.
const BUFFER: usize = 64 << 10;

/// How long to let others go before looking at a lock again.
const TURN: Duration = Duration::from_micros(20);

struct LockWaiter<'a>(&'a Label, usize);

impl Waiter for LockWaiter<'_> {
    fn operation(&self) -> String {
        self.0.operation()
    }
    fn missing(&self) -> String {
        format!("the release of the accumulate lock of rank {}", self.1)
    }
}

/// Waits for stripes of a mapped lock.
pub(crate) fn lock_stripes<'a>(engine: &Engine, lock: &Stripes<'a>, mask: u64, label: &Label) -> Result<Held<'a>> {
    let looks = if engine.conduit().capabilities().crowded { 0 } else { 400 };
    for _ in 0..looks {
        if let Some(held) = lock.try_lock(mask) {
            return Ok(held);
        }
        std::hint::spin_loop();
    }
    engine.look_every(TURN, label, || lock.try_lock(mask))
}

/// Adds `alpha` times a buffer to a strided block at byte `at` of the segment of `rank`, under the lock word at `lock`.
#[allow(clippy::too_many_arguments, reason = "an address in another rank's memory has this many parts")]
pub(crate) fn accumulate_remote<T: Accumulate, D: Dimension>(
    engine: &Engine,
    rank: usize,
    lock: usize,
    at: usize,
    strides: &D,
    alpha: T,
    from: &Source<'_, T, D>,
    label: &Label,
) -> Result<()> {
    let chunks = chunks(at, strides, from);
    if chunks.is_empty() {
        return Ok(());
    }
    let holder = engine.rank() as u64 + 1;
    let mut failed = None;
    engine.look_every(TURN, &LockWaiter(label, rank), || {
        match engine.atomic(rank, lock, AtomicOp::CompareSwap, 8, holder, 0, label) {
            Ok(0) => Some(()),
            Ok(_) => None,
            Err(error) => {
                failed = Some(error);
                Some(())
            }
        }
    })?;
    if let Some(error) = failed {
        return Err(error);
    }
    let added = pipeline(engine, rank, &chunks, alpha, label);
    // The sums must stand before the next holder reads them.
    let visible = engine.fence(Some(rank), label);
    engine.atomic(rank, lock, AtomicOp::Swap, 8, 0, 0, label)?;
    added.and(visible)
}

/// A contiguous run of elements there and here.
struct Chunk<T> {
    at: usize,
    from: *const T,
    len: usize,
}

fn chunks<T: Accumulate, D: Dimension>(at: usize, strides: &D, from: &Source<'_, T, D>) -> Vec<Chunk<T>> {
    let size = size_of::<T>();
    let loops = Loops::new(from.counts().slice(), bytemuck::cast_slice(strides.slice()), from.strides(), size);
    let mut chunks = Vec::new();
    loops.for_each_run(|remote, local| {
        let from = from.first().cast::<u8>().wrapping_offset(local).cast::<T>();
        let (at, len) = (at.wrapping_add_signed(remote), loops.run() / size);
        for start in (0..len).step_by(BUFFER / size) {
            let from = from.wrapping_add(start);
            chunks.push(Chunk { at: at + start * size, from, len: (len - start).min(BUFFER / size) });
        }
    });
    chunks
}

fn pipeline<T: Accumulate>(engine: &Engine, rank: usize, chunks: &[Chunk<T>], alpha: T, label: &Label) -> Result<()> {
    let longest = chunks.iter().map(|chunk| chunk.len).max().unwrap_or(0);
    let mut buffers: [Vec<T>; 3] = std::array::from_fn(|_| vec![T::zeroed(); longest]);
    let mut gets: [Option<RequestId>; 3] = [None; 3];
    let mut puts: [Option<RequestId>; 3] = [None; 3];
    let addresses = buffers.each_mut().map(|buffer| buffer.as_mut_ptr());
    let mut result = Ok(());
    let finish = |request: &mut Option<RequestId>, issued: Result<()>| match request.take() {
        Some(request) => engine.finish_borrowed(request, issued),
        None => issued,
    };
    for step in 0..chunks.len() + 1 {
        if let Some(chunk) = chunks.get(step).filter(|_| result.is_ok()) {
            let turn = step % 3;
            result = finish(&mut puts[turn], Ok(()));
            if result.is_ok() {
                let request = engine.begin_unordered(label.clone());
                gets[turn] = Some(request);
                // SAFETY: the buffer lives until all requests are finished below; this turn's put has left it.
                let issued = unsafe { engine.get(request, rank, chunk.at, addresses[turn].cast(), chunk.len * size_of::<T>()) };
                result = issued;
            }
        }
        let Some((chunk, turn)) = step.checked_sub(1).map(|step| (&chunks[step], step % 3)) else { continue };
        if result.is_err() {
            break;
        }
        result = finish(&mut gets[turn], Ok(()));
        if result.is_ok() {
            for k in 0..chunk.len {
                // SAFETY: inside the buffer, whose get is complete, and inside the caller's memory.
                unsafe {
                    let to = addresses[turn].add(k);
                    to.write((*to).plus(alpha.times(*chunk.from.add(k))));
                }
            }
            let request = engine.begin_unordered(label.clone());
            puts[turn] = Some(request);
            // SAFETY: as for the get.
            result = unsafe { engine.put(request, rank, chunk.at, addresses[turn].cast(), chunk.len * size_of::<T>()) };
        }
    }
    // Nothing may touch the buffers after this.
    for request in gets.iter_mut().chain(&mut puts) {
        let done = finish(request, Ok(()));
        result = result.and(done);
    }
    result
}
