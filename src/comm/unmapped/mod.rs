//! A network inside one machine: any conduit with its fast path hidden, from everybody or between nodes.
//!
//! Hidden from everybody, the caller's own segment included, every operation has to go through put, get, flush and messages. Hidden
//! between nodes, which are then groups of so many consecutive ranks, the ranks of a node keep their fast path and those of
//! different nodes use the network. So the protocols that real networks need, and those that use both roads, are run by the
//! whole test suite on any machine. It is also a harsh network: nothing happens before somebody polls, transfers complete in a
//! scrambled order, most puts are visible at their target only when it is flushed or much later, none of the optional operations
//! exists, and only targets that poll answer messages. So a fence that is missing shows.
//!
//! The machine stays one: its memory and its cores are shared by all ranks, whatever their nodes.

use std::{
    io,
    ops::Range,
    ptr::NonNull,
    sync::{Arc, Mutex, PoisonError, atomic::AtomicU32},
    time::Duration,
};

use super::{Capabilities, Conduit, Event, Events, Full, Local, MessageClass, Progress, PublishedWait, Token, WaitWord};
use crate::memory::kernels;

/// How long a wait may overlook what was put or sent meanwhile: nobody rings a bell on this network.
const BLIND: Duration = Duration::from_micros(100);

/// One put of so many is visible at once; the others wait for a flush.
const PROMPT: usize = 4;

/// Or for so many polls of their rank: about a tenth of a second in a wait.
const LINGER: u64 = 1000;

/// The most puts of a rank that wait for a flush; a further one makes room. It bounds the memory of a program that never fences.
const MOST_LATE: usize = 256;

/// The token of a late put when it goes to its target at last: no request has this number.
const LATE: Token = Token(0);

#[derive(Debug)]
enum Waiting {
    Put { rank: usize, offset: usize, local: Local, token: Token },
    Get { rank: usize, offset: usize, local: Local, token: Token },
}

/// A put that is complete for its caller and not visible yet.
#[derive(Debug)]
struct Late {
    rank: usize,
    offset: usize,
    bytes: Vec<u8>,
    /// The poll at which it became complete for its caller.
    since: u64,
}

#[derive(Debug, Default)]
struct Queue {
    transfers: Vec<Waiting>,
    flushes: Vec<(usize, Token)>,
    late: Vec<Late>,
    polls: u64,
    scramble: u64,
}

impl Queue {
    /// A number below `bound`, of a cheap generator.
    fn pick(&mut self, bound: usize) -> usize {
        self.scramble = self.scramble.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.scramble >> 33) as usize % bound
    }
}

/// Which ranks still see each other's memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sight {
    /// The number of consecutive ranks that are a node; else nodes are as they were.
    pub(crate) ranks_per_node: Option<usize>,
    /// Nobody sees anything, be it inside a node.
    pub(crate) none: bool,
}

/// A conduit in front of which what is mapped is hidden.
#[derive(Debug)]
pub(crate) struct Unmapped {
    inner: Arc<dyn Conduit>,
    sight: Sight,
    capabilities: Capabilities,
    queue: Mutex<Queue>,
}

// SAFETY: the raw pointers in the queue are those of `put` and `get`, whose callers promise that the memory may be used until the
// completion is polled, by whichever thread polls.
unsafe impl Send for Unmapped {}
// SAFETY: as above; the queue is behind a mutex.
unsafe impl Sync for Unmapped {}

impl Unmapped {
    pub(crate) fn new(inner: Arc<dyn Conduit>, sight: Sight) -> Self {
        let mut capabilities = Capabilities { progress: Progress::Caller, ..Capabilities::default() };
        capabilities.window = 16;
        capabilities.longest_transfer = 1 << 20;
        capabilities.crowded = inner.capabilities().crowded;
        Unmapped { inner, sight, capabilities, queue: Mutex::default() }
    }
}

impl Conduit for Unmapped {
    fn name(&self) -> &'static str {
        if self.sight.none { "unmapped" } else { self.inner.name() }
    }

    fn rank(&self) -> usize {
        self.inner.rank()
    }

    fn size(&self) -> usize {
        self.inner.size()
    }

    fn node(&self, rank: usize) -> usize {
        self.sight.ranks_per_node.map_or_else(|| self.inner.node(rank), |ranks| rank / ranks)
    }

    fn machine(&self, rank: usize) -> usize {
        self.inner.machine(rank)
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn segment(&self) -> NonNull<u8> {
        self.inner.segment()
    }

    fn segment_len(&self) -> usize {
        self.inner.segment_len()
    }

    fn mapped(&self, rank: usize) -> Option<NonNull<u8>> {
        let hidden = self.sight.none || self.node(rank) != self.node(self.rank());
        if hidden { None } else { self.inner.mapped(rank) }
    }

    fn commit(&self, range: Range<usize>) -> io::Result<()> {
        self.inner.commit(range)
    }

    fn release(&self, range: Range<usize>) -> io::Result<()> {
        self.inner.release(range)
    }

    fn committed(&self) -> u64 {
        self.inner.committed()
    }

    unsafe fn put(&self, rank: usize, offset: usize, local: Local, token: Token) {
        self.lock().transfers.push(Waiting::Put { rank, offset, local, token });
    }

    unsafe fn get(&self, rank: usize, offset: usize, local: Local, token: Token) {
        self.lock().transfers.push(Waiting::Get { rank, offset, local, token });
    }

    fn flush(&self, rank: usize, token: Token) {
        self.lock().flushes.push((rank, token));
    }

    fn send(&self, rank: usize, class: MessageClass, bytes: &[u8]) -> Result<(), Full> {
        self.inner.send(rank, class, bytes)
    }

    fn poll(&self, events: &mut Events) {
        {
            let mut queue = self.lock();
            queue.polls += 1;
            let since = queue.polls;
            queue.late.extract_if(.., |late| since - late.since > LINGER).for_each(|late| self.land(&late));
            while !queue.transfers.is_empty() {
                // Any order is allowed.
                let (count, prompt) = (queue.transfers.len(), queue.pick(PROMPT) == 0);
                let at = queue.pick(count);
                // The inner conduit reports the completion under the same token.
                match queue.transfers.swap_remove(at) {
                    Waiting::Put { rank, offset, local, token } if !prompt => {
                        let mut bytes = vec![0; local.len];
                        // SAFETY: the caller of `put` promises that the memory is readable until the completion, which is reported
                        // below; the copy is as long as it and apart from it.
                        unsafe { kernels::copy(bytes.as_mut_ptr(), local.ptr, local.len) };
                        if queue.late.len() == MOST_LATE {
                            let first = queue.late.remove(0);
                            self.land(&first);
                        }
                        queue.late.push(Late { rank, offset, bytes, since });
                        events.push(Event::LocalDone(token));
                    }
                    // SAFETY: the promises of our caller are those that the inner conduit asks for.
                    Waiting::Put { rank, offset, local, token } => unsafe { self.inner.put(rank, offset, local, token) },
                    // SAFETY: as above.
                    Waiting::Get { rank, offset, local, token } => unsafe { self.inner.get(rank, offset, local, token) },
                }
            }
            for (rank, token) in std::mem::take(&mut queue.flushes) {
                queue.late.extract_if(.., |late| late.rank == rank).for_each(|late| self.land(&late));
                events.push(Event::RemoteDone(token));
            }
            std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
        }
        self.inner.poll(events);
        events.retain(|event| !matches!(event, Event::LocalDone(LATE)));
    }

    fn now(&self) -> Duration {
        self.inner.now()
    }

    fn wait(&self, limit: Duration) {
        let busy = {
            let queue = self.lock();
            !queue.transfers.is_empty() || !queue.flushes.is_empty()
        };
        if !busy {
            self.inner.wait(limit.min(BLIND));
        }
    }

    fn wait_on(&self, word: &WaitWord, seen: u32, limit: Duration) {
        self.inner.wait_on(word, seen, limit.min(BLIND));
    }

    fn wake(&self, word: &WaitWord) {
        self.inner.wake(word);
    }

    fn over(&self) -> &AtomicU32 {
        self.inner.over()
    }

    fn over_cause(&self) -> String {
        self.inner.over_cause()
    }

    fn end(&self, cause: &str) {
        self.inner.end(cause);
    }

    fn last_seen(&self, rank: usize) -> Option<[u64; 2]> {
        self.inner.last_seen(rank)
    }

    fn publish(&self, place: [u64; 2]) {
        self.inner.publish(place);
    }

    fn publish_wait(&self, awaited: Option<usize>, object: &str) {
        self.inner.publish_wait(awaited, object);
    }

    fn published_wait(&self, rank: usize) -> Option<PublishedWait> {
        self.inner.published_wait(rank)
    }

    fn published_object(&self, rank: usize) -> String {
        self.inner.published_object(rank)
    }
}

impl Unmapped {
    /// Makes a late put visible.
    fn land(&self, late: &Late) {
        let local = Local { ptr: late.bytes.as_ptr().cast_mut(), len: late.bytes.len(), key: None };
        // SAFETY: a put only reads the bytes, and the conduits of one machine have done so when it returns; who put them promised
        // that the target is committed, and it stays so until this rank's next fence.
        unsafe { self.inner.put(late.rank, late.offset, local, LATE) }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
