//! The ring of a member, and how it writes to those of the others.

use rustc_hash::FxHashMap;

use super::{Block, stage::Stage};
use crate::{
    calls::calling,
    comm::engine::{Engine, Label, Waiter, append::FarRing},
    error::{Error, Result},
    memory::{
        ring::{Letter, Ring},
        segments::Segment,
    },
    sync::{Group, Kind, Op, fingerprint},
};

/// Slots of a ring: 64 KiB.
pub(super) const SLOTS: usize = 512;
/// The most bytes of payload, on every network: as many as EXTOLL's largest packet (EXTOLL §III-B).
pub(super) const MOST_BYTES: usize = 8192;

/// See the module.
#[derive(Debug)]
pub(super) struct Rings {
    block: Block,
    slots: usize,
    /// Whether the network reaches some members.
    has_far: bool,
    near: Segment,
    /// Where this member reads on, and the position up to which it has freed slots.
    position: u64,
    freed: u64,
    /// The letter that was taken last.
    came: Vec<u64>,
    /// The rings that it has written to.
    far: FxHashMap<usize, FarRing>,
    label: Label,
}

impl Rings {
    /// Makes an empty ring on each member, with `beside` bytes of memory behind it if the network reaches a member. Collective. `kinds` is what members must agree on.
    pub(super) fn open(group: &Group, op: Op, operation: &'static str, slots: usize, beside: usize, kinds: u64) -> Result<Self> {
        let (inner, own, kinds) = (&*group.inner, Ring::bytes(slots), fingerprint(&[kinds, slots as u64]));
        // The place is for all alike; a rank commits what it may use.
        let has_far = (0..inner.size()).any(|member| !inner.segments.is_mapped(member));
        let (most, bytes) = (own + beside, if has_far { own + beside } else { own });
        let what = || format!("a ring of {bytes} bytes on each rank");
        let (offset, _) = inner.job.allocate(group, most, bytes, op, kinds, &what)?;
        let block = Block { group: group.clone(), offset };
        let near = inner.segments.own(inner.engine().conduit().segment());
        near.part::<u64>(offset, own / size_of::<u64>()).fill(0);
        // Nobody writes before all rings are empty.
        group.agree_values(op, kinds, 0, 0, 0)?;
        let label = Label::new("(messages)", operation);
        Ok(Rings { block, slots, has_far, near, position: 0, freed: 0, came: Vec::new(), far: FxHashMap::default(), label })
    }

    pub(super) fn group(&self) -> &Group {
        &self.block.group
    }

    /// Where the rings are: no other endpoint of the job has this place.
    pub(super) fn place(&self) -> usize {
        self.block.offset
    }

    pub(super) fn engine(&self) -> &Engine {
        self.group().inner.engine()
    }

    /// Whether a member is reached by the network.
    pub(super) fn is_far(&self, member: usize) -> bool {
        member != self.group().member() && !self.group().inner.segments.is_mapped(member)
    }

    /// The memory behind the ring, if there is any: its place in the segment of each member, of which this is the caller's.
    pub(super) fn beside(&self) -> Option<(Segment, usize)> {
        self.has_far.then(|| (self.near, self.block.offset + Ring::bytes(self.slots)))
    }

    /// Gets what a member has in a part of its stage.
    pub(super) fn fetch(&self, stage: Stage, member: usize, part: usize, bytes: &mut [u8]) -> Result<()> {
        let inner = &self.group().inner;
        inner.count(Kind::Get, member, bytes.len());
        stage.fetch(inner.engine(), inner.rank_of(member), part, bytes, &self.label)
    }

    pub(super) fn slots(&self) -> usize {
        self.slots
    }

    /// An error once the job is over.
    pub(super) fn check_job(&self, operation: &'static str) -> Result<()> {
        if self.group().inner.segments.over() { Err(self.engine().over(operation)) } else { Ok(()) }
    }

    /// The same, and for a member that does not exist.
    pub(super) fn check(&self, operation: &'static str, to: usize) -> Result<()> {
        self.check_job(operation)?;
        let size = self.group().size();
        if to < size { Ok(()) } else { Err(Error::argument(operation, format_args!("member {to} of a group of {size}"))) }
    }

    /// Sends a letter, unless the member's ring has no room.
    #[inline]
    pub(super) fn send(&mut self, to: usize, words: &[u64], payload: &[u8]) -> Result<bool> {
        let letter = Letter { from: self.group().member(), words, payload };
        self.with(to, |engine, ring, label| engine.append(ring, &letter, label)).inspect(|&sent| {
            let inner = &self.group().inner;
            if sent && inner.job.counts.is_some() {
                inner.count(Kind::Message, to, size_of_val(words) + payload.len());
            }
        })
    }

    #[inline]
    fn with<R>(&mut self, to: usize, act: impl FnOnce(&Engine, &mut FarRing, &Label) -> R) -> R {
        let Rings { block, slots, near, far, label, .. } = self;
        let inner = &*block.group.inner;
        let ring = far.entry(to).or_insert_with(|| {
            let segment = if to == block.group.member() { Some(*near) } else { inner.segments.of(to) };
            FarRing::new(inner.rank_of(to), [block.offset, *slots], segment, inner.word_road(to))
        });
        act(inner.engine(), ring, label)
    }

    fn ring(&self) -> Ring<'_> {
        self.near.ring(self.block.offset, self.slots)
    }

    /// Takes the next letter, if there is one, and returns its sender.
    #[inline]
    pub(super) fn take(&mut self) -> Option<usize> {
        let ring = self.near.ring(self.block.offset, self.slots);
        let from = ring.read(&mut self.position, &mut self.came);
        // Not for each letter: the line of `head` is then read by those who write.
        if from.is_none() || self.position - self.freed >= self.slots as u64 / 4 {
            self.free();
        }
        from
    }

    /// The words and the payload of the letter that was taken last.
    pub(super) fn words(&self) -> &[u64] {
        &self.came
    }

    /// Lets others write to what was read.
    pub(super) fn free(&mut self) {
        if self.freed != self.position {
            self.freed = self.position;
            self.ring().free(self.position);
        }
    }

    /// Lets the network bring letters.
    pub(super) fn progress(&self) {
        self.engine().progress();
    }

    /// Waits until there is a letter. `object` names what it waits for, by the rank of the member that has to act.
    pub(super) fn wait(
        &mut self,
        awaits: Option<usize>,
        operation: &dyn Fn() -> String,
        object: &dyn Fn(Option<usize>) -> String,
    ) -> Result<()> {
        self.free();
        let (ring, position) = (self.ring(), self.position);
        let (word, stamp) = ring.stamp(position);
        let waiter = Serving { group: self.group(), ring, position, operation, object, awaits };
        self.engine().wait_word(word, &waiter, |seen| seen == stamp)
    }

    /// Waits until a member's ring has room for a letter, or one is here.
    pub(super) fn wait_for_room(&mut self, to: usize, words: &[u64], payload: &[u8]) -> Result<()> {
        self.free();
        let (group, rank) = (self.group().clone(), self.group().inner.rank_of(to));
        let (operation, object) =
            (|| format!("sending a message to rank {rank}"), |_| format!("room in the ring of rank {rank}"));
        let slots = Letter { from: 0, words, payload }.slots();
        let (near, position) = (self.near, self.position);
        let own = near.ring(self.block.offset, self.slots);
        let (word, stamp) = own.stamp(position);
        let waiter = Serving { group: &group, ring: own, position, operation: &operation, object: &object, awaits: Some(to) };
        self.with(to, |engine, ring, label| engine.wait_for_room(ring, slots, &waiter, || word.load() == stamp, label))
    }
}

impl Drop for Rings {
    fn drop(&mut self) {
        let engine = self.block.group.inner.engine();
        self.far.values().for_each(|ring| engine.forget_ring(ring));
        engine.close_ring(self.ring());
    }
}

/// A wait in which this rank handles what comes. After each letter that was handled it is a new wait: so a wait that others have seen twice has
/// done nothing for them in between.
///
/// While a writer has slots of the ring and has not stamped them, it may be any rank, and what stands behind them may end the wait. So may a
/// letter that is held for the ring. Then the wait awaits nobody.
struct Serving<'a> {
    group: &'a Group,
    ring: Ring<'a>,
    position: u64,
    operation: &'a dyn Fn() -> String,
    /// What it waits for.
    object: &'a dyn Fn(Option<usize>) -> String,
    /// The member that has to act; any, if there is none.
    awaits: Option<usize>,
}

impl Serving<'_> {
    fn is_clear(&self) -> bool {
        self.ring.is_clear(self.position)
    }

    fn rank(&self) -> Option<usize> {
        self.awaits.map(|member| self.group.inner.rank_of(member))
    }
}

impl Waiter for Serving<'_> {
    fn operation(&self) -> String {
        (self.operation)()
    }
    fn missing(&self) -> String {
        (self.object)(self.rank())
    }
    fn object(&self) -> String {
        (self.object)(self.rank()) + &calling().map_or_else(String::new, |line| format!(" at {line}"))
    }
    fn awaits(&self) -> Option<usize> {
        self.rank().filter(|_| self.is_clear())
    }
    fn awaits_anybody(&self) -> bool {
        self.awaits.is_none() && self.is_clear()
    }
    fn hopeless(&self) -> Option<Error> {
        if !self.is_clear() {
            return None;
        }
        let cause = match self.rank() {
            Some(rank) => self.group.has_ended(rank).then(|| format!("rank {rank} has ended")),
            None => self.group.is_left_alone().then(|| "all other ranks have ended".to_owned()),
        };
        let (rank, operation) = (self.group.inner.engine().rank(), self.operation().into());
        cause.map(|cause| Error::Deadlock { rank, operation, cause })
    }
    fn place(&self, rank: usize) -> String {
        self.group.place(rank)
    }
}
