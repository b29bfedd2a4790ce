//! The lock that guards accumulates into one rank's memory: 63 stripes in one word.
//!
//! Bit k is the lock of every range of [`STRIPE`] bytes whose number is k modulo 64; number 63 shares the bit of number 0. One
//! compare-and-swap takes a set of stripes, so a scattered accumulate costs no more than a small one. No thread holds one set while it
//! waits for another in the same rank, and locks of several ranks are taken in ascending order, so there is no deadlock. Waiting is in
//! `comm::engine::stripe_lock`.
//!
//! A thread that needs many stripes may find another one taken at every look. After a long wait it sets the last bit, a [`Claim`]: nobody
//! else takes any stripe then, and the claim waits only for those that are held.

use std::ops::RangeInclusive;

use super::atomics::{AtomicU64, Ordering};

/// Bytes that share a bit: an accumulate of this size takes about a microsecond.
pub(crate) const STRIPE: usize = 1 << 16;

/// All stripes.
pub(crate) const ALL: u64 = !CLAIMED;

/// Somebody is the next one.
const CLAIMED: u64 = 1 << 63;

/// The bits of a range of byte offsets.
pub(crate) fn mask(bytes: RangeInclusive<usize>) -> u64 {
    let (first, last) = (bytes.start() / STRIPE, bytes.end() / STRIPE);
    if last - first >= 63 {
        return ALL;
    }
    // A run of ones, turned to where it begins.
    let run = (u64::MAX >> (63 - (last - first))).rotate_left((first % 64) as u32);
    (run | run >> 63) & ALL
}

/// The lock word in shared memory.
#[derive(Debug)]
pub(crate) struct Stripes<'a>(&'a AtomicU64);

/// Held stripes, released when dropped.
#[derive(Debug)]
pub(crate) struct Held<'a>(&'a AtomicU64, u64);

impl<'a> Stripes<'a> {
    pub(crate) fn new(word: &'a AtomicU64) -> Self {
        Stripes(word)
    }

    /// Takes the stripes if all of them are free.
    #[inline]
    pub(crate) fn try_lock(&self, mask: u64) -> Option<Held<'a>> {
        let now = self.0.load(Ordering::Relaxed);
        let free = now & (mask | CLAIMED) == 0;
        // Acquire pairs with the Release of who held a stripe before.
        (free && self.0.compare_exchange(now, now | mask, Ordering::Acquire, Ordering::Relaxed).is_ok())
            .then(|| Held(self.0, mask))
    }
}

impl<'a> Stripes<'a> {
    /// Makes the caller the next one to take stripes, if nobody else is.
    pub(crate) fn claim(&self) -> Option<Claim<'a>> {
        // Nothing is guarded by the bit itself.
        (self.0.fetch_or(CLAIMED, Ordering::Relaxed) & CLAIMED == 0).then(|| Claim(self.0))
    }
}

/// The right to be the next one to take stripes; given back when dropped.
#[derive(Debug)]
pub(crate) struct Claim<'a>(&'a AtomicU64);

impl<'a> Claim<'a> {
    /// As [`Stripes::try_lock`].
    pub(crate) fn try_lock(&self, mask: u64) -> Option<Held<'a>> {
        let now = self.0.load(Ordering::Relaxed);
        // Acquire pairs with the Release of who held a stripe before.
        (now & mask == 0 && self.0.compare_exchange(now, now | mask, Ordering::Acquire, Ordering::Relaxed).is_ok())
            .then(|| Held(self.0, mask))
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.0.fetch_and(!CLAIMED, Ordering::Relaxed);
    }
}

impl Drop for Held<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.fetch_and(!self.1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_cover_their_ranges_and_wrap() {
        assert_eq!(mask(0..=0), 1);
        assert_eq!(mask(0..=STRIPE), 0b11);
        assert_eq!(mask(63 * STRIPE..=63 * STRIPE), 1);
        assert_eq!(mask(62 * STRIPE..=65 * STRIPE), 1 << 62 | 0b11);
        assert_eq!(mask(0..=64 * STRIPE), ALL);
        assert_eq!(mask(5..=63 * STRIPE), ALL);
    }

    #[test]
    fn a_mask_has_the_bit_of_each_stripe() {
        let bit = |stripe: usize| 1_u64 << if stripe % 64 == 63 { 0 } else { stripe % 64 };
        for first in 0..130 {
            for last in first..first + 70 {
                let expected = (first..=last).fold(0, |mask, stripe| mask | bit(stripe));
                for (start, end) in [(0, 0), (STRIPE - 1, STRIPE - 1), (0, STRIPE - 1)] {
                    let bytes = first * STRIPE + start..=last * STRIPE + end;
                    assert_eq!(mask(bytes), expected, "stripes {first} to {last}");
                }
            }
        }
        assert_eq!(ALL.count_ones(), 63);
    }

    #[test]
    fn overlapping_sets_exclude_each_other_and_others_do_not() {
        let word = AtomicU64::new(0);
        let stripes = Stripes::new(&word);
        let first = stripes.try_lock(0b0110).unwrap();
        assert!(stripes.try_lock(0b0100).is_none());
        let other = stripes.try_lock(0b1001).unwrap();
        drop(first);
        assert!(stripes.try_lock(ALL).is_none());
        drop(other);
        assert!(stripes.try_lock(ALL).is_some());
        assert_eq!(word.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_claim_waits_for_holders_and_nobody_overtakes_it() {
        let word = AtomicU64::new(0);
        let stripes = Stripes::new(&word);
        let holder = stripes.try_lock(0b01).unwrap();
        let claim = stripes.claim().unwrap();
        assert!(stripes.claim().is_none() && stripes.try_lock(0b10).is_none() && claim.try_lock(ALL).is_none());
        drop(holder);
        let held = claim.try_lock(ALL).unwrap();
        drop(claim);
        assert!(stripes.try_lock(0b10).is_none());
        drop(held);
        assert!(stripes.try_lock(ALL).is_some());
        assert_eq!(word.load(Ordering::Relaxed), 0);
    }
}

#[cfg(all(test, loom))]
mod loom_models {
    use super::*;
    use loom::{cell::UnsafeCell, sync::Arc, thread};

    /// Tries the stripes as often as it is told and adds to what each of them guards; the cells fail the model if two meet there.
    /// Returns how often it held them.
    fn accumulate(shared: &(AtomicU64, [UnsafeCell<u32>; 2]), mask: u64, tries: u32) -> u32 {
        let mut times = 0;
        for _ in 0..tries {
            let Some(held) = Stripes::new(&shared.0).try_lock(mask) else {
                thread::yield_now();
                continue;
            };
            for (_, cell) in shared.1.iter().enumerate().filter(|(k, _)| mask >> k & 1 == 1) {
                // SAFETY: the stripe is held, and the model checks that this is enough.
                cell.with_mut(|value| unsafe { *value += 1 });
            }
            drop(held);
            times += 1;
        }
        times
    }

    /// No thread tries without end: two that wait in turns would keep the checker from the one they wait for.
    fn model(masks: &'static [u64], tries: u32) {
        loom::model(move || {
            let shared = Arc::new((AtomicU64::new(0), [UnsafeCell::new(0), UnsafeCell::new(0)]));
            let others: Vec<_> = masks[1..]
                .iter()
                .map(|&mask| {
                    let shared = shared.clone();
                    (mask, thread::spawn(move || accumulate(&shared, mask, tries)))
                })
                .collect();
            let mut held = vec![(masks[0], accumulate(&shared, masks[0], tries))];
            held.extend(others.into_iter().map(|(mask, other)| (mask, other.join().unwrap())));
            for (k, cell) in shared.1.iter().enumerate() {
                let times: u32 = held.iter().filter(|(mask, _)| mask >> k & 1 == 1).map(|(_, times)| times).sum();
                // SAFETY: everyone else has ended.
                assert_eq!(cell.with(|value| unsafe { *value }), times);
            }
            assert_eq!(shared.0.load(Ordering::Relaxed), 0);
        });
    }

    #[test]
    fn a_claim_excludes_like_any_holder() {
        loom::model(|| {
            let shared = Arc::new((AtomicU64::new(0), [UnsafeCell::new(0), UnsafeCell::new(0)]));
            let other = shared.clone();
            let other = thread::spawn(move || accumulate(&other, 0b01, 3));
            let claim = Stripes::new(&shared.0).claim().unwrap();
            let mut times = 0;
            for _ in 0..3 {
                match claim.try_lock(0b01) {
                    // SAFETY: the stripe is held, and the model checks that this is enough.
                    Some(_held) => shared.1[0].with_mut(|value| unsafe {
                        *value += 1;
                        times += 1;
                    }),
                    None => thread::yield_now(),
                }
            }
            drop(claim);
            times += other.join().unwrap();
            // SAFETY: everyone else has ended.
            assert_eq!(shared.1[0].with(|value| unsafe { *value }), times);
            assert_eq!(shared.0.load(Ordering::Relaxed), 0);
        });
    }

    #[test]
    fn one_stripe_has_one_holder() {
        model(&[0b01, 0b01], 3);
    }

    #[test]
    fn overlapping_sets_hand_over_what_was_written() {
        model(&[0b01, 0b10, 0b11], 2);
    }

    #[test]
    fn a_neighbour_s_bit_does_not_break_the_hand_over() {
        model(&[0b01, 0b10, 0b01], 2);
    }
}
