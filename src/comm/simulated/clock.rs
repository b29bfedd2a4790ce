//! The time of a simulated rank.

use std::{
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};

use rustix::time::{ClockId, clock_gettime};

use super::{
    idle::READING,
    world::{World, why_not_here},
};
use crate::comm::{
    Events, Network, VirtualTime, WaitWord,
    node::Fabric,
    soft::{Picos, Processor},
    start::settings::Computing,
};

/// The word for a caller without the turn: it is not zero.
static NOT_HERE: AtomicU32 = AtomicU32::new(2);

/// The time of a simulated rank.
#[derive(Debug)]
pub(super) struct Clock {
    world: Arc<World>,
    fabric: Arc<Fabric>,
    rank: usize,
    network: Arc<dyn Network>,
    processor: Processor,
    /// The network is code of its own.
    is_wired: bool,
    computing: Computing,
    /// Processor time of the thread at the end of the last call, in nanoseconds, where computing is measured.
    last: AtomicU64,
    /// What looking at that time takes.
    looking: u64,
    /// A call was refused while the rank unwound.
    refused: AtomicBool,
}

/// Processor time of the calling thread, in nanoseconds.
fn processor_time() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The least that lies between two looks at that time, which is none of the program's.
fn looking() -> u64 {
    let between = |_| {
        let before = processor_time();
        processor_time() - before
    };
    (0..32).map(between).min().unwrap_or(0)
}

impl Clock {
    /// Of a rank whose turn it is. The network is the rank's, with its layers.
    pub(super) fn new(
        world: Arc<World>,
        fabric: Arc<Fabric>,
        rank: usize,
        network: Arc<dyn Network>,
        is_wired: bool,
        processor: Processor,
        computing: Computing,
    ) -> Self {
        let (last, refused) = (AtomicU64::new(processor_time()), AtomicBool::new(false));
        let looking = if let Computing::Measured(_) = computing { looking() } else { 0 };
        Clock { world, fabric, rank, network, processor, is_wired, computing, last, looking, refused }
    }

    /// Returns true if the caller is this rank. Another thread has no place in virtual time. A rank that unwinds must not wait.
    fn is_here(&self) -> bool {
        self.world.is_here(self.rank)
    }
}

impl VirtualTime for Clock {
    fn enter(&self) {
        let is_here = self.is_here();
        if self.refused.load(Ordering::Relaxed) && is_here && self.fabric.over().load(Ordering::Relaxed) == 0 {
            let cause = "went on after it had panicked: what it would have given back while it unwound, a lock perhaps, is lost";
            self.fabric.end(Some(self.rank), cause);
            self.world.wake_all();
        }
        if let Computing::Measured(factor) = self.computing
            && is_here
        {
            let nanos = processor_time().saturating_sub(self.last.load(Ordering::Relaxed) + self.looking);
            self.world.spend(self.rank, Picos::of_seconds(1e-9 * nanos as f64 * factor));
        }
        if self.is_wired && is_here {
            self.world.enter(self.rank);
        }
    }

    /// The call itself takes no measured time.
    fn leave(&self) {
        if !self.is_here() {
            return;
        }
        if let Computing::Measured(_) = self.computing {
            self.last.store(processor_time(), Ordering::Relaxed);
        }
        if self.is_wired {
            self.world.leave(self.rank, self.network.is_behind());
        }
    }

    fn now(&self) -> Duration {
        self.world.now(self.rank).duration()
    }

    fn read(&self) {
        if self.is_here() {
            self.world.spend(self.rank, READING);
        }
    }

    fn compute(&self, flops: f64, bytes: f64) {
        if !matches!(self.computing, Computing::Declared | Computing::Skip) || !self.is_here() {
            return;
        }
        let seconds = (flops / self.processor.flops).max(bytes / self.processor.memory);
        self.world.spend(self.rank, Picos::of_seconds(seconds));
    }

    fn skips(&self) -> bool {
        self.computing == Computing::Skip
    }

    fn set_contents(&self, range: Range<usize>, has: bool) {
        if self.skips() {
            self.world.set_contents(self.rank, range, has);
        }
    }

    fn poll(&self, events: &mut Events, first: &mut Option<Duration>, most: Duration) {
        if self.is_wired || self.network.below().is_some() {
            self.network.poll(events);
        } else {
            self.world.poll_patiently(self.rank, events, first, most);
        }
    }

    fn wait(&self, word: Option<(&WaitWord, u32)>) {
        if !self.network.attend() {
            self.world.sleep(self.rank, word);
        }
    }

    fn pause(&self, limit: Duration) {
        self.world.pause(self.rank, Picos::of_duration(limit));
    }

    fn over<'a>(&'a self, of_job: &'a AtomicU32) -> &'a AtomicU32 {
        if of_job.load(Ordering::Relaxed) != 0 || self.is_here() {
            return of_job;
        }
        if std::thread::panicking() {
            self.refused.store(true, Ordering::Relaxed);
        }
        &NOT_HERE
    }

    fn over_cause(&self) -> String {
        why_not_here().into()
    }

    fn wake_all(&self) {
        self.world.wake_all();
    }
}
