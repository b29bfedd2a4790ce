//! Active messages: records that their target's processor carries out, and the network that they make of any [`Wire`].
//!
//! The target copies, adds under its accumulate lock, and applies atomic operations with its processor. So atomic operations of the network
//! and of processors exclude each other, and a strided patch is one request for any number of chunks. Long transfers are bulk messages
//! (`endpoint`). A wire that reaches the memory of peers by itself takes puts and gets instead (`one_sided`). A rank or its node's agent
//! answers (`route`). It appends letters to their rings (`node::held`).
//!
//! A thread that waits in this crate handles what arrives. While a rank computes, its helper thread does so (`comm::node::helper`). Without
//! one, targets answer only when they call this crate, which [`Capabilities::progress`] says.
//!
//! The target handles the records of one rank in their order, and a bulk message has the place of its record (`protocol::rendezvous`).
//! Memory does not grow with the number of ranks: credit bounds the frames that wait (`protocol::credit`), long frames are bounded, and
//! each rank that was met takes a few words.
//!
//! How much a frame takes, and how much a rank asks for at a time, depends on the layout of records and on the caller's memory. So `write`
//! and `pump` decide that, not `protocol`.
//!
//! | file | contents |
//! |---|---|
//! | `wire` | what a network writes |
//! | `frame`, `runs` | the layout of records; strided blocks |
//! | `endpoint` | a rank's side |
//! | `answers` | the helper, and the sleep of others |
//! | `route` | which endpoint answers for a rank |
//! | `submit`, `peer`, `write`, `pump`, `outbox` | what leaves |
//! | `inbox`, `handle`, `memory` | what arrives |
//! | `origins` | what this rank waits for |
//! | `bulk`, `long_frames` | bulk messages and their memory |
//! | `one_sided`, `regions` | transfers by the wire alone |
//! | `errands` | memory that the agent opens and shuts |
//! | `supervision` | notes, beats, the end of the job |
//! | `leave` | the end of a rank |
//! | `network` | all of it as a network |

mod answers;
mod bulk;
mod endpoint;
mod errands;
pub(super) mod frame;
mod handle;
mod inbox;
mod leave;
mod long_frames;
mod memory;
mod network;
mod one_sided;
mod origins;
mod outbox;
pub(super) mod packets;
mod peer;
mod pump;
mod regions;
pub(super) mod route;
mod runs;
mod submit;
mod supervision;
pub(super) mod wire;
mod write;

use std::{
    sync::{
        Arc, MutexGuard,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use self::{
    endpoint::{End, Endpoint},
    frame::Frame,
    wire::{Result, Sleeper, Wire},
};
use super::{
    Capabilities, Native, Ordering as Order, Progress, Topology,
    kit::mutex::Mutex,
    node::{Fabric, Member, Note},
};

/// Operations in flight before the layer above waits.
const WINDOW: usize = 1024;

/// Bytes that share a record with their signal, at most.
const LONGEST_WITH_SIGNAL: usize = 4096;

/// The helper thread goes on looking for this long after something came, where each rank has a core. Where ranks share cores,
/// another rank may need this one to go on.
const KEEN: Duration = Duration::from_micros(60);

/// A network of active messages over a wire: one rank of it.
#[derive(Debug)]
pub(crate) struct Am<W> {
    topology: Topology,
    capabilities: Capabilities,
    endpoint: Mutex<Endpoint<W>>,
    /// Behind the endpoint, whose wire lets go of the segment.
    fabric: Arc<Fabric>,
    longest_with_signal: usize,
    /// From this length on contiguous puts and gets are bulk messages, or go straight.
    contiguous: usize,
    straight: usize,
    /// The wire reaches the memory of peers.
    is_one_sided: bool,
    /// From this length on packed bytes are sent from the caller's memory.
    longest_packed: usize,
    /// When a caller looked last, in nanoseconds since the start: shows the helper thread that it is not needed.
    looked: AtomicU64,
    /// The helper thread looks again for this long after something came.
    keen: Duration,
    /// What ends the sleep of a thread. It is locked by the one that sleeps.
    sleeper: Option<Mutex<Arc<dyn Sleeper>>>,
    /// The thread that sleeps is the program's; and when one wanted to sleep last, and could not, in nanoseconds since the start.
    dozes: AtomicBool,
    refused: AtomicU64,
    /// The wire has connections that can be counted.
    connects: bool,
    /// Waits may time out. What could not be had back, or would leave a signal without its bytes, is not sent from the caller's memory then.
    may_give_up: bool,
    /// Nothing is left to be handled for others.
    closed: AtomicBool,
    /// The other machines know of the end of the job, as far as this rank can tell them.
    announced: AtomicBool,
    /// A machine that says nothing for this long is lost.
    silence: Duration,
    /// Notes that wait for the endpoint; a caller that holds stripes must not wait for it.
    notes: Mutex<Vec<(usize, Note)>>,
    /// At the last look something waited for the end of what was sent.
    lags: AtomicBool,
    /// One thread of the rank at a time brings an errand to the agent of its node.
    errand: Mutex<()>,
    has_notes: AtomicBool,
    /// The rank sees everything handled before it leaves, and asks nothing any more.
    leaves: AtomicBool,
    start: Instant,
}

impl<W: Wire> Am<W> {
    /// The network of a rank. With a helper that makes progress, or not; waits of a job with a timeout may be given up.
    pub(super) fn new(wire: W, member: &Member, has_helper: bool, may_give_up: bool, silence: Option<Duration>) -> Self {
        let (topology, fabric) = (member.topology().clone(), member.fabric().clone());
        let (limits, connects, sleeper) = (wire.limits(), wire.connections().is_some(), wire.sleeper());
        assert!(limits.frame >= wire::LEAST_FRAME, "frames of {} bytes", limits.frame);
        // Where the adapter has atomics, accumulates lock, get and put: no processor of the owner takes part, and long ones are faster.
        let (coherent, accumulate) = if limits.one_sided.is_some_and(|limits| limits.atomics) { (4, false) } else { (8, true) };
        // Without a thread nobody beats.
        let endpoint = Endpoint::new(wire, member, has_helper, silence.filter(|_| has_helper));
        Am {
            topology,
            fabric,
            capabilities: Capabilities {
                window: WINDOW,
                longest_transfer: limits.longest(),
                order: Order { put_put: true, put_get: true },
                progress: if has_helper { Progress::Thread } else { Progress::Caller },
                native: Native { coherent, blocks: true, accumulate, signals: true, append: true },
                ..Capabilities::default()
            },
            endpoint: Mutex::new(endpoint),
            longest_with_signal: Frame::room_when_empty(limits.frame, 3, 0).min(LONGEST_WITH_SIGNAL),
            contiguous: limits.contiguous(),
            straight: limits.one_sided.map_or(usize::MAX, |limits| limits.straight),
            is_one_sided: limits.one_sided.is_some(),
            longest_packed: limits.packed(),
            looked: AtomicU64::new(0),
            // What wakes the helper need not be waited for.
            keen: if member.capabilities().crowded || sleeper.is_some() { Duration::ZERO } else { KEEN },
            sleeper: sleeper.map(Mutex::new),
            dozes: AtomicBool::new(false),
            refused: AtomicU64::new(0),
            connects,
            may_give_up,
            closed: AtomicBool::new(false),
            announced: AtomicBool::new(false),
            silence: silence.unwrap_or_default(),
            notes: Mutex::default(),
            lags: AtomicBool::new(false),
            errand: Mutex::default(),
            has_notes: AtomicBool::new(false),
            leaves: AtomicBool::new(false),
            start: Instant::now(),
        }
    }

    fn endpoint(&self) -> MutexGuard<'_, Endpoint<W>> {
        // A library knows nothing of forks: a message of a child would be its parent's.
        assert!(!self.fabric.is_inherited(), "a process that a rank forked uses the network of its parent");
        self.endpoint.lock()
    }

    /// The endpoint, if nobody is in it.
    fn try_endpoint(&self) -> Option<MutexGuard<'_, Endpoint<W>>> {
        self.endpoint.try_lock()
    }

    #[cfg(feature = "mpi")]
    pub(super) fn fabric(&self) -> &Arc<Fabric> {
        &self.fabric
    }

    pub(super) fn rank(&self) -> usize {
        self.topology.rank()
    }

    /// No rank needs the network.
    pub(super) fn is_alone(&self) -> bool {
        self.topology.is_all_mapped()
    }

    /// Returns true if the rank has come to its end.
    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// Looks at the network, and hears of the end of the job.
    fn look(&self, endpoint: &mut Endpoint<W>, hurry: bool, by_helper: bool) {
        if self.is_closed() || self.fabric.is_inherited() {
            return;
        }
        if self.has_notes.load(Ordering::Relaxed) {
            self.take_notes(endpoint);
        }
        let polled = endpoint.poll(hurry, !by_helper);
        self.lags.store(endpoint.lags(), Ordering::Relaxed);
        // While more has come than this look took, the helper is needed too.
        if matches!(polled, Ok(true)) && !by_helper && !endpoint.has_more {
            self.looked.store(self.start.elapsed().as_nanos() as u64, Ordering::Relaxed);
        }
        self.report(polled.map(drop));
        for (rank, question) in endpoint.questions.drain(..) {
            self.queue_note(rank, question);
        }
        if let Some(End { culprit, lost, cause }) = endpoint.ended.take() {
            self.announced.store(true, Ordering::Relaxed);
            if lost {
                self.fabric.end_with_lost(culprit, &cause)
            } else {
                self.fabric.end(Some(culprit), &cause)
            };
        }
    }

    /// An operation that the wire refused ends the job: which of its ranks are left is not known.
    fn report(&self, result: Result<()>) {
        if let Err(error) = result {
            self.fabric.end(Some(self.rank()), &format!("lost its connection to others: {error}"));
        }
    }
}
