//! The thread that answers others while its rank computes, and sees the end of a neighbor.
//!
//! # Answering
//!
//! A waiting rank polls by itself, so the thread polls only if no caller has done so recently. Between polls it sleeps: first for
//! [`SHORTEST`], then longer each time that nothing came. While messages come, it polls on. So a computing rank loses some per mille of
//! a core while little is asked. Others get answers within half a millisecond, or at once if they ask much.
//!
//! Where no core is free, a wake-up takes some 15 µs from the rank's own thread, as long as a get. So while the rank itself polls, the
//! sleeps grow up to [`ASLEEP`]. The thread never yields between looks: if its rank computes on the same core, the scheduler returns to
//! it only after milliseconds.
//!
//! # Watching
//!
//! Each rank watches its neighbors on its machine (`node::alive`): this thread sleeps by waiting for the lock of one, a second thread
//! for the lock of the other. If a process ends before its rank has finished, one rank prints so at once, because a launcher then kills
//! the others. A rank that a launcher started without MPI also watches the launcher.
//!
//! The thread also asks a few other machines for signs of life (`protocol::beats`).

use std::{
    io,
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

use super::{Fabric, Fate, Side};
use crate::comm::{Topology, kit::say::say};

/// First sleep after something came.
const SHORTEST: Duration = Duration::from_micros(50);
/// Longest sleep.
const LONGEST: Duration = Duration::from_micros(500);
/// Longest sleep while the rank's own thread looks, which it does if it did [`RECENTLY`] whenever this one wakes.
const ASLEEP: Duration = Duration::from_millis(2);
pub(super) const RECENTLY: Duration = Duration::from_micros(100);
/// Sleep where there is nothing to answer. The bell does not reach a wait for a neighbor, whose own end does.
const IDLE: Duration = Duration::from_millis(100);

/// The time between two rounds of questions whether machines are there.
pub(in crate::comm) const BEAT: Duration = Duration::from_millis(250);

/// How long ranks have to end by themselves when their launcher is gone.
const GRACE: Duration = Duration::from_secs(2);

/// What a helper answers others with.
pub(crate) trait Answers: Send + Sync + std::fmt::Debug {
    /// The time since a thread of the program last looked. Zero while one sleeps in the network, or wants to.
    fn since_looked(&self) -> Duration;

    /// Handles what is there, and what comes soon after. Returns true if there was anything.
    fn answer(&self) -> bool;

    /// Handles what is there, for a thread that has something else to look for. Returns true if there was anything.
    fn answer_once(&self) -> bool;

    /// Sleeps until something is there to be answered, or the limit has passed. False at once if nothing would end the sleep.
    fn sleep(&self, limit: Duration) -> bool;

    /// Asks whether other machines still answer. Call it every [`BEAT`], with the time since it last returned true. Returns false
    /// if it could not ask now.
    fn beat(&self, elapsed: Duration) -> bool;

    /// Tells the other machines that the job is over.
    fn announce_end(&self, culprit: usize, cause: &str);
}

/// See [`HelperShared::gone`].
pub(in crate::comm) type Gone = Box<dyn Fn() -> Option<(Option<usize>, String)> + Send + Sync>;

/// The helper threads of a rank.
#[derive(Debug)]
pub(crate) struct Helper {
    threads: Vec<JoinHandle<()>>,
    fabric: Arc<Fabric>,
    stop: Arc<AtomicBool>,
    bell: Arc<OwnedFd>,
}

/// What the threads share.
struct HelperShared {
    topology: Topology,
    fabric: Arc<Fabric>,
    answers: Option<Arc<dyn Answers>>,
    /// Once the launcher has gone, returns why, and the rank that it gave as the reason.
    gone: Option<Gone>,
    stop: Arc<AtomicBool>,
    bell: Arc<OwnedFd>,
}

impl Helper {
    /// Starts a thread that answers others.
    ///
    /// # Errors
    /// What the system says.
    pub(in crate::comm) fn answering(topology: &Topology, fabric: &Arc<Fabric>, answers: Arc<dyn Answers>) -> io::Result<Self> {
        Self::start(topology, fabric, Some(answers), false, None)
    }

    /// Starts a thread that sees the end of the next rank on this machine and answers others, if there is something to answer with; and
    /// another that sees the end of the rank before. The first also sees that the launcher is `gone`, if that can be asked.
    ///
    /// # Errors
    /// What the system says.
    pub(in crate::comm) fn watching(
        topology: &Topology,
        fabric: &Arc<Fabric>,
        answers: Option<Arc<dyn Answers>>,
        gone: Option<Gone>,
    ) -> io::Result<Self> {
        Self::start(topology, fabric, answers, true, gone)
    }

    fn start(
        topology: &Topology,
        fabric: &Arc<Fabric>,
        answers: Option<Arc<dyn Answers>>,
        watches: bool,
        gone: Option<Gone>,
    ) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let bell = Arc::new(eventfd(0, EventfdFlags::CLOEXEC)?);
        let mut helper = Helper { threads: Vec::new(), fabric: fabric.clone(), stop: stop.clone(), bell: bell.clone() };
        if let Some(answers) = &answers {
            fabric.answered_by(answers);
        }
        let (own, together) = (topology.local(topology.rank()), fabric.ranks());
        let [before, next] = [own + together - 1, own + 1].map(|local| local % together);
        let shared = Arc::new(HelperShared { topology: topology.clone(), fabric: fabric.clone(), answers, gone, stop, bell });
        let first = shared.clone();
        helper.add(move || first.serve(Some(next).filter(|&next| watches && next != own)))?;
        if watches && before != next {
            helper.add(move || shared.watch(before))?;
        }
        Ok(helper)
    }

    /// The number of threads that answer and watch.
    pub(in crate::comm) fn threads(together: usize) -> usize {
        if together > 2 { 2 } else { 1 }
    }

    fn add(&mut self, body: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let thread = std::thread::Builder::new().name("global-arrays".into()).stack_size(256 << 10);
        self.threads.push(thread.spawn(body)?);
        Ok(())
    }
}

impl Drop for Helper {
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

impl HelperShared {
    fn serve(&self, mut neighbor: Option<usize>) {
        let _ = set_current_timer_slack(std::num::NonZeroU64::new(1000));
        ask_for_short_turns();
        let (mut pause, mut beat) = (SHORTEST, Instant::now());
        while !self.stop.load(Ordering::Acquire) {
            if beat.elapsed() >= BEAT && self.answers.as_ref().is_some_and(|network| network.beat(beat.elapsed())) {
                beat = Instant::now();
            }
            let limit = match &self.answers {
                None => IDLE,
                Some(network) => {
                    pause = match network.since_looked() < RECENTLY {
                        true => (pause * 2).min(ASLEEP),
                        false if network.answer() => SHORTEST,
                        false => (pause * 3 / 2).min(LONGEST),
                    };
                    pause
                }
            };
            if let Some((culprit, cause)) = self.gone.as_ref().and_then(|gone| gone()) {
                return self.orphaned(culprit, &cause);
            }
            match neighbor.map(|local| self.fabric.await_end(local, Side::Before, limit)) {
                None | Some(Fate::Unknown) => self.sleep(limit),
                Some(Fate::Lives) => {}
                Some(Fate::Left) => neighbor = None,
                Some(Fate::Died) => {
                    neighbor.take().into_iter().for_each(|local| self.mourn(local, 1));
                }
            }
        }
    }

    /// Sleeps until the limit, or until the network or the bell ends it. While the rank itself looks, the network is to wake nobody.
    fn sleep(&self, limit: Duration) {
        let by_network = |network: &Arc<dyn Answers>| network.since_looked() >= RECENTLY && network.sleep(limit);
        if !self.answers.as_ref().is_some_and(by_network) {
            sleep(limit, &self.bell);
        }
    }

    /// The launcher is gone. The ranks get a moment to hear of it. After that nobody else could end a rank that did not hear. If
    /// the job was over before, its first cause stands.
    fn orphaned(&self, culprit: Option<usize>, cause: &str) {
        self.fabric.end(culprit, cause);
        let start = Instant::now();
        while start.elapsed() < GRACE {
            if self.stop.load(Ordering::Acquire) {
                return;
            }
            sleep(IDLE, &self.bell);
        }
        say(format_args!("rank {} is ended: {}", self.topology.rank(), self.fabric.cause()));
        // SAFETY: ends the process.
        unsafe { libc::_exit(1) }
    }

    /// Waits for the end of the rank before this one on its machine.
    fn watch(&self, local: usize) {
        ask_for_short_turns();
        while !self.stop.load(Ordering::Acquire) {
            match self.fabric.await_end(local, Side::After, IDLE) {
                Fate::Unknown => std::thread::sleep(LONGEST),
                Fate::Lives => {}
                Fate::Left => return,
                Fate::Died => return self.mourn(local, self.fabric.ranks() - 1),
            }
        }
    }

    /// A process has ended. If its rank had not, the job is over.
    fn mourn(&self, mut local: usize, step: usize) {
        let (own, together) = (self.topology.local(self.topology.rank()), self.fabric.ranks());
        // If it watched a rank that is dead too, and said nothing of that, the launcher may have ended it for that rank.
        loop {
            let next = (local + step) % together;
            let side = if step == 1 { Side::Before } else { Side::After };
            if next == own || self.fabric.await_end(next, side, Duration::ZERO) != Fate::Died {
                break;
            }
            local = next;
        }
        if self.fabric.finished(local) || self.fabric.failure().is_some() {
            return;
        }
        let (rank, cause) = (self.topology.machine_ranks()[local], self.fabric.how_it_died(local));
        // The first rank to end the job prints the cause, and at once: the launcher may kill this process at any moment.
        if !self.fabric.end(Some(rank), &cause) {
            return;
        }
        say(format_args!("rank {rank} {cause}"));
        self.answers.iter().for_each(|network| network.announce_end(rank, &cause));
    }
}

/// Asks the scheduler for turns of a tenth of a millisecond. A thread with shorter turns than those that run gets its turn when it wakes
/// up, also where every core computes. Kernels before 6.12 have no such choice, and leave all as it is.
pub(in crate::comm) fn ask_for_short_turns() {
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

/// Sleeps until the bell or the limit.
fn sleep(limit: Duration, bell: &OwnedFd) {
    let timeout = Timespec { tv_sec: limit.as_secs() as i64, tv_nsec: i64::from(limit.subsec_nanos()) };
    // A signal ends it early.
    let _ = poll(&mut [PollFd::new(bell, PollFlags::IN)], Some(&timeout));
}
