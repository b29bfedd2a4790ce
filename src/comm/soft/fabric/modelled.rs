//! Adapters in virtual time: works and packets travel by cables, and are carried out when they have arrived.
//!
//! What a read or an atomic asks for travels back. A write ends when the word of its arrival is back; unless the rules are strict it lands
//! later than it has arrived, by up to [`LATER`].

use std::time::Duration;

use super::{
    landing::land,
    memory::Pinned,
    moving::MovingFabric,
    travelling::{MovingTravel, OnCables},
    works::{Move, Moved, MovingWork},
};
use crate::comm::{
    kit::random::Random,
    soft::{Adapters, Wish},
};

/// The longest that an arrived write takes to land, in nanoseconds.
const LATER: usize = 2000;

/// Something has landed in the memory of a rank.
fn landed(at: usize, wishes: &mut Vec<Wish>) {
    let rank = at as u32;
    wishes.extend([Wish::Rings { rank }, Wish::Touches { rank }]);
}

impl MovingFabric {
    /// A work has arrived at its target.
    fn work_arrives(&self, cables: &OnCables, now: Duration, by: usize, work: MovingWork, wishes: &mut Vec<Wish>) {
        let MovingWork { what, to, len, number, .. } = work;
        let random = Random::new(self.seed.wrapping_add(number)).below(usize::MAX);
        // What is asked for is read now, and lands when it is back.
        let (what, back) = match what {
            Move::Write(_) => (what, None),
            Move::Read(here) => {
                let bytes = Pinned::zeroed(len);
                (Move::Read(bytes.start()), Some((here, bytes)))
            }
            Move::Change(atomic, here) => {
                let bytes = Pinned::zeroed(len);
                (Move::Change(atomic, bytes.start()), Some((here, bytes)))
            }
        };
        // SAFETY: the poster's promise, since its port is open and the work has not ended; or memory of the bytes.
        let ended = unsafe { self.carry_out(by, &MovingWork { what, ..work }, random) };
        let has_changed = matches!(ended, Ok(true));
        let mut travelling = cables.travelling.lock();
        if has_changed {
            landed(to, wishes);
        } else if back.is_none() && ended.is_ok() {
            let (later, after) = (self.number(), Duration::from_nanos((random % LATER) as u64));
            travelling.insert(later, (by, MovingTravel::Landing { to }));
            wishes.push(Wish::Reminds { rank: to as u32, at: now + after, number: later });
        }
        match (back, ended) {
            (Some((here, bytes)), Ok(_)) => {
                let answer = self.number();
                wishes.push(Wish::Returns { from: to as u32, to: by as u32, bytes: len, number: answer });
                travelling.insert(answer, (by, MovingTravel::Return { of: number, here, bytes, len }));
            }
            (_, ended) => _ = travelling.insert(number, (by, MovingTravel::Answer(Moved::of(ended)))),
        }
    }
}

impl Adapters for MovingFabric {
    fn arrived(&self, now: Duration, number: u64, wishes: &mut Vec<Wish>) {
        let Some(cables) = &self.on_cables else { return };
        match cables.take(number) {
            Some((by, MovingTravel::Work(work))) => self.work_arrives(cables, now, by, work, wishes),
            Some((by, MovingTravel::Return { of, here, bytes, len })) => {
                // SAFETY: the poster's promise: its port is open, and the work ends now.
                unsafe { land(here, bytes.start(), len, 0) };
                cables.ends(by, of, Moved::Well, wishes);
            }
            Some((by, MovingTravel::Packet { to, bytes })) => {
                self.packet_arrives(by, to, bytes);
                wishes.push(Wish::Rings { rank: to as u32 });
            }
            _ => {}
        }
    }

    fn answered(&self, _: Duration, number: u64, wishes: &mut Vec<Wish>) {
        let Some(cables) = &self.on_cables else { return };
        if let Some((by, MovingTravel::Answer(ended))) = cables.take(number) {
            cables.ends(by, number, ended, wishes);
        }
    }

    fn is_time(&self, _: Duration, number: u64, wishes: &mut Vec<Wish>) {
        let Some(cables) = &self.on_cables else { return };
        if let Some((by, MovingTravel::Landing { to })) = cables.take(number) {
            self.land_next(by, to);
            landed(to, wishes);
        }
    }
}
