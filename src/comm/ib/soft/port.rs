//! One opened device: its tables and queues.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use super::{
    keys::{By, Keys, Pinned},
    pair::{Connected, Place, Report, Slots},
};
use crate::comm::{
    WaitWord,
    ib::device::{Access, Address, Completion, DeviceError, Done, Event, Failure, Limits, Pair, Piece, Result, State},
    mutex::Mutex,
    slab::Slab,
};

/// The number of the datagram queue pair, below those of connected pairs. Every port counts from here: a number alone names nobody.
pub(super) const DATAGRAM: u32 = 16;

/// See the module's essay.
#[derive(Debug)]
pub(super) struct Port {
    id: u64,
    limits: Limits,
    pub(super) keys: Keys,
    pairs: Vec<Option<Connected>>,
    pub(super) shared: VecDeque<Receive>,
    pub(super) datagrams: VecDeque<Receive>,
    pub(super) datagram_slots: Slots,
    pub(super) handles: Slab<Address>,
    reports: VecDeque<Report>,
    pub(super) events: VecDeque<Event>,
    pub(super) armed: bool,
    /// A completion has come since the queue was armed, and nobody has waited for it yet.
    pub(super) fired: bool,
    fatal: Option<&'static str>,
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
    start: u64,
    pub(super) len: usize,
    key: u32,
}

impl Receive {
    pub(super) fn new(id: u64, piece: Piece) -> Self {
        Receive { id, start: piece.start.addr() as u64, len: piece.len, key: piece.key }
    }

    /// Its memory, if that may be written.
    pub(super) fn pin(&self, keys: &Keys) -> Option<Pinned> {
        keys.pin(By::Local, self.key, self.start, self.len, Access::LOCAL_WRITE)
    }
}

impl Port {
    pub(super) fn new(id: u64, limits: Limits, datagram_sends: usize, pinned: usize) -> Self {
        Port {
            id,
            limits,
            keys: Keys::new(pinned),
            pairs: Vec::new(),
            shared: VecDeque::new(),
            datagrams: VecDeque::new(),
            datagram_slots: Slots::new(datagram_sends),
            handles: Slab::default(),
            reports: VecDeque::new(),
            events: VecDeque::new(),
            armed: false,
            fired: false,
            fatal: None,
            signs: Arc::default(),
            adapter: Arc::default(),
        }
    }

    /// An error if the device has failed.
    pub(super) fn check(&self) -> Result<()> {
        self.fatal.map_or(Ok(()), |why| Err(DeviceError::Fatal { why }))
    }

    /// Adds a pair under the lowest free number.
    pub(super) fn create(&mut self, depth: usize, life: u64) -> Result<Pair> {
        let place = self.pairs.iter().position(Option::is_none).unwrap_or(self.pairs.len());
        for (what, asked, limit) in
            [("works of a send queue", depth, self.limits.send_depth), ("queue pairs", place + 1, self.limits.pairs)]
        {
            if asked > limit {
                return Err(DeviceError::Limit { what, asked: asked as u64, limit: limit as u64 });
            }
        }
        let number = DATAGRAM + 1 + place as u32;
        let id = life << 24 | u64::from(number);
        self.pairs.resize_with(self.pairs.len().max(place + 1), || None);
        self.pairs[place] = Some(Connected::new(id, Place { port: self.id, number }, depth, life));
        Ok(Pair { id, number })
    }

    /// The pair that has a number now.
    pub(super) fn numbered(&mut self, number: u32) -> Option<&mut Connected> {
        let place = number.checked_sub(DATAGRAM + 1)?;
        self.pairs.get_mut(place as usize)?.as_mut()
    }

    pub(super) fn pair(&mut self, pair: Pair) -> Result<&mut Connected> {
        self.numbered(pair.number)
            .filter(|connected| connected.id == pair.id)
            .ok_or(DeviceError::Unknown { what: "queue pair", id: pair.id })
    }

    pub(super) fn remove(&mut self, pair: Pair) -> Result<()> {
        self.pair(pair)?;
        self.pairs[(pair.number - DATAGRAM - 1) as usize] = None;
        Ok(())
    }

    /// Whether memory is touched for works of the device or for those of its peers.
    pub(super) fn is_in_use(&self) -> bool {
        self.keys.are_in_use() || self.pairs.iter().flatten().any(Connected::is_in_use)
    }

    /// A completion that frees no slot.
    pub(super) fn received(&mut self, id: u64, number: u32, outcome: std::result::Result<Done, Failure>) {
        self.report(Report { completion: Completion { id, number, outcome }, frees: 0, life: 0 });
    }

    pub(super) fn report(&mut self, report: Report) {
        if self.fatal.is_some() {
            return;
        }
        if self.reports.len() == self.limits.completions {
            return self.die("more completions came than its queue holds");
        }
        self.reports.push_back(report);
        self.signs.reports.store(self.reports.len(), Ordering::Relaxed);
        if std::mem::take(&mut self.armed) {
            self.fired = true;
            self.ring();
        }
    }

    pub(super) fn event(&mut self, event: Event) {
        self.events.push_back(event);
        self.ring();
    }

    fn ring(&self) {
        self.signs.bell.add(1);
        self.signs.bell.wake();
    }

    /// Nothing works any more.
    pub(super) fn die(&mut self, why: &'static str) {
        self.fatal = Some(why);
        self.pairs.iter_mut().flatten().for_each(|pair| pair.state = State::Error);
        self.signs.reports.store(usize::MAX, Ordering::Relaxed);
        self.event(Event::Fatal);
    }

    /// Takes a completion. Slots of its pair are free again, unless that was reset or destroyed meanwhile.
    pub(super) fn poll(&mut self) -> Option<Completion> {
        let Report { completion, frees, life } = self.reports.pop_front()?;
        self.signs.reports.store(self.reports.len(), Ordering::Relaxed);
        if completion.number == DATAGRAM {
            self.datagram_slots.free(frees);
        } else if let Some(pair) = self.numbered(completion.number).filter(|pair| pair.life == life) {
            pair.slots.free(frees);
        }
        Some(completion)
    }

    /// Reports works of a pair that are done.
    pub(super) fn retire(&mut self, number: u32) {
        while let Some(report) = self.numbered(number).and_then(Connected::retire) {
            self.report(report);
        }
    }

    /// The first work of a pair that is not done has failed: flushes those behind it.
    pub(super) fn fail(&mut self, number: u32, mut failure: Failure) {
        self.retire(number);
        while let Some(report) = self.numbered(number).and_then(|pair| pair.fail(failure)) {
            self.report(report);
            failure = Failure::Flushed;
        }
        if let Some(pair) = self.numbered(number) {
            pair.state = State::Error;
        }
    }
}
