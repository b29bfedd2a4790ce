//! Puts that may not be visible yet, and the flushes that make them visible.
//!
//! A flush covers the puts of all earlier calls. A thread that needs one joins another thread's flush of that rank, if nothing was put
//! there since it began.

use std::sync::{Arc, OnceLock};

use super::{Call, Direction, Failure, Label, Owner, Request, RequestId, RequestTable, Serial};
use crate::{comm::kit::peers::Peers, error::Error};

/// A flush that another thread began: complete when its request is, and then this says why it failed, if it did.
#[derive(Clone, Debug, Default)]
pub(in crate::comm) struct FlushOutcome(Arc<OnceLock<Failure>>);

impl FlushOutcome {
    /// Keeps the first failure. It may come at completion, and again from a flush that joins after that.
    pub(super) fn fails(&self, failure: Failure) {
        let _ = self.0.set(failure);
    }

    pub(in crate::comm) fn failure(&self) -> Option<Error> {
        self.0.get().map(Failure::error)
    }
}

/// The puts of this rank.
#[derive(Debug, Default)]
pub(super) struct Puts {
    /// What is known of those to each rank.
    peers: Peers<PeerPuts>,
    /// Ranks that may have puts that are not known to be visible yet, the first first.
    dirty: Vec<usize>,
}

/// What is known of the puts to one rank.
#[derive(Debug, Default)]
struct PeerPuts {
    /// The call that put last; none if all is known to be visible.
    last: Option<Serial>,
    /// Others did before it.
    others: bool,
    /// The flush in flight that covers them all.
    flush: Option<RequestId>,
    /// The rank is in the list of those that may be dirty.
    is_listed: bool,
}

/// What a flush has to do.
#[derive(Debug, Default)]
pub(in crate::comm) struct Flush {
    /// The request of the flushes that are to be begun, of these ranks.
    pub(in crate::comm) begun: Option<(RequestId, Vec<usize>)>,
    /// Flushes that other threads began, which cover the rest.
    pub(in crate::comm) joined: Vec<(RequestId, FlushOutcome)>,
}

impl RequestTable {
    /// A transfer of a call with `rank` has begun.
    pub(in crate::comm) fn put_begins(&mut self, call: &Call, rank: usize, direction: Direction) {
        if direction == Direction::Put {
            let puts = self.puts.peers.meet(rank);
            if !puts.is_listed {
                self.puts.dirty.push(rank);
            }
            let others = puts.others || puts.last.is_some_and(|last| last != call.serial);
            *puts = PeerPuts { last: Some(call.serial), others, flush: None, is_listed: true };
        }
    }

    /// Returns true if a rank has puts of other calls than this one that may not be visible yet.
    pub(in crate::comm) fn is_dirty(&self, rank: usize, call: &Call) -> bool {
        self.puts.peers.get(rank).is_some_and(|puts| puts.last.is_some_and(|last| last != call.serial || puts.others))
    }

    /// Forgets what was put to a rank, or to any, where it is visible already: it needs no flush. Returns true if all of it is
    /// visible.
    pub(in crate::comm) fn see_flushed(&mut self, rank: Option<usize>, is_flushed: impl Fn(usize) -> bool) -> bool {
        let Puts { peers, dirty } = &mut self.puts;
        // Once a rank needs a flush, the network is not asked about the others.
        let mut asks = true;
        let mut is_clean = |puts: &mut PeerPuts, rank| {
            if puts.last.is_some() && puts.flush.is_none() && asks {
                asks = is_flushed(rank);
                if asks {
                    (puts.last, puts.others) = (None, false);
                }
            }
            puts.last.is_none()
        };
        let Some(rank) = rank else {
            dirty.retain(|&rank| {
                peers.get_mut(rank).is_some_and(|puts| {
                    puts.is_listed = !is_clean(puts, rank);
                    puts.is_listed
                })
            });
            return dirty.is_empty();
        };
        // It stays in the list, if it is there.
        peers.get_mut(rank).is_none_or(|puts| is_clean(puts, rank))
    }

    /// Begins to flush a rank, or all.
    pub(in crate::comm) fn begin_flush(&mut self, rank: Option<usize>, serial: Serial, label: &Label) -> Flush {
        let id = RequestId(self.requests.next());
        let (mut begun, mut joined) = (Vec::new(), Vec::new());
        match rank {
            Some(rank) => drop(self.cover(rank, id, &mut begun, &mut joined)),
            None => {
                let mut dirty = std::mem::take(&mut self.puts.dirty);
                dirty.retain(|&rank| match self.cover(rank, id, &mut begun, &mut joined) {
                    Some(puts) if puts.last.is_none() => {
                        puts.is_listed = false;
                        false
                    }
                    _ => true,
                });
                self.puts.dirty = dirty;
            }
        }
        let enter = |ranks: Vec<usize>| {
            let request = Request::new(serial, label.clone(), Owner::Caller, ranks.len(), false);
            (self.enter(request), ranks)
        };
        Flush { begun: Some(begun).filter(|ranks| !ranks.is_empty()).map(enter), joined }
    }

    /// Notes for a rank with puts whether a flush in flight covers them, or the one to be begun does.
    fn cover(
        &mut self,
        rank: usize,
        id: RequestId,
        begun: &mut Vec<usize>,
        joined: &mut Vec<(RequestId, FlushOutcome)>,
    ) -> Option<&mut PeerPuts> {
        let puts = self.puts.peers.get_mut(rank)?;
        if puts.last.is_none() {
            return Some(puts);
        }
        let Some(under_way) = puts.flush else {
            puts.flush = Some(id);
            begun.push(rank);
            return Some(puts);
        };
        match self.requests.get_mut(under_way.0) {
            // One that has failed covers nothing: a flush that joins it fails too.
            Some(request) if request.outstanding > 0 || request.failed.is_some() => {
                let outcome = request.flush.get_or_insert_default().clone();
                if let (0, Some(failure)) = (request.outstanding, request.failed()) {
                    outcome.fails(failure);
                }
                joined.push((under_way, outcome));
            }
            // Its thread gave up waiting, or has not come to tell yet.
            _ => (puts.last, puts.others) = (None, false),
        }
        Some(puts)
    }

    /// What a flush of these ranks covers is visible, unless it did not end.
    pub(in crate::comm) fn end_flush(&mut self, flush: RequestId, ranks: &[usize]) {
        if !self.is_complete(flush) {
            return;
        }
        for &rank in ranks {
            if let Some(puts) = self.puts.peers.get_mut(rank).filter(|puts| puts.flush == Some(flush)) {
                (puts.last, puts.others) = (None, false);
            }
        }
    }

    /// Flushes in flight that more than one call waits for.
    #[cfg(test)]
    pub(in crate::comm) fn flushes_joined(&self) -> usize {
        self.requests.values().filter(|request| request.flush.is_some()).count()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn call(serial: u64) -> Call {
        Call { serial: Serial(serial), request: Cell::new(None), late: Some((Label::new("a", "put"), true)) }
    }

    fn put(table: &mut RequestTable, rank: usize, serial: u64) {
        let call = call(serial);
        table.put_begins(&call, rank, Direction::Put);
        assert_eq!(call.request.get(), None);
    }

    fn begin(table: &mut RequestTable, rank: Option<usize>, serial: u64) -> Flush {
        table.begin_flush(rank, Serial(serial), &Label::new("a", "fence"))
    }

    #[test]
    fn a_flush_covers_what_was_put_before_it_and_no_other_rank() {
        let mut table = RequestTable::default();
        [(7, 1), (3, 2), (7, 3)].into_iter().for_each(|(rank, serial)| put(&mut table, rank, serial));
        let (first, ranks) = begin(&mut table, Some(3), 4).begun.unwrap();
        assert_eq!(ranks, [3]);
        // The flush of rank 3 is joined, and that of rank 7 is begun.
        let flush = begin(&mut table, None, 5);
        let (second, others) = flush.begun.unwrap();
        assert_eq!((&others[..], flush.joined.len(), flush.joined[0].0), (&[7][..], 1, first));
        put(&mut table, 7, 6);
        for (flush, ranks) in [(first, &ranks), (second, &others)] {
            table.complete(flush.into(), |_| {});
            assert!(table.remove(flush).is_some());
            table.end_flush(flush, ranks);
        }
        // Rank 7 was put to after its flush began.
        let (_, ranks) = begin(&mut table, None, 7).begun.unwrap();
        assert_eq!(ranks, [7]);
    }

    #[test]
    fn what_is_visible_already_is_not_flushed() {
        let mut table = RequestTable::default();
        [(7, 1), (3, 2), (5, 3)].into_iter().for_each(|(rank, serial)| put(&mut table, rank, serial));
        assert!(table.see_flushed(Some(3), |rank| rank == 3) && table.see_flushed(Some(9), |_| false));
        assert!(!table.see_flushed(None, |rank| rank != 5) && !table.see_flushed(Some(5), |_| false));
        let (flush, ranks) = begin(&mut table, None, 4).begun.unwrap();
        assert_eq!(ranks, [5]);
        // A flush of rank 5 is under way: its answer counts, and the network is not asked.
        assert!(!table.see_flushed(None, |_| true));
        let joined = begin(&mut table, None, 5);
        assert_eq!((joined.begun.is_none(), joined.joined.len()), (true, 1));
        table.complete(flush.into(), |_| {});
        assert!(table.remove(flush).is_some());
        table.end_flush(flush, &ranks);
        // A rank that was clean is dirty again.
        put(&mut table, 3, 6);
        assert!(!table.see_flushed(None, |rank| rank != 3));
        assert_eq!(begin(&mut table, None, 7).begun.unwrap().1, [3]);
        put(&mut table, 7, 8);
        assert!(!table.see_flushed(Some(3), |_| true), "a flush is under way");
        assert!(table.see_flushed(Some(7), |_| true));
    }

    /// A put of the call does not hide one before it.
    #[test]
    fn a_rank_is_dirty_for_whoever_was_not_alone() {
        let mut table = RequestTable::default();
        let is_dirty = |table: &RequestTable| [1, 2].map(|serial| table.is_dirty(7, &call(serial)));
        assert_eq!(is_dirty(&table), [false, false]);
        put(&mut table, 7, 1);
        put(&mut table, 7, 1);
        assert_eq!(is_dirty(&table), [false, true]);
        put(&mut table, 7, 2);
        assert_eq!(is_dirty(&table), [true, true]);
        let (flush, ranks) = begin(&mut table, None, 3).begun.unwrap();
        table.complete(flush.into(), |_| {});
        table.remove(flush);
        table.end_flush(flush, &ranks);
        assert_eq!(is_dirty(&table), [false, false]);
        put(&mut table, 7, 2);
        assert_eq!(is_dirty(&table), [true, false]);
    }

    /// Its thread may not have come to tell yet.
    #[test]
    fn who_meets_a_flush_that_failed_fails_too() {
        let mut table = RequestTable::default();
        put(&mut table, 1, 1);
        let (flush, ranks) = begin(&mut table, None, 2).begun.unwrap();
        table.transfer_ended(flush.into(), Some("a cut cable".into()));
        let second = begin(&mut table, Some(1), 3);
        assert!(second.begun.is_none());
        let error = second.joined[0].1.failure().expect("the failure of the first").to_string();
        assert!(error.contains("a cut cable"), "{error}");
        table.remove(flush);
        table.end_flush(flush, &ranks);
        assert!(begin(&mut table, None, 4).joined.is_empty());
    }
}
