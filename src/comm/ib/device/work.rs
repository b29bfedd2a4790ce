//! What is posted to a device, and what comes back.

/// Where to send datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::comm::ib) struct Handle {
    /// For the device.
    pub(in crate::comm::ib) id: u64,
}

/// Which receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::comm::ib) enum Queue {
    /// Those of all connected pairs.
    Shared,
    /// Those of the datagram queue pair.
    Datagram,
}

/// Local memory of a work or a receive. The key is that of a [`DeviceRegion`](super::DeviceRegion) which holds all of it; nobody looks at
/// the key of inline data, nor of an empty piece.
#[derive(Clone, Copy, Debug)]
pub(in crate::comm::ib) struct WorkPiece {
    pub(in crate::comm::ib) start: *mut u8,
    pub(in crate::comm::ib) len: usize,
    pub(in crate::comm::ib) key: u32,
}

impl WorkPiece {
    /// No memory.
    pub(in crate::comm::ib) const NONE: WorkPiece = WorkPiece { start: std::ptr::dangling_mut(), len: 0, key: 0 };
}

// SAFETY: an address; only unsafe calls access what is there, and say when.
unsafe impl Send for WorkPiece {}
// SAFETY: as above.
unsafe impl Sync for WorkPiece {}

/// Memory at the peer: an address there, and the key of a [`DeviceRegion`](super::DeviceRegion) which holds all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::comm::ib) struct Target {
    pub(in crate::comm::ib) start: u64,
    pub(in crate::comm::ib) key: u32,
}

/// A work request.
#[derive(Clone, Copy, Debug)]
pub(in crate::comm::ib) struct Work {
    /// Comes back in the completion.
    pub(in crate::comm::ib) id: u64,
    pub(in crate::comm::ib) kind: Opcode,
    /// Eight bytes for an atomic.
    pub(in crate::comm::ib) local: WorkPiece,
    /// Asks for a completion if the work succeeds.
    pub(in crate::comm::ib) signaled: bool,
    /// The data of a write or a send are taken during the post: [`DeviceLimits::inline`](super::DeviceLimits::inline) bytes at most.
    pub(in crate::comm::ib) inline: bool,
    /// Starts after all earlier reads and atomics of the pair have completed.
    pub(in crate::comm::ib) fence: bool,
}

/// What a work does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::comm::ib) enum Opcode {
    /// Into the next receive of the peer's shared queue, whose completion brings the immediate value.
    Send { immediate: Option<u32> },
    /// From the local piece into the peer's memory.
    Write { to: Target },
    /// From the peer's memory into the local piece.
    Read { from: Target },
    /// Adds to 8 bytes of the peer's memory, at an address divisible by 8; others are refused by the post or by the peer. The old value lands in the local piece, in the order of this
    /// machine's bytes.
    FetchAdd { at: Target, operand: u64 },
    /// Replaces 8 bytes, as above, if they equal `expected`. The old value lands in the local piece.
    CompareSwap { at: Target, expected: u64, value: u64 },
}

/// A datagram to post.
#[derive(Clone, Copy, Debug)]
pub(in crate::comm::ib) struct Datagram {
    /// Comes back in the completion.
    pub(in crate::comm::ib) id: u64,
    pub(in crate::comm::ib) to: Handle,
    /// The number of the datagram queue pair there.
    pub(in crate::comm::ib) number: u32,
    /// Its Q_Key.
    pub(in crate::comm::ib) key: u32,
    pub(in crate::comm::ib) local: WorkPiece,
    pub(in crate::comm::ib) signaled: bool,
    pub(in crate::comm::ib) inline: bool,
}

/// The end of a work, a receive or a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::comm::ib) struct Completion {
    /// As it was posted.
    pub(in crate::comm::ib) id: u64,
    /// The number of the pair of this device that it is about; for a receive, the one that the message came to.
    pub(in crate::comm::ib) number: u32,
    pub(in crate::comm::ib) outcome: WorkOutcome,
}

/// How a work, a receive or a datagram ended.
pub(in crate::comm::ib) type WorkOutcome = Result<Done, WorkFailure>;

/// What has succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::comm::ib) enum Done {
    /// A send or a datagram: its memory may be used again.
    Sent,
    /// A write: its memory may be used again, and all has landed.
    Written,
    /// A read: the data are here.
    Read,
    /// An atomic: the old value is here.
    Swapped,
    /// A receive holds a message.
    Received {
        /// Of the memory that was posted; with the [`ROUTE_HEADER`](super::ROUTE_HEADER) of a datagram.
        len: usize,
        immediate: Option<u32>,
        /// The number of the sender's datagram queue pair, if it is a datagram.
        from: Option<u32>,
    },
}

/// Why something has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(in crate::comm::ib) enum WorkFailure {
    #[error("no answer from the peer's adapter after all retries")]
    RetryExceeded,
    #[error("the peer had no receive posted after all retries")]
    ReceiveRetryExceeded,
    #[error("flushed: its queue pair is in the error state")]
    Flushed,
    #[error("the peer's memory does not allow this access")]
    RemoteAccess,
    /// Not aligned, not allowed by the peer's pair, too long for its receive, or more reads than it answers at once.
    #[error("the peer's adapter takes the request for invalid")]
    RemoteInvalid,
    #[error("the peer's adapter failed to carry out the request")]
    RemoteOperation,
    #[error("a local key does not cover the memory or does not allow the access")]
    LocalProtection,
    #[error("a message is longer than the memory for it")]
    LocalLength,
    /// The code of the library that is none of the above.
    #[error("failed with status {0} of verbs")]
    Other(u32),
}
