//! What a network has to be able to do for active messages: to deliver frames and, if it can, to move bytes between the memories
//! of two ranks without a copy.

use std::{fmt, result};

use super::{frame::Frame, long_frames::LONG_FRAME};
use crate::comm::Connections;

/// What carries frames and bulk messages between the ranks of a job.
///
/// Calls come from one thread at a time. None of them blocks.
///
/// A *frame* is eager: it arrives without a receive for it. Frames of one class from one rank to another arrive in the order of their
/// sending. A *bulk message* is half of a rendezvous: the sender and the receiver name the same [`Tag`], and the bytes go from memory to
/// memory. The frame that announces one may arrive before it or after it. A wire whose [`limits`](Wire::limits) have none is never asked for
/// them, and leaves these methods out.
pub(crate) trait Wire: Send + fmt::Debug {
    /// How long frames and bulk messages are. Constant.
    fn limits(&self) -> Limits;

    /// An empty frame.
    fn frame(&mut self) -> Frame;

    /// Gives a frame back, one that was received or was not sent.
    fn keep(&mut self, frame: Frame);

    /// Sends a sealed frame. The frame comes back if there is no room for it now.
    ///
    /// # Errors
    /// [`Broken`].
    fn send(&mut self, to: usize, class: Class, frame: Frame) -> Result<Option<Frame>>;

    /// Frames that were sent and whose memory is not free.
    fn leaving(&self) -> usize;

    /// The next frame that has arrived.
    ///
    /// # Errors
    /// [`Broken`].
    fn receive(&mut self) -> Result<Option<Arrival>>;

    /// Starts sending a bulk message. [`Wire::ended`] reports `id` once.
    ///
    /// # Safety
    /// The bytes may be read until then.
    ///
    /// # Errors
    /// [`Broken`].
    unsafe fn send_bulk(&mut self, _to: usize, _bytes: *const u8, _len: usize, _tag: Tag, _id: BulkId) -> Result<()> {
        unreachable!("a wire without bulk messages is never asked for them")
    }

    /// Starts receiving a bulk message of at most `len` bytes. [`Wire::ended`] reports `id` once.
    ///
    /// # Safety
    /// The bytes may be written, and nobody else touches them, until then.
    ///
    /// # Errors
    /// [`Broken`].
    unsafe fn receive_bulk(&mut self, _from: usize, _bytes: *mut u8, _len: usize, _tag: Tag, _id: BulkId) -> Result<()> {
        unreachable!("a wire without bulk messages is never asked for them")
    }

    /// Gives up a bulk message that is being received: [`Wire::ended`] reports it as soon as its memory is not touched any more. The wire
    /// throws away what comes after that.
    fn cancel(&mut self, _id: BulkId) {}

    /// Appends bulk messages that have ended, and takes back frames that have left. Looks at a bounded number.
    ///
    /// # Errors
    /// [`Broken`].
    fn ended(&mut self, ended: &mut Vec<Ended>) -> Result<()>;

    /// The connections of this rank, if the wire has any.
    fn connections(&self) -> Option<Connections> {
        None
    }

    /// Prepares for a sleep of the rank: whether an arrival wakes it.
    fn arm(&mut self) -> bool {
        false
    }

    /// Nothing is sent or received any more. Memory that the network may still use is never freed.
    fn close(&mut self);
}

/// What fits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Bytes of a frame, at least [`LEAST_FRAME`]. A wire whose packets are shorter cuts frames.
    pub frame: usize,
    /// What travels in bulk messages, if there are any.
    pub bulk: Option<BulkLimits>,
}

/// From which lengths on bulk messages pay, in bytes: measured for each network.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BulkLimits {
    /// Contiguous puts and gets.
    pub contiguous: usize,
    /// Blocks that are packed or added, and answers.
    pub packed: usize,
    /// The longest message, at least a long frame.
    pub longest: usize,
}

/// Bytes of the shortest frame: any record without a payload fits, with room for some.
pub(crate) const LEAST_FRAME: usize = 512;

impl Limits {
    /// Contiguous puts and gets from so many bytes on are bulk messages.
    pub(super) fn contiguous(&self) -> usize {
        self.bulk.map_or(usize::MAX, |bulk| bulk.contiguous)
    }

    /// Packed bytes from so many on travel in bulk messages.
    pub(super) fn packed(&self) -> usize {
        self.bulk.map_or(usize::MAX, |bulk| bulk.packed)
    }

    /// The longest put or get.
    pub(super) fn longest(&self) -> usize {
        self.bulk.map_or(usize::MAX, |bulk| bulk.longest)
    }

    /// Payload of the longest answer in an ordinary frame.
    pub(super) fn longest_answer(&self) -> usize {
        Frame::room_when_empty(self.frame, 2, 0)
    }

    /// Whether an answer of so many bytes comes in a long frame.
    pub(super) fn is_long(&self, bytes: usize) -> bool {
        bytes > self.longest_answer()
    }

    /// Bytes that one answer brings, of so many.
    pub(super) fn most_asked(&self, rest: usize) -> usize {
        if rest > self.packed() { Frame::room_when_empty(LONG_FRAME, 2, 0) } else { self.longest_answer() }
    }
}

/// Frames of requests and of answers have queues of their own: a full queue of requests never keeps an answer from leaving.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    Request,
    Reply,
}

/// A frame that has arrived, and the bytes of it that count.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub from: usize,
    pub frame: Frame,
    pub len: usize,
}

/// What both sides of a bulk message call it. Numbers of one kind from one rank to another differ while messages are under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tag {
    pub kind: BulkKind,
    pub number: u64,
}

/// Which side chose the number of a bulk message, and what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BulkKind {
    /// From the rank that asks: bytes of a put or an accumulate, or a long frame of requests. The sender numbers it.
    Request = 0,
    /// To the rank that asks: bytes of a get. The receiver numbers it.
    Get = 1,
    /// To the rank that asks: a long frame of answers. The sender numbers it.
    Reply = 2,
}

/// Names a bulk message to the wire's caller; the wire hands it back unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BulkId(pub u64);

/// A bulk message that has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    pub id: BulkId,
    /// Bytes that were received.
    pub len: usize,
}

/// The network refused an operation. Which ranks can still be reached is not known, so the job ends.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Broken(pub String);

pub(crate) type Result<T> = result::Result<T, Broken>;
