//! What a network between nodes does, and nothing else.
//!
//! A network never asks where a rank is: [`Joined`](crate::comm::node::joined::Joined) gives it the operations on ranks whose memory is not mapped,
//! and does the others itself. It may be given any rank, the caller's own too.

use std::{io, ops::Range, time::Duration};

use super::{Connections, Events, Operations, note::Note};

/// A network: it carries out the operations, and helps a rank to wait and to end.
///
/// Required is [`attend`](Self::attend), beside the eight methods of [`Operations`]. What is said at the end of a rank passes through layers.
pub(crate) trait Network: Operations {
    /// Makes progress for a rank that waits. Returns true if [`poll`](Operations::poll) has something to report, or more to do:
    /// the rank must not sleep then.
    fn attend(&self) -> bool;

    /// As [`Conduit::poll_patiently`](crate::comm::Conduit::poll_patiently), for networks that know what a rank does while it waits.
    fn poll_patiently(&self, events: &mut Events, _first: &mut Option<Duration>, _most: Duration) {
        self.poll(events);
    }

    /// The network that a layer stands on.
    fn below(&self) -> Option<&dyn Network> {
        None
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

    /// Prepares for a sleep. Returns true if the rank's bell, or the word that it waits on, wakes it when something comes. If
    /// not, it has to look again at once.
    fn arm(&self) -> bool {
        self.below().is_some_and(Network::arm)
    }

    /// Returns true if this rank has asked for something that was not answered, or answers for others.
    fn expects(&self) -> bool {
        self.below().is_some_and(Network::expects)
    }

    /// Sleeps until something comes to this rank, or the limit. Does not sleep if something has come already, or if `ready` holds when the network
    /// is prepared to wake it. False if it cannot sleep there now: the network lets nobody, or another thread is in its place.
    fn doze(&self, limit: Duration, ready: &dyn Fn() -> bool) -> bool {
        self.below().is_some_and(|below| below.doze(limit, ready))
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

    /// Sends a note to the supervisor of a rank of another machine, as soon as it can. A network inside one machine sends none.
    fn send_note(&self, rank: usize, note: Note) {
        match self.below() {
            Some(below) => below.send_note(rank, note),
            None => debug_assert!(false, "a note for rank {rank} over a network inside one machine"),
        }
    }

    /// This rank ended the job, or found out that another has: tells the ranks of other machines, as far as it can.
    fn announce_end(&self, culprit: usize, cause: &str) {
        self.below().into_iter().for_each(|below| below.announce_end(culprit, cause));
    }

    /// The body of this rank ended, well or not. Called once; what outlives the body may still call.
    fn body_ended(&self) {
        self.below().into_iter().for_each(Network::body_ended);
    }

    /// Returns when all that this rank sent was handled, or the job is over. At the end of a rank, for networks that need its help.
    fn drain(&self) {
        self.below().into_iter().for_each(Network::drain);
    }

    /// Answers others until `ready`, or the job is over. At the end of a rank, for networks that need its help.
    fn serve_until(&self, ready: &dyn Fn() -> bool) {
        self.below().into_iter().for_each(|below| below.serve_until(ready));
    }
}
