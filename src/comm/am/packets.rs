//! A wire inside one machine: frames cut into packets, which travel through rings in the shared mapping.
//!
//! It has no bulk messages, and its short rings are often full. Jobs over it (`threads:packets+hidden`) run all of the active messages
//! without a network.
//!
//! A ring has many writers, so packets of different frames mix. Those of one sender and class keep their order.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use super::{
    frame::{Frame, Frames},
    wire::{Arrival, Broken, Class, Ended, Limits, Result, Wire},
};
use crate::comm::{
    Topology,
    node::{Fabric, PACKET, Use},
};

/// A frame takes some packets of many, and a ring has room for one and a half.
const LIMITS: Limits = Limits { frame: 2048, bulk: None, one_sided: None, by_agents: false };

/// Frames kept for the next use.
const KEPT: usize = 32;

/// Bytes of the length in front of a frame.
const LENGTH: usize = size_of::<u32>();

/// A wire of rings in the shared mapping.
#[derive(Debug)]
pub(in crate::comm) struct Packets {
    fabric: Arc<Fabric>,
    topology: Topology,
    /// Frames whose first packets have left.
    leaving: VecDeque<Leaving>,
    /// Frames whose first packets have arrived, by class and sender.
    coming: BTreeMap<(usize, usize), Coming>,
    spare: Frames,
}

#[derive(Debug)]
struct Leaving {
    to: usize,
    class: Class,
    frame: Frame,
    sent: usize,
}

#[derive(Debug)]
struct Coming {
    frame: Frame,
    len: usize,
    received: usize,
}

/// The ring of a class.
fn ring(class: Class) -> Use {
    match class {
        Class::Request => Use::Requests,
        Class::Reply => Use::Replies,
    }
}

impl Packets {
    pub(in crate::comm) fn new(fabric: Arc<Fabric>, topology: Topology) -> Self {
        let spare = Frames::new(LIMITS.frame, KEPT);
        Packets { fabric, topology, leaving: VecDeque::new(), coming: BTreeMap::new(), spare }
    }

    /// Sends packets of a frame from byte `sent` on, as many as there is room for; up to which byte.
    fn send_packets(&self, to: usize, class: Class, frame: &Frame, mut sent: usize) -> usize {
        let bytes = frame.sealed();
        let (target, own) = (self.topology.local(to), self.topology.rank());
        while sent < bytes.len() {
            let head = if sent == 0 { LENGTH } else { 0 };
            let part = (bytes.len() - sent).min(PACKET - head);
            let mut packet = [0; PACKET];
            packet[..head].copy_from_slice(&(bytes.len() as u32).to_ne_bytes()[..head]);
            packet[head..head + part].copy_from_slice(&bytes[sent..sent + part]);
            if self.fabric.post(target, own, ring(class), &packet[..head + part]).is_err() {
                break;
            }
            sent += part;
        }
        sent
    }

    /// Adds a packet to its frame. Returns the frame if that is all of it.
    fn take_in(&mut self, class: Class, from: usize, packet: &[u8]) -> Result<Option<Arrival>> {
        let place = (class as usize, from);
        let (coming, bytes) = match self.coming.remove(&place) {
            Some(coming) => (coming, packet),
            None => {
                let (length, bytes) =
                    packet.split_first_chunk::<LENGTH>().ok_or_else(|| Broken("a packet without a length".into()))?;
                let len = u32::from_ne_bytes(*length) as usize;
                (Coming { frame: self.spare.take(), len, received: 0 }, bytes)
            }
        };
        let Coming { mut frame, len, received } = coming;
        let end = received + bytes.len();
        if end > len || len > LIMITS.frame {
            return Err(Broken(format!("rank {from} sent {end} bytes of a frame of {len}")));
        }
        frame.bytes_mut()[received..end].copy_from_slice(bytes);
        if end == len {
            return Ok(Some(Arrival { from, frame, len }));
        }
        self.coming.insert(place, Coming { frame, len, received: end });
        Ok(None)
    }
}

impl Wire for Packets {
    fn limits(&self) -> Limits {
        LIMITS
    }

    fn frame(&mut self) -> Frame {
        self.spare.take()
    }

    fn keep(&mut self, frame: Frame) {
        self.spare.give(frame);
    }

    fn send(&mut self, to: usize, class: Class, frame: Frame) -> Result<Option<Frame>> {
        if self.leaving.iter().any(|other| (other.to, other.class) == (to, class)) {
            return Ok(Some(frame));
        }
        match self.send_packets(to, class, &frame, 0) {
            0 => return Ok(Some(frame)),
            sent if sent == frame.sealed().len() => self.spare.give(frame),
            sent => self.leaving.push_back(Leaving { to, class, frame, sent }),
        }
        Ok(None)
    }

    fn leaving(&self) -> usize {
        self.leaving.len()
    }

    fn receive(&mut self) -> Result<Option<Arrival>> {
        let own = self.topology.local(self.topology.rank());
        for class in [Class::Reply, Class::Request] {
            while let Some((from, packet, len)) = self.fabric.take(own, ring(class)) {
                let arrival = self.take_in(class, from, &packet[..len])?;
                if arrival.is_some() {
                    return Ok(arrival);
                }
            }
        }
        Ok(None)
    }

    fn ended(&mut self, _ended: &mut Vec<Ended>) -> Result<()> {
        for _ in 0..self.leaving.len() {
            let Some(Leaving { to, class, frame, sent }) = self.leaving.pop_front() else { break };
            let sent = self.send_packets(to, class, &frame, sent);
            if sent == frame.sealed().len() {
                self.spare.give(frame);
            } else {
                self.leaving.push_back(Leaving { to, class, frame, sent });
            }
        }
        Ok(())
    }

    /// `Fabric::post` rings the bell with each packet.
    fn arm(&mut self) -> bool {
        true
    }

    fn close(&mut self) {}
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn pair() -> [Packets; 2] {
        let fabric = Arc::new(Fabric::new(2, 1 << 20, false).unwrap());
        [0, 1].map(|rank| Packets::new(fabric.clone(), Topology::one_machine(rank, 2)))
    }

    /// A frame whose only record has `bytes` bytes, all `value`.
    fn frame(wire: &mut Packets, value: u8, bytes: usize) -> Frame {
        use crate::comm::am::frame::RecordKind;
        let mut frame = wire.frame();
        frame.push(RecordKind::Put, 0, &[0], &[], bytes).fill(value);
        frame.seal(0, true);
        frame
    }

    #[test]
    fn a_full_wire_gives_frames_back_and_keeps_their_order() {
        let [mut one, mut two] = pair();
        let (mut sent, mut received) = (0_u8, 0_u8);
        while received < 100 {
            let next = frame(&mut one, sent, 64 * (1 + usize::from(sent) % 30));
            match one.send(1, Class::Request, next).unwrap() {
                None => sent += 1,
                Some(_) => {
                    assert!(sent > received, "full, and nothing is on its way");
                    let arrival = two.receive().unwrap();
                    one.ended(&mut Vec::new()).unwrap();
                    let Some(Arrival { from, frame, len }) = arrival else { continue };
                    let (.., mut records) = frame.read(len).unwrap();
                    let payload = records.next().unwrap().payload.to_vec();
                    assert_eq!((from, payload), (0, vec![received; 64 * (1 + usize::from(received) % 30)]));
                    received += 1;
                }
            }
        }
    }

    #[test]
    fn answers_pass_a_full_queue_of_requests() {
        let [mut one, mut two] = pair();
        loop {
            let next = frame(&mut one, 1, 1000);
            if one.send(1, Class::Request, next).unwrap().is_some() {
                break;
            }
        }
        let answer = frame(&mut one, 2, 40);
        assert!(one.send(1, Class::Reply, answer).unwrap().is_none());
        let Arrival { frame, len, .. } = two.receive().unwrap().expect("the answer");
        assert_eq!(frame.read(len).unwrap().2.next().unwrap().payload, [2; 40]);
    }
}
