//! Collectives on slices: broadcast and reduce by binomial trees, all-reduce by recursive doubling, gather, all-gather and
//! all-to-all by offering and fetching.
//!
//! A slice is cut into chunks that fit a box; each chunk is a collective of its own, which begins with an agreement. So a box is
//! free when it is written: everyone has left the chunk before.

use super::{
    Group, Op, fingerprint,
    scratch::{EMPTY, FULL, Place, await_word, post, write},
    text_fingerprint, whereabouts,
};
use crate::{
    comm::engine::{Label, Waiter},
    element::Element,
    error::{Error, Result},
    memory::line::WORDS,
};

/// Waits for what a rank sends.
struct InTransfer<'a>(&'a Group, Op, usize);

impl Waiter for InTransfer<'_> {
    fn operation(&self) -> String {
        self.1.name().into()
    }
    fn missing(&self) -> String {
        // Whoever is not awaited here may have gone on.
        whereabouts::places(self.0.inner.engine().conduit(), std::iter::once(self.2))
    }
    fn awaits(&self) -> Option<usize> {
        Some(self.2)
    }
    fn place(&self, rank: usize) -> String {
        whereabouts::place(self.0.inner.engine().conduit(), rank)
    }
    fn hopeless(&self) -> Option<Error> {
        if self.0.inner.is_world() { None } else { self.0.without_a_member(|| self.operation()) }
    }
}

impl Group {
    /// Bytes of scratch memory in each member's segment.
    pub(crate) fn scratch_bytes(members: usize) -> usize {
        super::Scratch::bytes(members)
    }

    /// Copies `data` of member `root` to all members. Collective; on return `data` is complete here.
    ///
    /// # Errors
    /// Members that disagree on root, type or length; a root that is no member; the end of the job.
    ///
    /// # Source
    /// Binomial tree.
    pub fn broadcast<T: Element>(&self, root: usize, data: &mut [T]) -> Result<()> {
        self.check_root("broadcast", root)?;
        let (size, me) = (self.size(), self.rank());
        let relative = (me + size - root) % size;
        self.chunked::<T>(Op::Broadcast, root as u64, data.len(), |post, range| {
            let part = &mut data[range];
            if relative > 0 {
                // The parent is the member without our highest bit.
                let parent = (relative - (1 << relative.ilog2()) + root) % size;
                post.receive(parent, 0, bytemuck::cast_slice_mut(part))?;
            }
            let first = if relative == 0 { 0 } else { relative.ilog2() + 1 };
            for bit in (first..usize::BITS).map(|k| 1_usize << k).take_while(|bit| relative + bit < size) {
                post.send((relative + bit + root) % size, 0, bytemuck::cast_slice(part))?;
            }
            Ok(())
        })
    }

    /// Combines the members' `data` element by element; the result is in `data` of member `root`, the others' is unspecified.
    /// Collective.
    ///
    /// # Errors
    /// Members that disagree on root, type or length; a root that is no member; the end of the job.
    ///
    /// # Source
    /// Binomial tree.
    pub fn reduce<T: Element>(&self, root: usize, data: &mut [T], op: impl Fn(T, T) -> T) -> Result<()> {
        self.check_root("reduce", root)?;
        let (size, me) = (self.size(), self.rank());
        let relative = (me + size - root) % size;
        let mut other = Vec::new();
        self.chunked::<T>(Op::Reduce, root as u64, data.len(), |post, range| {
            let part = &mut data[range];
            for round in 0..usize::BITS as usize {
                let bit = 1_usize << round;
                if relative & bit != 0 {
                    post.send((relative - bit + root) % size, round, bytemuck::cast_slice(part))?;
                    break;
                }
                if bit >= size {
                    break;
                }
                if relative + bit < size {
                    other.resize(part.len(), T::zeroed());
                    post.receive((relative + bit + root) % size, round, bytemuck::cast_slice_mut(&mut other))?;
                    part.iter_mut().zip(&other).for_each(|(a, &b)| *a = op(*a, b));
                }
            }
            Ok(())
        })
    }

    /// Combines the members' `data` element by element, in place, on all members: the same bits on each. Collective.
    ///
    /// # Errors
    /// Members that disagree on type or length; the end of the job.
    ///
    /// # Source
    /// Recursive doubling; members beyond the largest power of two fold in first.
    ///
    /// # Examples
    /// ```
    /// use global_arrays::{Launch, ops};
    /// # fn main() -> Result<(), global_arrays::Error> {
    /// Launch::new().ranks(3).network("threads").run(|job| {
    ///     let mut data = [job.rank() as f64, 1.0];
    ///     job.all_reduce(&mut data, ops::sum)?;
    ///     assert_eq!(data, [3.0, 3.0]);
    ///     Ok::<(), global_arrays::Error>(())
    /// })
    /// # }
    /// ```
    pub fn all_reduce<T: Element>(&self, data: &mut [T], op: impl Fn(T, T) -> T) -> Result<()> {
        let me = self.rank();
        let rounds = self.inner.scratch.rounds();
        let core = 1 << rounds;
        let extra = self.size() - core;
        let mut other = Vec::new();
        self.chunked::<T>(Op::AllReduce, 0, data.len(), |post, range| {
            let part = &mut data[range];
            if me >= core {
                post.send(me - core, rounds, bytemuck::cast_slice(part))?;
                return post.receive(me - core, rounds + 1, bytemuck::cast_slice_mut(part));
            }
            other.resize(part.len(), T::zeroed());
            if me < extra {
                post.receive(me + core, rounds, bytemuck::cast_slice_mut(&mut other))?;
                part.iter_mut().zip(&other).for_each(|(a, &b)| *a = op(*a, b));
            }
            for round in 0..rounds {
                let partner = me ^ 1 << round;
                post.send(partner, round, bytemuck::cast_slice(part))?;
                post.receive(partner, round, bytemuck::cast_slice_mut(&mut other))?;
                // Both sides combine in the order of the members, so both get the same bits.
                let combine = |(a, &b): (&mut T, &T)| *a = if me < partner { op(*a, b) } else { op(b, *a) };
                part.iter_mut().zip(&other).for_each(combine);
            }
            if me < extra {
                post.send(me + core, rounds + 1, bytemuck::cast_slice(part))?;
            }
            Ok(())
        })
    }

    /// [`all_reduce`](Self::all_reduce) of one value.
    ///
    /// # Errors
    /// As there.
    pub fn all_reduce_one<T: Element>(&self, value: T, op: impl Fn(T, T) -> T) -> Result<T> {
        let mut data = [value];
        self.all_reduce(&mut data, op)?;
        Ok(data[0])
    }

    /// Collects the members' equally long slices at `root`, in the group's order; the others get `None`. Collective.
    ///
    /// # Errors
    /// Members that disagree on root, type or length; the end of the job.
    pub fn gather<T: Element>(&self, root: usize, data: &[T]) -> Result<Option<Vec<T>>> {
        self.check_root("gather", root)?;
        let mut all = vec![T::zeroed(); if self.rank() == root { data.len() * self.size() } else { 0 }];
        self.collect(Op::Gather, root as u64, data, &mut all)?;
        Ok((self.rank() == root).then_some(all))
    }

    /// Collects the members' equally long slices on every member, in the group's order. Collective.
    ///
    /// # Errors
    /// Members that disagree on type or length; the end of the job.
    pub fn all_gather<T: Element>(&self, data: &[T]) -> Result<Vec<T>> {
        let mut all = vec![T::zeroed(); data.len() * self.size()];
        self.collect(Op::AllGather, 0, data, &mut all)?;
        Ok(all)
    }

    /// Sends block k of `data` to member k; block k of the result came from member k. All blocks are equally long. Collective.
    ///
    /// # Errors
    /// A length that is no multiple of the number of members; members that disagree on type or length; the end of the job.
    ///
    /// # Source
    /// Pairwise exchange.
    pub fn all_to_all<T: Element>(&self, data: &[T]) -> Result<Vec<T>> {
        let (size, me) = (self.size(), self.rank());
        if !data.len().is_multiple_of(size) {
            return Err(Error::argument(
                "all_to_all",
                format_args!("{} elements cannot be cut in {size} equal blocks", data.len()),
            ));
        }
        let block = data.len() / size;
        let mut all = vec![T::zeroed(); data.len()];
        for step in 0..size {
            let (to, from) = ((me + step) % size, (me + size - step) % size);
            self.chunked::<T>(Op::AllToAll, step as u64, block, |post, range| {
                let at = |member: usize| member * block + range.start..member * block + range.end;
                post.offer(bytemuck::cast_slice(&data[at(to)]));
                post.again()?;
                post.fetch(from, bytemuck::cast_slice_mut(&mut all[at(from)]))
            })?;
        }
        Ok(all)
    }

    /// Every member offers its chunk in its own box; whoever has room for all fetches all.
    fn collect<T: Element>(&self, op: Op, root: u64, data: &[T], all: &mut [T]) -> Result<()> {
        let len = data.len();
        self.chunked::<T>(op, root, len, |post, range| {
            post.offer(bytemuck::cast_slice(&data[range.clone()]));
            post.again()?;
            if !all.is_empty() {
                for member in 0..self.size() {
                    post.fetch(member, bytemuck::cast_slice_mut(&mut all[member * len + range.start..member * len + range.end]))?;
                }
            }
            Ok(())
        })
    }

    fn check_root(&self, operation: &'static str, root: usize) -> Result<()> {
        if root < self.size() {
            return Ok(());
        }
        Err(Error::argument(operation, format_args!("root {root} is no member of a group of {}", self.size())))
    }

    /// Runs `step` on chunks that fit a box, each after an agreement on the call.
    fn chunked<T: Element>(
        &self,
        op: Op,
        root: u64,
        len: usize,
        mut step: impl FnMut(&Post<'_>, std::ops::Range<usize>) -> Result<()>,
    ) -> Result<()> {
        let call = fingerprint(&[root, len as u64, text_fingerprint(std::any::type_name::<T>())]);
        let post = Post { group: self, op, call };
        let _entered = self.enter(op)?;
        let chunk = self.inner.scratch.chunk() / size_of::<T>().max(1);
        if chunk == 0 {
            return Err(Error::argument(
                op.name(),
                format_args!("an element of {} bytes is longer than {} bytes", size_of::<T>(), self.inner.scratch.chunk()),
            ));
        }
        let mut at = 0_usize;
        loop {
            let end = len.min(at.saturating_add(chunk));
            post.again()?;
            // Who leaves here would find its boxes full of what it did not take.
            step(&post, at..end).map_err(|error| self.fail(error))?;
            at = end;
            if at == len {
                return Ok(());
            }
        }
    }
}

/// A member inside a collective: what it sends, receives, offers and fetches by way of boxes.
struct Post<'a> {
    group: &'a Group,
    op: Op,
    call: u64,
}

impl Post<'_> {
    fn label(&self) -> Label {
        Label { array: "(none)".into(), operation: self.op.name() }
    }

    /// Waits for all members once more.
    fn again(&self) -> Result<()> {
        self.group.agree_entered(self.op, self.call, 0, 0, 0).map(|_| ())
    }

    /// Sends bytes into a box of another member.
    fn send(&self, member: usize, index: usize, bytes: &[u8]) -> Result<()> {
        let inner = &*self.group.inner;
        let (line, data) = inner.scratch.letter_box(index);
        let to = Place { member, rank: inner.rank_of(member), offset: line };
        match inner.segments.part::<u8>(member, data, bytes.len()) {
            Some(part) => part.write_slice(0, bytes),
            None => write(inner.engine(), to.rank, data, bytes, &self.label())?,
        }
        post(inner.engine(), &inner.segments, to, [0; WORDS], FULL, || self.label())
    }

    /// Waits for what a member sends into one of this one's boxes.
    fn receive(&self, from: usize, index: usize, bytes: &mut [u8]) -> Result<()> {
        let inner = &*self.group.inner;
        let (line, data) = inner.scratch.letter_box(index);
        let base = inner.engine().conduit().segment();
        let word = &inner.segments.own_line(base, line).word;
        await_word(inner.engine(), word, FULL, &InTransfer(self.group, self.op, inner.rank_of(from)))?;
        inner.segments.own_part::<u8>(base, data, bytes.len()).read_slice(0, bytes);
        // Nobody sends to it again before this member has entered the next agreement.
        word.store(EMPTY);
        Ok(())
    }

    /// Lays bytes into this member's own box, for the others to fetch after the next agreement.
    fn offer(&self, bytes: &[u8]) {
        let inner = &*self.group.inner;
        let (_, data) = inner.scratch.letter_box(inner.scratch.own_box());
        inner.segments.own_part::<u8>(inner.engine().conduit().segment(), data, bytes.len()).write_slice(0, bytes);
    }

    /// Reads what a member offers.
    fn fetch(&self, member: usize, bytes: &mut [u8]) -> Result<()> {
        let inner = &*self.group.inner;
        let (_, data) = inner.scratch.letter_box(inner.scratch.own_box());
        match inner.segments.part::<u8>(member, data, bytes.len()) {
            Some(part) => part.read_slice(0, bytes),
            None => inner.engine().get_slice(inner.rank_of(member), data, bytes, &self.label())?,
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::atomic::Ordering, time::Duration};

    use crate::{Error, Group, Job, Launch};

    #[test]
    fn collectives_go_on_when_the_numbers_of_agreements_wrap() {
        for network in ["threads", "threads:unmapped"] {
            let body = |job: &Job| {
                let group: &Group = job.as_ref();
                (0..3).try_for_each(|_| group.barrier())?;
                // Odd like the number before, so that the sets of lines stay in turn.
                group.inner.sequence.store(u32::MAX - 2, Ordering::Relaxed);
                (0..2).try_for_each(|_| group.barrier())?;
                for round in 0..3_u64 {
                    // The first one has number zero, and its boxes were never used.
                    let late = |a: u64, b: u64| {
                        std::thread::sleep(Duration::from_millis(if group.rank() == 0 { 20 } else { 0 }));
                        a + b
                    };
                    assert_eq!(group.all_reduce_one(group.rank() as u64 + round, late)?, 6 + 4 * round);
                }
                assert_eq!(group.inner.sequence.load(Ordering::Relaxed), 2);
                Ok::<(), Error>(())
            };
            Launch::new().ranks(4).network(network).run(body).unwrap();
        }
    }
}
