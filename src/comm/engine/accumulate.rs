//! Accumulates into memory that is not mapped, in one of two ways.
//!
//! If the network announces accumulates and a handler knows the element type, a processor of the owner adds ([`super::addition`]).
//! Otherwise this rank locks, gets, adds, puts and unlocks, by turns in three buffers (ARMCI-Gemini §III-B3, Fig. 6):
//!
//! ```text
//!  buffer 0   get ------- add --- put -------          get ...
//!  buffer 1               get ------- add --- put -------
//!  buffer 2                           get ------- add --- put ---
//! ```

use ndarray::Dimension;

use super::{Call, Engine, Label, RequestId, remote_lock::RemoteLock, requests::Direction, strided::each_run};
use crate::{
    comm::{BLOCK_LEVELS, Operation, Remote, Scale, Strided},
    element::{Additive, Element},
    error::Result,
    index::Loops,
    memory::{buffer::Source, kernels},
};

/// Bytes of each of the three buffers.
const BUFFER: usize = 64 << 10;

/// Adds to a request that `scale` times a buffer is added to a strided block at byte `at` of the segment of `rank`, by its owner
/// under the striped lock at `lock`. The buffer must live until the request is complete.
#[allow(clippy::too_many_arguments, reason = "an address in another rank's memory has this many parts")]
pub(crate) fn accumulate_at_owner<T: Additive, D: Dimension>(
    engine: &Engine,
    call: &Call,
    rank: usize,
    lock: usize,
    at: usize,
    strides: &D,
    scale: &Scale,
    from: &Source<'_, T, D>,
) -> Result<()> {
    let loops = Loops::new(from.counts().slice(), bytemuck::cast_slice(strides.slice()), from.strides(), size_of::<T>());
    if loops.runs() == 0 {
        return Ok(());
    }
    let add = |offset, block| Operation::Accumulate { to: Remote { rank, offset }, block, scale, lock };
    let first = from.first().cast_mut().cast::<u8>();
    if loops.levels().len() > BLOCK_LEVELS {
        let run = Loops::new(&[loops.run()], &[1], &[1], 1);
        return each_run(&loops, |remote, local, _| {
            let block = Strided { loops: &run, local: first.wrapping_offset(local) };
            // SAFETY: as below, of one run.
            unsafe { engine.issue(call, Direction::Put, &add(at.wrapping_add_signed(remote), block)) }
        });
    }
    // SAFETY: all runs lie inside the buffer, which the caller keeps until completion; the block lies inside a live array, whose
    // elements, of the type that `scale` was made of, are apart; the job's accumulate lock is a word of every segment.
    unsafe { engine.issue(call, Direction::Put, &add(at, Strided { loops: &loops, local: first })) }
}

/// Adds to a request that `scale` times single elements are added by their owners: rank, byte offset, what. As
/// [`accumulate_at_owner`].
pub(crate) fn accumulate_list_at_owners<'a, T: Additive>(
    engine: &Engine,
    call: &Call,
    lock: usize,
    scale: &Scale,
    mut elements: impl Iterator<Item = (usize, usize, &'a T)>,
) -> Result<()> {
    let element = Loops::new(&[], &[], &[], size_of::<T>());
    elements.try_for_each(|(rank, at, from)| {
        let block = Strided { loops: &element, local: std::ptr::from_ref(from).cast_mut().cast() };
        let add = Operation::Accumulate { to: Remote { rank, offset: at }, block, scale, lock };
        // SAFETY: as in `accumulate_at_owner`, of one element.
        unsafe { engine.issue(call, Direction::Put, &add) }
    })
}

/// Adds `alpha` times a buffer to a strided block at byte `at` of the segment of `rank`, under the lock word at `lock`.
#[allow(clippy::too_many_arguments, reason = "an address in another rank's memory has this many parts")]
pub(crate) fn accumulate_remote<T: Additive, D: Dimension>(
    engine: &Engine,
    rank: usize,
    lock: usize,
    at: usize,
    strides: &D,
    alpha: T::Scale,
    from: &Source<'_, T, D>,
    label: &Label,
) -> Result<()> {
    let chunks = chunks(at, strides, from);
    if chunks.is_empty() {
        return Ok(());
    }
    let held = RemoteLock::take(engine, rank, lock, label)?;
    let added = pipeline(engine, rank, &chunks, alpha, label);
    held.give_back(added)
}

/// What is added to one element: byte `at` of the segment of `rank`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Term<T> {
    pub(crate) rank: usize,
    pub(crate) at: usize,
    pub(crate) value: T,
}

/// Adds `alpha` times a value to single elements, each rank's under one turn at its lock word at `lock`; terms of one element add
/// up in their order.
pub(crate) fn accumulate_list<T: Additive>(
    engine: &Engine,
    lock: usize,
    alpha: T::Scale,
    mut terms: Vec<Term<T>>,
    label: &Label,
) -> Result<()> {
    // A stable sort: the order in which terms of one element come is kept.
    terms.sort_by_key(|term| (term.rank, term.at));
    for terms in terms.chunk_by(|a, b| a.rank == b.rank) {
        let elements = || terms.chunk_by(|a, b| a.at == b.at);
        let mut sums = vec![T::zeroed(); elements().count()];
        let held = RemoteLock::take(engine, terms[0].rank, lock, label)?;
        let added = engine
            .get_list(elements().zip(sums.chunks_mut(1)).map(|(terms, sum)| (terms[0].rank, terms[0].at, sum)), label)
            .and_then(|()| {
                for (sum, terms) in sums.iter_mut().zip(elements()) {
                    *sum = terms.iter().fold(*sum, |sum, term| sum.plus(term.value.scaled(alpha)));
                }
                engine.put_list(elements().zip(&sums).map(|(terms, sum)| (terms[0].rank, terms[0].at, sum)), label)
            });
        held.give_back(added)?;
    }
    Ok(())
}

/// A contiguous run of elements there and here.
struct Chunk<T> {
    at: usize,
    from: *const T,
    len: usize,
}

fn chunks<T: Element, D: Dimension>(at: usize, strides: &D, from: &Source<'_, T, D>) -> Vec<Chunk<T>> {
    let size = size_of::<T>();
    let loops = Loops::new(from.counts().slice(), bytemuck::cast_slice(strides.slice()), from.strides(), size);
    let mut chunks = Vec::new();
    loops.for_each_run(|remote, local| {
        let from = from.first().cast::<u8>().wrapping_offset(local).cast::<T>();
        let (at, len) = (at.wrapping_add_signed(remote), loops.run() / size);
        // One element at least, however large.
        let most = (BUFFER / size).max(1);
        for start in (0..len).step_by(most) {
            let from = from.wrapping_add(start);
            chunks.push(Chunk { at: at + start * size, from, len: (len - start).min(most) });
        }
    });
    chunks
}

fn pipeline<T: Additive>(engine: &Engine, rank: usize, chunks: &[Chunk<T>], alpha: T::Scale, label: &Label) -> Result<()> {
    let longest = chunks.iter().map(|chunk| chunk.len).max().unwrap_or(0);
    let mut buffers: [Vec<T>; 3] = std::array::from_fn(|_| vec![T::zeroed(); longest]);
    let addresses = buffers.each_mut().map(|buffer| buffer.as_mut_ptr());
    // Declared after the buffers, so that it ends before them, also when the arithmetic unwinds.
    let mut flight = InFlight { engine, gets: [None; 3], puts: [None; 3] };
    for step in 0..chunks.len() + 1 {
        if let Some(chunk) = chunks.get(step) {
            let turn = step % 3;
            flight.finish_put(turn)?;
            let (request, call) = engine.enter(label.clone(), false);
            flight.gets[turn] = Some(request);
            // SAFETY: the buffer lives until `flight` has finished the request; this turn's put has left it.
            unsafe { engine.get(&call, rank, chunk.at, addresses[turn].cast(), chunk.len * size_of::<T>()) }?;
        }
        let Some((chunk, turn)) = step.checked_sub(1).map(|step| (&chunks[step], step % 3)) else { continue };
        flight.finish_get(turn)?;
        // SAFETY: inside the buffer, whose get is complete, and inside the caller's memory.
        unsafe { kernels::accumulate(addresses[turn], chunk.from, chunk.len, alpha) };
        let (request, call) = engine.enter(label.clone(), false);
        flight.puts[turn] = Some(request);
        // SAFETY: as for the get.
        unsafe { engine.put(&call, rank, chunk.at, addresses[turn].cast(), chunk.len * size_of::<T>()) }?;
    }
    flight.finish()
}

/// What touches the buffers; nothing does after its end.
struct InFlight<'e> {
    engine: &'e Engine,
    gets: [Option<RequestId>; 3],
    puts: [Option<RequestId>; 3],
}

impl InFlight<'_> {
    fn finish_get(&mut self, turn: usize) -> Result<()> {
        self.gets[turn].take().map_or(Ok(()), |request| self.engine.finish_borrowed(request, Ok(())))
    }

    fn finish_put(&mut self, turn: usize) -> Result<()> {
        self.puts[turn].take().map_or(Ok(()), |request| self.engine.finish_borrowed(request, Ok(())))
    }

    fn finish(&mut self) -> Result<()> {
        let mut result = Ok(());
        for turn in 0..3 {
            // Each of them is waited for, whatever became of the others.
            result = result.and(self.finish_get(turn)).and(self.finish_put(turn));
        }
        result
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        // An error before has been reported; here nothing but the end of all transfers counts.
        let _ = self.finish();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::comm::{
        Event,
        testing::{Call, Fake},
    };

    #[test]
    fn a_list_locks_each_rank_once_and_moves_each_element_once() {
        let calls = Arc::new(Mutex::new((0, 0, 0)));
        let counted = calls.clone();
        let fake = Fake::new(move |call| {
            let (atomics, gets, puts) = &mut *counted.lock().unwrap();
            Some(match call {
                Call::Put(token) => {
                    *puts += 1;
                    Event::LocalDone(token)
                }
                Call::Get(token) => {
                    *gets += 1;
                    Event::LocalDone(token)
                }
                Call::Flush(token) => Event::RemoteDone(token),
                // The lock is free when it is taken, and this rank's when it is given back.
                Call::Atomic { operand, token } => {
                    *atomics += 1;
                    Event::Value(token, u64::from(operand == 0))
                }
                Call::Poll | Call::PutSignal { .. } | Call::Append(..) => return None,
            })
        });
        let engine = fake.engine(None);
        let label = Label::new("a", "scatter_accumulate");
        let terms = |ranks: usize| (0..600).map(|k| Term { rank: k * 7 % ranks, at: 8 * (k * 31 % 100), value: 1.0 }).collect();
        accumulate_list(&engine, 0, 2.0, terms(1), &label).unwrap();
        assert_eq!(*calls.lock().unwrap(), (2, 100, 100));
        accumulate_list(&engine, 0, 2.0, terms(2), &label).unwrap();
        assert_eq!(*calls.lock().unwrap(), (2 + 4, 200, 200));
        accumulate_list::<f64>(&engine, 0, 2.0, Vec::new(), &label).unwrap();
    }
}
