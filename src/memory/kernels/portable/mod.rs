//! The kernels as copies by relaxed atomics.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};

use super::machine::{Machine, Transpose};
use super::{arithmetic, transpose};
use crate::element::{Additive, Element, Number};

/// Relaxed atomics, as wide as the alignment of both sides allows.
pub(super) enum Portable {}

impl Machine for Portable {
    #[inline]
    unsafe fn copy(dst: *mut u8, src: *const u8, len: usize) {
        // The widest unit in which both sides can be aligned at once.
        let widest = 1 << (dst.addr() ^ src.addr()).trailing_zeros().min(3);
        let mut done = 0;
        while done < len {
            let (to, from) = (dst.wrapping_add(done), src.wrapping_add(done));
            let unit = widest.min(1 << to.addr().trailing_zeros().min(3)).min(1 << (len - done).ilog2().min(3));
            // All that is left in the widest unit at once, one of the narrower units of either end.
            let units = if unit == widest { (len - done) / unit } else { 1 };
            // SAFETY: `units * unit` is at most `len - done`, and `unit` divides both addresses: their difference by `widest`, and
            // `to` itself.
            unsafe {
                match unit {
                    1 => copy_units(to, from, units, |to, from| {
                        AtomicU8::from_ptr(to).store(AtomicU8::from_ptr(from).load(Relaxed), Relaxed);
                    }),
                    2 => copy_units(to.cast(), from.cast(), units, |to, from| {
                        AtomicU16::from_ptr(to).store(AtomicU16::from_ptr(from).load(Relaxed), Relaxed);
                    }),
                    4 => copy_units(to.cast(), from.cast(), units, |to, from| {
                        AtomicU32::from_ptr(to).store(AtomicU32::from_ptr(from).load(Relaxed), Relaxed);
                    }),
                    _ => copy_units(to.cast(), from.cast(), units, |to, from| {
                        AtomicU64::from_ptr(to).store(AtomicU64::from_ptr(from).load(Relaxed), Relaxed);
                    }),
                }
            }
            done += units * unit;
        }
    }

    unsafe fn accumulate<T: Additive>(dst: *mut T, src: *const T, len: usize, alpha: T::Scale) {
        // SAFETY: passed on unchanged.
        unsafe { arithmetic::accumulate::<Self, T>(dst, src, len, alpha) }
    }

    unsafe fn fill<T: Element>(dst: *mut T, len: usize, value: T) {
        // SAFETY: passed on unchanged.
        unsafe { arithmetic::fill::<Self, T>(dst, len, value) }
    }

    unsafe fn scale<T: Additive>(dst: *mut T, len: usize, alpha: T::Scale) {
        // SAFETY: passed on unchanged.
        unsafe { arithmetic::scale::<Self, T>(dst, len, alpha) }
    }

    unsafe fn axpby<T: Additive>(dst: *mut T, a: T::Scale, x: *const T, b: T::Scale, y: *const T, len: usize) {
        // SAFETY: passed on unchanged.
        unsafe { arithmetic::axpby::<Self, T>(dst, a, x, b, y, len) }
    }

    unsafe fn dot<T: Number>(x: *const T, y: *const T, len: usize) -> T {
        // SAFETY: passed on unchanged.
        unsafe { arithmetic::dot::<Self, T>(x, y, len) }
    }

    unsafe fn copy_transposed(whole: Transpose, element_bytes: usize) {
        // SAFETY: passed on unchanged.
        unsafe { transpose::by_tiles::<Self>(whole, element_bytes) }
    }
}

/// Calls `copy_one` for each of `count` units of type `U`.
///
/// # Safety
/// As [`super::copy`] with `len == count * size_of::<U>()`, and both sides are aligned to the size of `U`.
#[inline(always)]
unsafe fn copy_units<U>(dst: *mut U, src: *const U, count: usize, copy_one: impl Fn(*mut U, *mut U)) {
    for i in 0..count {
        copy_one(dst.wrapping_add(i), src.wrapping_add(i).cast_mut());
    }
}
