//! Errands of a rank for the rank that answers for it, its agent. They stay on the rank's control page until done.

use std::{ops::Range, sync::atomic::Ordering};

use super::Fabric;

/// A range of the rank's segment to be opened to the network, or shut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Errand {
    Open(Range<usize>),
    Shut(Range<usize>),
}

const OPEN: u32 = 1;
const SHUT: u32 = 2;
const DONE: u32 = 3;
const REFUSED: u32 = 4;

impl Fabric {
    /// Brings an errand of a rank to its agent, by their numbers on the machine. A rank has one at a time.
    pub(crate) fn bring(&self, rank: usize, agent: usize, errand: &Errand) {
        let desk = &self.control(rank).desk;
        let (state, range) = match errand {
            Errand::Open(range) => (OPEN, range),
            Errand::Shut(range) => (SHUT, range),
        };
        desk.range[0].store(range.start as u64, Ordering::Relaxed);
        desk.range[1].store(range.end as u64, Ordering::Relaxed);
        // Release pairs with the Acquire in `errand`.
        desk.state.store(state, Ordering::Release);
        // Release pairs with the Acquire in `brought`: an agent that reads the new count also reads the errand.
        self.control(agent).desk.brought.fetch_add(1, Ordering::Release);
    }

    /// The number of errands that were brought to an agent. When it changes, there is a new one.
    pub(crate) fn brought(&self, agent: usize) -> u32 {
        self.control(agent).desk.brought.load(Ordering::Acquire)
    }

    /// The errand of a rank that is not done.
    pub(crate) fn errand(&self, rank: usize) -> Option<Errand> {
        let desk = &self.control(rank).desk;
        let state = desk.state.load(Ordering::Acquire);
        let [start, end] = [0, 1].map(|k| desk.range[k].load(Ordering::Relaxed) as usize);
        match state {
            OPEN => Some(Errand::Open(start..end)),
            SHUT => Some(Errand::Shut(start..end)),
            _ => None,
        }
    }

    /// Reports that the errand of a rank is done, or is refused for a reason.
    pub(crate) fn finish(&self, rank: usize, outcome: Result<(), String>) {
        let desk = &self.control(rank).desk;
        let state = match outcome {
            Ok(()) => DONE,
            Err(why) => {
                desk.why.set(&why);
                REFUSED
            }
        };
        // Release pairs with the Acquire in `outcome`.
        desk.state.store(state, Ordering::Release);
    }

    /// The outcome of the errand of a rank, once it is done or refused.
    pub(crate) fn outcome(&self, rank: usize) -> Option<Result<(), String>> {
        let desk = &self.control(rank).desk;
        match desk.state.load(Ordering::Acquire) {
            DONE => Some(Ok(())),
            REFUSED => Some(Err(desk.why.get())),
            _ => None,
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn an_errand_is_done_once_and_its_rank_hears_of_it() {
        let fabric = Fabric::new(3, 1 << 20, false).unwrap();
        assert_eq!((fabric.brought(1), fabric.errand(2), fabric.outcome(2)), (0, None, None));
        fabric.bring(2, 1, &Errand::Open(64..128));
        assert_eq!((fabric.brought(1), fabric.brought(2)), (1, 0));
        assert_eq!((fabric.errand(2), fabric.outcome(2)), (Some(Errand::Open(64..128)), None));
        fabric.finish(2, Err("so much must not be pinned".into()));
        assert_eq!((fabric.errand(2), fabric.outcome(2)), (None, Some(Err("so much must not be pinned".into()))));
        fabric.bring(2, 1, &Errand::Shut(0..4096));
        assert_eq!((fabric.errand(2), fabric.outcome(2), fabric.brought(1)), (Some(Errand::Shut(0..4096)), None, 2));
        fabric.finish(2, Ok(()));
        assert_eq!((fabric.errand(2), fabric.outcome(2)), (None, Some(Ok(()))));
    }
}
