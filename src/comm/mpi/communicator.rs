//! Ranks that meet by a communicator (`MPI_Comm_split_type` would tell less and wait longer), and communicators of some of them.

use mpi::topology::SimpleCommunicator;

use super::{
    exit,
    ffi::{self, Comm, MpiError, Result as MpiResult},
};
use crate::{
    comm::{Conduit, start::bootstrap::Bootstrap},
    error::Error,
};

/// Tag of what a first rank tells its group. Frames have another: they come later, from any rank.
const START: i32 = 1;

/// The ranks of a communicator.
pub(super) struct CommunicatorRanks {
    comm: Comm,
    rank: usize,
    size: usize,
}

pub(super) fn failed(what: &'static str) -> impl Fn(MpiError) -> Error {
    move |error| Error::Launch(format!("{what}: {error}"))
}

fn found<T>(result: MpiResult<T>) -> Result<T, Error> {
    result.map_err(failed("finding the ranks of this node"))
}

impl CommunicatorRanks {
    pub(super) fn new(comm: Comm) -> Result<Self, Error> {
        Ok(CommunicatorRanks { comm, rank: found(comm.rank())?, size: found(comm.size())? })
    }
}

impl Bootstrap for CommunicatorRanks {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn gather<const N: usize>(&mut self, words: [u64; N]) -> Result<Vec<[u64; N]>, Error> {
        found(self.comm.all_gather(words))
    }

    fn greatest<const N: usize>(&mut self, words: [u64; N]) -> Result<[u64; N], Error> {
        found(self.comm.greatest(words))
    }

    fn tell<const N: usize>(&mut self, group: &[usize], words: [u64; N]) -> Result<[u64; N], Error> {
        found(tell(self.comm, group, self.rank, words))
    }
}

fn tell<const N: usize>(comm: Comm, group: &[usize], rank: usize, mut words: [u64; N]) -> MpiResult<[u64; N]> {
    let (bytes, len) = ((&raw mut words).cast::<u8>(), size_of_val(&words));
    if group[0] != rank {
        // SAFETY: the words live, and are looked at by nobody, until the request is complete.
        unsafe { comm.begin_receive(bytes, len, Some(group[0]), START) }?.finish()?;
        return Ok(words);
    }
    // SAFETY: the words live, unchanged, until all requests are complete.
    let sends: Vec<_> = group[1..].iter().map(|&to| unsafe { comm.begin_send(bytes, len, to, START) }).collect();
    for send in sends {
        send?.finish()?;
    }
    Ok(words)
}

/// A communicator of some ranks of a job, in their order. Collective over them; the `key` is that of no other call at the time, and
/// `all_can` returns true if all of them can.
///
/// # Errors
/// The job's ranks are not processes of MPI; what MPI says.
pub(crate) fn communicator(
    conduit: &Conduit,
    ranks: impl Iterator<Item = usize>,
    key: u64,
    all_can: impl FnOnce(bool) -> Result<bool, Error>,
) -> Result<SimpleCommunicator, Error> {
    let own = exit::communicator_of(conduit.fabric());
    let all = own.or_else(|| (ffi::is_running() && !exit::is_inherited()).then(Comm::of_world)).filter(|all| {
        let place = (all.rank().ok(), all.size().ok());
        place == (Some(conduit.rank()), Some(conduit.topology().size()))
    });
    let can = all_can(all.is_some())?;
    let all = all.filter(|_| can).ok_or_else(|| {
        Error::argument(
            "mpi_comm",
            "the ranks of this job are not the processes of MPI in MPI's order: start them by mpirun or srun, or run the job on a communicator \
             (run_on)",
        )
    })?;
    all.of_ranks(ranks, key).map_err(failed("making a communicator of a group"))
}
