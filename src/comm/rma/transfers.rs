//! Writes into and reads from the memory of peers.
//!
//! Short pieces are copied through slots, or are inline, so that their callers go on at once. Long ones go straight.

use std::ops::Range;

use super::{
    adapter::{RmaAccess, RmaAdapter, RmaRegion, RmaWork},
    road::FrameRoad,
    wire::RmaWire,
    works::{SlotTransfer, WORD},
};
use crate::{
    comm::{
        Atomic, AtomicOp,
        am::wire::{BulkId, OneSided, Opened, Piece, Result, Transfers},
    },
    memory::atomic_op::changed,
};

/// The bytes of a piece at the peer.
fn range(piece: &Piece) -> Range<u64> {
    piece.there..piece.there.saturating_add(piece.len as u64)
}

impl<A: RmaAdapter, R: FrameRoad<A>> RmaWire<A, R> {
    /// Returns true if a piece may begin: it would not come before a write that it must come behind.
    fn may_begin(&mut self, with: usize, reads: bool, piece: &Piece) -> bool {
        let limits = self.adapter.limits();
        let is_ordered = if reads { limits.put_get } else { limits.put_put };
        let order = self.peers.meet(with);
        let is_behind = is_ordered || !order.overlaps(&range(piece));
        order.has_room() && is_behind && !(order.changes() && self.works.change(with, &range(piece)))
    }

    /// A write has begun.
    fn begin_write(&mut self, to: usize, piece: &Piece) -> u64 {
        let order = self.peers.meet(to);
        let number = order.begin_write(range(piece));
        if self.adapter.limits().marks && !std::mem::replace(&mut order.is_listed, true) {
            self.unmarked.push_back(to);
        }
        number
    }

    /// # Safety
    /// As [`OneSided::write`].
    unsafe fn write_piece(&mut self, to: usize, piece: &Piece) -> Result<bool> {
        let Piece { there, key, here, len } = *piece;
        let inline = len <= self.adapter.limits().inline;
        if !self.may_begin(to, false, piece) {
            return Ok(false);
        }
        if inline {
            let work = RmaWork { here, len, local: None, there, key, inline, id: 0 };
            // SAFETY: the caller's promise.
            let is_taken = unsafe { self.adapter.write(to, &work) }?;
            if is_taken {
                self.begin_write(to, piece);
            }
            return Ok(is_taken);
        }
        let Some((slot, copy)) = self.works.free(there) else { return Ok(false) };
        // SAFETY: the caller's promise.
        unsafe { self.works.fill(slot, there, here, len) };
        let work = RmaWork { here: copy, len, local: self.works.region(), there, key, inline, id: slot as u64 };
        // SAFETY: the slot is not touched before its end is reported.
        let is_taken = unsafe { self.adapter.write(to, &work) }?;
        if is_taken {
            let number = self.begin_write(to, piece);
            self.works.begin(slot, SlotTransfer::Write { to, number });
        }
        Ok(is_taken)
    }

    /// # Safety
    /// As [`OneSided::read`].
    unsafe fn read_piece(&mut self, from: usize, piece: &Piece, origin: u64, at: usize) -> Result<bool> {
        let Piece { there, key, len, .. } = *piece;
        if !self.may_begin(from, true, piece) {
            return Ok(false);
        }
        let Some((slot, here)) = self.works.free(there) else { return Ok(false) };
        let work = RmaWork { here, len, local: self.works.region(), there, key, inline: false, id: slot as u64 };
        // SAFETY: the slot is not touched before its end is reported.
        let is_taken = unsafe { self.adapter.read(from, &work) }?;
        if is_taken {
            let number = self.peers.meet(from).begin_read();
            self.works.begin(slot, SlotTransfer::Read { from, number, origin, at, there, len });
            self.reading += 1;
        }
        Ok(is_taken)
    }

    /// Begins the next step of the atomic operation of a slot. False if there is no room.
    pub(super) fn step(&mut self, slot: usize) -> Result<bool> {
        let Some(SlotTransfer::Change { at, there, key, step, .. }) = self.works.begun(slot) else { return Ok(true) };
        let (here, local) = (self.works.place(slot, there), self.works.region());
        let work = RmaWork { here, len: WORD, local, there, key, inline: false, id: slot as u64 };
        // SAFETY: the slot is not touched before its end is reported.
        unsafe { self.adapter.change(at, &work, step) }
    }

    /// The adapter has done a step of an atomic operation. Returns true if that was the last.
    pub(super) fn steps_on(&mut self, slot: usize) -> bool {
        let Some(SlotTransfer::Change { at, number, origin, there, key, step, wanted }) = self.works.begun(slot) else {
            return true;
        };
        let mut old = 0;
        self.works.look(slot, there, WORD, |bytes| old = u64::from_le_bytes(std::array::from_fn(|k| bytes[k])));
        // One that the adapter cannot do is a comparison with what was seen, until nobody has come between.
        let is_last = step.op == wanted.op || step.op == AtomicOp::CompareSwap && step.comparand == old;
        let new = changed(wanted.op, old, wanted.operand, wanted.comparand).filter(|_| !is_last);
        let Some(operand) = new else { return true };
        let step = Atomic { op: AtomicOp::CompareSwap, operand, comparand: old, ..step };
        self.works.set(slot, SlotTransfer::Change { at, number, origin, there, key, step, wanted });
        self.stepping.push_back(slot);
        false
    }

    /// Begins pieces as long as `begin` says that there is room; looks for room once.
    fn each(&mut self, with: usize, pieces: &[Piece], mut begin: impl FnMut(&mut Self, &Piece) -> Result<bool>) -> Result<usize> {
        if !self.meets(with)? {
            return Ok(0);
        }
        let mut begun = 0;
        let mut has_looked = false;
        while begun < pieces.len() {
            if begin(self, &pieces[begun])? {
                begun += 1;
            } else if std::mem::replace(&mut has_looked, true) {
                break;
            } else {
                self.poll()?;
            }
        }
        Ok(begun)
    }
}

impl<A: RmaAdapter, R: FrameRoad<A>> OneSided for RmaWire<A, R> {
    unsafe fn open(&mut self, start: *mut u8, len: usize) -> std::result::Result<Opened, String> {
        // SAFETY: the caller's promise.
        let RmaRegion { address, key, id } = unsafe { self.adapter.register(start, len, RmaAccess::Remote) }?;
        Ok(Opened { address, key, id })
    }

    fn shut(&mut self, opened: Opened) -> Result<()> {
        self.adapter.deregister(opened.id)
    }

    fn may_transfer(&mut self, with: usize) -> Result<bool> {
        self.meets(with)
    }

    unsafe fn write(&mut self, to: usize, pieces: &[Piece]) -> Result<usize> {
        // SAFETY: the caller's promise.
        self.each(to, pieces, |wire, piece| unsafe { wire.write_piece(to, piece) })
    }

    unsafe fn read(&mut self, from: usize, pieces: &[Piece], origin: u64, mut at: usize) -> Result<usize> {
        self.each(from, pieces, |wire, piece| {
            // SAFETY: the caller's promise.
            let is_taken = unsafe { wire.read_piece(from, piece, origin, at) }?;
            at += if is_taken { piece.len } else { 0 };
            Ok(is_taken)
        })
    }

    unsafe fn change(&mut self, at: usize, word: Piece, atomic: Atomic, origin: u64) -> Result<bool> {
        if !self.meets(at)? || !self.may_begin(at, false, &word) {
            return Ok(false);
        }
        let Some((slot, _)) = self.works.free(word.there) else { return Ok(false) };
        use AtomicOp::{Add, And, CompareSwap, Load, Or, Xor};
        let op = if let Load | Add | And | Or | Xor | CompareSwap = atomic.op { atomic.op } else { Load };
        let (step, Piece { there, key, .. }) = (Atomic { op, ..atomic }, word);
        self.works.begin(slot, SlotTransfer::Change { at, number: 0, origin, there, key, step, wanted: atomic });
        if !self.step(slot)? {
            self.works.release(slot);
            return Ok(false);
        }
        let number = self.peers.meet(at).begin_change();
        self.works.set(slot, SlotTransfer::Change { at, number, origin, there, key, step, wanted: atomic });
        self.reading += 1;
        Ok(true)
    }

    unsafe fn go_straight(&mut self, with: usize, reads: bool, piece: Piece, id: BulkId) -> Result<bool> {
        if self.works.free_straight().is_none() {
            self.poll()?;
        }
        if !self.meets(with)? || !self.may_begin(with, reads, &piece) {
            return Ok(false);
        }
        let Some(slot) = self.works.free_straight() else { return Ok(false) };
        let Piece { there, key, here, len } = piece;
        if !(there as usize ^ here.addr()).is_multiple_of(self.adapter.limits().unit) {
            return Ok(false);
        }
        let region = match self.adapter.limits().local_regions {
            false => None,
            // SAFETY: the caller's promise; it is deregistered before the end is reported.
            true => match unsafe { self.adapter.register(here, len, RmaAccess::Local) } {
                Ok(region) => Some(region.id),
                Err(_) => return Ok(false),
            },
        };
        let work = RmaWork { here, len, local: region, there, key, inline: false, id: slot as u64 };
        // SAFETY: the caller's promise.
        let is_taken = unsafe { if reads { self.adapter.read(with, &work) } else { self.adapter.write(with, &work) } }?;
        if !is_taken {
            region.map_or(Ok(()), |region| self.adapter.deregister(region))?;
            return Ok(false);
        }
        let number = if reads { self.peers.meet(with).begin_read() } else { self.begin_write(with, &piece) };
        self.works.begin(slot, SlotTransfer::Straight { with, number, reads, len, region, id });
        Ok(true)
    }

    fn take_read(&mut self, each: &mut dyn FnMut(u64, usize, &[u8])) -> bool {
        let is_any = !self.read.is_empty();
        while let Some(slot) = self.read.pop_front() {
            let (from, number, origin, at, there, len) = match self.works.release(slot) {
                Some(SlotTransfer::Read { from, number, origin, at, there, len }) => (from, number, origin, at, there, len),
                Some(SlotTransfer::Change { at, number, origin, there, .. }) => (at, number, origin, 0, there, WORD),
                _ => continue,
            };
            self.works.look(slot, there, len, |bytes| each(origin, at, bytes));
            self.peers.meet(from).end(number);
            self.reading -= 1;
        }
        is_any
    }

    fn have_ended(&mut self, with: usize) -> Result<bool> {
        let have_ended = |wire: &Self| {
            let Transfers { begun, ended } = wire.transfers(with);
            begun == ended
        };
        if !have_ended(self) {
            if self.adapter.limits().marks {
                self.mark(with)?;
            }
            self.poll()?;
        }
        Ok(have_ended(self))
    }

    fn look_for_read(&mut self) -> Result<bool> {
        if self.reading > self.read.len() {
            self.poll()?;
        }
        Ok(self.reading > 0)
    }

    fn has_arrivals(&self) -> bool {
        self.road.has_arrivals()
    }

    fn transfers(&self, with: usize) -> Transfers {
        self.peers.get(with).map(|order| order.transfers()).unwrap_or_default()
    }
}
