//! The credit of frames between this rank and one peer, in both directions.
//!
//! A frame of requests takes credit, for its target may have to keep it. The target owes an acknowledgement when all records of the frame
//! are handled.
//!
//! ```text
//!  event                         | unacknowledged | owed          | and
//!  ------------------------------+----------------+---------------+--------------------------------------
//!  a frame of requests leaves    | + 1            | 0             | carries what was owed
//!  a frame of answers leaves     |                | 0             | carries what was owed
//!  a frame that carries n came   | - n            |               | n is at most what was unacknowledged
//!  a frame of requests is done   |                | + 1           | at ACKNOWLEDGE a frame of answers leaves
//! ```
//!
//! Frames of answers take no credit, because a rank that asks has room for the answer. So two ranks that wait for each other's credit make
//! progress: each handles the other's frames, and acknowledgements need no credit. A few frames may stay unacknowledged while neither rank
//! sends. A rank that needs to know sends a request, whose answer acknowledges them.

/// Frames of requests to one peer that may be on their way or unacknowledged.
const CREDIT: u32 = 32;

/// Frames that are acknowledged together when no other frame leaves that could carry it. Less than [`CREDIT`], so that a sender
/// that nobody sends to goes on.
const ACKNOWLEDGE: u32 = CREDIT / 4;

/// The credit of one peer.
#[derive(Debug, Default)]
pub(in crate::comm) struct Credit {
    /// Frames of requests sent and not acknowledged.
    unacknowledged: u32,
    /// Frames of the peer's requests handled and not acknowledged.
    owed: u32,
}

impl Credit {
    /// Returns true if another frame of requests may leave.
    pub(in crate::comm) fn may_send(&self) -> bool {
        self.unacknowledged < CREDIT
    }

    /// A frame of requests leaves. Returns how many frames it acknowledges.
    #[must_use]
    pub(in crate::comm) fn requests_leave(&mut self) -> u32 {
        self.unacknowledged += 1;
        self.answers_leave()
    }

    /// A frame of answers leaves. Returns how many frames it acknowledges.
    #[must_use]
    pub(in crate::comm) fn answers_leave(&mut self) -> u32 {
        std::mem::take(&mut self.owed)
    }

    /// Returns true if a frame of answers is to leave even without answers.
    pub(in crate::comm) fn must_acknowledge(&self) -> bool {
        self.owed >= ACKNOWLEDGE
    }

    /// All records of a frame of the peer's requests are handled.
    pub(in crate::comm) fn handled(&mut self) {
        self.owed += 1;
    }

    /// A frame has come that acknowledges `frames` frames. None if fewer are unacknowledged.
    #[must_use]
    pub(in crate::comm) fn acknowledged(&mut self, frames: u32) -> Option<()> {
        self.unacknowledged = self.unacknowledged.checked_sub(frames)?;
        Some(())
    }

    /// Returns true if all that was sent is acknowledged.
    pub(in crate::comm) fn is_quiet(&self) -> bool {
        self.unacknowledged == 0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;
    use crate::comm::protocol::simulation::{Channels, Random, SEEDS};

    /// A frame under way.
    #[derive(Debug)]
    struct Frame {
        is_request: bool,
        /// It has a record that is answered.
        asks: bool,
        acknowledges: u32,
    }

    /// What one rank has to do with one other.
    #[derive(Debug, Default)]
    struct Side {
        credit: Credit,
        /// Frames that the program still wants to send.
        wanted: usize,
        /// Frames that came and are not handled.
        inbox: VecDeque<Frame>,
        /// Answers that have not left.
        answers: usize,
        sent: u32,
        handled: u32,
        /// Frames of the peer that this side has acknowledged, and frames of this side that are known to be acknowledged.
        told: u32,
        heard: u32,
    }

    /// Ranks that all send to each other.
    struct World {
        ranks: usize,
        sides: Vec<Side>,
        network: Channels<Frame>,
        /// One frame of requests in `asks_one_in` is answered.
        asks_one_in: usize,
    }

    impl World {
        fn new(random: &mut Random) -> Self {
            let ranks = 2 + random.below(2);
            let mut sides: Vec<Side> = (0..ranks * ranks).map(|_| Side::default()).collect();
            for (at, side) in sides.iter_mut().enumerate() {
                // Some say nothing, some say little, some more than their credit.
                let most = [1, 6, 20, 3 * CREDIT as usize][random.below(4)];
                side.wanted = if at / ranks == at % ranks { 0 } else { random.below(most) };
            }
            // Where nothing is answered, nothing but acknowledgements gives credit back.
            let asks_one_in = [4, usize::MAX][random.below(2)];
            World { ranks, sides, network: Channels::new(2 * ranks * ranks), asks_one_in }
        }

        /// The other end of a side.
        fn peer(&self, side: usize) -> usize {
            side % self.ranks * self.ranks + side / self.ranks
        }

        fn send(&mut self, side: usize, is_request: bool, asks: bool) {
            let this = &mut self.sides[side];
            let acknowledges = if is_request { this.credit.requests_leave() } else { this.credit.answers_leave() };
            this.sent += u32::from(is_request);
            this.told += acknowledges;
            assert!(this.told <= this.handled, "{} frames acknowledged, and {} handled", this.told, this.handled);
            assert!(this.sent - this.heard <= CREDIT, "{} frames unacknowledged", this.sent - this.heard);
            self.network.send(2 * side + usize::from(is_request), Frame { is_request, asks, acknowledges });
        }

        fn receive(&mut self, channel: usize, frame: Frame) {
            let side = self.peer(channel / 2);
            let this = &mut self.sides[side];
            this.heard += frame.acknowledges;
            assert_eq!(this.credit.acknowledged(frame.acknowledges), Some(()));
            if frame.is_request {
                this.inbox.push_back(frame);
            }
            let held = self.network.len(channel | 1) + self.sides[side].inbox.len();
            assert!(held <= CREDIT as usize, "{held} frames of one peer wait");
        }

        /// The oldest frame of an inbox is handled.
        fn handle(&mut self, side: usize) -> Option<()> {
            let this = &mut self.sides[side];
            let frame = this.inbox.pop_front()?;
            this.answers += usize::from(frame.asks);
            this.credit.handled();
            this.handled += 1;
            Some(())
        }

        fn answer(&mut self, side: usize) -> Option<()> {
            let this = &mut self.sides[side];
            (this.answers > 0 || this.credit.must_acknowledge()).then_some(())?;
            this.answers = 0;
            self.send(side, false, false);
            Some(())
        }

        fn request(&mut self, side: usize, asks: bool) -> Option<()> {
            let this = &mut self.sides[side];
            (this.wanted > 0 && this.credit.may_send()).then_some(())?;
            this.wanted -= 1;
            self.send(side, true, asks);
            Some(())
        }

        /// Something happens somewhere; none if nothing can.
        fn step(&mut self, random: &mut Random) -> Option<()> {
            let (kinds, sides) = (4, self.sides.len());
            let first = random.below(kinds);
            (0..kinds).find_map(|k| match (first + k) % kinds {
                0 => {
                    let (channel, frame) = self.network.receive(random)?;
                    self.receive(channel, frame);
                    Some(())
                }
                1 => random.pick(sides, |side| self.handle(side)),
                2 => random.pick(sides, |side| self.answer(side)),
                _ => {
                    let asks = random.one_in(self.asks_one_in);
                    random.pick(sides, |side| self.request(side, asks))
                }
            })
        }
    }

    #[test]
    fn no_frame_is_without_credit_and_every_one_is_acknowledged_once() {
        for seed in 0..SEEDS {
            let mut random = Random::new(seed);
            let mut world = World::new(&mut random);
            let wanted: Vec<u32> = world.sides.iter().map(|side| side.wanted as u32).collect();
            while world.step(&mut random).is_some() {}
            assert!(world.sides.iter().all(|side| side.wanted == 0), "seed {seed}: a rank waits for credit that does not come");
            // Each asks those that have not acknowledged everything.
            let open: Vec<usize> = (0..world.sides.len()).filter(|&side| !world.sides[side].credit.is_quiet()).collect();
            open.iter().for_each(|&side| world.sides[side].wanted = 1);
            world.asks_one_in = 1;
            while world.step(&mut random).is_some() {}
            for (at, side) in world.sides.iter().enumerate() {
                let peer = &world.sides[world.peer(at)];
                assert!(side.credit.is_quiet() && side.wanted == 0, "seed {seed}: {side:?}");
                assert_eq!((side.sent, side.heard), (peer.handled, side.sent), "seed {seed}: {side:?}");
                assert!(side.sent == wanted[at] || side.sent == wanted[at] + 1, "seed {seed}: {side:?}");
            }
        }
    }

    #[test]
    fn a_peer_that_acknowledges_too_much_is_found() {
        let mut credit = Credit::default();
        assert_eq!(credit.requests_leave(), 0);
        assert_eq!(credit.acknowledged(2), None);
        assert_eq!(credit.acknowledged(1), Some(()));
        assert!(credit.is_quiet());
    }
}
