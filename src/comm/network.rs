//! What a network between nodes does, and nothing else.
//!
//! A network never asks where a rank is: [`Joined`](super::joined::Joined) gives it the operations on ranks whose memory is not mapped,
//! and does the others itself. It may be given any rank, the caller's own too.

use super::Operations;

/// A network: it carries out the operations, and helps a rank to wait and to end.
///
/// The first two methods are required, ten with those of [`Operations`].
pub(crate) trait Network: Operations {
    /// Makes progress for a rank that waits. Whether [`poll`](Operations::poll) has something to report.
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

    /// Returns when all that this rank sent was handled, or the job is over. At the end of a rank, for networks that need its help.
    fn drain(&self) {}

    /// Answers others until `ready`, or the job is over. At the end of a rank, for networks that need its help.
    fn serve_until(&self, ready: &dyn Fn() -> bool) {
        let _ = ready;
    }
}
