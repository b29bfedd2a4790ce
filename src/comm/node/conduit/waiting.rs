//! How a rank waits on its node and its network.
//!
//! A waiting rank looks at what it waits for, at the node's inboxes, and at the network, in turn. It spins for as long as a sleep and a
//! wake-up would take. Then it sleeps in slices if ranks outnumber cores, or if the network wakes sleepers. Otherwise it spins on, as
//! MPI does, and answers others at once.
//!
//! Where ranks outnumber cores, a network may let the rank sleep until something comes ([`Network::nap`]). Nothing that a neighbor does
//! ends that sleep. So a rank that shares memory with others sleeps there in short slices, and only while the network owes it an answer
//! or it answers for others; else on its bell, or on a word.

use std::{sync::atomic::Ordering, time::Duration};

use super::{super::helper::RECENTLY, Conduit};
use crate::comm::{Nap, Network, Slept, WaitWord};

/// Looks at a word before the network is asked. They take as long as ranks of one node need that arrive together.
const LOOKS: usize = 300;

/// The time for which a waiting rank looks without a pause before it may sleep: a sleep and a wake-up take some 60 µs.
const PATIENCE: Duration = Duration::from_micros(50);
/// A wait that lasts longer also answers for the other ranks of its process. Most are over before.
const PROMPT: Duration = Duration::from_micros(5);
/// A sleeping rank wakes up after this long to look.
const SLICE: Duration = Duration::from_micros(50);
/// The longest wait for whatever comes. Nothing here shows what another thread of the rank has taken out of the network, so the caller has to
/// look for itself soon.
const SLICES: Duration = Duration::from_micros(500);
/// The longest sleep in the network. It goes on when another thread of the rank takes something out of the network, or changes a
/// word of the rank.
const NAP: Duration = Duration::from_micros(500);

impl Conduit {
    /// Returns when [`poll`](Self::poll) may have something to say, after `limit` at the latest. May return early.
    pub(crate) fn wait(&self, limit: Duration) {
        if let Some(time) = &self.time {
            let _inside = self.inside();
            return time.wait(None);
        }
        let Some(network) = &self.network else { return self.member.wait(limit) };
        // What neighbors send, and what an agent delivers, ends a sleep on the bell only.
        let nap = if self.is_alone { (NAP, false) } else { (SLICE, true) };
        self.wait_until(&**network, limit.min(SLICES), nap, || false, |slice| self.member.wait(slice));
    }

    /// Returns when the word differs from `seen`, when `poll` may have something to say, or after `limit`. May return early.
    /// The word lies in the caller's own segment or in mapped memory.
    #[inline]
    pub(crate) fn wait_on(&self, word: &WaitWord, seen: u32, limit: Duration) {
        if let Some(time) = &self.time {
            let _inside = self.inside();
            return time.wait(Some((word, seen)));
        }
        let Some(network) = &self.network else { return self.member.wait_on(word, seen, limit) };
        for _ in 0..LOOKS {
            if word.load() != seen {
                return;
            }
        }
        let nap = (if self.is_alone { NAP } else { Duration::ZERO }, false);
        self.wait_until(&**network, limit, nap, || word.load() != seen, |slice| word.sleep(seen, slice));
    }

    /// Lets others go before the caller looks again at what changes without a word to it: as [`wait`](Self::wait), but time passes.
    pub(crate) fn pause(&self, limit: Duration) {
        match &self.time {
            Some(time) => {
                let _inside = self.inside();
                time.pause(limit);
            }
            None => self.wait(limit),
        }
    }

    /// Waits until `ready`, or until there is something to poll, or for `limit`. Where ranks share cores it sleeps between looks:
    /// in the network for the time of `nap` if it can (only if owed an answer, if `nap` says so), else by `sleep`. Where nothing
    /// would wake a sleeper it returns soon.
    fn wait_until(
        &self,
        network: &dyn Network,
        limit: Duration,
        (nap, if_owed): (Duration, bool),
        ready: impl Fn() -> bool,
        sleep: impl Fn(Duration),
    ) {
        let (start, crowded) = (self.now(), self.capabilities.crowded);
        let mut answers = PROMPT;
        loop {
            if ready() || self.member.has_news() || network.attend() {
                return;
            }
            let waited = self.now().saturating_sub(start);
            if ready() || waited >= limit || self.over().load(Ordering::Relaxed) != 0 {
                return;
            }
            if waited > answers {
                let found = self.member.fabric().answer_for_neglected();
                answers = if found { waited } else { waited + RECENTLY / 2 };
                if found {
                    continue;
                }
            }
            if waited <= PATIENCE {
                if crowded {
                    std::thread::yield_now()
                } else {
                    std::hint::spin_loop()
                }
                continue;
            }
            let nap = if crowded { nap.min(limit - waited) } else { Duration::ZERO };
            match network.nap(Nap { limit: nap, if_owed, ready: &ready }) {
                Slept::Here => {}
                Slept::Not if !crowded => return,
                Slept::Bell | Slept::Not => {
                    // What came before the network was armed rings no bell.
                    if network.attend() {
                        return;
                    }
                    sleep(SLICE);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
