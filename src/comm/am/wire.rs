//! What active messages ask of a network.

use std::{fmt, result, sync::Arc, time::Duration};

use super::{frame::Frame, long_frames::LONG_FRAME};
use crate::comm::{Atomic, Connections};

/// What carries frames and bulk messages between the ranks of a job. No frame goes from a rank to itself.
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

    /// Sends a sealed frame. The frame comes back if there is no room for it now; the caller then sends that one before any other of its class to
    /// that rank. A frame for a rank that has come to its end may be lost.
    ///
    /// # Errors
    /// [`Broken`].
    fn send(&mut self, to: usize, class: Class, frame: Frame) -> Result<Option<Frame>>;

    /// Frames that were sent and whose memory is not free: none if [`send`](Wire::send) copies. Where one-sided transfers share that memory, these too.
    fn leaving(&self) -> usize;

    /// The next frame that has arrived, of either class. If classes have queues of their own, replies come first.
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

    /// Gives up a bulk message that is being received, or a transfer that goes straight: [`Wire::ended`] reports it as soon as its memory is not
    /// touched any more. The wire throws away what comes after that.
    fn cancel(&mut self, _id: BulkId) {}

    /// Appends bulk messages that have ended, and takes back frames that have left. Looks at a bounded number.
    ///
    /// # Errors
    /// [`Broken`].
    fn ended(&mut self, ended: &mut Vec<Ended>) -> Result<()>;

    /// What reads and writes the memory of peers, if [`Limits::one_sided`] says that the wire can.
    fn one_sided(&mut self) -> Option<&mut dyn OneSided> {
        None
    }

    /// The connections of this rank, if the wire has any.
    fn connections(&self) -> Option<Connections> {
        None
    }

    /// Prepares for a sleep of the rank in the memory of its machine. Returns true if an arrival rings the rank's bell there. If neither this nor
    /// [`sleeper`](Wire::sleeper) can end a sleep, a waiting rank looks again and again, and its helper at intervals.
    fn arm(&mut self) -> bool {
        false
    }

    /// What wakes a thread when something arrives, if the wire can do that. Constant.
    fn sleeper(&self) -> Option<Arc<dyn Sleeper>> {
        None
    }

    /// The last call: nothing is sent or received behind it. Memory that the network may still use is forgotten and not freed.
    fn close(&mut self);
}

/// What ends a sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Wakes {
    /// What others have sent. Not what this side has sent or transferred, when that is done.
    Arrivals,
    /// Either.
    All,
}

/// Lets one thread sleep until something arrives. It sleeps without a lock that another thread needs to look at the wire.
pub(crate) trait Sleeper: Send + Sync + fmt::Debug {
    /// Prepares for a sleep. Returns true if that can be done. What came before does not end the sleep, so look once more in
    /// between. No other thread looks at the wire meanwhile.
    fn arm(&self, wakes: Wakes) -> bool;

    /// Sleeps until something has come since [`arm`](Self::arm), or the limit has passed.
    fn sleep(&self, limit: Duration);

    /// Lets other ranks go on before the caller looks again. False if the job is over and nothing will come.
    fn pass(&self) -> bool;
}

/// Writes into and reads from the memory of peers, without their processors.
///
/// The order of all that is sent to a peer is kept, writes and frames, but for what the peer *handles*: before a transfer begins, all frames must
/// have been acknowledged as handled whose effects meet its own. A read sees what was written before, and perhaps what is written later.
///
/// A transfer is *copied*, or goes *straight* from or into the memory of the caller. [`Wire::ended`] reports the end of those that go straight,
/// by their id, and [`Wire::cancel`] gives them up. Of a transfer that was given up some bytes have moved, and others never will. In one that ends
/// in any other way but by the end of the job, all bytes have moved.
pub(crate) trait OneSided {
    /// Opens memory of this rank to its peers, until it is shut.
    ///
    /// # Safety
    /// It stays mapped until it is shut, or the wire is closed; nobody holds Rust references to it.
    ///
    /// # Errors
    /// What the network says, for people.
    unsafe fn open(&mut self, start: *mut u8, len: usize) -> result::Result<Opened, String>;

    /// Shuts memory that was opened. When it returns nothing reads or writes it any more; a peer that tries loses the connection.
    ///
    /// # Errors
    /// [`Broken`].
    fn shut(&mut self, opened: Opened) -> Result<()>;

    /// Returns true if transfers with a peer can begin now. If not, a connection is on its way.
    ///
    /// # Errors
    /// [`Broken`].
    fn may_transfer(&mut self, with: usize) -> Result<bool>;

    /// Begins to write copies of `pieces`. Returns the number of pieces begun: fewer than all if there is no more room.
    ///
    /// # Safety
    /// The bytes at `here` are readable during the call. `there` is open at the peer until the transfer has ended.
    ///
    /// # Errors
    /// [`Broken`].
    unsafe fn write(&mut self, to: usize, pieces: &[Piece]) -> Result<usize>;

    /// Begins to read pieces that follow one another in what `origin` asks for, from byte `at` on. Returns the number of pieces
    /// begun. [`take_read`](Self::take_read) hands them out; nobody looks at their `here`.
    ///
    /// # Safety
    /// `there` is open at the peer until the transfer has ended.
    ///
    /// # Errors
    /// [`Broken`].
    unsafe fn read(&mut self, from: usize, pieces: &[Piece], origin: u64, at: usize) -> Result<usize>;

    /// Begins an atomic operation on a word of eight bytes, of a peer or of this rank. False if there is no room.
    /// [`take_read`](Self::take_read) hands out the old value. What begins later comes behind it where both meet.
    ///
    /// # Safety
    /// The word is open, and aligned, until the operation has ended.
    ///
    /// # Errors
    /// [`Broken`].
    unsafe fn change(&mut self, _at: usize, _word: Piece, _atomic: Atomic, _origin: u64) -> Result<bool> {
        unreachable!("a wire without atomics is asked for none")
    }

    /// Begins to move a piece from, or if it `reads` into, where it lies. False if there is no room, or that memory cannot be used.
    ///
    /// # Safety
    /// The bytes may be read, or written and nobody touches them, until the end is reported. `there` is open at the peer as long.
    ///
    /// # Errors
    /// [`Broken`].
    unsafe fn go_straight(&mut self, with: usize, reads: bool, piece: Piece, id: BulkId) -> Result<bool>;

    /// Hands out copies of what was read: the origin, the place in it, the bytes. Returns true if there was anything.
    fn take_read(&mut self, each: &mut dyn FnMut(u64, usize, &[u8])) -> bool;

    /// Returns true if all transfers with a peer have ended, and what was read was handed out. Looks at the network if that was
    /// not known.
    ///
    /// # Errors
    /// [`Broken`].
    fn have_ended(&mut self, with: usize) -> Result<bool>;

    /// Looks for the end of reads. Returns true if a read is under way, or has ended and was not handed out.
    ///
    /// # Errors
    /// [`Broken`].
    fn look_for_read(&mut self) -> Result<bool>;

    /// Returns true if something is known to have come that [`Wire::receive`] has not handed out.
    fn has_arrivals(&self) -> bool;

    /// The numbers of transfers with a peer that have begun, and that have ended. They end in their order.
    fn transfers(&self, with: usize) -> Transfers;
}

/// What fits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Bytes of a frame: a multiple of 8, at least [`LEAST_FRAME`], less than 1 MiB. A wire whose packets are shorter cuts frames.
    pub frame: usize,
    /// What travels in bulk messages, if there are any.
    pub bulk: Option<BulkLimits>,
    /// What is read from and written into the memory of peers, if the wire can do that. A wire has this, bulk messages, or neither.
    pub one_sided: Option<OneSidedLimits>,
    /// The first rank of a node answers for all of it, so that others need one connection with the node: for wires whose
    /// connections are costly. If not, each rank answers for itself.
    pub by_agents: bool,
}

/// Lengths of one-sided transfers, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OneSidedLimits {
    /// The longest piece that is copied.
    pub copied: usize,
    /// Pieces from this length on go straight.
    pub straight: usize,
    /// The longest of those.
    pub longest: usize,
    /// Runs of a block from this length on are pieces; shorter ones are packed into records.
    pub run: usize,
    /// Gets are reads. If not, they are records.
    pub reads: bool,
    /// Words of eight bytes are changed by [`OneSided::change`], and by nothing else.
    pub atomics: bool,
}

/// What peers name open memory by, as large as that of any network: a word of InfiniBand has 32 bits, a handle of Gemini 128.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key(pub [u64; 2]);

impl From<u32> for Key {
    fn from(key: u32) -> Self {
        Key([key.into(), 0])
    }
}

impl Key {
    /// The key that it was made of, in networks whose keys have 32 bits.
    pub(crate) fn short(self) -> u32 {
        self.0[0] as u32
    }
}

/// Memory that is open to peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Opened {
    /// What peers name its first byte by, with the key.
    pub address: u64,
    pub key: Key,
    /// What the wire knows it by.
    pub id: u64,
}

/// Bytes here, and their place at a peer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    /// An address there, as the peer has told it, and the key of the memory that holds it.
    pub there: u64,
    pub key: Key,
    pub here: *mut u8,
    pub len: usize,
}

// SAFETY: an address; only unsafe calls access what is there, and say when.
unsafe impl Send for Piece {}

/// See [`OneSided::transfers`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Transfers {
    pub begun: u64,
    pub ended: u64,
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
    /// The length in bytes from which contiguous puts and gets are bulk messages.
    pub(super) fn contiguous(&self) -> usize {
        self.bulk.map_or(usize::MAX, |bulk| bulk.contiguous)
    }

    /// The number of packed bytes from which they travel in bulk messages.
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

    /// Returns true if an answer of `bytes` bytes comes in a long frame.
    pub(super) fn is_long(&self, bytes: usize) -> bool {
        bytes > self.longest_answer()
    }

    /// The most bytes that one answer brings, where `rest` bytes are wanted.
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
