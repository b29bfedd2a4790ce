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
pub(super) mod ffi;
mod leave;
pub(super) mod mail;
mod place;
mod progress;
mod start;

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, TryLockError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use self::ffi::Result;
pub(crate) use self::start::{Rank, starts_open_mpi, world, world_size};
use super::am::{
    frame::Kind,
    net::{LONG, NOBODY, Net},
    peer::{BULK, Block, BlockKind, Op},
    runs::Runs,
};
use super::{
    Atomic, Capabilities, Events, Full, Local, MessageClass, Native, Network, Ordering as Order, Progress, Remote, Scale,
    SignalWord, Token, Topology, node::Fabric,
};
use crate::index::Loops;

/// Operations in flight before the layer above waits.
const WINDOW: usize = 1024;

/// Longest message beside the frames: what every library counts in an `int`.
pub(super) const LONGEST: usize = 1 << 30;

/// Bytes that share a record with their signal.
const LONGEST_WITH_SIGNAL: usize = 4096;

/// Operations for one peer that wait for room before messages of the layer above are refused.
const CROWD: usize = 256;

/// One rank of a job under MPI.
#[derive(Debug)]
pub(crate) struct Mpi {
    topology: Topology,
    /// The ranks of this machine, by their numbers in it.
    machine_ranks: Vec<usize>,
    fabric: Arc<Fabric>,
    capabilities: Capabilities,
    net: Mutex<Net>,
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

    /// The network, if nobody is in it.
    fn try_net(&self) -> Option<MutexGuard<'_, Net>> {
        match self.net.try_lock() {
            Ok(net) => Some(net),
            Err(TryLockError::Poisoned(net)) => Some(net.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn rank(&self) -> usize {
        self.topology.rank()
    }

    /// No rank needs the network.
    fn is_alone(&self) -> bool {
        self.topology.is_all_mapped()
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
            self.fabric.end(Some(self.rank()), &format!("lost its connection to others: {error}"));
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
        let silent = self.is_alone() || self.closed.load(Ordering::Relaxed) || self.fabric.is_inherited();
        if silent || self.told.swap(true, Ordering::Relaxed) {
            return;
        }
        let mut net = self.net();
        let cause = &cause.as_bytes()[..cause.len().min(1000)];
        for leader in self.topology.leaders().into_iter().filter(|&leader| !self.topology.is_here(leader)) {
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

impl Network for Mpi {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    unsafe fn put(&self, to: Remote, Local { ptr, len, .. }: Local, token: Token) {
        let offset = to.offset;
        let op = if len >= LONG {
            Op::Long { put: true, offset, local: ptr, len, token }
        } else {
            Op::Put { offset, local: ptr, len, at: 0, token }
        };
        self.submit(to.rank, op);
    }

    unsafe fn get(&self, Remote { rank, offset }: Remote, Local { ptr, len, .. }: Local, token: Token) {
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
        self.ask(rank, Kind::Flush, 0, |origin| [origin, 0, 0, 0, 0], token, false);
    }

    fn send(&self, rank: usize, class: MessageClass, bytes: &[u8]) -> std::result::Result<(), Full> {
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
        // Who is in there may wait for a lock that the caller holds, and handles what there is.
        if let Some(mut net) = self.try_net() {
            // A caller that has what it waits for need not wait for the network, if a thread sends what it leaves.
            let hurry = net.events.is_empty() || self.capabilities.progress != Progress::Thread;
            self.look(&mut net, hurry, false);
            events.append(&mut net.events);
        }
    }

    fn attend(&self) -> bool {
        let Some(mut net) = self.try_net() else {
            std::thread::yield_now();
            return false;
        };
        self.look(&mut net, true, false);
        !net.events.is_empty()
    }

    /// The library wakes nobody.
    fn arm(&self) -> bool {
        false
    }

    fn announce_end(&self, culprit: usize, cause: &str) {
        self.tell_end(culprit, cause);
    }

    unsafe fn put_signal(&self, to: Remote, local: Local, signal: SignalWord, token: Token) {
        let (Remote { rank, offset }, Local { ptr, len, .. }) = (to, local);
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

    unsafe fn atomic(&self, word: Remote, Atomic { op, width, operand, comparand }: Atomic, token: Token) {
        let words = |origin| [word.offset as u64, operand, comparand, origin, width as u64];
        self.ask(word.rank, Kind::Atomic, op as u8, words, token, true);
    }

    unsafe fn put_block(&self, to: Remote, loops: &Loops, local: *const u8, token: Token) {
        self.submit(to.rank, Op::Block(self.block(loops, to.offset, local.cast_mut(), token, BlockKind::Put)));
    }

    unsafe fn get_block(&self, from: Remote, loops: &Loops, local: *mut u8, token: Token) {
        let mut net = self.net();
        let mut block = self.block(loops, from.offset, local, token, BlockKind::Put);
        block.what = BlockKind::Get { origin: net.origins.data(token, local, block.here, block.len) };
        let submitted = net.submit(from.rank, Op::Block(block));
        drop(net);
        self.told(submitted);
    }

    unsafe fn accumulate_block(&self, to: Remote, loops: &Loops, local: *const u8, scale: &Scale, lock: usize, token: Token) {
        let alpha: [u64; 2] = bytemuck::cast(scale.alpha);
        let what = BlockKind::Accumulate { lock, numbers: scale.kind as u8, alpha };
        self.submit(to.rank, Op::Block(self.block(loops, to.offset, local.cast_mut(), token, what)));
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

    /// What the network does; with a thread that makes progress, or not.
    fn capabilities_with(thread: bool) -> Capabilities {
        Capabilities {
            window: WINDOW,
            longest_transfer: LONGEST,
            order: Order { put_put: true, put_get: true },
            progress: if thread { Progress::Thread } else { Progress::Caller },
            native: Native { atomics: true, coherent: true, blocks: true, accumulate: true, signals: true },
            ..Capabilities::default()
        }
    }
}
