//! The request table: what this rank has in flight, and what failed.
//!
//! It is a value without a network: the engine records in it what was issued and what `poll` reported. A request counts its outstanding
//! transfers; at zero it is complete.
//!
//! Calls and requests are numbered in the order of their issue. The token of a request's transfers is its place in the table.
//!
//! A complete request stays in the table only while a call of this rank waits for it. One that owns its memory leaves: what it
//! brought goes to an [`Outcome`] that its handle shares, and a failure is noted for the next fence. So the table holds what is under
//! way and no more, whatever becomes of handles: the outcome is freed with a handle that is dropped, and leaks with one that is
//! forgotten, as whatever a forgotten value owns.

use std::{
    any::Any,
    cell::Cell,
    collections::{BTreeMap, HashMap, VecDeque},
    fmt,
    panic::Location,
    sync::{Arc, OnceLock},
};

use super::{Token, peers::Peers, slab::Slab};
use crate::error::Error;

/// Who asked for a request; for errors.
#[derive(Clone, Debug)]
pub(crate) struct Label {
    pub(crate) array: Arc<str>,
    pub(crate) operation: &'static str,
    /// The program's call, of a request that outlives it.
    pub(crate) caller: Option<&'static Location<'static>>,
}

impl Label {
    pub(crate) fn new(array: impl Into<Arc<str>>, operation: &'static str) -> Self {
        Label { array: array.into(), operation, caller: None }
    }
}

/// Names a request of an engine: its number in the table, and the token of its transfers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequestId(u64);

impl From<RequestId> for Token {
    fn from(request: RequestId) -> Self {
        Token(request.0)
    }
}

/// The place of a call in the order of a rank's calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Serial(pub(super) u64);

/// A request while its transfers are issued.
///
/// One that touches memory of the caller enters the table with the first transfer that is not complete at once. If there is none, as for a
/// small put over most networks, nobody has to wait for it.
#[derive(Debug)]
pub(crate) struct Call {
    pub(super) serial: Serial,
    pub(super) request: Cell<Option<RequestId>>,
    /// Of a request that is not in the table from the start: whose it is, and whether it keeps its order.
    pub(super) late: Option<(Label, bool)>,
}

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// From here into a rank's segment.
    Put,
    /// The same, for a signal: no fence has to wait for it.
    Signal,
    /// From there.
    Get,
}

/// The handle's side of a request that owns its memory.
#[derive(Debug)]
pub(crate) struct Ticket {
    pub(super) serial: Serial,
    pub(super) request: RequestId,
    pub(super) outcome: Arc<Outcome>,
}

impl Ticket {
    pub(crate) fn request(&self) -> RequestId {
        self.request
    }
}

/// What became of a request that owned its memory: what it kept for its handle, or why it failed. Set at completion.
#[derive(Debug, Default)]
pub(super) struct Outcome(OnceLock<Result<Option<Buffer>, Failure>>);

impl Outcome {
    /// What the request kept; `None` while it is not complete.
    pub(super) fn take(ticket: Ticket) -> Option<Result<Option<Buffer>, Error>> {
        // The table drops its share of the outcome with the request, under its lock: that of a complete one is the handle's alone.
        let outcome = Arc::into_inner(ticket.outcome)?.0.into_inner()?;
        Some(outcome.map_err(|failure| failure.error()))
    }
}

/// A transfer that failed.
#[derive(Clone, Debug)]
struct Failure {
    label: Label,
    peer: usize,
    cause: String,
}

impl Failure {
    fn error(&self) -> Error {
        let Label { array, operation, caller } = &self.label;
        let (array, operation, cause) = (array.to_string(), (*operation).into(), self.cause.clone());
        Error::Transfer { array, operation, peer: self.peer, cause, issued: *caller }
    }
}

#[derive(Debug)]
pub(super) struct Request {
    pub(super) serial: Serial,
    pub(super) label: Label,
    pub(super) peer: usize,
    pub(super) outstanding: usize,
    failed: Option<String>,
    pub(super) value: Option<u64>,
    /// No call waits for it any more.
    detached: bool,
    owner: Owner,
    /// Transfers of it that count in the window.
    admitted: usize,
    /// Comes after what the rank put before: where the network does not keep that order, the target is flushed first.
    pub(super) ordered: bool,
    /// How a flush failed, for the calls that wait for a flush that another began.
    flush: Option<FlushOutcome>,
}

/// A flush that another thread began: complete when its request is, and then this says why it failed, if it did.
#[derive(Clone, Debug, Default)]
pub(super) struct FlushOutcome(Arc<OnceLock<Failure>>);

impl FlushOutcome {
    pub(super) fn failure(&self) -> Option<Error> {
        self.0.get().map(Failure::error)
    }
}

/// Whose memory the transfers of a request touch.
#[derive(Debug)]
pub(super) enum Owner {
    /// The caller's, who waits for the request before the memory's life ends.
    Caller,
    /// The request's, until completion: then it is freed, or `kept` for the handle.
    Request { buffer: Buffer, kept: bool, outcome: Arc<Outcome> },
}

pub(super) struct Buffer(pub(super) Box<dyn Any + Send + Sync>);

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Buffer")
    }
}

impl Request {
    pub(super) fn new(serial: Serial, label: Label, owner: Owner, outstanding: usize, ordered: bool) -> Self {
        let (failed, value, flush) = (None, None, None);
        Request { serial, label, peer: 0, outstanding, failed, value, detached: false, owner, admitted: 0, ordered, flush }
    }

    fn failed(&self) -> Option<Failure> {
        self.failed.as_ref().map(|cause| Failure { label: self.label.clone(), peer: self.peer, cause: cause.clone() })
    }

    pub(super) fn failure(&self) -> Option<Error> {
        self.failed().map(|failure| failure.error())
    }
}

#[derive(Debug, Default)]
pub(super) struct Table {
    requests: Slab<Request>,
    pub(super) in_flight: usize,
    /// The most that it ever was.
    pub(super) most_in_flight: usize,
    /// The puts to each rank.
    puts: Peers<Puts>,
    /// Ranks that may have puts that are not known to be visible yet, the first first.
    dirty: Vec<usize>,
    /// Failures that no call has reported yet: the next fences do, the oldest first.
    untold: BTreeMap<Serial, Error>,
    pub(super) mail: HashMap<u64, VecDeque<(usize, [u64; 3])>>,
}

impl Drop for Table {
    /// A rank that failed may end with transfers in flight, and its network goes on: their memory is given back to nobody.
    fn drop(&mut self) {
        for request in self.requests.drain().filter(|request| request.outstanding > 0) {
            std::mem::forget(request.owner);
        }
    }
}

/// What is known of the puts to one rank.
#[derive(Debug, Default)]
struct Puts {
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
pub(super) struct Flush {
    /// The request of the flushes that are to be begun, of these ranks.
    pub(super) begun: Option<(RequestId, Vec<usize>)>,
    /// Flushes that other threads began, which cover the rest.
    pub(super) joined: Vec<(RequestId, FlushOutcome)>,
}

impl Table {
    /// A new request.
    pub(super) fn enter(&mut self, request: Request) -> RequestId {
        RequestId(self.requests.add(request))
    }

    pub(super) fn get(&self, request: RequestId) -> Option<&Request> {
        self.requests.get(request.0)
    }

    pub(super) fn get_mut(&mut self, request: RequestId) -> Option<&mut Request> {
        self.requests.get_mut(request.0)
    }

    pub(super) fn remove(&mut self, request: RequestId) -> Option<Request> {
        self.requests.remove(request.0)
    }

    /// How many requests there are: those in flight, and those that a call is about to take.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.requests.values().count()
    }

    /// Takes out a complete request: the value that it brought, or why it failed.
    pub(super) fn end(&mut self, request: RequestId) -> Result<Option<u64>, Error> {
        let Some(request) = self.remove(request) else { return Ok(None) };
        request.failure().map_or(Ok(request.value), Err)
    }

    /// Whether nothing of a request is in flight; a request that is not in the table is complete.
    pub(super) fn is_complete(&self, request: RequestId) -> bool {
        self.get(request).is_none_or(|request| request.outstanding == 0)
    }

    /// Whether nothing is in flight of what was issued before a call.
    pub(super) fn is_complete_before(&self, limit: Serial) -> bool {
        self.requests.values().all(|request| request.serial >= limit || request.outstanding == 0)
    }

    /// The token of the next transfer of a call. If that is not complete when this thread gives up the table, it has to be admitted before.
    pub(super) fn token(&self, call: &Call) -> Token {
        Token(call.request.get().map_or_else(|| self.requests.next(), |request| request.0))
    }

    /// One more transfer of a call with `rank`, in the window; the first brings the call into the table.
    pub(super) fn admit(&mut self, call: &Call, rank: usize, direction: Direction) {
        self.in_flight += 1;
        self.most_in_flight = self.most_in_flight.max(self.in_flight);
        self.put_at_once(call, rank, direction);
        if let (None, Some((label, ordered))) = (call.request.get(), &call.late) {
            let request = Request::new(call.serial, label.clone(), Owner::Caller, 0, *ordered);
            call.request.set(Some(self.enter(request)));
        }
        if let Some(request) = call.request.get().and_then(|request| self.get_mut(request)) {
            request.outstanding += 1;
            request.admitted += 1;
            request.peer = rank;
        }
    }

    /// A transfer of a call with `rank` that was complete at once.
    pub(super) fn put_at_once(&mut self, call: &Call, rank: usize, direction: Direction) {
        if direction == Direction::Put {
            let puts = self.puts.meet(rank);
            if !puts.is_listed {
                self.dirty.push(rank);
            }
            let others = puts.others || puts.last.is_some_and(|last| last != call.serial);
            *puts = Puts { last: Some(call.serial), others, flush: None, is_listed: true };
        }
    }

    /// Whose call it is, if its transfers keep their order.
    pub(super) fn label_if_ordered(&self, call: &Call) -> Option<Label> {
        match &call.late {
            Some((label, ordered)) => ordered.then(|| label.clone()),
            None => self.get(call.request.get()?).filter(|entry| entry.ordered).map(|entry| entry.label.clone()),
        }
    }

    /// Whether a rank has puts of other calls than this one that may not be visible yet.
    pub(super) fn is_dirty(&self, rank: usize, call: &Call) -> bool {
        self.puts.get(rank).is_some_and(|puts| puts.last.is_some_and(|last| last != call.serial || puts.others))
    }

    /// Begins to flush a rank, or all.
    pub(super) fn begin_flush(&mut self, rank: Option<usize>, serial: Serial, label: &Label) -> Flush {
        let id = RequestId(self.requests.next());
        let (mut begun, mut joined) = (Vec::new(), Vec::new());
        match rank {
            Some(rank) => drop(self.cover(rank, id, &mut begun, &mut joined)),
            None => {
                let mut dirty = std::mem::take(&mut self.dirty);
                dirty.retain(|&rank| match self.cover(rank, id, &mut begun, &mut joined) {
                    Some(puts) if puts.last.is_none() => {
                        puts.is_listed = false;
                        false
                    }
                    _ => true,
                });
                self.dirty = dirty;
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
    ) -> Option<&mut Puts> {
        let puts = self.puts.get_mut(rank)?;
        if puts.last.is_none() {
            return Some(puts);
        }
        let Some(under_way) = puts.flush else {
            puts.flush = Some(id);
            begun.push(rank);
            return Some(puts);
        };
        match self.requests.get_mut(under_way.0) {
            // One that has failed covers nothing: who joins it fails too.
            Some(request) if request.outstanding > 0 || request.failed.is_some() => {
                let outcome = request.flush.get_or_insert_default().clone();
                if let (0, Some(failure)) = (request.outstanding, request.failed()) {
                    // Others may have joined it before.
                    let _ = outcome.0.set(failure);
                }
                joined.push((under_way, outcome));
            }
            // Its thread gave up waiting, or has not come to tell yet.
            _ => (puts.last, puts.others) = (None, false),
        }
        Some(puts)
    }

    /// What a flush of these ranks covers is visible, unless it did not end.
    pub(super) fn end_flush(&mut self, flush: RequestId, ranks: &[usize]) {
        if !self.is_complete(flush) {
            return;
        }
        for &rank in ranks {
            if let Some(puts) = self.puts.get_mut(rank).filter(|puts| puts.flush == Some(flush)) {
                (puts.last, puts.others) = (None, false);
            }
        }
    }

    /// Flushes in flight that more than one call waits for.
    #[cfg(test)]
    pub(super) fn flushes_joined(&self) -> usize {
        self.requests.values().filter(|request| request.flush.is_some()).count()
    }

    /// A transfer has ended, well or badly. A flush or an atomic operation can fail too; those never counted in the window.
    pub(super) fn transfer_ended(&mut self, token: Token, failed: Option<String>) {
        if let Some(request) = self.requests.get_mut(token.0)
            && request.admitted > 0
        {
            request.admitted -= 1;
            self.in_flight -= 1;
        }
        self.complete(token, |request| request.failed = failed.or(request.failed.take()));
    }

    /// One of the things that a request waits for has come.
    pub(super) fn complete(&mut self, token: Token, change: impl FnOnce(&mut Request)) {
        let Some(request) = self.requests.get_mut(token.0) else { return };
        change(request);
        request.outstanding -= 1;
        if request.outstanding > 0 {
            return;
        }
        if let (Some(outcome), Some(failure)) = (&request.flush, request.failed()) {
            // Only here: a request completes once.
            let _ = outcome.0.set(failure);
        }
        if request.detached || matches!(request.owner, Owner::Request { .. }) {
            self.forget(RequestId(token.0));
        }
    }

    /// Lets go of a request that no call waits for any more: its failure is kept for the next fence.
    pub(super) fn detach(&mut self, request: RequestId) {
        if let Some(entry) = self.get_mut(request) {
            entry.detached = true;
            if entry.outstanding == 0 {
                self.forget(request);
            }
        }
    }

    /// Takes out a complete request: what it owned and how it ended goes to its handle, its failure to the next fence.
    fn forget(&mut self, id: RequestId) {
        let Some(request) = self.remove(id) else { return };
        let failure = request.failed();
        if let Some(failure) = &failure {
            self.untold.insert(request.serial, failure.error());
        }
        if let Owner::Request { buffer, kept, outcome } = request.owner {
            // Only here: a request completes once.
            let _ = outcome.0.set(failure.map_or_else(|| Ok(kept.then_some(buffer)), Err));
        }
    }

    /// A failure that the caller reports: no fence does again.
    pub(super) fn told(&mut self, serial: Serial) {
        self.untold.remove(&serial);
    }

    /// A failure that was not reported yet, for a fence.
    pub(super) fn untold(&mut self) -> Option<Error> {
        self.untold.pop_first().map(|(_, error)| error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(serial: u64) -> Call {
        Call { serial: Serial(serial), request: Cell::new(None), late: Some((Label::new("a", "put"), true)) }
    }

    fn put(table: &mut Table, rank: usize, serial: u64) {
        let call = call(serial);
        table.put_at_once(&call, rank, Direction::Put);
        assert_eq!(call.request.get(), None);
    }

    fn begin(table: &mut Table, rank: Option<usize>, serial: u64) -> Flush {
        table.begin_flush(rank, Serial(serial), &Label::new("a", "fence"))
    }

    #[test]
    fn a_flush_covers_what_was_put_before_it_and_no_other_rank() {
        let mut table = Table::default();
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

    /// A put of the call does not hide one before it.
    #[test]
    fn a_rank_is_dirty_for_whoever_was_not_alone() {
        let mut table = Table::default();
        let is_dirty = |table: &Table| [1, 2].map(|serial| table.is_dirty(7, &call(serial)));
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
        let mut table = Table::default();
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
