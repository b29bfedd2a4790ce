//! VELO and RMA without an adapter, over the ranks of one process. They refuse wrong ranges and lengths.

use std::{collections::VecDeque, sync::Arc};

use super::engines::{CommandBytes, Engines, LONGEST_COMMAND, NotedCommand, Notification, PACKET};
use crate::comm::{
    rma::adapter::RmaAccess,
    soft::fabric::{Move, Moved, MovingFabric, MovingPort},
};

/// Notifications that a queue holds.
const NOTIFICATIONS: usize = 16 << 10;

/// A command: its number, its peer, and where what a get brings ends.
#[derive(Clone, Copy, Debug)]
struct SoftCommand {
    number: u64,
    peer: usize,
    end: Option<u64>,
}

/// The engines of a rank.
#[derive(Debug)]
pub(super) struct SoftEngines {
    rank: usize,
    port: MovingPort,
    /// Commands under way.
    commands: Vec<SoftCommand>,
    notifications: VecDeque<Notification>,
}

impl SoftEngines {
    /// Opens those of a rank. The fabric keeps order.
    pub(super) fn open(fabric: &Arc<MovingFabric>, rank: usize) -> Self {
        SoftEngines { rank, port: fabric.open(rank), commands: Vec::new(), notifications: VecDeque::new() }
    }

    /// Notifications that were not taken.
    #[cfg(all(test, not(loom)))]
    pub(super) fn waiting(&self) -> usize {
        self.notifications.len()
    }

    /// Memory here that a command names: it is registered.
    fn here(&self, CommandBytes { here, len, .. }: CommandBytes) -> Result<*mut u8, String> {
        if len == 0 || len > LONGEST_COMMAND {
            return Err(format!("a command of {len} bytes"));
        }
        self.port.own(here, len).ok_or_else(|| format!("{len} bytes at {here:#x} are not registered by rank {}", self.rank))
    }
}

impl Engines for SoftEngines {
    fn address(&self) -> u64 {
        self.rank as u64
    }

    fn meet(&mut self, peer: usize, address: u64) -> Result<(), String> {
        (address == peer as u64).then_some(()).ok_or_else(|| format!("rank {peer} is not at node {address}"))
    }

    unsafe fn register(&mut self, start: *mut u8, len: usize, access: RmaAccess) -> Result<(u64, u64), String> {
        // SAFETY: the caller's promise.
        let region = unsafe { self.port.register(start, len, access == RmaAccess::Remote) };
        Ok((region, start.expose_provenance() as u64))
    }

    fn unregister(&mut self, region: u64) {
        self.port.unregister(region);
    }

    unsafe fn put(&mut self, to: usize, bytes: CommandBytes) -> Result<(), String> {
        let here = self.here(bytes)?;
        // SAFETY: the caller's promise.
        let number = unsafe { self.port.begin(Move::Write(here), to, None, bytes.there, bytes.len) };
        self.commands.push(SoftCommand { number, peer: to, end: None });
        Ok(())
    }

    unsafe fn get(&mut self, from: usize, bytes: CommandBytes) -> Result<(), String> {
        let here = self.here(bytes)?;
        // SAFETY: the caller's promise.
        let number = unsafe { self.port.begin(Move::Read(here), from, None, bytes.there, bytes.len) };
        self.commands.push(SoftCommand { number, peer: from, end: Some(bytes.here + bytes.len as u64) });
        Ok(())
    }

    fn notification(&mut self) -> Result<Option<Notification>, String> {
        if self.notifications.len() >= NOTIFICATIONS {
            return Err("the queue of notifications has overflown".to_owned());
        }
        Ok(self.notifications.pop_front())
    }

    fn send(&mut self, to: usize, packet: &[u8]) -> Result<bool, String> {
        if packet.len() > PACKET {
            return Err(format!("a packet of {} bytes", packet.len()));
        }
        if self.port.is_late(16) { Ok(false) } else { self.port.send_packet(to, packet) }
    }

    fn receive(&mut self, packet: &mut [u8; PACKET]) -> Option<(usize, usize)> {
        // Packets may be late.
        if self.port.is_late(4) {
            return None;
        }
        let (from, bytes) = self.port.take_packet()?;
        packet[..bytes.len()].copy_from_slice(&bytes);
        Some((from, bytes.len()))
    }

    fn go_on(&mut self) {
        self.port.land_one();
        if self.port.is_late(2) {
            return;
        }
        // Those to a peer end in their order.
        let mut waits = Vec::new();
        self.commands.retain(|&SoftCommand { number, peer, end }| {
            if waits.contains(&peer) {
                return true;
            }
            let refused = match self.port.test(number) {
                Moved::NotYet => {
                    waits.push(peer);
                    return true;
                }
                Moved::Well => None,
                Moved::Failed(why) => Some(why),
            };
            let of = end.map_or(NotedCommand::Put { to: peer }, |end| NotedCommand::Get { end });
            self.notifications.push_back(Notification { of, refused });
            false
        });
    }

    fn close(&mut self) {
        self.port.close();
    }
}
