//! One rank's view of the fabric: the conduit of jobs inside one node.
//!
//! Everything is mapped, so the arrays never call `put` and `get` here; they are complete all the same, because the unmapped
//! conduit stands on them and the conformance suite tests them.

use std::{
    collections::VecDeque,
    io,
    ops::Range,
    ptr::NonNull,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use super::{Fabric, Patience, threads_of_this_process};
use crate::{
    comm::{
        AtomicOp, Capabilities, Conduit, Event, Events, Full, HeapKind, Local, MessageClass, Native, Ordering as Order, Progress,
        PublishedWait, SignalOp, SignalWord, Token, WaitWord,
    },
    memory::{atomic_op::apply_atomic, kernels},
};

/// The half of a wait's word that names the awaited rank.
const LOW: u64 = u32::MAX as u64;

/// One rank of a fabric.
#[derive(Debug)]
pub(crate) struct Member {
    name: &'static str,
    fabric: Arc<Fabric>,
    rank: usize,
    capabilities: Capabilities,
    patience: Patience,
    start: Instant,
    /// Threads that the conduit knows of in this process: those of ranks, and who waits for them to end.
    threads: usize,
    /// What the rank is called in the job, whose ranks may outnumber the node's, and how many they are.
    number: usize,
    of: usize,
    /// What was done at once and is still to be reported; its lock is also the right to read the inboxes.
    done: Mutex<VecDeque<Event>>,
}

impl Member {
    /// Rank `rank`, in a process that has `threads` threads when the program starts none.
    pub(crate) fn new(name: &'static str, fabric: Arc<Fabric>, rank: usize, cores: usize, threads: usize) -> Self {
        let mut capabilities = Capabilities { window: usize::MAX, heap: HeapKind::Local, ..Capabilities::default() };
        capabilities.order = Order { put_put: true, put_get: true };
        capabilities.granule = fabric.mapping.granule();
        capabilities.progress = Progress::Hardware;
        capabilities.native = Native { atomics: true, coherent: true, signals: true, ..Native::default() };
        capabilities.crowded = fabric.ranks() > cores;
        let patience = Patience::new(fabric.ranks(), cores);
        let of = fabric.ranks();
        let (start, done) = (Instant::now(), Mutex::default());
        Member { name, fabric, rank, capabilities, patience, start, threads, number: rank, of, done }
    }

    /// The same as rank `number` of a job of `of` ranks that has other nodes too.
    #[cfg(feature = "mpi")]
    pub(crate) fn named(self, number: usize, of: usize) -> Self {
        Member { number, of, ..self }
    }

    /// First byte of the segment of a rank of the node.
    #[cfg(feature = "mpi")]
    pub(crate) fn segment_of(&self, rank: usize) -> NonNull<u8> {
        self.fabric.segment(rank)
    }

    /// Whether `poll` would report something.
    pub(crate) fn has_news(&self) -> bool {
        let waiting = [MessageClass::Reply, MessageClass::Request].iter().any(|&c| !self.fabric.inbox(self.rank, c).is_empty());
        waiting || self.done.lock().map_or(true, |done| !done.is_empty())
    }

    fn report(&self, event: Event) {
        self.done.lock().unwrap_or_else(PoisonError::into_inner).push_back(event);
    }

    /// A range of this rank's segment; its last piece may reach beyond the end.
    fn in_mapping(&self, range: Range<usize>) -> Range<usize> {
        let start = self.fabric.segment_start(self.rank);
        start + range.start..start + range.end.min(self.segment_len())
    }

    fn address(&self, rank: usize, offset: usize, len: usize) -> *mut u8 {
        let limit = self.fabric.segment_len();
        assert!(offset <= limit && len <= limit - offset, "{len} bytes at {offset} of a segment of {limit} bytes");
        // SAFETY: the range was just checked against the segment.
        unsafe { self.fabric.segment(rank).as_ptr().add(offset) }
    }
}

impl Conduit for Member {
    fn name(&self) -> &'static str {
        self.name
    }

    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.fabric.ranks()
    }

    fn node(&self, _rank: usize) -> usize {
        0
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn segment(&self) -> NonNull<u8> {
        self.fabric.segment(self.rank)
    }

    fn segment_len(&self) -> usize {
        self.fabric.segment_len()
    }

    fn mapped(&self, rank: usize) -> Option<NonNull<u8>> {
        Some(self.fabric.segment(rank))
    }

    fn commit(&self, range: Range<usize>) -> io::Result<()> {
        let range = self.in_mapping(range);
        self.fabric.mapping.commit(range.clone())?;
        self.fabric.committed().fetch_add(range.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    fn release(&self, range: Range<usize>) -> io::Result<()> {
        let range = self.in_mapping(range);
        self.fabric.mapping.release(range.clone())?;
        self.fabric.committed().fetch_sub(range.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    fn committed(&self) -> u64 {
        self.fabric.committed().load(Ordering::Relaxed)
    }

    unsafe fn put(&self, rank: usize, offset: usize, local: Local, token: Token) {
        let to = self.address(rank, offset, local.len);
        if local.len == size_of::<u32>() && to.cast::<u32>().is_aligned() {
            let mut value = [0; size_of::<u32>()];
            // SAFETY: the caller promises `local`, which is as long as `value`.
            unsafe { kernels::copy(value.as_mut_ptr(), local.ptr, value.len()) };
            // SAFETY: `address` checked the target, it is aligned, and everybody accesses it by atomics or kernels.
            let word = unsafe { AtomicU32::from_ptr(to.cast()) };
            // It may be a `WaitWord`. Release pairs with the Acquire of its `load`: the fence of `flush` orders both too, but a
            // sanitizer follows atomics and no fences.
            word.store(u32::from_ne_bytes(value), Ordering::Release);
        } else {
            // SAFETY: `address` checked the target; the caller promises `local`. A segment and private memory are apart.
            unsafe { kernels::copy(to, local.ptr, local.len) };
        }
        self.report(Event::LocalDone(token));
    }

    unsafe fn get(&self, rank: usize, offset: usize, local: Local, token: Token) {
        let from = self.address(rank, offset, local.len);
        // SAFETY: as in `put`, the other way round.
        unsafe { kernels::copy(local.ptr, from, local.len) };
        self.report(Event::LocalDone(token));
    }

    fn flush(&self, _rank: usize, token: Token) {
        std::sync::atomic::fence(Ordering::SeqCst);
        self.report(Event::RemoteDone(token));
    }

    fn send(&self, rank: usize, class: MessageClass, bytes: &[u8]) -> Result<(), Full> {
        self.fabric.inbox(rank, class).push(self.rank, bytes)?;
        let bell = &self.fabric.control(rank).bell;
        bell.add(1);
        bell.wake();
        Ok(())
    }

    fn poll(&self, events: &mut Events) {
        // Two threads of a rank that poll at once: the second has nothing to do.
        let Ok(mut done) = self.done.try_lock() else { return };
        events.extend(done.drain(..));
        for class in [MessageClass::Reply, MessageClass::Request] {
            while let Some((from, bytes, len)) = self.fabric.inbox(self.rank, class).pop() {
                events.push(Event::Message { from, bytes, len });
            }
        }
    }

    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn wait(&self, limit: Duration) {
        let control = self.fabric.control(self.rank);
        let seen = control.bell.load();
        if !self.has_news() {
            self.patience.wait(&control.bell, seen, limit);
        }
    }

    #[inline]
    fn wait_on(&self, word: &WaitWord, seen: u32, limit: Duration) {
        if word.load() == seen {
            self.patience.wait(word, seen, limit);
        }
    }

    #[inline]
    fn wake(&self, word: &WaitWord) {
        word.wake();
    }

    fn over(&self) -> &AtomicU32 {
        self.fabric.over()
    }

    fn over_cause(&self) -> String {
        self.fabric.cause()
    }

    fn end(&self, cause: &str) {
        self.fabric.end(Some(self.number), cause);
    }

    fn last_seen(&self, rank: usize) -> Option<[u64; 2]> {
        Some(self.fabric.control(rank).place.each_ref().map(|word| word.load(Ordering::Relaxed)))
    }

    #[inline]
    fn publish(&self, place: [u64; 2]) {
        for (to, word) in self.fabric.control(self.rank).place.iter().zip(place) {
            to.store(word, Ordering::Relaxed);
        }
    }

    fn publish_wait(&self, awaited: Option<usize>, object: &str) {
        let control = self.fabric.control(self.rank);
        let last = control.wait.load(Ordering::Relaxed);
        // Another thread of the rank may do what the awaited one waits for.
        let code = awaited.filter(|_| threads_of_this_process().is_ok_and(|threads| threads <= self.threads));
        let code = code.map_or(0, |rank| rank as u64 + 1);
        if code != last & LOW {
            if code != 0 {
                control.object.set(object);
            }
            // Release pairs with the Acquire in `published_wait`: what was done before this wait is seen with it.
            control.wait.store((last >> 32).wrapping_add(1) << 32 | code, Ordering::Release);
        }
        control.looks.fetch_add(1, Ordering::Release);
    }

    fn published_wait(&self, rank: usize) -> Option<PublishedWait> {
        let control = self.fabric.control(rank);
        let wait = control.wait.load(Ordering::Acquire);
        let awaited = ((wait & LOW) as usize).checked_sub(1).filter(|&awaited| awaited < self.of)?;
        Some(PublishedWait { awaited, number: (wait >> 32) as u32, looks: control.looks.load(Ordering::Acquire) })
    }

    fn published_object(&self, rank: usize) -> String {
        self.fabric.control(rank).object.get()
    }

    unsafe fn put_signal(&self, rank: usize, offset: usize, local: Local, signal: SignalWord, token: Token) {
        let to = self.address(rank, offset, local.len);
        // SAFETY: `address` checked the target; the caller promises `local`. A segment and private memory are apart.
        unsafe { kernels::copy(to, local.ptr, local.len) };
        let word = self.address(rank, signal.offset, size_of::<WaitWord>()).cast::<WaitWord>();
        assert!(word.is_aligned(), "a signal at byte {}", signal.offset);
        // SAFETY: checked just now; it holds atomics only, for which any bits are valid, and the segment lives as long as self.
        let word = unsafe { &*word };
        match signal.op {
            SignalOp::Set => word.store(signal.value),
            SignalOp::Add => {
                word.add(signal.value);
            }
        }
        word.wake();
        self.report(Event::LocalDone(token));
    }

    unsafe fn atomic(&self, rank: usize, offset: usize, op: AtomicOp, width: usize, operand: u64, comparand: u64, token: Token) {
        let word = self.address(rank, offset, width);
        // SAFETY: `address` checked the range, the caller promises alignment, committed memory and a width of 4 or 8.
        let old = unsafe { apply_atomic(word, op, width, operand, comparand) };
        self.report(Event::Value(token, old));
    }
}
