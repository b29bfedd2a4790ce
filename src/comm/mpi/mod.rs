//! Ranks that an MPI launcher started, on one node or on thousands.
//!
//! # Roads
//!
//! * **Inside a node** nothing of this folder is used: ranks map the same memory file (`crate::comm::node`), whose descriptor they
//!   open at start from the node's first rank, so that arrays load and store as over shared memory.
//! * **Between nodes** requests are records (`frame`), gathered into frames that MPI carries as ordinary messages. The target copies,
//!   adds under its accumulate lock, and applies atomic operations by its processor (`handle`). So atomic operations of the network and
//!   of processors exclude each other, and a strided patch is one request however many chunks it has. Long contiguous transfers
//!   are messages of their own (`net`).
//!
//! Why not MPI's own one-sided operations? Both libraries were measured over TCP. Open MPI 4.1 has none there that a program with threads
//! may use: creation of the window fails. MPICH 4.0 takes 17 µs for a put of 8 bytes and its flush, as long as a message and its
//! answer, 5.2 ms for 1,024 puts of 16 bytes, and its target has to call the library just the same. What they would
//! give on networks that write remote memory by themselves was not measured: no such network was at hand.
//!
//! # Progress
//!
//! Whoever waits in this crate handles what arrives. For a rank that computes, a thread does (`progress`): it sleeps most of the time
//! and looks more often while something comes. It needs `MPI_THREAD_MULTIPLE`; if the library does not give that, targets answer
//! only when they call this crate, which [`Capabilities::progress`] says and rank 0 prints.
//!
//! # Consistency
//!
//! Records of one rank to another are handled in their order, so puts and gets to one target keep theirs. Bytes that travel beside
//! the frames have a record that keeps their place: its target handles nothing behind it before they have come (`inbox`).
//!
//! # Memory
//!
//! A ring of frames to receive into, a bounded number of long frames, and a few words for each rank that something was exchanged
//! with, besides the frames that it sent and that cannot be handled yet, at most `peer::CREDIT`. Nothing grows with
//! the number of ranks but what MPI keeps, and a table of eight bytes a rank where nodes do not hold equally many consecutive ranks.
//!
//! # What was run
//!
//! MPICH 4.0 (UCX, TCP and shared memory) and Open MPI 4.1 (TCP and shared memory) on one machine, its ranks split into nodes; on no
//! cluster.

mod exit;
mod ffi;
mod frame;
mod handle;
mod inbox;
mod leave;
mod long_frames;
mod longs;
mod mail;
mod memory;
mod net;
mod nodes;
mod origins;
mod peer;
mod place;
mod progress;
mod pump;
mod runs;
mod start;
mod waits;
mod write;

use std::{
    io,
    ops::Range,
    ptr::NonNull,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, TryLockError,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

pub(crate) use self::start::{Rank, starts_open_mpi, world, world_size};
use self::{
    ffi::Result,
    frame::Kind,
    memory::Segment,
    net::{LONG, NOBODY, Net},
    nodes::Nodes,
    peer::{BULK, Block, BlockKind, Op},
    runs::Runs,
    waits::{LOOKS, longest},
};
use super::{
    AtomicOp, Capabilities, Conduit, Event, Events, Full, Local, MessageClass, Native, Ordering as Order, Progress,
    PublishedWait, Scale, SignalWord, Token, WaitWord,
    node::{Fabric, Member},
};
use crate::index::Loops;

/// Operations in flight before the layer above waits.
const WINDOW: usize = 1024;

/// Longest message beside the frames: what every library counts in an `int`.
const LONGEST: usize = 1 << 30;

/// Bytes that share a record with their signal.
const LONGEST_WITH_SIGNAL: usize = 4096;

/// Operations for one peer that wait for room before messages of the layer above are refused.
const CROWD: usize = 256;

/// One rank of a job under MPI.
#[derive(Debug)]
pub(crate) struct Mpi {
    rank: usize,
    size: usize,
    nodes: Nodes,
    /// The same of machines: they differ if a machine was split into nodes to try the network.
    machines: Nodes,
    /// The ranks of this machine, and this one as one of them, by their numbers in it.
    machine_ranks: Vec<usize>,
    node: Member,
    fabric: Arc<Fabric>,
    capabilities: Capabilities,
    net: Mutex<Net>,
    /// All ranks are of this node.
    alone: bool,
    /// When a caller looked last, in nanoseconds since the start: tells the thread that it is not needed.
    looked: AtomicU64,
    /// Waits may time out: what MPI was given of the caller's memory could not be had back.
    may_give_up: bool,
    /// Nothing is left to be handled for others.
    closed: AtomicBool,
    /// The other nodes know of the end of the job, as far as this rank can tell them.
    told: AtomicBool,
    start: Instant,
}

impl Mpi {
    fn net(&self) -> MutexGuard<'_, Net> {
        // MPI knows nothing of forks: a message of a child would be its parent's.
        assert!(!self.fabric.is_inherited(), "a process that a rank forked uses the network of its parent");
        self.net.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_here(&self, rank: usize) -> bool {
        self.nodes.node(rank) == self.nodes.node(self.rank)
    }

    /// The network, if nobody is in it.
    fn try_net(&self) -> Option<MutexGuard<'_, Net>> {
        match self.net.try_lock() {
            Ok(net) => Some(net),
            Err(TryLockError::Poisoned(net)) => Some(net.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// On the same machine, if of another node or not: control pages are those of a machine.
    fn is_near(&self, rank: usize) -> bool {
        self.machines.node(rank) == self.machines.node(self.rank)
    }

    /// Looks at the network, and hears of the end of the job.
    fn look(&self, net: &mut Net, hurry: bool, by_thread: bool) {
        if self.closed.load(Ordering::Relaxed) || self.fabric.is_inherited() {
            return;
        }
        let polled = net.poll(hurry, !by_thread);
        if matches!(polled, Ok(true)) && !by_thread {
            self.looked.store(self.start.elapsed().as_nanos() as u64, Ordering::Relaxed);
        }
        self.told(polled.map(drop));
        if let Some((culprit, cause)) = net.ended.take() {
            self.told.store(true, Ordering::Relaxed);
            self.fabric.end(Some(culprit), &cause);
        }
    }

    /// An operation that MPI refused ends the job: which of its ranks are left is not known.
    fn told(&self, result: Result<()>) {
        if let Err(error) = result {
            self.fabric.end(Some(self.rank), &format!("lost its connection to others: {error}"));
        }
    }

    /// How long ago a caller looked.
    fn since_looked(&self) -> Duration {
        self.start.elapsed().saturating_sub(Duration::from_nanos(self.looked.load(Ordering::Relaxed)))
    }

    fn submit(&self, rank: usize, op: Op) {
        let submitted = self.net().submit(rank, op);
        self.told(submitted);
    }

    /// A value that a request waits for, of an atomic operation or, not `wanted`, of a flush.
    fn ask(&self, rank: usize, kind: Kind, aux: u8, words: impl FnOnce(u64) -> [u64; 5], token: Token, wanted: bool) {
        let mut net = self.net();
        let origin = net.origins.value(token, wanted);
        let submitted = net.submit(rank, Op::Small { kind, aux, words: words(origin) });
        drop(net);
        self.told(submitted);
    }

    /// Tells the other nodes that the job is over, one rank of each, and sees the words on their way.
    fn tell_end(&self, culprit: usize, cause: &str) {
        /// Words that cannot leave are lost: the launcher ends the others.
        const LIMIT: Duration = Duration::from_millis(200);
        let silent = self.alone || self.closed.load(Ordering::Relaxed) || self.fabric.is_inherited();
        if silent || self.told.swap(true, Ordering::Relaxed) {
            return;
        }
        let mut net = self.net();
        let cause = &cause.as_bytes()[..cause.len().min(1000)];
        for leader in self.nodes.leaders().into_iter().filter(|&leader| !self.is_here(leader)) {
            let said = net.answer(leader, Kind::End, &[culprit as u64], cause.len(), |to| to.copy_from_slice(cause));
            if said.is_err() {
                return;
            }
        }
        let start = Instant::now();
        while net.poll(true, false).is_ok() && net.is_sending() && start.elapsed() < LIMIT {
            std::thread::yield_now();
        }
    }
}

impl Conduit for Mpi {
    fn name(&self) -> &'static str {
        "mpi"
    }

    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn node(&self, rank: usize) -> usize {
        self.nodes.node(rank)
    }

    fn machine(&self, rank: usize) -> usize {
        self.machines.node(rank)
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn segment(&self) -> NonNull<u8> {
        self.node.segment()
    }

    fn segment_len(&self) -> usize {
        self.node.segment_len()
    }

    fn mapped(&self, rank: usize) -> Option<NonNull<u8>> {
        if self.is_here(rank) { self.node.mapped(self.machines.local(rank)) } else { None }
    }

    fn commit(&self, range: Range<usize>) -> io::Result<()> {
        self.node.commit(range)
    }

    fn release(&self, range: Range<usize>) -> io::Result<()> {
        self.node.release(range)
    }

    fn committed(&self) -> u64 {
        self.node.committed()
    }

    unsafe fn put(&self, rank: usize, offset: usize, local: Local, token: Token) {
        if self.is_here(rank) {
            // SAFETY: the caller's promise.
            return unsafe { self.node.put(self.machines.local(rank), offset, local, token) };
        }
        let Local { ptr, len, .. } = local;
        let op = if len >= LONG {
            Op::Long { put: true, offset, local: ptr, len, token }
        } else {
            Op::Put { offset, local: ptr, len, at: 0, token }
        };
        self.submit(rank, op);
    }

    unsafe fn get(&self, rank: usize, offset: usize, local: Local, token: Token) {
        if self.is_here(rank) {
            // SAFETY: the caller's promise.
            return unsafe { self.node.get(self.machines.local(rank), offset, local, token) };
        }
        let Local { ptr, len, .. } = local;
        if len >= LONG {
            return self.submit(rank, Op::Long { put: false, offset, local: ptr, len, token });
        }
        let mut net = self.net();
        let origin = net.origins.data(token, ptr, Runs::one(len), len);
        let submitted = net.submit(rank, Op::Get { offset, len, at: 0, origin });
        drop(net);
        self.told(submitted);
    }

    fn cancel(&self, token: Token) {
        self.net().cancel(token);
    }

    fn flush(&self, rank: usize, token: Token) {
        if self.is_here(rank) {
            return self.node.flush(self.machines.local(rank), token);
        }
        self.ask(rank, Kind::Flush, 0, |origin| [origin, 0, 0, 0, 0], token, false);
    }

    fn send(&self, rank: usize, class: MessageClass, bytes: &[u8]) -> std::result::Result<(), Full> {
        if self.is_here(rank) {
            return self.node.send(self.machines.local(rank), class, bytes);
        }
        let mut net = self.net();
        if net.waiting(rank) >= CROWD && class == MessageClass::Request {
            return Err(Full);
        }
        let submitted = net.submit(rank, Op::Message { words: [0; 2], bytes: bytes.to_vec() });
        drop(net);
        self.told(submitted);
        Ok(())
    }

    fn poll(&self, events: &mut Events) {
        if self.alone {
            // All ranks share memory, so the numbers inside the node are theirs.
            return self.node.poll(events);
        }
        // Who is in there may wait for a lock that the caller holds, and handles what there is.
        if let Some(mut net) = self.try_net() {
            // A caller that has what it waits for need not wait for the network, if a thread sends what it leaves.
            let hurry = net.events.is_empty() || self.capabilities.progress != Progress::Thread;
            self.look(&mut net, hurry, false);
            events.append(&mut net.events);
        }
        let first = events.len();
        self.node.poll(events);
        for event in &mut events[first..] {
            if let Event::Message { from, .. } = event {
                *from = self.machine_ranks[*from];
            }
        }
    }

    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn wait(&self, limit: Duration) {
        if self.alone {
            return self.node.wait(limit);
        }
        self.wait_until(longest(limit, self.capabilities.crowded), || false, |slice| self.node.wait(slice));
    }

    #[inline]
    fn wait_on(&self, word: &WaitWord, seen: u32, limit: Duration) {
        if self.alone {
            return self.node.wait_on(word, seen, limit);
        }
        for _ in 0..LOOKS {
            if word.load() != seen {
                return;
            }
        }
        self.wait_until(limit, || word.load() != seen, |slice| word.sleep(seen, slice));
    }

    fn wake(&self, word: &WaitWord) {
        self.node.wake(word);
    }

    fn over(&self) -> &AtomicU32 {
        self.node.over()
    }

    fn over_cause(&self) -> String {
        self.node.over_cause()
    }

    fn end(&self, cause: &str) {
        self.node.end(cause);
        self.tell_end(self.rank, cause);
    }

    /// Of the whole machine: a rank that has come to its end has seen to it before that all that it wrote has arrived.
    fn last_seen(&self, rank: usize) -> Option<[u64; 2]> {
        if self.is_near(rank) { self.node.last_seen(self.machines.local(rank)) } else { None }
    }

    fn publish(&self, place: [u64; 2]) {
        self.node.publish(place);
    }

    fn publish_wait(&self, awaited: Option<usize>, object: &str) {
        self.node.publish_wait(awaited, object);
    }

    /// Of a node alone: what a rank wrote before it waits may still be under way to another node.
    fn published_wait(&self, rank: usize) -> Option<PublishedWait> {
        if self.is_here(rank) { self.node.published_wait(self.machines.local(rank)) } else { None }
    }

    fn published_object(&self, rank: usize) -> String {
        if self.is_here(rank) { self.node.published_object(self.machines.local(rank)) } else { String::new() }
    }

    unsafe fn atomic(&self, rank: usize, offset: usize, op: AtomicOp, width: usize, operand: u64, comparand: u64, token: Token) {
        if self.is_here(rank) {
            // SAFETY: the caller's promise.
            return unsafe { self.node.atomic(self.machines.local(rank), offset, op, width, operand, comparand, token) };
        }
        let words = |origin| [offset as u64, operand, comparand, origin, width as u64];
        self.ask(rank, Kind::Atomic, op as u8, words, token, true);
    }

    unsafe fn put_signal(&self, rank: usize, offset: usize, local: Local, signal: SignalWord, token: Token) {
        if self.is_here(rank) {
            // SAFETY: the caller's promise.
            return unsafe { self.node.put_signal(self.machines.local(rank), offset, local, signal, token) };
        }
        let Local { ptr, len, .. } = local;
        if len <= LONGEST_WITH_SIGNAL {
            return self.submit(rank, Op::PutSignal { offset, local: ptr, len, signal, token });
        }
        // The bytes complete the request; the signal behind them, whose token nobody waits for, is kept behind a long message too.
        let nobody = NOBODY;
        let null = std::ptr::null_mut();
        let mut net = self.net();
        let bytes = if len >= LONG {
            Op::Long { put: true, offset, local: ptr, len, token }
        } else {
            Op::Put { offset, local: ptr, len, at: 0, token }
        };
        let submitted = net
            .submit(rank, bytes)
            .and_then(|()| net.submit(rank, Op::PutSignal { offset: signal.offset, local: null, len: 0, signal, token: nobody }));
        drop(net);
        self.told(submitted);
    }

    unsafe fn put_block(&self, rank: usize, offset: usize, loops: &Loops, local: *const u8, token: Token) {
        if self.is_here(rank) {
            // SAFETY: the caller's promise; a put only reads the buffer.
            return unsafe { self.copy_here(true, rank, offset, loops, local.cast_mut(), token) };
        }
        self.submit(rank, Op::Block(self.block(loops, offset, local.cast_mut(), token, BlockKind::Put)));
    }

    unsafe fn get_block(&self, rank: usize, offset: usize, loops: &Loops, local: *mut u8, token: Token) {
        if self.is_here(rank) {
            // SAFETY: the caller's promise.
            return unsafe { self.copy_here(false, rank, offset, loops, local, token) };
        }
        let mut net = self.net();
        let mut block = self.block(loops, offset, local, token, BlockKind::Put);
        block.what = BlockKind::Get { origin: net.origins.data(token, local, block.here, block.len) };
        let submitted = net.submit(rank, Op::Block(block));
        drop(net);
        self.told(submitted);
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
        assert!(!self.is_here(rank), "processors add to the memory of their node");
        let alpha: [u64; 2] = bytemuck::cast(scale.alpha);
        let what = BlockKind::Accumulate { lock, numbers: scale.kind as u8, alpha };
        self.submit(rank, Op::Block(self.block(loops, offset, local.cast_mut(), token, what)));
    }
}

/// A block's runs at its owner and here.
fn sides(loops: &Loops) -> (Runs, Runs) {
    Runs::both(loops).expect("a block of no more levels than the trait promises")
}

impl Mpi {
    /// The operation on a block.
    fn block(&self, loops: &Loops, offset: usize, local: *mut u8, token: Token, what: BlockKind) -> Box<Block> {
        let (there, here) = sides(loops);
        let len = loops.runs() * loops.run();
        let straight = (len > BULK && here.is_packed() && !self.may_give_up).then(|| Arc::new(token));
        Box::new(Block { what, offset, there, here, local, len, at: 0, token, straight })
    }

    /// Runs to or from a rank of this node.
    ///
    /// # Safety
    /// As [`Conduit::put_block`] or [`Conduit::get_block`].
    unsafe fn copy_here(&self, put: bool, rank: usize, offset: usize, loops: &Loops, local: *mut u8, token: Token) {
        let (there, here) = sides(loops);
        let segment = Segment::new(self.node.segment_of(self.machines.local(rank)), self.segment_len());
        let base = segment.runs(offset, &there).expect("a block inside the segment");
        let mut packed = vec![0; loops.runs() * loops.run()];
        // SAFETY: the runs lie inside a mapped segment and the caller's buffer, which its promise covers.
        unsafe {
            let (from, to) = if put { ((local, &here), (base, &there)) } else { ((base, &there), (local, &here)) };
            memory::pack(from.0, from.1, 0, &mut packed);
            memory::unpack(to.0, to.1, 0, &packed);
        }
        self.net().events.push(Event::LocalDone(token));
    }

    /// What the network does: what the node does, if there is no other one.
    fn capabilities_of(node: &Member, alone: bool, crowded: bool, thread: bool) -> Capabilities {
        let mut capabilities = node.capabilities().clone();
        capabilities.crowded = crowded;
        if alone {
            return capabilities;
        }
        (capabilities.window, capabilities.longest_transfer) = (WINDOW, LONGEST);
        capabilities.order = Order { put_put: true, put_get: true };
        capabilities.progress = if thread { Progress::Thread } else { Progress::Caller };
        capabilities.native = Native { atomics: true, coherent: true, blocks: true, accumulate: true, signals: true };
        capabilities
    }
}
