//! Address space that the ranks of a node share.
//!
//! A memory file without a name is mapped once, as large as the address space allows; its pages cost nothing
//! until they are committed. Nothing is left behind, however the processes end: the kernel frees the file with its last user.
//!
//! What happens when memory is short was measured: a file of `memfd_create` has no limit of its own, so a page beyond a cgroup's
//! limit means the OOM killer, never an error, and a size beyond `RLIMIT_FSIZE` kills by `SIGXFSZ`. So [`Mapping::reserve`] looks
//! at that limit first, and who commits looks at [`limits`](super::limits) first. A file with large pages has the size of all
//! memory as its limit: beyond it `fallocate` fails, and a touch of a hole would be `SIGBUS`, so what is touched is committed. Huge reservations can fail under
//! `ulimit -v` or a checker; the caller halves and tries again.

use std::{
    io,
    ops::Range,
    ptr::NonNull,
    sync::{
        OnceLock,
        atomic::{Ordering, compiler_fence},
    },
};

use super::{
    children::{self, Instead, Kept},
    large_pages::{self, LARGE},
};
use rustix::fd::BorrowedFd;
use rustix::{
    fd::{AsFd, OwnedFd},
    fs::{FallocateFlags, MemfdFlags, fallocate, ftruncate, memfd_create},
    mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap},
    process::{Resource, getrlimit},
};

/// Pages are committed in pieces of this size where they are small, so that small arrays do not cost a call into the kernel each.
const PIECE: usize = 1 << 16;

/// What a mapping is made of: a file without a name, and how much of it is committed at once.
#[derive(Debug)]
pub(crate) struct MemoryFile {
    file: OwnedFd,
    granule: usize,
}

impl MemoryFile {
    /// A file with large pages if they are wanted and can be had.
    ///
    /// # Errors
    /// The kernel's, which has no memory files or no file descriptors left.
    pub(crate) fn new(large: bool) -> io::Result<Self> {
        if large && let Some(file) = large_pages::file() {
            return Ok(MemoryFile { file, granule: LARGE });
        }
        Ok(MemoryFile { file: memfd_create(c"global-arrays", MemfdFlags::CLOEXEC)?, granule: PIECE })
    }

    /// A file that another process made, with its granule.
    pub(crate) fn opened(file: OwnedFd, granule: usize) -> Self {
        MemoryFile { file, granule }
    }

    /// Bytes to commit and release at once. A power of two.
    pub(crate) fn granule(&self) -> usize {
        self.granule
    }
}

/// A shared mapping, unmapped when dropped.
#[derive(Debug)]
pub(crate) struct Mapping {
    base: NonNull<u8>,
    len: usize,
    file: MemoryFile,
    /// Children of this process do not get it.
    kept: OnceLock<&'static Kept>,
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
    /// The file, for another try, and the kernel's `ENOMEM` or `EINVAL` when the address space is too small, `EFBIG` when `RLIMIT_FSIZE` forbids the size.
    pub(crate) fn reserve(file: MemoryFile, len: usize) -> Result<Self, (MemoryFile, io::Error)> {
        match Self::map(&file.file, len) {
            Ok(base) => Ok(Mapping { base, len, file, kept: OnceLock::new() }),
            Err(error) => Err((file, error)),
        }
    }

    fn map(file: &OwnedFd, len: usize) -> io::Result<NonNull<u8>> {
        if getrlimit(Resource::Fsize).current.is_some_and(|limit| limit < len as u64) {
            return Err(io::Error::from(rustix::io::Errno::FBIG));
        }
        ftruncate(file, len as u64)?;
        // SAFETY: a new mapping at an address that the kernel chooses replaces nothing.
        let base = unsafe {
            mmap(std::ptr::null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED | MapFlags::NORESERVE, file, 0)?
        };
        // Advice only: a core file without other ranks' data, large pages where the kernel lets them. Refusal costs nothing.
        // SAFETY: the range is the mapping just made; neither advice changes contents.
        let _ = unsafe { madvise(base, len, Advice::LinuxDontDump) };
        // SAFETY: as above.
        let _ = unsafe { madvise(base, len, Advice::LinuxHugepage) };
        Ok(NonNull::new(base.cast()).expect("mmap never returns address zero"))
    }

    /// Bytes to commit and release at once.
    pub(crate) fn granule(&self) -> usize {
        self.file.granule()
    }

    /// The file.
    pub(crate) fn file(&self) -> BorrowedFd<'_> {
        self.file.file.as_fd()
    }

    /// Whether pages are large where the kernel finds any.
    pub(crate) fn has_large_pages(&self) -> bool {
        self.file.granule() == LARGE
    }

    /// First byte.
    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Keeps the mapping from the children that this process makes from now on; once for each process that has it.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub(crate) fn keep_from_children(&self, instead: Instead) -> io::Result<()> {
        // SAFETY: the mapping and its file are ours, and `drop` gives the entry back before they end.
        let kept = unsafe { children::keep(self.base, self.len, self.file.file.as_fd(), instead) }?;
        self.kept.set(kept).expect("a mapping is kept once");
        Ok(())
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
            match fallocate(&self.file.file, flags, range.start as u64, (range.end - range.start) as u64) {
                Err(rustix::io::Errno::INTR) => {}
                other => return Ok(other?),
            }
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if let Some(kept) = self.kept.get() {
            kept.give_back();
        }
        // SAFETY: the range is the one mapped in `reserve`, or in a child what took its place, and nobody may hold pointers into it beyond the value's life.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.len) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn committed_pages_keep_their_contents_and_released_ones_read_as_zero() {
        for large in [false, true] {
            let file = MemoryFile::new(large).unwrap();
            let mapping = Mapping::reserve(file, 1 << 40).or_else(|(file, _)| Mapping::reserve(file, 1 << 30)).unwrap();
            commits_and_releases(&mapping);
        }
    }

    fn commits_and_releases(mapping: &Mapping) {
        let granule = mapping.granule();
        mapping.commit(0..granule).unwrap();
        let first = mapping.base().as_ptr();
        // SAFETY: the byte lies inside the committed range of a mapping that nobody else uses.
        unsafe { first.write_volatile(7) };
        mapping.commit(0..2 * granule).unwrap();
        // SAFETY: as above.
        assert_eq!(unsafe { first.read_volatile() }, 7);
        mapping.release(0..granule).unwrap();
        // SAFETY: as above; a hole reads as zeros.
        assert_eq!(unsafe { first.read_volatile() }, 0);
    }

    #[test]
    fn children_of_children_find_pages_of_their_own_in_a_kept_mapping_s_place() {
        /// Forks; the child exits with what the function returns, which is the answer.
        fn child(status: impl FnOnce() -> i32) -> i32 {
            // SAFETY: the child makes system calls and touches memory that it has, nothing else.
            let pid = unsafe { libc::fork() };
            if pid == 0 {
                // SAFETY: ends the process.
                unsafe { libc::_exit(status()) }
            }
            let mut status = 0;
            // SAFETY: a child of ours, and a number of our own.
            assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
            status
        }
        if large_pages::is_under_valgrind() {
            return eprintln!("skipped: valgrind does not know that a child has not got the mapping");
        }
        let mapping = Mapping::reserve(MemoryFile::new(false).unwrap(), 1 << 20).unwrap();
        let granule = mapping.granule();
        mapping.commit(0..2 * granule).unwrap();
        let first = mapping.base().as_ptr();
        // SAFETY: committed, and nobody else's.
        unsafe { first.write_volatile(7) };
        // SAFETY: the first of the private bytes.
        let mark = |first: NonNull<u8>| unsafe { first.write_volatile(5) };
        mapping.keep_from_children(Instead { private: granule, mark }).unwrap();
        let touch = |new: u8| {
            // SAFETY: mapped in this process and its children.
            let old = unsafe { first.read_volatile() };
            // SAFETY: as above.
            unsafe { first.write_volatile(new) };
            i32::from(old)
        };
        let end = child(|| {
            let (marked, below) = (touch(6), child(|| touch(9)));
            // The file is the child's own too.
            let released = mapping.release(0..granule).is_ok();
            i32::from(!(marked == 5 && libc::WEXITSTATUS(below) == 6 && released && touch(6) == 6))
        });
        assert_eq!(end, 0);
        let end = child(|| {
            // A checker's handler would end the process in its own way.
            // SAFETY: what the signal does by itself.
            unsafe { libc::signal(libc::SIGSEGV, libc::SIG_DFL) };
            // SAFETY: not mapped for access, which is the point.
            unsafe { first.add(granule).read_volatile() }.into()
        });
        assert_eq!(libc::WTERMSIG(end), libc::SIGSEGV);
        assert_eq!(touch(7), 7);
    }

    #[test]
    fn a_reservation_beyond_the_address_space_is_an_error() {
        assert!(Mapping::reserve(MemoryFile::new(false).unwrap(), 1 << 60).is_err());
    }
}
