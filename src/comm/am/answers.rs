//! What the agent's thread does for its rank: it answers others, and sleeps in between.

use std::{
    sync::{MutexGuard, atomic::Ordering},
    time::{Duration, Instant},
};

use super::{
    Am,
    endpoint::Endpoint,
    wire::{Wakes, Wire},
};
use crate::comm::{
    agent::{Answers, BEAT},
    mutex::Mutex,
};

impl<W: Wire> Am<W> {
    /// See [`Network::doze`](crate::comm::Network::doze).
    pub(super) fn sleep_in_network(&self, limit: Duration) -> bool {
        let Some(sleeper) = self.sleeper.as_ref().and_then(Mutex::try_lock) else { return false };
        if !sleeper.arm(Wakes::All) {
            return false;
        }
        // What came before that wakes nobody. Who is in the endpoint may have looked before, so this thread looks again before it sleeps.
        let Some(mut endpoint) = self.try_endpoint() else { return true };
        self.look(&mut endpoint, true, false);
        let has_come = endpoint.has_more || !endpoint.events.is_empty();
        drop(endpoint);
        if !has_come {
            self.dozes.store(true, Ordering::Relaxed);
            sleeper.sleep(limit);
            self.dozes.store(false, Ordering::Relaxed);
        }
        true
    }

    /// Handles what is there, and what comes soon after; whether anything was.
    fn answer_in<'a>(&'a self, mut entered: Option<MutexGuard<'a, Endpoint<W>>>) -> bool {
        let (begin, mut last) = (Instant::now(), None::<Instant>);
        loop {
            let Some(mut endpoint) = entered else { return last.is_some() };
            let before = endpoint.found;
            self.look(&mut endpoint, true, true);
            let found = endpoint.found != before;
            drop(endpoint);
            if found {
                last = Some(Instant::now());
            } else if last.is_none_or(|last| last.elapsed() > self.keen) {
                return last.is_some();
            }
            // The agent has other things to do.
            if begin.elapsed() > BEAT / 4 {
                return true;
            }
            std::hint::spin_loop();
            entered = self.try_endpoint();
        }
    }
}

impl<W: Wire> Answers for Am<W> {
    fn since_looked(&self) -> Duration {
        // Who sleeps there looks when something comes.
        if self.dozes.load(Ordering::Relaxed) {
            return Duration::ZERO;
        }
        self.start.elapsed().saturating_sub(Duration::from_nanos(self.looked.load(Ordering::Relaxed)))
    }

    fn answer(&self) -> bool {
        self.answer_in(self.try_endpoint())
    }

    fn sleep(&self, limit: Duration) -> bool {
        let sleeper = self.sleeper.as_ref().filter(|_| !self.is_closed() && !self.fabric.is_inherited());
        let Some(sleeper) = sleeper.and_then(Mutex::try_lock) else { return false };
        for wakes in [Wakes::Arrivals, Wakes::All] {
            if !sleeper.arm(wakes) {
                return false;
            }
            // What came before that wakes nobody. A thread of the program that is in there may have looked before, and may never look again.
            if self.answer_in(Some(self.endpoint())) {
                return true;
            }
            if !self.lags.load(Ordering::Relaxed) {
                break;
            }
        }
        sleeper.sleep(limit);
        true
    }

    fn announce_end(&self, culprit: usize, cause: &str) {
        self.tell_end(culprit, cause);
    }

    fn beat(&self, elapsed: Duration) -> bool {
        self.beat_once(elapsed)
    }
}
