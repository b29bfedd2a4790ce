//! Address space that the ranks of a node share.
//!
//! A memory file without a name (`memfd_create`) is mapped once, as large as the address space allows; its pages cost nothing
//! until they are committed. Nothing is left behind, however the processes end: the kernel frees the file with its last user.
//!
//! What happens when memory is short was measured: a memory file has no limit of its own, so a page beyond a cgroup's limit
//! means the OOM killer, never an error, and a size beyond `RLIMIT_FSIZE` kills by `SIGXFSZ`. So [`Mapping::reserve`] looks at
//! that limit first, and who commits looks at [`limits`](super::limits) first. Huge reservations can fail under
//! `ulimit -v` or a checker; the caller halves and tries again.

use std::{
    io,
    ops::Range,
    ptr::NonNull,
    sync::atomic::{Ordering, compiler_fence},
};

use rustix::{
    fd::OwnedFd,
    fs::{FallocateFlags, MemfdFlags, fallocate, ftruncate, memfd_create},
    mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap},
    process::{Resource, getrlimit},
};

/// A shared mapping, unmapped when dropped.
#[derive(Debug)]
pub(crate) struct Mapping {
    base: NonNull<u8>,
    len: usize,
    file: OwnedFd,
}

// SAFETY: the mapping is plain memory that lives as long as the value; it is only handed out as a raw pointer, and whoever
// uses that pointer answers for the accesses.
unsafe impl Send for Mapping {}
// SAFETY: as above; the methods call the kernel only.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Reserves `len` bytes of zeros that no page backs yet.
    ///
    /// # Errors
    /// The kernel's `ENOMEM` or `EINVAL` when the address space is too small, `EFBIG` when `RLIMIT_FSIZE` forbids the size.
    pub(crate) fn reserve(len: usize) -> io::Result<Self> {
        if getrlimit(Resource::Fsize).current.is_some_and(|limit| limit < len as u64) {
            return Err(io::Error::from(rustix::io::Errno::FBIG));
        }
        let file = memfd_create(c"global-arrays", MemfdFlags::CLOEXEC)?;
        ftruncate(&file, len as u64)?;
        // SAFETY: a new mapping at an address that the kernel chooses replaces nothing.
        let base = unsafe {
            mmap(std::ptr::null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED | MapFlags::NORESERVE, &file, 0)?
        };
        // Advice only: a core file without other ranks' data, large pages where the kernel lets them. Refusal costs nothing.
        // SAFETY: the range is the mapping just made; neither advice changes contents.
        let _ = unsafe { madvise(base, len, Advice::LinuxDontDump) };
        // SAFETY: as above.
        let _ = unsafe { madvise(base, len, Advice::LinuxHugepage) };
        let base = NonNull::new(base.cast()).expect("mmap never returns address zero");
        Ok(Mapping { base, len, file })
    }

    /// First byte.
    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Backs a range with pages; contents that it had stay.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub(crate) fn commit(&self, range: Range<usize>) -> io::Result<()> {
        self.allocate(FallocateFlags::empty(), range)
    }

    /// Gives the pages of a range back; it reads as zeros from now on.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub(crate) fn release(&self, range: Range<usize>) -> io::Result<()> {
        let done = self.allocate(FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, range);
        // The call is made by assembly that, to the compiler, writes no memory: what it last stored there must be read again.
        compiler_fence(Ordering::SeqCst);
        done
    }

    fn allocate(&self, flags: FallocateFlags, range: Range<usize>) -> io::Result<()> {
        assert!(range.start <= range.end && range.end <= self.len, "range {range:?} outside a mapping of {} bytes", self.len);
        if range.is_empty() {
            return Ok(());
        }
        loop {
            match fallocate(&self.file, flags, range.start as u64, (range.end - range.start) as u64) {
                Err(rustix::io::Errno::INTR) => {}
                other => return Ok(other?),
            }
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range is the one mapped in `reserve`, and nobody may hold pointers into it beyond the value's life.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.len) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn committed_pages_keep_their_contents_and_released_ones_read_as_zero() {
        let mapping = Mapping::reserve(1 << 40).or_else(|_| Mapping::reserve(1 << 30)).unwrap();
        mapping.commit(0..8192).unwrap();
        let first = mapping.base().as_ptr();
        // SAFETY: the byte lies inside the committed range of a mapping that nobody else uses.
        unsafe { first.write(7) };
        mapping.commit(0..16384).unwrap();
        // SAFETY: as above.
        assert_eq!(unsafe { first.read() }, 7);
        mapping.release(0..8192).unwrap();
        // SAFETY: as above; a hole reads as zeros.
        assert_eq!(unsafe { first.read() }, 0);
    }

    #[test]
    fn a_reservation_beyond_the_address_space_is_an_error() {
        assert!(Mapping::reserve(1 << 60).is_err());
    }
}
