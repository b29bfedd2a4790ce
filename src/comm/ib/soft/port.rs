//! One opened device: its tables and queues.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use super::{
    keys::{By, Keys},
    pair::{PairId, PendingCompletion, QueuedWork, SoftPair},
};
use crate::{
    comm::{
        WaitWord,
        ib::device::{
            Access, Address, Completion, DeviceError, DeviceEvent, DeviceLimits, Done, Pair, Queue, ROUTE_HEADER, Result, State,
            Wakes, Work, WorkFailure, WorkPiece,
        },
        kit::{mutex::Mutex, slab::Slab},
        soft::fabric::Pinned,
    },
    memory::kernels,
};

/// The number of the datagram queue pair, the first. Every port counts from here: a number alone names nobody.
pub(super) const DATAGRAM: u32 = 16;

/// The tables and queues of an opened device.
#[derive(Debug, Default)]
pub(super) struct SoftPort {
    id: u64,
    /// In virtual time: its rank, and true if something was reported since that was rung.
    pub(super) rank: Option<u32>,
    pub(super) fresh: bool,
    /// Its memory was written since then.
    pub(super) touched: bool,
    pub(super) limits: DeviceLimits,
    pub(super) keys: Keys,
    pairs: Vec<Option<SoftPair>>,
    /// Receives of all connected pairs, and of datagrams.
    pub(super) shared: VecDeque<Receive>,
    pub(super) datagrams: VecDeque<Receive>,
    pub(super) handles: Slab<Address>,
    reports: VecDeque<PendingCompletion>,
    events: VecDeque<DeviceEvent>,
    armed: Option<Wakes>,
    /// A completion has come since the queue was armed, and nobody has waited for it yet.
    fired: bool,
    /// The reason why nothing works any more, and true if an event has said so.
    fatal: Option<(&'static str, bool)>,
    pub(super) signs: Arc<Signs>,
    /// Held during an atomic on memory of this port.
    pub(super) adapter: Arc<Mutex<()>>,
}

/// What can be seen of a port without a lock.
#[derive(Debug, Default)]
pub(super) struct Signs {
    /// Changes when a wait may end.
    pub(super) bell: WaitWord,
    /// Reports to poll, or the device has failed.
    pub(super) reports: AtomicUsize,
}

/// A receive that was posted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Receive {
    pub(super) id: u64,
    pub(super) piece: WorkPiece,
}

impl Receive {
    /// Its memory, if that may be written.
    pub(super) fn pin(&self, keys: &Keys) -> Option<Pinned> {
        pin(keys, self.piece, Access::LOCAL_WRITE)
    }
}

/// The memory of a local piece, if its key covers it and it may be used so.
pub(super) fn pin(keys: &Keys, piece: WorkPiece, needs: Access) -> Option<Pinned> {
    keys.pin(By::Local, piece.key, piece.start.addr() as u64, piece.len, needs)
}

/// Returns an error if `asked` is more than `limit`.
pub(super) fn at_most(what: &'static str, asked: usize, limit: usize) -> Result<()> {
    if asked <= limit { Ok(()) } else { Err(DeviceError::Limit { what, asked: asked as u64, limit: limit as u64 }) }
}

/// Where a GID has the number of its port, behind the prefix of addresses of one link.
const NUMBER_IN_GID: usize = 8;

pub(super) fn gid(port: u64) -> [u8; 16] {
    let mut gid = [0; 16];
    gid[..2].copy_from_slice(&[0xFE, 0x80]);
    gid[NUMBER_IN_GID..].copy_from_slice(&port.to_be_bytes());
    gid
}

/// The port that has a GID, if one of a fabric has.
pub(super) fn port_of(gid: &[u8; 16]) -> u64 {
    u64::from_be_bytes(std::array::from_fn(|k| gid[NUMBER_IN_GID + k]))
}

/// The Q_Key of a port: each has another.
pub(super) fn datagram_key(port: u64) -> u32 {
    0x1000_u32.wrapping_add(port as u32)
}

/// What a receiver finds in front of a datagram, as far as it says anything.
fn route_header(from: u64, to: u64) -> [u8; ROUTE_HEADER] {
    let mut header = [0; ROUTE_HEADER];
    header[8..24].copy_from_slice(&gid(from));
    header[24..].copy_from_slice(&gid(to));
    header
}

/// Puts a datagram into the next receive of a port, if there is one and it is long enough. The ports are those of the GIDs.
///
/// # Safety
/// `bytes` is readable for `len` bytes, and no receive's memory.
pub(super) unsafe fn deliver(target: &mut SoftPort, from: u64, to: u64, bytes: *const u8, len: usize) {
    if target.datagrams.front().is_none_or(|receive| receive.piece.len < ROUTE_HEADER + len) {
        return;
    }
    let Some(receive) = target.datagrams.pop_front() else { return };
    let Some(memory) = receive.pin(&target.keys) else {
        return target.received(receive.id, DATAGRAM, Err(WorkFailure::LocalProtection));
    };
    // SAFETY: the receive's memory is registered, and long enough for both.
    unsafe { kernels::copy(memory.start(), route_header(from, to).as_ptr(), ROUTE_HEADER) };
    // SAFETY: as above; the caller's promise.
    unsafe { kernels::copy(memory.start().wrapping_add(ROUTE_HEADER), bytes, len) };
    let done = Done::Received { len: ROUTE_HEADER + len, immediate: None, from: Some(DATAGRAM) };
    target.received(receive.id, DATAGRAM, Ok(done));
}

impl SoftPort {
    pub(super) fn new(id: u64, limits: DeviceLimits, datagram_sends: usize, pinned: usize) -> Self {
        let mut port = SoftPort { id, limits, keys: Keys::new(pinned), ..SoftPort::default() };
        port.add(datagram_sends, 0);
        port
    }

    /// An error if the device has failed and an event has said so.
    pub(super) fn check(&self) -> Result<()> {
        self.fatal.filter(|(_, is_known)| *is_known).map_or(Ok(()), |(why, _)| Err(DeviceError::Fatal { why }))
    }

    /// Adds a pair under the lowest free number.
    fn add(&mut self, depth: usize, life: u64) -> Pair {
        let at = self.pairs.iter().position(Option::is_none).unwrap_or(self.pairs.len());
        let number = DATAGRAM + at as u32;
        let id = life << 24 | u64::from(number);
        self.pairs.resize_with(self.pairs.len().max(at + 1), || None);
        let mut pair = SoftPair::new(id, PairId { port: self.id, number }, depth, life);
        if self.rank.is_some() {
            pair.travel();
        }
        self.pairs[at] = Some(pair);
        Pair { id, number }
    }

    pub(super) fn create(&mut self, depth: usize, life: u64) -> Result<Pair> {
        at_most("works of a send queue", depth, self.limits.send_depth)?;
        at_most("queue pairs", self.pairs.iter().flatten().count(), self.limits.pairs)?;
        Ok(self.add(depth, life))
    }

    /// The pair that has a number now.
    pub(super) fn numbered(&mut self, number: u32) -> Option<&mut SoftPair> {
        self.pairs.get_mut(number.checked_sub(DATAGRAM)? as usize)?.as_mut()
    }

    /// That of datagrams stays as it was made, and has slots only.
    pub(super) fn datagram_pair(&mut self) -> Result<&mut SoftPair> {
        self.numbered(DATAGRAM).ok_or(DeviceError::Unknown { what: "queue pair", id: DATAGRAM.into() })
    }

    pub(super) fn pair(&mut self, pair: Pair) -> Result<&mut SoftPair> {
        let connected = self.numbered(pair.number).filter(|connected| connected.id == pair.id);
        connected.ok_or(DeviceError::Unknown { what: "queue pair", id: pair.id })
    }

    pub(super) fn remove(&mut self, pair: Pair) -> Result<()> {
        self.pair(pair)?;
        self.pairs[(pair.number - DATAGRAM) as usize] = None;
        Ok(())
    }

    /// Returns true if memory is touched for works of the device or for those of its peers.
    pub(super) fn is_in_use(&self) -> bool {
        self.keys.are_in_use() || self.pairs.iter().flatten().any(SoftPair::is_in_use)
    }

    /// Adds works to the queue of a pair. Returns the number added.
    ///
    /// # Safety
    /// As [`Device::post`](crate::comm::ib::device::Device::post).
    pub(super) unsafe fn post(&mut self, pair: Pair, works: &[Work]) -> Result<usize> {
        self.check()?;
        let limits = self.limits;
        let connected = self.pair(pair)?;
        if !matches!(connected.state, State::ReadyToSend | State::Error) {
            return Err(DeviceError::State { number: pair.number, state: connected.state, asked: "a post" });
        }
        for (at, work) in works.iter().enumerate() {
            // SAFETY: the caller's promise.
            let entry = unsafe { QueuedWork::new(*work, &limits) };
            let entry = entry.map_err(|why| DeviceError::Work { at, id: work.id, why })?;
            if connected.slots.take().is_none() {
                return Ok(at);
            }
            connected.works.push_back(entry);
        }
        Ok(works.len())
    }

    pub(super) fn post_receive(&mut self, queue: Queue, receive: Receive) -> Result<()> {
        let (receives, queue, depth) = match queue {
            Queue::Shared => (&mut self.shared, "the shared receive queue", self.limits.shared_receives),
            Queue::Datagram => (&mut self.datagrams, "the receive queue of datagrams", self.limits.datagram_receives),
        };
        if receives.len() == depth {
            return Err(DeviceError::Full { queue, depth });
        }
        receives.push_back(receive);
        Ok(())
    }

    /// A completion that frees no slot.
    pub(super) fn received(&mut self, id: u64, number: u32, outcome: std::result::Result<Done, WorkFailure>) {
        self.report(PendingCompletion { completion: Completion { id, number, outcome }, frees: 0, life: 0 });
    }

    pub(super) fn report(&mut self, report: PendingCompletion) {
        if self.fatal.is_none() && self.reports.len() == self.limits.completions {
            self.die("more completions came than its queue holds");
        }
        if self.fatal.is_some() {
            return;
        }
        let arrives = matches!(report.completion.outcome, Ok(Done::Received { .. }));
        self.reports.push_back(report);
        self.fresh = true;
        self.signs.reports.store(self.reports.len(), Ordering::Relaxed);
        if self.armed.take_if(|wakes| arrives || *wakes == Wakes::All).is_some() {
            self.fired = true;
            self.ring();
        }
    }

    pub(super) fn event(&mut self, event: DeviceEvent) {
        self.events.push_back(event);
        self.fresh = true;
        self.ring();
    }

    pub(super) fn take_event(&mut self) -> Option<DeviceEvent> {
        let event = self.events.pop_front()?;
        if let (DeviceEvent::Fatal, Some((_, is_known))) = (event, &mut self.fatal) {
            *is_known = true;
        }
        Some(event)
    }

    /// What came before is forgotten; what was asked for before is not.
    pub(super) fn arm(&mut self, wakes: Wakes) {
        self.armed = self.armed.max(Some(wakes));
        self.fired = false;
    }

    /// Returns true if a wait ends now.
    pub(super) fn take_fired(&mut self) -> bool {
        std::mem::take(&mut self.fired) || !self.events.is_empty()
    }

    fn ring(&self) {
        self.signs.bell.add(1);
        self.signs.bell.wake();
    }

    /// Nothing works any more.
    pub(super) fn die(&mut self, why: &'static str) {
        self.fatal = Some((why, false));
        self.reports.clear();
        self.pairs.iter_mut().flatten().for_each(|pair| pair.state = State::Error);
        self.signs.reports.store(usize::MAX, Ordering::Relaxed);
        self.event(DeviceEvent::Fatal);
    }

    /// Takes a completion. Slots of its pair are free again, unless that was reset or destroyed meanwhile.
    pub(super) fn poll(&mut self) -> Option<Completion> {
        let PendingCompletion { completion, frees, life } = self.reports.pop_front()?;
        self.signs.reports.store(self.reports.len(), Ordering::Relaxed);
        if let Some(pair) = self.numbered(completion.number).filter(|pair| pair.life == life) {
            pair.slots.free(frees);
        }
        Some(completion)
    }

    /// Reports works of a pair that are done. After a failure all: the first that is not done has failed, the others are flushed.
    pub(super) fn retire(&mut self, number: u32, mut failure: Option<WorkFailure>) {
        if let Some(pair) = self.numbered(number).filter(|_| failure.is_some()) {
            (pair.state, pair.asked, pair.awaits) = (State::Error, None, false);
        }
        while let Some(report) = self.numbered(number).and_then(|pair| pair.retire(&mut failure)) {
            self.report(report);
        }
    }
}
