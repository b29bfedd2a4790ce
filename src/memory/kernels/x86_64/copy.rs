//! Contiguous copies above 64 bytes: a vector loop, then the processor's own string copy, then streaming stores.

use std::arch::asm;

use super::level::Kernel;
use super::vector::{Vector, store_fence};

/// From here on `rep movsb` copies, where the processor says that it is fast. Measured on Zen 5 with 48 KiB of first-level cache: below,
/// with both sides in it, a loop of 512-bit moves does 1.3 to 1.5 times as much (24 KiB: 220 against 160 GB/s); above, 0.6 to 1.0 times.
pub(super) const STRING_BYTES: usize = 24 << 10;

/// The same on other processors, Intel's above all, in vectors: 16 KiB with those of 64 bytes. glibc's `memcpy` changes over between 2 and
/// 8 KiB there. On Cascade Lake its copies of 16 KiB were 1.8 to 2.8 times as fast as the loop. This limit itself was not measured there.
const STRING_VECTORS: usize = 256;

/// From here on the destination is streamed past the caches, unless both sides can be aligned at once: then `rep movsb`, which does so by
/// itself, is faster still. Measured on Zen 5 with 32 MiB of third-level cache, against a loop through the caches: at 4 MiB streaming does
/// 0.6 times as much, at 16 MiB 1.2 times and `rep movsb` 1.3; at 64 MiB 1.3 and 1.4.
pub(super) const STREAM_BYTES: usize = 8 << 20;

/// A cache line.
const LINE_BYTES: usize = 64;

/// Copies `len` bytes, more than 64. Its fields are as [`crate::memory::kernels::copy`] says.
pub(super) struct Copy {
    pub(super) dst: *mut u8,
    pub(super) src: *const u8,
    pub(super) len: usize,
}

impl Kernel for Copy {
    type Output = ();

    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        let Copy { dst, src, len } = self;
        // SAFETY: passed on unchanged; 64 bytes are at least a vector.
        unsafe {
            // AMD's processors have this extension, Intel's do not. Short copies need not ask.
            let is_short = len < STRING_VECTORS * V::BYTES || len < STRING_BYTES && std::is_x86_feature_detected!("sse4a");
            if is_short {
                vectors::<V, false>(dst, src, len);
            } else {
                long::<V>(dst, src, len);
            }
        }
    }
}

/// Copies a long range, or one of many that are long together.
///
/// # Safety
/// As [`vectors`].
#[inline(always)]
pub(super) unsafe fn long<V: Vector>(dst: *mut u8, src: *const u8, len: usize) {
    let string = std::is_x86_feature_detected!("ermsb");
    let together = (dst.addr() ^ src.addr()).is_multiple_of(LINE_BYTES);
    // SAFETY: passed on unchanged; the string copy begins at the first line of `dst`, the vector copy before it ends there.
    unsafe {
        if string && (len < STREAM_BYTES || together) {
            let head = dst.addr().wrapping_neg() % LINE_BYTES;
            super::small::copy(dst, src, head);
            string_copy(dst.wrapping_add(head), src.wrapping_add(head), len - head);
        } else if len < STREAM_BYTES {
            vectors::<V, false>(dst, src, len);
        } else {
            vectors::<V, true>(dst, src, len);
        }
    }
}

/// Copies at least one vector; through the caches or, when `STREAM`, past them and fenced.
///
/// # Safety
/// As [`crate::memory::kernels::copy`] with `len >= V::BYTES`; the processor has the feature of `V`.
#[inline(always)]
pub(super) unsafe fn vectors<V: Vector, const STREAM: bool>(mut dst: *mut u8, mut src: *const u8, mut len: usize) {
    // SAFETY: the loops stay within `len`, which counts what is left; the first and the last vector overlap what the loops write
    // with the same bytes. After the first step `dst` is aligned to the vector, as streaming asks.
    unsafe {
        let end = (dst.wrapping_add(len).wrapping_sub(V::BYTES), src.wrapping_add(len).wrapping_sub(V::BYTES));
        if len > 4 * V::BYTES {
            let skip = V::BYTES - dst.addr() % V::BYTES;
            V::load::<0>(src).store::<0>(dst);
            (dst, src, len) = (dst.wrapping_add(skip), src.wrapping_add(skip), len - skip);
        }
        while len > 4 * V::BYTES {
            let (a, b, c, d) = (V::load::<0>(src), V::load::<1>(src), V::load::<2>(src), V::load::<3>(src));
            if STREAM {
                a.stream::<0>(dst);
                b.stream::<1>(dst);
                c.stream::<2>(dst);
                d.stream::<3>(dst);
            } else {
                a.store::<0>(dst);
                b.store::<1>(dst);
                c.store::<2>(dst);
                d.store::<3>(dst);
            }
            (dst, src, len) = (dst.wrapping_add(4 * V::BYTES), src.wrapping_add(4 * V::BYTES), len - 4 * V::BYTES);
        }
        while len > V::BYTES {
            V::load::<0>(src).store::<0>(dst);
            (dst, src, len) = (dst.wrapping_add(V::BYTES), src.wrapping_add(V::BYTES), len - V::BYTES);
        }
        V::load::<0>(end.1).store::<0>(end.0);
        if STREAM {
            store_fence();
        }
    }
}

/// Copies by the string instruction.
///
/// # Safety
/// As [`crate::memory::kernels::copy`].
#[inline(always)]
unsafe fn string_copy(dst: *mut u8, src: *const u8, len: usize) {
    // SAFETY: reads and writes `len` bytes forwards; Rust's calling conventions keep the direction flag clear.
    unsafe {
        asm!("rep movsb", inout("rcx") len => _, inout("rdi") dst => _, inout("rsi") src => _, options(nostack, preserves_flags));
    }
}
