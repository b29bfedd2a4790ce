//! A job: the ranks that run one body, from their start to their end.
//!
//! A rank succeeds when its body returns `Ok` and all ranks have reached the closing sync, which also reports errors that the program did
//! not collect. Otherwise it publishes the cause and ends the job.

mod entry;
pub(crate) mod launch;
mod machine;
mod memory;
#[cfg(feature = "mpi")]
mod on_mpi;
mod options;
mod outcome;
mod report;
mod resolve;
mod setting;
mod start;
mod time;

use std::{
    num::NonZero,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

pub use crate::comm::start::Meeting;
pub use launch::Launch;
pub use machine::Machine;
pub use memory::Memory;
pub use options::{Bootstrap, Computing, Connect};
pub use report::Stats;
pub use time::{Simulation, Work};

use crate::{
    calls::record,
    comm::{Capabilities, Conduit, kit::cores, start::settings::Settings},
    error::{Error, Result},
    portable::Portable,
    sync::{Group, JobState, Op},
};

/// Runs `body` on every rank of a new job and returns what rank 0 returned, when all have ended.
///
/// The environment sets the number of ranks and the network; see [`Launch`]. Over shared memory (the default) `run` forks a process
/// for each rank, with a copy of what `body` captures. `run` returns only in the calling process, which must not have other threads at
/// the time of the call. Over `threads` captured values are shared. If a launcher started the program, `mpirun` or `srun`, the ranks are
/// its processes, over shared memory as over `mpi`: each calls `run`, which returns in each.
///
/// The value of rank 0 crosses to the caller whatever its length; under a launcher, to every caller. Results of other ranks are dropped:
/// gather what you need.
///
/// A rank that returns an error, panics or is killed ends the whole job: the others get [`Error::JobEnded`] from whatever they call or
/// wait in and have half a second to unwind. Then `run` returns [`Error::RankFailed`] with the rank and the cause.
///
/// # Errors
/// The job cannot be started, or a rank failed; the error names the first such rank. A rank cannot start a job. A child that a rank
/// forks may start its own job; in the child, the parent's job is over.
///
/// # Examples
/// ```
/// # fn main() -> Result<(), global_arrays::Error> {
/// use global_arrays::prelude::*;
///
/// /// The ranks of the job, as rank 0 sees them.
/// fn body(job: &Job) -> Result<Vec<usize>, Error> {
///     job.all_gather(&[job.rank()])
/// }
/// let ranks = Launch::new().ranks(3).network("threads").run(body)?;
/// assert_eq!(ranks, [0, 1, 2]);
/// # Ok(())
/// # }
/// ```
#[doc(alias("GA_Initialize", "GA_Initialize_args", "GA_Terminate"))]
pub fn run<R: Portable, E>(body: impl Fn(&Job) -> Result<R, E> + Sync) -> Result<R, E>
where
    E: From<Error> + std::fmt::Display,
{
    Launch::new().run(body)
}

/// One rank of a running job, and the group of all ranks: the argument of [`run`]'s body, or the value of [`Launch::start`].
///
/// A job dereferences to its world [`Group`], so you can call the collectives of a group on it directly.
#[derive(Debug)]
pub struct Job {
    inner: Arc<JobState>,
    world: Group,
    cores: usize,
    network: String,
    wanted: report::Wanted,
    /// It has come to an orderly end.
    closed: AtomicBool,
    /// What ends a job that is a value; none of the argument of a body.
    unfinished: Option<start::Unfinished>,
}

impl std::ops::Deref for Job {
    type Target = Group;

    fn deref(&self) -> &Group {
        &self.world
    }
}

impl AsRef<Group> for Job {
    fn as_ref(&self) -> &Group {
        &self.world
    }
}

impl Job {
    /// A rank over a conduit, on a machine whose ranks share so many cores.
    fn new(conduit: Arc<Conduit>, start: &launch::Start, cores: usize) -> Result<Self> {
        let (crew, timeout, stats) = (crew(&conduit, &start.settings, cores), start.settings.timeout, start.settings.stats);
        let (state, scratch) = JobState::new(conduit.clone(), timeout, start.memory, stats, crew)?;
        start.wanted.start(&conduit);
        let inner = Arc::new(state);
        let world = Group::world(inner.clone(), scratch);
        Ok(Job {
            inner,
            world,
            cores,
            network: start.name.clone(),
            wanted: start.wanted.clone(),
            closed: AtomicBool::new(false),
            unfinished: None,
        })
    }

    /// The orderly end of a rank: everything complete, all ranks here, the statistics printed.
    fn close(&self) -> Result<()> {
        // Before the collectives of the table: who waits for a rank in vain learns by this that it has ended, and what others are in
        // is never taken for a part of the table.
        self.inner.conduit().supervision().publish_end();
        self.world.settle(Op::End, 0)?;
        if self.inner.counts.is_some() {
            self.wanted.tell(self)?;
            self.world.settle(Op::End, 0)?;
        }
        self.closed.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// The calling rank's number in the job.
    #[doc(alias = "GA_Nodeid")]
    #[must_use]
    pub fn rank(&self) -> usize {
        self.world.member()
    }

    /// The number of the node on which this rank runs.
    #[doc(alias = "GA_Cluster_nodeid")]
    #[must_use]
    pub fn node(&self) -> usize {
        self.inner.conduit().topology().node(self.rank())
    }

    /// The ranks that run on a node, in ascending order.
    #[doc(alias("GA_Cluster_nprocs", "GA_Cluster_procid"))]
    #[must_use]
    pub fn node_ranks(&self, node: usize) -> Vec<usize> {
        (0..self.size()).filter(|&rank| self.inner.conduit().topology().node(rank) == node).collect()
    }

    /// The number of cores per rank on this machine, at least one. Use it as the size of thread pools; with the feature
    /// `rayon`, `pool` of [`Group`] is such a pool.
    #[must_use]
    pub fn threads(&self) -> NonZero<usize> {
        NonZero::new(self.cores / ranks_here(self.inner.conduit())).unwrap_or(NonZero::<usize>::MIN)
    }

    /// What the network of this job supports.
    #[must_use]
    pub fn capabilities(&self) -> &Capabilities {
        self.inner.conduit().capabilities()
    }

    /// The network's name, as [`Launch::network`] or `GA_NETWORK` gave it.
    #[must_use]
    pub fn network(&self) -> &str {
        &self.network
    }
}

/// The threads of a rank's pool, and whether each is pinned to a core of the rank.
fn crew(conduit: &Conduit, settings: &Settings, cores: usize) -> (usize, bool) {
    // In virtual time a rank has one thread, and nothing is asked that takes longer with more ranks.
    if cfg!(not(feature = "rayon")) || conduit.has_virtual_time() {
        return (1, false);
    }
    let together = ranks_here(conduit);
    // A launcher may have bound ranks to cores that they share, which are nobody's to pin threads to.
    let own = settings.own_cores(conduit.topology().local(conduit.rank()), together);
    let pinned = own.is_some_and(|own| cores::allowed(None).is_ok_and(|allowed| allowed == own));
    ((cores / together).max(1), pinned)
}

/// The ranks of this rank's machine.
fn ranks_here(conduit: &Conduit) -> usize {
    conduit.topology().machine_ranks().len().max(1)
}

/// The end of a body, which borrows its job, whether it returned or unwound; or of a job that is a value.
impl Drop for Job {
    fn drop(&mut self) {
        let _ = record::stop(report::identity(self.inner.conduit()));
        self.inner.engine.body_ended();
        let unfinished = self.unfinished.take();
        #[cfg(feature = "rayon")]
        // After a failure nobody has heard of it yet, and a thread may wait for another rank.
        self.inner.end_pool(self.closed.load(Ordering::Relaxed));
        unfinished.into_iter().for_each(start::Unfinished::desert);
    }
}

#[cfg(test)]
mod tests;
