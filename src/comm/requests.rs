//! The request table: what this rank has in flight, and what failed.
//!
//! It is a value without a network: the engine records in it what was issued and what `poll` reported. A request counts its outstanding
//! transfers; at zero it is complete.
//!
//! A complete request stays in the table only while a call of this rank waits for it. One that owns its memory leaves: what it
//! brought goes to an [`Outcome`] that its handle shares, and a failure is noted for the next fence. So the table holds what is under
//! way and no more, whatever becomes of handles: the outcome is freed with a handle that is dropped, and leaks with one that is
//! forgotten, as whatever a forgotten value owns.

use std::{
    any::Any,
    collections::{BTreeMap, HashMap, VecDeque},
    fmt,
    sync::{Arc, OnceLock},
};

use super::{Token, engine::Call, transfers::Direction};
use crate::error::Error;

/// Who asked for a request; for errors.
#[derive(Clone, Debug)]
pub(crate) struct Label {
    pub(crate) array: Arc<str>,
    pub(crate) operation: &'static str,
}

/// Names a request of an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequestId(pub(super) u64);

/// The handle's side of a request that owns its memory.
#[derive(Debug)]
pub(crate) struct Ticket {
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
        let (array, operation) = (self.label.array.to_string(), self.label.operation);
        Error::Transfer { array, operation: operation.into(), peer: self.peer, cause: self.cause.clone() }
    }
}

#[derive(Debug)]
pub(super) struct Request {
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
    pub(super) fn new(label: Label, owner: Owner, outstanding: usize, ordered: bool) -> Self {
        let (failed, value, flush) = (None, None, None);
        Request { label, peer: 0, outstanding, failed, value, detached: false, owner, admitted: 0, ordered, flush }
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
    pub(super) requests: HashMap<u64, Request>,
    pub(super) in_flight: usize,
    /// The most that it ever was.
    pub(super) most_in_flight: usize,
    /// Ranks with puts that are not known to be visible yet.
    dirty: BTreeMap<usize, Dirty>,
    /// Failures that no call has reported yet, by request: the next fences do, the oldest first.
    untold: BTreeMap<u64, Error>,
    pub(super) mail: HashMap<u64, VecDeque<(usize, [u64; 3])>>,
}

impl Drop for Table {
    /// A rank that failed may end with transfers in flight, and its network goes on: their memory is given back to nobody.
    fn drop(&mut self) {
        for (_, request) in self.requests.drain().filter(|(_, request)| request.outstanding > 0) {
            std::mem::forget(request.owner);
        }
    }
}

/// What is known of the puts to one rank.
#[derive(Debug)]
struct Dirty {
    /// The request that put last.
    last: RequestId,
    /// The flush in flight that covers them all.
    flush: Option<RequestId>,
}

impl Table {
    /// Whether nothing of a request is in flight; a request that is not in the table is complete.
    pub(super) fn is_complete(&self, request: RequestId) -> bool {
        self.requests.get(&request.0).is_none_or(|request| request.outstanding == 0)
    }

    /// One more transfer of a call with `rank`, in the window; the first brings the call into the table.
    pub(super) fn admit(&mut self, call: &Call, rank: usize, direction: Direction) {
        self.in_flight += 1;
        self.most_in_flight = self.most_in_flight.max(self.in_flight);
        self.put_at_once(call, rank, direction);
        if let Some((label, ordered)) = &call.late
            && !call.is_entered.replace(true)
        {
            self.requests.insert(call.id.0, Request::new(label.clone(), Owner::Caller, 0, *ordered));
        }
        if let Some(request) = self.requests.get_mut(&call.id.0) {
            request.outstanding += 1;
            request.admitted += 1;
            request.peer = rank;
        }
    }

    /// A transfer of a call with `rank` that was complete at once.
    pub(super) fn put_at_once(&mut self, call: &Call, rank: usize, direction: Direction) {
        if direction == Direction::Put {
            self.dirty.insert(rank, Dirty { last: call.id, flush: None });
        }
    }

    /// Whose call it is, if its transfers keep their order.
    pub(super) fn label_if_ordered(&self, call: &Call) -> Option<Label> {
        match &call.late {
            Some((label, ordered)) => ordered.then(|| label.clone()),
            None => self.requests.get(&call.id.0).filter(|entry| entry.ordered).map(|entry| entry.label.clone()),
        }
    }

    /// Whether a rank has puts of other requests than this one that may not be visible yet.
    pub(super) fn is_dirty(&self, rank: usize, request: RequestId) -> bool {
        self.dirty.get(&rank).is_some_and(|dirty| dirty.last != request)
    }

    /// Begins to flush a rank, or all: the ranks to be flushed by `id`, and the flushes of other threads that cover the rest.
    pub(super) fn begin_flush(
        &mut self,
        rank: Option<usize>,
        id: RequestId,
        label: &Label,
    ) -> (Vec<usize>, Vec<(RequestId, FlushOutcome)>) {
        let (mut begun, mut joined) = (Vec::new(), Vec::new());
        let requests = &mut self.requests;
        let mut begin = |rank: usize, dirty: &mut Dirty| match dirty.flush {
            None => {
                dirty.flush = Some(id);
                begun.push(rank);
                true
            }
            Some(flush) => match requests.get_mut(&flush.0).filter(|request| request.outstanding > 0) {
                Some(request) => {
                    joined.push((flush, request.flush.get_or_insert_default().clone()));
                    true
                }
                // Its thread gave up waiting, or has not come to tell yet.
                None => false,
            },
        };
        match rank {
            None => self.dirty.retain(|&rank, dirty| begin(rank, dirty)),
            Some(rank) => {
                if self.dirty.get_mut(&rank).is_some_and(|dirty| !begin(rank, dirty)) {
                    self.dirty.remove(&rank);
                }
            }
        }
        if !begun.is_empty() {
            self.requests.insert(id.0, Request::new(label.clone(), Owner::Caller, begun.len(), false));
        }
        (begun, joined)
    }

    /// Flushes in flight that more than one call waits for.
    #[cfg(test)]
    pub(super) fn flushes_joined(&self) -> usize {
        self.requests.values().filter(|request| request.flush.is_some()).count()
    }

    /// What a flush covers is visible, unless it did not end.
    pub(super) fn end_flush(&mut self, ranks: &[usize], id: RequestId) {
        if self.is_complete(id) {
            for rank in ranks {
                if self.dirty.get(rank).is_some_and(|dirty| dirty.flush == Some(id)) {
                    self.dirty.remove(rank);
                }
            }
        }
    }

    /// A transfer has ended, well or badly. A flush or an atomic operation can fail too; those never counted in the window.
    pub(super) fn transfer_ended(&mut self, token: Token, failed: Option<String>) {
        if let Some(request) = self.requests.get_mut(&token.0)
            && request.admitted > 0
        {
            request.admitted -= 1;
            self.in_flight -= 1;
        }
        self.complete(token, |request| request.failed = failed.or(request.failed.take()));
    }

    /// One of the things that a request waits for has come.
    pub(super) fn complete(&mut self, token: Token, change: impl FnOnce(&mut Request)) {
        let Some(request) = self.requests.get_mut(&token.0) else { return };
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
            self.forget(token.0);
        }
    }

    /// Lets go of a request that no call waits for any more: its failure is kept for the next fence.
    pub(super) fn detach(&mut self, request: RequestId) {
        if let Some(entry) = self.requests.get_mut(&request.0) {
            entry.detached = true;
            if entry.outstanding == 0 {
                self.forget(request.0);
            }
        }
    }

    /// Takes out a complete request: what it owned and how it ended goes to its handle, its failure to the next fence.
    fn forget(&mut self, id: u64) {
        let Some(request) = self.requests.remove(&id) else { return };
        let failure = request.failed();
        if let Some(failure) = &failure {
            self.untold.insert(id, failure.error());
        }
        if let Owner::Request { buffer, kept, outcome } = request.owner {
            // Only here: a request completes once.
            let _ = outcome.0.set(failure.map_or_else(|| Ok(kept.then_some(buffer)), Err));
        }
    }

    /// A failure that the caller reports: no fence does again.
    pub(super) fn told(&mut self, request: RequestId) {
        self.untold.remove(&request.0);
    }

    /// A failure that was not reported yet, for a fence.
    pub(super) fn untold(&mut self) -> Option<Error> {
        self.untold.pop_first().map(|(_, error)| error)
    }
}
