//! Words that the ranks of *another* network keep for each other, where the program has an MPI library.
//!
//! A fence gathers what every rank has put since the last one, some hundred bytes of each, and every rank keeps that. So an answer
//! takes no message, and any thread may ask. Only the thread that runs the job calls MPI, when ranks meet and at the end.

use std::{io, mem::take, sync::atomic::Ordering};

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
            bootstrap::key_values::{Idle, KeyValues, Refused, Result},
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
    /// What this rank has put since the last fence.
    own: String,
    known: Option<Texts>,
    /// The launcher's process on this machine, or what it started this one by.
    parent: Option<Pid>,
}

/// `key value;` again and again, of all ranks, and where the text of each ends.
#[derive(Debug)]
struct Texts {
    text: String,
    ends: Vec<usize>,
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
        [0] => Ok(Box::new(PutKeys { comm, own: String::new(), known: None, parent: getppid() })),
        _ => Err(refused(
            "MPI numbers the processes in another order than the launcher (MPICH_RANK_REORDER_METHOD?); leave their order as it is, or choose \
             GA_NETWORK=mpi"
                .into(),
        )),
    }
}

impl Texts {
    fn find(&self, from: usize, key: &str) -> Option<&str> {
        let start = from.checked_sub(1).map_or(Some(&0), |before| self.ends.get(before))?;
        let text = self.text.get(*start..*self.ends.get(from)?)?;
        text.split_terminator(';')
            .filter_map(|entry| entry.split_once(' '))
            .find_map(|(name, value)| (name == key).then_some(value))
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
        self.own += &format!("{key} {value};");
        Ok(())
    }

    fn fence(&mut self, idle: Idle<'_>) -> Result<()> {
        if !ffi::is_running() {
            return Err(Refused::System(io::Error::other("MPI was finalised in this process; run jobs before that")));
        }
        let (text, ends) = self.comm.all_bytes(take(&mut self.own).into_bytes(), idle)?;
        let text = String::from_utf8(text).map_err(|error| Refused::Said(error.to_string()))?;
        if !text.is_empty() {
            self.known = Some(Texts { text, ends });
        }
        Ok(())
    }

    fn get(&mut self, from: usize, key: &str, _idle: Idle<'_>) -> Result<String> {
        let found = self.known.as_ref().and_then(|texts| texts.find(from, key));
        found.map(str::to_owned).ok_or_else(|| Refused::Said(format!("no {key} of rank {from}")))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_each_rank_are_found_by_their_keys() {
        let texts = Texts { text: "a 1;ab 2;a 3;".into(), ends: vec![9, 9, 13] };
        let found = [(0, "a"), (0, "ab"), (0, "b"), (1, "a"), (2, "a"), (2, "ab"), (3, "a")];
        assert_eq!(found.map(|(from, key)| texts.find(from, key)), [Some("1"), Some("2"), None, None, Some("3"), None, None]);
    }
}
