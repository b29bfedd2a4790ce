//! Registered memory: keys, ranges and what may be done there.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    comm::ib::device::{Access, DeviceError, DeviceRegion, Result},
    memory::kernels,
};

/// The regions of one protection domain.
#[derive(Debug, Default)]
pub(super) struct Keys {
    regions: BTreeMap<u64, Arc<KeyedMemory>>,
    /// Bytes that may still be pinned.
    left: usize,
}

#[derive(Debug)]
struct KeyedMemory {
    start: *mut u8,
    len: usize,
    access: Access,
    /// It may be the fabric's own.
    _bytes: Box<[u8]>,
}

// SAFETY: the pointer leads to memory that its owner gave up to the adapter by `Device::register`, from any thread, or to the bytes
// beside it; only kernels made for races access it.
unsafe impl Send for KeyedMemory {}
// SAFETY: as above; nothing in it changes.
unsafe impl Sync for KeyedMemory {}

/// Memory that a transfer uses: it cannot be deregistered while this value lives.
#[derive(Debug)]
pub(super) struct Pinned {
    start: *mut u8,
    _memory: Option<Arc<KeyedMemory>>,
}

// SAFETY: the pointer is that of the memory beside it.
unsafe impl Send for Pinned {}

impl Pinned {
    /// Memory of its own, with these bytes.
    ///
    /// # Safety
    /// They are readable.
    pub(super) unsafe fn copy_of(start: *const u8, len: usize) -> Self {
        let mut bytes = vec![0; len].into_boxed_slice();
        let copy = bytes.as_mut_ptr();
        // SAFETY: the caller's promise; the copy is private.
        unsafe { kernels::copy(copy, start, len) };
        Pinned { start: copy, _memory: Some(Arc::new(KeyedMemory { start: copy, len, access: Access::NONE, _bytes: bytes })) }
    }

    pub(super) fn start(&self) -> *mut u8 {
        self.start
    }
}

/// A region that was taken out of the table.
#[derive(Debug)]
pub(super) struct Removed(Arc<KeyedMemory>);

impl Removed {
    /// Returns true if a transfer still uses it.
    pub(super) fn is_in_use(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }
}

/// The key, of two, that a region is found by.
#[derive(Clone, Copy, Debug)]
pub(super) enum By {
    Local,
    Remote,
}

impl Keys {
    /// Keys of a device that may pin `left` bytes.
    pub(super) fn new(left: usize) -> Self {
        Keys { regions: BTreeMap::new(), left }
    }

    /// Adds a region under a number that none had before.
    pub(super) fn add(&mut self, number: u32, start: *mut u8, len: usize, access: Access) -> Result<DeviceRegion> {
        let changes = access.allows(Access::REMOTE_WRITE) || access.allows(Access::REMOTE_ATOMIC);
        if changes && !access.allows(Access::LOCAL_WRITE) {
            return Err(DeviceError::Invalid("memory that peers may change must be open to local writes too"));
        }
        let too_much = || DeviceError::Memory { asked: len, allowed: format!("{} more are allowed", self.left) };
        self.left = self.left.checked_sub(len).ok_or_else(too_much)?;
        self.regions.insert(number.into(), Arc::new(KeyedMemory { start, len, access, _bytes: Box::default() }));
        Ok(DeviceRegion { local: 2 * number, remote: 2 * number + 1, id: number.into() })
    }

    /// Takes a region out: no key leads to it any more.
    pub(super) fn remove(&mut self, id: u64) -> Result<Removed> {
        let memory = self.regions.remove(&id).ok_or(DeviceError::Unknown { what: "region", id })?;
        self.left += memory.len;
        Ok(Removed(memory))
    }

    /// Memory that a key names, if that covers the range and allows all of `needs`.
    pub(super) fn pin(&self, by: By, key: u32, start: u64, len: usize, needs: Access) -> Option<Pinned> {
        if len == 0 {
            return Some(Pinned { start: std::ptr::dangling_mut(), _memory: None });
        }
        let memory = self.regions.get(&u64::from(key / 2)).filter(|_| key % 2 == by as u32)?;
        let at = usize::try_from(start.checked_sub(memory.start.addr() as u64)?).ok()?;
        let inside = at <= memory.len && len <= memory.len - at;
        let pinned = || Pinned { start: memory.start.wrapping_add(at), _memory: Some(memory.clone()) };
        (inside && memory.access.allows(needs)).then(pinned)
    }

    /// Returns true if a transfer uses any region.
    pub(super) fn are_in_use(&self) -> bool {
        self.regions.values().any(|memory| Arc::strong_count(memory) > 1)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_good_for_its_range_and_its_access_only() {
        let mut bytes = [0_u8; 64];
        let (start, mut keys) = (bytes.as_mut_ptr(), Keys::new(100));
        let access = Access::LOCAL_WRITE | Access::REMOTE_READ;
        let region = keys.add(5, start, 64, access).unwrap();
        let at = |offset: u64| (start.addr() as u64).wrapping_add(offset);
        let found = |by, key, offset, len, needs| keys.pin(by, key, at(offset), len, needs).map(|pinned| pinned.start());
        assert_eq!(found(By::Local, region.local, 10, 54, Access::LOCAL_WRITE), Some(start.wrapping_add(10)));
        assert_eq!(found(By::Remote, region.remote, 0, 64, Access::REMOTE_READ), Some(start));
        for (by, key, offset, len, needs) in [
            (By::Remote, region.local, 0, 1, Access::NONE),
            (By::Local, region.remote, 0, 1, Access::NONE),
            (By::Remote, region.remote + 2, 0, 1, Access::NONE),
            (By::Remote, region.remote, 0, 65, Access::NONE),
            (By::Remote, region.remote, 64, 1, Access::NONE),
            (By::Remote, region.remote, u64::MAX, 1, Access::NONE),
            (By::Remote, region.remote, 1, usize::MAX, Access::NONE),
            (By::Remote, region.remote, 0, 1, Access::REMOTE_WRITE),
        ] {
            assert_eq!(found(by, key, offset, len, needs), None, "{by:?} {key} at {offset}, {len} bytes, {needs:?}");
        }
    }

    #[test]
    fn memory_is_pinned_up_to_a_limit_and_given_back() {
        let mut bytes = [0_u8; 64];
        let (start, mut keys) = (bytes.as_mut_ptr(), Keys::new(100));
        let region = keys.add(1, start, 64, Access::NONE).unwrap();
        let refused = keys.add(2, start, 64, Access::NONE).unwrap_err();
        assert_eq!(refused.to_string(), "the adapter needs to pin 64 bytes; 36 more are allowed");
        let used = keys.pin(By::Local, region.local, start.addr() as u64, 1, Access::NONE);
        assert!(keys.are_in_use());
        let removed = keys.remove(region.id).unwrap();
        assert!(removed.is_in_use() && !keys.are_in_use());
        drop(used);
        assert!(!removed.is_in_use());
        assert_eq!(keys.remove(region.id).unwrap_err(), DeviceError::Unknown { what: "region", id: 1 });
        keys.add(2, start, 64, Access::NONE).unwrap();
        assert!(keys.add(3, start, 1, Access::REMOTE_WRITE).is_err());
    }
}
