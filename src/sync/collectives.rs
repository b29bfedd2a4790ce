//! Collectives on slices. Broadcast and reduce use binomial trees; all-reduce uses recursive doubling. In gather, all-gather and
//! all-to-all, each member writes a chunk into its own box, and others get it. An all-gather of many members that are not all mapped
//! would connect each with all, so short blocks are passed on to the members 1, 2, 4 ... behind, twice as many each time (Bruck).
//!
//! Each chunk of a slice fits a box and starts with an agreement. So a box is free when it is written: all members have left the previous
//! chunk.
//!
//! A broadcast goes from node to node, then inside each. Reductions combine in the order of the members, wherever these run, so the
//! result is always bitwise the same.

use std::ops::Range;

use super::{
    Group, Op, fingerprint,
    group::Entered,
    scratch::{EMPTY, FULL, Place, post},
    text_fingerprint, whereabouts,
};
use crate::{
    calls::located,
    comm::engine::{Label, Waiter},
    element::Element,
    error::{Error, Result},
    memory::line::WORDS,
};

/// With so many members each may well be connected with all others: then one round trip gathers all there is.
const FEW: usize = 16;
/// Bytes of a block up to which connections cost more than passing it on. Longer ones would go through many boxes, one after the other:
/// boxes of large groups are small.
const SHORT: usize = 256;

/// Waits for data that come from a rank, from itself if that is certain.
struct InTransfer<'a> {
    group: &'a Group,
    op: Op,
    from: usize,
    itself: bool,
}

impl Waiter for InTransfer<'_> {
    fn operation(&self) -> String {
        self.op.name().into()
    }
    fn missing(&self) -> String {
        // Whoever is not awaited here may have gone on.
        whereabouts::places(self.group.inner.engine().conduit(), std::iter::once(self.from))
    }
    fn awaits(&self) -> Option<usize> {
        // Where the data went through others the rank may have gone on.
        self.itself.then_some(self.from)
    }
    fn place(&self, rank: usize) -> String {
        whereabouts::place(self.group.inner.engine().conduit(), rank)
    }
    fn hopeless(&self) -> Option<Error> {
        // As in an agreement; where the data went through others the rank may have gone on.
        let awaited = self.awaits().filter(|_| !self.group.inner.is_world());
        self.group.without(awaited.into_iter(), || self.operation())
    }
}

impl Group {
    /// Copies `data` of member `root` to all members. Collective; on return this member's `data` is complete.
    ///
    /// # Errors
    /// Members that disagree on root, type or length; a root that is not a member; the end of the job.
    ///
    /// # Source
    /// Binomial tree among the nodes, and one inside each.
    #[doc(alias("GA_Brdcst", "GA_Pgroup_brdcst"))]
    #[track_caller]
    pub fn broadcast<T: Element>(&self, root: usize, data: &mut [T]) -> Result<()> {
        located(move || {
            self.check_root("broadcast", root)?;
            let nodes = &self.inner.nodes;
            // The data reach a node at its leader, that of the root at the root.
            let (here, first) = (nodes.near(self.size()), nodes.place(root));
            let first_here = first.unwrap_or(0);
            let relative = (nodes.position + here - first_here) % here;
            self.chunked::<T>(Op::Broadcast, root as u64, data.len(), |post, range| {
                let part = &mut data[range];
                // The number of the root's node travels in the word of the box: nobody keeps a table of where members are.
                let word = if self.member() == root {
                    FULL + nodes.number as u32
                } else if relative > 0 {
                    // The parent is the one without our highest bit.
                    let parent = (relative - (1 << relative.ilog2()) + first_here) % here;
                    post.receive_word(nodes.member(parent), true, 0, bytemuck::cast_slice_mut(part))?
                } else {
                    post.receive_word(root, false, 0, bytemuck::cast_slice_mut(part))?
                };
                if relative == 0 {
                    let from_root = (nodes.number + nodes.count - (word - FULL) as usize % nodes.count) % nodes.count;
                    for level in children(from_root, nodes.count) {
                        post.send_word(nodes.ahead(level), 0, word, bytemuck::cast_slice(part))?;
                    }
                }
                for level in children(relative, here) {
                    let child = (relative + (1 << level) + first_here) % here;
                    post.send_word(nodes.member(child), 0, word, bytemuck::cast_slice(part))?;
                }
                Ok(())
            })
        })
    }

    /// Combines the members' `data` element by element into the `data` of member `root`. On the other members, `data` is then
    /// unspecified. Collective.
    ///
    /// # Errors
    /// Members that disagree on root, type or length; a root that is not a member; the end of the job.
    ///
    /// # Source
    /// Binomial tree.
    #[track_caller]
    pub fn reduce<T: Element>(&self, root: usize, data: &mut [T], op: impl Fn(T, T) -> T) -> Result<()> {
        located(move || {
            self.check_root("reduce", root)?;
            let (size, me) = (self.size(), self.member());
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
        })
    }

    /// Combines the members' `data` element by element, in place, on all members. The results are bitwise equal. Collective.
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
    #[doc(alias("GA_Dgop", "GA_Pgroup_dgop"))]
    #[track_caller]
    pub fn all_reduce<T: Element>(&self, data: &mut [T], op: impl Fn(T, T) -> T) -> Result<()> {
        located(move || {
            let me = self.member();
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
        })
    }

    /// [`all_reduce`](Self::all_reduce) of one value. Collective.
    ///
    /// # Errors
    /// The same errors as that method.
    #[track_caller]
    pub fn all_reduce_one<T: Element>(&self, value: T, op: impl Fn(T, T) -> T) -> Result<T> {
        located(move || {
            let mut data = [value];
            self.all_reduce(&mut data, op)?;
            Ok(data[0])
        })
    }

    /// Collects slices of equal length from all members at `root`, in the group's order. The other members get `None`. Collective.
    ///
    /// # Errors
    /// Members that disagree on root, type or length; the end of the job.
    #[track_caller]
    pub fn gather<T: Element>(&self, root: usize, data: &[T]) -> Result<Option<Vec<T>>> {
        located(move || {
            self.check_root("gather", root)?;
            let mut all = vec![T::zeroed(); if self.member() == root { data.len() * self.size() } else { 0 }];
            self.collect(Op::Gather, root as u64, data, &mut all)?;
            Ok((self.member() == root).then_some(all))
        })
    }

    /// Collects slices of equal length from all members on every member, in the group's order. Collective.
    ///
    /// # Errors
    /// Members that disagree on type or length; the end of the job.
    #[track_caller]
    pub fn all_gather<T: Element>(&self, data: &[T]) -> Result<Vec<T>> {
        located(move || {
            let mut all = vec![T::zeroed(); data.len() * self.size()];
            if self.inner.mapped || self.size() <= FEW || size_of_val(data) > SHORT {
                self.collect(Op::AllGather, 0, data, &mut all)?;
            } else {
                self.collect_by_doubling(data, &mut all)?;
            }
            Ok(all)
        })
    }

    /// Sends block k of `data` to member k. Block k of the result comes from member k. All blocks have the same length. Collective.
    ///
    /// # Errors
    /// A length that is not a multiple of the number of members; members that disagree on type or length; the end of the job.
    ///
    /// # Source
    /// Pairwise exchange.
    #[track_caller]
    pub fn all_to_all<T: Element>(&self, data: &[T]) -> Result<Vec<T>> {
        located(move || {
            let (size, me) = (self.size(), self.member());
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
                    post.offer(0, bytemuck::cast_slice(&data[at(to)]));
                    post.again()?;
                    post.fetch(std::iter::once((from, 0, bytemuck::cast_slice_mut(&mut all[at(from)]))))
                })?;
            }
            Ok(all)
        })
    }

    /// Every member offers its chunk in its own box; the members that want all chunks get them.
    fn collect<T: Element>(&self, op: Op, root: u64, data: &[T], all: &mut [T]) -> Result<()> {
        let len = data.len();
        self.chunked::<T>(op, root, len, |post, range| {
            post.offer(0, bytemuck::cast_slice(&data[range.clone()]));
            post.again()?;
            if all.is_empty() {
                return Ok(());
            }
            let parts = all.chunks_exact_mut(len).enumerate();
            post.fetch(parts.map(|(member, part)| (member, 0, bytemuck::cast_slice_mut(&mut part[range.clone()]))))
        })
    }

    /// The blocks of all members, each of which passes on what it has to the members 1, 2, 4 ... behind it, round and round.
    fn collect_by_doubling<T: Element>(&self, data: &[T], all: &mut [T]) -> Result<()> {
        let (size, me, block) = (self.size(), self.member(), size_of_val(data));
        let (post, _entered) = self.begin::<T>(Op::AllGather, 0, data.len())?;
        post.again()?;
        let all: &mut [u8] = bytemuck::cast_slice_mut(all);
        all[me * block..][..block].copy_from_slice(bytemuck::cast_slice(data));
        let chunk = self.inner.scratch.chunk();
        let mut piece = vec![0; chunk.min(size.div_ceil(2) * block)];
        // No round uses the box of the result of a fold: its line says that a piece was taken.
        let taken = self.inner.scratch.rounds() + 1;
        let mut exchange = || {
            for (round, have) in (0..).map(|round| (round, 1 << round)).take_while(|&(_, have)| have < size) {
                let (to, from) = ((me + size - have) % size, (me + have) % size);
                let bytes = have.min(size - have) * block;
                for begin in (0..bytes).step_by(chunk.max(1)) {
                    if begin > 0 {
                        post.receive(to, taken, &mut [])?;
                    }
                    let piece = &mut piece[..chunk.min(bytes - begin)];
                    let mut rest = &mut *piece;
                    for run in around(me * block + begin, rest.len(), all.len()) {
                        let (here, behind) = rest.split_at_mut(run.len());
                        here.copy_from_slice(&all[run]);
                        rest = behind;
                    }
                    post.send(to, round, piece)?;
                    post.receive(from, round, piece)?;
                    if begin + chunk < bytes {
                        post.send(from, taken, &[])?;
                    }
                    let mut rest = &*piece;
                    for run in around(from * block + begin, rest.len(), all.len()) {
                        let (here, behind) = rest.split_at(run.len());
                        all[run].copy_from_slice(here);
                        rest = behind;
                    }
                }
            }
            Ok(())
        };
        exchange().map_err(|error| self.fail(error))
    }

    pub(super) fn check_root(&self, operation: &'static str, root: usize) -> Result<()> {
        if root < self.size() {
            return Ok(());
        }
        Err(Error::argument(operation, format_args!("root {root} is not a member of a group of {}", self.size())))
    }

    /// Enters a collective on slices of `len` elements.
    fn begin<T: Element>(&self, op: Op, root: u64, len: usize) -> Result<(Post<'_>, Entered<'_>)> {
        let call = fingerprint(&[root, len as u64, text_fingerprint(std::any::type_name::<T>())]);
        Ok((Post { group: self, op, call }, self.enter(op)?))
    }

    /// Runs `step` on chunks that fit a box, each after an agreement on the call.
    pub(super) fn chunked<T: Element>(
        &self,
        op: Op,
        root: u64,
        len: usize,
        mut step: impl FnMut(&Post<'_>, Range<usize>) -> Result<()>,
    ) -> Result<()> {
        let (post, _entered) = self.begin::<T>(op, root, len)?;
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
pub(super) struct Post<'a> {
    group: &'a Group,
    op: Op,
    call: u64,
}

impl Post<'_> {
    fn label(&self) -> Label {
        Label::new("(none)", self.op.name())
    }

    /// Waits for all members once more.
    pub(super) fn again(&self) -> Result<()> {
        self.group.agree_entered(self.op, self.call, 0, 0, 0).map(|_| ())
    }

    /// Sends bytes into a box of another member.
    fn send(&self, member: usize, index: usize, bytes: &[u8]) -> Result<()> {
        self.send_word(member, index, FULL, bytes)
    }

    /// The same with a word beside them, [`FULL`] or more.
    fn send_word(&self, member: usize, index: usize, word: u32, bytes: &[u8]) -> Result<()> {
        let inner = &*self.group.inner;
        let (line, data) = inner.scratch.letter_box(index);
        let to = Place { member, rank: inner.rank_of(member), offset: line };
        let Some(part) = inner.segments.part::<u8>(member, data, bytes.len()) else {
            return inner.engine().put_and_set(to.rank, data, bytes, (line, word), &self.label());
        };
        part.write_slice(0, bytes);
        post(inner.engine(), &inner.segments, to, [0; WORDS], word, || self.label())
    }

    /// Waits for what a member sends into one of this one's boxes.
    fn receive(&self, from: usize, index: usize, bytes: &mut [u8]) -> Result<()> {
        self.receive_word(from, true, index, bytes).map(|_| ())
    }

    /// The same for what comes from a member `itself` or by way of others; returns the word beside it.
    fn receive_word(&self, from: usize, itself: bool, index: usize, bytes: &mut [u8]) -> Result<u32> {
        let inner = &*self.group.inner;
        let (line, data) = inner.scratch.letter_box(index);
        let base = inner.engine().conduit().segment();
        let word = &inner.segments.own_line(base, line).word;
        let waiter = InTransfer { group: self.group, op: self.op, from: inner.rank_of(from), itself };
        inner.engine().wait_word(word, &waiter, |value| value != EMPTY)?;
        let beside = word.load();
        inner.segments.own_part::<u8>(base, data, bytes.len()).read_slice(0, bytes);
        // Nobody sends to it again before this member has entered the next agreement, or has said that it took this.
        word.store(EMPTY);
        Ok(beside)
    }

    /// Lays bytes into this member's own box, from a byte of it on, for the others to fetch after the next agreement.
    pub(super) fn offer(&self, at: usize, bytes: &[u8]) {
        let inner = &*self.group.inner;
        let (_, data) = inner.scratch.letter_box(inner.scratch.own_box());
        inner.segments.own_part::<u8>(inner.engine().conduit().segment(), data + at, bytes.len()).write_slice(0, bytes);
    }

    /// Reads what members offer, from a byte of it on. Over the network all gets are in flight at once.
    pub(super) fn fetch<'b>(&self, offers: impl Iterator<Item = (usize, usize, &'b mut [u8])>) -> Result<()> {
        let inner = &*self.group.inner;
        let (_, data) = inner.scratch.letter_box(inner.scratch.own_box());
        let mut far = Vec::new();
        for (member, from, bytes) in offers {
            match inner.segments.part::<u8>(member, data + from, bytes.len()) {
                Some(part) => part.read_slice(0, bytes),
                None => far.push((inner.rank_of(member), data + from, bytes)),
            }
        }
        if far.is_empty() { Ok(()) } else { inner.engine().get_slices(far.into_iter(), &self.label()) }
    }
}

/// `len` bytes from `start` of a circle of `size` bytes: one run, or two.
fn around(start: usize, len: usize, size: usize) -> [Range<usize>; 2] {
    let start = start % size.max(1);
    let end = (start + len).min(size);
    [start..end, 0..len - (end - start)]
}

/// The levels at which number `at` of a binomial tree of `size`, counted from its root, has children.
fn children(at: usize, size: usize) -> impl Iterator<Item = usize> {
    let first = if at == 0 { 0 } else { at.ilog2() as usize + 1 };
    (first..usize::BITS as usize).take_while(move |&level| at + (1 << level) < size)
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
                        std::thread::sleep(Duration::from_millis(if group.member() == 0 { 20 } else { 0 }));
                        a + b
                    };
                    assert_eq!(group.all_reduce_one(group.member() as u64 + round, late)?, 6 + 4 * round);
                }
                assert_eq!(group.inner.sequence.load(Ordering::Relaxed), 2);
                Ok::<(), Error>(())
            };
            Launch::new().ranks(4).network(network).run(body).unwrap();
        }
    }
}
