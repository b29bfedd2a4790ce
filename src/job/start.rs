//! Jobs that are values, where ranks exist before the job: notebooks, test harnesses, bindings, programs that own their `main`.
//!
//! Such a job ends by [`Job::finish`]. One that is dropped ends for all ranks with words that say so. One that is forgotten is a rank that
//! is missing to the others. None of that touches memory that arrays, epochs or frozen arrays hold: they keep the mapping themselves
//! (`crate::memory::mapping`), and find the job over.
//!
//! A job stays in the thread that started it, so it is not `Send`: the kernel shows the neighbors that this thread lives
//! (`comm::node::alive`), the thread is pinned, and an MPI library may allow one thread only. Other threads use `&Job`.

use std::{panic::Location, sync::atomic::Ordering};

use super::{
    Job, Launch,
    entry::{Entry, Extent},
    launch::Start,
    resolve::Way,
};
use crate::{
    calls::{calling, located},
    comm::{
        kit::say::say,
        start::{Meeting, life::LocalRank, settings::Settings},
    },
    error::Result,
};

/// What ends a job that was started as a value.
#[derive(Debug)]
pub(super) struct Unfinished {
    rank: LocalRank,
    _entry: Entry,
    /// The line of the program that started it.
    line: Option<&'static Location<'static>>,
}

impl Unfinished {
    /// The end of a job that the program dropped. Waits for no rank, but for the threads that watch the neighbors.
    pub(super) fn desert(self) {
        let how = if std::thread::panicking() { "panicked" } else { "dropped the job" };
        let line = self.line.map_or(String::new(), |at| format!(" at {}:{}", at.file(), at.line()));
        let (words, conduit) = (format!("{how} without finish; it was started{line}"), &self.rank.conduit);
        // Before the others hear of it: a launcher may end this process for what they do then. One rank alone hears its own panic.
        if (conduit.topology().size() > 1 || !std::thread::panicking()) && conduit.over().load(Ordering::Relaxed) == 0 {
            say(format_args!("rank {} {words}", conduit.rank()));
        }
        self.rank.desert(words);
    }
}

impl Launch {
    /// Makes this process a rank of a job, where the ranks exist already. Collective over them.
    ///
    /// The ranks are the processes that `ga-run`, `mpirun` or `srun` started, or those of `GA_ROOT`. Without a launcher the job has one rank:
    /// a notebook, a test. Several such jobs may run at once. In contrast to [`run`](Self::run) it never forks and makes no ranks.
    ///
    /// The job ends by [`Job::finish`]. If it is dropped without that, as by an error or a panic, it ends for all ranks within a tenth of a
    /// second, with a line on stderr that says where it was started. What the thread panicked with stands on the stderr of that rank only.
    ///
    /// Under a launcher the calling thread is pinned until the job ends, as by `run`, and threads that it makes meanwhile inherit its cores:
    /// [`pin(false)`](Self::pin) prevents that. Of several jobs on one thread the first one is recorded ([`stats`](Self::stats),
    /// [`trace`](Self::trace)). Deadlocks across jobs are not found.
    ///
    /// # Errors
    /// More ranks were asked for than exist; a network whose ranks are not the launcher's processes; the process is a rank of a running job;
    /// the ranks cannot meet.
    ///
    /// # Examples
    /// ```
    /// use global_arrays::prelude::*;
    ///
    /// # fn main() -> Result<(), Error> {
    /// let job = Launch::new().start()?;
    /// let a = GlobalArray1::<f64>::builder(&job, [10]).fill(0.5).create()?;
    /// assert_eq!(a.sum()?, 5.0);
    /// job.finish()
    /// # }
    /// ```
    ///
    /// A job stays in its thread:
    /// ```compile_fail,E0277
    /// # use global_arrays::prelude::*;
    /// let job = Launch::new().start().unwrap();
    /// std::thread::spawn(move || job.finish());
    /// ```
    ///
    /// One thread ends it, and nothing borrows it then:
    /// ```compile_fail,E0505
    /// # use global_arrays::prelude::*;
    /// # fn main() -> Result<(), Error> {
    /// let job = Launch::new().start()?;
    /// let mut a = GlobalArray1::<f64>::builder(&job, [10]).zeros().create()?;
    /// job.epoch(a.owned_mut(), |_part| job.finish())?
    /// # }
    /// ```
    /// ```compile_fail,E0507
    /// # use global_arrays::prelude::*;
    /// let job = std::sync::Arc::new(Launch::new().start().unwrap());
    /// job.finish();
    /// ```
    #[doc(alias = "MPI_Init")]
    #[track_caller]
    pub fn start(&self) -> Result<Job> {
        located(|| {
            let start = self.resolve_for(Way::Start)?;
            // Jobs of one rank alone share nothing with others of the process.
            let extent = if start.variant.is_launched(&start.settings) { Extent::Process } else { Extent::Threads };
            start.begin(extent, |settings| start.variant.begin(settings))
        })
    }

    /// As [`start`](Self::start), with ranks that meet by the program's own [`Meeting`], such as a communicator of mpi4py or the threads of a
    /// test. Collective over them. Ranks of several machines need a network that joins them ([`network`](Self::network)); the default is
    /// `shared_memory`. Without effect on it are launchers and their variables.
    ///
    /// # Errors
    /// As [`start`](Self::start); a network with a meeting of its own (`mpi`, `threads`); an error of the meeting.
    ///
    /// # Examples
    /// See [`Meeting`].
    #[track_caller]
    pub fn start_with(&self, meeting: impl Meeting + 'static) -> Result<Job> {
        located(|| {
            let start = self.resolve_for(Way::Meet { rank: meeting.rank(), size: meeting.size() })?;
            start.begin(Extent::Threads, |settings| start.variant.begin_with(settings, Box::new(meeting)))
        })
    }
}

impl Start {
    pub(super) fn begin(&self, extent: Extent, begin: impl FnOnce(&Settings) -> Result<LocalRank>) -> Result<Job> {
        let entry = Entry::new(extent)?;
        let rank = begin(&self.settings)?;
        match Job::new(rank.conduit.clone(), self, rank.cores) {
            Ok(mut job) => {
                job.unfinished = Some(Unfinished { rank, _entry: entry, line: calling() });
                Ok(job)
            }
            // If another rank failed meanwhile, the end of this one names it.
            Err(error) => Err(rank.end(Err(format!("could not be started: {error}"))).err().unwrap_or(error)),
        }
    }
}

impl Job {
    /// The orderly end of a job that [`Launch::start`] or its like began: everything is complete, and all ranks are here. Collective.
    ///
    /// Arrays that are still there find the job over. The process may start another job.
    ///
    /// # Errors
    /// An operation that failed since the last sync; ranks in another collective; a rank that failed. The job is over then too.
    #[doc(alias = "MPI_Finalize")]
    #[track_caller]
    pub fn finish(mut self) -> Result<()> {
        located(move || {
            let ended = self.close().map_err(|error| error.to_string());
            let unfinished = self.unfinished.take();
            drop(self);
            unfinished.map_or(Ok(()), |unfinished| unfinished.rank.end(ended))
        })
    }
}
