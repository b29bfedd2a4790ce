//! 64-bit words that every member can change atomically: the basis of counters, locks and signals.
//!
//! Each member holds `count` words, on separate cache lines. The group fixes one path to a word, by processor or by network, because
//! atomics of a network adapter may not be coherent with those of the processor (ARMCI-Gemini §III-B3).

use std::sync::Arc;

use super::{Group, Kind, Op, fingerprint};
use crate::{
    calls::located,
    comm::{Atomic, AtomicOp, Remote, engine::Label},
    error::{Error, Result},
    memory::{heap::ALIGN, part::Part, segments::Placement, word::WaitWord},
};

/// `count` words in each member's segment.
#[derive(Debug)]
pub(crate) struct SharedWords {
    group: Group,
    offset: usize,
    /// All words of every member.
    placement: Placement<u64>,
    count: usize,
    label: Label,
}

impl SharedWords {
    /// Collective. The words are zero.
    pub(crate) fn create(group: &Group, count: usize, what: &'static str) -> Result<Self> {
        let inner = &group.inner;
        let name: Arc<str> = Arc::from(what);
        let bytes = count
            .checked_mul(ALIGN)
            .ok_or_else(|| Error::argument(what, format_args!("{count} words are more than can be addressed")))?;
        let (offset, _) =
            inner.job.allocate(group, bytes, bytes, Op::Words, fingerprint(&[count as u64]), &|| what.to_owned())?;
        let placement = inner.segments.placement(offset, count * (ALIGN / 8));
        let words = SharedWords { group: group.clone(), offset, placement, count, label: Label::new(name, what) };
        words.own().fill(0);
        group.agree(Op::Words, 1)?;
        Ok(words)
    }

    fn own(&self) -> Part<'_, u64> {
        let base = self.group.inner.engine().conduit().segment();
        self.group.inner.segments.own_part(base, self.offset, self.count * ALIGN / 8)
    }

    pub(crate) fn group(&self) -> &Group {
        &self.group
    }

    /// Where word `index` begins in every member's segment.
    pub(crate) fn byte(&self, index: usize) -> usize {
        assert!(index < self.count, "word {index} of {}", self.count);
        self.offset + index * ALIGN
    }

    /// Applies an atomic operation to word `index` of a member and returns the old value.
    #[inline]
    pub(crate) fn atomic(&self, member: usize, index: usize, op: AtomicOp, operand: u64, comparand: u64) -> Result<u64> {
        let (inner, atomic) = (&*self.group.inner, Atomic { op, width: 8, operand, comparand });
        let word = Remote { rank: inner.rank_of(member), offset: self.byte(index) };
        inner.engine().atomic(inner.road(member, 8), word, atomic, &self.label)
    }

    /// The same on a word that is a lock; see [`Engine::atomic_on_lock`](crate::comm::engine::Engine::atomic_on_lock).
    pub(crate) fn atomic_on_lock(
        &self,
        member: usize,
        index: usize,
        op: AtomicOp,
        (operand, comparand): (u64, u64),
        what: &dyn Fn() -> String,
    ) -> Result<u64> {
        let (inner, atomic) = (&*self.group.inner, Atomic { op, width: 8, operand, comparand });
        let lock = Remote { rank: inner.rank_of(member), offset: self.byte(index) };
        inner.engine().atomic_on_lock(inner.road(member, 8), lock, atomic, &self.label, what)
    }

    /// Adds one to the low half of word `index` of a member, on which the member may wait, after everything that this rank put there.
    pub(crate) fn raise(&self, member: usize, index: usize) -> Result<()> {
        let inner = &*self.group.inner;
        let offset = self.byte(index);
        let by_processor = |word: &WaitWord| {
            word.add(1);
            word.wake();
        };
        // What went by the network is not ordered before a store.
        if !inner.mapped && inner.words.is_mapped(member) {
            inner.engine().fence(Some(inner.rank_of(member)), &self.label)?;
        }
        if let Some(word) = inner.words.short_word(member, offset) {
            by_processor(word);
            return Ok(());
        }
        self.count_signal(member);
        if let Some(word) = inner.words.word(member, offset) {
            by_processor(word);
            return Ok(());
        }
        inner.engine().raise(inner.rank_of(member), offset, &self.label)
    }

    /// Counts that a word of a member was raised.
    pub(crate) fn count_signal(&self, member: usize) {
        self.group.inner.count(Kind::Signal, member, size_of::<u32>());
    }

    /// Adds to word `index` of a member and returns the old value: the shortest path.
    #[inline(always)]
    #[track_caller]
    pub(crate) fn fetch_add(&self, member: usize, index: usize, operand: u64) -> Result<u64> {
        let inner = &*self.group.inner;
        if !inner.words.over()
            && let Some(part) = inner.words.placed(member, &self.placement)
        {
            return Ok(part.fetch_add(index * (ALIGN / 8), operand));
        }
        self.fetch_add_remote(member, index, operand)
    }

    #[cold]
    #[track_caller]
    fn fetch_add_remote(&self, member: usize, index: usize, operand: u64) -> Result<u64> {
        located(|| {
            self.group.inner.engine().check(self.label.operation)?;
            self.atomic(member, index, AtomicOp::Add, operand, 0)
        })
    }

    /// Word `index` of this rank as one to wait on; its low half is the value.
    pub(crate) fn own_word(&self, index: usize) -> &WaitWord {
        let inner = &*self.group.inner;
        inner.segments.own_word(inner.engine().conduit().segment(), self.offset + index * ALIGN)
    }
}

impl Drop for SharedWords {
    fn drop(&mut self) {
        self.group.inner.blocks().drop_block(self.offset, Vec::new());
    }
}
