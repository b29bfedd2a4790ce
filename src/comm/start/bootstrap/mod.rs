//! How ranks that are processes of a launcher meet, before there is a network between them.
//!
//! | how a job starts | how its ranks meet |
//! |---|---|
//! | a fork, or threads | nothing: they inherit the mapping |
//! | an MPI library | a communicator; for other networks, words that every rank keeps (`mpi`) |
//! | a launcher alone | words that the launcher keeps ([`launched`]) |
//! | ssh, PBS, a script | words that a thread of rank 0 keeps ([`root`]) |
//! | `ga-run` | words that a thread of it keeps ([`root::LauncherMeeting`]) |
//! | a meeting of the program | words that every rank keeps ([`meeting`]) |
//!
//! A [`Bootstrap`] carries a few words of each rank. From them [`place`] makes nodes and the job's *token*: 128 random bits, drawn
//! by rank 0, which travel by the bootstrap alone. The token stands in the mapping, so no rank takes the memory of another job.

mod exit;
pub(crate) mod key_values;
pub(super) mod launched;
mod line;
mod mapping;
pub(crate) mod meeting;
mod patience;
pub(in crate::comm) mod place;
mod pmi1;
mod pmi2;
mod pmix;
pub(in crate::comm) mod root;

#[cfg(feature = "mpi")]
pub(in crate::comm) use self::{
    exit::{at_exit, end_job, end_process},
    line::Line,
};

use crate::error::Error;

/// The ranks of a job before there is a network. All methods but the first two are collective over all ranks.
pub(crate) trait Bootstrap {
    /// The calling rank.
    fn rank(&self) -> usize;

    /// The number of ranks.
    fn size(&self) -> usize;

    /// Words of each rank, in their order.
    ///
    /// # Errors
    /// A rank, or the way of the words, is lost.
    fn gather<const N: usize>(&mut self, words: [u64; N]) -> Result<Vec<[u64; N]>, Error>;

    /// The node of each rank, if the launcher gives it, equal on all ranks.
    ///
    /// # Errors
    /// As [`gather`](Self::gather).
    fn nodes(&mut self) -> Result<Option<Vec<u32>>, Error> {
        Ok(None)
    }

    /// The words of each rank of the caller's node, in their order, if the caller is the first of it; else empty. Where
    /// [`nodes`](Self::nodes) are known.
    ///
    /// # Errors
    /// As [`gather`](Self::gather).
    fn near<const N: usize>(&mut self, _node: &[usize], _words: [u64; N]) -> Result<Vec<[u64; N]>, Error> {
        unreachable!("who knows no nodes is not asked for their words")
    }

    /// The greatest of each word.
    ///
    /// # Errors
    /// As [`gather`](Self::gather).
    fn greatest<const N: usize>(&mut self, words: [u64; N]) -> Result<[u64; N], Error>;

    /// The words of the first rank of the caller's group. Each rank is in one group.
    ///
    /// # Errors
    /// As [`gather`](Self::gather).
    fn tell<const N: usize>(&mut self, group: &[usize], words: [u64; N]) -> Result<[u64; N], Error>;
}
