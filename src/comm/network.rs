//! What a network between nodes does, and nothing else.
//!
//! A network never asks where a rank is: [`Joined`](super::joined::Joined) gives it the operations on ranks whose memory is not mapped,
//! and does the others itself. It may be given any rank, the caller's own too.

use std::fmt;

use super::{AtomicOp, Capabilities, Event, Events, Full, Local, Mail, Scale, SignalWord, Token};
use crate::index::Loops;

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
    /// Its local memory may be used again. No event will come, and the rest happens without a further call.
    Complete,
}

impl Issued {
    /// Reports a completion as an event, for whom the caller cannot tell at once.
    pub(crate) fn report(self, token: Token, events: &mut Events) {
        if self == Issued::Complete {
            events.push(Event::LocalDone(token));
        }
    }
}

/// A network. The first ten methods are required. Of the others, those that move data belong to [`Capabilities::native`].
///
/// Completion, order and the duties of callers are those of the [`Conduit`](super::Conduit)'s methods of the same names.
pub(crate) trait Network: Send + Sync + fmt::Debug {
    /// What the hardware does. Constant for the life of the network.
    fn capabilities(&self) -> &Capabilities;

    /// Starts a put.
    ///
    /// # Safety
    /// As [`Conduit::put`](super::Conduit::put).
    unsafe fn put(&self, to: Remote, local: Local, token: Token) -> Issued;

    /// Starts a get.
    ///
    /// # Safety
    /// As [`Conduit::get`](super::Conduit::get).
    unsafe fn get(&self, from: Remote, local: Local, token: Token);

    /// Asks for [`Event::RemoteDone`](super::Event::RemoteDone) once what was put to a rank before is visible.
    fn flush(&self, rank: usize, token: Token);

    /// Gives up the transfers of a request.
    fn cancel(&self, token: Token);

    /// Starts an atomic operation.
    ///
    /// # Safety
    /// As [`Conduit::atomic`](super::Conduit::atomic).
    unsafe fn atomic(&self, word: Remote, atomic: Atomic, token: Token);

    /// Sends mail.
    ///
    /// # Errors
    /// [`Full`]: nothing was sent.
    fn mail(&self, rank: usize, mail: Mail) -> Result<(), Full>;

    /// Makes progress and appends what happened. Never blocks.
    fn poll(&self, events: &mut Events);

    /// Makes progress for a rank that waits. Whether [`poll`](Self::poll) has something to report.
    fn attend(&self) -> bool;

    /// Prepares for a sleep: whether the rank's bell, or the word that it waits on, wakes it when something comes. If not, it has to look
    /// again at once.
    fn arm(&self) -> bool;

    /// This rank ended the job, or found out that another has: tells the ranks of other machines, as far as it can.
    fn announce_end(&self, culprit: usize, cause: &str) {
        let _ = (culprit, cause);
    }

    /// Whether whoever sees a published wait of a rank of this machine, on another node, finds all that the rank had put or sent before.
    fn shows_waits(&self) -> bool {
        false
    }

    /// The body of this rank ended, well or not: for layers that say then what they saw. Called once.
    fn body_ended(&self) {}

    /// Returns when all that this rank sent was handled, or the job is over. At the end of a rank, for networks that need its help.
    fn drain(&self) {}

    /// Answers others until `ready`, or the job is over. At the end of a rank, for networks that need its help.
    fn serve_until(&self, ready: &dyn Fn() -> bool) {
        let _ = ready;
    }

    /// A put with a signal, if [`Native::signals`](super::Native::signals) is announced.
    ///
    /// # Safety
    /// As [`Conduit::put_signal`](super::Conduit::put_signal).
    unsafe fn put_signal(&self, to: Remote, local: Local, signal: SignalWord, token: Token) -> Issued {
        let _ = (to, local, signal, token);
        unreachable!("a network that does not announce signals is never asked for them")
    }

    /// Starts writing a block, if [`Native::blocks`](super::Native::blocks) is announced.
    ///
    /// # Safety
    /// As [`Conduit::put_block`](super::Conduit::put_block).
    unsafe fn put_block(&self, to: Remote, loops: &Loops, local: *const u8, token: Token) -> Issued {
        let _ = (to, loops, local, token);
        unreachable!("a network that does not announce blocks is never asked for them")
    }

    /// Starts reading a block, if [`Native::blocks`](super::Native::blocks) is announced.
    ///
    /// # Safety
    /// As [`Conduit::get_block`](super::Conduit::get_block).
    unsafe fn get_block(&self, from: Remote, loops: &Loops, local: *mut u8, token: Token) {
        let _ = (from, loops, local, token);
        unreachable!("a network that does not announce blocks is never asked for them")
    }

    /// Starts adding a block, if [`Native::accumulate`](super::Native::accumulate) is announced.
    ///
    /// # Safety
    /// As [`Conduit::accumulate_block`](super::Conduit::accumulate_block).
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
        unreachable!("a network that does not announce accumulates is never asked for them")
    }
}
