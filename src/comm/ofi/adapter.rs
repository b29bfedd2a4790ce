//! A port of libfabric as an adapter.

use std::{ffi::c_void, ptr::NonNull, sync::Arc};

use super::{
    ffi::*,
    library::Offer,
    port::{ADDRESS, LocalBytes, OfiPort, Polled, PortRegion, RemoteBytes},
    sleeper::OfiSleeper,
};
use crate::comm::{
    am::wire::{Broken, Key, Result, Sleeper},
    kit::{peers::Peers, slab::Slab},
    rma::adapter::{RmaAccess, RmaAdapter, RmaDone, RmaLimits, RmaRegion, RmaWork},
    start::devices::directory::Words,
};

/// Operations that may be under way, and those of them that are not for marks.
const OPERATIONS: usize = 512;
const BUT_MARKS: usize = 256;

/// Bytes up to which the provider must order what it says that it orders.
const ORDERED: usize = 1 << 20;

/// Bytes of a peer's address, behind which lies where its word for marks is.
const BEFORE_MARK: usize = ADDRESS - 16;

/// Bytes of the word for marks.
const WORD: usize = 8;

/// How this rank learns that its writes are visible to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Visible {
    /// A read that is ordered behind them has ended.
    OrderedRead,
    /// A write behind a fence, which ends when all of it is delivered.
    FencedWrite,
    /// Each of them ends when it is delivered.
    EachWrite,
}

/// Providers of sockets and verbs, where a read of any word comes behind all writes before it. The interface promises that for the same bytes only.
const ORDERED_READS: [&str; 5] = ["tcp;ofi_rxm", "tcp", "net", "sockets", "verbs;ofi_rxm"];

/// Providers that say that a write is delivered when it is. That of verbs;ofi_rxm does not (libfabric #5601).
const HONEST: [&str; 5] = ["shm", "efa", "psm3", "psm2", "opx"];

impl Visible {
    /// The cheapest way that an offer of a provider has.
    ///
    /// # Errors
    /// It has none.
    pub(super) fn of(provider: &str, offer: &Offer) -> std::result::Result<Self, String> {
        if offer.keeps(FI_ORDER_RAW) && offer.read_behind_write > ORDERED && ORDERED_READS.contains(&provider) {
            Ok(Visible::OrderedRead)
        } else if offer.caps & FI_FENCE != 0 {
            Ok(Visible::FencedWrite)
        } else if HONEST.contains(&provider) {
            Ok(Visible::EachWrite)
        } else {
            Err("nothing tells when its writes are visible".to_owned())
        }
    }
}

/// What libfabric keeps of an operation, as large as any provider wants it, and whose it is.
#[repr(C)]
struct Context {
    room: [u64; 8],
    id: u64,
    peer: usize,
}

/// What the library says of an operation: it has begun, or there is no room, or why it cannot be.
type Taken = std::result::Result<bool, String>;

/// A peer without a number: the operation is of any.
const NOBODY: usize = usize::MAX;

/// Contexts of operations. They lie where they are until the port is closed.
#[derive(Debug)]
struct Contexts {
    start: NonNull<[Context]>,
    free: Vec<NonNull<Context>>,
    /// The port is closed: no operation begins.
    closed: bool,
}

// SAFETY: the memory belongs to the value.
unsafe impl Send for Contexts {}

impl Contexts {
    fn new() -> Self {
        let all: Box<[Context]> = (0..OPERATIONS).map(|_| Context { room: [0; 8], id: 0, peer: NOBODY }).collect();
        let start = NonNull::from(Box::leak(all));
        let first = start.cast::<Context>();
        // SAFETY: inside the allocation.
        let free = (0..OPERATIONS).map(|at| unsafe { first.add(at) }).collect();
        Contexts { start, free, closed: false }
    }

    fn close(&mut self) {
        self.closed = true;
        self.free.clear();
    }

    /// A context for an operation, which is used up if `begin` says that it was taken.
    fn lend(&mut self, id: u64, peer: usize, begin: impl FnOnce(*mut c_void) -> Taken) -> Taken {
        let Some(&context) = self.free.last() else { return Ok(false) };
        // SAFETY: a free one, which nobody else refers to.
        unsafe {
            (*context.as_ptr()).id = id;
            (*context.as_ptr()).peer = peer;
        }
        let is_taken = begin(context.as_ptr().cast())?;
        if is_taken {
            self.free.pop();
        }
        Ok(is_taken)
    }

    /// Takes a context back from the library. Returns whose operation it was.
    fn end(&mut self, context: *mut c_void) -> Option<(u64, usize)> {
        let context = NonNull::new(context.cast::<Context>())?;
        let place = context.as_ptr().addr().wrapping_sub(self.start.cast::<Context>().as_ptr().addr());
        if place >= OPERATIONS * size_of::<Context>() || !place.is_multiple_of(size_of::<Context>()) {
            return None;
        }
        self.free.push(context);
        // SAFETY: lent to an operation that has ended.
        unsafe { Some(((*context.as_ptr()).id, (*context.as_ptr()).peer)) }
    }
}

impl Drop for Contexts {
    fn drop(&mut self) {
        // SAFETY: made from a box, and the port that used it was closed.
        drop(unsafe { Box::from_raw(self.start.as_ptr()) });
    }
}

/// A peer that was met.
#[derive(Debug, Default)]
struct OfiPeer {
    number: u64,
    /// The place of its word for marks.
    mark: (u64, u64),
}

/// A port of libfabric.
#[derive(Debug)]
pub(super) struct OfiAdapter {
    /// Before the memory that its operations use.
    port: OfiPort,
    sleeper: Option<Arc<OfiSleeper>>,
    limits: RmaLimits,
    visible: Visible,
    contexts: Contexts,
    /// Operations that were refused: the peer may be gone.
    refused: Vec<RmaDone>,
    peers: Peers<OfiPeer>,
    regions: Slab<PortRegion>,
    /// The next key to ask for, where ranks choose their keys.
    next_key: u64,
    /// What marks of this rank use, and what those of peers read or write.
    words: NonNull<[u64; 2]>,
    words_region: u64,
    address: Words,
}

// SAFETY: the words belong to the value.
unsafe impl Send for OfiAdapter {}

impl OfiAdapter {
    /// The adapter of a port.
    ///
    /// # Errors
    /// What the library says.
    pub(super) fn new(port: OfiPort) -> std::result::Result<Self, String> {
        let offer = *port.offer();
        let visible = Visible::of(&port.provider(), &offer)?;
        let marks = visible != Visible::EachWrite;
        let (mut name, len) = port.address()?;
        if marks && len > BEFORE_MARK {
            return Err(format!("an address of {len} bytes, and {BEFORE_MARK} are the most"));
        }
        let words = NonNull::from(Box::leak(Box::new([0_u64; 2])));
        let start = words.as_ptr().cast::<u8>();
        // SAFETY: freed behind the port; if it is refused, a box that nobody else knows.
        let words_region = unsafe {
            let registered = port.register(start, size_of::<[u64; 2]>(), true, 0);
            if registered.is_err() {
                drop(Box::from_raw(words.as_ptr()));
            }
            registered?
        };
        if marks {
            let (address, key) = port.named(words_region, start);
            name[BEFORE_MARK..][..WORD].copy_from_slice(&address.to_le_bytes());
            name[BEFORE_MARK + WORD..].copy_from_slice(&key.to_le_bytes());
        }
        let mut regions = Slab::default();
        let words_region = regions.add(words_region);
        let limits = RmaLimits {
            // What is injected is never known to be delivered.
            inline: if marks { offer.inject } else { 0 },
            longest: offer.longest,
            unit: 1,
            local_regions: offer.registers(FI_MR_LOCAL),
            marks,
            put_put: offer.keeps(FI_ORDER_WAW) && offer.write_behind_write > ORDERED,
            put_get: offer.keeps(FI_ORDER_RAW) && offer.read_behind_write > ORDERED,
            frame_behind_write: offer.keeps(FI_ORDER_SAW),
            atomics: false,
        };
        let sleeper = port.wait().map(|(descriptor, queue)| Arc::new(OfiSleeper::new(descriptor, queue)));
        Ok(OfiAdapter {
            port,
            sleeper,
            limits,
            visible,
            contexts: Contexts::new(),
            refused: Vec::new(),
            peers: Peers::default(),
            regions,
            next_key: 1,
            words,
            words_region,
            address: bytemuck::cast::<[u8; ADDRESS], Words>(name).map(u64::from_le),
        })
    }

    /// The most bytes of a message whose end is not reported.
    pub(super) fn inject(&self) -> usize {
        self.port.offer().inject
    }

    fn local(&self, start: *mut u8, len: usize, region: Option<u64>) -> LocalBytes {
        LocalBytes { start, len, region: region.and_then(|id| self.regions.get(id).copied()) }
    }

    fn remote(&self, peer: usize, address: u64, key: Key) -> RemoteBytes {
        RemoteBytes { peer: self.peers.get(peer).map_or(FI_ADDR_UNSPEC, |peer| peer.number), address, key: key.0[0] }
    }

    /// An operation that is refused counts as one that has begun, and fails: supervision knows more of the peer.
    fn begun(&mut self, peer: usize, id: Option<u64>, taken: Taken) -> bool {
        taken.unwrap_or_else(|why| {
            self.refused.push(RmaDone::Fails { id, peer: Some(peer), why });
            true
        })
    }

    /// Begins a message. The end of an inline one is reported only if it fails. False if the adapter is full.
    ///
    /// # Safety
    /// As [`OfiPort::send`].
    pub(super) unsafe fn send(&mut self, to: usize, (start, len): (*mut u8, usize), region: Option<u64>, id: u64) -> bool {
        let (from, number) = (self.local(start, len, region), self.remote(to, 0, Key::from(0)).peer);
        let port = &self.port;
        // SAFETY: the caller's promise.
        let begin = |context| unsafe { port.send(from, number, context) };
        let taken = match len > self.inject() {
            false if self.contexts.closed => Ok(false),
            false => begin(None),
            true => self.contexts.lend(id, to, |context| begin(Some(context))),
        };
        self.begun(to, Some(id), taken)
    }

    /// Begins to receive a message of anybody.
    ///
    /// # Safety
    /// As [`OfiPort::receive`].
    ///
    /// # Errors
    /// [`Broken`].
    pub(super) unsafe fn receive(&mut self, start: *mut u8, len: usize, region: Option<u64>, id: u64) -> Result<bool> {
        let (to, port) = (self.local(start, len, region), &self.port);
        // SAFETY: the caller's promise.
        self.contexts.lend(id, NOBODY, |context| unsafe { port.receive(to, context) }).map_err(Broken)
    }
}

impl RmaAdapter for OfiAdapter {
    fn limits(&self) -> &RmaLimits {
        &self.limits
    }

    fn address(&self) -> Words {
        self.address
    }

    fn meet(&mut self, peer: usize, at: &Words) -> Result<()> {
        if self.contexts.closed {
            return Ok(());
        }
        let mut name: [u8; ADDRESS] = bytemuck::cast(at.map(u64::to_le));
        let mut mark = (0, 0);
        if self.limits.marks {
            mark = (at[BEFORE_MARK / WORD], at[BEFORE_MARK / WORD + 1]);
            name[BEFORE_MARK..].fill(0);
        }
        let number = self.port.enter(&name).map_err(|why| Broken(format!("rank {peer} cannot be reached: {why}")))?;
        *self.peers.meet(peer) = OfiPeer { number, mark };
        Ok(())
    }

    unsafe fn register(&mut self, start: *mut u8, len: usize, access: RmaAccess) -> std::result::Result<RmaRegion, String> {
        if self.contexts.closed {
            return Err("the port is closed".to_owned());
        }
        self.next_key += 1;
        // SAFETY: the caller's promise.
        let region = unsafe { self.port.register(start, len, access == RmaAccess::Remote, self.next_key) }?;
        let (address, key) = self.port.named(region, start);
        Ok(RmaRegion { address, key: Key([key, 0]), id: self.regions.add(region) })
    }

    fn deregister(&mut self, region: u64) -> Result<()> {
        let Some(region) = self.regions.remove(region) else { return Ok(()) };
        self.port.deregister(region).map_err(Broken)
    }

    unsafe fn write(&mut self, to: usize, work: &RmaWork) -> Result<bool> {
        let from = self.local(work.here, work.len, work.local);
        let (there, port) = (self.remote(to, work.there, work.key), &self.port);
        if work.inline {
            if self.contexts.closed {
                return Ok(false);
            }
            // SAFETY: the caller's promise.
            let taken = unsafe { port.inject_write(from, there) };
            return Ok(self.begun(to, None, taken));
        }
        let delivered = if self.limits.marks { 0 } else { FI_DELIVERY_COMPLETE };
        // SAFETY: the caller's promise.
        let taken =
            self.contexts.lend(work.id, to, |context| unsafe { port.write(from, there, FI_COMPLETION | delivered, context) });
        Ok(self.begun(to, Some(work.id), taken))
    }

    unsafe fn read(&mut self, from: usize, work: &RmaWork) -> Result<bool> {
        self.sleeper.iter().for_each(|sleeper| sleeper.transfers());
        let here = self.local(work.here, work.len, work.local);
        let (there, port) = (self.remote(from, work.there, work.key), &self.port);
        // SAFETY: the caller's promise.
        let taken = self.contexts.lend(work.id, from, |context| unsafe { port.read(here, there, context) });
        Ok(self.begun(from, Some(work.id), taken))
    }

    fn mark(&mut self, peer: usize, id: u64) -> Result<bool> {
        if self.contexts.free.len() <= BUT_MARKS {
            return Ok(false);
        }
        self.sleeper.iter().for_each(|sleeper| sleeper.transfers());
        let (address, key) = self.peers.get(peer).map(|peer| peer.mark).unwrap_or_default();
        let there = self.remote(peer, address, Key([key, 0]));
        // The first word is for peers, and their marks.
        let here = self.words.as_ptr().cast::<u8>().wrapping_add(WORD);
        let here = self.local(here, WORD, Some(self.words_region));
        let (port, by_read) = (&self.port, self.visible == Visible::OrderedRead);
        let flags = FI_COMPLETION | FI_FENCE | FI_DELIVERY_COMPLETE;
        // SAFETY: the words live as long as the port, and nobody looks at them.
        let begin =
            |context| unsafe { if by_read { port.read(here, there, context) } else { port.write(here, there, flags, context) } };
        let taken = self.contexts.lend(id, peer, begin);
        Ok(self.begun(peer, Some(id), taken))
    }

    fn poll(&mut self, done: &mut Vec<RmaDone>) -> Result<()> {
        if self.contexts.closed {
            return Ok(());
        }
        done.append(&mut self.refused);
        let contexts = &mut self.contexts;
        let polled = self.port.poll(|context, len| done.extend(contexts.end(context).map(|(id, _)| RmaDone::Ends { id, len })));
        if let Polled::Failed { context, why } = polled.map_err(Broken)? {
            let whose = self.contexts.end(context);
            let peer = whose.map(|(_, peer)| peer).filter(|&peer| peer != NOBODY);
            done.push(RmaDone::Fails { id: whose.map(|(id, _)| id), peer, why });
        }
        Ok(())
    }

    fn sleeper(&self) -> Option<Arc<dyn Sleeper>> {
        Some(self.sleeper.clone()?)
    }

    fn close(&mut self) {
        self.sleeper.iter().for_each(|sleeper| sleeper.forget());
        self.contexts.close();
        self.port.close(self.regions.drain());
    }
}

impl Drop for OfiAdapter {
    fn drop(&mut self) {
        self.close();
        // SAFETY: made from a box, and the port was closed.
        drop(unsafe { Box::from_raw(self.words.as_ptr()) });
    }
}
