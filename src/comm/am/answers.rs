//! What the helper does for its rank. Where ranks share cores, a waiting thread of the program sleeps in its place.

use std::{
    sync::{
        MutexGuard,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use super::{
    Am,
    endpoint::Endpoint,
    wire::{Wakes, Wire},
};
use crate::comm::{
    kit::mutex::Mutex,
    node::helper::{Answers, BEAT},
};

/// The time for which the helper neither answers nor takes the place in the network, after a thread of the program found it taken.
const PLACE: Duration = Duration::from_micros(500);

impl<W: Wire> Am<W> {
    /// Sleeps as [`Network::nap`](crate::comm::Network::nap) says. Returns false if it cannot.
    pub(super) fn sleep_in_network(&self, limit: Duration, ready: &dyn Fn() -> bool) -> bool {
        let Some(sleeper) = &self.sleeper else { return false };
        let Some(sleeper) = sleeper.try_lock() else {
            self.refused.store(self.start.elapsed().as_nanos() as u64, Ordering::Relaxed);
            return false;
        };
        let Some(mut endpoint) = self.try_endpoint() else { return false };
        if !sleeper.arm(Wakes::All) {
            return false;
        }
        // What came before that wakes nobody.
        self.look(&mut endpoint, true, false);
        let has_come = endpoint.has_more || !endpoint.events.is_empty();
        drop(endpoint);
        if !has_come && !ready() {
            self.dozes.store(true, Ordering::Relaxed);
            sleeper.sleep(limit);
            self.dozes.store(false, Ordering::Relaxed);
        }
        true
    }

    /// Lets other ranks go on before the caller looks again. False if the job is over.
    pub(super) fn pass(&self) -> bool {
        // In virtual time no thread sleeps there.
        let sleeper = self.sleeper.as_ref().and_then(Mutex::try_lock).map(|sleeper| sleeper.clone());
        match sleeper {
            Some(sleeper) => sleeper.pass(),
            None => {
                std::thread::yield_now();
                true
            }
        }
    }

    /// Handles what is there, and what comes soon after. Returns true if there was anything.
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
            // The helper has other things to do.
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
        let since = |then: &AtomicU64| self.start.elapsed().saturating_sub(Duration::from_nanos(then.load(Ordering::Relaxed)));
        // A thread that sleeps in the network looks by itself when something comes. For one that has found the place taken, it is kept free.
        let refused = self.refused.load(Ordering::Relaxed) > 0 && since(&self.refused) < PLACE;
        if self.dozes.load(Ordering::Relaxed) || refused { Duration::ZERO } else { since(&self.looked) }
    }

    fn answer(&self) -> bool {
        self.answer_in(self.try_endpoint())
    }

    fn answer_once(&self) -> bool {
        let Some(mut endpoint) = self.try_endpoint() else { return false };
        let before = endpoint.found;
        self.look(&mut endpoint, true, true);
        endpoint.found != before
    }

    fn sleep(&self, limit: Duration) -> bool {
        let sleeper = self.sleeper.as_ref().filter(|_| !self.is_closed() && !self.fabric.is_inherited());
        let Some(sleeper) = sleeper.and_then(Mutex::try_lock) else { return false };
        for wakes in [Wakes::Arrivals, Wakes::All] {
            let endpoint = self.endpoint();
            if !sleeper.arm(wakes) {
                return false;
            }
            // What came before that wakes nobody. A thread of the program that is in there may have looked before, and may never look again.
            if self.answer_in(Some(endpoint)) {
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::comm::{
        Conduit, Topology,
        am::packets::Packets,
        engine::{Engine, Label},
        node::{Fabric, Member},
    };

    /// The thread of rank 1 waits for a pool of threads, all of which wait as rank 0. There is no helper here.
    #[test]
    fn who_waits_answers_for_other_ranks_of_the_process() {
        for crowded in [false, true] {
            let fabric = Arc::new(Fabric::new(2, 1 << 20, false).expect("memory for two ranks"));
            let [(conduit, own), (_other, answers)] = [0, 1].map(|rank| {
                let topology = Topology::one_machine(rank, 2).with_hidden_memory();
                let member = Member::new(fabric.clone(), topology.clone(), if crowded { 1 } else { 2 }, None);
                let am = Arc::new(Am::new(Packets::new(fabric.clone(), topology), &member, true, true, None));
                let conduit = Conduit::with_network(member, am.clone());
                conduit.commit(0..1 << 16).expect("memory of a rank");
                (conduit, am as Arc<dyn Answers>)
            });
            [&own, &answers].into_iter().for_each(|answers| fabric.answered_by(answers));
            let engine = Engine::new(Arc::new(conduit), Some(20.0));
            let mut read = [1_u8; 5000];
            for round in 0..3 {
                engine.put_slice(1, 0, &[round; 5000], &Label::new("a", "put")).unwrap();
                engine.get_slices([(1, 0, &mut read[..])].into_iter(), &Label::new("a", "get")).unwrap();
                assert_eq!(read, [round; 5000]);
            }
        }
    }
}
