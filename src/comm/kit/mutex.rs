//! The lock of this crate. It ignores poisoning: what it guards is whole between any two statements that may panic. Tests count how
//! often a thread takes one.

use std::sync::{MutexGuard, PoisonError, TryLockError};

/// A lock that ignores poisoning.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T: ?Sized>(std::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Mutex(std::sync::Mutex::new(value))
    }
}

impl<T: ?Sized> Mutex<T> {
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        #[cfg(test)]
        count::add();
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The value, if nobody has it.
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        #[cfg(test)]
        count::add();
        match self.0.try_lock() {
            Ok(value) => Some(value),
            Err(TryLockError::Poisoned(value)) => Some(value.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// What one thread does.
#[cfg(test)]
pub(crate) mod count {
    use std::{
        alloc::{GlobalAlloc, Layout, System},
        cell::Cell,
    };

    thread_local! {
        static LOCKS: Cell<u64> = const { Cell::new(0) };
        static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    }

    pub(super) fn add() {
        LOCKS.set(LOCKS.get() + 1);
    }

    /// Locks that this thread has taken, or tried to, and allocations that it has made.
    pub(crate) fn so_far() -> (u64, u64) {
        (LOCKS.get(), ALLOCATIONS.get())
    }

    struct Counting;

    #[global_allocator]
    static COUNTING: Counting = Counting;

    // SAFETY: the system's allocator does the work; the count is a plain cell of the thread, without a destructor.
    unsafe impl GlobalAlloc for Counting {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            ALLOCATIONS.set(ALLOCATIONS.get() + 1);
            // SAFETY: the caller's promise.
            unsafe { System.alloc(layout) }
        }

        unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
            // SAFETY: the caller's promise.
            unsafe { System.dealloc(pointer, layout) }
        }

        unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
            ALLOCATIONS.set(ALLOCATIONS.get() + 1);
            // SAFETY: the caller's promise.
            unsafe { System.realloc(pointer, layout, size) }
        }
    }
}
