//! The threads by which a rank of several cores computes: a pool of rayon, with the feature `rayon`.
//!
//! Each rank has a pool of its own, also where ranks are threads of one process. It is made when it is first asked for. The threads of the
//! pool end with the body of the rank, well or not.
//!
//! What the crate computes by the pool is cut into pieces whose bounds do not depend on the number of threads. So neither do results.

use std::{
    ops::Deref,
    sync::{Arc, Mutex, PoisonError},
};

use rayon::prelude::*;

use super::{Group, JobState, crew::Crew};
use crate::{calls::located, comm::kit::cores, error::Result};

/// What the threads of a rank may be.
#[derive(Debug, Default)]
pub(crate) struct Workers {
    /// One for each core of the rank.
    threads: usize,
    /// A core for each, if the rank is pinned.
    places: Vec<Vec<usize>>,
    pool: Mutex<Option<Arc<Crew>>>,
}

impl Workers {
    /// For the calling rank. `pinned` says that its thread was confined to cores of its own.
    pub(crate) fn new(threads: usize, pinned: bool) -> Self {
        let cores = if pinned { cores::allowed(None).unwrap_or_default() } else { Vec::new() };
        // Tests divide work on machines of any size.
        let threads = if cfg!(test) { threads.max(3) } else { threads };
        // A rank of few cores may have one more than threads, and none is pinned if it has less.
        let places = if cores.len() < threads { Vec::new() } else { cores.into_iter().map(|core| vec![core]).collect() };
        Workers { threads, places, pool: Mutex::default() }
    }
}

impl JobState {
    /// Calls `work` with each number below `count`, and returns the answers in this order. By several threads at once where the rank has a
    /// pool of several.
    pub(crate) fn share<R: Send>(&self, count: usize, work: impl Fn(usize) -> R + Send + Sync) -> Vec<R> {
        match if count > 1 { self.crew_of_several() } else { None } {
            Some(crew) => crew.pool().install(|| (0..count).into_par_iter().map(work).collect()),
            None => (0..count).map(work).collect(),
        }
    }

    /// The threads that [`share`](Self::share) uses.
    pub(crate) fn sharers(&self) -> usize {
        self.workers.threads.max(1)
    }

    /// The body of the rank has ended: its threads end, and are joined if the caller `waits`. A thread of the program that still has the
    /// pool is waited for by nobody; the threads of the pool end when it lets go.
    pub(crate) fn end_pool(&self, waits: bool) {
        if !self.conduit().is_inherited() {
            let crew = self.workers.pool.lock().unwrap_or_else(PoisonError::into_inner).take();
            crew.into_iter().filter_map(Arc::into_inner).for_each(|mut crew| {
                if !waits {
                    crew.forget();
                }
            });
        }
    }

    /// None where the rank has one core, and where the system gives no threads.
    fn crew_of_several(&self) -> Option<Arc<Crew>> {
        if self.workers.threads > 1 { self.crew().ok() } else { None }
    }

    fn crew(&self) -> Result<Arc<Crew>> {
        // In a child another thread of the parent may have held the lock.
        self.engine.check("pool")?;
        let mut pool = self.workers.pool.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(crew) = &*pool {
            return Ok(crew.clone());
        }
        let crew = Arc::new(Crew::new(self.engine.rank(), self.workers.threads, &self.workers.places)?);
        *pool = Some(crew.clone());
        Ok(crew)
    }
}

/// The pool of a rank; see [`Group::pool`]. It is a [`rayon::ThreadPool`].
#[derive(Clone, Debug)]
pub struct Pool(Arc<Crew>);

impl Deref for Pool {
    type Target = rayon::ThreadPool;

    fn deref(&self) -> &rayon::ThreadPool {
        self.0.pool()
    }
}

impl Group {
    /// The calling rank's pool of threads, with the feature `rayon`: one thread for each core of the rank
    /// ([`Job::threads`](crate::Job::threads)), each pinned to its core if ranks are pinned. Local.
    ///
    /// The first call makes the pool. All groups of the rank have the same one, and the crate uses it for its own work. A rank with one
    /// core has a pool of one thread. Run loops in it by [`install`](rayon::ThreadPool::install), while the rank's own thread waits. In the
    /// pool, any thread may get, put and accumulate, but not in virtual time; one thread at a time may make collective calls.
    ///
    /// The threads end with the body of the rank, after what runs on them, and are gone then, unless the body failed or the program keeps the
    /// pool. A rank with such threads finds no deadlocks by itself: one of
    /// them may make the missing call. Set `GA_TIMEOUT` then.
    ///
    /// Ranks over `threads` may share rayon's global pool too. But there, what one rank computes may wait for what another one computes, and a
    /// lock that a rank holds around a loop may be what all threads of the pool wait for. Pools of their own have neither problem.
    ///
    /// # Errors
    /// The end of the job, or of the rank's body; the system gives no threads.
    ///
    /// # Examples
    /// ```
    /// use global_arrays::prelude::*;
    /// use rayon::prelude::*;
    /// # fn main() -> Result<(), Error> {
    /// Launch::new().ranks(2).network("threads").run(|job| {
    ///     let a = GlobalArray1::<f64>::zeros(job, [64])?;
    ///     job.pool()?.install(|| (0..1000).into_par_iter().try_for_each(|i| a.accumulate(i % 64..i % 64 + 1, 1.0, &arr1(&[1.0]))))?;
    ///     assert_eq!(a.sum()?, 2000.0);
    ///     job.sync()
    /// })
    /// # }
    /// ```
    #[track_caller]
    pub fn pool(&self) -> Result<Pool> {
        located(|| self.inner.job.crew().map(Pool))
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs};

    use super::*;
    use crate::error::Error;
    use crate::{Job, Launch};

    /// The numbers of the threads of a rank's pool.
    fn numbers(job: &Job) -> Result<Vec<i64>> {
        Ok(job.pool()?.broadcast(|_| i64::from(rustix::thread::gettid().as_raw_nonzero().get())))
    }

    /// Returns true unless a thread has ended. The system lists one for a moment after it was joined, with this flag.
    fn lives(number: i64) -> bool {
        const PF_EXITING: u64 = 4;
        let stat = fs::read_to_string(format!("/proc/self/task/{number}/stat")).unwrap_or_default();
        let flags = stat.rsplit_once(')').and_then(|(_, fields)| fields.split_whitespace().nth(6)?.parse::<u64>().ok());
        flags.is_some_and(|flags| flags & PF_EXITING == 0)
    }

    #[test]
    fn the_threads_of_a_pool_are_gone_with_the_body() {
        for ending in ["returns", "fails", "panics", "runs on"] {
            let known = Mutex::new(BTreeSet::new());
            let outcome = Launch::new().ranks(3).network("threads").run(|job| {
                let numbers = numbers(job)?;
                assert_eq!(numbers.len(), job.pool()?.current_num_threads());
                assert!(numbers.iter().all(|&number| lives(number)));
                known.lock().unwrap().extend(numbers);
                job.barrier()?;
                if ending == "runs on" {
                    job.pool()?.spawn(|| std::thread::sleep(std::time::Duration::from_millis(20)));
                }
                match ending {
                    "fails" => Err(Error::other("it fails")),
                    "panics" if job.rank() == 1 => panic!("it panics"),
                    _ => Ok(()),
                }
            });
            assert_eq!(outcome.is_ok(), ["returns", "runs on"].contains(&ending), "{outcome:?}");
            let known = known.into_inner().unwrap();
            assert!(known.len() >= 9, "each rank has threads of its own: {known:?}");
            let left = || known.iter().find(|&&number| lives(number));
            // After a failure nobody waits for them.
            let begin = std::time::Instant::now();
            while outcome.is_err() && left().is_some() && begin.elapsed().as_secs() < 10 {
                std::thread::yield_now();
            }
            assert_eq!(left(), None, "a body that {ending}");
        }
    }

    #[test]
    fn a_body_that_fails_does_not_wait_for_a_thread_that_waits_for_another_rank() {
        let outcome = Launch::new().ranks(2).network("threads").run(|job| {
            if job.rank() == 0 {
                let group = (**job).clone();
                job.pool()?.spawn(move || drop(group.barrier()));
                return Err(Error::other("it fails"));
            }
            // Not the barrier that the thread waits in.
            crate::Signal::new(&job.subgroup(&[1])?)?.wait_at_least(0, 1)
        });
        assert!(outcome.unwrap_err().to_string().contains("it fails"));
    }

    #[test]
    fn a_pool_that_is_kept_outlives_the_job_and_none_is_made_then() {
        let kept = Launch::new().ranks(1).network("threads");
        let (pool, group) = (Mutex::new(None), Mutex::new(None));
        kept.run(|job| {
            *pool.lock().unwrap() = Some(job.pool()?);
            *group.lock().unwrap() = Some((**job).clone());
            Ok::<(), Error>(())
        })
        .unwrap();
        assert_eq!(pool.into_inner().unwrap().unwrap().install(|| 7), 7);
        assert!(matches!(group.into_inner().unwrap().unwrap().pool(), Err(Error::JobEnded { .. })));
    }
}
