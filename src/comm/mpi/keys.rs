//! Words that the ranks of *another* network keep for each other, where the program has an MPI library.
//!
//! Only the thread that runs the job calls MPI, when ranks meet and at the end.

use std::{io, sync::atomic::Ordering};

use rustix::process::{Pid, getppid};

use super::{
    exit,
    ffi::{self, Comm},
    start,
};
use crate::{
    comm::{
        kit::say::say,
        start::{
            bootstrap::{
                key_values::{Idle, KeyValues, Refused, Result},
                meeting::GatheredKeys,
            },
            launcher::Started,
        },
    },
    error::Error,
};

/// Longest value: none is cut.
const LONGEST: usize = 1 << 20;

/// What ranks have put.
#[derive(Debug)]
struct PutKeys {
    comm: Comm,
    keys: GatheredKeys,
    /// The launcher's process on this machine, or what it started this one by.
    parent: Option<Pid>,
}

/// See [`Meet`](crate::comm::start::bootstrap::key_values::Meet). Collective over the processes that the launcher started.
///
/// # Errors
/// MPI does not start, or numbers processes in another order than the launcher: all hear of that.
pub(in crate::comm) fn meet(started: &Started, idle: Idle<'_>) -> Result<Box<dyn KeyValues>> {
    let refused = |words: String| Refused::System(io::Error::other(words));
    let world = start::world_of(Some(started)).map_err(|error| match error {
        Error::Launch(words) => refused(words),
        other => refused(other.to_string()),
    })?;
    exit::meets();
    let comm = Comm::copy_of_while(world, idle)?;
    let asked = comm.rank().and_then(|rank| comm.greatest([u64::from(rank != started.rank())]));
    match asked.map_err(|error| refused(error.to_string()))? {
        [0] => Ok(Box::new(PutKeys { comm, keys: GatheredKeys::default(), parent: getppid() })),
        _ => Err(refused(
            "MPI numbers the processes in another order than the launcher (MPICH_RANK_REORDER_METHOD?); leave their order as it is, or choose \
             GA_NETWORK=mpi"
                .into(),
        )),
    }
}

impl KeyValues for PutKeys {
    fn size(&self) -> Option<usize> {
        self.comm.size().ok()
    }

    fn longest(&self) -> usize {
        LONGEST
    }

    fn put(&mut self, key: &str, value: &str, _idle: Idle<'_>) -> Result<()> {
        self.keys.put(key, value);
        Ok(())
    }

    fn fence(&mut self, idle: Idle<'_>) -> Result<()> {
        if !ffi::is_running() {
            return Err(Refused::System(io::Error::other("MPI was finalised in this process; run jobs before that")));
        }
        let comm = self.comm;
        self.keys.fence(|own| {
            let (bytes, ends) = comm.all_bytes(own, idle)?;
            let starts = [0].into_iter().chain(ends.iter().copied());
            Ok(starts.zip(&ends).map(|(start, &end)| bytes[start..end].to_vec()).collect())
        })
    }

    fn get(&mut self, from: usize, key: &str, _idle: Idle<'_>) -> Result<String> {
        self.keys.get(from, key)
    }

    fn finish(&mut self, _idle: Idle<'_>) -> Result<()> {
        exit::ends_well();
        Ok(())
    }

    fn abort(&mut self, why: &str) {
        // The others cannot meet either where MPI has ended.
        if ffi::is_running() {
            say(why);
            self.comm.abort();
        }
    }

    fn threads(&self) -> usize {
        start::THREADS_OF_MPI.load(Ordering::Relaxed)
    }

    fn is_gone(&self) -> bool {
        getppid() != self.parent
    }
}
