//! A thread that notices when the ranks stand still in real time.
//!
//! If one rank is blocked outside the library, for instance by a lock that another rank holds while it waits in a call, no rank
//! runs. The watchdog says so once.

use std::{
    sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    thread::{Builder, Scope},
    time::Duration,
};

use rustix::time::{ClockId, clock_gettime};

use super::world::World;
use crate::comm::kit::say::say;

/// The time between two looks.
const PATIENCE: Duration = Duration::from_secs(5);

/// A process that uses less than this part of its time is blocked.
const BUSY: f64 = 0.02;

/// Watches until it is dropped.
pub(super) struct Watchdog {
    _alive: Sender<()>,
}

impl Watchdog {
    pub(super) fn start<'s>(scope: &'s Scope<'s, '_>, world: &'s World) -> Self {
        let (alive, ended) = channel();
        // Without the thread nothing is missing but its line.
        let _ = Builder::new().name("watchdog".into()).spawn_scoped(scope, move || watch(world, &ended));
        Watchdog { _alive: alive }
    }
}

/// Processor time of the process, in seconds.
fn busy() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + 1e-9 * time.tv_nsec as f64
}

fn watch(world: &World, ended: &Receiver<()>) {
    let mut last = (world.report().events, busy());
    while ended.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
        let now = (world.report().events, busy());
        let is_blocked = now.0 == last.0 && now.1 - last.1 < BUSY * PATIENCE.as_secs_f64();
        last = now;
        if is_blocked && let Some(rank) = world.ranks().current() {
            say(format_args!(
                "simulated rank {rank} has been blocked outside of the library for {} s, and no other rank can run. Perhaps it waits for a lock \
                 of the program (std::sync::Mutex), which another rank holds during a call of the library",
                PATIENCE.as_secs()
            ));
            return;
        }
    }
}
