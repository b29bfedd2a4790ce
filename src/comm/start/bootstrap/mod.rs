//! How ranks that are processes of a launcher meet, before there is a network between them.
//!
//! | how a job starts | how its ranks meet |
//! |---|---|
//! | a fork, or threads | nothing: they inherit the mapping |
//! | an MPI library, over `mpi` | a communicator (`mpi`) |
//! | an MPI library, over another network | words that every rank keeps for all (`mpi`) |
//! | a launcher alone | words that the launcher keeps for them ([`launched`]): PMI-1, PMI-2 or PMIx |
//! | anything else: ssh, PBS, a script | words that a thread of rank 0 keeps (`root`) |
//!
//! A [`Bootstrap`] carries a few words of each rank. What all jobs make of them is [`place`]: which ranks share a machine, the mapping of
//! its memory, and the *token* of the job. Rank 0 draws it, 128 random bits, and it travels by the bootstrap alone. It stands in the
//! mapping, so no rank takes the memory of another job for its own.

mod exit;
pub(crate) mod key_values;
pub(super) mod launched;
mod line;
mod mapping;
mod patience;
pub(in crate::comm) mod place;
mod pmi1;
mod pmi2;
mod pmix;
mod root;

#[cfg(feature = "mpi")]
pub(in crate::comm) use self::{
    exit::{at_exit, end_process},
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
