//! What this rank has to say to one other: operations that wait for room, and the frames being filled.
//!
//! Operations become records in their order. A frame of requests takes credit: at most [`CREDIT`] of them are unacknowledged, so
//! a target that does not look for a while holds no more than that. Answers take none: who asks has room for them.

use std::{
    collections::{HashMap, VecDeque},
    hash::{BuildHasherDefault, Hasher},
    sync::Arc,
};

use super::{
    frame::{Frame, Kind},
    inbox::Inbox,
    runs::Runs,
};
use crate::comm::{SignalWord, Token};

/// Frames of requests to one peer that may be on their way or unacknowledged.
pub(in crate::comm) const CREDIT: u32 = 32;

/// Frames that are acknowledged together when no answer carries the acknowledgement.
pub(in crate::comm) const ACKNOWLEDGE: u32 = CREDIT / 4;

/// Bytes that may be asked for and not be here, and still more be asked for.
pub(in crate::comm) const ASKED: usize = 1 << 20;

/// Blocks for a peer that computes are packed: their callers go on at once, where a message from their memory takes until the peer
/// looks. After so many it is tried again.
pub(in crate::comm) const PACKED: u32 = 32;

/// Bytes of a strided or accumulated block, or of an answer, from which on they travel in long frames. Measured with MPICH over TCP:
/// frames take some 10 µs and 1 µs for each KiB, long frames 50 µs up to 128 KiB.
pub(in crate::comm) const BULK: usize = 48 << 10;

/// An operation that is not yet wholly written into frames.
#[derive(Debug)]
pub(in crate::comm) enum Op {
    /// A record without payload.
    Small { kind: Kind, aux: u8, words: [u64; 5] },
    /// A message of the layer above.
    Message { words: [u64; 2], bytes: Vec<u8> },
    /// Contiguous bytes, written from `at` on.
    Put { offset: usize, local: *mut u8, len: usize, at: usize, token: Token },
    /// Contiguous bytes and then a word.
    PutSignal { offset: usize, local: *mut u8, len: usize, signal: SignalWord, token: Token },
    /// Contiguous bytes, asked for from `at` on.
    Get { offset: usize, len: usize, at: usize, origin: u64 },
    /// Contiguous bytes that travel beside the frames.
    Long { put: bool, offset: usize, local: *mut u8, len: usize, token: Token },
    /// Strided runs.
    Block(Box<Block>),
}

/// Strided runs, written or asked for from packed byte `at` on.
#[derive(Debug)]
pub(in crate::comm) struct Block {
    pub(in crate::comm) what: BlockKind,
    pub(in crate::comm) offset: usize,
    pub(in crate::comm) there: Runs,
    pub(in crate::comm) here: Runs,
    pub(in crate::comm) local: *mut u8,
    pub(in crate::comm) len: usize,
    pub(in crate::comm) at: usize,
    pub(in crate::comm) token: Token,
    /// Its bytes lie here as a message may carry them, without a copy. Who holds the last of these when a message has left tells the
    /// caller.
    pub(in crate::comm) straight: Option<Arc<Token>>,
}

#[derive(Clone, Copy, Debug)]
pub(in crate::comm) enum BlockKind {
    Put,
    Get { origin: u64 },
    Accumulate { lock: usize, numbers: u8, alpha: [u64; 2] },
}

// SAFETY: the pointers are those of `put` and `get`, whose callers promise that the memory may be used until the completion is
// polled, by whichever thread polls.
unsafe impl Send for Op {}

impl Op {
    /// The request whose memory it uses.
    pub(in crate::comm) fn token(&self) -> Option<Token> {
        match self {
            Op::Block(block) if !self.is_get() => Some(block.token),
            Op::Put { token, .. } | Op::PutSignal { token, .. } | Op::Long { token, .. } => Some(*token),
            _ => None,
        }
    }

    /// Whether no piece of it is on its way from the caller's memory.
    pub(in crate::comm) fn is_whole(&self) -> bool {
        match self {
            Op::Block(block) => block.straight.as_ref().is_none_or(|pieces| Arc::strong_count(pieces) == 1),
            _ => true,
        }
    }

    /// Whether nobody waits for its arrival, so that it may wait for company.
    pub(in crate::comm) fn is_patient(&self) -> bool {
        match self {
            Op::Put { .. } => true,
            Op::Block(block) => !matches!(block.what, BlockKind::Get { .. }),
            _ => false,
        }
    }

    /// The origin of what it asks for, and how many bytes it has not asked for yet.
    pub(in crate::comm) fn unasked(&self) -> Option<(u64, usize)> {
        match self {
            Op::Get { len, at, origin, .. } => Some((*origin, len - at)),
            Op::Block(block) => match block.what {
                BlockKind::Get { origin } => Some((origin, block.len - block.at)),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether it asks for bytes.
    pub(in crate::comm) fn is_get(&self) -> bool {
        match self {
            Op::Get { .. } => true,
            Op::Block(block) => matches!(block.what, BlockKind::Get { .. }),
            _ => false,
        }
    }

    /// How its next bytes travel.
    pub(in crate::comm) fn road(&self) -> Road {
        match self {
            Op::Block(block) if block.len - block.at > BULK => match block.straight {
                Some(_) => Road::Straight,
                None if self.is_get() => Road::Frame,
                None => Road::LongFrame,
            },
            _ => Road::Frame,
        }
    }
}

/// How bytes of an operation travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::comm) enum Road {
    /// In ordinary frames, or it says itself.
    Frame,
    /// Packed into a long frame.
    LongFrame,
    /// From or into the caller's memory.
    Straight,
}

/// Those that something was exchanged with, by rank.
pub(in crate::comm) type Peers = HashMap<usize, Peer, BuildHasherDefault<RankHasher>>;

/// Ranks are small numbers that nobody chooses to make trouble.
#[derive(Debug, Default)]
pub(in crate::comm) struct RankHasher(u64);

impl Hasher for RankHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_usize(byte.into()));
    }

    fn write_usize(&mut self, rank: usize) {
        // Fibonacci hashing: the golden ratio of 2^64.
        self.0 = (self.0 ^ rank as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    /// Tables look at the lowest bits and the highest, and the product has its best in the upper half.
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }
}

/// One other rank.
#[derive(Debug, Default)]
pub(in crate::comm) struct Peer {
    pub(in crate::comm) queue: VecDeque<Op>,
    /// The frames being filled.
    pub(in crate::comm) requests: Option<Frame>,
    pub(in crate::comm) answers: Option<Frame>,
    /// Frames of requests sent and not acknowledged.
    pub(in crate::comm) unacknowledged: u32,
    /// Frames of its requests that were handled and not acknowledged.
    pub(in crate::comm) owed: u32,
    /// Requests with a signal in the frame being filled: complete when it has left.
    pub(in crate::comm) signals: Vec<Token>,
    /// Bytes asked for that have not come.
    pub(in crate::comm) asked: usize,
    /// So many of the next blocks are packed into long frames, because it did not take one promptly from the caller's memory.
    pub(in crate::comm) busy: u32,
    /// It is in the list of those that may have something to send.
    pub(in crate::comm) listed: bool,
    /// What it asks for, and that it is in the list of those whose requests wait.
    pub(in crate::comm) inbox: Inbox,
    pub(in crate::comm) delayed: bool,
}

impl Peer {
    pub(in crate::comm) fn has_credit(&self) -> bool {
        self.unacknowledged < CREDIT
    }

    /// Nothing is left to be sent, and nothing sent is unacknowledged.
    pub(in crate::comm) fn is_quiet(&self) -> bool {
        self.queue.is_empty()
            && self.requests.as_ref().is_none_or(Frame::is_empty)
            && self.answers.as_ref().is_none_or(Frame::is_empty)
            && self.unacknowledged == 0
            && self.inbox.is_empty()
    }
}
