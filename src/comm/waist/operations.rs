//! What a network and a conduit have in common: operations on segments, and the one way in.

use std::fmt;

use crate::{
    comm::{AtomicOp, Capabilities, Event, Events, Scale, Token},
    index::Loops,
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

/// What became of an operation when the call that started it returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Issued {
    /// It is under way: an event will come.
    Pending,
    /// Its local memory may be used again, and has the data of a get. No event will come, and the rest happens without a further call.
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

/// Raw memory of the calling rank, one side of a transfer.
///
/// Valid from the call until its local completion is polled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Local {
    /// First byte.
    pub ptr: *mut u8,
    /// Length in bytes.
    pub len: usize,
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
}

/// How a signal changes its word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SignalOp {
    /// The word becomes the value.
    Set,
    /// The value is added, wrapping. Additions exclude each other and whatever [`Operations::atomic`] excludes.
    Add,
}

/// Words for a collective that has no memory of its own yet: the creation of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mail {
    /// Names the collective.
    pub key: u64,
    /// What is said.
    pub words: [u64; 3],
}

/// The inbox of the target has no room now. Poll, then try again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full;

/// Most levels around the runs of a block that [`Operations::put_block`] and its like take.
pub(crate) const BLOCK_LEVELS: usize = 8;

/// Operations on the segments of ranks.
///
/// The first eight methods are required. The others move data too, and belong to [`Capabilities::native`]: what is not announced is
/// never called.
pub(crate) trait Operations: Send + Sync + fmt::Debug {
    /// What the hardware does. Constant.
    fn capabilities(&self) -> &Capabilities;

    /// Starts writing `local` to a place in the segment of a rank. [`Event::LocalDone`] with the token reports that the
    /// memory may be reused, unless that is so when the call returns; [`flush`](Self::flush) reports visibility at the target.
    ///
    /// # Safety
    /// `local` is readable until its completion is polled; the target range is committed there.
    unsafe fn put(&self, to: Remote, local: Local, token: Token) -> Issued;

    /// Starts reading from a place in the segment of a rank into `local`. [`Event::LocalDone`] reports that the data have arrived, unless they
    /// have when the call returns.
    ///
    /// # Safety
    /// `local` is writable, and nobody touches it until its completion is polled; the source range is committed there.
    unsafe fn get(&self, from: Remote, local: Local, token: Token) -> Issued;

    /// Polls briefly for a get that is the only transfer of its token. Returns true if it completed; no event follows then.
    fn ends_soon(&self, _token: Token) -> bool {
        false
    }

    /// Gives up the transfers of a request that read or write memory of the caller: each is reported as ended, or failed, as soon
    /// as that memory is no longer touched.
    fn cancel(&self, token: Token);

    /// Asks for [`Event::RemoteDone`] once everything that was put to `rank` or added there before is visible.
    fn flush(&self, rank: usize, token: Token);

    /// Returns true if all of that is visible already, and the network can say so at once. If not, [`flush`](Self::flush) reports
    /// when it is.
    fn is_flushed(&self, _rank: usize) -> bool {
        false
    }

    /// Starts an atomic operation. The old value comes as [`Event::Value`].
    ///
    /// # Safety
    /// The word is committed and aligned to its width, which is 4 or 8.
    unsafe fn atomic(&self, word: Remote, atomic: Atomic, token: Token);

    /// Sends mail; that of one rank to another arrives in order.
    ///
    /// # Errors
    /// [`Full`]: nothing was sent.
    fn mail(&self, rank: usize, mail: Mail) -> Result<(), Full>;

    /// Makes progress and appends what happened. Never blocks.
    fn poll(&self, events: &mut Events);

    /// A put with a signal, if [`Native::signals`](crate::comm::Native::signals) is announced: writes `local`, which may be empty, to a
    /// place in the segment of a rank as [`put`](Self::put) does, then changes a word there and wakes the rank that waits on it in
    /// [`Conduit::wait_on`](crate::comm::Conduit::wait_on).
    ///
    /// A rank that reads the new value also reads the bytes and, if [`Ordering::put_put`](crate::comm::Ordering::put_put) is announced,
    /// whatever the caller put or accumulated at that rank before. [`Event::LocalDone`] reports that the memory may be reused; the
    /// rest happens without a further call of the caller. A [`flush`](Self::flush) covers the put, whose place in the order of puts
    /// and gets is that of a plain [`put`](Self::put).
    ///
    /// # Safety
    /// As [`put`](Self::put), at most [`Capabilities::longest_transfer`] bytes; the word is a committed
    /// [`WaitWord`](crate::comm::WaitWord) apart from them.
    unsafe fn put_signal(&self, to: Remote, local: Local, signal: SignalWord, token: Token) -> Issued {
        let _ = (to, local, signal, token);
        unreachable!("what does not announce signals is never asked for them")
    }

    /// Starts writing the runs of `loops` to the segment of a rank, if [`Native::blocks`](crate::comm::Native::blocks) is announced. The
    /// byte offsets of `loops` are relative to `to` on the remote side and to `local` on the other; either may be negative; there
    /// are at most [`BLOCK_LEVELS`] levels. Completion and order are those of one [`put`](Self::put), whatever the block's size:
    /// [`Capabilities::longest_transfer`] does not bind it.
    ///
    /// # Safety
    /// Every local run is readable until the completion of `token` is polled; every remote run is committed there, and no two of
    /// them overlap. `loops` lives during the call only.
    unsafe fn put_block(&self, to: Remote, loops: &Loops, local: *const u8, token: Token) -> Issued {
        let _ = (to, loops, local, token);
        unreachable!("what does not announce blocks is never asked for them")
    }

    /// Starts reading the runs of `loops` from the segment of a rank; as [`put_block`](Self::put_block), with the completion and
    /// order of one [`get`](Self::get).
    ///
    /// # Safety
    /// Every local run is writable, and nobody touches it until the completion of `token` is polled, and no two of them overlap;
    /// every remote run is committed there. `loops` lives during the call only.
    unsafe fn get_block(&self, from: Remote, loops: &Loops, local: *mut u8, token: Token) {
        let _ = (from, loops, local, token);
        unreachable!("what does not announce blocks is never asked for them")
    }

    /// Starts adding `scale` times the local runs of `loops` to the remote ones, if
    /// [`Native::accumulate`](crate::comm::Native::accumulate) is announced. Addresses are those of [`put_block`](Self::put_block).
    /// Completion is that of a put: the memory may be used again at [`Event::LocalDone`], the sums are visible after a
    /// [`flush`](Self::flush); its place in the order of puts and gets is that of a put.
    ///
    /// A processor of the owner's node adds, under the stripes of the lock word at offset `lock` of the owner's segment: so do the
    /// processors that have its memory mapped, and each element is changed by one of them at a time.
    /// [`addition::add`](crate::comm::engine::addition::add) is that act, for the handler of whatever message is sent. Between accumulates any
    /// order is allowed.
    ///
    /// # Safety
    /// As [`put_block`](Self::put_block). Runs are whole numbers of elements of `scale.kind`; `lock` is the offset of a lock word,
    /// committed and aligned, in every segment.
    unsafe fn accumulate_block(
        &self,
        to: Remote,
        loops: &Loops,
        local: *const u8,
        scale: &Scale,
        lock: usize,
        token: Token,
    ) -> Issued {
        let _ = (to, loops, local, scale, lock, token);
        unreachable!("what does not announce accumulates is never asked for them")
    }
}
