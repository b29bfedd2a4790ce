//! Memory for messages that a device may use.

use std::{
    alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error},
    fmt,
    ptr::NonNull,
};

use crate::memory::kernels;

/// Slots begin where lines of the cache do.
const LINE: usize = 64;

/// Memory of at least this many bytes begins and ends where pages do: an adapter may register whole pages only, and each page once.
const PAGE: usize = 4096;

/// Memory in slots of one length. A slot that is lent to a device is touched by nobody else.
pub(in crate::comm) struct Slots {
    start: NonNull<u8>,
    layout: Layout,
    len: usize,
}

// SAFETY: the memory belongs to the value.
unsafe impl Send for Slots {}

impl Slots {
    /// `count` slots of at least `len` bytes each.
    pub(in crate::comm) fn new(count: usize, len: usize) -> Self {
        let len = len.next_multiple_of(LINE);
        let align = if count * len < PAGE { LINE } else { PAGE };
        let layout = Layout::from_size_align((count * len).next_multiple_of(align), align).expect("some megabytes at most");
        assert!(layout.size() > 0, "slots without memory");
        // SAFETY: not of length zero.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) }).unwrap_or_else(|| handle_alloc_error(layout));
        Slots { start, layout, len }
    }

    /// All of the memory, which a device is to know. No references to it are handed out but in [`look`](Self::look).
    pub(in crate::comm) fn memory(&self) -> (*mut u8, usize) {
        (self.start.as_ptr(), self.layout.size())
    }

    /// Bytes of a slot.
    pub(in crate::comm) fn len(&self) -> usize {
        self.len
    }

    /// The beginning of a slot whose first `len` bytes are used.
    pub(in crate::comm) fn at(&self, slot: usize, len: usize) -> *mut u8 {
        assert!(len <= self.len && (slot + 1) * self.len <= self.layout.size(), "{len} bytes of slot {slot}");
        self.start.as_ptr().wrapping_add(slot * self.len)
    }

    /// Fills a slot that is not lent, from a byte on.
    pub(in crate::comm) fn write(&mut self, slot: usize, from: usize, bytes: &[u8]) {
        let to = self.at(slot, from + bytes.len()).wrapping_add(from);
        // SAFETY: inside the memory of this value, which nobody refers to; the caller's bytes are elsewhere.
        unsafe { kernels::copy(to, bytes.as_ptr(), bytes.len()) };
    }

    /// As [`write`](Self::write).
    ///
    /// # Safety
    /// The bytes are readable, and not in a slot.
    pub(in crate::comm) unsafe fn write_from(&mut self, slot: usize, from: usize, bytes: *const u8, len: usize) {
        // SAFETY: inside the memory of this value; the caller's promise.
        unsafe { kernels::read(self.at(slot, from + len).wrapping_add(from), bytes, len) };
    }

    /// Looks at bytes of a slot that is not lent, from a byte on.
    pub(in crate::comm) fn look(&self, slot: usize, from: usize, len: usize, at: impl FnOnce(&[u8])) {
        // SAFETY: inside the memory of this value, which nobody writes meanwhile.
        at(unsafe { std::slice::from_raw_parts(self.at(slot, from + len).wrapping_add(from), len) });
    }

    /// Reads a slot that is not lent, from a byte on.
    pub(in crate::comm) fn read(&self, slot: usize, from: usize, bytes: &mut [u8]) {
        let at = self.at(slot, from + bytes.len()).wrapping_add(from);
        // SAFETY: as in `write`.
        unsafe { kernels::copy(bytes.as_mut_ptr(), at, bytes.len()) };
    }
}

impl Drop for Slots {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

impl fmt::Debug for Slots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Slots({} of {} bytes)", self.layout.size() / self.len, self.len)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn slots_keep_what_is_written_and_are_apart() {
        let mut slots = Slots::new(3, 70);
        assert_eq!((slots.len(), slots.memory().1), (128, 384));
        slots.write(1, 2, &[5; 126]);
        // SAFETY: an array.
        unsafe { slots.write_from(2, 0, [7; 128].as_ptr(), 128) };
        let read = |slot| {
            let mut bytes = [1; 128];
            slots.read(slot, 0, &mut bytes);
            bytes
        };
        assert_eq!((read(0), read(2)), ([0; 128], [7; 128]));
        assert!(read(1)[..2] == [0; 2] && read(1)[2..] == [5; 126]);
        slots.look(1, 1, 3, |bytes| assert_eq!(bytes, [0, 5, 5]));
        assert_eq!(slots.at(2, 128).addr() - slots.memory().0.addr(), 256);
    }

    #[test]
    fn much_memory_is_whole_pages() {
        let slots = Slots::new(3, 3000);
        let (start, len) = slots.memory();
        assert_eq!((start.addr() % PAGE, len), (0, 3 * PAGE));
    }

    #[test]
    #[should_panic(expected = "129 bytes of slot 1")]
    fn more_than_a_slot_is_refused() {
        Slots::new(3, 128).read(1, 0, &mut [0; 129]);
    }
}
