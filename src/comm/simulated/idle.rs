//! A rank that waits for a report: it polls, looks at the clock, sleeps, and polls again when something has touched it.
//!
//! Its turns are handled here, at the times when it would act, without a switch to it: with thousands of ranks, each switch misses the
//! caches.

use std::{sync::atomic::Ordering, time::Duration};

use super::state::{IdleWait, Phase, Step, WorldState};
use crate::comm::soft::Picos;

/// The time of a poll that finds nothing. Without it, a rank that polls in a loop would stop time.
pub(super) const LOOK: Picos = Picos(50_000);

/// The time of reading the clock. Without it, a loop that waits for a time would stop time.
pub(super) const READING: Picos = Picos(20_000);

impl IdleWait {
    pub(super) fn new(first: Option<Duration>, most: Duration) -> Self {
        IdleWait { next: Step::Begins, first, most }
    }
}

impl WorldState {
    /// Goes on with the wait of a rank that has its turn, if it is in one: as [`Clock`](super::clock::Clock) polls, reads the clock
    /// and waits. Returns true if the rank itself goes on: it is in no wait, has a report or must look itself, or the job is
    /// over.
    pub(super) fn has_idled(&mut self, rank: usize) -> bool {
        let Some(mut idle) = self.ranks[rank].idle.take() else { return true };
        let is_over = self.fabric.over().load(Ordering::Relaxed) != 0;
        let goes_on = loop {
            let waits = &mut self.ranks[rank];
            match idle.next {
                Step::Begins => {
                    idle.next = Step::Polls;
                    if !is_over && !self.is_next(rank) {
                        break false;
                    }
                }
                Step::Polls => {
                    if !waits.reports.is_empty() {
                        break true;
                    }
                    waits.clock += LOOK;
                    let read = waits.clock + READING;
                    let now = read.duration();
                    let first = idle.first.unwrap_or(now);
                    if is_over || now.saturating_sub(first) >= idle.most {
                        break true;
                    }
                    (waits.clock, idle.first, idle.next) = (read, Some(first), Step::Sleeps);
                    if !self.is_next(rank) {
                        break false;
                    }
                }
                Step::Sleeps => {
                    idle.next = Step::Begins;
                    if waits.reports.is_empty() && !is_over {
                        waits.phase = Phase::Sleeps(None);
                        break false;
                    }
                }
            }
        };
        self.ranks[rank].idle = Some(idle);
        goes_on
    }
}
