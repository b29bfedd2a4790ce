//! The operations on the segments of ranks: one value for each, and one way to issue them.

use std::fmt;

use crate::{
    comm::{AtomicOp, Event, Events, Scale, Token},
    index::Loops,
    memory::ring::Letter,
};

/// A place in the segment of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Remote {
    /// Whose segment.
    pub rank: usize,
    /// Bytes from its start.
    pub offset: usize,
}

impl fmt::Display for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {} at {}", self.rank, self.offset)
    }
}

/// Contiguous memory of the calling rank, one side of a transfer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Local {
    /// First byte.
    pub ptr: *mut u8,
    /// Length in bytes.
    pub len: usize,
}

impl Local {
    /// Bytes that are only read.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Local { ptr: bytes.as_ptr().cast_mut(), len: bytes.len() }
    }
}

/// The runs of a strided block. Byte offsets are relative to a [`Remote`] on the remote side and to `local` on the other; either may be
/// negative.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Strided<'a> {
    /// At most [`BLOCK_LEVELS`] levels around runs.
    pub loops: &'a Loops,
    /// The place of offset zero in the memory of the calling rank.
    pub local: *mut u8,
}

impl Strided<'_> {
    /// Number of bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.loops.runs() * self.loops.run()
    }
}

/// Most levels around the runs of a [`Strided`].
pub(crate) const BLOCK_LEVELS: usize = 8;

/// An atomic operation on a word of 4 or 8 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Atomic {
    /// What is done.
    pub op: AtomicOp,
    /// Bytes of the word.
    pub width: usize,
    /// With what value.
    pub operand: u64,
    /// What the word is compared with, by [`AtomicOp::CompareSwap`].
    pub comparand: u64,
}

/// The word that a put with a signal changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SignalWord {
    /// Byte offset of a [`WaitWord`](crate::comm::WaitWord) in the target's segment.
    pub offset: usize,
    /// What is done to it.
    pub op: SignalOp,
    /// With what value.
    pub value: u32,
    /// The target does not wait for it, as a rule: it may leave with what comes next, if it leaves without a further call of the caller too.
    pub patient: bool,
}

/// How a signal changes its word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SignalOp {
    /// The word becomes the value.
    Set,
    /// The value is added, wrapping. Additions exclude each other and whatever [`Operation::Atomic`] excludes.
    Add,
}

/// A ring of letters in the segment of a rank ([`ring`](crate::memory::ring)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RingPlace {
    /// Its first byte.
    pub at: Remote,
    /// Its slots.
    pub slots: usize,
}

/// One operation, for [`Network::issue`](crate::comm::Network::issue).
///
/// `Atomic` and `Flush` are required of a network. The others belong to
/// [`Capabilities::native`](crate::comm::Capabilities::native): what is not announced is never issued.
///
/// # Safety
///
/// The caller of an operation, a put or a get promises that until its completion is reported
///
/// * the local memory of a put or accumulate is readable; that of a get is writable, nobody touches it, and its runs are apart;
/// * the remote range is committed, and its runs are apart; words are committed and aligned.
///
/// What an operation borrows (`loops`, `scale`) lives during the call only.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Operation<'a> {
    /// Writes `local`, which may be empty, as [`Network::put`](crate::comm::Network::put) does, then changes a word of the same rank apart from it, and wakes the
    /// rank that waits on the word. Announced by [`Native::signals`](crate::comm::Native::signals).
    ///
    /// A rank that reads the new value also reads the bytes and, if [`Ordering::put_put`](crate::comm::Ordering::put_put) is announced,
    /// whatever the caller put or accumulated at that rank before. What is left to do at completion happens without a further call
    /// of the caller. A flush covers it, and its place in the order of puts and gets is that of a put.
    PutSignal { to: Remote, local: Local, signal: SignalWord },
    /// Writes the runs of a block. Completion and order are those of one put, whatever the block's size:
    /// `longest_transfer` does not bind it. Announced by [`Native::blocks`](crate::comm::Native::blocks).
    PutBlock { to: Remote, block: Strided<'a> },
    /// Reads the runs of a block; as [`PutBlock`](Self::PutBlock), with the completion and order of one get.
    GetBlock { from: Remote, block: Strided<'a> },
    /// Adds `scale` times the local runs of a block, whole elements of `scale.kind`, to the remote ones. Completion and order are
    /// those of a put. Announced by [`Native::accumulate`](crate::comm::Native::accumulate).
    ///
    /// A processor of the owner's node adds, under the stripes of the lock word at offset `lock` of the owner's segment: so do the
    /// processors that have its memory mapped, and each element is changed by one of them at a time.
    /// [`addition`](crate::comm::engine::addition) is that act, for the handler of whatever message is sent. Between
    /// accumulates any order is allowed.
    Accumulate { to: Remote, block: Strided<'a>, scale: &'a Scale, lock: usize },
    /// Changes a word. The old value comes as [`Event::Value`].
    Atomic { word: Remote, atomic: Atomic },
    /// Asks for [`Event::RemoteDone`] once everything that was put to `rank` or added there before is visible.
    Flush { rank: usize },
    /// Appends a letter to a ring, and wakes the rank that waits for it; the letter is copied. A processor of the rank's node appends it, as
    /// processors do that have the ring mapped. Announced by [`Native::append`](crate::comm::Native::append).
    ///
    /// Letters of one rank come into a ring in order, and behind whatever the rank put to its owner before. While the ring is full, the network
    /// holds the letter, and counts it there. No flush waits for that: if the token is a request's, an [`Event::Value`] says when the
    /// letter is in the ring.
    Append { ring: RingPlace, letter: Letter<'a> },
}

impl Operation<'_> {
    /// The rank that it acts on.
    pub(crate) fn rank(&self) -> usize {
        use Operation::{Accumulate, Append, Atomic, Flush, GetBlock, PutBlock, PutSignal};
        match *self {
            PutSignal { to, .. } | PutBlock { to, .. } | Accumulate { to, .. } => to.rank,
            GetBlock { from, .. } => from.rank,
            Atomic { word, .. } => word.rank,
            Flush { rank } => rank,
            Append { ring, .. } => ring.at.rank,
        }
    }

    /// The bytes that it moves.
    pub(crate) fn bytes(&self) -> usize {
        use Operation::{Accumulate, Append, Atomic, Flush, GetBlock, PutBlock, PutSignal};
        match *self {
            PutSignal { local, .. } => local.len,
            PutBlock { block, .. } | GetBlock { block, .. } | Accumulate { block, .. } => block.bytes(),
            Atomic { atomic, .. } => atomic.width,
            Flush { .. } => 0,
            Append { letter, .. } => letter.packed(),
        }
    }
}

/// What became of an operation when [`Network::issue`](crate::comm::Network::issue) returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Issued {
    /// It is under way: an event will come, if its token is a request's.
    Pending,
    /// Of a transfer: its local memory may be used again, and has the data of a get. No event will come, and the rest happens without a
    /// further call.
    Complete,
}

impl Issued {
    /// Reports a completion as an event, for a caller that cannot report it at once.
    pub(crate) fn report(self, token: Token, events: &mut Events) {
        if self == Issued::Complete {
            events.push(Event::LocalDone(token));
        }
    }
}
