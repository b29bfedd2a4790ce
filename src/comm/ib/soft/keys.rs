//! Registered memory: keys, and what they allow.

use crate::comm::{
    ib::device::{Access, DeviceError, DeviceRegion, Result},
    soft::fabric::{Closed, OpenMemory, Pinned},
};

/// The regions of one protection domain.
#[derive(Debug, Default)]
pub(super) struct Keys(OpenMemory<Access>);

/// The key, of two, that a region is found by.
#[derive(Clone, Copy, Debug)]
pub(super) enum By {
    Local,
    Remote,
}

impl Keys {
    /// Keys of a device that may pin `left` bytes.
    pub(super) fn new(left: usize) -> Self {
        Keys(OpenMemory::new(left))
    }

    /// Adds a region under a number that none had before.
    ///
    /// # Safety
    /// As [`Device::register`](crate::comm::ib::device::Device::register).
    pub(super) unsafe fn add(&mut self, number: u32, start: *mut u8, len: usize, access: Access) -> Result<DeviceRegion> {
        let changes = access.allows(Access::REMOTE_WRITE) || access.allows(Access::REMOTE_ATOMIC);
        if changes && !access.allows(Access::LOCAL_WRITE) {
            return Err(DeviceError::Invalid("memory that peers may change must be open to local writes too"));
        }
        // SAFETY: the caller's promise.
        let opened = unsafe { self.0.open(number.into(), start, len, access) };
        opened.map_err(|left| DeviceError::Memory { asked: len, allowed: format!("{left} more are allowed") })?;
        Ok(DeviceRegion { local: 2 * number, remote: 2 * number + 1, id: number.into() })
    }

    /// Takes a region out: no key leads to it any more.
    pub(super) fn remove(&mut self, id: u64) -> Result<Closed> {
        self.0.close(id).ok_or(DeviceError::Unknown { what: "region", id })
    }

    /// Memory that a key names, if that covers the range and allows all of `needs`.
    pub(super) fn pin(&self, by: By, key: u32, start: u64, len: usize, needs: Access) -> Option<Pinned> {
        if len == 0 {
            return Some(Pinned::nothing());
        }
        let number = Some(u64::from(key / 2)).filter(|_| key % 2 == by as u32)?;
        self.0.pin(number, start, len, |access| access.allows(needs))
    }

    /// Returns true if a transfer uses any region.
    pub(super) fn are_in_use(&self) -> bool {
        self.0.is_in_use()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn add(keys: &mut Keys, number: u32, bytes: &mut [u8], access: Access) -> Result<DeviceRegion> {
        // SAFETY: no transfer uses the bytes.
        unsafe { keys.add(number, bytes.as_mut_ptr(), bytes.len(), access) }
    }

    #[test]
    fn a_key_is_good_for_its_range_and_its_access_only() {
        let mut bytes = [0_u8; 64];
        let (start, mut keys) = (bytes.as_mut_ptr(), Keys::new(100));
        let access = Access::LOCAL_WRITE | Access::REMOTE_READ;
        let region = add(&mut keys, 5, &mut bytes, access).unwrap();
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
        let region = add(&mut keys, 1, &mut bytes, Access::NONE).unwrap();
        let refused = add(&mut keys, 2, &mut bytes, Access::NONE).unwrap_err();
        assert_eq!(refused.to_string(), "the adapter needs to pin 64 bytes; 36 more are allowed");
        let used = keys.pin(By::Local, region.local, start.addr() as u64, 1, Access::NONE);
        assert!(keys.are_in_use());
        let removed = keys.remove(region.id).unwrap();
        assert!(removed.is_in_use() && !keys.are_in_use());
        drop(used);
        assert!(!removed.is_in_use());
        assert_eq!(keys.remove(region.id).unwrap_err(), DeviceError::Unknown { what: "region", id: 1 });
        add(&mut keys, 2, &mut bytes, Access::NONE).unwrap();
        assert!(add(&mut keys, 3, &mut bytes[..1], Access::REMOTE_WRITE).is_err());
    }
}
