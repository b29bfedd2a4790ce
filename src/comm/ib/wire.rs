//! Frames over reliable queue pairs, which connect on demand.
//!
//! A frame is copied into a registered slot and sent; it arrives in a slot of the target's shared receive queue and is copied out. What is
//! sent to a rank that is not connected yet goes back to the active messages above, which keep it in its order and try again (MVICH,
//! section 3.4).
//!
//! A rank is not connected to itself: its own frames stay here.
//!
//! There are no bulk messages yet: long transfers are frames too.

use std::{collections::VecDeque, sync::Arc};

use super::{
    device::{self, Device},
    links::{Directory, Links},
};
use crate::comm::{
    am::{
        frame::{Frame, Frames},
        wire::{Arrival, Class, Ended, Limits, Result, Wire},
    },
    protocol::connection::Settings,
};

/// Bytes of a frame: a packet of the longest that ports have.
const FRAME: usize = 4096;

/// Frames kept for the next use.
const KEPT: usize = 64;

/// Slots that requests leave to answers.
const FOR_ANSWERS: usize = 16;

/// See the module's essay.
#[derive(Debug)]
pub(super) struct VerbsWire<D: Device> {
    links: Links<D>,
    rank: usize,
    own: VecDeque<Frame>,
    spare: Frames,
    closed: bool,
}

impl<D: Device> VerbsWire<D> {
    /// # Errors
    /// What the device says.
    pub(super) fn new(device: D, directory: Arc<Directory>, settings: Settings) -> device::Result<Self> {
        let rank = settings.endpoint;
        let links = Links::new(device, directory, settings, FRAME)?;
        Ok(VerbsWire { links, rank, own: VecDeque::new(), spare: Frames::new(FRAME, KEPT), closed: false })
    }
}

impl<D: Device> Wire for VerbsWire<D> {
    fn limits(&self) -> Limits {
        Limits { frame: FRAME, bulk: None }
    }

    fn frame(&mut self) -> Frame {
        self.spare.take()
    }

    fn keep(&mut self, frame: Frame) {
        self.spare.give(frame);
    }

    fn send(&mut self, to: usize, class: Class, frame: Frame) -> Result<Option<Frame>> {
        if to == self.rank {
            self.own.push_back(frame);
            return Ok(None);
        }
        let reserve = if class == Class::Request { FOR_ANSWERS } else { 0 };
        if self.links.is_ready(to)? && self.links.room() > reserve && self.links.send(to, frame.sealed())? {
            self.spare.give(frame);
            return Ok(None);
        }
        Ok(Some(frame))
    }

    /// Frames are copied.
    fn leaving(&self) -> usize {
        0
    }

    fn receive(&mut self) -> Result<Option<Arrival>> {
        if let Some(frame) = self.own.pop_front() {
            let len = frame.sealed().len();
            return Ok(Some(Arrival { from: self.rank, frame, len }));
        }
        let mut arrived = self.links.arrived();
        if arrived.is_none() {
            self.links.look()?;
            arrived = self.links.arrived();
        }
        let Some(arrived) = arrived else { return Ok(None) };
        let mut frame = self.spare.take();
        self.links.read(arrived, frame.bytes_mut())?;
        Ok(Some(Arrival { from: arrived.from, frame, len: arrived.len }))
    }

    fn ended(&mut self, _ended: &mut Vec<Ended>) -> Result<()> {
        Ok(())
    }

    fn close(&mut self) {
        if !std::mem::replace(&mut self.closed, true) {
            self.links.close();
        }
    }
}

impl<D: Device> Drop for VerbsWire<D> {
    fn drop(&mut self) {
        self.close();
    }
}
