//! Frames as messages, which arrive in buffers for those of anybody.

use std::collections::VecDeque;

use super::adapter::OfiAdapter;
use crate::comm::{
    am::wire::{Broken, Class, Result},
    kit::slots::Slots,
    rma::{
        adapter::{RmaAccess, RmaAdapter, RmaDone},
        road::{FrameRoad, OF_ROAD},
    },
};

/// In front of a frame: its sender, and 32 bits of the job's token.
const HEAD: usize = 8;

/// Bytes of a message, which every provider sends without asking the target, and of its frame.
pub(super) const MESSAGE: usize = 8 << 10;
const FRAME: usize = MESSAGE - HEAD;

/// Messages that may be on their way, those of them that requests leave to answers, and those that may arrive before anybody looks.
const SENDS: usize = 64;
const FOR_ANSWERS: usize = 16;
const RECEIVES: usize = 64;

/// In the place of a slot: a message whose memory is free at once.
const INLINE: usize = RECEIVES + SENDS;

/// Messages between the ranks of a job.
#[derive(Debug)]
pub(super) struct Messages {
    /// Of this rank.
    head: u64,
    ranks: usize,
    /// The first [`RECEIVES`] slots are for messages of others.
    slots: Slots,
    region: Option<u64>,
    free: Vec<usize>,
    /// Slots that hold messages, with their lengths; slots to be posted.
    arrived: VecDeque<(usize, usize)>,
    unposted: Vec<usize>,
}

impl Messages {
    /// The messages of a rank over a port.
    ///
    /// # Errors
    /// What the library says.
    pub(super) fn new(adapter: &mut OfiAdapter, rank: usize, ranks: usize, token: u128) -> std::result::Result<Self, String> {
        let slots = Slots::new(INLINE, MESSAGE);
        let (start, len) = slots.memory();
        let region = match adapter.limits().local_regions {
            // SAFETY: freed behind the adapter.
            true => Some(unsafe { adapter.register(start, len, RmaAccess::Local) }?.id),
            false => None,
        };
        let head = u64::from(token as u32) << 32 | rank as u64;
        let (free, unposted) = ((RECEIVES..RECEIVES + SENDS).collect(), (0..RECEIVES).collect());
        let mut messages = Messages { head, ranks, slots, region, free, arrived: VecDeque::new(), unposted };
        messages.tend(adapter).map_err(|Broken(why)| {
            // Before the memory of what was posted is freed.
            adapter.close();
            why
        })?;
        Ok(messages)
    }

    /// The sender of a message, if it is one of this job.
    fn sender(&self, slot: usize, len: usize) -> Option<usize> {
        let mut head = [0; HEAD];
        if len < HEAD {
            return None;
        }
        self.slots.read(slot, 0, &mut head);
        let head = u64::from_le_bytes(head);
        let from = head as u32 as usize;
        (head >> 32 == self.head >> 32 && from < self.ranks).then_some(from)
    }
}

impl FrameRoad<OfiAdapter> for Messages {
    fn longest(&self) -> usize {
        FRAME
    }

    fn send(&mut self, adapter: &mut OfiAdapter, to: usize, class: Class, frame: &[u8]) -> Result<bool> {
        let reserve = if class == Class::Request { FOR_ANSWERS } else { 0 };
        let Some(&slot) = self.free.get(reserve..).and_then(<[usize]>::last) else { return Ok(false) };
        let len = HEAD + frame.len();
        self.slots.write(slot, 0, &self.head.to_le_bytes());
        self.slots.write(slot, HEAD, frame);
        let is_inline = len <= adapter.inject();
        let id = OF_ROAD | if is_inline { INLINE } else { slot } as u64;
        // SAFETY: the slot is not touched before its end is reported, or it is free when the call returns.
        let is_taken = unsafe { adapter.send(to, (self.slots.at(slot, len), len), self.region, id) };
        if is_taken && !is_inline {
            self.free.pop();
        }
        Ok(is_taken)
    }

    fn receive(&mut self, adapter: &mut OfiAdapter, frame: &mut [u8]) -> Result<Option<(usize, usize)>> {
        let mut received = None;
        while received.is_none()
            && let Some((slot, len)) = self.arrived.pop_front()
        {
            if let Some(from) = self.sender(slot, len) {
                let len = len - HEAD;
                self.slots.read(slot, HEAD, &mut frame[..len]);
                received = Some((from, len));
            }
            self.unposted.push(slot);
        }
        self.tend(adapter)?;
        Ok(received)
    }

    fn ends(&mut self, done: &RmaDone) -> bool {
        let (RmaDone::Ends { id, .. } | RmaDone::Fails { id: Some(id), .. }) = *done else { return false };
        let slot = (id & !OF_ROAD) as usize;
        match *done {
            _ if slot == INLINE => {}
            _ if slot >= RECEIVES => self.free.push(slot),
            RmaDone::Ends { len, .. } => self.arrived.push_back((slot, len)),
            // Too long for a frame of ours, or cancelled.
            RmaDone::Fails { .. } => self.unposted.push(slot),
        }
        slot >= RECEIVES && matches!(done, RmaDone::Fails { .. })
    }

    /// Posts what receives are missing, as far as there is room.
    fn tend(&mut self, adapter: &mut OfiAdapter) -> Result<bool> {
        while let Some(&slot) = self.unposted.last() {
            // SAFETY: the slot is not touched before its end is reported.
            if !unsafe { adapter.receive(self.slots.at(slot, MESSAGE), MESSAGE, self.region, OF_ROAD | slot as u64) }? {
                break;
            }
            self.unposted.pop();
        }
        Ok(false)
    }

    fn has_arrivals(&self) -> bool {
        !self.arrived.is_empty()
    }

    fn leaving(&self) -> usize {
        SENDS - self.free.len()
    }
}
