//! The owner's side of native accumulates: what a message's handler does to memory of its node.
//!
//! It adds under the same lock and with the same kernels as the node's processors, slab by slab, so an element gets the same bits from
//! either.

use std::{
    ptr::NonNull,
    sync::atomic::{AtomicU32, AtomicU64},
};

use super::stripe_lock::lock_in_handler;
use crate::{
    comm::Scale,
    memory::{
        kernels::Stride,
        stripes::{STRIPE, Stripes, mask},
    },
};

/// Bytes that are added under one lock, so that others get their turn.
const SLAB: usize = 4 * STRIPE;

/// Why an accumulate was not done, or not to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AdditionRefused {
    /// It names bytes outside the segment, or parts of elements: no rank of this job asks for that.
    Malformed,
    /// The job is over.
    Over,
}

/// A mapped segment of a rank of this node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeSegment {
    /// Its first byte.
    pub base: NonNull<u8>,
    /// Its length in bytes.
    pub len: usize,
}

/// Adds `scale` times `packed` to runs of `run` bytes at these offsets of a segment, under the stripes of its lock word at `lock`.
/// The runs come one after the other in `packed`. Each element is changed atomically with respect to other accumulates.
///
/// Waits for the lock, whose holder is a processor in the middle of a slab. So the caller holds no stripe and no claim of any
/// lock, and no lock of the conduit that a processor may want in [`wait`](crate::comm::Conduit::wait).
/// `over` is [`Conduit::over`](crate::comm::Conduit::over).
///
/// # Errors
/// See [`AdditionRefused`]; some of the runs before may have been added.
///
/// # Safety
/// The segment is mapped and stays so during the call; the runs that lie in it are committed, and the word at `lock` is nothing but
/// an accumulate lock. `packed` is readable for all runs and not part of a run; any alignment.
pub(crate) unsafe fn add(
    segment: NodeSegment,
    lock: usize,
    scale: &Scale,
    mut offsets: impl Iterator<Item = usize> + Clone,
    run: usize,
    mut packed: *const u8,
    over: &AtomicU32,
) -> Result<(), AdditionRefused> {
    let NodeSegment { base, len } = segment;
    let inside = |offset: usize, bytes: usize| offset <= len && bytes <= len - offset;
    let word = lock.is_multiple_of(align_of::<AtomicU64>()) && inside(lock, size_of::<AtomicU64>());
    if !word || run == 0 || !run.is_multiple_of(scale.kind.bytes()) {
        return Err(AdditionRefused::Malformed);
    }
    // SAFETY: an aligned word inside a mapped segment; segments begin at a page. Every bit pattern is an atomic's.
    let lock = Stripes::new(unsafe { &*base.as_ptr().add(lock).cast() });
    loop {
        let group = offsets.clone().take((SLAB / run).max(1));
        let (mut low, mut high, mut count) = (usize::MAX, 0, 0_usize);
        for offset in group.clone() {
            if !inside(offset, run) {
                return Err(AdditionRefused::Malformed);
            }
            (low, high, count) = (low.min(offset), high.max(offset), count + 1);
        }
        let Some(last) = count.checked_sub(1) else { return Ok(()) };
        // One slab at a time of a run that is longer.
        for start in (0..run).step_by(SLAB) {
            let part = (run - start).min(SLAB);
            let _held = lock_in_handler(&lock, mask(low + start..=high + start + part - 1), over).ok_or(AdditionRefused::Over)?;
            let offsets = group.clone().map(|offset| offset + start);
            // SAFETY: whole elements, since a slab is a whole number of any; the runs lie inside, nobody holds a reference to memory
            // of a segment outside an epoch, and nobody adds inside one; the rest is the caller's promise.
            unsafe { scale.add(base.as_ptr(), offsets, part, packed.wrapping_add(start)) };
        }
        packed = packed.wrapping_add(run * count);
        offsets.nth(last);
    }
}

/// [`add`] for runs at regular distances: the first one at `offset`, the others as `levels` say, counts and distances in bytes,
/// outermost first. As many of the outermost level's parts are added under one lock as make 256 KiB, at least one.
///
/// # Errors
/// As [`add`].
///
/// # Safety
/// As [`add`], and no two runs overlap.
#[allow(clippy::too_many_arguments, reason = "those of `add`, and where the runs are")]
pub(crate) unsafe fn add_block(
    segment: NodeSegment,
    lock: usize,
    scale: &Scale,
    offset: usize,
    levels: &[(usize, isize)],
    run: usize,
    packed: *const u8,
    over: &AtomicU32,
) -> Result<(), AdditionRefused> {
    let NodeSegment { base, len } = segment;
    let Some((&(all, distance), inner)) = levels.split_first() else {
        // SAFETY: the caller's promise.
        return unsafe { add(segment, lock, scale, std::iter::once(offset), run, packed, over) };
    };
    let word = lock.is_multiple_of(align_of::<AtomicU64>()) && lock <= len && size_of::<AtomicU64>() <= len - lock;
    let whole = run > 0 && run.is_multiple_of(scale.kind.bytes());
    if !word || !whole || levels.len() > LEVELS || levels.iter().any(|level| level.0 == 0) {
        return Err(AdditionRefused::Malformed);
    }
    // SAFETY: as in `add`.
    let lock = Stripes::new(unsafe { &*base.as_ptr().add(lock).cast() });
    let mut strides = [Stride { count: 1, dst: 0, src: 0 }; LEVELS];
    let mut row = run;
    for (stride, &(count, distance)) in strides[1..].iter_mut().rev().skip(LEVELS - 1 - inner.len()).zip(inner.iter().rev()) {
        *stride = Stride { count, dst: distance, src: row as isize };
        row = row.checked_mul(count).ok_or(AdditionRefused::Malformed)?;
    }
    let together = (SLAB / row).max(1);
    for first in (0..all).step_by(together) {
        let count = together.min(all - first);
        strides[0] = Stride { count, dst: distance, src: row as isize };
        let at = offset as i128 + first as i128 * distance as i128;
        let (mut low, mut high) = (at, at + run as i128);
        for stride in &strides[..levels.len()] {
            let reach = (stride.count as i128 - 1) * stride.dst as i128;
            (low, high) = (low + reach.min(0), high + reach.max(0));
        }
        if low < 0 || high > len as i128 {
            return Err(AdditionRefused::Malformed);
        }
        let _held = lock_in_handler(&lock, mask(low as usize..=high as usize - 1), over).ok_or(AdditionRefused::Over)?;
        let (to, from) = (base.as_ptr().wrapping_add(at as usize), packed.wrapping_add(first * row));
        // SAFETY: whole elements; the runs lie inside; the rest as in `add`.
        unsafe { scale.add_strided(to, &strides[..levels.len()], run, from) };
    }
    Ok(())
}

/// Most levels of a block.
const LEVELS: usize = crate::comm::BLOCK_LEVELS;

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    /// A segment whose first word is its lock.
    fn segment(words: &mut [f64]) -> NodeSegment {
        NodeSegment { base: NonNull::from(&mut *words).cast(), len: size_of_val(words) }
    }

    fn add_f64(words: &mut [f64], offsets: &[usize], run: usize, packed: &[f64], over: u32) -> Result<(), AdditionRefused> {
        assert!(packed.len() * 8 >= run * offsets.len());
        let scale = Scale::of::<f64>(2.0).unwrap();
        // SAFETY: the buffer is the test's own, and `packed` is as long as all runs.
        unsafe { add(segment(words), 0, &scale, offsets.iter().copied(), run, packed.as_ptr().cast(), &AtomicU32::new(over)) }
    }

    #[test]
    fn runs_are_added_in_their_order_and_the_lock_is_free_again() {
        let mut words = vec![0.0; 8];
        add_f64(&mut words, &[40, 8, 40], 16, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 0).unwrap();
        assert_eq!(words, [0.0, 6.0, 8.0, 0.0, 0.0, 12.0, 16.0, 0.0]);
    }

    #[test]
    fn more_than_a_slab_is_added_whole() {
        let elements = 3 * SLAB / 8 + 5;
        let packed: Vec<f64> = (0..elements).map(|k| k as f64).collect();
        let mut words = vec![0.0; elements + 2];
        add_f64(&mut words, &[16], elements * 8, &packed, 0).unwrap();
        assert!(words[2..].iter().enumerate().all(|(k, &sum)| sum == 2.0 * k as f64));
        let runs: Vec<usize> = (0..elements / 3).map(|k| 16 + 24 * k).collect();
        add_f64(&mut words, &runs, 24, &packed, 0).unwrap();
        assert!(words[2..].iter().take(runs.len() * 3).enumerate().all(|(k, &sum)| sum == 4.0 * k as f64));
        assert_eq!(words[0], 0.0);
    }

    fn add_block_f64(
        words: &mut [f64],
        at: usize,
        levels: &[(usize, isize)],
        run: usize,
        packed: &[f64],
    ) -> Result<(), AdditionRefused> {
        let scale = Scale::of::<f64>(2.0).unwrap();
        let over = AtomicU32::new(0);
        // SAFETY: the buffer is the test's own, and `packed` is as long as all runs.
        unsafe { add_block(segment(words), 0, &scale, at, levels, run, packed.as_ptr().cast(), &over) }
    }

    #[test]
    fn blocks_are_the_runs_that_their_levels_name() {
        let levels = [(3, -400), (2, 48), (4, 8)];
        let packed: Vec<f64> = (0..48).map(|k| f64::from(k) + 0.5).collect();
        for depth in 0..=levels.len() {
            let levels = &levels[3 - depth..];
            let mut offsets = vec![1000_usize];
            for &(count, distance) in levels {
                let all = |at: &usize| (0..count as isize).map(|k| at.wrapping_add_signed(k * distance)).collect::<Vec<_>>();
                offsets = offsets.iter().flat_map(all).collect();
            }
            let (mut one, mut other) = (vec![0.0; 200], vec![0.0; 200]);
            add_f64(&mut one, &offsets, 8, &packed, 0).unwrap();
            add_block_f64(&mut other, 1000, levels, 8, &packed).unwrap();
            assert_eq!(one, other);
            assert!(other[125] == 1.0);
        }
    }

    #[test]
    fn long_blocks_are_added_slab_by_slab() {
        let rows = 3 * SLAB / 16 + 7;
        let mut words = vec![0.0; 3 * rows + 1];
        let packed: Vec<f64> = (0..2 * rows).map(|k| k as f64).collect();
        add_block_f64(&mut words, 8, &[(rows, 24)], 16, &packed).unwrap();
        assert!((0..rows).all(|k| words[1 + 3 * k..4 + 3 * k] == [4.0 * k as f64, 4.0 * k as f64 + 2.0, 0.0]));
        assert_eq!(words[0], 0.0);
    }

    #[test]
    fn blocks_that_no_rank_asks_for_are_refused() {
        let mut words = vec![0.0; 20];
        let cases: [(usize, &[(usize, isize)]); 6] = [
            (8, &[(20, 8)]),
            (8, &[(2, -16)]),
            (160, &[]),
            (8, &[(0, 8)]),
            (8, &[(2, isize::MAX), (usize::MAX, 2)]),
            (8, &[(1, 8); 20]),
        ];
        for (at, levels) in cases {
            let refused = add_block_f64(&mut words, at, levels, 8, &[1.0; 32]);
            assert_eq!(refused, Err(AdditionRefused::Malformed), "{at} {levels:?}");
        }
        assert_eq!(words, [0.0; 20]);
    }

    #[test]
    fn what_no_rank_asks_for_is_refused() {
        let mut words = vec![0.0; 8];
        for (offset, run) in [(64, 8), (56, 16), (usize::MAX - 4, 8), (8, 12), (8, 0)] {
            assert_eq!(add_f64(&mut words, &[offset], run, &[1.0; 4], 0), Err(AdditionRefused::Malformed));
        }
        assert_eq!(words, [0.0; 8]);
        let (scale, over) = (Scale::of::<f64>(1.0).unwrap(), AtomicU32::new(0));
        for lock in [4, 64, usize::MAX - 7] {
            // SAFETY: nothing is touched.
            let refused = unsafe { add(segment(&mut words), lock, &scale, [8].into_iter(), 8, [1_u8; 8].as_ptr(), &over) };
            assert_eq!(refused, Err(AdditionRefused::Malformed));
        }
    }

    #[test]
    fn a_lock_that_is_never_free_is_waited_for_until_the_end_of_the_job() {
        let mut words = vec![0.0; 8];
        words[0] = f64::from_bits(mask(8..=15));
        assert_eq!(add_f64(&mut words, &[8], 8, &[1.0], 1), Err(AdditionRefused::Over));
        assert_eq!(words[1], 0.0);
    }

    #[test]
    fn a_handler_and_a_processor_lose_nothing() {
        const TIMES: usize = 20_000;
        // The lock, and an element that both add to by a load and a store.
        let mut words = [0_u64; 2];
        let address = words.as_mut_ptr() as usize;
        let over = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let segment = NodeSegment { base: NonNull::new(address as *mut u8).unwrap(), len: 16 };
                    let (scale, one) = (Scale::of::<u64>(1).unwrap(), 1_u64);
                    for _ in 0..TIMES {
                        // SAFETY: the words live longer than the scope, and are touched under the lock only.
                        unsafe { add(segment, 0, &scale, [8].into_iter(), 8, (&raw const one).cast(), &over) }.unwrap();
                    }
                });
            }
            scope.spawn(|| {
                // SAFETY: two words that live longer than the scope and are used as atomics by all.
                let [lock, sum] = [address, address + 8].map(|word| unsafe { &*(word as *const AtomicU64) });
                for _ in 0..TIMES {
                    let held = lock_in_handler(&Stripes::new(lock), mask(8..=15), &over).unwrap();
                    sum.store(sum.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                    drop(held);
                }
            });
        });
        assert_eq!(words, [0, 3 * TIMES as u64]);
    }
}
