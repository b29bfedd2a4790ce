//! Mappings that children of this process do not get.
//!
//! After `fork`, two processes would hold `&mut [T]` of the same shared pages (`array::epoch`). Two steps prevent this:
//!
//! 1. `MADV_DONTFORK`: the kernel leaves the range out of the child's address space, however the child is made.
//! 2. The child could map other memory at the same place later. So libc's `fork` runs a handler in the child (`pthread_atfork`) that
//!    takes the place, before the fork returns there: without access, but for private pages at the beginning, where the mapping's owner
//!    leaves a mark for its copied handles. The handler also puts an empty file in the place of the mapping's own, so that a child keeps
//!    no memory, and cannot change any.
//!
//! The list below belongs to the process, because handlers take no arguments. The handler may take no lock and no memory, because other
//! threads of the parent may have held either. So entries are never freed, only used again.

use std::{
    cell::UnsafeCell,
    io,
    ptr::NonNull,
    sync::atomic::{AtomicPtr, AtomicU32, Ordering},
};

use rustix::{
    fd::{AsRawFd, BorrowedFd, RawFd},
    mm::{Advice, madvise},
};

/// What a child gets in the place of a mapping.
#[derive(Clone, Copy)]
pub(crate) struct Instead {
    /// Bytes at the beginning that are private memory of the child, zero; whole pages.
    pub(crate) private: usize,
    /// Called in the child with the first of them; it may neither lock nor allocate.
    pub(crate) mark: fn(NonNull<u8>),
}

/// Nobody uses the entry.
const FREE: u32 = 0;
/// It is being filled in.
const TAKEN: u32 = 1;
/// It describes a mapping of this process.
const KEPT: u32 = 2;
/// It describes what stands in the place of a mapping of a parent.
const REPLACED: u32 = 3;

/// An entry of the list; in one page, so that a child that is made while it changes sees it as it was at one moment.
#[repr(align(128))]
pub(super) struct Kept {
    state: AtomicU32,
    /// Written by who took the entry, read by a child in which it is kept.
    what: UnsafeCell<What>,
    next: Option<&'static Kept>,
}

#[derive(Clone, Copy)]
struct What {
    base: NonNull<u8>,
    len: usize,
    file: RawFd,
    instead: Instead,
}

// SAFETY: `what` is written between two changes of `state` by the one thread that took the entry, and read by the handler, which
// runs in a process with one thread.
unsafe impl Sync for Kept {}

/// The latest entry; the others follow it.
static LIST: AtomicPtr<Kept> = AtomicPtr::new(std::ptr::null_mut());

impl std::fmt::Debug for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Kept")
    }
}

/// Keeps a mapping of `len` bytes of a file from the children that this process makes from now on, until the entry is given back.
///
/// # Errors
/// The kernel's refusal, or libc's of the handler.
///
/// # Safety
/// The range is a mapping of the caller that lives, as the file does, until the entry is given back.
pub(super) unsafe fn keep(base: NonNull<u8>, len: usize, file: BorrowedFd<'_>, instead: Instead) -> io::Result<&'static Kept> {
    watch_forks()?;
    // Before the entry is there: a child that is made between the two has no handle yet, and its handler must find the place empty.
    // SAFETY: the caller's range; the advice changes nothing in this process.
    unsafe { madvise(base.as_ptr().cast(), len, Advice::LinuxDontFork) }?;
    let what = What { base, len, file: file.as_raw_fd(), instead };
    let kept = take_free().unwrap_or_else(|| add(what));
    // SAFETY: this thread took the entry, and it is not kept yet.
    unsafe { kept.what.get().write(what) };
    // Release pairs with the Acquire in `replace`.
    kept.state.store(KEPT, Ordering::Release);
    Ok(kept)
}

impl Kept {
    /// The mapping is about to end.
    pub(super) fn give_back(&self) {
        self.state.store(FREE, Ordering::Release);
    }

    /// In a child: takes the place of a mapping of its parent.
    fn replace(&self) {
        if self.state.load(Ordering::Acquire) != KEPT {
            return;
        }
        // SAFETY: kept, so filled in; this is the only thread.
        let What { base, len, file, instead } = unsafe { *self.what.get() };
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE;
        // SAFETY: a new mapping that replaces nothing.
        let found = unsafe { libc::mmap(base.as_ptr().cast(), len, libc::PROT_NONE, flags, -1, 0) };
        // SAFETY: the beginning of the mapping just made, if it was made there.
        let opened = found == base.as_ptr().cast()
            && unsafe { libc::mprotect(found, instead.private, libc::PROT_READ | libc::PROT_WRITE) } == 0;
        if !opened || !empty(file) {
            give_up();
        }
        (instead.mark)(base);
        self.state.store(REPLACED, Ordering::Release);
    }
}

/// An entry that nobody uses, now the caller's.
fn take_free() -> Option<&'static Kept> {
    let take = |kept: &&'static Kept| kept.state.compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed).is_ok();
    entries().find(take)
}

fn add(what: What) -> &'static Kept {
    let kept = Box::leak(Box::new(Kept { state: AtomicU32::new(TAKEN), what: UnsafeCell::new(what), next: None }));
    let own: *mut Kept = kept;
    let mut first = LIST.load(Ordering::Acquire);
    loop {
        // SAFETY: entries are never freed; ours is nobody else's before it is in the list.
        unsafe { (*own).next = first.as_ref() };
        // Release pairs with the Acquire of whoever walks the list.
        match LIST.compare_exchange_weak(first, own, Ordering::Release, Ordering::Acquire) {
            // SAFETY: as above; from here on it changes through its cells only.
            Ok(_) => return unsafe { &*own },
            Err(now) => first = now,
        }
    }
}

fn entries() -> impl Iterator<Item = &'static Kept> {
    // SAFETY: null, or an entry, which is never freed.
    let first = unsafe { LIST.load(Ordering::Acquire).as_ref() };
    std::iter::successors(first, |kept| kept.next)
}

/// Registers the handler, once in a process; children inherit it.
fn watch_forks() -> io::Result<()> {
    static STATE: AtomicU32 = AtomicU32::new(FREE);
    // Two threads that come first at once register it twice: the second run finds everything replaced.
    if STATE.load(Ordering::Relaxed) == FREE {
        // SAFETY: the handler keeps to what may be called in a child of a process with threads.
        match unsafe { libc::pthread_atfork(None, None, Some(in_child)) } {
            0 => STATE.store(KEPT, Ordering::Relaxed),
            code => return Err(io::Error::from_raw_os_error(code)),
        }
    }
    Ok(())
}

unsafe extern "C" fn in_child() {
    entries().for_each(Kept::replace);
}

/// Puts an empty file of this process under a descriptor. The number stays in use: it belongs to a value that closes it.
fn empty(file: RawFd) -> bool {
    // SAFETY: system calls on numbers; the descriptor's owner is the mapping that is replaced, and it finds a file again.
    unsafe {
        // Closed first, so that there is room for another one.
        libc::close(file);
        let new = libc::memfd_create(c"global-arrays-child".as_ptr(), libc::MFD_CLOEXEC);
        if new >= 0 && new != file {
            let moved = libc::dup3(new, file, libc::O_CLOEXEC) == file;
            return libc::close(new) == 0 && moved;
        }
        new == file
    }
}

/// Something else of the child is where its parent's memory was, and copied handles lead there: it may not run.
fn give_up() -> ! {
    const WORDS: &str = "global-arrays: this child of a rank is aborted: what its handles lead to cannot be replaced\n";
    // SAFETY: writes a text; who cannot read it sees the signal.
    let _ = unsafe { libc::write(libc::STDERR_FILENO, WORDS.as_ptr().cast(), WORDS.len()) };
    // SAFETY: ends the process.
    unsafe { libc::abort() }
}
