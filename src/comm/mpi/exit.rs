//! What becomes of MPI, and of jobs, when the process ends.
//!
//! MPI is finalised then, if this crate initialised it. Not if a job is running: the program called `exit` inside its body, and to
//! finalise would be to wait for ranks that wait for this one. That ends the job, and this rank is the one that can still say so
//! before a launcher kills the others for it. Nor after a job failed: ranks that are gone cannot take part.

use std::{
    io::{self, Write},
    process,
    sync::{
        Arc, Mutex, MutexGuard, Once, PoisonError, Weak,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
};

use super::{Mpi, ffi};

/// MPI was initialised by this crate. MPI itself is one for the process, and so is all that stands here.
static OURS: AtomicBool = AtomicBool::new(false);
/// A job failed in this process: MPI cannot be finalised.
static FAILED: AtomicBool = AtomicBool::new(false);
/// Jobs that may be running.
static JOBS: Mutex<Vec<Weak<Mpi>>> = Mutex::new(Vec::new());
/// This process: a child that it forks is no rank.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// MPI is to be finalised at the end.
pub(super) fn is_ours() {
    OURS.store(true, Ordering::Relaxed);
    register();
}

/// MPI must not be finalised any more.
pub(super) fn has_failed() {
    FAILED.store(true, Ordering::Relaxed);
}

/// A job begins. It is known as running until it is closed or gone.
pub(super) fn begins(mpi: &Arc<Mpi>) {
    let mut jobs = jobs();
    jobs.retain(|job| job.strong_count() > 0);
    jobs.push(Arc::downgrade(mpi));
    drop(jobs);
    register();
}

fn jobs() -> MutexGuard<'static, Vec<Weak<Mpi>>> {
    JOBS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        PROCESS.store(process::id(), Ordering::Relaxed);
        // SAFETY: the function takes and returns nothing.
        unsafe { libc::atexit(at_exit) };
    });
}

extern "C" fn at_exit() {
    if PROCESS.load(Ordering::Relaxed) != process::id() {
        return;
    }
    let running: Vec<_> = jobs().iter().filter_map(Weak::upgrade).filter(|mpi| !mpi.closed.load(Ordering::Relaxed)).collect();
    running.iter().for_each(|mpi| tell(mpi));
    let left = running.is_empty() && !FAILED.load(Ordering::Relaxed);
    if left && OURS.load(Ordering::Relaxed) && ffi::is_running() {
        ffi::finalise();
    }
    // The memory of a job that its threads still use goes with the process.
    std::mem::forget(running);
}

fn tell(mpi: &Mpi) {
    if mpi.fabric.failure().is_some() {
        return;
    }
    let cause = "ended before the job did: it called exit";
    let _ = io::stderr().write_all(format!("global-arrays: rank {} {cause}\n", mpi.rank).as_bytes());
    mpi.fabric.end(Some(mpi.rank), cause);
    if !mpi.alone {
        mpi.tell_end(mpi.rank, cause);
    }
}
