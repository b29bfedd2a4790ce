//! What is on its way in virtual time.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    memory::Pinned,
    works::{Move, Moved, MovingWork},
};
use crate::comm::{
    kit::mutex::Mutex,
    soft::{Cables, Wish},
};

/// Bytes of an operand.
const WORD: usize = size_of::<u64>();

/// What joins adapters, and what is on its way.
#[derive(Debug)]
pub(super) struct OnCables {
    cables: Arc<dyn Cables>,
    pub(super) travelling: Mutex<BTreeMap<u64, (usize, MovingTravel)>>,
    ended: Mutex<BTreeMap<u64, Moved>>,
}

/// What is on its way because of a rank.
#[derive(Debug)]
pub(super) enum MovingTravel {
    Work(MovingWork),
    /// The word that a write has arrived, or that anything was refused.
    Answer(Moved),
    /// The bytes that a work has asked for, and where they land.
    Return {
        of: u64,
        here: *mut u8,
        bytes: Pinned,
        len: usize,
    },
    /// A write to a rank has arrived and is to land.
    Landing {
        to: usize,
    },
    Packet {
        to: usize,
        bytes: Vec<u8>,
    },
}

// SAFETY: addresses, which the fabric uses as the poster of the work has promised.
unsafe impl Send for MovingTravel {}

impl OnCables {
    pub(super) fn new(cables: Arc<dyn Cables>) -> Self {
        OnCables { cables, travelling: Mutex::default(), ended: Mutex::default() }
    }

    /// A work of a rank leaves.
    pub(super) fn sends(&self, by: usize, work: MovingWork) {
        let bytes = match work.what {
            Move::Write(_) => work.len,
            Move::Read(_) => 0,
            Move::Change(..) => WORD,
        };
        self.leaves(by, work.to, bytes, work.number, MovingTravel::Work(work));
    }

    /// A packet leaves.
    pub(super) fn sends_packet(&self, number: u64, by: usize, to: usize, bytes: Vec<u8>) {
        self.leaves(by, to, bytes.len(), number, MovingTravel::Packet { to, bytes });
    }

    fn leaves(&self, by: usize, to: usize, bytes: usize, number: u64, what: MovingTravel) {
        self.travelling.lock().insert(number, (by, what));
        self.cables.ask(by, &[Wish::Sends { from: by as u32, to: to as u32, bytes, number }]);
    }

    /// Rings ranks for which there is room at one.
    pub(super) fn ring(&self, at: usize, ranks: Vec<usize>) {
        let rings: Vec<Wish> = ranks.into_iter().map(|rank| Wish::Rings { rank: rank as u32 }).collect();
        self.cables.ask(at, &rings);
    }

    pub(super) fn take_ended(&self, number: u64) -> Option<Moved> {
        self.ended.lock().remove(&number)
    }

    /// Nothing uses memory of a rank any more.
    pub(super) fn forget(&self, rank: usize) {
        self.travelling.lock().retain(|_, (by, what)| *by != rank || matches!(what, MovingTravel::Landing { .. }));
    }

    pub(super) fn take(&self, number: u64) -> Option<(usize, MovingTravel)> {
        self.travelling.lock().remove(&number)
    }

    pub(super) fn ends(&self, by: usize, number: u64, ended: Moved, wishes: &mut Vec<Wish>) {
        self.ended.lock().insert(number, ended);
        wishes.push(Wish::Rings { rank: by as u32 });
    }
}
