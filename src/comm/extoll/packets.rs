//! Frames as packets of VELO, which keep their order from one rank to another.
//!
//! A packet has eight bytes of a header, the frame's length and the place of its bytes there, and 56 bytes of a frame: the second design of the paper.

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

/// In front of the bytes of a packet.
const HEADER: usize = 8;
const BYTES: usize = PACKET - HEADER;

/// Bytes of a frame.
const FRAME: usize = 2048;

/// Frames that may be on their way, and those of them that requests leave to answers.
const SENDS: usize = 64;
const FOR_ANSWERS: usize = 16;

/// Packets that are taken at a look.
const TOGETHER: usize = 64;

/// A frame that leaves.
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
    leaving: VecDeque<LeavingFrame>,
    /// What has come of the next frame of each rank.
    coming: Peers<Vec<u8>>,
    arrived: VecDeque<(usize, Vec<u8>)>,
}

impl VeloPackets {
    pub(super) fn new(ranks: usize) -> Self {
        VeloPackets { ranks, ..VeloPackets::default() }
    }

    /// Sends packets, as far as their targets have room. Those of one frame go before those of later frames to the same rank.
    fn send_packets(&mut self, adapter: &mut ExtollAdapter<impl Engines>) -> Result<()> {
        let mut full: Vec<usize> = Vec::new();
        for frame in &mut self.leaving {
            let LeavingFrame { to, bytes, sent } = frame;
            while !full.contains(to) && *sent < bytes.len() {
                let mut packet = [0; PACKET];
                let part = &bytes[*sent..][..BYTES.min(bytes.len() - *sent)];
                packet[..4].copy_from_slice(&(bytes.len() as u32).to_le_bytes());
                packet[4..HEADER].copy_from_slice(&(*sent as u32).to_le_bytes());
                packet[HEADER..][..part.len()].copy_from_slice(part);
                match adapter.send(*to, &packet[..HEADER + part.len()]) {
                    Ok(true) => *sent += part.len(),
                    Ok(false) => full.push(*to),
                    // The rank has come to its end, and its frames may be lost.
                    Err(_) => *sent = bytes.len(),
                }
            }
        }
        self.leaving.retain(|frame| frame.sent < frame.bytes.len());
        Ok(())
    }

    /// Takes packets that have come.
    fn take_packets(&mut self, adapter: &mut ExtollAdapter<impl Engines>) -> Result<()> {
        let mut packet = [0; PACKET];
        for _ in 0..TOGETHER {
            let Some((from, len)) = adapter.receive(&mut packet) else { break };
            let number = |at: usize| u32::from_le_bytes(std::array::from_fn(|k| packet[at + k])) as usize;
            if len < HEADER || from >= self.ranks {
                continue;
            }
            let coming = self.coming.meet(from);
            if number(4) != coming.len() || number(0) > FRAME {
                return Err(Broken(format!("a packet of rank {from} is lost")));
            }
            coming.extend_from_slice(&packet[HEADER..len]);
            if coming.len() >= number(0) {
                self.arrived.push_back((from, std::mem::take(coming)));
            }
        }
        Ok(())
    }
}

impl<E: Engines> FrameRoad<ExtollAdapter<E>> for VeloPackets {
    fn longest(&self) -> usize {
        FRAME
    }

    fn send(&mut self, adapter: &mut ExtollAdapter<E>, to: usize, class: Class, frame: &[u8]) -> Result<bool> {
        let most = if class == Class::Request { SENDS - FOR_ANSWERS } else { SENDS };
        if self.leaving.len() >= most {
            return Ok(false);
        }
        self.leaving.push_back(LeavingFrame { to, bytes: frame.to_vec(), sent: 0 });
        self.send_packets(adapter)?;
        Ok(true)
    }

    fn receive(&mut self, _: &mut ExtollAdapter<E>, frame: &mut [u8]) -> Result<Option<(usize, usize)>> {
        Ok(self.arrived.pop_front().map(|(from, bytes)| {
            frame[..bytes.len()].copy_from_slice(&bytes);
            (from, bytes.len())
        }))
    }

    fn ends(&mut self, _: &RmaDone) -> bool {
        false
    }

    fn tend(&mut self, adapter: &mut ExtollAdapter<E>) -> Result<()> {
        self.send_packets(adapter)?;
        self.take_packets(adapter)
    }

    fn has_arrivals(&self) -> bool {
        !self.arrived.is_empty()
    }

    fn leaving(&self) -> usize {
        self.leaving.len()
    }
}
