//! The request table: what this rank has under way, what failed, and the one place where it waits.
//!
//! A *request* is one operation of a user: any number of transfers that carry its number as their token. It may own the buffer
//! that the network still reads or writes, so dropping or forgetting a handle never frees memory under a device. A request
//! whose handle is gone is detached: it is forgotten at its completion, or its failure kept for the next fence. A forgotten handle
//! detaches nothing, so a fence also tells the failures that still wait for their handles, each once.
//!
//! Waiting means: look, poll, look, let the conduit wait, and so on; every wait ends when the job is over. Handlers of messages
//! run inside `poll`; they touch memory and send one reply, nothing else. A reply that finds no room waits in a queue of its own
//! and is sent before anything new.

use std::{
    any::Any,
    collections::{BTreeMap, HashMap, VecDeque},
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

pub(crate) use super::lasting::Waiter;
use super::{
    AtomicOp, Conduit, Event, Events, Local, MessageClass, Token, WaitWord, lasting::Lasting, message::Message,
    node::apply_atomic,
};
use crate::{element::Element, error::Error};

/// Who asked for a request; for errors.
#[derive(Clone, Debug)]
pub(crate) struct Label {
    pub(crate) array: Arc<str>,
    pub(crate) operation: &'static str,
}

#[derive(Debug)]
struct Request {
    label: Label,
    peer: usize,
    outstanding: usize,
    failed: Option<String>,
    value: Option<u64>,
    detached: bool,
    owner: Owner,
    /// A fence has told the failure.
    told: bool,
    /// Transfers of it that count in the window.
    admitted: usize,
    /// Comes after what the rank put before: where the network does not keep that order, the target is flushed first.
    ordered: bool,
}

/// Whose memory the transfers of a request touch.
#[derive(Debug)]
enum Owner {
    /// The caller's, who waits for the request before the memory's life ends.
    Caller,
    /// The request's, until completion frees it.
    Request(#[allow(dead_code, reason = "held for its drop")] Buffer),
    /// The request's, until completion and until the handle asks for it.
    Handle(Buffer),
}

struct Buffer(Box<dyn Any + Send>);

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Buffer")
    }
}

#[derive(Debug, Default)]
struct Table {
    requests: HashMap<u64, Request>,
    in_flight: usize,
    /// Ranks with puts that were not flushed yet, and the request that put last.
    dirty: BTreeMap<usize, u64>,
    /// Failures whose handles are gone.
    uncollected: Vec<Error>,
    replies: VecDeque<(usize, Message)>,
    mail: HashMap<u64, VecDeque<(usize, [u64; 3])>>,
}

/// A rank's operations on its conduit.
#[derive(Debug)]
pub(crate) struct Engine {
    conduit: Arc<dyn Conduit>,
    table: Mutex<Table>,
    next: AtomicU64,
    timeout: Option<Duration>,
}

/// Names a request of an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequestId(u64);

impl Waiter for Label {
    fn operation(&self) -> String {
        format!("{} of array \"{}\"", self.operation, self.array)
    }
    fn missing(&self) -> String {
        "the completion of a transfer".into()
    }
}

impl Request {
    fn new(label: Label, owner: Owner, outstanding: usize, ordered: bool) -> Self {
        let (failed, value) = (None, None);
        Request { label, peer: 0, outstanding, failed, value, detached: false, owner, told: false, admitted: 0, ordered }
    }

    fn failure(&self) -> Option<Error> {
        let (array, operation) = (self.label.array.to_string(), self.label.operation);
        self.failed.as_ref().map(|cause| Error::Transfer { array, operation, peer: self.peer, cause: cause.clone() })
    }
}

/// A request that owns its memory while its transfers are issued.
#[derive(Debug)]
pub(crate) struct Issuing<'e> {
    engine: &'e Engine,
    request: RequestId,
}

impl Issuing<'_> {
    pub(crate) fn request(&self) -> RequestId {
        self.request
    }
}

impl Drop for Issuing<'_> {
    fn drop(&mut self) {
        Engine::complete(&mut self.engine.lock(), Token(self.request.0), |_| {});
    }
}

impl Engine {
    pub(crate) fn new(conduit: Arc<dyn Conduit>, timeout: Option<f64>) -> Self {
        let timeout = timeout.map(Duration::from_secs_f64);
        Engine { conduit, table: Mutex::default(), next: AtomicU64::new(1), timeout }
    }

    pub(crate) fn conduit(&self) -> &dyn Conduit {
        &*self.conduit
    }

    pub(crate) fn rank(&self) -> usize {
        self.conduit.rank()
    }

    /// An error once the job is over.
    #[inline]
    pub(crate) fn check(&self, operation: &'static str) -> Result<(), Error> {
        if self.conduit.over().load(Ordering::Relaxed) == 0 { Ok(()) } else { Err(self.over(operation)) }
    }

    #[cold]
    pub(crate) fn over(&self, operation: &'static str) -> Error {
        Error::JobEnded { operation, cause: self.conduit.over_cause() }
    }

    // ---- transfers ------------------------------------------------------------------------------------------------------

    /// A new request without transfers; they will touch memory of the caller.
    pub(crate) fn begin(&self, label: Label) -> RequestId {
        self.insert(label, Owner::Caller, 0, true)
    }

    /// A new request whose transfers may overtake others: the caller keeps what order it needs.
    pub(crate) fn begin_unordered(&self, label: Label) -> RequestId {
        self.insert(label, Owner::Caller, 0, false)
    }

    /// A new request that owns the memory that its transfers will touch. It is not complete before the answer is dropped.
    ///
    /// The memory is freed at completion or, if it is `collected`, kept for [`collect`](Self::collect).
    pub(crate) fn begin_owning(&self, label: Label, buffer: Box<dyn Any + Send>, collected: bool) -> Issuing<'_> {
        let buffer = Buffer(buffer);
        let owner = if collected { Owner::Handle(buffer) } else { Owner::Request(buffer) };
        // The one that is outstanding is the issuing itself.
        Issuing { engine: self, request: self.insert(label, owner, 1, false) }
    }

    fn insert(&self, label: Label, owner: Owner, outstanding: usize, ordered: bool) -> RequestId {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        self.lock().requests.insert(id, Request::new(label, owner, outstanding, ordered));
        RequestId(id)
    }

    /// Adds a put to a request, waiting while the window is full.
    ///
    /// # Safety
    /// As [`Conduit::put`], until the request is complete.
    pub(crate) unsafe fn put(
        &self,
        request: RequestId,
        rank: usize,
        offset: usize,
        ptr: *const u8,
        len: usize,
    ) -> Result<(), Error> {
        let longest = self.conduit.capabilities().longest_transfer;
        let mut at = 0;
        while at < len {
            let part = (len - at).min(longest);
            self.admit(request, rank, true)?;
            // SAFETY: inside the caller's memory, which is valid as long as the conduit needs it.
            let local = Local { ptr: unsafe { ptr.add(at) }.cast_mut(), len: part, key: None };
            // SAFETY: the caller's promise.
            unsafe { self.conduit.put(rank, offset + at, local, Token(request.0)) };
            at += part;
        }
        Ok(())
    }

    /// Adds a get to a request, waiting while the window is full.
    ///
    /// # Safety
    /// As [`Conduit::get`], until the request is complete.
    pub(crate) unsafe fn get(
        &self,
        request: RequestId,
        rank: usize,
        offset: usize,
        ptr: *mut u8,
        len: usize,
    ) -> Result<(), Error> {
        let longest = self.conduit.capabilities().longest_transfer;
        let mut at = 0;
        while at < len {
            let part = (len - at).min(longest);
            self.admit(request, rank, false)?;
            // SAFETY: inside the caller's memory, which is valid as long as the conduit needs it.
            let local = Local { ptr: unsafe { ptr.add(at) }, len: part, key: None };
            // SAFETY: the caller's promise.
            unsafe { self.conduit.get(rank, offset + at, local, Token(request.0)) };
            at += part;
        }
        Ok(())
    }

    fn admit(&self, request: RequestId, rank: usize, put: bool) -> Result<(), Error> {
        let window = self.conduit.capabilities().window;
        loop {
            let mut table = self.lock();
            if let Some(&last) = table.dirty.get(&rank)
                && last != request.0
                && !self.keeps_order(put)
                && let Some(entry) = table.requests.get(&request.0).filter(|entry| entry.ordered)
            {
                let label = entry.label.clone();
                drop(table);
                self.flush(Some(rank), &label)?;
                continue;
            }
            if table.in_flight < window {
                table.in_flight += 1;
                if put {
                    table.dirty.insert(rank, request.0);
                }
                if let Some(request) = table.requests.get_mut(&request.0) {
                    request.outstanding += 1;
                    request.admitted += 1;
                    request.peer = rank;
                }
                return Ok(());
            }
            drop(table);
            self.check("a transfer")?;
            self.progress();
            self.conduit.wait(Duration::from_micros(20));
        }
    }

    /// Whether the network keeps a put, or else a get, behind earlier puts to the same target.
    fn keeps_order(&self, put: bool) -> bool {
        let order = self.conduit.capabilities().order;
        if put { order.put_put } else { order.put_get }
    }

    /// Waits until everything that was put to a rank, or to all, is visible there.
    fn flush(&self, rank: Option<usize>, label: &Label) -> Result<(), Error> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let ranks: Vec<usize> = {
            // Under one lock: a fence of another thread sees either what is not flushed yet or the flush that is under way.
            let mut table = self.lock();
            let ranks = match rank {
                Some(rank) => table.dirty.remove_entry(&rank).into_iter().map(|(rank, _)| rank).collect(),
                None => std::mem::take(&mut table.dirty).into_keys().collect::<Vec<_>>(),
            };
            if ranks.is_empty() {
                return Ok(());
            }
            table.requests.insert(id, Request::new(label.clone(), Owner::Caller, ranks.len(), false));
            ranks
        };
        ranks.into_iter().for_each(|rank| self.conduit.flush(rank, Token(id)));
        self.wait(RequestId(id))
    }

    /// Waits for all transfers of a request and forgets it.
    pub(crate) fn wait(&self, request: RequestId) -> Result<(), Error> {
        self.finish(request).map(|_| ())
    }

    fn finish(&self, id: RequestId) -> Result<Option<u64>, Error> {
        Ok(self.take(id)?.and_then(|request| request.value))
    }

    /// Waits for all transfers of a request, forgets it, and returns the memory that it kept for its handle.
    pub(crate) fn collect<B: Any>(&self, request: RequestId) -> Result<Option<B>, Error> {
        let kept = self.take(request)?.and_then(|request| match request.owner {
            Owner::Handle(buffer) => buffer.0.downcast::<B>().ok(),
            Owner::Caller | Owner::Request(_) => None,
        });
        Ok(kept.map(|buffer| *buffer))
    }

    /// Waits for all transfers of a request and takes it out of the table.
    fn take(&self, id: RequestId) -> Result<Option<Request>, Error> {
        let Some(label) = self.lock().requests.get(&id.0).map(|request| request.label.clone()) else { return Ok(None) };
        let request = self.wait_until(&label, || {
            let mut table = self.lock();
            let done = table.requests.get(&id.0).is_none_or(|request| request.outstanding == 0);
            done.then(|| table.requests.remove(&id.0))
        })?;
        match request.as_ref().and_then(Request::failure) {
            Some(error) => Err(error),
            None => Ok(request),
        }
    }

    /// Whether a request is complete; makes progress.
    pub(crate) fn test(&self, request: RequestId) -> bool {
        self.progress();
        self.lock().requests.get(&request.0).is_none_or(|request| request.outstanding == 0)
    }

    /// Lets go of a request: what becomes of it is told by the next fence.
    pub(crate) fn detach(&self, request: RequestId) {
        let mut table = self.lock();
        if let Some(entry) = table.requests.get_mut(&request.0) {
            entry.detached = true;
            if entry.outstanding == 0 {
                Self::forget(&mut table, request.0);
            }
        }
    }

    fn forget(table: &mut Table, id: u64) {
        if let Some(request) = table.requests.remove(&id).filter(|request| !request.told) {
            table.uncollected.extend(request.failure());
        }
    }

    /// Everything that this rank put before is visible at its targets, or only at `rank`; returns what failed since the last
    /// fence.
    pub(crate) fn fence(&self, rank: Option<usize>, label: &Label) -> Result<(), Error> {
        // What was stored into mapped memory: pairs with the acquire of whoever is told about it.
        std::sync::atomic::fence(Ordering::SeqCst);
        if self.conduit.capabilities().window == usize::MAX {
            // Nothing is ever in flight on a conduit with mapped peers only.
            return Ok(());
        }
        // What was begun before this call; other threads may go on.
        let limit = self.next.load(Ordering::Relaxed);
        self.wait_until(label, || {
            let table = self.lock();
            table.requests.iter().filter(|&(&id, _)| id < limit).all(|(_, request)| request.outstanding == 0).then_some(())
        })?;
        self.flush(rank, label)?;
        let mut table = self.lock();
        let Table { requests, uncollected, .. } = &mut *table;
        // What fails under a caller's own memory is told by the call that waits for it.
        for request in requests.values_mut().filter(|r| !r.told && r.outstanding == 0 && !matches!(r.owner, Owner::Caller)) {
            if let Some(error) = request.failure() {
                request.told = true;
                uncollected.push(error);
            }
        }
        match uncollected.pop() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// An operation on a word of another rank's memory; the old value.
    #[allow(clippy::too_many_arguments, reason = "a word of another rank and what to do with it")]
    pub(crate) fn atomic(
        &self,
        rank: usize,
        offset: usize,
        op: AtomicOp,
        width: usize,
        operand: u64,
        comparand: u64,
        label: &Label,
    ) -> Result<u64, Error> {
        if let Some(base) = self.conduit.mapped(rank) {
            self.check(label.operation)?;
            // SAFETY: `offset` names an aligned word of a committed block, as the callers' types guarantee.
            return Ok(unsafe { apply_atomic(base.as_ptr().add(offset), op, width, operand, comparand) });
        }
        // No network keeps an atomic behind earlier puts by promise.
        self.flush(Some(rank), label)?;
        let request = self.begin(label.clone());
        if let Some(entry) = self.lock().requests.get_mut(&request.0) {
            entry.outstanding = 1;
            entry.peer = rank;
        }
        if self.conduit.capabilities().native.atomics {
            // SAFETY: as above.
            unsafe { self.conduit.atomic(rank, offset, op, width, operand, comparand, Token(request.0)) };
        } else {
            let message = Message::Atomic { token: request.0, op, width, offset, operand, comparand };
            if let Err(error) = self.send(rank, MessageClass::Request, &message, label) {
                // No answer will come; nobody may wait for one.
                self.lock().requests.remove(&request.0);
                return Err(error);
            }
        }
        Ok(self.finish(request)?.unwrap_or(0))
    }

    /// Puts a slice and waits until it may be used again.
    pub(crate) fn put_slice(&self, rank: usize, offset: usize, from: &[u8], label: &Label) -> Result<(), Error> {
        let request = self.begin(label.clone());
        // SAFETY: the slice is borrowed until the request is complete: `finish_borrowed` does not return before.
        let issued = unsafe { self.put(request, rank, offset, from.as_ptr(), from.len()) };
        self.finish_borrowed(request, issued)
    }

    /// Gets into a slice.
    pub(crate) fn get_slice(&self, rank: usize, offset: usize, to: &mut [u8], label: &Label) -> Result<(), Error> {
        let request = self.begin(label.clone());
        // SAFETY: the slice is borrowed until the request is complete: `finish_borrowed` does not return before.
        let issued = unsafe { self.get(request, rank, offset, to.as_mut_ptr(), to.len()) };
        self.finish_borrowed(request, issued)
    }

    /// Gets single elements, one from each (rank, byte offset).
    pub(crate) fn get_list<T: Element>(
        &self,
        places: impl Iterator<Item = (usize, usize)>,
        to: &mut [T],
        label: &Label,
    ) -> Result<(), Error> {
        let request = self.begin(label.clone());
        let issued = to.iter_mut().zip(places).try_for_each(|(to, (rank, offset))| {
            // SAFETY: the slice is borrowed until the request is complete: `finish_borrowed` does not return before.
            unsafe { self.get(request, rank, offset, std::ptr::from_mut(to).cast(), size_of::<T>()) }
        });
        self.finish_borrowed(request, issued)
    }

    /// Puts single elements, one to each (rank, byte offset).
    pub(crate) fn put_list<T: Element>(
        &self,
        places: impl Iterator<Item = (usize, usize)>,
        from: &[T],
        label: &Label,
    ) -> Result<(), Error> {
        let request = self.begin(label.clone());
        let issued = from.iter().zip(places).try_for_each(|(from, (rank, offset))| {
            // SAFETY: as in `get_list`.
            unsafe { self.put(request, rank, offset, std::ptr::from_ref(from).cast(), size_of::<T>()) }
        });
        self.finish_borrowed(request, issued)
    }

    /// Waits for a request whose transfers touch memory that the caller borrows, also when something failed: nothing may touch it
    /// after this returns. Where completion cannot be had the process ends.
    pub(crate) fn finish_borrowed(&self, request: RequestId, issued: Result<(), Error>) -> Result<(), Error> {
        let waited = self.wait(request);
        if waited.is_err() {
            // The wait may have ended because the job did, with transfers still under way. A conduit completes or fails what it
            // holds when polled; give it the time that the supervisor gives us.
            let deadline = self.conduit.now() + Duration::from_secs(2);
            while !self.test(request) {
                if self.conduit.now() > deadline {
                    std::process::abort();
                }
                self.conduit.wait(Duration::from_millis(1));
            }
            self.detach(request);
        }
        issued.and(waited)
    }

    // ---- messages -------------------------------------------------------------------------------------------------------

    fn send(&self, rank: usize, class: MessageClass, message: &Message, label: &Label) -> Result<(), Error> {
        let (bytes, len) = message.encode();
        self.wait_until(label, || self.conduit.send(rank, class, &bytes[..len]).is_ok().then_some(()))
    }

    /// Sends three words to the same key of another rank.
    pub(crate) fn mail(&self, rank: usize, key: u64, words: [u64; 3], label: &Label) -> Result<(), Error> {
        self.send(rank, MessageClass::Request, &Message::Mail { key, words }, label)
    }

    /// The next three words that were sent to a key, and by whom.
    pub(crate) fn receive_mail(&self, key: u64, waiter: &dyn Waiter) -> Result<(usize, [u64; 3]), Error> {
        self.wait_until(waiter, || {
            let mut table = self.lock();
            let queue = table.mail.get_mut(&key)?;
            let first = queue.pop_front();
            if queue.is_empty() {
                table.mail.remove(&key);
            }
            first
        })
    }

    // ---- progress -------------------------------------------------------------------------------------------------------

    /// Polls once and handles what happened.
    pub(crate) fn progress(&self) {
        let mut events = Events::new();
        self.conduit.poll(&mut events);
        let mut table = self.lock();
        for event in events {
            match event {
                Event::LocalDone(token) => {
                    Self::readmit(&mut table, token);
                    Self::complete(&mut table, token, |_| {});
                }
                Event::RemoteDone(token) => Self::complete(&mut table, token, |_| {}),
                Event::Value(token, value) => Self::complete(&mut table, token, |request| request.value = Some(value)),
                Event::Failed(token, cause) => {
                    // A flush or an atomic operation can fail too; those never counted in the window.
                    Self::readmit(&mut table, token);
                    Self::complete(&mut table, token, |request| request.failed = Some(cause.0));
                }
                Event::Message { from, bytes, len } => self.handle(&mut table, from, Message::decode(&bytes[..len])),
                // The conduit also says so through `over`, which every wait looks at.
                Event::PeerLost { rank, cause } => table.uncollected.push(Error::RankFailed { rank, cause: cause.0 }),
            }
        }
        while let Some((rank, reply)) = table.replies.pop_front() {
            let (bytes, len) = reply.encode();
            if self.conduit.send(rank, MessageClass::Reply, &bytes[..len]).is_err() {
                table.replies.push_front((rank, reply));
                break;
            }
        }
    }

    /// One transfer of a request has left the window, if it has any there.
    fn readmit(table: &mut Table, token: Token) {
        if let Some(request) = table.requests.get_mut(&token.0)
            && request.admitted > 0
        {
            request.admitted -= 1;
            table.in_flight -= 1;
        }
    }

    fn complete(table: &mut Table, token: Token, change: impl FnOnce(&mut Request)) {
        let Some(request) = table.requests.get_mut(&token.0) else { return };
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
            Self::forget(table, token.0);
        }
    }

    fn handle(&self, table: &mut Table, from: usize, message: Option<Message>) {
        match message {
            Some(Message::Atomic { token, op, width, offset, operand, comparand }) => {
                let inside = offset.checked_add(width).is_some_and(|end| end <= self.conduit.segment_len());
                if inside && offset % width == 0 {
                    // SAFETY: aligned and inside our own segment; the peer named a word of a committed block, and a hole of the
                    // segment would only be filled with a page.
                    let value =
                        unsafe { apply_atomic(self.conduit.segment().as_ptr().add(offset), op, width, operand, comparand) };
                    table.replies.push_back((from, Message::Value { token, value }));
                }
            }
            Some(Message::Value { token, value }) => Self::complete(table, Token(token), |request| request.value = Some(value)),
            Some(Message::Mail { key, words }) => table.mail.entry(key).or_default().push_back((from, words)),
            None => {}
        }
    }

    // ---- waiting --------------------------------------------------------------------------------------------------------

    /// Waits until `ready` has something, making progress.
    pub(crate) fn wait_until<R>(&self, waiter: &dyn Waiter, ready: impl FnMut() -> Option<R>) -> Result<R, Error> {
        self.look_every(Duration::from_millis(50), waiter, ready)
    }

    /// The same for what comes without a word to this rank, a lock that is released for instance: looks after every `pause`.
    pub(crate) fn look_every<R>(
        &self,
        pause: Duration,
        waiter: &dyn Waiter,
        mut ready: impl FnMut() -> Option<R>,
    ) -> Result<R, Error> {
        let mut lasting = Lasting::new(&*self.conduit, self.timeout);
        loop {
            if let Some(result) = ready() {
                return Ok(result);
            }
            self.progress();
            if let Some(result) = ready() {
                return Ok(result);
            }
            lasting.look(waiter)?;
            self.conduit.wait(pause);
        }
    }

    /// Waits until a word of this rank's own or mapped memory has a value that `ready` accepts.
    #[inline]
    pub(crate) fn wait_word(&self, word: &WaitWord, waiter: &dyn Waiter, ready: impl Fn(u32) -> bool) -> Result<(), Error> {
        let seen = word.load();
        if ready(seen) {
            return Ok(());
        }
        self.conduit.wait_on(word, seen, Duration::from_millis(50));
        if ready(word.load()) {
            return Ok(());
        }
        self.wait_word_longer(word, waiter, &ready)
    }

    #[cold]
    fn wait_word_longer(&self, word: &WaitWord, waiter: &dyn Waiter, ready: &dyn Fn(u32) -> bool) -> Result<(), Error> {
        let mut lasting = Lasting::new(&*self.conduit, self.timeout);
        loop {
            self.progress();
            let seen = word.load();
            if ready(seen) {
                return Ok(());
            }
            lasting.look(waiter)?;
            self.conduit.wait_on(word, seen, Duration::from_millis(50));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
