//! The thread that answers others while its rank computes, and sees the end of a neighbour.
//!
//! It looks only when nobody else does: who waits in the crate polls by itself, and the time of each such look is kept. Between its looks it
//! sleeps, first for [`SHORTEST`], longer each time that it found nothing; while something comes it keeps looking for
//! [`KEEN`] before it sleeps again. So a rank that computes loses some per mille of a core, and what is asked of it is answered
//! after half a millisecond at most, at once when much is asked. Each waking keeps the rank's own thread from its work for some 15 µs
//! where no core is free, which is as long as a get takes. So it sleeps longer and longer, up to [`ASLEEP`], while the rank does nothing
//! but look: the first answer of a rank that then begins to compute may take that long.
//!
//! Each rank watches the process of the next one on its machine (`node::alive`): the thread's sleep is a wait for a lock that the
//! neighbour holds. Where there are more than two, another thread sleeps until the one before ends, and does nothing else. A process
//! that ends before its rank has finished, because a signal ended it for instance, is said on stderr at once, and once on each machine: a
//! launcher kills the others as soon as it sees the same.

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
    fd::OwnedFd,
    thread::set_current_timer_slack,
};

use super::{Am, wire::Wire};
use crate::comm::{
    Progress,
    node::{Fabric, Fate, Side},
};

/// First sleep after something came.
const SHORTEST: Duration = Duration::from_micros(50);
/// Longest sleep.
const LONGEST: Duration = Duration::from_micros(500);
/// Longest sleep while the rank's own thread looks, which it does if it did [`RECENTLY`] whenever this one wakes.
const ASLEEP: Duration = Duration::from_millis(2);
const RECENTLY: Duration = Duration::from_micros(100);
/// Looks go on without sleep for so long after something came.
const KEEN: Duration = Duration::from_micros(60);
/// Sleep where there is nothing to answer. The bell does not reach a wait for a neighbour, whose own end does.
const IDLE: Duration = Duration::from_millis(100);

/// The running thread.
#[derive(Debug)]
pub(crate) struct Agent {
    threads: Vec<JoinHandle<()>>,
    fabric: Arc<Fabric>,
    stop: Arc<AtomicBool>,
    bell: Arc<OwnedFd>,
}

impl Agent {
    /// Starts the thread that answers others if `answers`. If it also `watches`, it sees the end of the next rank on this machine, and
    /// another one that of the rank before.
    pub(in crate::comm) fn start<W: Wire + 'static>(am: Arc<Am<W>>, answers: bool, watches: bool) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let bell = Arc::new(eventfd(0, EventfdFlags::CLOEXEC)?);
        let mut agent = Agent { threads: Vec::new(), fabric: am.fabric.clone(), stop, bell };
        let (own, together) = (am.topology.local(am.rank()), am.fabric.ranks());
        let [before, next] = [own + together - 1, own + 1].map(|local| local % together);
        let (stop, bell, shared) = (agent.stop.clone(), agent.bell.clone(), am.clone());
        agent.add(move || serve(&shared, answers, Some(next).filter(|&next| watches && next != own), &stop, &bell))?;
        if watches && before != next {
            let stop = agent.stop.clone();
            agent.add(move || watch(&am, before, &stop))?;
        }
        Ok(agent)
    }

    /// How many threads those are that answer and watch.
    #[cfg(feature = "mpi")]
    pub(in crate::comm) fn threads(together: usize) -> usize {
        if together > 2 { 2 } else { 1 }
    }

    fn add(&mut self, body: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let thread = std::thread::Builder::new().name("global-arrays".into()).stack_size(256 << 10);
        self.threads.push(thread.spawn(body)?);
        Ok(())
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        if self.fabric.is_inherited() {
            // The threads are the parent's.
            return std::mem::forget(std::mem::take(&mut self.threads));
        }
        self.stop.store(true, Ordering::Release);
        // Without the bell it would stop a little later.
        let _ = rustix::io::write(&*self.bell, &1_u64.to_ne_bytes());
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

fn serve<W: Wire>(am: &Am<W>, answers: bool, mut neighbour: Option<usize>, stop: &AtomicBool, bell: &OwnedFd) {
    let _ = set_current_timer_slack(std::num::NonZeroU64::new(1000));
    ask_for_short_turns();
    let mut pause = SHORTEST;
    while !stop.load(Ordering::Acquire) {
        if answers {
            pause = match am.since_looked() < RECENTLY {
                true => (pause * 2).min(ASLEEP),
                false if answer(am) => SHORTEST,
                false => (pause * 3 / 2).min(LONGEST),
            };
        }
        let limit = if answers { pause } else { IDLE };
        match neighbour.map(|local| am.fabric.await_end(local, Side::Before, limit)) {
            None | Some(Fate::Unknown) => sleep(limit, bell),
            Some(Fate::Lives) => {}
            Some(Fate::Left) => neighbour = None,
            Some(Fate::Died) => {
                neighbour.take().into_iter().for_each(|local| mourn(am, local, 1));
            }
        }
    }
}

/// Asks the scheduler for turns of a tenth of a millisecond. A thread with shorter turns than those that run gets its turn when it wakes
/// up, also where every core computes. Kernels before 6.12 have no such choice, and leave all as it is.
fn ask_for_short_turns() {
    const TURN: Duration = Duration::from_micros(100);
    // SAFETY: a system call without pointers; 0 is the calling thread.
    let nice = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
    let attributes = libc::sched_attr {
        size: size_of::<libc::sched_attr>() as u32,
        sched_policy: libc::SCHED_OTHER as u32,
        sched_flags: 0,
        sched_nice: nice,
        sched_priority: 0,
        sched_runtime: TURN.as_nanos() as u64,
        sched_deadline: 0,
        sched_period: 0,
    };
    // SAFETY: reads the attributes, as long as they say; 0 is the calling thread.
    let _ = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
}

/// Handles what is there, and what comes soon after; whether anything was.
fn answer<W: Wire>(am: &Am<W>) -> bool {
    let mut last: Option<Instant> = None;
    loop {
        let Some(mut endpoint) = am.try_endpoint() else { return last.is_some() };
        let before = endpoint.found;
        am.look(&mut endpoint, true, true);
        let found = endpoint.found != before;
        drop(endpoint);
        if found {
            last = Some(Instant::now());
        } else if last.is_none_or(|last| last.elapsed() > KEEN) {
            return last.is_some();
        }
        std::thread::yield_now();
    }
}

/// Sleeps until the bell or the limit.
fn sleep(limit: Duration, bell: &OwnedFd) {
    let timeout = Timespec { tv_sec: limit.as_secs() as i64, tv_nsec: i64::from(limit.subsec_nanos()) };
    // A signal ends it early.
    let _ = poll(&mut [PollFd::new(bell, PollFlags::IN)], Some(&timeout));
}

/// Waits for the end of the rank before this one on its machine.
fn watch<W: Wire>(am: &Am<W>, local: usize, stop: &AtomicBool) {
    ask_for_short_turns();
    while !stop.load(Ordering::Acquire) {
        match am.fabric.await_end(local, Side::After, IDLE) {
            Fate::Unknown => std::thread::sleep(LONGEST),
            Fate::Lives => {}
            Fate::Left => return,
            Fate::Died => return mourn(am, local, am.fabric.ranks() - 1),
        }
    }
}

/// A process has ended. If its rank had not, the job is over.
fn mourn<W: Wire>(am: &Am<W>, mut local: usize, step: usize) {
    let (own, together) = (am.topology.local(am.rank()), am.fabric.ranks());
    // If the one that watched it is gone too, so that nothing was said, the launcher may have ended that one for it.
    loop {
        let next = (local + step) % together;
        let side = if step == 1 { Side::Before } else { Side::After };
        if next == own || am.fabric.await_end(next, side, Duration::ZERO) != Fate::Died {
            break;
        }
        local = next;
    }
    if am.fabric.finished(local) || am.fabric.failure().is_some() {
        return;
    }
    let (rank, cause) = (am.topology.machine_ranks()[local], am.fabric.how_it_died(local));
    // Who is the first to say so says it, and at once: the launcher may kill this process at any moment.
    if !am.fabric.end(Some(rank), &cause) {
        return;
    }
    let _ = io::stderr().write_all(format!("global-arrays: rank {rank} {cause}\n").as_bytes());
    // Elsewhere only a thread of the program may use the wire.
    if am.capabilities.progress == Progress::Thread {
        am.tell_end(rank, &cause);
    }
}
