//! The request table: what this rank has in flight, and what failed.
//!
//! It knows no network: the engine records what was issued and what `poll` reported. A request is complete when none of its transfers
//! is outstanding.
//!
//! A complete request stays only while a call of this rank waits for it. One that owns its memory leaves at once: what it brought goes
//! to an [`Outcome`] that its handle shares, and the next fence reports a failure. A forgotten handle leaks its outcome.

mod puts;

use std::{
    any::Any,
    cell::Cell,
    collections::BTreeMap,
    fmt,
    panic::Location,
    sync::{Arc, OnceLock},
};

use self::puts::Puts;
use crate::{
    comm::{Token, kit::slab::Slab},
    error::Error,
};
pub(super) use puts::{Flush, FlushOutcome};

/// The array, operation and caller of a request, for errors.
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
    /// Of a request that is not in the table from the start: its label, and true if it keeps its order.
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
    /// The last of them is a get.
    gets: bool,
    /// Comes after what the rank put before: where the network does not keep that order, the target is flushed first.
    pub(super) ordered: bool,
    /// How a flush failed, for the calls that wait for a flush that another began.
    flush: Option<FlushOutcome>,
}

/// Whose memory the transfers of a request touch.
#[derive(Debug)]
pub(super) enum Owner {
    /// The caller's. The caller waits for the request before the memory's life ends.
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
        let (peer, detached, admitted, gets) = (0, false, 0, false);
        Request { serial, label, peer, outstanding, failed, value, detached, owner, admitted, gets, ordered, flush }
    }

    /// Returns true if it waits for a single get.
    pub(super) fn is_one_get(&self) -> bool {
        self.outstanding == 1 && self.gets
    }

    fn failed(&self) -> Option<Failure> {
        self.failed.as_ref().map(|cause| Failure { label: self.label.clone(), peer: self.peer, cause: cause.clone() })
    }

    pub(super) fn failure(&self) -> Option<Error> {
        self.failed().map(|failure| failure.error())
    }
}

#[derive(Debug, Default)]
pub(super) struct RequestTable {
    requests: Slab<Request>,
    pub(super) in_flight: usize,
    /// The most that it ever was.
    pub(super) most_in_flight: usize,
    puts: Puts,
    /// Failures that no call has reported yet: the next fences do, the oldest first.
    untold: BTreeMap<Serial, Error>,
}

impl Drop for RequestTable {
    /// A rank that failed may end with transfers in flight, and its network goes on: their memory is given back to nobody.
    fn drop(&mut self) {
        for request in self.requests.drain().filter(|request| request.outstanding > 0) {
            std::mem::forget(request.owner);
        }
    }
}

impl RequestTable {
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

    /// The number of requests: those in flight, and those that a call is about to take.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.requests.values().count()
    }

    /// Takes out a complete request: the value that it brought, or why it failed.
    pub(super) fn end(&mut self, request: RequestId) -> Result<Option<u64>, Error> {
        let Some(request) = self.remove(request) else { return Ok(None) };
        request.failure().map_or(Ok(request.value), Err)
    }

    /// Returns true if nothing of a request is in flight. A request that is not in the table is complete.
    pub(super) fn is_complete(&self, request: RequestId) -> bool {
        self.get(request).is_none_or(|request| request.outstanding == 0)
    }

    /// Returns true if nothing is in flight of what was issued before `limit`.
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
        self.put_begins(call, rank, direction);
        if let (None, Some((label, ordered))) = (call.request.get(), &call.late) {
            let request = Request::new(call.serial, label.clone(), Owner::Caller, 0, *ordered);
            call.request.set(Some(self.enter(request)));
        }
        if let Some(request) = call.request.get().and_then(|request| self.get_mut(request)) {
            request.outstanding += 1;
            request.admitted += 1;
            request.peer = rank;
            request.gets = direction == Direction::Get;
        }
    }

    /// The label of a call, and true if its transfers keep their order.
    pub(super) fn label<'l>(&'l self, call: &'l Call) -> Option<(&'l Label, bool)> {
        match &call.late {
            Some((label, ordered)) => Some((label, *ordered)),
            None => self.get(call.request.get()?).map(|entry| (&entry.label, entry.ordered)),
        }
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
            outcome.fails(failure);
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
