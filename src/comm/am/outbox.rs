//! Frames that the wire had no room for, and those of a rank to itself.
//!
//! Credit bounds requests; what peers ask for bounds answers.

use std::collections::{BTreeMap, VecDeque};

use super::{
    frame::Frame,
    wire::{Arrival, Class, Result, Wire},
};

/// A rank receives this many frames of its own before it looks for those of others.
const OWN_IN_A_ROW: usize = 8;

/// The frames of one rank that no wire has taken.
#[derive(Debug)]
pub(super) struct Outbox {
    rank: usize,
    /// Frames to the rank itself. `in_a_row` counts those received since the last look for frames of others.
    own: VecDeque<Frame>,
    in_a_row: usize,
    /// No queue is empty.
    queues: BTreeMap<(usize, Class), VecDeque<Frame>>,
    len: usize,
}

impl Outbox {
    /// That of a rank.
    pub(super) fn new(rank: usize) -> Self {
        Outbox { rank, own: VecDeque::new(), in_a_row: 0, queues: BTreeMap::new(), len: 0 }
    }

    /// Frames that wait for the wire. Those of the rank to itself are not counted.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Sends a sealed frame, now or when there is room.
    pub(super) fn send<W: Wire>(&mut self, wire: &mut W, to: usize, class: Class, frame: Frame) -> Result<()> {
        if to == self.rank {
            self.own.push_back(frame);
            return Ok(());
        }
        let waits = self.len > 0 && self.queues.contains_key(&(to, class));
        let refused = if waits { Some(frame) } else { wire.send(to, class, frame)? };
        if let Some(frame) = refused {
            self.queues.entry((to, class)).or_default().push_back(frame);
            self.len += 1;
        }
        Ok(())
    }

    /// Returns true if a frame of the rank to itself was not received.
    pub(super) fn has_own(&self) -> bool {
        !self.own.is_empty()
    }

    /// The next frame that has come, from the rank itself or by the wire.
    pub(super) fn receive<W: Wire>(&mut self, wire: &mut W) -> Result<Option<Arrival>> {
        if self.in_a_row < OWN_IN_A_ROW && self.has_own() {
            self.in_a_row += 1;
            return Ok(self.receive_own());
        }
        self.in_a_row = 0;
        let arrival = wire.receive()?;
        Ok(arrival.or_else(|| self.receive_own()))
    }

    fn receive_own(&mut self) -> Option<Arrival> {
        let frame = self.own.pop_front()?;
        let len = frame.sealed().len();
        Some(Arrival { from: self.rank, frame, len })
    }

    /// Sends what there is room for now.
    pub(super) fn resume<W: Wire>(&mut self, wire: &mut W) -> Result<()> {
        if self.len == 0 {
            return Ok(());
        }
        let (mut sent, mut broken) = (0, Ok(()));
        self.queues.retain(|&(to, class), queue| {
            while let Some(frame) = queue.pop_front() {
                match wire.send(to, class, frame) {
                    Ok(None) => sent += 1,
                    Ok(Some(frame)) => {
                        queue.push_front(frame);
                        break;
                    }
                    Err(error) => {
                        sent += 1;
                        broken = Err(error);
                    }
                }
            }
            !queue.is_empty()
        });
        self.len -= sent;
        broken
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::comm::am::{
        frame::{Frames, RecordKind},
        wire::{BulkId, Ended, Limits},
    };

    const RANK: usize = 2;

    /// A wire that takes as many frames as it has room for, and brings one.
    #[derive(Debug)]
    struct Narrow {
        frames: Frames,
        room: usize,
        taken: Vec<usize>,
        brings: bool,
    }

    impl Wire for Narrow {
        fn limits(&self) -> Limits {
            Limits { frame: 512, bulk: None, one_sided: None, by_agents: false }
        }

        fn frame(&mut self) -> Frame {
            self.frames.take()
        }

        fn keep(&mut self, frame: Frame) {
            self.frames.give(frame);
        }

        fn send(&mut self, to: usize, _: Class, frame: Frame) -> Result<Option<Frame>> {
            assert_ne!(to, RANK, "a rank sends to itself by the wire");
            if self.taken.len() == self.room {
                return Ok(Some(frame));
            }
            self.taken.push(to);
            Ok(None)
        }

        fn leaving(&self) -> usize {
            0
        }

        fn receive(&mut self) -> Result<Option<Arrival>> {
            let frame = sealed(self);
            let len = frame.sealed().len();
            Ok(std::mem::take(&mut self.brings).then_some(Arrival { from: 0, frame, len }))
        }

        fn cancel(&mut self, _: BulkId) {}

        fn ended(&mut self, _: &mut Vec<Ended>) -> Result<()> {
            Ok(())
        }

        fn close(&mut self) {}
    }

    fn sealed(wire: &mut Narrow) -> Frame {
        let mut frame = wire.frame();
        frame.push(RecordKind::Put, 0, &[0], &[], 8).fill(1);
        frame.seal(0, true);
        frame
    }

    fn narrow(room: usize) -> Narrow {
        Narrow { frames: Frames::new(512, 8), room, taken: Vec::new(), brings: false }
    }

    #[test]
    fn a_rank_receives_what_it_sends_to_itself_without_a_wire_and_does_not_starve_others() {
        let (mut outbox, mut wire) = (Outbox::new(RANK), narrow(0));
        for _ in 0..2 * OWN_IN_A_ROW {
            let frame = sealed(&mut wire);
            outbox.send(&mut wire, RANK, Class::Request, frame).unwrap();
        }
        wire.brings = true;
        let mut from = Vec::new();
        while let Some(arrival) = outbox.receive(&mut wire).unwrap() {
            assert!(arrival.frame.read(arrival.len).is_some());
            from.push(arrival.from);
        }
        let mut expected = vec![RANK; 2 * OWN_IN_A_ROW];
        expected.insert(OWN_IN_A_ROW, 0);
        assert_eq!(from, expected);
        assert!(!outbox.has_own() && outbox.len() == 0);
    }

    #[test]
    fn frames_of_a_class_keep_their_order_while_there_is_no_room() {
        let (mut outbox, mut wire) = (Outbox::new(RANK), narrow(1));
        for to in [1, 1, 3] {
            let frame = sealed(&mut wire);
            outbox.send(&mut wire, to, Class::Request, frame).unwrap();
        }
        assert_eq!((wire.taken.len(), outbox.len()), (1, 2));
        wire.room = 3;
        outbox.resume(&mut wire).unwrap();
        assert_eq!((&wire.taken[..], outbox.len()), (&[1, 1, 3][..], 0));
    }
}
