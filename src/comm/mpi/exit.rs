//! What becomes of MPI, and of jobs, when the process ends.
//!
//! If this crate initialised MPI, it finalises it then, or leaves without that where it would hang (`leave`). It does neither
//!
//! * while a job runs: the program called `exit` inside its body, and other ranks wait for this one. The job ends, and this rank says so
//!   before a launcher kills the others.
//! * after a job failed or did not start, or if the program ends with an error: finalising would wait for ranks that are gone or busy.

use std::{
    ffi::c_int,
    process,
    sync::{
        Arc, Mutex, MutexGuard, Once, PoisonError, Weak,
        atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering},
    },
};

use super::{
    Mpi,
    ffi::{self, Comm},
    leave,
};
use crate::comm::{kit::say::say, node::Fabric, start::bootstrap};

/// MPI was initialised by this crate. MPI itself is one for the process, and so is all that stands here.
static OURS: AtomicBool = AtomicBool::new(false);
/// A job of all processes had, or may have had, more than one node, so that they may be connected by a network.
static BETWEEN_NODES: AtomicBool = AtomicBool::new(false);
/// Jobs that have started, or tried to, and have not come to a good end.
static UNFINISHED: AtomicUsize = AtomicUsize::new(0);
/// Jobs that may be running, and their communicators.
static JOBS: Mutex<Vec<(Weak<Mpi>, Comm)>> = Mutex::new(Vec::new());
/// This process: a child that it forks is no rank.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// MPI is to be finalised at the end.
pub(super) fn is_ours() {
    OURS.store(true, Ordering::Relaxed);
    register();
}

/// A job is to start.
pub(super) fn starts() {
    UNFINISHED.fetch_add(1, Ordering::Relaxed);
}

/// A job has started, on all processes unless it is a `guest`. It is known as running until it is closed, failed or gone.
pub(super) fn begins(mpi: &Arc<Mpi>, comm: Comm, guest: bool) {
    // All processes store the same value, so they leave alike.
    BETWEEN_NODES.fetch_or(!mpi.is_alone() && !guest, Ordering::Relaxed);
    let mut jobs = jobs();
    jobs.retain(|(job, _)| job.strong_count() > 0);
    jobs.push((Arc::downgrade(mpi), comm));
    drop(jobs);
    register();
}

/// Ranks of another network meet by MPI, on all processes.
pub(super) fn meets() {
    starts();
    BETWEEN_NODES.store(true, Ordering::Relaxed);
    register();
}

/// A job came to its end on all ranks.
pub(super) fn ends_well() {
    UNFINISHED.fetch_sub(1, Ordering::Relaxed);
}

/// Returns true if another process, which forked this one, runs MPI: its connections are not to be used here.
pub(super) fn is_inherited() -> bool {
    let process = PROCESS.load(Ordering::Relaxed);
    process != 0 && process != process::id()
}

/// The communicator of the running job whose ranks share this memory.
pub(super) fn communicator_of(fabric: &Arc<Fabric>) -> Option<Comm> {
    let is_its = |job: &Weak<Mpi>| job.upgrade().is_some_and(|mpi| Arc::ptr_eq(mpi.fabric(), fabric) && !mpi.is_closed());
    jobs().iter().find(|(job, _)| is_its(job)).map(|&(_, comm)| comm)
}

fn jobs() -> MutexGuard<'static, Vec<(Weak<Mpi>, Comm)>> {
    JOBS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        PROCESS.store(process::id(), Ordering::Relaxed);
        bootstrap::at_exit(at_exit);
    });
}

extern "C" fn at_exit(status: c_int) {
    if PROCESS.load(Ordering::Relaxed) != process::id() {
        return;
    }
    let runs = |mpi: &Arc<Mpi>| !mpi.is_closed() && mpi.fabric().failure().is_none();
    let running: Vec<_> = jobs().iter().filter_map(|(job, _)| job.upgrade()).filter(runs).collect();
    if !running.is_empty() {
        for mpi in running {
            if let Some(cause) = bootstrap::end_job(mpi.fabric(), mpi.rank(), status) {
                mpi.tell_end(mpi.rank(), &cause);
            }
        }
        bootstrap::end_process(status);
    }
    if OURS.load(Ordering::Relaxed) && status == 0 && UNFINISHED.load(Ordering::Relaxed) == 0 && ffi::is_running() {
        let launcher = if BETWEEN_NODES.load(Ordering::Relaxed) { leave::launcher() } else { None };
        match launcher {
            // If that fails the launcher is gone, or takes the end for a failure and says so. What else is to be done when a process
            // exits is done after this, by `exit` itself: output is written, other handlers are called.
            Some(launcher) => {
                if let Err(error) = leave::leave(launcher, ffi::progress) {
                    say(format_args!("the launcher did not take this process's leave: {error}"));
                }
            }
            None => ffi::finalise(),
        }
    }
}
