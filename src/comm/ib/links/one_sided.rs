//! Writes and reads: what goes into and out of the memory of peers without their processors.
//!
//! Short pieces are copied through the slots of frames. So they can be posted again when a connection breaks, and their callers go
//! on meanwhile. Long ones go straight, while the caller's memory is registered. One that is given up is deregistered at once,
//! which breaks the connection if its work is under way.

use super::{
    super::device::{Access, Device, DeviceRegion, Opcode, Target, WorkPiece},
    LinkPeer, Links, Posted, SENDS, Sent,
    wire::FOR_ANSWERS,
};
use crate::comm::{
    am::wire::{self, BulkId, Ended, OneSided, Opened, Result, Transfers},
    protocol::replay,
};

/// What was posted from a slot.
#[derive(Clone, Copy, Debug)]
pub(super) enum SlotWork {
    Frame,
    Write {
        to: Target,
    },
    Read {
        from: Target,
        origin: u64,
        at: usize,
    },
    /// A write or a read. Once it is given up it has no region, and moves nothing.
    Straight {
        kind: Opcode,
        lent: WorkPiece,
        region: Option<DeviceRegion>,
        id: BulkId,
    },
}

impl SlotWork {
    /// The memory that is lent for it, once.
    pub(super) fn take_region(&mut self) -> Option<DeviceRegion> {
        if let SlotWork::Straight { region, .. } = self { region.take() } else { None }
    }
}

impl<D: Device> Links<D> {
    /// Begins transfers of copied pieces with a peer: writes, or reads for an origin from a byte on. Returns their number.
    ///
    /// # Safety
    /// As [`OneSided::write`] and [`OneSided::read`].
    ///
    /// # Errors
    /// [`Broken`](wire::Broken).
    unsafe fn transfer(&mut self, with: usize, pieces: &[wire::Piece], reads: Option<(u64, usize)>) -> Result<usize> {
        if self.room() < FOR_ANSWERS + pieces.len() {
            self.take_completions()?;
        }
        if !self.is_ready(with)? {
            return Ok(0);
        }
        let count = pieces.len().min(self.room().saturating_sub(FOR_ANSWERS));
        let peer = self.peers.meet(with);
        peer.replay.all_are_handled();
        peer.transfers.begun += count as u64;
        let kind = if reads.is_some() { replay::ItemKind::Read } else { replay::ItemKind::Write };
        let mut at = reads.map_or(0, |(_, at)| at);
        let mut posted = std::mem::take(&mut self.posted);
        for &wire::Piece { there: start, key, here, len } in &pieces[..count] {
            let Some(slot) = self.free_sends.pop() else { break };
            peer.replay.posts(kind, slot);
            let place = Target { start, key: key.short() };
            let what = match reads {
                Some((origin, _)) => SlotWork::Read { from: place, origin, at },
                None => {
                    // SAFETY: the caller's promise.
                    unsafe { self.sends.write_from(slot, here, len) };
                    SlotWork::Write { to: place }
                }
            };
            at += len;
            self.sent[slot] = Sent { to: with, serial: 0, len, what };
            self.reading += usize::from(reads.is_some());
            posted.push(Posted::Send(slot));
        }
        let done = if posted.is_empty() { Ok(()) } else { self.post(with, &posted) };
        posted.clear();
        self.posted = posted;
        done.and_then(|()| self.act()).map(|()| count)
    }

    /// Lets the slots go whose works are done.
    pub(super) fn let_go(&mut self) -> Result<()> {
        while let Some(slot) = self.gone.pop() {
            let Sent { to, len, ref mut what, .. } = self.sent[slot];
            let region = what.take_region();
            if let SlotWork::Write { .. } | SlotWork::Straight { .. } = what {
                self.peers.meet(to).ends();
            }
            match *what {
                SlotWork::Frame | SlotWork::Write { .. } => self.free_sends.push(slot),
                SlotWork::Read { .. } => self.read.push_back(slot),
                SlotWork::Straight { id, .. } => {
                    if let Some(region) = region {
                        self.device.deregister(region)?;
                        self.ended.push(Ended { id, len });
                    }
                    self.free_straight.push(slot);
                }
            }
        }
        Ok(())
    }

    /// See [`Wire::cancel`](wire::Wire::cancel).
    pub(super) fn give_up(&mut self, which: BulkId) {
        for sent in &mut self.sent[SENDS..] {
            let SlotWork::Straight { kind: Opcode::Write { to: at } | Opcode::Read { from: at }, id, .. } = sent.what else {
                continue;
            };
            let Some(region) = (if id == which { sent.what.take_region() } else { None }) else { continue };
            // If the device refuses that, it may touch the memory still: that is not reported as let go.
            if self.device.deregister(region).is_ok() {
                self.ended.push(Ended { id, len: 0 });
            }
            // If it is posted again it moves nothing.
            let kind = Opcode::Write { to: at };
            (sent.len, sent.what) = (0, SlotWork::Straight { kind, lent: WorkPiece::NONE, region: None, id });
        }
    }
}

impl<D: Device> OneSided for Links<D> {
    unsafe fn open(&mut self, start: *mut u8, len: usize) -> std::result::Result<Opened, String> {
        let access = Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ;
        // SAFETY: the caller's promise.
        let region = unsafe { self.device.register(start, len, access) }.map_err(|error| error.to_string())?;
        self.opened.push(region);
        Ok(Opened { address: start.addr() as u64, key: region.remote.into(), id: region.id })
    }

    fn shut(&mut self, opened: Opened) -> Result<()> {
        let Some(at) = self.opened.iter().position(|region| region.id == opened.id) else { return Ok(()) };
        Ok(self.device.deregister(self.opened.swap_remove(at))?)
    }

    fn may_transfer(&mut self, with: usize) -> Result<bool> {
        self.is_ready(with)
    }

    unsafe fn write(&mut self, to: usize, pieces: &[wire::Piece]) -> Result<usize> {
        // SAFETY: the caller's promise.
        unsafe { self.transfer(to, pieces, None) }
    }

    unsafe fn read(&mut self, from: usize, pieces: &[wire::Piece], origin: u64, at: usize) -> Result<usize> {
        // SAFETY: the caller's promise.
        unsafe { self.transfer(from, pieces, Some((origin, at))) }
    }

    unsafe fn go_straight(&mut self, with: usize, reads: bool, piece: wire::Piece, id: BulkId) -> Result<bool> {
        if self.free_straight.is_empty() {
            self.take_completions()?;
        }
        if !self.is_ready(with)? {
            return Ok(false);
        }
        let wire::Piece { there: start, key, here, len } = piece;
        let Some(slot) = self.free_straight.pop() else { return Ok(false) };
        let access = if reads { Access::LOCAL_WRITE } else { Access::NONE };
        // SAFETY: the caller's promise. It is deregistered before the end is reported.
        let Ok(region) = (unsafe { self.device.register(here, len, access) }) else {
            self.free_straight.push(slot);
            return Ok(false);
        };
        let (place, lent) = (Target { start, key: key.short() }, WorkPiece { start: here, len, key: region.local });
        let (again, kind) = match reads {
            true => (replay::ItemKind::Read, Opcode::Read { from: place }),
            false => (replay::ItemKind::Write, Opcode::Write { to: place }),
        };
        let peer = self.peers.meet(with);
        peer.replay.all_are_handled();
        peer.transfers.begun += 1;
        peer.replay.posts(again, slot);
        self.sent[slot] = Sent { to: with, serial: 0, len, what: SlotWork::Straight { kind, lent, region: Some(region), id } };
        self.post(with, &[Posted::Send(slot)])?;
        self.act()?;
        Ok(true)
    }

    fn take_read(&mut self, each: &mut dyn FnMut(u64, usize, &[u8])) -> bool {
        let is_any = !self.read.is_empty();
        while let Some(slot) = self.read.pop_front() {
            let Sent { to, len, what, .. } = self.sent[slot];
            if let SlotWork::Read { origin, at, .. } = what {
                self.sends.look(slot, 0, len, |bytes| each(origin, at, bytes));
            }
            self.peers.meet(to).ends();
            self.reading -= 1;
            self.free_sends.push(slot);
        }
        is_any
    }

    fn have_ended(&mut self, with: usize) -> Result<bool> {
        let have_ended = |links: &Self| {
            let Transfers { begun, ended } = links.transfers(with);
            begun == ended
        };
        if !have_ended(self) {
            self.mark(with)?;
            self.take_completions()?;
        }
        Ok(have_ended(self))
    }

    fn look_for_read(&mut self) -> Result<bool> {
        if self.reading > self.read.len() {
            self.take_completions()?;
        }
        Ok(self.reading > 0)
    }

    fn has_arrivals(&self) -> bool {
        !self.arrivals.is_empty()
    }

    fn transfers(&self, with: usize) -> Transfers {
        let counted = |peer: &LinkPeer| Transfers { ended: peer.transfers.ended - peer.overtook, ..peer.transfers };
        self.peers.get(with).map(counted).unwrap_or_default()
    }
}
