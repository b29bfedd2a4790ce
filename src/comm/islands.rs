//! A network for tests: ranks share memory by twos or threes, and the adapter's atomic operations do not exclude the processors'.
//!
//! An atomic operation of the adapter reads the word, lets time pass and writes it: nothing else of the adapter comes between,
//! but a processor may. The adapter may have signals, and keep puts in order, or not. Islands with a [`post`](super::post) also
//! take strided blocks, and accumulates for their owners.

use std::{
    io,
    ops::Range,
    ptr::NonNull,
    sync::{Arc, Mutex, atomic::AtomicU32},
    time::Duration,
};

use super::{
    AtomicOp, Capabilities, Conduit, Event, Events, Full, Local, Loops, MessageClass, Native, PublishedWait, Scale, SignalWord,
    Token, WaitWord, apply_atomic,
    post::{Act, Block, Desk, Post},
    unmapped::{Sight, Unmapped},
};

/// There is one adapter.
static ADAPTER: Mutex<()> = Mutex::new(());

#[derive(Debug)]
pub(crate) struct Islands {
    memory: Arc<dyn Conduit>,
    network: Unmapped,
    capabilities: Capabilities,
    values: Mutex<Vec<Event>>,
    desk: Option<Desk>,
}

/// What the adapter can do beside atomic operations.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Adapter {
    pub(crate) signals: bool,
    /// Puts arrive in their order; else in any, and none before somebody polls.
    pub(crate) ordered: bool,
    /// Ranks of an island.
    pub(crate) island: usize,
    /// Ranks are said to outnumber the cores; else they are said to have one each.
    pub(crate) crowded: bool,
}

impl Islands {
    pub(crate) fn new(memory: Arc<dyn Conduit>, adapter: Adapter) -> Self {
        let network = Unmapped::new(memory.clone(), Sight { ranks_per_node: Some(adapter.island), none: false });
        let mut capabilities = network.capabilities().clone();
        capabilities.native = Native { atomics: true, signals: adapter.signals, ..Native::default() };
        capabilities.order.put_put = adapter.ordered;
        capabilities.crowded = adapter.crowded;
        Islands { memory, network, capabilities, values: Mutex::default(), desk: None }
    }

    /// With a post between all ranks.
    pub(crate) fn with_post(memory: Arc<dyn Conduit>, post: Arc<Post>) -> Self {
        let adapter = Adapter { signals: false, ordered: false, island: 2, crowded: true };
        let mut islands = Islands::new(memory.clone(), adapter);
        islands.capabilities.native.blocks = true;
        islands.capabilities.native.accumulate = true;
        islands.desk = Some(Desk::new(post, memory));
        islands
    }

    fn take(&self, act: Act, rank: usize, offset: usize, loops: &Loops, local: *mut u8, token: Token) {
        let desk = self.desk.as_ref().expect("what is announced");
        desk.take(Block { act, rank, offset, loops: loops.clone(), local, token });
    }
}

impl Conduit for Islands {
    fn name(&self) -> &'static str {
        "islands"
    }
    fn rank(&self) -> usize {
        self.memory.rank()
    }
    fn size(&self) -> usize {
        self.memory.size()
    }
    fn node(&self, rank: usize) -> usize {
        self.network.node(rank)
    }
    fn machine(&self, rank: usize) -> usize {
        self.network.machine(rank)
    }
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }
    fn segment(&self) -> NonNull<u8> {
        self.memory.segment()
    }
    fn segment_len(&self) -> usize {
        self.memory.segment_len()
    }
    fn mapped(&self, rank: usize) -> Option<NonNull<u8>> {
        self.network.mapped(rank)
    }
    fn commit(&self, range: Range<usize>) -> io::Result<()> {
        self.memory.commit(range)
    }
    fn release(&self, range: Range<usize>) -> io::Result<()> {
        self.memory.release(range)
    }
    fn committed(&self) -> u64 {
        self.memory.committed()
    }
    unsafe fn put(&self, rank: usize, offset: usize, local: Local, token: Token) {
        // SAFETY: the promises are the same.
        unsafe {
            if self.capabilities.order.put_put {
                self.memory.put(rank, offset, local, token);
            } else {
                self.network.put(rank, offset, local, token);
            }
        }
    }
    unsafe fn get(&self, rank: usize, offset: usize, local: Local, token: Token) {
        // SAFETY: the promises are the same.
        unsafe { self.network.get(rank, offset, local, token) }
    }
    fn cancel(&self, token: Token) {
        self.network.cancel(token);
    }
    fn flush(&self, rank: usize, token: Token) {
        match &self.desk {
            Some(desk) => desk.flush(rank, token),
            None => self.network.flush(rank, token),
        }
    }
    fn send(&self, rank: usize, class: MessageClass, bytes: &[u8]) -> Result<(), Full> {
        self.network.send(rank, class, bytes)
    }
    fn poll(&self, events: &mut Events) {
        events.append(&mut self.values.lock().unwrap());
        if let Some(desk) = &self.desk {
            desk.poll(events).into_iter().for_each(|(rank, token)| self.network.flush(rank, token));
        }
        self.network.poll(events);
    }
    fn now(&self) -> Duration {
        self.memory.now()
    }
    fn wait(&self, limit: Duration) {
        if self.values.lock().unwrap().is_empty() && self.desk.as_ref().is_none_or(Desk::is_idle) {
            self.network.wait(limit);
        }
    }
    fn wait_on(&self, word: &WaitWord, seen: u32, limit: Duration) {
        self.network.wait_on(word, seen, limit);
    }
    fn wake(&self, word: &WaitWord) {
        self.memory.wake(word);
    }
    fn over(&self) -> &AtomicU32 {
        self.memory.over()
    }
    fn over_cause(&self) -> String {
        self.memory.over_cause()
    }
    fn end(&self, cause: &str) {
        self.memory.end(cause);
    }
    fn last_seen(&self, rank: usize) -> Option<[u64; 2]> {
        self.memory.last_seen(rank)
    }
    fn publish(&self, place: [u64; 2]) {
        self.memory.publish(place);
    }
    fn publish_wait(&self, awaited: Option<usize>, object: &str) {
        self.memory.publish_wait(awaited, object);
    }
    fn published_wait(&self, rank: usize) -> Option<PublishedWait> {
        self.memory.published_wait(rank)
    }
    fn published_object(&self, rank: usize) -> String {
        self.memory.published_object(rank)
    }
    unsafe fn put_signal(&self, rank: usize, offset: usize, local: Local, signal: SignalWord, token: Token) {
        let _alone = ADAPTER.lock().unwrap();
        // SAFETY: the promises are the same.
        unsafe { self.memory.put_signal(rank, offset, local, signal, token) }
    }
    unsafe fn atomic(&self, rank: usize, offset: usize, op: AtomicOp, width: usize, operand: u64, comparand: u64, token: Token) {
        let _alone = ADAPTER.lock().unwrap();
        // SAFETY: all of the memory is mapped for the adapter; the caller vouches for the word.
        let word = unsafe { self.memory.mapped(rank).expect("threads").as_ptr().add(offset) };
        // SAFETY: as above; adding zero reads.
        let old = unsafe { apply_atomic(word, AtomicOp::Load, width, 0, 0) };
        std::thread::sleep(Duration::from_micros(50));
        let mut new = old;
        // SAFETY: a word of our own, little-endian as the machine that tests run on.
        unsafe { apply_atomic((&raw mut new).cast(), op, width, operand, comparand) };
        if op != AtomicOp::CompareSwap || new != old {
            // SAFETY: as for the load.
            unsafe { apply_atomic(word, AtomicOp::Swap, width, new, 0) };
        }
        self.values.lock().unwrap().push(Event::Value(token, old));
    }
    unsafe fn put_block(&self, rank: usize, offset: usize, loops: &Loops, local: *const u8, token: Token) {
        self.take(Act::Put, rank, offset, loops, local.cast_mut(), token);
    }
    unsafe fn get_block(&self, rank: usize, offset: usize, loops: &Loops, local: *mut u8, token: Token) {
        self.take(Act::Get, rank, offset, loops, local, token);
    }
    unsafe fn accumulate_block(
        &self,
        rank: usize,
        offset: usize,
        loops: &Loops,
        local: *const u8,
        scale: &Scale,
        lock: usize,
        token: Token,
    ) {
        self.take(Act::Add { scale: *scale, lock }, rank, offset, loops, local.cast_mut(), token);
    }
}
