//! A word in shared memory that ranks wait on.
//!
//! Dekker's handshake between one who stores and one who goes to sleep: the sleeper announces itself in `sleepers`, then looks
//! at `value` once more; the storer stores `value`, then looks at `sleepers`. With a sequentially consistent fence on both
//! sides at least one sees the other, so no wake-up is lost, and the storer makes no system call when nobody sleeps.
//!
//! The futex is not a private one: the word may be mapped into several processes.

use std::{
    sync::atomic::{AtomicU32, Ordering, fence},
    time::Duration,
};

use rustix::thread::futex;

/// A 32-bit value, usually a sequence number, with the count of those asleep on it.
///
/// All zeros is a valid initial state, so freshly committed memory needs no construction. A put of four bytes by a network at
/// its start changes the value.
#[derive(Debug, Default)]
#[repr(C, align(8))]
pub struct WaitWord {
    value: AtomicU32,
    sleepers: AtomicU32,
}

impl WaitWord {
    /// The present value; what was stored before it is visible.
    #[inline]
    pub fn load(&self) -> u32 {
        // Acquire pairs with the Release in `store` and in `add`.
        self.value.load(Ordering::Acquire)
    }

    /// Publishes a value and everything written before.
    #[inline]
    pub fn store(&self, value: u32) {
        self.value.store(value, Ordering::Release);
    }

    /// Adds, publishing everything written before, and returns the old value.
    #[inline]
    pub fn add(&self, increment: u32) -> u32 {
        self.value.fetch_add(increment, Ordering::AcqRel)
    }

    /// Wakes everyone asleep on the word. Call it after `store` or `add`.
    #[inline]
    pub fn wake(&self) {
        // Pairs with the fence in `sleep`.
        fence(Ordering::SeqCst);
        if self.sleepers.load(Ordering::Relaxed) != 0 {
            self.wake_sleepers();
        }
    }

    #[cold]
    fn wake_sleepers(&self) {
        // A failed wake can only mean a bad address, which a reference is not.
        let _ = futex::wake(&self.value, futex::Flags::empty(), u32::MAX >> 1);
    }

    /// Sleeps while the value is `seen`, for `limit` at most. May return early.
    #[cold]
    pub fn sleep(&self, seen: u32, limit: Duration) {
        self.sleepers.fetch_add(1, Ordering::Relaxed);
        // Pairs with the fence in `wake`.
        fence(Ordering::SeqCst);
        if self.value.load(Ordering::Relaxed) == seen {
            let limit = futex::Timespec { tv_sec: limit.as_secs() as i64, tv_nsec: i64::from(limit.subsec_nanos()) };
            // Interrupted, timed out or changed meanwhile: the caller looks again in every case.
            let _ = futex::wait(&self.value, futex::Flags::empty(), seen, Some(&limit));
        }
        self.sleepers.fetch_sub(1, Ordering::Relaxed);
    }
}
