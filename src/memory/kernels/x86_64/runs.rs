//! Planes of runs: many short copies at a fixed distance from each other.
//!
//! The choice of a copy costs as much as a short copy, so it is made once for the plane. Each common length has a loop in which it is a
//! constant.

use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

use super::copy::{STREAM_BYTES, STRING_BYTES, long, vectors};
use super::level::{Kernel, on_widest};
use super::small::{self, SMALL_BYTES};
use super::vector::{Vector, store_fence};
use crate::memory::kernels::Stride;

/// From here on a run is copied as the whole plane would be if it were contiguous: measured with `rep movsb` on runs of 1, 4 and
/// 8 KiB, 16 MiB together, where it takes 1.3 times a vector loop's speed from 4 KiB up.
const ALONE_BYTES: usize = 4096;

/// How many runs ahead a plane that streams prefetches its source, as processors do by themselves only within a page: gets of 16 MiB
/// in runs of 128 bytes do 0.85, 1.0, 1.3 times what a loop of `memcpy` does at 0, 16, 32 runs; longer runs gain more, and earlier.
const PREFETCH_RUNS: isize = 32;

/// The widest vector, and a cache line.
const LINE_BYTES: usize = 64;

/// Copies `stride.count` runs of `run` bytes.
///
/// # Safety
/// As [`crate::memory::kernels::copy_strided`] with the one level `stride`.
pub(super) unsafe fn copy(dst: *mut u8, src: *const u8, stride: Stride, run: usize) {
    // SAFETY: passed on, with the length that each asks for.
    unsafe {
        match run {
            0 => {}
            1 => short(dst, src, stride, 1),
            2 => short(dst, src, stride, 2),
            4 => short(dst, src, stride, 4),
            8 => short(dst, src, stride, 8),
            12 => short(dst, src, stride, 12),
            16 => short(dst, src, stride, 16),
            // Two overlapping moves would write the middle twice: a fifth slower where every run misses the caches.
            24 => each(dst, src, stride, |dst, src| {
                small::copy_16(dst, src);
                small::copy_8(dst.wrapping_add(16), src.wrapping_add(16));
            }),
            32 => short(dst, src, stride, 32),
            48 => short(dst, src, stride, 48),
            _ if run < SMALL_BYTES => short(dst, src, stride, run),
            _ => on_widest(LongRuns { dst, src, stride, run }),
        }
    }
}

/// Runs of up to [`SMALL_BYTES`].
///
/// # Safety
/// As [`copy`], and `run <= SMALL_BYTES`.
#[inline(always)]
unsafe fn short(dst: *mut u8, src: *const u8, stride: Stride, run: usize) {
    // SAFETY: `each` calls with the start of each run.
    each(dst, src, stride, |dst, src| unsafe { small::copy(dst, src, run) });
}

/// Runs of at least [`SMALL_BYTES`]. Its fields are as [`copy`] says.
struct LongRuns {
    dst: *mut u8,
    src: *const u8,
    stride: Stride,
    run: usize,
}

impl Kernel for LongRuns {
    type Output = ();

    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        let LongRuns { dst, src, stride, run } = self;
        let whole_lines = (dst.addr() | stride.dst.cast_unsigned() | run).is_multiple_of(LINE_BYTES);
        // SAFETY: passed on unchanged; whole lines are what streaming asks for.
        unsafe {
            if run >= ALONE_BYTES && stride.count.saturating_mul(run) >= STRING_BYTES {
                each(dst, src, stride, |dst, src| long::<V>(dst, src, run));
            } else if whole_lines && stride.count.saturating_mul(run) >= STREAM_BYTES {
                each(dst, src, stride, |dst, src| {
                    prefetch_lines(src.wrapping_offset(stride.src.wrapping_mul(PREFETCH_RUNS)), run);
                    stream_lines::<V>(dst, src, run);
                });
                store_fence();
            } else if run == LINE_BYTES {
                // The constant makes a loop of one to four moves of it.
                each(dst, src, stride, |dst, src| vectors::<V, false>(dst, src, LINE_BYTES));
            } else {
                each(dst, src, stride, |dst, src| vectors::<V, false>(dst, src, run));
            }
        }
    }
}

/// Calls `copy_run` for the start of every run.
#[inline(always)]
fn each(mut dst: *mut u8, mut src: *const u8, stride: Stride, copy_run: impl Fn(*mut u8, *const u8)) {
    for _ in 0..stride.count {
        copy_run(dst, src);
        dst = dst.wrapping_offset(stride.dst);
        src = src.wrapping_offset(stride.src);
    }
}

/// Prefetches `len` bytes, mapped or not: a prefetch is no access.
#[inline(always)]
fn prefetch_lines(src: *const u8, len: usize) {
    for at in (0..len).step_by(LINE_BYTES) {
        // SAFETY: needs SSE, which every x86-64 has; has no effect but on caches, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(src.wrapping_add(at).cast()) };
    }
}

/// Streams `len` bytes, unfenced.
///
/// # Safety
/// As [`crate::memory::kernels::copy`]; `dst` and `len` are multiples of [`LINE_BYTES`]; the processor has the feature of `V`.
#[inline(always)]
unsafe fn stream_lines<V: Vector>(dst: *mut u8, src: *const u8, len: usize) {
    for at in (0..len).step_by(V::BYTES) {
        // SAFETY: vectors divide lines.
        unsafe { V::load::<0>(src.wrapping_add(at)).stream::<0>(dst.wrapping_add(at)) };
    }
}
