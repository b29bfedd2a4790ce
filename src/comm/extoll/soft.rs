//! VELO and RMA without an adapter, over the threads of one process. They refuse wrong ranges and lengths.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use super::engines::{CommandBytes, Engines, LONGEST_COMMAND, NotedCommand, Notification, PACKET};
use crate::comm::{
    kit::{mutex::Mutex, random::Random},
    rma::adapter::RmaAccess,
    soft::fabric::{Move, Moved, MovingFabric, MovingPort, MovingRules},
};

/// Notifications that a queue holds.
const NOTIFICATIONS: usize = 16 << 10;

/// Packets that a mailbox holds.
const MAILBOX: usize = 128;

/// A packet, and its sender.
type VeloPacket = (usize, Vec<u8>);

/// Nodes that reach each other.
#[derive(Debug)]
pub(super) struct SoftNodes {
    memory: Arc<MovingFabric>,
    mailboxes: Mutex<BTreeMap<usize, VecDeque<VeloPacket>>>,
    seed: u64,
}

impl SoftNodes {
    pub(super) fn new(seed: u64) -> Arc<Self> {
        Arc::new(SoftNodes { memory: MovingFabric::new(MovingRules::InOrder, seed), mailboxes: Mutex::default(), seed })
    }
}

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
    nodes: Arc<SoftNodes>,
    rank: usize,
    random: Random,
    port: MovingPort,
    /// Commands under way.
    commands: Vec<SoftCommand>,
    notifications: VecDeque<Notification>,
}

impl SoftEngines {
    pub(super) fn open(nodes: &Arc<SoftNodes>, rank: usize) -> Self {
        nodes.mailboxes.lock().insert(rank, VecDeque::new());
        SoftEngines {
            nodes: nodes.clone(),
            rank,
            random: Random::new(nodes.seed.wrapping_add(1000 + rank as u64)),
            port: nodes.memory.open(rank),
            commands: Vec::new(),
            notifications: VecDeque::new(),
        }
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
        let mut mailboxes = self.nodes.mailboxes.lock();
        let mailbox = mailboxes.get_mut(&to).ok_or_else(|| format!("rank {to} has no mailbox"))?;
        if mailbox.len() >= MAILBOX || self.random.below(16) == 0 {
            return Ok(false);
        }
        mailbox.push_back((self.rank, packet.to_vec()));
        Ok(true)
    }

    fn receive(&mut self, packet: &mut [u8; PACKET]) -> Option<(usize, usize)> {
        // Packets may be late.
        if self.random.below(4) == 0 {
            return None;
        }
        let (from, bytes) = self.nodes.mailboxes.lock().get_mut(&self.rank)?.pop_front()?;
        packet[..bytes.len()].copy_from_slice(&bytes);
        Some((from, bytes.len()))
    }

    fn go_on(&mut self) {
        self.port.land_one();
        // Of any peer the oldest.
        for _ in 0..self.commands.len().min(4) {
            let peer = self.commands[self.random.below(self.commands.len())].peer;
            let Some(at) = self.commands.iter().position(|command| command.peer == peer) else { return };
            let SoftCommand { number, end, .. } = self.commands[at];
            let refused = match self.port.test(number) {
                Moved::NotYet => continue,
                Moved::Well => None,
                Moved::Failed(why) => Some(why),
            };
            let of = end.map_or(NotedCommand::Put { to: peer }, |end| NotedCommand::Get { end });
            self.commands.remove(at);
            self.notifications.push_back(Notification { of, refused });
            if self.commands.is_empty() {
                return;
            }
        }
    }

    fn close(&mut self) {
        self.port.close();
        self.nodes.mailboxes.lock().remove(&self.rank);
    }
}
