//! Slots of memory, and what was begun from each.

use std::ops::Range;

use super::adapter::{RmaAccess, RmaAdapter};
use crate::comm::{
    Atomic,
    am::wire::{BulkId, Key},
    kit::slots::Slots,
};

/// Copied pieces that may be under way, and transfers that go straight: their slots have no memory, and are numbered behind the others.
const COPIES: usize = 64;
const STRAIGHT: usize = 32;

/// Bytes of a word that an adapter changes.
pub(super) const WORD: usize = size_of::<u64>();

/// Set in the ids of marks, whose lower bits are the peer.
const OF_MARK: u64 = 1 << 62;

/// What was begun from a slot, and its number among the transfers with the peer.
#[derive(Clone, Copy, Debug)]
pub(super) enum SlotTransfer {
    Write {
        to: usize,
        number: u64,
    },
    Read {
        from: usize,
        number: u64,
        origin: u64,
        at: usize,
        there: u64,
        len: usize,
    },
    /// An atomic operation: `step` is under way, and the caller wants `wanted`.
    Change {
        at: usize,
        number: u64,
        origin: u64,
        there: u64,
        key: Key,
        step: Atomic,
        wanted: Atomic,
    },
    Straight {
        with: usize,
        number: u64,
        reads: bool,
        len: usize,
        region: Option<u64>,
        id: BulkId,
    },
}

/// What has ended.
#[derive(Debug)]
pub(super) enum WorkEnd {
    Slot(usize, SlotTransfer),
    Mark(usize),
}

/// Slots of memory, which an adapter knows.
#[derive(Debug)]
pub(super) struct Works {
    slots: Slots,
    /// None if the adapter need not know it.
    region: Option<u64>,
    /// See [`RmaLimits::unit`](super::adapter::RmaLimits::unit).
    unit: usize,
    begun: Vec<Option<SlotTransfer>>,
    free: Vec<usize>,
    free_straight: Vec<usize>,
}

impl Works {
    /// Slots of `len` bytes.
    ///
    /// # Errors
    /// What the adapter says.
    pub(super) fn new(adapter: &mut impl RmaAdapter, len: usize) -> std::result::Result<Self, String> {
        let unit = adapter.limits().unit;
        let slots = Slots::new(COPIES, len + unit - 1);
        let region = match adapter.limits().local_regions {
            false => None,
            true => {
                let (start, len) = slots.memory();
                // SAFETY: freed behind the adapter, whose port is closed before.
                Some(unsafe { adapter.register(start, len, RmaAccess::Local) }?.id)
            }
        };
        let (free, free_straight) = ((0..COPIES).collect(), (COPIES..COPIES + STRAIGHT).collect());
        Ok(Works { slots, region, unit, begun: vec![None; COPIES + STRAIGHT], free, free_straight })
    }

    pub(super) fn region(&self) -> Option<u64> {
        self.region
    }

    /// Where bytes of a place at a peer begin in a slot: they lie alike.
    fn begins(&self, there: u64) -> usize {
        there as usize % self.unit
    }

    /// A slot with memory that is free, and where the bytes of a place at a peer begin there.
    pub(super) fn free(&self, there: u64) -> Option<(usize, *mut u8)> {
        self.free.last().map(|&slot| (slot, self.place(slot, there)))
    }

    /// A slot without memory that is free.
    pub(super) fn free_straight(&self) -> Option<usize> {
        self.free_straight.last().copied()
    }

    /// Fills a free slot.
    ///
    /// # Safety
    /// The bytes are readable.
    pub(super) unsafe fn fill(&mut self, slot: usize, there: u64, bytes: *const u8, len: usize) {
        // SAFETY: the caller's promise.
        unsafe { self.slots.write_from(slot, self.begins(there), bytes, len) };
    }

    /// Looks at what was read into a slot.
    pub(super) fn look(&self, slot: usize, there: u64, len: usize, at: impl FnOnce(&[u8])) {
        self.slots.look(slot, self.begins(there), len, at);
    }

    /// Something was begun from the slot that was free.
    pub(super) fn begin(&mut self, slot: usize, what: SlotTransfer) {
        let free = if slot < COPIES { &mut self.free } else { &mut self.free_straight };
        free.pop_if(|last| *last == slot);
        self.begun[slot] = Some(what);
    }

    /// Returns true if words of a range at a peer are being changed.
    pub(super) fn change(&self, with: usize, range: &Range<u64>) -> bool {
        self.begun[..COPIES].iter().any(|begun| match begun {
            Some(SlotTransfer::Change { at, there, .. }) => {
                *at == with && *there < range.end && range.start < there + WORD as u64
            }
            _ => false,
        })
    }

    /// What was begun from a slot.
    pub(super) fn begun(&self, slot: usize) -> Option<SlotTransfer> {
        self.begun[slot]
    }

    /// Something else is begun from a slot that is not free.
    pub(super) fn set(&mut self, slot: usize, what: SlotTransfer) {
        self.begun[slot] = Some(what);
    }

    /// Where the bytes of a place at a peer begin in a slot.
    pub(super) fn place(&self, slot: usize, there: u64) -> *mut u8 {
        self.slots.at(slot, self.slots.len()).wrapping_add(self.begins(there))
    }

    /// What was begun from a slot has ended, and nobody looks at it any more.
    pub(super) fn release(&mut self, slot: usize) -> Option<SlotTransfer> {
        let what = self.begun[slot].take();
        let free = if slot < COPIES { &mut self.free } else { &mut self.free_straight };
        free.extend(what.map(|_| slot));
        what
    }

    /// Takes back all transfers that go straight: the adapter is closed, and touches no memory.
    pub(super) fn take_straight(&mut self) -> impl Iterator<Item = BulkId> {
        self.begun[COPIES..].iter_mut().filter_map(|begun| match begun.take() {
            Some(SlotTransfer::Straight { id, .. }) => Some(id),
            _ => None,
        })
    }

    /// What the adapter says has ended.
    pub(super) fn ended(&self, id: u64) -> Option<WorkEnd> {
        if id & OF_MARK != 0 {
            return Some(WorkEnd::Mark((id & !OF_MARK) as usize));
        }
        let slot = id as usize;
        Some(WorkEnd::Slot(slot, (*self.begun.get(slot)?)?))
    }

    /// The id of a mark.
    pub(super) fn mark_of(peer: usize) -> u64 {
        OF_MARK | peer as u64
    }
}
