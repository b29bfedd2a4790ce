//! How a rank waits whose others are on several nodes: it looks at what it waits for, and at the network, which tells nobody when something
//! has come.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::Mpi;
use crate::comm::Conduit;

/// Looks at a word before the network is asked: as long as ranks of one node that arrive together need.
pub(super) const LOOKS: usize = 300;

/// Where ranks outnumber cores a waiting rank looks all the time for so long, then sleeps in slices: a sleep and a wake-up take some
/// 60 µs. Elsewhere it never sleeps, as MPI does not: what others ask of it meanwhile is answered at once.
const PATIENCE: Duration = Duration::from_micros(50);
/// A waiting rank that sleeps looks so often.
const SLICE: Duration = Duration::from_micros(50);
/// So many sleeps are one wait.
const SLICES: u32 = 10;

/// How long a wait for whatever comes may last: what another thread of the rank has taken out of the network is told to nobody
/// here, so the caller has to look for itself soon.
pub(super) fn longest(limit: Duration, crowded: bool) -> Duration {
    limit.min(if crowded { SLICES * SLICE } else { SLICE })
}

impl Mpi {
    /// Looks until `ready`, or something is to be polled, or the limit.
    pub(super) fn wait_until(&self, limit: Duration, ready: impl Fn() -> bool, sleep: impl Fn(Duration)) {
        let start = Instant::now();
        let crowded = self.capabilities.crowded;
        loop {
            if ready() || self.node.has_news() {
                return;
            }
            {
                let Some(mut net) = self.try_net() else {
                    std::thread::yield_now();
                    if start.elapsed() > limit {
                        return;
                    }
                    continue;
                };
                self.look(&mut net, true, false);
                if !net.events.is_empty() {
                    return;
                }
            }
            let waited = start.elapsed();
            if ready() || waited >= limit || self.over().load(Ordering::Relaxed) != 0 {
                return;
            }
            match crowded {
                true if waited > PATIENCE => sleep(SLICE),
                true => std::thread::yield_now(),
                false => std::hint::spin_loop(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_wait_hides_for_long_what_another_thread_has_taken() {
        for crowded in [false, true] {
            assert!(longest(Duration::from_secs(3600), crowded) <= Duration::from_micros(500));
            assert_eq!(longest(Duration::ZERO, crowded), Duration::ZERO);
        }
    }
}
