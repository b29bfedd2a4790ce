//! Frames as packets of VELO, which keep their order from one rank to another.
//!
//! A frame is eight bytes of a header and its bytes, cut into packets of 56 that each take one slot of a mailbox: the second design of the paper, in
//! which the first data ride in the header's packet. In the first design the header goes alone. How that one divided the rest is not in the paper.

use std::collections::VecDeque;

use super::{
    adapter::ExtollAdapter,
    engines::{Engines, PACKET},
};
use crate::comm::{
    am::wire::{Broken, Class, Result},
    kit::peers::Peers,
    rma::{adapter::RmaDone, road::FrameRoad},
};

/// In front of a frame: its length, and its number among those of its rank to this one.
const HEADER: usize = 8;

/// Bytes of a frame.
const FRAME: usize = 2048;

/// Frames that wait for their receipt before no more packets are taken.
const TOGETHER: usize = 64;

/// The two designs of active messages in the paper.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum PacketDesign {
    First,
    #[default]
    Second,
}

impl PacketDesign {
    /// # Errors
    /// It is neither.
    pub(super) fn parse(word: &str) -> std::result::Result<Self, String> {
        match word {
            "first" => Ok(PacketDesign::First),
            "second" => Ok(PacketDesign::Second),
            _ => Err(format!("{DESIGN} is \"{word}\", and must be first or second")),
        }
    }
}

/// Chooses one.
pub(super) const DESIGN: &str = "GA_EXTOLL_PACKETS";

/// What goes between this rank and another.
#[derive(Debug, Default)]
struct Flow {
    /// The numbers of the next frame that leaves, and of the next one that comes.
    leaves: u32,
    comes: u32,
    /// What has come of that one.
    coming: Vec<u8>,
}

/// A frame that leaves, behind its header.
#[derive(Debug)]
struct LeavingFrame {
    to: usize,
    bytes: Vec<u8>,
    sent: usize,
}

/// Frames between the ranks of a job.
#[derive(Debug, Default)]
pub(super) struct VeloPackets {
    ranks: usize,
    design: PacketDesign,
    /// One for each rank, at most.
    leaving: Vec<LeavingFrame>,
    flows: Peers<Flow>,
    arrived: VecDeque<(usize, Vec<u8>)>,
}

impl VeloPackets {
    pub(super) fn new(ranks: usize) -> Self {
        VeloPackets { ranks, ..VeloPackets::default() }
    }

    pub(super) fn of_design(self, design: PacketDesign) -> Self {
        VeloPackets { design, ..self }
    }

    /// Sends packets, as far as their targets have room.
    fn send_packets(&mut self, adapter: &mut ExtollAdapter<impl Engines>) {
        let first = if self.design == PacketDesign::First { HEADER } else { PACKET };
        self.leaving.retain_mut(|LeavingFrame { to, bytes, sent }| {
            while *sent < bytes.len() {
                let end = bytes.len().min(*sent + if *sent == 0 { first } else { PACKET });
                match adapter.send(*to, &bytes[*sent..end]) {
                    Some(true) => *sent = end,
                    Some(false) => return true,
                    None => return false,
                }
            }
            false
        });
    }

    /// Takes packets that have come.
    fn take_packets(&mut self, adapter: &mut ExtollAdapter<impl Engines>) -> Result<()> {
        let mut packet = [0; PACKET];
        while self.arrived.len() < TOGETHER {
            let Some((from, len)) = adapter.receive(&mut packet) else { break };
            if from >= self.ranks {
                continue;
            }
            let flow = self.flows.meet(from);
            flow.coming.extend_from_slice(&packet[..len]);
            let word = |at: usize| flow.coming.get(at..at + 4).map(|word| u32::from_le_bytes(std::array::from_fn(|k| word[k])));
            let (Some(bytes), Some(number)) = (word(0), word(4)) else { continue };
            if number != flow.comes || bytes as usize > FRAME {
                return Err(Broken(format!("a packet of rank {from} is lost")));
            }
            if flow.coming.len() >= HEADER + bytes as usize {
                flow.comes = flow.comes.wrapping_add(1);
                self.arrived.push_back((from, std::mem::take(&mut flow.coming)));
            }
        }
        Ok(())
    }
}

impl<E: Engines> FrameRoad<ExtollAdapter<E>> for VeloPackets {
    fn longest(&self) -> usize {
        FRAME
    }

    fn send(&mut self, adapter: &mut ExtollAdapter<E>, to: usize, _: Class, frame: &[u8]) -> Result<bool> {
        if self.leaving.iter().any(|leaving| leaving.to == to) {
            return Ok(false);
        }
        let flow = self.flows.meet(to);
        let mut bytes = Vec::with_capacity(HEADER + frame.len());
        bytes.extend_from_slice(&(frame.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&flow.leaves.to_le_bytes());
        bytes.extend_from_slice(frame);
        flow.leaves = flow.leaves.wrapping_add(1);
        self.leaving.push(LeavingFrame { to, bytes, sent: 0 });
        self.send_packets(adapter);
        Ok(true)
    }

    fn receive(&mut self, _: &mut ExtollAdapter<E>, frame: &mut [u8]) -> Result<Option<(usize, usize)>> {
        Ok(self.arrived.pop_front().map(|(from, bytes)| {
            let bytes = &bytes[HEADER..];
            frame[..bytes.len()].copy_from_slice(bytes);
            (from, bytes.len())
        }))
    }

    /// Only what was refused is said.
    fn ends(&mut self, _: &RmaDone) -> bool {
        true
    }

    fn tend(&mut self, adapter: &mut ExtollAdapter<E>) -> Result<bool> {
        let before = self.leaving.len();
        self.send_packets(adapter);
        self.take_packets(adapter)?;
        Ok(self.leaving.len() < before)
    }

    fn has_arrivals(&self) -> bool {
        !self.arrived.is_empty()
    }

    fn leaving(&self) -> usize {
        self.leaving.len()
    }
}
