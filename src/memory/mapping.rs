//! Address space that the ranks of a node share.
//!
//! A memory file without a name is mapped once, as large as the address space allows; pages cost nothing until they are committed. The
//! kernel frees the file with its last user, however the processes end.
//!
//! Measured when memory is short: a file of `memfd_create` has no limit of its own, so a page beyond a cgroup's limit means the OOM
//! killer, never an error, and a size beyond `RLIMIT_FSIZE` kills by `SIGXFSZ`. So [`Mapping::reserve`] looks at that limit, and callers
//! of `commit` at the other [`limits`]. A file with large pages is limited to the size of all memory: beyond it `fallocate` fails, and a
//! touch of a hole is `SIGBUS`, so memory is committed before it is touched. If a reservation fails (`ulimit -v`, a checker), the caller
//! halves it.
//!
//! # A mapping that is retired
//!
//! A job may end while its program still holds a handle. A call of such a handle finds the job over before it touches memory. But another
//! thread may be past that test, or inside an epoch with a slice of its part. So [`Mapping::retire`] closes the file and unmaps only
//! addresses that were never committed, which are nearly all. Pages are given back if no object is left whose memory they are; otherwise
//! they live as long as the last handle.

use std::{
    collections::BTreeMap,
    io,
    ops::Range,
    ptr::NonNull,
    sync::{
        Mutex, OnceLock, PoisonError, RwLock,
        atomic::{Ordering, compiler_fence},
    },
};

use super::{
    children::{self, Instead, Kept},
    large_pages::{self, LARGE},
    limits,
};
use rustix::{
    fd::{AsFd, AsRawFd, OwnedFd, RawFd},
    fs::{FallocateFlags, MemfdFlags, fallocate, ftruncate, memfd_create},
    mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap},
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
    granule: usize,
    /// None once it is retired.
    file: RwLock<Option<OwnedFd>>,
    /// Where ranges begin and end that this process has committed, whether or not it has released them.
    used: Mutex<BTreeMap<usize, usize>>,
    /// What is still mapped, once it is retired.
    left: OnceLock<Vec<Range<usize>>>,
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
    /// The file, for another try, and the kernel's `ENOMEM` or `EINVAL` when the address space is too small; a size that `RLIMIT_FSIZE` forbids.
    pub(crate) fn reserve(file: MemoryFile, len: usize) -> Result<Self, (MemoryFile, io::Error)> {
        match Self::map(&file.file, len) {
            Ok(base) => Ok(Mapping {
                base,
                len,
                granule: file.granule,
                file: RwLock::new(Some(file.file)),
                used: Mutex::default(),
                left: OnceLock::new(),
                kept: OnceLock::new(),
            }),
            Err(error) => Err((file, error)),
        }
    }

    fn map(file: &OwnedFd, len: usize) -> io::Result<NonNull<u8>> {
        limits::check_file(len as u64)?;
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
        self.granule
    }

    /// The number of the file's descriptor, for other processes; −1 once it is retired.
    pub(crate) fn descriptor(&self) -> RawFd {
        self.file.read().unwrap_or_else(PoisonError::into_inner).as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }

    /// Whether pages are large where the kernel finds any.
    pub(crate) fn has_large_pages(&self) -> bool {
        self.granule == LARGE
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
        let file = self.file.read().unwrap_or_else(PoisonError::into_inner);
        let file = file.as_ref().ok_or_else(retired)?;
        // SAFETY: the mapping and its file are ours, and `retire` and `drop` give the entry back before they end.
        let kept = unsafe { children::keep(self.base, self.len, file.as_fd(), instead) }?;
        self.kept.set(kept).expect("a mapping is kept once");
        Ok(())
    }

    /// Backs a range with pages; contents that it had stay.
    ///
    /// # Errors
    /// The kernel's refusal; a mapping that is retired.
    pub(crate) fn commit(&self, range: Range<usize>) -> io::Result<()> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let mut whole = range.clone();
        // Ranges that touch become one.
        while let Some((&start, &end)) = used.range(..=whole.end).next_back().filter(|&(_, &end)| end >= whole.start) {
            used.remove(&start);
            whole = start.min(whole.start)..end.max(whole.end);
        }
        used.insert(whole.start, whole.end);
        drop(used);
        self.allocate(FallocateFlags::empty(), range)
    }

    /// Gives the pages of a range back; it reads as zeros from now on.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub(crate) fn release(&self, range: Range<usize>) -> io::Result<()> {
        let done = self.allocate(HOLE, range);
        // The call is made by assembly that, to the compiler, writes no memory: what it last stored there must be read again.
        compiler_fence(Ordering::SeqCst);
        done
    }

    /// The job is over. Closes the file and gives `pages` back, which nobody reads any more. Before `segments` are control pages. If this is
    /// the `only` process that has the mapping, addresses of the segments that were never committed are no longer reserved.
    pub(crate) fn retire(&self, segments: Range<usize>, pages: Range<usize>, only: bool) {
        let Some(file) = self.file.write().unwrap_or_else(PoisonError::into_inner).take() else { return };
        // Pages that the kernel does not take go with the last handle.
        let _ = allocate(&file, HOLE, pages);
        if let Some(kept) = self.kept.get() {
            kept.give_back();
        }
        // SAFETY: mapped, and the advice changes nothing in this process.
        let _ = unsafe { madvise(self.base.as_ptr().cast(), segments.start, Advice::LinuxDoFork) };
        drop(file);
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let mut left = vec![0..segments.start, segments.end..self.len];
        let mut from = segments.start;
        let clamp = |at: usize| at.clamp(segments.start, segments.end);
        let inside = used.iter().map(|(&start, &end)| (clamp(start), clamp(end)));
        for (start, end) in inside.chain([(segments.end, segments.end)]) {
            // No pointer leads there: what is created is committed, and what goes without contents is never touched.
            if !only || !self.unmap(from..start) {
                left.push(from..start);
            }
            left.push(start..end);
            from = end;
        }
        left.retain(|range| !range.is_empty());
        self.left.set(left).expect("a mapping is retired once");
    }

    /// Lets go of a range, to which no pointer leads. False if the kernel refuses.
    fn unmap(&self, range: Range<usize>) -> bool {
        // SAFETY: inside the mapping, or in a child inside what took its place; the caller's promise.
        range.is_empty() || unsafe { munmap(self.base.as_ptr().wrapping_add(range.start).cast(), range.len()) }.is_ok()
    }

    fn allocate(&self, flags: FallocateFlags, range: Range<usize>) -> io::Result<()> {
        assert!(range.start <= range.end && range.end <= self.len, "range {range:?} outside a mapping of {} bytes", self.len);
        let file = self.file.read().unwrap_or_else(PoisonError::into_inner);
        allocate(file.as_ref().ok_or_else(retired)?, flags, range)
    }
}

/// Gives pages back.
const HOLE: FallocateFlags = FallocateFlags::PUNCH_HOLE.union(FallocateFlags::KEEP_SIZE);

fn allocate(file: &OwnedFd, flags: FallocateFlags, range: Range<usize>) -> io::Result<()> {
    while !range.is_empty() {
        match fallocate(file, flags, range.start as u64, range.len() as u64) {
            Err(rustix::io::Errno::INTR) => {}
            other => return Ok(other?),
        }
    }
    Ok(())
}

/// Memory of a job that is over.
fn retired() -> io::Error {
    io::Error::other("the memory belongs to a job that is over")
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // Nobody may hold pointers into it beyond the value's life.
        let Some(left) = self.left.get() else {
            if let Some(kept) = self.kept.get() {
                kept.give_back();
            }
            self.unmap(0..self.len);
            return;
        };
        left.iter().for_each(|range| {
            self.unmap(range.clone());
        });
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

    /// Whether the file of this number is mapped at an address. Other tests map what they like.
    fn is_mapped(file: u64, address: usize) -> bool {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let number = |text| usize::from_str_radix(text, 16).unwrap();
        let of_file = maps.lines().filter(|line| line.split_whitespace().nth(4) == Some(&file.to_string()));
        let mut ranges = of_file.filter_map(|line| line.split(' ').next()?.split_once('-'));
        ranges.any(|(start, end)| (number(start)..number(end)).contains(&address))
    }

    #[test]
    fn a_retired_mapping_keeps_only_addresses_that_were_committed() {
        for gives_pages_back in [true, false] {
            let file = MemoryFile::new(false).unwrap();
            let number = rustix::fs::fstat(&file.file).unwrap().st_ino;
            let is_mapped = |address| is_mapped(number, address);
            let mapping = Mapping::reserve(file, 1 << 30).unwrap();
            let granule = mapping.granule();
            for piece in [3, 1, 5, 2, 4] {
                mapping.commit(piece * granule..(piece + 1) * granule).unwrap();
            }
            mapping.commit(9 * granule..10 * granule).unwrap();
            // As control pages, next to the first segment.
            mapping.commit(0..granule).unwrap();
            mapping.release(2 * granule..6 * granule).unwrap();
            let at = |piece: usize| mapping.base().as_ptr().wrapping_add(piece * granule);
            // SAFETY: committed, and nobody else's.
            unsafe { at(1).write_volatile(7) };
            let last = (1 << 30) / granule - 1;
            assert!([0, 1, 5, 6, 8, 9, 10, last].iter().all(|&piece| is_mapped(at(piece).addr())));
            let (segments, expected) = (granule..1 << 30, if gives_pages_back { 0 } else { 7 });
            let retire = || mapping.retire(segments.clone(), if gives_pages_back { segments.clone() } else { 0..0 }, true);
            retire();
            let mapped: Vec<usize> = (0..12).chain([last]).filter(|&piece| is_mapped(at(piece).addr())).collect();
            assert_eq!(mapped, [0, 1, 2, 3, 4, 5, 9]);
            // SAFETY: still mapped.
            assert_eq!(unsafe { at(1).read_volatile() }, expected);
            assert!(mapping.descriptor() == -1 && mapping.commit(0..granule).is_err() && mapping.release(0..granule).is_err());
            retire();
            let first = at(0).addr();
            drop(mapping);
            assert!(!is_mapped(first) && !is_mapped(first + granule));
        }
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
