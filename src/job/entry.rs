//! Whether this process, or this thread of it, may start a job.
//!
//! A rank may not. Over `shared_memory` it would fork copies of its handles; over `mpi` other ranks might not make the same call; and
//! programs must not rely on what only some conduits can do. Jobs of threads copy nothing, so several may run at once, in threads that
//! are not ranks. So may jobs that are values and belong to one thread each: of one rank alone, or of ranks that meet by the program.
//!
//! A static word says whether the process runs a job, because a thread that a rank starts holds none of the rank's values. Ranks that are
//! threads have a thread-local word. Both contain the number of the process that wrote them: a forked child inherits the words, but not
//! the job.

use std::{
    cell::Cell,
    marker::PhantomData,
    sync::atomic::{AtomicU64, Ordering},
};

use crate::error::{Error, Result};

/// The number of a process in the upper half; in the lower one [`WHOLE`], or how many jobs of threads it runs.
static WORD: AtomicU64 = AtomicU64::new(0);

/// The process is a rank, or the parent of ranks.
const WHOLE: u64 = 1 << 31;

thread_local! {
    /// The process in which this thread is a rank, and how many it is: simulated ranks may share one.
    static RANK_OF: Cell<(u32, u32)> = const { Cell::new((0, 0)) };
}

/// What a job takes of the process that starts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// Ranks are processes.
    Process,
    /// Ranks are threads that the start makes, or the calling one.
    Threads,
}

/// The right to run a job, given back when dropped.
#[derive(Debug)]
pub(super) struct Entry(Extent);

/// This process's number where it stands in the word.
fn own() -> u64 {
    u64::from(std::process::id()) << 32
}

impl Entry {
    /// # Errors
    /// A rank asks.
    pub(super) fn new(extent: Extent) -> Result<Self> {
        if matches!(RANK_OF.get(), (process, ranks) if process == std::process::id() && ranks > 0) {
            return Err(refusal("this thread"));
        }
        let own = own();
        let enter = |word: u64| {
            // What another process wrote was that one's.
            let jobs = if word >> 32 == own >> 32 { word & u64::from(u32::MAX) } else { 0 };
            match extent {
                Extent::Process if jobs == 0 => Some(own | WHOLE),
                Extent::Threads if jobs < WHOLE => Some(own | (jobs + 1)),
                _ => None,
            }
        };
        match WORD.fetch_update(Ordering::Relaxed, Ordering::Relaxed, enter) {
            Ok(_) => Ok(Entry(extent)),
            Err(_) => Err(refusal("this process")),
        }
    }

    /// The calling thread is a rank of the job, or the only thread of a process that is, until the answer is dropped.
    pub(super) fn rank(&self) -> Rank {
        if self.0 == Extent::Process {
            // A rank that was forked for the job is in it as its parent is.
            WORD.store(own() | WHOLE, Ordering::Relaxed);
        }
        let others = Some(RANK_OF.get()).filter(|&(process, _)| process == std::process::id());
        RANK_OF.set((std::process::id(), others.map_or(0, |(_, ranks)| ranks) + 1));
        Rank(PhantomData)
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let own = own();
        let leave = |word: u64| match self.0 {
            // A forked child gives back nothing of its parent's.
            _ if word >> 32 != own >> 32 => None,
            Extent::Process => Some(0),
            Extent::Threads => Some(word - 1),
        };
        let _ = WORD.fetch_update(Ordering::Relaxed, Ordering::Relaxed, leave);
    }
}

/// A thread that is a rank.
#[derive(Debug)]
pub(super) struct Rank(PhantomData<*const ()>);

impl Drop for Rank {
    fn drop(&mut self) {
        let (process, ranks) = RANK_OF.get();
        RANK_OF.set((process, ranks.saturating_sub(1)));
    }
}

fn refusal(who: &str) -> Error {
    Error::Launch(format!(
        "{who} is a rank of a running job, and a rank starts none: start the next when that job has ended, or give some of its ranks a group of \
         their own (job.subgroup, job.split)"
    ))
}
