//! Transfers with one peer, and which of them are visible.

use std::{collections::VecDeque, ops::Range};

use crate::comm::am::wire::Transfers;

/// Transfers with a peer that may have begun and not ended.
const WINDOW: usize = 1024;

/// A transfer: its kind, until it has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TransferState {
    Writes,
    /// An atomic operation, which no mark ends.
    Changes,
    Reads,
    Ended,
}

/// The transfers with one peer, numbered from 0 in their order.
#[derive(Debug, Default)]
pub(super) struct PeerOrder {
    /// The number of the oldest one that has not ended, and all from that one on.
    ended: u64,
    open: VecDeque<TransferState>,
    /// Atomic operations among them.
    changes: usize,
    /// Writes among them, and the addresses between the first and the last byte that they write.
    writes: usize,
    hull: Range<u64>,
    /// A mark is under way behind the writes below this number.
    mark: Option<u64>,
    /// A frame to the peer is lost: no request may come behind it.
    pub(super) is_lost: bool,
    /// It is in the list of those with writes that no mark stands behind.
    pub(super) is_listed: bool,
}

impl PeerOrder {
    /// Returns true if one more may begin.
    pub(super) fn has_room(&self) -> bool {
        self.open.len() < WINDOW
    }

    /// Returns true if a write that has not ended may write bytes of a range.
    pub(super) fn overlaps(&self, range: &Range<u64>) -> bool {
        self.writes > 0 && range.start < self.hull.end && self.hull.start < range.end
    }

    /// Returns true if atomic operations have not ended. An adapter orders nothing behind those: some take several steps.
    pub(super) fn changes(&self) -> bool {
        self.changes > 0
    }

    /// Returns true if writes or atomic operations have not ended.
    pub(super) fn alters(&self) -> bool {
        self.writes + self.changes > 0
    }

    /// A write of a range has begun. Returns its number.
    pub(super) fn begin_write(&mut self, range: Range<u64>) -> u64 {
        self.hull = match self.writes {
            0 => range,
            _ => self.hull.start.min(range.start)..self.hull.end.max(range.end),
        };
        self.writes += 1;
        self.begin(TransferState::Writes)
    }

    /// An atomic operation has begun. Returns its number.
    pub(super) fn begin_change(&mut self) -> u64 {
        self.changes += 1;
        self.begin(TransferState::Changes)
    }

    /// A read has begun. Returns its number.
    pub(super) fn begin_read(&mut self) -> u64 {
        self.begin(TransferState::Reads)
    }

    fn begin(&mut self, state: TransferState) -> u64 {
        self.open.push_back(state);
        self.begun() - 1
    }

    fn begun(&self) -> u64 {
        self.ended + self.open.len() as u64
    }

    /// A transfer has ended; a write is visible.
    pub(super) fn end(&mut self, number: u64) {
        self.set_ended(number);
        self.settle();
    }

    fn set_ended(&mut self, number: u64) {
        let Some(state) = number.checked_sub(self.ended).and_then(|at| self.open.get_mut(at as usize)) else { return };
        self.writes -= usize::from(*state == TransferState::Writes);
        self.changes -= usize::from(*state == TransferState::Changes);
        *state = TransferState::Ended;
    }

    fn settle(&mut self) {
        while self.open.front() == Some(&TransferState::Ended) {
            self.open.pop_front();
            self.ended += 1;
        }
    }

    /// Returns true if a mark behind the writes would tell something, and none is under way.
    pub(super) fn wants_mark(&self) -> bool {
        self.writes > 0 && self.mark.is_none()
    }

    /// A mark has begun.
    pub(super) fn begin_mark(&mut self) {
        self.mark = Some(self.begun());
    }

    /// The mark has ended: all writes before it are visible.
    pub(super) fn end_mark(&mut self) {
        for number in self.ended..self.mark.take().unwrap_or_default() {
            if self.open[(number - self.ended) as usize] == TransferState::Writes {
                self.set_ended(number);
            }
        }
        self.settle();
    }

    /// How many have begun, and how many of the first ones have ended.
    pub(super) fn transfers(&self) -> Transfers {
        Transfers { begun: self.begun(), ended: self.ended }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transfers(begun: u64, ended: u64) -> Transfers {
        Transfers { begun, ended }
    }

    #[test]
    fn transfers_end_in_their_order() {
        let mut order = PeerOrder::default();
        assert_eq!([order.begin_write(0..8), order.begin_read(), order.begin_write(32..40)], [0, 1, 2]);
        order.end(2);
        order.end(1);
        assert_eq!(order.transfers(), transfers(3, 0));
        order.end(0);
        assert_eq!(order.transfers(), transfers(3, 3));
        assert!(!order.alters());
    }

    #[test]
    fn a_mark_ends_the_writes_before_it() {
        let mut order = PeerOrder::default();
        order.begin_write(0..8);
        order.begin_read();
        order.begin_write(8..16);
        assert!(order.wants_mark());
        order.begin_mark();
        order.begin_write(16..24);
        assert!(!order.wants_mark(), "one is under way");
        order.end_mark();
        assert_eq!(order.transfers(), transfers(4, 1));
        assert!(order.wants_mark());
        order.end(1);
        assert_eq!(order.transfers(), transfers(4, 3));
        let change = order.begin_change();
        order.begin_mark();
        order.end_mark();
        assert_eq!(order.transfers(), transfers(5, 4));
        assert!(order.changes() && !order.wants_mark(), "no mark tells of it");
        order.end(change);
        assert_eq!(order.transfers(), transfers(5, 5));
        assert!(!order.wants_mark());
    }

    #[test]
    fn writes_overlap_until_all_have_ended() {
        let mut order = PeerOrder::default();
        assert!(!order.overlaps(&(0..u64::MAX)));
        let first = order.begin_write(8..16);
        order.begin_write(32..40);
        assert_eq!([0..8, 40..48, 0..9, 20..24, 39..40].map(|range| order.overlaps(&range)), [false, false, true, true, true]);
        order.end(first);
        assert!(order.overlaps(&(8..16)), "the hull shrinks when all have ended");
        order.end(1);
        assert!(!order.overlaps(&(0..u64::MAX)));
        order.begin_write(100..101);
        assert!(!order.overlaps(&(0..100)));
    }
}
