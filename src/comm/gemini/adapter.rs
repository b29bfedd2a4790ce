//! DMAPP as an adapter.

use super::dmapp::{Dmapp, DmappRefusal, DmappSegment, Element, Granted, PARTS, RemoteElements, SyncId, parts};
use crate::comm::{
    Atomic,
    am::wire::{Key, Result},
    kit::{peers::Peers, slab::Slab, slots::Slots},
    rma::{
        adapter::{RmaAccess, RmaAdapter, RmaDone, RmaLimits, RmaRegion, RmaWork},
        road::OF_ROAD,
    },
    start::devices::directory::Words,
};

/// The most works under way at a time: a constant, and a step each time that the number of ranks doubles (ARMCI-Gemini §III-B1).
const WINDOW: usize = 32;
const WINDOW_STEP: usize = 16;

/// Bytes of the longest work.
const LONGEST: usize = 1 << 24;

/// Works that frames may have under way beside those.
const FOR_FRAMES: usize = 16;

/// The least works of DMAPP under way: all parts of those of frames, and of one more.
pub(super) const LEAST_OUTSTANDING: usize = PARTS * (FOR_FRAMES + 1);

/// A place in the memory of a peer.
#[derive(Clone, Copy, Debug)]
pub(super) struct FarPlace {
    pub(super) address: u64,
    pub(super) segment: DmappSegment,
}

/// A work, and what it waits for.
#[derive(Debug)]
struct GeminiWork {
    id: u64,
    peer: usize,
    /// Its number among the writes to the peer, if it is one.
    write: Option<u64>,
    calls: [Option<SyncId>; PARTS],
    len: usize,
    /// Some part of it has failed.
    failed: Option<String>,
}

/// A peer that was met.
#[derive(Debug, Default)]
struct GeminiPeer {
    address: Words,
    writes: u64,
    /// The id of a mark whose read has not begun, and the number of writes that it stands behind.
    mark: Option<(u64, u64)>,
}

/// DMAPP, and what was begun by it.
#[derive(Debug)]
pub(super) struct GeminiAdapter<D: Dmapp> {
    dmapp: D,
    limits: RmaLimits,
    window: usize,
    address: Words,
    works: Vec<GeminiWork>,
    /// Peers whose marks wait for writes.
    marking: Vec<usize>,
    peers: Peers<GeminiPeer>,
    segments: Slab<DmappSegment>,
    /// What the reads of marks bring.
    word: Slots,
    is_closed: bool,
}

impl<D: Dmapp> GeminiAdapter<D> {
    /// The adapter of a rank in a job of some ranks.
    pub(super) fn new(dmapp: D, ranks: usize) -> Self {
        let Granted { outstanding, strict } = dmapp.granted();
        let window = WINDOW + WINDOW_STEP * ranks.max(1).ilog2() as usize;
        let limits = RmaLimits {
            inline: 0,
            longest: LONGEST,
            unit: Element::Word16.bytes(),
            local_regions: false,
            marks: !strict,
            put_put: false,
            put_get: false,
            frame_behind_write: false,
            atomics: true,
        };
        GeminiAdapter {
            dmapp,
            limits,
            window: window.min((outstanding / PARTS).saturating_sub(FOR_FRAMES)),
            address: Words::default(),
            works: Vec::new(),
            marking: Vec::new(),
            peers: Peers::default(),
            segments: Slab::default(),
            word: Slots::new(1, size_of::<u64>()),
            is_closed: false,
        }
    }

    /// DMAPP, for what only one kind of it knows.
    pub(super) fn dmapp(&self) -> &D {
        &self.dmapp
    }

    /// The address for peers, of which the first words name memory that a peer may read.
    pub(super) fn set_address(&mut self, address: Words) {
        self.address = address;
    }

    /// The address of a peer that was met.
    pub(super) fn address_of(&self, peer: usize) -> Words {
        self.peers.get(peer).map(|peer| peer.address).unwrap_or_default()
    }

    /// The place that the first words of an address name.
    pub(super) fn place_of(&self, peer: usize) -> FarPlace {
        let [address, a, b, ..] = self.address_of(peer);
        FarPlace { address, segment: DmappSegment([a, b]) }
    }

    /// Begins a work part by part. False if there is no room. What is refused fails when it is polled.
    #[expect(clippy::too_many_arguments, reason = "one loop for all kinds of works")]
    fn begin(
        &mut self,
        peer: usize,
        there: FarPlace,
        here: *mut u8,
        len: usize,
        id: u64,
        writes: bool,
        mut call: impl FnMut(&mut D, RemoteElements, usize) -> std::result::Result<SyncId, DmappRefusal>,
    ) -> bool {
        let window = if id & OF_ROAD == 0 { self.window } else { self.window + FOR_FRAMES };
        if self.is_closed || self.works.len() >= window {
            return false;
        }
        let mut work = GeminiWork { id, peer, write: None, calls: [None; PARTS], len, failed: None };
        for (k, (at, count, element)) in parts(there.address, here, len).enumerate() {
            let part = RemoteElements { pe: peer, segment: there.segment, address: there.address + at as u64, count, element };
            match call(&mut self.dmapp, part, at) {
                Ok(begun) => work.calls[k] = Some(begun),
                Err(DmappRefusal::NoSpace) if k == 0 => return false,
                // The window leaves room for all parts of its works.
                Err(DmappRefusal::NoSpace) => work.failed = Some("no space for a part of it".to_owned()),
                Err(DmappRefusal::Why(why)) => work.failed = Some(why),
            }
        }
        if writes {
            let peer = self.peers.meet(peer);
            work.write = Some(peer.writes);
            peer.writes += 1;
        }
        self.works.push(work);
        true
    }

    /// Begins the reads of marks whose writes have ended.
    fn begin_marks(&mut self) {
        for at in (0..self.marking.len()).rev() {
            let peer = self.marking[at];
            let Some((id, before)) = self.peers.meet(peer).mark else { continue };
            if self.works.iter().any(|work| work.peer == peer && work.write.is_some_and(|number| number < before)) {
                continue;
            }
            let (place, here) = (self.place_of(peer), self.word.at(0, size_of::<u64>()));
            // SAFETY: a word of this value, which nobody looks at.
            let get = |dmapp: &mut D, part, _| unsafe { dmapp.get(part, here) };
            if self.begin(peer, place, here, size_of::<u64>(), id, false, get) {
                self.peers.meet(peer).mark = None;
                self.marking.swap_remove(at);
            }
        }
    }
}

impl GeminiWork {
    /// Asks for the calls that have not ended. Returns true if all have.
    fn has_ended(&mut self, dmapp: &mut impl Dmapp) -> bool {
        for call in &mut self.calls {
            match call.map(|call| dmapp.test(call)) {
                None | Some(Ok(false)) => {}
                Some(Ok(true)) => *call = None,
                Some(Err(why)) => (*call, self.failed) = (None, Some(why)),
            }
        }
        self.calls == [None; PARTS]
    }

    fn outcome(self) -> RmaDone {
        let GeminiWork { id, peer, len, failed, .. } = self;
        match failed {
            None => RmaDone::Ends { id, len },
            Some(why) => RmaDone::Fails { id: Some(id), peer: Some(peer), why },
        }
    }
}

impl<D: Dmapp> RmaAdapter for GeminiAdapter<D> {
    fn limits(&self) -> &RmaLimits {
        &self.limits
    }

    fn address(&self) -> Words {
        self.address
    }

    fn meet(&mut self, peer: usize, at: &Words) -> Result<()> {
        self.peers.meet(peer).address = *at;
        Ok(())
    }

    unsafe fn register(&mut self, start: *mut u8, len: usize, _: RmaAccess) -> std::result::Result<RmaRegion, String> {
        if self.is_closed {
            return Err("the port is closed".to_owned());
        }
        // SAFETY: the caller's promise.
        let segment = unsafe { self.dmapp.register(start, len) }?;
        Ok(RmaRegion { address: start.expose_provenance() as u64, key: Key(segment.0), id: self.segments.add(segment) })
    }

    fn deregister(&mut self, region: u64) -> Result<()> {
        if let Some(segment) = self.segments.remove(region).filter(|_| !self.is_closed) {
            self.dmapp.unregister(segment);
        }
        Ok(())
    }

    unsafe fn write(&mut self, to: usize, work: &RmaWork) -> Result<bool> {
        let RmaWork { here, len, there, key, id, .. } = *work;
        let place = FarPlace { address: there, segment: DmappSegment(key.0) };
        // SAFETY: the caller's promise.
        let put = |dmapp: &mut D, part, at| unsafe { dmapp.put(part, here.wrapping_add(at)) };
        Ok(self.begin(to, place, here, len, id, true, put))
    }

    unsafe fn read(&mut self, from: usize, work: &RmaWork) -> Result<bool> {
        let RmaWork { here, len, there, key, id, .. } = *work;
        let place = FarPlace { address: there, segment: DmappSegment(key.0) };
        // SAFETY: the caller's promise.
        let get = |dmapp: &mut D, part, at| unsafe { dmapp.get(part, here.wrapping_add(at)) };
        Ok(self.begin(from, place, here, len, id, false, get))
    }

    unsafe fn change(&mut self, peer: usize, work: &RmaWork, atomic: Atomic) -> Result<bool> {
        let RmaWork { here, len, there, key, id, .. } = *work;
        let place = FarPlace { address: there, segment: DmappSegment(key.0) };
        // SAFETY: the caller's promise.
        let change = |dmapp: &mut D, part, _| unsafe { dmapp.change(part, atomic, here) };
        Ok(self.begin(peer, place, here, len, id, true, change))
    }

    fn mark(&mut self, peer: usize, id: u64) -> Result<bool> {
        if self.is_closed {
            return Ok(false);
        }
        let state = self.peers.meet(peer);
        state.mark = Some((id, state.writes));
        self.marking.push(peer);
        self.begin_marks();
        Ok(true)
    }

    fn poll(&mut self, done: &mut Vec<RmaDone>) -> Result<()> {
        if self.is_closed {
            return Ok(());
        }
        let dmapp = &mut self.dmapp;
        dmapp.go_on();
        done.extend(self.works.extract_if(.., |work| work.has_ended(dmapp)).map(GeminiWork::outcome));
        self.begin_marks();
        Ok(())
    }

    fn close(&mut self) {
        if !std::mem::replace(&mut self.is_closed, true) {
            self.works.clear();
            self.dmapp.finalize();
        }
    }
}

impl<D: Dmapp> Drop for GeminiAdapter<D> {
    fn drop(&mut self) {
        self.close();
    }
}
