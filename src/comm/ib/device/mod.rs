//! What the network asks of an adapter, in the words of verbs.
//!
//! An opened [`Device`] is one port of an adapter with one protection domain, one completion queue, one shared receive queue for its
//! connected queue pairs, and one datagram queue pair.
//!
//! # What holds for every device
//!
//! * Any thread may make any call at any time. Only [`Device::wait`] sleeps. [`Device::deregister`], [`Device::modify`] and
//!   [`Device::destroy`] may take as long as a message.
//! * The works of a pair start and complete in the order of posting. Writes and sends take effect at the target in that order; so do reads
//!   and atomics. A read or an atomic may take effect after a *later* write or send without a fence. The bytes of a message land in any
//!   order; all have landed when either side reports its completion.
//! * A send slot is free again when the completion of its work, or of a later one of the pair, was polled. A failed work is always
//!   reported.
//! * The first work that fails takes its pair to the error state. Those behind it are flushed, in order: the target saw all, a part or
//!   nothing of them. The peer's pair may not notice.
//! * Atomics of one adapter exclude each other, but not those of another adapter or of processors.
//! * More completions than the queue holds end the device. Calls say so only after [`Device::event`] has.
//!
//! # Life of a connected pair
//!
//! ```text
//!  create -> Reset -> Init -> ReadyToReceive -> ReadyToSend       each by modify, in this order only
//!            ^                                      |
//!            |            Error <---- a failure ----+             modify(Error) and modify(Reset) from any state
//!            +-- modify ----+
//! ```
//!
//! A pair accepts messages from *ready to receive* on, and takes works from *ready to send* on. In the error state it takes works and
//! flushes them. In other states a post is an error. After a reset, completions of earlier works may still be polled.
//!
//! Packets of a pair have numbers of 24 bits, from a first number that both sides agree on. A pair answers none before it is ready to
//! receive, none of another peer and none out of turn. The sender tries again, and at last fails with [`WorkFailure::RetryExceeded`].

mod address;
mod registered;
mod work;

use std::{fmt, ops::BitOr, time::Duration};

pub(in crate::comm::ib) use crate::comm::am::wire::Wakes;
use crate::comm::am::wire::{Broken, Sleeper};

pub(in crate::comm::ib) use self::address::{Address, NUMBERS};
pub(in crate::comm::ib) use self::registered::Registered;
pub(in crate::comm::ib) use self::work::{
    Completion, Datagram, Done, Handle, Opcode, Queue, Target, Work, WorkFailure, WorkOutcome, WorkPiece,
};

/// Bytes in front of each datagram that was received: the global route header. Its bytes 8 to 23 are the sender's GID; over IPv4
/// the last four of those 40 bytes and the four before them are addresses, and the rest says nothing.
pub(in crate::comm::ib) const ROUTE_HEADER: usize = 40;

/// An opened device.
pub(in crate::comm::ib) trait Device: Send + Sync + fmt::Debug + 'static {
    /// The device's clock: time since some moment.
    fn now(&self) -> Duration;

    /// Ends a sleep at a time, as a completion does. For devices in virtual time, where nobody looks meanwhile; others need not be told.
    fn remind(&self, _at: Duration) {}

    /// Lets other ranks go on before the caller looks again. False if the job is over and nothing will come.
    fn pass(&self) -> bool {
        std::thread::yield_now();
        true
    }

    /// The device's limits. Constant.
    fn limits(&self) -> &DeviceLimits;

    /// Where others reach the device. Constant.
    fn address(&self) -> Address;

    /// Makes memory known to the adapter, which pins it.
    ///
    /// # Safety
    /// Until the region is deregistered, or the device dropped, the range stays mapped, for writing where `access` says so. Nobody holds Rust
    /// references to what the adapter changes: by works of this device, and by those of all that know the remote key.
    ///
    /// # Errors
    /// [`DeviceError::Memory`] if `len` bytes must not be pinned. [`DeviceError::Invalid`] if remote writes or atomics are
    /// allowed without local writes.
    unsafe fn register(&self, start: *mut u8, len: usize, access: Access) -> Result<DeviceRegion>;

    /// Undoes [`register`](Self::register). When it returns, nothing reads or writes the memory any more. Works that name it later
    /// fail, at either side.
    ///
    /// # Errors
    /// [`DeviceError::Unknown`], [`DeviceError::System`].
    fn deregister(&self, region: DeviceRegion) -> Result<()>;

    /// Creates a connected queue pair, in the reset state, whose send queue holds at least `depth` works.
    ///
    /// # Errors
    /// [`DeviceError::Limit`], [`DeviceError::System`].
    fn create(&self, depth: usize) -> Result<Pair>;

    /// Moves a pair to another state. After [`To::Reset`] nothing reads or writes memory for works of before.
    ///
    /// # Errors
    /// [`DeviceError::State`] if that does not follow the state that the pair is in, [`DeviceError::Limit`], [`DeviceError::System`]. The
    /// state is the old one then.
    fn modify(&self, pair: Pair, to: To<'_>) -> Result<()>;

    /// Destroys a pair, in any state. When it returns, nothing reads or writes memory for its works. Those that were not reported may be
    /// reported or not.
    ///
    /// # Errors
    /// [`DeviceError::Unknown`], [`DeviceError::System`].
    fn destroy(&self, pair: Pair) -> Result<()>;

    /// Posts works to a pair, a chain behind one doorbell. Returns the number taken: less than all if the send queue is full.
    ///
    /// # Safety
    /// The local memory of each work that is not inline stays as it is, and is not touched where the work writes it, until the work is
    /// reported, or a later one of the pair, or the pair was reset or destroyed. It does not overlap the work's remote memory. That of inline
    /// works is readable during the call.
    ///
    /// # Errors
    /// [`DeviceError::Work`] for a work that the device refuses: those in front of it were taken, the others not. [`DeviceError::State`],
    /// [`DeviceError::Unknown`], [`DeviceError::Fatal`]: nothing was taken.
    unsafe fn post(&self, pair: Pair, works: &[Work]) -> Result<usize>;

    /// Posts memory for one message that arrives. A message longer than it is an error for both sides.
    ///
    /// # Safety
    /// Nobody touches the memory until its completion was polled.
    ///
    /// # Errors
    /// [`DeviceError::Full`], [`DeviceError::Fatal`].
    unsafe fn post_receive(&self, queue: Queue, id: u64, piece: WorkPiece) -> Result<()>;

    /// Prepares to send datagrams to another device.
    ///
    /// # Errors
    /// [`DeviceError::System`].
    fn handle(&self, to: &Address) -> Result<Handle>;

    /// Gives a handle up. Its datagrams have completed.
    ///
    /// # Errors
    /// [`DeviceError::Unknown`], [`DeviceError::System`].
    #[cfg_attr(any(not(test), loom), expect(dead_code, reason = "an endpoint keeps its handles"))]
    fn release(&self, handle: Handle) -> Result<()>;

    /// Posts a datagram. It arrives or not: one that meets no receive, another Q_Key, no such number or a receive that is too short is
    /// dropped, and its sender does not learn of it.
    ///
    /// # Safety
    /// As [`post`](Self::post).
    ///
    /// # Errors
    /// As [`post`](Self::post), and [`DeviceError::Full`].
    unsafe fn post_datagram(&self, datagram: &Datagram) -> Result<()>;

    /// Appends completions, `most` at most, oldest first.
    ///
    /// # Errors
    /// [`DeviceError::Fatal`].
    fn poll(&self, completions: &mut Vec<Completion>, most: usize) -> Result<()>;

    /// Asks that the next completion ends a [`wait`](Self::wait): any, or that of a message or a datagram which arrives ([`Wakes`]). A failure
    /// may end a wait for arrivals too, and so may what an earlier call has asked for. A completion that came before counts for nothing: poll once
    /// more after this call, and sleep only if there was none.
    ///
    /// # Errors
    /// [`DeviceError::Fatal`], [`DeviceError::System`].
    fn arm(&self, wakes: Wakes) -> Result<()>;

    /// Sleeps until a completion has come since [`arm`](Self::arm), an [`DeviceEvent`] is there, or the limit has passed. False only in the last
    /// case. One thread at a time.
    ///
    /// # Errors
    /// [`DeviceError::System`].
    fn wait(&self, limit: Duration) -> Result<bool>;

    /// The next thing that happened to the device or to a pair without a completion that says so.
    fn event(&self) -> Option<DeviceEvent>;
}

/// A device that has failed wakes no thread: the next look reports it.
impl<D: Device> Sleeper for D {
    fn arm(&self, wakes: Wakes) -> bool {
        Device::arm(self, wakes).is_ok()
    }

    fn sleep(&self, limit: Duration) {
        // A wait that fails ends at once; the next look reports it.
        let _ = self.wait(limit);
    }

    fn pass(&self) -> bool {
        Device::pass(self)
    }
}

/// The limits of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::comm::ib) struct DeviceLimits {
    /// Bytes of a work, or a datagram, whose data travel with the post.
    pub(in crate::comm::ib) inline: usize,
    /// Reads and atomics of a pair that are under way at once, at the side that asks (verbs: `max_rd_atomic`). Those beyond
    /// [`To::ReadyToSend`]'s depth wait.
    pub(in crate::comm::ib) read_depth: u8,
    /// Reads and atomics of a pair at once, at the side that answers (`max_dest_rd_atomic`). More are an error.
    pub(in crate::comm::ib) answer_depth: u8,
    /// Bytes of a write, a read or a send.
    pub(in crate::comm::ib) longest_message: usize,
    /// Bytes of a datagram, without the route header.
    pub(in crate::comm::ib) longest_datagram: usize,
    /// Works of a send queue.
    pub(in crate::comm::ib) send_depth: usize,
    /// Completions of the queue that the device was opened with.
    pub(in crate::comm::ib) completions: usize,
    /// Receives of the shared queue that the device was opened with.
    pub(in crate::comm::ib) shared_receives: usize,
    /// Receives of datagrams, as it was opened.
    pub(in crate::comm::ib) datagram_receives: usize,
    /// Connected pairs.
    pub(in crate::comm::ib) pairs: usize,
    /// A read that is reported as done has brought all of its bytes. Not so with every driver.
    pub(in crate::comm::ib) reads: bool,
    /// Nobody looks at the device by itself: it is to be told of times ([`Device::remind`]).
    pub(in crate::comm::ib) virtual_time: bool,
}

/// The depths of a device's queues, set when it is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::comm::ib) struct Depths {
    /// Completions that nobody has polled.
    pub(in crate::comm::ib) completions: usize,
    /// Receives in the shared queue.
    pub(in crate::comm::ib) shared_receives: usize,
    /// Receives of datagrams.
    pub(in crate::comm::ib) datagram_receives: usize,
    /// Datagrams that leave.
    pub(in crate::comm::ib) datagram_sends: usize,
}

/// What may be done to memory, or asked of a pair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::comm::ib) struct Access(u8);

impl Access {
    /// Reads by this device's own works: always allowed.
    pub(in crate::comm::ib) const NONE: Access = Access(0);
    pub(in crate::comm::ib) const LOCAL_WRITE: Access = Access(1);
    pub(in crate::comm::ib) const REMOTE_WRITE: Access = Access(2);
    pub(in crate::comm::ib) const REMOTE_READ: Access = Access(4);
    pub(in crate::comm::ib) const REMOTE_ATOMIC: Access = Access(8);
    /// All of them.
    #[cfg(any(all(test, not(loom)), feature = "_bench"))]
    pub(in crate::comm::ib) const ALL: Access = Access(15);

    /// Returns true if all that `other` names is allowed.
    pub(in crate::comm::ib) fn allows(self, other: Access) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for Access {
    type Output = Access;

    fn bitor(self, other: Access) -> Access {
        Access(self.0 | other.0)
    }
}

/// Registered memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::comm::ib) struct DeviceRegion {
    /// For works of the device that registered it.
    pub(in crate::comm::ib) local: u32,
    /// For works of the peers of its pairs.
    pub(in crate::comm::ib) remote: u32,
    /// For the device.
    pub(in crate::comm::ib) id: u64,
}

/// A connected queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::comm::ib) struct Pair {
    /// For the device. A pair that was destroyed leaves an id that is [unknown](DeviceError::Unknown).
    pub(in crate::comm::ib) id: u64,
    /// For peers, and in completions; 24 bits. Numbers of destroyed pairs are used again.
    pub(in crate::comm::ib) number: u32,
}

/// A step of [`Device::modify`].
#[derive(Clone, Copy, Debug)]
pub(in crate::comm::ib) enum To<'a> {
    /// What peers may do through the pair, if the memory allows it too.
    Init { access: Access },
    /// Connects to one pair of one port.
    ReadyToReceive {
        peer: &'a Address,
        number: u32,
        /// The number of the peer's first packet.
        first_packet: u32,
        /// Reads and atomics of the peer that are answered at once: [`DeviceLimits::answer_depth`] at most, and at least the peer's `read_depth`.
        answer_depth: u8,
        /// The wait of a peer that met no receive, in verbs' code: 1 for 0.01 ms to 31 for 492 ms, then 0 for 655 ms.
        receive_timer: u8,
    },
    ReadyToSend {
        /// The number of this side's first packet.
        first_packet: u32,
        /// Reads and atomics under way at once: [`DeviceLimits::read_depth`] at most.
        read_depth: u8,
        /// An answer is awaited for about 4.096 µs times two to this power; 0 means no limit.
        timeout: u8,
        /// Retries of what was not answered. Take 6: with 7 soft-RoCE never gives up.
        retries: u8,
        /// Retries of what met no receive; 7 means no limit.
        receive_retries: u8,
    },
    /// As it was created: forgets its peer, and drops all works without a completion.
    Reset,
    /// Flushes all works.
    Error,
}

/// States of a connected pair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::comm::ib) enum State {
    #[default]
    Reset,
    Init,
    ReadyToReceive,
    ReadyToSend,
    Error,
}

impl To<'_> {
    /// The state that the step leads to.
    pub(in crate::comm::ib) fn state(&self) -> State {
        match self {
            To::Init { .. } => State::Init,
            To::ReadyToReceive { .. } => State::ReadyToReceive,
            To::ReadyToSend { .. } => State::ReadyToSend,
            To::Reset => State::Reset,
            To::Error => State::Error,
        }
    }

    /// The step, in messages.
    pub(in crate::comm::ib) fn name(&self) -> &'static str {
        match self {
            To::Init { .. } => "the step to Init",
            To::ReadyToReceive { .. } => "the step to ReadyToReceive",
            To::ReadyToSend { .. } => "the step to ReadyToSend",
            To::Reset => "a reset",
            To::Error => "the step to Error",
        }
    }

    /// Returns true if the step may be made from a state.
    pub(in crate::comm::ib) fn may_follow(&self, state: State) -> bool {
        match self {
            To::Init { .. } => state == State::Reset,
            To::ReadyToReceive { .. } => state == State::Init,
            To::ReadyToSend { .. } => state == State::ReadyToReceive,
            To::Reset | To::Error => true,
        }
    }
}

/// What happened without a completion that says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::comm::ib) enum DeviceEvent {
    /// The pair of this number has gone to the error state, for what its peer did or what its own works did. Adapters say so; soft-RoCE does
    /// not. May come more than once for one failure, and after the pair was reset.
    PairFailed(u32),
    /// The device does not work any more.
    Fatal,
}

pub(in crate::comm::ib) type Result<T> = std::result::Result<T, DeviceError>;

/// A call that was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(in crate::comm::ib) enum DeviceError {
    /// More than there is.
    #[error("{asked} {what} were asked for; the device allows {limit}")]
    Limit { what: &'static str, asked: u64, limit: u64 },
    /// Memory that must not be pinned.
    #[error("the adapter needs to pin {asked} bytes; {allowed}")]
    Memory {
        asked: usize,
        /// By what limit, in words: `ulimit -l allows 65536`.
        allowed: String,
    },
    /// Arguments that contradict each other.
    #[error("{0}")]
    Invalid(&'static str),
    /// A pair, a region or a handle that does not exist any more.
    #[error("{what} {id:#x} does not exist, or no longer")]
    Unknown { what: &'static str, id: u64 },
    /// A pair in the wrong state.
    #[error("queue pair {number:#x} is in the state {state:?}, which does not allow {asked}")]
    State { number: u32, state: State, asked: &'static str },
    /// A queue without room.
    #[error("{queue} is full: it holds {depth}")]
    Full { queue: &'static str, depth: usize },
    /// A work that the device does not take.
    #[error("work request {id:#x}, number {at} of its chain: {why}")]
    Work { at: usize, id: u64, why: String },
    /// The device has failed, and an event has said so.
    #[error("the device has failed: {why}")]
    Fatal { why: &'static str },
    /// What the library says.
    #[error("{call}: {}", std::io::Error::from_raw_os_error(*code))]
    System { call: &'static str, code: i32 },
}

/// A network that is refused a call is broken.
impl From<DeviceError> for Broken {
    fn from(error: DeviceError) -> Self {
        Broken(error.to_string())
    }
}

impl DeviceError {
    /// Returns true if a peer's adapter did not answer, and may answer later.
    pub(in crate::comm::ib) fn is_no_answer(&self) -> bool {
        use libc::{EAGAIN, EHOSTUNREACH, ENETUNREACH, ETIMEDOUT};
        matches!(self, DeviceError::System { code: EAGAIN | EHOSTUNREACH | ENETUNREACH | ETIMEDOUT, .. })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn steps_follow_each_other_in_one_order() {
        use State::*;
        let address = Address { gid: [0; 16], lid: 0, mtu: 3, number: 16, key: 7, answers: 9, global: false };
        let steps = [
            To::Init { access: Access::ALL },
            To::ReadyToReceive { peer: &address, number: 1, first_packet: 0, answer_depth: 1, receive_timer: 1 },
            To::ReadyToSend { first_packet: 0, read_depth: 1, timeout: 1, retries: 1, receive_retries: 1 },
            To::Reset,
            To::Error,
        ];
        for from in [Reset, Init, ReadyToReceive, ReadyToSend, Error] {
            let possible: Vec<State> = steps.iter().filter(|to| to.may_follow(from)).map(To::state).collect();
            let forward = match from {
                Reset => vec![Init],
                Init => vec![ReadyToReceive],
                ReadyToReceive => vec![ReadyToSend],
                ReadyToSend | Error => vec![],
            };
            assert_eq!(possible, [forward, vec![Reset, Error]].concat(), "from {from:?}");
        }
    }
}
