//! The engine: a rank's operations on its conduit, and the life of a request from issue to the fence that reports its failure.
//!
//! A *request* is one operation of a user: any number of transfers. It may own the buffer that the network uses, so dropping or
//! forgetting a handle never frees memory under a device. The handle or the next fence reports its failure, whichever comes first;
//! a later handle repeats it.
//!
//! | file | contents |
//! |---|---|
//! | `requests`, `transfers`, `progress`, `waiting` | the table; what moves; what arrives; where a rank waits |
//! | `signals` | a put, then a word that announces it |
//! | `owned` | transfers that own their memory |
//! | `strided`, `accumulate`, `remote_lock` | protocols for memory that is not mapped |
//! | `addition` | the owner's side of accumulates |
//! | `append` | letters for a ring of a rank |
//! | `stripe_lock` | waits for the lock of mapped memory |
//! | `lasting`, `chain` | waits that last; deadlocks |

pub(crate) mod accumulate;
pub(crate) mod addition;
pub(crate) mod append;
pub(crate) mod chain;
pub(crate) mod lasting;
pub(crate) mod owned;
mod progress;
mod remote_lock;
mod requests;
mod signals;
pub(crate) mod strided;
pub(crate) mod stripe_lock;
mod transfers;
mod waiting;

use std::{
    any::Any,
    cell::Cell,
    sync::{
        Arc, MutexGuard,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use self::requests::{Buffer, Flush, Outcome, Owner, Request, RequestTable};
pub(crate) use self::{
    lasting::Waiter,
    requests::{Call, Label, RequestId, Serial, Ticket},
};
use super::{
    Awaited, Capabilities, Conduit, Operation, Token,
    kit::{mutex::Mutex, say::say},
};
use crate::error::Error;

/// A rank's operations on its conduit.
#[derive(Debug)]
pub(crate) struct Engine {
    conduit: Arc<Conduit>,
    /// The conduit's, which are asked for at each transfer.
    capabilities: Capabilities,
    table: Mutex<RequestTable>,
    /// The right to poll and to handle what came, see `progress`.
    polling: Mutex<()>,
    next: AtomicU64,
    /// The body of the rank returned: what another thread of the program still asks for would keep the rank from its end.
    body_ended: AtomicBool,
    timeout: Option<Duration>,
}

/// Which way an operation on a word goes: fixed for each word when it is made, the same from all ranks that could meet there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Road {
    /// The processor's; the rank is mapped.
    Processor,
    /// The network's, whether the rank is mapped or not.
    Network,
}

/// A request that owns its memory while its transfers are issued.
#[derive(Debug)]
pub(crate) struct Issuing<'e> {
    engine: &'e Engine,
    call: Call,
}

impl Issuing<'_> {
    pub(crate) fn call(&self) -> &Call {
        &self.call
    }
}

impl Drop for Issuing<'_> {
    fn drop(&mut self) {
        if let Some(request) = self.call.request.get() {
            self.engine.lock().complete(request.into(), |_| {});
        }
    }
}

impl Engine {
    pub(crate) fn new(conduit: Arc<Conduit>, timeout: Option<f64>) -> Self {
        let timeout = timeout.map(Duration::from_secs_f64);
        let capabilities = conduit.capabilities().clone();
        Engine {
            conduit,
            capabilities,
            table: Mutex::default(),
            polling: Mutex::default(),
            next: AtomicU64::new(1),
            body_ended: AtomicBool::new(false),
            timeout,
        }
    }

    pub(crate) fn conduit(&self) -> &Conduit {
        &self.conduit
    }

    pub(crate) fn rank(&self) -> usize {
        self.conduit.rank()
    }

    /// The body of the rank ended, well or not: nothing new begins.
    pub(crate) fn body_ended(&self) {
        self.body_ended.store(true, Ordering::Relaxed);
        self.conduit.body_ended();
    }

    #[inline]
    fn has_body_ended(&self) -> bool {
        self.body_ended.load(Ordering::Relaxed)
    }

    /// An error once the job is over, or the body of the rank has ended.
    #[inline]
    pub(crate) fn check(&self, operation: &'static str) -> Result<(), Error> {
        let is_over = self.conduit.over().load(Ordering::Relaxed) != 0 || self.has_body_ended();
        if is_over { Err(self.over(operation)) } else { Ok(()) }
    }

    #[cold]
    pub(crate) fn over(&self, operation: &'static str) -> Error {
        let cause = match self.conduit.over().load(Ordering::Relaxed) {
            0 => "the body of this rank has ended".into(),
            _ => self.conduit.over_cause(),
        };
        Error::JobEnded { operation: operation.into(), cause }
    }

    /// A new request, which will touch memory of the caller, for [`finish_call`](Self::finish_call).
    pub(crate) fn begin(&self, label: Label) -> Call {
        self.call(label, true)
    }

    /// A new request whose transfers may overtake others: the caller keeps what order it needs.
    pub(crate) fn begin_unordered(&self, label: Label) -> Call {
        self.call(label, false)
    }

    fn call(&self, label: Label, ordered: bool) -> Call {
        Call { serial: self.serial(), request: Cell::new(None), late: Some((label, ordered)) }
    }

    /// The next place in the order of calls.
    pub(crate) fn serial(&self) -> Serial {
        Serial(self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// A new request in the table, without transfers; they will touch memory of the caller. For
    /// [`finish_borrowed`](Self::finish_borrowed).
    pub(crate) fn enter(&self, label: Label, ordered: bool) -> (RequestId, Call) {
        let request = self.request(label, Owner::Caller, 0, ordered);
        let (serial, id) = (request.serial, self.lock().enter(request));
        (id, Call { serial, request: Cell::new(Some(id)), late: None })
    }

    /// As [`enter`](Self::enter), ordered, as one call with other requests: their transfers may overtake each other, but none of what this rank
    /// did before.
    pub(crate) fn enter_as(&self, call: Serial, label: Label) -> (RequestId, Call) {
        let id = self.lock().enter(self.request(label, Owner::Caller, 0, true));
        (id, Call { serial: call, request: Cell::new(Some(id)), late: None })
    }

    /// A new request that owns the memory that its transfers will touch. It is not complete before the first answer is dropped; the
    /// second is for its handle.
    ///
    /// The memory is freed at completion or, if it is `kept`, waits in the ticket for [`collect`](Self::collect).
    pub(crate) fn begin_owning(&self, label: Label, buffer: Box<dyn Any + Send + Sync>, kept: bool) -> (Issuing<'_>, Ticket) {
        let outcome = Arc::new(Outcome::default());
        let owner = Owner::Request { buffer: Buffer(buffer), kept, outcome: outcome.clone() };
        // The one that is outstanding is the issuing itself.
        let request = self.request(label, owner, 1, false);
        let (serial, id) = (request.serial, self.lock().enter(request));
        let call = Call { serial, request: Cell::new(Some(id)), late: None };
        (Issuing { engine: self, call }, Ticket { serial, request: id, outcome })
    }

    /// A new request for one event, which touches no memory. No fence waits for it.
    fn expect(&self, label: Label) -> RequestId {
        self.lock().enter(Request::new(Serial(u64::MAX), label, Owner::Caller, 1, false))
    }

    fn request(&self, label: Label, owner: Owner, outstanding: usize, ordered: bool) -> Request {
        Request::new(self.serial(), label, owner, outstanding, ordered)
    }

    /// Returns true if this process was forked by the rank, whose network is not its own.
    fn is_inherited(&self) -> bool {
        self.conduit.is_inherited()
    }

    /// Waits until everything that was put to a rank, or to all, is visible there.
    fn flush(&self, rank: Option<usize>, label: &Label) -> Result<(), Error> {
        self.check(label.operation)?;
        let mut table = self.lock();
        match table.see_flushed(rank, |rank| self.conduit.is_complete(Awaited::Puts(rank))) {
            true => Ok(()),
            false => self.flush_dirty(table, rank, label),
        }
    }

    /// Flushes what the table knows of. What another thread is about to put makes the rank dirty again when it has begun.
    fn flush_dirty(&self, mut table: MutexGuard<'_, RequestTable>, rank: Option<usize>, label: &Label) -> Result<(), Error> {
        let Flush { begun, joined } = table.begin_flush(rank, self.serial(), label);
        drop(table);
        if let Some((id, ranks)) = &begun {
            for &rank in ranks {
                // SAFETY: a flush touches no memory of the caller. Its end is an event.
                let _ = unsafe { self.conduit.issue(&Operation::Flush { rank }, Token::from(*id)) };
            }
        }
        if !joined.is_empty() {
            let waited = self.wait_until(label, || {
                let table = self.lock();
                joined.iter().all(|&(flush, _)| table.is_complete(flush)).then_some(())
            });
            if let Err(error) = waited {
                // Nobody waits for the flushes that this call began.
                begun.into_iter().for_each(|(id, _)| self.lock().detach(id));
                return Err(error);
            }
        }
        let joined = joined.iter().find_map(|(_, outcome)| outcome.failure()).map_or(Ok(()), Err);
        let Some((id, ranks)) = begun else { return joined };
        let flushed = self.wait(id);
        let mut table = self.lock();
        table.end_flush(id, &ranks);
        if flushed.is_err() {
            // A wait that timed out comes no more: the next fence reports what becomes of the flush.
            table.detach(id);
        }
        drop(table);
        flushed.and(joined)
    }

    /// Waits for all transfers of a request and forgets it.
    pub(crate) fn wait(&self, request: RequestId) -> Result<(), Error> {
        self.finish(request).map(|_| ())
    }

    /// Waits for all transfers of a request and takes it out of the table. Returns the value that it brought.
    fn finish(&self, id: RequestId) -> Result<Option<u64>, Error> {
        let mut table = self.lock();
        // Most puts, and gets of networks that answer at once.
        if table.is_complete(id) {
            return table.end(id);
        }
        let Some(request) = table.get(id) else { return Ok(None) };
        let (label, is_one_get) = (request.label.clone(), request.is_one_get());
        drop(table);
        if is_one_get && self.conduit.is_complete(Awaited::Get(id.into())) {
            let mut table = self.lock();
            table.transfer_ended(id.into(), None);
            return table.end(id);
        }
        self.wait_until(&label, || {
            let mut table = self.lock();
            table.is_complete(id).then(|| table.end(id))
        })?
    }

    /// Waits for all transfers of a request that owns its memory, and returns that if it was kept.
    pub(crate) fn collect<B: Any>(&self, ticket: Ticket) -> Result<Option<B>, Error> {
        if self.is_inherited() {
            // Another thread of the parent may have held the lock.
            self.check("wait")?;
        }
        let request = ticket.request;
        let label = self.lock().get(request).map(|request| request.label.clone());
        if let Some(label) = label {
            self.wait_until(&label, || self.lock().is_complete(request).then_some(()))?;
        }
        // The caller reports a failure: no fence has to.
        self.lock().told(ticket.serial);
        let kept = Outcome::take(ticket).transpose()?.flatten();
        Ok(kept.and_then(|buffer| buffer.0.downcast::<B>().ok()).map(|buffer| *buffer))
    }

    /// Makes progress. Returns true if a request is complete.
    pub(crate) fn test(&self, request: RequestId) -> bool {
        self.progress();
        self.lock().is_complete(request)
    }

    /// The most transfers that were in flight at once.
    pub(crate) fn most_in_flight(&self) -> usize {
        self.lock().most_in_flight
    }

    /// The requests in the table: those in flight, and those that a call is about to take.
    #[cfg(test)]
    pub(crate) fn requests_held(&self) -> usize {
        self.lock().held()
    }

    /// Lets go of a request that no call waits for any more: its failure is reported by the next fence.
    fn detach(&self, request: RequestId) {
        self.lock().detach(request);
    }

    /// Everything that this rank put before is visible at its targets, or only at `rank`; returns what failed since the last
    /// fence.
    pub(crate) fn fence(&self, rank: Option<usize>, label: &Label) -> Result<(), Error> {
        // For what was stored into mapped memory: pairs with the acquire of a thread that learns of it.
        std::sync::atomic::fence(Ordering::SeqCst);
        if !self.conduit.has_network() {
            return Ok(());
        }
        // What was begun before this call; other threads may go on.
        let limit = Serial(self.next.load(Ordering::Relaxed));
        self.check(label.operation)?;
        let mut table = self.lock();
        if !table.is_complete_before(limit) {
            drop(table);
            self.wait_until(label, || self.lock().is_complete_before(limit).then_some(()))?;
            self.check(label.operation)?;
            table = self.lock();
        }
        if table.see_flushed(rank, |rank| self.conduit.is_complete(Awaited::Puts(rank))) {
            return table.untold().map_or(Ok(()), Err);
        }
        self.flush_dirty(table, rank, label)?;
        self.lock().untold().map_or(Ok(()), Err)
    }

    /// Waits for a call's transfers, as [`finish_borrowed`](Self::finish_borrowed).
    pub(crate) fn finish_call(&self, call: Call, issued: Result<(), Error>) -> Result<(), Error> {
        match call.request.get() {
            Some(request) => self.finish_borrowed(request, issued),
            None => issued,
        }
    }

    /// Waits for a request whose transfers touch memory that the caller borrows, also when something failed: nothing may touch it
    /// after this returns. Where completion cannot be had the process ends.
    pub(crate) fn finish_borrowed(&self, request: RequestId, issued: Result<(), Error>) -> Result<(), Error> {
        let waited = self.wait(request);
        if self.is_inherited() {
            // What the transfers touch is the parent's memory.
            return issued.and(waited);
        }
        if let Err(error) = &waited {
            // The wait may have ended because the job did, or took too long, with transfers still under way. A conduit completes or
            // fails what it holds when polled; give it the time that the supervisor gives us. A lost machine completes nothing.
            self.conduit.cancel(request.into());
            let deadline = self.conduit.now() + Duration::from_millis(if self.conduit.fabric().has_lost() { 500 } else { 2000 });
            while !self.test(request) {
                if self.conduit.now() > deadline {
                    self.abort(request, error);
                }
                self.conduit.wait(Duration::from_millis(1));
            }
            // The caller has its error: no fence reports it again.
            self.lock().remove(request);
        }
        issued.and(waited)
    }

    /// Ends the process because of a request that may still touch memory of a caller that continues.
    #[cold]
    fn abort(&self, request: RequestId, error: &Error) -> ! {
        let operation = self.lock().get(request).map_or_else(String::new, |request| request.label.operation());
        let rank = self.rank();
        say(format_args!("rank {rank} is aborted: {operation} may still touch memory that is not its own: {error}"));
        std::process::abort()
    }

    fn lock(&self) -> MutexGuard<'_, RequestTable> {
        self.table.lock()
    }
}

#[cfg(test)]
mod tests;
