//! Ranks that meet by a communicator. `MPI_Comm_split_type` would tell less and wait longer.

use super::ffi::{Comm, MpiError, Result as MpiResult};
use crate::{comm::start::bootstrap::Bootstrap, error::Error};

/// Tag of what a first rank tells its group. Frames have another: they come later, from any rank.
const START: i32 = 1;

/// The ranks of a communicator.
pub(super) struct Meeting {
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

impl Meeting {
    pub(super) fn new(comm: Comm) -> Result<Self, Error> {
        Ok(Meeting { comm, rank: found(comm.rank())?, size: found(comm.size())? })
    }
}

impl Bootstrap for Meeting {
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
