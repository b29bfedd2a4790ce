//! What this rank keeps of one other endpoint.

use std::{collections::VecDeque, sync::Arc};

use super::{
    frame::{Frame, HeldRecord, RecordKind},
    regions::Known,
    runs::Runs,
};
use crate::comm::{
    Atomic, SignalWord, Token,
    node::Note,
    protocol::{credit::Credit, rendezvous::Requests},
};

/// Bytes that may be asked for and not be here, and still more be asked for.
pub(super) const ASKED: usize = 1 << 20;

/// Blocks for a peer that computes are packed: their callers go on at once, where a message from their memory takes until the
/// peer looks. After this many packed blocks, a message from the caller's memory is tried again.
pub(super) const PACKED: u32 = 32;

/// An operation that is not yet wholly written into frames.
#[derive(Debug)]
pub(super) enum Op {
    /// A note between supervisors.
    Note(Box<Note>),
    /// A record without payload.
    Small { kind: RecordKind, aux: u8, words: [u64; 5] },
    /// Contiguous bytes, written from `at` on.
    Put { offset: usize, local: *mut u8, len: usize, at: usize, token: Token },
    /// Contiguous bytes and then a word.
    PutSignal { offset: usize, local: *mut u8, len: usize, signal: SignalWord, token: Token },
    /// A packed letter for a ring, written from word `at` on.
    Append { place: [u64; 3], packed: Box<[u64]>, at: usize },
    /// An operation of the adapter on a word of eight bytes. It is never a record.
    Change { offset: usize, atomic: Atomic, origin: u64, asks: u32 },
    /// Contiguous bytes, asked for from `at` on.
    Get { offset: usize, len: usize, at: usize, origin: u64 },
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
    /// Set if its bytes lie here as a message may carry them, without a copy. The last holder of the token reports to the caller
    /// when a message has left.
    pub(super) straight: Option<Arc<Token>>,
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
    /// The request whose memory it uses.
    pub(super) fn token(&self) -> Option<Token> {
        match self {
            Op::Block(block) if !self.is_get() => Some(block.token),
            Op::Put { token, .. } | Op::PutSignal { token, .. } | Op::Long { token, .. } => Some(*token),
            _ => None,
        }
    }

    /// Returns true if no piece of it is on its way from the caller's memory.
    pub(super) fn is_whole(&self) -> bool {
        match self {
            Op::Block(block) => block.straight.as_ref().is_none_or(|pieces| Arc::strong_count(pieces) == 1),
            _ => true,
        }
    }

    /// Returns true if no caller waits for its arrival, so that it may wait for company.
    pub(super) fn is_patient(&self) -> bool {
        match self {
            Op::Put { .. } => true,
            Op::PutSignal { signal, .. } => signal.patient,
            Op::Block(block) => !matches!(block.what, BlockKind::Get { .. }),
            _ => false,
        }
    }

    /// The origin of what it asks for, and the number of bytes that it has not asked for yet.
    pub(super) fn unasked(&self) -> Option<(u64, usize)> {
        match self {
            Op::Get { len, at, origin, .. } => Some((*origin, len - at)),
            Op::Block(block) => match block.what {
                BlockKind::Get { origin } => Some((origin, block.len - block.at)),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns true if it changes something at its target, and no answer reports that.
    pub(super) fn is_unanswered(&self) -> bool {
        match self {
            Op::Small { .. } | Op::Note(_) | Op::Change { .. } | Op::Get { .. } | Op::Long { put: false, .. } => false,
            Op::Put { .. } | Op::PutSignal { .. } | Op::Append { .. } | Op::Long { put: true, .. } => true,
            Op::Block(block) => !matches!(block.what, BlockKind::Get { .. }),
        }
    }

    /// Returns true if it asks for bytes.
    pub(super) fn is_get(&self) -> bool {
        match self {
            Op::Get { .. } => true,
            Op::Block(block) => matches!(block.what, BlockKind::Get { .. }),
            _ => false,
        }
    }

    /// How its next bytes travel, if more than `packed` bytes travel in bulk messages.
    pub(super) fn road(&self, packed: usize) -> PayloadRoad {
        match self {
            Op::Block(block) if block.len - block.at > packed => match block.straight {
                Some(_) => PayloadRoad::Straight,
                None if self.is_get() => PayloadRoad::Frame,
                None => PayloadRoad::LongFrame,
            },
            _ => PayloadRoad::Frame,
        }
    }
}

/// How bytes of an operation travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PayloadRoad {
    /// In ordinary frames, or it says itself.
    Frame,
    /// Packed into a long frame.
    LongFrame,
    /// From or into the caller's memory.
    Straight,
}

/// One other endpoint.
#[derive(Debug, Default)]
pub(super) struct Peer {
    /// Whom an operation is for, among the ranks that the endpoint answers for.
    pub(super) queue: VecDeque<(u16, Op)>,
    /// The frames being filled.
    pub(super) requests: Option<Frame>,
    pub(super) answers: Option<Frame>,
    pub(super) credit: Credit,
    /// Requests with a signal in the frame being filled: complete when it has left.
    pub(super) signals: Vec<Token>,
    /// Bytes asked for that have not come.
    pub(super) asked: usize,
    /// Blocks still to be packed into long frames, because the peer was slow to take one from the caller's memory.
    pub(super) busy: u32,
    /// It is in the list of those that may have something to send.
    pub(super) listed: bool,
    /// Something came since the last beat.
    pub(super) heard: bool,
    /// Counts of operations that get no answer: `sent` of all, `flushes` of those before each unanswered flush, `handled` of
    /// those before the last answered one.
    pub(super) sent: u64,
    pub(super) flushes: VecDeque<u64>,
    pub(super) handled: u64,
    /// It is in the list of those that may not have said that all was handled.
    pub(super) unsettled: bool,
    /// What it asks for.
    pub(super) inbox: PeerRequests,
    /// Memory that this rank reaches by itself, of each rank that the endpoint answers for.
    pub(super) known: Vec<Known>,
    /// It was asked to acknowledge what was sent, and has not answered.
    pub(super) acknowledges: bool,
    /// The first words of a letter, of which more follow.
    pub(super) letter: Vec<u64>,
    /// Flushes, each with the number of one-sided transfers that must end before it.
    pub(super) quiet_flushes: VecDeque<(u64, Token)>,
}

impl Peer {
    /// What is known of a rank that the endpoint answers for.
    pub(super) fn known(&mut self, number: u16) -> &mut Known {
        let number = usize::from(number);
        if number >= self.known.len() {
            self.known.resize_with(number + 1, Known::default);
        }
        &mut self.known[number]
    }

    /// Counts a submitted operation. Returns true if the peer is to be listed as one that has not said that all was handled.
    pub(super) fn submits(&mut self, is_unanswered: bool, is_flush: bool) -> bool {
        if is_flush {
            self.flushes.push_back(self.sent);
        }
        if !is_unanswered {
            return false;
        }
        self.sent += 1;
        !std::mem::replace(&mut self.unsettled, true)
    }

    /// Returns true if it has acknowledged all requests that were written.
    pub(super) fn has_acknowledged(&self) -> bool {
        self.credit.is_quiet() && self.requests.as_ref().is_none_or(Frame::is_empty)
    }

    /// Nothing is left to be sent, and nothing sent is unacknowledged.
    pub(super) fn is_quiet(&self) -> bool {
        self.queue.is_empty()
            && self.requests.as_ref().is_none_or(Frame::is_empty)
            && self.answers.as_ref().is_none_or(Frame::is_empty)
            && self.credit.is_quiet()
            && self.inbox.is_empty()
    }
}

/// What one other rank asks for.
pub(super) type PeerRequests = Requests<Waiting, ReceivedFrame>;

/// A frame of requests, and the number of its words that are not handled.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) frame: Frame,
    pub(super) left: usize,
}

/// A long frame that a message is received into.
#[derive(Debug)]
pub(super) struct ReceivedFrame {
    pub(super) frame: Frame,
    /// The record whose payload the message is. Without one, it brings records.
    pub(super) payload_of: Option<HeldRecord>,
}
