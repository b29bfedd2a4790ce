//! How data land in memory: in pieces, in any order; and the adapter's atomics, which processors can break.
//!
//! A piece is a line of a cache, or a page in a long message. Up to eight bytes land as one, as in every adapter.

use std::hint::spin_loop;

use crate::{comm::kit::mutex::Mutex, memory::kernels};

/// Bytes of a piece of a short message.
const LINE: usize = 64;
/// Of a long one.
const PAGE: usize = 4096;

/// Between the read and the write of an atomic: long enough that a processor's own addition falls there now and then.
const PAUSE: u32 = 32;

/// Copies a message; the order of its pieces comes from a random number.
///
/// # Safety
/// As [`kernels::copy`].
pub(in crate::comm) unsafe fn land(to: *mut u8, from: *const u8, len: usize, random: usize) {
    if len <= size_of::<u64>() {
        let mut value = [0_u8; size_of::<u64>()];
        // SAFETY: the caller's promise; the value is private and long enough.
        unsafe { kernels::read(value.as_mut_ptr(), from, len) };
        // SAFETY: as above.
        return unsafe { kernels::write(to, value.as_ptr(), len) };
    }
    for (at, len) in pieces(len, random) {
        // SAFETY: pieces lie within the message.
        unsafe { kernels::copy(to.wrapping_add(at), from.wrapping_add(at), len) };
    }
}

/// Where the pieces of a message begin, and their lengths.
fn pieces(len: usize, random: usize) -> impl Iterator<Item = (usize, usize)> {
    let piece = if len <= PAGE { LINE } else { PAGE };
    let pieces = len.div_ceil(piece);
    // Primes: one that does not divide the number of pieces leads to each of them.
    let step = [7, 11, 13, 17, 19, 23].into_iter().find(|step| pieces % step != 0).unwrap_or(1);
    let first = random % pieces;
    (0..pieces).map(move |k| {
        let at = (first + k * step) % pieces * piece;
        (at, piece.min(len - at))
    })
}

/// Carries out an atomic under the lock of the adapter that holds the word: a read, a pause, a write of what it makes of the old value. The
/// old value lands at `to`.
///
/// # Safety
/// `word` is aligned to eight bytes; both are mapped for writing for eight bytes and accessed by kernels and atomics only.
pub(in crate::comm) unsafe fn atomic(adapter: &Mutex<()>, word: *mut u64, to: *mut u8, changed: impl FnOnce(u64) -> Option<u64>) {
    let old = {
        let _adapter = adapter.lock();
        // SAFETY: the caller's promise.
        let old = unsafe { kernels::load(word) };
        (0..PAUSE).for_each(|_| spin_loop());
        if let Some(new) = changed(old) {
            // SAFETY: the caller's promise.
            unsafe { kernels::store(word, new) };
        }
        old
    };
    // SAFETY: the caller's promise.
    unsafe { kernels::write(to, (&raw const old).cast(), size_of::<u64>()) };
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

    use super::*;

    #[test]
    fn pieces_cover_a_message_once_and_their_order_varies() {
        for len in [9, 64, 65, 200, 4096, 4097, 12_345, 7 * 4096, 77 * 4096, 1 << 20] {
            let mut orders = Vec::new();
            for random in 0..50 {
                let order: Vec<_> = pieces(len, random).collect();
                let mut sorted = order.clone();
                sorted.sort_unstable();
                let end = sorted.iter().fold(0, |end, &(at, len)| {
                    assert_eq!(at, end, "{len} bytes");
                    at + len
                });
                assert_eq!(end, len);
                orders.push(order);
            }
            orders.dedup();
            assert!(orders.len() > 1 || len <= 64, "{len} bytes always land in one order");
        }
    }

    #[test]
    fn data_land_at_every_length() {
        let from: Vec<u8> = (0..10_000_u32).map(|k| (k % 251) as u8).collect();
        for len in [0, 1, 7, 8, 9, 63, 64, 65, 1000, 9_999] {
            let mut to = vec![0xEE; 10_000];
            // SAFETY: both vectors are longer, and this test's.
            unsafe { land(to.as_mut_ptr(), from.as_ptr(), len, 12_345) };
            assert_eq!(to[..len], from[..len]);
            assert!(to[len..].iter().all(|&byte| byte == 0xEE));
        }
    }

    /// Adds to a word from an adapter while another thread adds as often. Returns the number of additions that were lost.
    fn lost(other: impl Fn(&AtomicU64, &Mutex<()>) + Sync, additions: u64) -> u64 {
        let (word, adapter, ready) = (AtomicU64::new(0), Mutex::new(()), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                ready.store(true, Ordering::Release);
                (0..additions).for_each(|_| other(&word, &adapter));
            });
            while !ready.load(Ordering::Acquire) {
                spin_loop();
            }
            (0..additions).for_each(|_| add(&word, &adapter));
        });
        2 * additions - word.into_inner()
    }

    fn add(word: &AtomicU64, adapter: &Mutex<()>) {
        let mut old = 0_u64;
        // SAFETY: the word lives, and so does the old value.
        unsafe { atomic(adapter, word.as_ptr(), (&raw mut old).cast(), |old| Some(old + 1)) };
    }

    #[test]
    fn adapters_exclude_each_other_and_no_processor() {
        assert_eq!(lost(add, 20_000), 0);
        let by_processor = |word: &AtomicU64, _: &Mutex<()>| {
            word.fetch_add(1, Ordering::Relaxed);
        };
        // As long as it takes: the two threads may share a processor.
        let some_are_lost = (0..1000).any(|_| lost(by_processor, 20_000) > 0);
        assert!(some_are_lost, "additions of an adapter and a processor excluded each other");
    }
}
