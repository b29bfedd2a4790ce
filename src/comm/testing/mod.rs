//! A network for tests of the engine: rank 0 of two, with a function as the other side. Or rank 0 of any number, with a clock and
//! published waits that are the test's.

pub(crate) mod apart;
pub(crate) mod islands;
pub(crate) mod post;
pub(crate) mod watched;

use std::{
    fmt, io,
    ops::Range,
    ptr::NonNull,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use super::{
    Atomic, AtomicOp, Capabilities, Conduit, Event, Events, Full, Issued, Local, Mail, Operations, PublishedWait, Remote,
    SignalWord, Token, Topology, WaitWord,
};

/// A call of the engine.
#[derive(Clone, Copy, Debug)]
pub(in crate::comm) enum Call {
    Put(Token),
    PutSignal { len: usize, signal: SignalWord, token: Token },
    Get(Token),
    Flush(Token),
    Atomic { op: AtomicOp, operand: u64, token: Token },
    Poll,
}

/// Answers a call. The poll itself reports the answer, or the next one does.
type Peer = Box<dyn Fn(Call) -> Option<Event> + Send + Sync>;

pub(in crate::comm) struct Fake {
    pub(super) capabilities: Capabilities,
    pub(super) topology: Topology,
    /// What each rank has published, if the ranks are more than two or wait at all.
    pub(super) waits: Arc<Mutex<Vec<Option<PublishedWait>>>>,
    /// The time, if the test has it.
    pub(super) clock: Option<Arc<Mutex<Duration>>>,
    /// Its answer for all that was put, if it gives one.
    pub(super) visible: Option<Arc<AtomicBool>>,
    peer: Peer,
    queue: Mutex<Vec<Event>>,
    over: AtomicU32,
    cause: Mutex<String>,
    start: Instant,
}

impl Fake {
    pub(in crate::comm) fn new(peer: impl Fn(Call) -> Option<Event> + Send + Sync + 'static) -> Self {
        Fake {
            capabilities: Capabilities::default(),
            topology: Topology::one_machine(0, 2).with_ranks_per_node(1),
            waits: Arc::new(Mutex::new(vec![None; 2])),
            clock: None,
            visible: None,
            peer: Box::new(peer),
            queue: Mutex::default(),
            over: AtomicU32::new(0),
            cause: Mutex::default(),
            start: Instant::now(),
        }
    }

    fn call(&self, call: Call) {
        let answer = (self.peer)(call);
        self.queue.lock().unwrap().extend(answer);
    }
}

impl fmt::Debug for Fake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fake")
    }
}

impl Operations for Fake {
    fn cancel(&self, _: Token) {}

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    unsafe fn put(&self, _: Remote, _: Local, token: Token) -> Issued {
        self.call(Call::Put(token));
        Issued::Pending
    }

    unsafe fn put_signal(&self, _: Remote, Local { len, .. }: Local, signal: SignalWord, token: Token) -> Issued {
        self.call(Call::PutSignal { len, signal, token });
        Issued::Pending
    }

    unsafe fn get(&self, _: Remote, _: Local, token: Token) -> Issued {
        self.call(Call::Get(token));
        Issued::Pending
    }

    fn flush(&self, _: usize, token: Token) {
        self.call(Call::Flush(token));
    }

    fn is_flushed(&self, _: usize) -> bool {
        self.visible.as_ref().is_some_and(|visible| visible.load(Ordering::SeqCst))
    }

    fn mail(&self, _: usize, _: Mail) -> Result<(), Full> {
        Ok(())
    }

    fn poll(&self, events: &mut Events) {
        events.extend((self.peer)(Call::Poll));
        events.append(&mut self.queue.lock().unwrap());
    }

    unsafe fn atomic(&self, _: Remote, Atomic { op, operand, .. }: Atomic, token: Token) {
        self.call(Call::Atomic { op, operand, token });
    }
}

impl Conduit for Fake {
    fn topology(&self) -> &Topology {
        &self.topology
    }

    fn segment(&self) -> NonNull<u8> {
        NonNull::dangling()
    }

    fn segment_len(&self) -> usize {
        0
    }

    fn mapped(&self, _: usize) -> Option<NonNull<u8>> {
        None
    }

    fn one_copy(&self, list: &[usize]) -> Arc<[usize]> {
        list.into()
    }

    fn commit(&self, _: Range<usize>) -> io::Result<()> {
        Ok(())
    }

    fn release(&self, _: Range<usize>) -> io::Result<()> {
        Ok(())
    }

    fn committed(&self) -> u64 {
        0
    }

    fn now(&self) -> Duration {
        self.clock.as_ref().map_or_else(|| self.start.elapsed(), |clock| *clock.lock().unwrap())
    }

    fn wait(&self, limit: Duration) {
        std::thread::sleep(limit.min(Duration::from_millis(1)));
    }

    fn wait_on(&self, _: &WaitWord, _: u32, limit: Duration) {
        self.wait(limit);
    }

    fn over(&self) -> &AtomicU32 {
        &self.over
    }

    fn over_cause(&self) -> String {
        self.cause.lock().unwrap().clone()
    }

    fn end(&self, cause: &str) {
        *self.cause.lock().unwrap() = cause.into();
        self.over.store(1, Ordering::Relaxed);
    }

    fn last_seen(&self, _: usize) -> Option<[u64; 2]> {
        None
    }

    fn publish(&self, _: [u64; 2]) {}

    fn publish_wait(&self, awaited: Option<usize>, _: &str) {
        let own = &mut self.waits.lock().unwrap()[0];
        *own = awaited.map(|awaited| {
            let (number, at) = (own.map_or(0, |last| last.number + 1), Duration::MAX);
            let first = PublishedWait { awaited, number, looks: 0, at };
            let wait = own.filter(|last| last.awaited == awaited).unwrap_or(first);
            PublishedWait { looks: wait.looks + 1, ..wait }
        });
    }

    fn name_call(&self, _: u64, _: &dyn Fn() -> String) -> u64 {
        0
    }

    fn call(&self, _: usize, _: u64) -> String {
        String::new()
    }

    fn publish_end(&self) {}

    fn has_ended(&self, _: usize) -> bool {
        false
    }

    fn knows_ends(&self) -> bool {
        false
    }

    fn have_others_ended(&self) -> bool {
        false
    }

    fn published_wait(&self, rank: usize, _hops: usize) -> Option<PublishedWait> {
        self.waits.lock().unwrap()[rank].map(|wait| PublishedWait { at: wait.at.min(self.now()), ..wait })
    }

    fn look_at_all(&self) -> Option<String> {
        None
    }

    fn published_object(&self, _: usize) -> String {
        String::new()
    }
}
