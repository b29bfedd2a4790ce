//! Both engines by `shim.c`, which is loaded at run time.
//!
//! A packet of VELO names its sender by node and process, and has a tag of eight bits. So a rank's first packet to a peer is a greeting, with a tag of
//! its own, which says which rank it is; the tags of others tell their lengths, because VELO rounds those up.

use std::{array, collections::BTreeMap, ffi::c_int};

use rustc_hash::FxHashMap;

use super::{
    adapter::ExtollAdapter,
    engines::{CommandBytes, Engines, NotedCommand, Notification, PACKET},
    packets::VeloPackets,
};
use crate::comm::{
    kit::peers::Peers,
    rma::{
        adapter::RmaAccess,
        shim::{ByShim, Shim, shim},
    },
};

/// Where the shim is.
pub(super) const SHIM: Shim = Shim {
    network: "extoll",
    option: "GA_EXTOLL",
    command: "cc -shared -fPIC -O2 -o libga_extoll.so src/comm/extoll/shim.c -lrma2 -lvelo2",
};

/// What RMA registers: librma2 counts in these on every machine.
const PAGE: usize = 4096;

/// The tag of a packet that says which rank its sender is.
const GREETING: u8 = u8::MAX;

/// A pointer of the shim.
type OfShim = usize;

shim! {
    EnginesShim, ga_extoll_why {
        ga_extoll_open(at: *mut u64);
        ga_extoll_connect(at: u64, peer: *mut OfShim);
        ga_extoll_register(start: usize, len: u64, region: *mut OfShim, address: *mut u64);
        ga_extoll_unregister(region: OfShim);
        ga_extoll_command(is_get: c_int, peer: OfShim, here: u64, there: u64, len: u32);
        ga_extoll_notification(got: *mut [u64; 4]);
        ga_extoll_send(peer: OfShim, packet: *const u8, len: u32, tag: u8);
        ga_extoll_receive(packet: *mut [u8; PACKET], got: *mut [u64; 2]);
        ga_extoll_close();
    }
}

/// In the number of a range that shares pages, which the number of the one that they were registered for does not have.
const SHARES: u64 = 1;

/// Pages that are registered: where they end, what for, the ranges on them, whether the first of these is one, what the shim knows them by, and
/// their network address.
#[derive(Debug)]
struct RegisteredPages {
    end: usize,
    access: RmaAccess,
    ranges: usize,
    has_first: bool,
    region: OfShim,
    address: u64,
}

/// The engines of the process.
#[derive(Debug)]
pub(super) struct LoadedEngines {
    shim: EnginesShim,
    address: u64,
    /// The rank of this process, which greetings carry.
    rank: u64,
    /// What the shim knows peers by, and whether they were told.
    peers: Peers<(OfShim, bool)>,
    /// Ranks that were met, by where their RMA is, and those that have greeted, by the names that VELO gives them.
    ranks: FxHashMap<u64, usize>,
    /// By where they begin.
    pages: BTreeMap<usize, RegisteredPages>,
    /// Why VELO can receive no more.
    failure: Option<String>,
}

impl LoadedEngines {
    /// Opens both engines by the shim at a path. Once in a process.
    ///
    /// # Errors
    /// What is missing, or what the engines say.
    pub(super) fn open(path: &str) -> Result<Self, String> {
        let (shim, mut address) = (EnginesShim::load(&SHIM, path)?, 0);
        // SAFETY: a place for the number.
        unsafe { shim.ga_extoll_open(&raw mut address) }?;
        let (peers, ranks, pages) = (Peers::default(), FxHashMap::default(), BTreeMap::new());
        Ok(LoadedEngines { shim, address, rank: u64::MAX, peers, ranks, pages, failure: None })
    }

    /// Before anything is sent.
    pub(super) fn set_rank(&mut self, rank: usize) {
        self.rank = rank as u64;
    }

    /// # Safety
    /// As [`Engines::put`] or [`Engines::get`].
    unsafe fn command(&self, is_get: bool, peer: usize, CommandBytes { here, there, len }: CommandBytes) -> Result<(), String> {
        let &(peer, _) = self.peers.get(peer).ok_or("a rank that was not met")?;
        // SAFETY: the caller's promise.
        unsafe { self.shim.ga_extoll_command(is_get.into(), peer, here, there, len as u32) }.map(drop)
    }
}

impl Engines for LoadedEngines {
    fn address(&self) -> u64 {
        self.address
    }

    fn meet(&mut self, peer: usize, address: u64) -> Result<(), String> {
        let mut of_shim = 0;
        // SAFETY: a place for what comes back.
        unsafe { self.shim.ga_extoll_connect(address, &raw mut of_shim) }?;
        *self.peers.meet(peer) = (of_shim, false);
        self.ranks.insert(u64::from(address as u32), peer);
        Ok(())
    }

    /// EXTOLL registers whole pages, and none twice. A range inside of another one for the same use shares its pages; any other overlap is refused. When
    /// the outer range has gone, its pages may be others in the same place, so nobody shares them any more.
    unsafe fn register(&mut self, start: *mut u8, len: usize, access: RmaAccess) -> Result<(u64, u64), String> {
        let (start, end) = (start.addr(), (start.addr() + len).next_multiple_of(PAGE));
        let first = start / PAGE * PAGE;
        let overlaps = self.pages.range_mut(..end).next_back().filter(|(_, pages)| pages.end > first);
        let Some((&begin, pages)) = overlaps else {
            let (mut region, mut address) = (0, 0);
            // SAFETY: the caller's promise; a page is mapped where a byte of it is.
            unsafe { self.shim.ga_extoll_register(first, (end - first) as u64, &raw mut region, &raw mut address) }?;
            self.pages.insert(first, RegisteredPages { end, access, ranges: 1, has_first: true, region, address });
            return Ok((first as u64, address + (start - first) as u64));
        };
        if first < begin || end > pages.end || access != pages.access || !pages.has_first {
            return Err(format!(
                "{len} bytes at {start:#x} are on pages that EXTOLL knows for something else, and it takes none twice"
            ));
        }
        pages.ranges += 1;
        Ok((begin as u64 | SHARES, pages.address + (start - begin) as u64))
    }

    fn unregister(&mut self, region: u64) {
        let begin = (region & !SHARES) as usize;
        let Some(pages) = self.pages.get_mut(&begin) else { return };
        pages.ranges -= 1;
        pages.has_first &= region & SHARES != 0;
        if pages.ranges == 0 {
            // SAFETY: a region of the shim, which nobody names any more. Nothing can be done if it is refused.
            let _ = unsafe { self.shim.ga_extoll_unregister(pages.region) };
            self.pages.remove(&begin);
        }
    }

    unsafe fn put(&mut self, to: usize, bytes: CommandBytes) -> Result<(), String> {
        // SAFETY: the caller's promise.
        unsafe { self.command(false, to, bytes) }
    }

    unsafe fn get(&mut self, from: usize, bytes: CommandBytes) -> Result<(), String> {
        // SAFETY: the caller's promise.
        unsafe { self.command(true, from, bytes) }
    }

    fn notification(&mut self) -> Result<Option<Notification>, String> {
        let mut got = [0; 4];
        self.failure.take().map_or(Ok(()), Err)?;
        // SAFETY: a place for the numbers.
        if !unsafe { self.shim.ga_extoll_notification(&raw mut got) }? {
            return Ok(None);
        }
        let [is_get, name, end, failed] = got;
        let of = match self.ranks.get(&name) {
            _ if is_get != 0 => NotedCommand::Get { end },
            Some(&to) => NotedCommand::Put { to },
            None => return Err(format!("a notification of a put to {name:#x}, which was not met")),
        };
        let refused = (failed != 0).then(|| format!("RMA reports the error {failed:#x}"));
        Ok(Some(Notification { of, refused }))
    }

    fn send(&mut self, to: usize, packet: &[u8]) -> Result<bool, String> {
        let (shim, rank) = (self.shim, self.rank.to_le_bytes());
        let (peer, is_told) = self.peers.get_mut(to).ok_or("a rank that was not met")?;
        // SAFETY: bytes that are copied during the call.
        let send = |packet: &[u8], tag| unsafe { shim.ga_extoll_send(*peer, packet.as_ptr(), packet.len() as u32, tag) };
        *is_told = *is_told || send(&rank, GREETING)?;
        Ok(*is_told && send(packet, packet.len() as u8)?)
    }

    fn receive(&mut self, packet: &mut [u8; PACKET]) -> Option<(usize, usize)> {
        loop {
            let mut got = [0; 2];
            // SAFETY: places for a packet, and for the numbers.
            let is_there = unsafe { self.shim.ga_extoll_receive(packet, &raw mut got) };
            let [name, tag] = got;
            match is_there {
                Ok(true) if tag == u64::from(GREETING) => {
                    self.ranks.insert(name, u64::from_le_bytes(array::from_fn(|at| packet[at])) as usize);
                }
                // A stranger is no rank.
                Ok(true) => return Some((*self.ranks.get(&name).unwrap_or(&usize::MAX), PACKET.min(tag as usize))),
                nothing => {
                    self.failure = nothing.err().or(self.failure.take());
                    return None;
                }
            }
        }
    }

    fn close(&mut self) {
        // SAFETY: nothing is called behind it.
        let _ = unsafe { self.shim.ga_extoll_close() };
    }
}

impl ByShim for ExtollAdapter<LoadedEngines> {
    type Road = VeloPackets;

    const SHIM: Shim = SHIM;

    fn open(path: &str) -> Result<(Self, VeloPackets), String> {
        Ok((ExtollAdapter::new(LoadedEngines::open(path)?)?, VeloPackets::default()))
    }

    fn join(&mut self, packets: &mut VeloPackets, rank: usize, ranks: usize) -> Result<(), String> {
        self.engines().set_rank(rank);
        *packets = VeloPackets::new(ranks);
        Ok(())
    }
}
