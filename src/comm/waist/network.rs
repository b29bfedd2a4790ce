//! What a network between nodes does, and nothing else.
//!
//! A network never asks where a rank is: the [`Conduit`](crate::comm::node::Conduit) does operations on mapped memory itself. The
//! network takes any rank, the caller's own too.

use std::{fmt, io, ops::Range, time::Duration};

use super::{Capabilities, Connections, Events, Issued, Local, Operation, Remote, Token, note::Note};

/// What a rank may want to know at once of what it has issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Awaited {
    /// A get that is the only transfer of its token.
    Get(Token),
    /// All that was put to a rank, or added there.
    Puts(usize),
}

/// How a rank slept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slept {
    /// In the network: it looks again.
    Here,
    /// Not yet. What comes rings the rank's bell, or changes the word that it waits on.
    Bell,
    /// Not at all: nothing would wake it.
    Not,
}

/// A sleep in the network, and what else ends it.
#[derive(Clone, Copy)]
pub(crate) struct Nap<'a> {
    /// Its longest time; zero prepares for a sleep elsewhere.
    pub limit: Duration,
    /// Only if this rank has asked for something that was not answered, or answers for others. Else it waits for its node.
    pub if_owed: bool,
    /// Returns true if the rank must not sleep. Asked when the network is prepared to wake it.
    pub ready: &'a dyn Fn() -> bool,
}

/// What supervisors tell those of other machines.
#[derive(Clone, Debug)]
pub(crate) enum Announcement<'a> {
    /// A note for the supervisor of a rank.
    Note(usize, Note),
    /// This rank ended the job because of `culprit`, or found out that another has.
    End { culprit: usize, cause: &'a str },
}

/// The steps of a rank's end, in their order.
#[derive(Clone, Copy)]
pub(crate) enum LeaveStep<'a> {
    /// The body ended, well or not. What outlives it may still call.
    BodyEnded,
    /// The body returned well: returns when all that the rank sent was handled, or the job is over. It sends nothing more by itself.
    Drain,
    /// Answers others until this returns true, or the job is over.
    Serve(&'a dyn Fn() -> bool),
}

/// A network: it carries out operations on the segments of ranks, and helps a rank to wait and to end.
///
/// The first seven methods are required. A layer passes the others on to the network [`below`](Self::below).
pub(crate) trait Network: Send + Sync + fmt::Debug {
    /// What the hardware does. Constant.
    fn capabilities(&self) -> &Capabilities;

    /// Starts writing `local` to a place in the segment of a rank: at most [`Capabilities::longest_transfer`] bytes. An
    /// [`Operation::Flush`] reports visibility at the target. Puts and gets are no [`Operation`], because they are the short ones: as
    /// values, eight bytes over the loopback took 119 ns in place of 89.
    ///
    /// # Safety
    /// As [`Operation`] says.
    unsafe fn put(&self, to: Remote, local: Local, token: Token) -> Issued;

    /// Starts reading from a place in the segment of a rank into `local`, which has the data at completion. Otherwise as
    /// [`put`](Self::put).
    ///
    /// # Safety
    /// As [`Operation`] says.
    unsafe fn get(&self, from: Remote, local: Local, token: Token) -> Issued;

    /// Starts an operation. Its end comes as an event with the token, unless the answer says more.
    ///
    /// # Safety
    /// As [`Operation`] says.
    unsafe fn issue(&self, operation: &Operation<'_>, token: Token) -> Issued;

    /// Gives up the transfers of a request that read or write memory of the caller: each is reported as ended, or failed, as soon
    /// as that memory is no longer touched.
    fn cancel(&self, token: Token);

    /// Makes progress and appends what happened. Never blocks.
    fn poll(&self, events: &mut Events);

    /// Makes progress for a rank that waits. Returns true if [`poll`](Self::poll) has something to report, or more to do:
    /// the rank must not sleep then.
    fn attend(&self) -> bool;

    /// The network that a layer stands on.
    fn below(&self) -> Option<&dyn Network> {
        None
    }

    /// Looks at what the caller waits for, for some microseconds if that may help. Returns true if it is complete, or visible; no event follows
    /// then. A layer does not pass it on if it changes what happens.
    fn is_complete(&self, _awaited: Awaited) -> bool {
        false
    }

    /// The connections of this rank, if the network has any.
    fn connections(&self) -> Option<Connections> {
        self.below().and_then(Network::connections)
    }

    /// A range of the caller's segment was committed: makes it known to adapters, if they have to know it.
    ///
    /// # Errors
    /// What the network says, for people: most often, that it must not pin that much memory. `Interrupted` if the job is over:
    /// then adapters may have it.
    fn opens(&self, range: Range<usize>) -> io::Result<()> {
        self.below().map_or(Ok(()), |below| below.opens(range))
    }

    /// A range is about to be given back: returns when no adapter reads or writes it any more.
    ///
    /// # Errors
    /// The job is over.
    fn shuts(&self, range: Range<usize>) -> io::Result<()> {
        self.below().map_or(Ok(()), |below| below.shuts(range))
    }

    /// Lets the rank sleep until something comes to it, or prepares for its sleep. Does not sleep if something has come already, or
    /// if another thread of the rank sleeps there.
    fn nap(&self, nap: Nap<'_>) -> Slept {
        self.below().map_or(Slept::Not, |below| below.nap(nap))
    }

    /// Returns true if a look at the network could do more than the last one did: handle what has come, or send what waits. For
    /// networks in virtual time.
    fn is_behind(&self) -> bool {
        self.below().is_some_and(Network::is_behind)
    }

    /// Returns true if all was handled that this rank has put or sent to others, and it has learned of what they sent. If not,
    /// makes sure that a later call says so. `None` if that cannot be said now. A network in which nothing is ever in flight need
    /// not say anything.
    fn settled(&self) -> Option<bool> {
        self.below().map_or(Some(true), Network::settled)
    }

    /// Passes a word on to other machines, as soon as it can. A network inside one machine need not.
    fn tell(&self, word: Announcement<'_>) {
        self.below().into_iter().for_each(|below| below.tell(word.clone()));
    }

    /// A step of the rank's end, for networks that need its help.
    fn leave(&self, step: LeaveStep<'_>) {
        self.below().into_iter().for_each(|below| below.leave(step));
    }
}
