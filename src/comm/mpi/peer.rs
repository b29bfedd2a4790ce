//! What this rank has to say to one other: operations that wait for room, and the frames being filled.
//!
//! Operations become records in their order. A frame of requests takes credit: at most [`CREDIT`] of them are unacknowledged, so
//! a target that does not look for a while holds no more than that. Answers take none: who asks has room for them.
//!
//! A long transfer travels beside the frames. So that nothing overtakes it, the next operation of another request waits until the
//! target has told that it is complete.

use std::collections::VecDeque;

use super::{
    frame::{Frame, Kind},
    runs::Runs,
};
use crate::comm::{SignalWord, Token};

/// Frames of requests to one peer that may be on their way or unacknowledged.
pub(super) const CREDIT: u32 = 32;

/// Frames that are acknowledged together when no answer carries the acknowledgement.
pub(super) const ACKNOWLEDGE: u32 = CREDIT / 4;

/// Frames of data that may be asked for and not be here.
pub(super) const ASKED: usize = 32;

/// An operation that is not yet wholly written into frames.
#[derive(Debug)]
pub(super) enum Op {
    /// A record without payload.
    Small { kind: Kind, aux: u8, words: [u64; 5], token: Token },
    /// A message of the layer above.
    Message { words: [u64; 2], bytes: Vec<u8> },
    /// Contiguous bytes, written from `at` on.
    Put { offset: usize, local: *mut u8, len: usize, at: usize, token: Token },
    /// Contiguous bytes and then a word.
    PutSignal { offset: usize, local: *mut u8, len: usize, signal: SignalWord, token: Token },
    /// Contiguous bytes, asked for from `at` on.
    Get { offset: usize, len: usize, at: usize, origin: u64, token: Token },
    /// Contiguous bytes that travel beside the frames.
    Long { put: bool, offset: usize, local: *mut u8, len: usize, token: Token },
    /// Strided runs.
    Block(Box<Block>),
}

/// Strided runs, written or asked for from packed byte `at` on.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) what: BlockKind,
    pub(super) offset: usize,
    pub(super) there: Runs,
    pub(super) here: Runs,
    pub(super) local: *mut u8,
    pub(super) len: usize,
    pub(super) at: usize,
    pub(super) token: Token,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum BlockKind {
    Put,
    Get { origin: u64 },
    Accumulate { lock: usize, numbers: u8, alpha: [u64; 2] },
}

// SAFETY: the pointers are those of `put` and `get`, whose callers promise that the memory may be used until the completion is
// polled, by whichever thread polls.
unsafe impl Send for Op {}

impl Op {
    /// The request that it is a part of, if it has one.
    pub(super) fn token(&self) -> Option<Token> {
        match self {
            Op::Message { .. } => None,
            Op::Block(block) => Some(block.token),
            Op::Small { token, .. }
            | Op::Put { token, .. }
            | Op::PutSignal { token, .. }
            | Op::Get { token, .. }
            | Op::Long { token, .. } => Some(*token),
        }
    }
}

/// One other rank.
#[derive(Debug, Default)]
pub(super) struct Peer {
    pub(super) queue: VecDeque<Op>,
    /// The frames being filled.
    pub(super) requests: Option<Frame>,
    pub(super) answers: Option<Frame>,
    /// Frames of requests sent and not acknowledged.
    pub(super) unacknowledged: u32,
    /// Frames of its requests that were handled and not acknowledged.
    pub(super) owed: u32,
    /// Requests with a signal in the frame being filled: complete when it has left.
    pub(super) signals: Vec<Token>,
    /// Bytes asked for that have not come.
    pub(super) asked: usize,
    /// Long puts under way to it, and the request that the last one is a part of.
    pub(super) long: u32,
    pub(super) long_of: Option<Token>,
    /// It is in the list of those that may have something to send.
    pub(super) listed: bool,
}

impl Peer {
    /// Whether an operation would overtake a long put.
    pub(super) fn must_wait(&self, op: &Op) -> bool {
        self.long > 0 && op.token() != self.long_of
    }

    pub(super) fn has_credit(&self) -> bool {
        self.unacknowledged < CREDIT
    }

    /// Nothing is left to be sent, and nothing sent is unacknowledged.
    pub(super) fn is_quiet(&self) -> bool {
        self.queue.is_empty()
            && self.requests.as_ref().is_none_or(Frame::is_empty)
            && self.answers.as_ref().is_none_or(Frame::is_empty)
            && self.unacknowledged == 0
            && self.long == 0
    }
}
