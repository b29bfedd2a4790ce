//! A word in shared memory that ranks wait on.
//!
//! A thread that goes to sleep announces itself in `sleepers`, looks at `value` for a little longer, and only then calls the kernel. A
//! thread that stores `value` looks at `sleepers` after. Without a full fence in between it may overlook a sleeper that announced itself
//! while the store was in the store buffer. That buffer empties while the sleeper still looks. If it ever did not, the sleep has a limit:
//! a wake-up can come late, but is never lost. A full fence would cost every barrier the transfer of a cache line (measured: 0.16 µs
//! against 0.08).
//!
//! The futex is not private: several processes may map the word.

use std::time::Duration;

#[cfg(not(loom))]
use rustix::thread::futex;

use super::atomics::{AtomicU32, Ordering};

/// Looks between the announcement and the sleep: about a microsecond, many times what a store buffer needs.
#[cfg(not(loom))]
const LAST_LOOKS: u32 = 50;

/// A 32-bit value, usually a sequence number, with the count of those asleep on it.
///
/// All zeros is a valid initial state, so freshly committed memory needs no construction. A put of four bytes by a network at
/// its start changes the value.
#[derive(Debug, Default)]
#[repr(C, align(8))]
pub(crate) struct WaitWord {
    value: AtomicU32,
    sleepers: AtomicU32,
}

impl WaitWord {
    /// The present value; what was stored before it is visible.
    #[inline]
    pub(crate) fn load(&self) -> u32 {
        // Acquire pairs with the Release in `store` and in `add`.
        self.value.load(Ordering::Acquire)
    }

    /// Publishes a value and everything written before.
    #[inline]
    pub(crate) fn store(&self, value: u32) {
        self.value.store(value, Ordering::Release);
    }

    /// [`store`](Self::store), and [`wake`](Self::wake).
    #[inline]
    pub(crate) fn publish(&self, value: u32) {
        self.store(value);
        self.wake();
    }

    /// Adds, publishing everything written before, and returns the old value.
    #[inline]
    pub(crate) fn add(&self, increment: u32) -> u32 {
        self.value.fetch_add(increment, Ordering::AcqRel)
    }

    /// Wakes everyone asleep on the word. Call it after `store` or `add`.
    #[inline]
    pub(crate) fn wake(&self) {
        if self.sleepers.load(Ordering::Relaxed) != 0 {
            self.wake_sleepers();
        }
    }

    #[cfg(loom)]
    fn wake_sleepers(&self) {}

    /// Lets others run: the checker has no kernel to sleep in.
    #[cfg(loom)]
    pub(crate) fn sleep(&self, _: u32, _: Duration) {
        loom::thread::yield_now();
    }

    #[cfg(not(loom))]
    #[cold]
    fn wake_sleepers(&self) {
        // A failed wake can only mean a bad address, which a reference is not.
        let _ = futex::wake(&self.value, futex::Flags::empty(), u32::MAX >> 1);
    }

    /// Sleeps while the value is `seen`, for `limit` at most. May return early.
    #[cfg(not(loom))]
    #[cold]
    pub(crate) fn sleep(&self, seen: u32, limit: Duration) {
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        let changed = (0..LAST_LOOKS).any(|_| {
            std::hint::spin_loop();
            self.value.load(Ordering::Relaxed) != seen
        });
        if !changed {
            let limit = futex::Timespec { tv_sec: limit.as_secs() as i64, tv_nsec: i64::from(limit.subsec_nanos()) };
            // Interrupted, timed out or changed meanwhile: the caller looks again in every case.
            let _ = futex::wait(&self.value, futex::Flags::empty(), seen, Some(&limit));
        }
        self.sleepers.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// No test waits for it.
    const LONG: Duration = Duration::from_secs(600);

    #[test]
    fn a_word_holds_what_was_stored_and_added() {
        let word = WaitWord::default();
        assert_eq!((word.load(), word.add(5), word.add(u32::MAX)), (0, 0, 5));
        assert_eq!(word.load(), 4);
        word.store(7);
        assert_eq!(word.load(), 7);
        // Networks write the value as the first four bytes.
        assert_eq!((std::mem::offset_of!(WaitWord, value), size_of::<WaitWord>()), (0, 8));
    }

    #[test]
    fn a_value_that_has_changed_is_not_slept_on() {
        let word = WaitWord::default();
        word.store(1);
        word.sleep(0, LONG);
        assert_eq!(word.sleepers.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_sleep_ends_by_itself() {
        let word = WaitWord::default();
        (0..3).for_each(|_| word.sleep(0, Duration::from_millis(1)));
        assert_eq!(word.sleepers.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn all_who_sleep_are_woken() {
        let word = Arc::new(WaitWord::default());
        let sleepers = [(); 3].map(|()| {
            let word = word.clone();
            std::thread::spawn(move || {
                while word.load() == 0 {
                    word.sleep(0, LONG);
                }
            })
        });
        // All have announced themselves, and most are in the kernel.
        while word.sleepers.load(Ordering::SeqCst) < 3 {
            std::thread::yield_now();
        }
        std::thread::sleep(Duration::from_millis(5));
        word.store(1);
        word.wake();
        sleepers.into_iter().for_each(|sleeper| sleeper.join().unwrap());
        assert_eq!(word.sleepers.load(Ordering::Relaxed), 0);
    }
}

#[cfg(all(test, loom))]
mod loom_models {
    use super::*;
    use crate::memory::atomics::AtomicU64;
    use loom::{sync::Arc, thread};

    fn until(word: &WaitWord, value: u32) {
        while word.load() != value {
            word.sleep(0, Duration::ZERO);
        }
    }

    #[test]
    fn a_stored_value_is_seen_with_the_data() {
        loom::model(|| {
            let shared = Arc::new((WaitWord::default(), AtomicU64::new(0)));
            let writer = shared.clone();
            let writer = thread::spawn(move || {
                writer.1.store(7, Ordering::Relaxed);
                writer.0.store(1);
                writer.0.wake();
            });
            until(&shared.0, 1);
            assert_eq!(shared.1.load(Ordering::Relaxed), 7);
            writer.join().unwrap();
        });
    }

    #[test]
    fn a_sum_is_seen_with_the_data_of_all_who_added() {
        loom::model(|| {
            let shared = Arc::new((WaitWord::default(), [AtomicU64::new(0), AtomicU64::new(0)]));
            let writers = [0, 1].map(|k| {
                let shared = shared.clone();
                thread::spawn(move || {
                    shared.1[k].store(7, Ordering::Relaxed);
                    shared.0.add(1);
                    shared.0.wake();
                })
            });
            until(&shared.0, 2);
            assert_eq!(shared.1.each_ref().map(|data| data.load(Ordering::Relaxed)), [7, 7]);
            writers.into_iter().for_each(|writer| writer.join().unwrap());
        });
    }
}
