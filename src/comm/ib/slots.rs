//! Memory for messages: registered once, and cut into slots of one length.

use std::{
    alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error},
    fmt,
    ptr::NonNull,
};

use super::device::{Access, Device, Piece, Region, Result};
use crate::memory::kernels;

/// Slots begin where lines of the cache do.
const LINE: usize = 64;

/// See the module's essay. A slot that is lent to the device is touched by nobody else.
pub(super) struct Slots {
    start: NonNull<u8>,
    layout: Layout,
    len: usize,
    region: Option<Region>,
    key: u32,
}

// SAFETY: the memory belongs to the value.
unsafe impl Send for Slots {}

impl Slots {
    /// So many slots of `len` bytes each, at least.
    ///
    /// # Errors
    /// Those of [`Device::register`].
    pub(super) fn new(device: &impl Device, count: usize, len: usize) -> Result<Self> {
        let len = len.next_multiple_of(LINE);
        let layout = Layout::from_size_align(count * len, LINE).expect("some megabytes at most");
        assert!(layout.size() > 0, "slots without memory");
        // SAFETY: not of length zero.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) }).unwrap_or_else(|| handle_alloc_error(layout));
        let mut slots = Slots { start, layout, len, region: None, key: 0 };
        // SAFETY: memory of this value, which is freed only once the region is deregistered; nobody holds references to it.
        let region = unsafe { device.register(start.as_ptr(), layout.size(), Access::LOCAL_WRITE) }?;
        (slots.region, slots.key) = (Some(region), region.local);
        Ok(slots)
    }

    /// The first `len` bytes of a slot.
    pub(super) fn piece(&self, slot: usize, len: usize) -> Piece {
        Piece { start: self.at(slot, len), len, key: self.key }
    }

    /// A whole slot.
    pub(super) fn whole(&self, slot: usize) -> Piece {
        self.piece(slot, self.len)
    }

    fn at(&self, slot: usize, len: usize) -> *mut u8 {
        assert!(len <= self.len && (slot + 1) * self.len <= self.layout.size(), "{len} bytes of slot {slot}");
        self.start.as_ptr().wrapping_add(slot * self.len)
    }

    /// Fills a slot that is not lent, from a byte on.
    pub(super) fn write(&mut self, slot: usize, from: usize, bytes: &[u8]) {
        let to = self.at(slot, from + bytes.len()).wrapping_add(from);
        // SAFETY: inside the memory of this value, which nobody refers to; the caller's bytes are elsewhere.
        unsafe { kernels::copy(to, bytes.as_ptr(), bytes.len()) };
    }

    /// Fills a slot that is not lent.
    ///
    /// # Safety
    /// The bytes are readable, and not in a slot.
    pub(super) unsafe fn write_from(&mut self, slot: usize, bytes: *const u8, len: usize) {
        // SAFETY: inside the memory of this value; the caller's promise.
        unsafe { kernels::read(self.at(slot, len), bytes, len) };
    }

    /// Looks at the first bytes of a slot that is not lent.
    pub(super) fn look(&self, slot: usize, len: usize, at: impl FnOnce(&[u8])) {
        // SAFETY: inside the memory of this value, which nobody writes meanwhile.
        at(unsafe { std::slice::from_raw_parts(self.at(slot, len), len) });
    }

    /// Reads a slot that is not lent, from a byte on.
    pub(super) fn read(&self, slot: usize, from: usize, bytes: &mut [u8]) {
        let at = self.at(slot, from + bytes.len()).wrapping_add(from);
        // SAFETY: as in `write`.
        unsafe { kernels::copy(bytes.as_mut_ptr(), at, bytes.len()) };
    }

    /// Takes the memory back from the device. If that is refused, it is never freed.
    pub(super) fn withdraw(&mut self, device: &impl Device) {
        if let Some(region) = self.region
            && device.deregister(region).is_ok()
        {
            self.region = None;
        }
    }
}

impl Drop for Slots {
    fn drop(&mut self) {
        if self.region.is_none() {
            // SAFETY: allocated with this layout, and the device does not know it any more.
            unsafe { dealloc(self.start.as_ptr(), self.layout) };
        }
    }
}

impl fmt::Debug for Slots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Slots({} of {} bytes)", self.layout.size() / self.len, self.len)
    }
}
