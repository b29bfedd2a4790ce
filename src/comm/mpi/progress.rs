//! The thread that answers others while its rank computes, and sees the end of a neighbour.
//!
//! It looks only when nobody else does: who waits in the crate polls by itself, and each such look is counted. Between its looks it
//! sleeps, first for [`SHORTEST`], longer each time that it found nothing; while something comes it keeps looking for
//! [`KEEN`] before it sleeps again. So a rank that computes loses some per mille of a core, and what is asked of it is answered
//! after half a millisecond at most, at once when much is asked.
//!
//! Each rank watches the process of the next one on its node. A process that ends before its rank has finished, because it was killed
//! or called `exit`, is said on stderr at once: a launcher kills the others as soon as it sees the same.

use std::{
    io::{self, Write},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use rustix::{
    event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll},
    fd::{AsFd, OwnedFd},
    process::{Pid, PidfdFlags, pidfd_open},
    thread::set_current_timer_slack,
};

use super::Mpi;
use crate::comm::Progress;

/// First sleep after something came.
const SHORTEST: Duration = Duration::from_micros(50);
/// Longest sleep.
const LONGEST: Duration = Duration::from_micros(500);
/// Looks go on without sleep for so long after something came.
const KEEN: Duration = Duration::from_micros(60);
/// Sleep where there is nothing to answer.
const IDLE: Duration = Duration::from_secs(3600);

/// The running thread.
#[derive(Debug)]
pub(super) struct Helper {
    thread: Option<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
    bell: Arc<OwnedFd>,
}

/// The next rank on this node: its number there, and in the job.
#[derive(Debug)]
pub(super) struct Neighbour {
    local: usize,
    rank: usize,
    process: OwnedFd,
}

impl Neighbour {
    /// None if it cannot be watched: then only the launcher sees its end.
    pub(super) fn new(local: usize, rank: usize, pid: u32) -> Option<Self> {
        let process = pidfd_open(Pid::from_raw(pid as i32)?, PidfdFlags::empty()).ok()?;
        Some(Neighbour { local, rank, process })
    }
}

impl Helper {
    /// Starts the thread. It answers others if `answers`, and watches a neighbour.
    pub(super) fn start(mpi: Arc<Mpi>, answers: bool, neighbour: Option<Neighbour>) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let bell = Arc::new(eventfd(0, EventfdFlags::CLOEXEC)?);
        let (stopped, rung) = (stop.clone(), bell.clone());
        let serve = move || serve(&mpi, answers, neighbour, &stopped, &rung);
        let thread = std::thread::Builder::new().name("global-arrays".into()).stack_size(256 << 10).spawn(serve)?;
        Ok(Helper { thread: Some(thread), stop, bell })
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        // Without the bell it would stop a little later.
        let _ = rustix::io::write(&*self.bell, &1_u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(mpi: &Mpi, answers: bool, mut neighbour: Option<Neighbour>, stop: &AtomicBool, bell: &OwnedFd) {
    let _ = set_current_timer_slack(std::num::NonZeroU64::new(1000));
    let (mut pause, mut seen) = (SHORTEST, 0);
    while !stop.load(Ordering::Acquire) {
        if answers {
            let looks = mpi.looks.load(Ordering::Relaxed);
            // Nobody looked since the last time.
            if looks == seen {
                pause = if answer(mpi) { SHORTEST } else { (pause * 3 / 2).min(LONGEST) };
            }
            seen = looks;
        }
        if sleep(if answers { pause } else { IDLE }, neighbour.as_ref(), bell)
            && let Some(neighbour) = neighbour.take()
        {
            mourn(mpi, &neighbour);
        }
    }
}

/// Handles what is there, and what comes soon after; whether anything was.
fn answer(mpi: &Mpi) -> bool {
    let mut last: Option<Instant> = None;
    loop {
        let Some(mut net) = mpi.try_net() else { return last.is_some() };
        let before = net.found;
        mpi.look(&mut net, true);
        let found = net.found != before;
        drop(net);
        if found {
            last = Some(Instant::now());
        } else if last.is_none_or(|last| last.elapsed() > KEEN) {
            return last.is_some();
        }
        std::thread::yield_now();
    }
}

/// Sleeps; whether the neighbour's process has ended.
fn sleep(limit: Duration, neighbour: Option<&Neighbour>, bell: &OwnedFd) -> bool {
    let timeout = Timespec { tv_sec: limit.as_secs() as i64, tv_nsec: i64::from(limit.subsec_nanos()) };
    let mut watched = vec![PollFd::new(bell, PollFlags::IN)];
    watched.extend(neighbour.map(|neighbour| PollFd::from_borrowed_fd(neighbour.process.as_fd(), PollFlags::IN)));
    poll(&mut watched, Some(&timeout)).is_ok() && watched.get(1).is_some_and(|process| !process.revents().is_empty())
}

/// A process has ended. If its rank had not, the job is over.
fn mourn(mpi: &Mpi, neighbour: &Neighbour) {
    if mpi.fabric.finished(neighbour.local) || mpi.fabric.failure().is_some() {
        return;
    }
    let cause = "ended before the job did: it was killed (kill -9, or the OOM killer) or called exit";
    // Words for people first: the launcher may kill this process at any moment.
    let _ = io::stderr().write_all(format!("global-arrays: rank {} {cause}\n", neighbour.rank).as_bytes());
    mpi.fabric.end(Some(neighbour.rank), cause);
    if mpi.capabilities.progress == Progress::Thread {
        mpi.tell_end(neighbour.rank, cause);
    }
}
