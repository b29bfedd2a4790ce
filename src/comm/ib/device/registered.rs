//! Slots whose memory a device may read and write.

use std::{mem::ManuallyDrop, ops::Deref};

use super::{Access, Device, DeviceRegion, Result, WorkPiece};
use crate::comm::kit::slots::Slots;

/// Slots that a device has registered.
#[derive(Debug)]
pub(in crate::comm::ib) struct Registered {
    slots: ManuallyDrop<Slots>,
    region: Option<DeviceRegion>,
    key: u32,
}

impl Registered {
    /// `count` slots of at least `len` bytes each.
    ///
    /// # Errors
    /// Those of [`Device::register`].
    pub(in crate::comm::ib) fn new(device: &impl Device, count: usize, len: usize) -> Result<Self> {
        let slots = Slots::new(count, len);
        let (start, len) = slots.memory();
        // SAFETY: freed only once the region is deregistered; nobody holds references to what a device may write.
        let region = unsafe { device.register(start, len, Access::LOCAL_WRITE) }?;
        Ok(Registered { slots: ManuallyDrop::new(slots), region: Some(region), key: region.local })
    }

    /// The first `len` bytes of a slot.
    pub(in crate::comm::ib) fn piece(&self, slot: usize, len: usize) -> WorkPiece {
        WorkPiece { start: self.slots.at(slot, len), len, key: self.key }
    }

    pub(in crate::comm::ib) fn whole(&self, slot: usize) -> WorkPiece {
        self.piece(slot, self.slots.len())
    }

    /// See [`Slots::write`].
    pub(in crate::comm::ib) fn write(&mut self, slot: usize, from: usize, bytes: &[u8]) {
        self.slots.write(slot, from, bytes);
    }

    /// See [`Slots::write_from`].
    ///
    /// # Safety
    /// As there.
    pub(in crate::comm::ib) unsafe fn write_from(&mut self, slot: usize, bytes: *const u8, len: usize) {
        // SAFETY: the caller's promise.
        unsafe { self.slots.write_from(slot, 0, bytes, len) };
    }

    /// Takes the memory back from the device. If that is refused, it is never freed.
    pub(in crate::comm::ib) fn withdraw(&mut self, device: &impl Device) {
        self.region.take_if(|region| device.deregister(*region).is_ok());
    }
}

/// For reading: code that could change the value could free what the device still uses.
impl Deref for Registered {
    type Target = Slots;

    fn deref(&self) -> &Slots {
        &self.slots
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        if self.region.is_none() {
            // SAFETY: once, and the device does not know the memory any more.
            unsafe { ManuallyDrop::drop(&mut self.slots) };
        }
    }
}
