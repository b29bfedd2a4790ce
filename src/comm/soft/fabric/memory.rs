//! Memory that is open to an adapter: its ranges, and what may be done there.

use std::{collections::BTreeMap, sync::Arc};

use crate::memory::kernels;

/// The open memory of one adapter, by numbers. `A` says what may be done.
#[derive(Debug, Default)]
pub(in crate::comm) struct OpenMemory<A> {
    ranges: BTreeMap<u64, (A, Arc<Range>)>,
    /// Bytes that may still be pinned.
    left: usize,
}

#[derive(Debug)]
struct Range {
    start: *mut u8,
    len: usize,
    /// It may be the fabric's own.
    _words: Box<[u64]>,
}

// SAFETY: the pointer leads to memory that its owner gave up to the adapter by `OpenMemory::open`, from any thread, or to the bytes beside
// it; only kernels made for races access it.
unsafe impl Send for Range {}
// SAFETY: as above; nothing in it changes.
unsafe impl Sync for Range {}

/// Memory that a transfer uses: it cannot be closed while this value lives.
#[derive(Debug)]
pub(in crate::comm) struct Pinned {
    start: *mut u8,
    _memory: Option<Arc<Range>>,
}

// SAFETY: the pointer is that of the memory beside it.
unsafe impl Send for Pinned {}

impl Pinned {
    /// No memory, of a transfer without bytes.
    pub(in crate::comm) fn nothing() -> Self {
        Pinned { start: std::ptr::dangling_mut(), _memory: None }
    }

    /// Memory of its own, with these bytes.
    ///
    /// # Safety
    /// They are readable.
    pub(in crate::comm) unsafe fn copy_of(start: *const u8, len: usize) -> Self {
        let copy = Pinned::zeroed(len);
        // SAFETY: the caller's promise; the copy is private.
        unsafe { kernels::copy(copy.start, start, len) };
        copy
    }

    /// Memory of its own.
    pub(in crate::comm) fn zeroed(len: usize) -> Self {
        // In words, so that words land whole.
        let mut words = vec![0_u64; len.div_ceil(size_of::<u64>())].into_boxed_slice();
        let start = words.as_mut_ptr().cast();
        Pinned { start, _memory: Some(Arc::new(Range { start, len, _words: words })) }
    }

    pub(in crate::comm) fn start(&self) -> *mut u8 {
        self.start
    }
}

/// Memory to which no number leads any more.
#[derive(Debug)]
pub(in crate::comm) struct Closed(Arc<Range>);

impl Closed {
    /// Returns true if a transfer still uses it.
    pub(in crate::comm) fn is_in_use(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }
}

impl<A: Copy> OpenMemory<A> {
    /// That of an adapter which may pin `left` bytes.
    pub(in crate::comm) fn new(left: usize) -> Self {
        OpenMemory { ranges: BTreeMap::new(), left }
    }

    /// Opens memory under a number that none had before.
    ///
    /// # Errors
    /// The adapter may pin only so many bytes more.
    ///
    /// # Safety
    /// Until it is closed, and no transfer uses it, the memory is mapped, and accessed by kernels and atomics only.
    pub(in crate::comm) unsafe fn open(&mut self, number: u64, start: *mut u8, len: usize, access: A) -> Result<(), usize> {
        self.left = self.left.checked_sub(len).ok_or(self.left)?;
        self.ranges.insert(number, (access, Arc::new(Range { start, len, _words: Box::default() })));
        Ok(())
    }

    /// Closes the memory of a number, if it has any.
    pub(in crate::comm) fn close(&mut self, number: u64) -> Option<Closed> {
        let (_, range) = self.ranges.remove(&number)?;
        self.left += range.len;
        Some(Closed(range))
    }

    /// The memory of a number, if that covers the range of addresses and `allows` what is to be done.
    pub(in crate::comm) fn pin(&self, number: u64, start: u64, len: usize, allows: impl FnOnce(A) -> bool) -> Option<Pinned> {
        let (access, range) = self.ranges.get(&number)?;
        let at = usize::try_from(start.checked_sub(range.start.addr() as u64)?).ok()?;
        let inside = at <= range.len && len <= range.len - at;
        let pinned = || Pinned { start: range.start.wrapping_add(at), _memory: Some(range.clone()) };
        (inside && allows(*access)).then(pinned)
    }

    /// The memory that covers a range of addresses and `allows` what is to be done, of any number.
    pub(in crate::comm) fn find(&self, start: u64, len: usize, allows: impl Fn(A) -> bool) -> Option<Pinned> {
        self.ranges.keys().find_map(|&number| self.pin(number, start, len, &allows))
    }

    /// Returns true if a transfer uses any of it.
    pub(in crate::comm) fn is_in_use(&self) -> bool {
        self.ranges.values().any(|(_, range)| Arc::strong_count(range) > 1)
    }
}
