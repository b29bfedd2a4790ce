//! An adapter that completes at once, alone and under the layer, for a bench.

use std::sync::Arc;

use super::{
    adapter::{RmaAccess, RmaAdapter, RmaDone, RmaLimits, RmaRegion, RmaWork},
    road::FrameRoad,
    wire::{RmaSettings, RmaWire},
};
use crate::comm::{
    am::wire::{Class, Key, OneSided, Piece, Result},
    start::devices::directory::{Directory, Words},
};

/// Copies within this process.
#[derive(Debug, Default)]
struct AtOnce {
    done: Vec<RmaDone>,
}

const LIMITS: RmaLimits = RmaLimits {
    inline: 0,
    longest: 1 << 30,
    unit: 1,
    local_regions: false,
    marks: false,
    put_put: true,
    put_get: true,
    frame_behind_write: true,
    atomics: false,
};

impl RmaAdapter for AtOnce {
    fn limits(&self) -> &RmaLimits {
        &LIMITS
    }

    fn address(&self) -> Words {
        [1; 8]
    }

    fn meet(&mut self, _: usize, _: &Words) -> Result<()> {
        Ok(())
    }

    unsafe fn register(&mut self, start: *mut u8, _: usize, _: RmaAccess) -> std::result::Result<RmaRegion, String> {
        Ok(RmaRegion { address: start.expose_provenance() as u64, key: Key([0; 2]), id: 0 })
    }

    fn deregister(&mut self, _: u64) -> Result<()> {
        Ok(())
    }

    unsafe fn write(&mut self, _: usize, work: &RmaWork) -> Result<bool> {
        // SAFETY: the caller's promise.
        unsafe { std::ptr::copy(work.here, std::ptr::with_exposed_provenance_mut(work.there as usize), work.len) };
        self.done.push(RmaDone::Ends { id: work.id, len: work.len });
        Ok(true)
    }

    unsafe fn read(&mut self, _: usize, work: &RmaWork) -> Result<bool> {
        // SAFETY: the caller's promise.
        unsafe { std::ptr::copy(std::ptr::with_exposed_provenance_mut(work.there as usize), work.here, work.len) };
        self.done.push(RmaDone::Ends { id: work.id, len: work.len });
        Ok(true)
    }

    fn mark(&mut self, _: usize, _: u64) -> Result<bool> {
        unreachable!("it has no marks")
    }

    fn poll(&mut self, done: &mut Vec<RmaDone>) -> Result<()> {
        done.append(&mut self.done);
        Ok(())
    }

    fn close(&mut self) {}
}

/// Carries nothing.
#[derive(Debug)]
struct NoRoad;

impl FrameRoad<AtOnce> for NoRoad {
    fn longest(&self) -> usize {
        crate::comm::am::wire::LEAST_FRAME
    }

    fn send(&mut self, _: &mut AtOnce, _: usize, _: Class, _: &[u8]) -> Result<bool> {
        Ok(false)
    }

    fn receive(&mut self, _: &mut AtOnce, _: &mut [u8]) -> Result<Option<(usize, usize)>> {
        Ok(None)
    }

    fn ends(&mut self, _: &RmaDone) -> bool {
        false
    }

    fn tend(&mut self, _: &mut AtOnce) -> Result<bool> {
        Ok(false)
    }

    fn has_arrivals(&self) -> bool {
        false
    }

    fn leaving(&self) -> usize {
        0
    }
}

/// Words that go to and fro by an adapter that completes at once, alone and under the layer.
#[derive(Debug)]
pub struct RmaAtOnce {
    alone: AtOnce,
    done: Vec<RmaDone>,
    under: RmaWire<AtOnce, NoRoad>,
    here: Box<u64>,
    there: Box<u64>,
}

impl RmaAtOnce {
    /// # Panics
    /// There is no memory.
    #[must_use]
    pub fn new() -> Self {
        let directory = Directory::shared(2).expect("a directory");
        directory.publish(1, [1; 8]);
        let settings = RmaSettings { rank: 0, ..RmaSettings::default() };
        let under = RmaWire::new(AtOnce::default(), NoRoad, Arc::new(directory), settings).expect("a wire");
        RmaAtOnce { alone: AtOnce::default(), done: Vec::new(), under, here: Box::default(), there: Box::default() }
    }

    fn places(&mut self) -> (*mut u8, u64) {
        ((&raw mut *self.here).cast(), (&raw mut *self.there).expose_provenance() as u64)
    }

    /// Writes or reads a word by the adapter alone, and sees its end. Returns true if it has ended.
    pub fn alone(&mut self, reads: bool) -> bool {
        let (here, there) = self.places();
        let work = RmaWork { here, len: 8, local: None, there, key: Key([0; 2]), inline: false, id: 0 };
        // SAFETY: two words of this value.
        let taken = unsafe { if reads { self.alone.read(1, &work) } else { self.alone.write(1, &work) } };
        taken.is_ok_and(|taken| taken) && self.alone.poll(&mut self.done).is_ok() && self.done.pop().is_some()
    }

    /// The same by the layer.
    pub fn under(&mut self, reads: bool) -> bool {
        let (here, there) = self.places();
        let piece = [Piece { there, key: Key([0; 2]), here, len: 8 }];
        // SAFETY: two words of this value.
        let begun = unsafe { if reads { self.under.read(1, &piece, 0, 0) } else { self.under.write(1, &piece) } };
        if reads && self.under.look_for_read().is_ok() {
            let word = &mut *self.here;
            self.under.take_read(&mut |_, _, bytes| bytemuck::bytes_of_mut(word).copy_from_slice(bytes));
        }
        begun.is_ok_and(|begun| begun == 1) && self.under.have_ended(1).is_ok_and(|ended| ended)
    }
}

impl Default for RmaAtOnce {
    fn default() -> Self {
        RmaAtOnce::new()
    }
}
