//! The request table: what this rank has under way, and what failed.
//!
//! It is a value without a network: the engine tells it what was issued and what `poll` reported. A request counts its outstanding
//! transfers; at zero it is complete. What becomes of it then depends on whose memory it holds and whether its handle is gone.

use std::{
    any::Any,
    collections::{BTreeMap, HashMap, VecDeque},
    fmt,
    sync::Arc,
};

use super::{Token, message::Message, transfers::Direction};
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

#[derive(Debug)]
pub(super) struct Request {
    pub(super) label: Label,
    pub(super) peer: usize,
    pub(super) outstanding: usize,
    failed: Option<String>,
    pub(super) value: Option<u64>,
    detached: bool,
    pub(super) owner: Owner,
    /// A fence has told the failure.
    told: bool,
    /// Transfers of it that count in the window.
    admitted: usize,
    /// Comes after what the rank put before: where the network does not keep that order, the target is flushed first.
    pub(super) ordered: bool,
}

/// Whose memory the transfers of a request touch.
#[derive(Debug)]
pub(super) enum Owner {
    /// The caller's, who waits for the request before the memory's life ends.
    Caller,
    /// The request's, until completion frees it.
    Request(#[allow(dead_code, reason = "held for its drop")] Buffer),
    /// The request's, until completion and until the handle asks for it.
    Handle(Buffer),
}

pub(super) struct Buffer(pub(super) Box<dyn Any + Send>);

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Buffer")
    }
}

impl Request {
    pub(super) fn new(label: Label, owner: Owner, outstanding: usize, ordered: bool) -> Self {
        let (failed, value) = (None, None);
        Request { label, peer: 0, outstanding, failed, value, detached: false, owner, told: false, admitted: 0, ordered }
    }

    pub(super) fn failure(&self) -> Option<Error> {
        let (array, operation) = (self.label.array.to_string(), self.label.operation);
        self.failed.as_ref().map(|cause| Error::Transfer {
            array,
            operation: operation.into(),
            peer: self.peer,
            cause: cause.clone(),
        })
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
    /// Failures whose handles are gone.
    pub(super) uncollected: Vec<Error>,
    pub(super) replies: VecDeque<(usize, Message)>,
    pub(super) mail: HashMap<u64, VecDeque<(usize, [u64; 3])>>,
}

impl Drop for Table {
    /// A rank that failed may end with transfers under way, and its network goes on: their memory is given back to nobody.
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
    /// The flush under way that covers them all.
    flush: Option<RequestId>,
}

impl Table {
    /// Whether nothing of a request is under way; what is not there is complete.
    pub(super) fn is_complete(&self, request: RequestId) -> bool {
        self.requests.get(&request.0).is_none_or(|request| request.outstanding == 0)
    }

    /// One more transfer of a request with `rank`, in the window.
    pub(super) fn admit(&mut self, request: RequestId, rank: usize, direction: Direction) {
        self.in_flight += 1;
        self.most_in_flight = self.most_in_flight.max(self.in_flight);
        if direction == Direction::Put {
            self.dirty.insert(rank, Dirty { last: request, flush: None });
        }
        if let Some(request) = self.requests.get_mut(&request.0) {
            request.outstanding += 1;
            request.admitted += 1;
            request.peer = rank;
        }
    }

    /// Whether a rank has puts of other requests than this one that may not be visible yet.
    pub(super) fn is_dirty(&self, rank: usize, request: RequestId) -> bool {
        self.dirty.get(&rank).is_some_and(|dirty| dirty.last != request)
    }

    /// Begins to flush a rank, or all: the ranks to be flushed by `id`, and the flushes of other threads that cover the rest.
    pub(super) fn begin_flush(&mut self, rank: Option<usize>, id: RequestId, label: &Label) -> (Vec<usize>, Vec<RequestId>) {
        let (mut begun, mut joined) = (Vec::new(), Vec::new());
        let requests = &self.requests;
        let mut begin = |rank: usize, dirty: &mut Dirty| match dirty.flush {
            None => {
                dirty.flush = Some(id);
                begun.push(rank);
                true
            }
            Some(flush) if requests.get(&flush.0).is_some_and(|request| request.outstanding > 0) => {
                joined.push(flush);
                true
            }
            // Its thread gave up waiting, or has not come to tell yet.
            Some(_) => false,
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
        if let Owner::Request(buffer) = &mut request.owner {
            // Nobody asks for more than whether it failed.
            *buffer = Buffer(Box::new(()));
            request.detached |= request.failed.is_none();
        }
        if request.detached {
            self.forget(token.0);
        }
    }

    /// Lets go of a request: its failure is kept for the next fence.
    pub(super) fn detach(&mut self, request: RequestId) {
        if let Some(entry) = self.requests.get_mut(&request.0) {
            entry.detached = true;
            if entry.outstanding == 0 {
                self.forget(request.0);
            }
        }
    }

    fn forget(&mut self, id: u64) {
        if let Some(request) = self.requests.remove(&id).filter(|request| !request.told) {
            self.uncollected.extend(request.failure());
        }
    }

    /// A failure that nobody was told yet, for a fence.
    pub(super) fn untold(&mut self) -> Option<Error> {
        // What fails under a caller's own memory is told by the call that waits for it.
        let ended = self.requests.values_mut().filter(|r| r.outstanding == 0 && !matches!(r.owner, Owner::Caller));
        for request in ended.filter(|request| !request.told) {
            if let Some(error) = request.failure() {
                request.told = true;
                self.uncollected.push(error);
            }
        }
        self.uncollected.pop()
    }
}
