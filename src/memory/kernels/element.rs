//! One element: a relaxed atomic where the processor has one of that width, else bytes.

use std::mem::MaybeUninit;
use std::sync::atomic::{
    AtomicU8, AtomicU16, AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

use super::copy;
use crate::element::Element;

/// Whether one atomic access of `T`'s size is possible at `address`. Folds to a constant where `T` is aligned to its size.
#[inline(always)]
fn aligned_to_size<T>(address: *const T) -> bool {
    align_of::<T>() >= size_of::<T>() || address.addr().is_multiple_of(size_of::<T>())
}

/// Reads one element; of 1, 2, 4 or 8 bytes aligned to its size in one piece, else each byte old or new.
///
/// # Safety
/// `src` is aligned for `T` and mapped for `size_of::<T>()` bytes during the call; nobody holds an exclusive Rust reference to it that
/// the caller does not speak for.
#[inline(always)]
pub(crate) unsafe fn load<T: Element>(src: *const T) -> T {
    debug_assert!(src.is_aligned(), "load from {src:p}");
    let whole = aligned_to_size(src);
    // SAFETY: each atomic is made at an address aligned to its size (checked by `whole`) that the caller says is mapped and not
    // borrowed; `transmute_copy` reads all `size_of::<T>()` bytes of an integer of that size, and `T: Pod` takes every bit pattern.
    // In the last arm `value` is private, and written over its whole length.
    unsafe {
        match size_of::<T>() {
            1 => std::mem::transmute_copy(&AtomicU8::from_ptr(src.cast_mut().cast()).load(Relaxed)),
            2 if whole => std::mem::transmute_copy(&AtomicU16::from_ptr(src.cast_mut().cast()).load(Relaxed)),
            4 if whole => std::mem::transmute_copy(&AtomicU32::from_ptr(src.cast_mut().cast()).load(Relaxed)),
            8 if whole => std::mem::transmute_copy(&AtomicU64::from_ptr(src.cast_mut().cast()).load(Relaxed)),
            bytes => {
                let mut value = MaybeUninit::<T>::uninit();
                copy(value.as_mut_ptr().cast(), src.cast(), bytes);
                value.assume_init()
            }
        }
    }
}

/// Writes one element; of 1, 2, 4 or 8 bytes aligned to its size in one piece, else byte by byte.
///
/// # Safety
/// `dst` is aligned for `T` and mapped for writing for `size_of::<T>()` bytes during the call; nobody holds a Rust reference to it that
/// the caller does not speak for.
#[inline(always)]
pub(crate) unsafe fn store<T: Element>(dst: *mut T, value: T) {
    debug_assert!(dst.is_aligned(), "store to {dst:p}");
    let whole = aligned_to_size(dst);
    // SAFETY: as in `load`; `transmute_copy` reads all bytes of `value`, which as `Pod` has no padding.
    unsafe {
        match size_of::<T>() {
            1 => AtomicU8::from_ptr(dst.cast()).store(std::mem::transmute_copy(&value), Relaxed),
            2 if whole => AtomicU16::from_ptr(dst.cast()).store(std::mem::transmute_copy(&value), Relaxed),
            4 if whole => AtomicU32::from_ptr(dst.cast()).store(std::mem::transmute_copy(&value), Relaxed),
            8 if whole => AtomicU64::from_ptr(dst.cast()).store(std::mem::transmute_copy(&value), Relaxed),
            bytes => copy(dst.cast(), (&raw const value).cast(), bytes),
        }
    }
}

/// Writes bytes; 2, 4 or 8 of them to an address aligned to that in one piece, which a load with Acquire may wait for.
///
/// # Safety
/// As [`copy`], of private bytes into memory that others access.
#[inline]
pub(crate) unsafe fn write(dst: *mut u8, src: *const u8, len: usize) {
    // SAFETY: the caller's promise; each atomic is made at an address aligned to its size.
    unsafe {
        match len {
            8 if dst.cast::<u64>().is_aligned() => {
                AtomicU64::from_ptr(dst.cast()).store(src.cast::<u64>().read_unaligned(), Release)
            }
            4 if dst.cast::<u32>().is_aligned() => {
                AtomicU32::from_ptr(dst.cast()).store(src.cast::<u32>().read_unaligned(), Release)
            }
            2 if dst.cast::<u16>().is_aligned() => {
                AtomicU16::from_ptr(dst.cast()).store(src.cast::<u16>().read_unaligned(), Release)
            }
            _ => copy(dst, src, len),
        }
    }
}

/// Reads bytes; 2, 4 or 8 of them at an address aligned to that in one piece.
///
/// # Safety
/// As [`copy`], of memory that others access into private bytes.
#[inline]
pub(crate) unsafe fn read(dst: *mut u8, src: *const u8, len: usize) {
    // SAFETY: as in `write`.
    unsafe {
        match len {
            8 if src.cast::<u64>().is_aligned() => {
                dst.cast::<u64>().write_unaligned(AtomicU64::from_ptr(src.cast_mut().cast()).load(Acquire));
            }
            4 if src.cast::<u32>().is_aligned() => {
                dst.cast::<u32>().write_unaligned(AtomicU32::from_ptr(src.cast_mut().cast()).load(Acquire));
            }
            2 if src.cast::<u16>().is_aligned() => {
                dst.cast::<u16>().write_unaligned(AtomicU16::from_ptr(src.cast_mut().cast()).load(Acquire));
            }
            _ => copy(dst, src, len),
        }
    }
}

#[cfg(test)]
mod tests {
    use num_complex::Complex;

    use super::{load, read, store, write};
    use crate::memory::kernels::testing::{Sample, Triple};

    fn goes_in_and_out<T: Sample>() {
        let mut memory = vec![T::ZERO; 5];
        let start = memory.as_mut_ptr();
        for i in 0..5 {
            // SAFETY: within this test's vector, which nothing borrows meanwhile.
            unsafe { store(start.add(i), T::sample(i + 9)) };
        }
        // SAFETY: as above.
        let read: Vec<T> = (0..5).map(|i| unsafe { load(start.add(i)) }).collect();
        assert_eq!(read, (9..14).map(T::sample).collect::<Vec<T>>());
        assert_eq!(memory, read);
    }

    #[test]
    fn elements_of_every_size() {
        goes_in_and_out::<u8>();
        goes_in_and_out::<i32>();
        goes_in_and_out::<i64>();
        goes_in_and_out::<f32>();
        goes_in_and_out::<f64>();
        goes_in_and_out::<Complex<f64>>();
        goes_in_and_out::<Triple>();
    }

    #[test]
    fn bytes_of_every_length_at_every_address() {
        let source: [u8; 24] = std::array::from_fn(|k| k as u8 + 1);
        for (from, to, len) in (0..8).flat_map(|from| (0..8).flat_map(move |to| (0..=16).map(move |len| (from, to, len)))) {
            let (mut there, mut here) = ([0_u64; 3], [0_u8; 24]);
            // SAFETY: within the arrays, which nobody else has.
            unsafe {
                let there = there.as_mut_ptr().cast::<u8>().add(to);
                write(there, source.as_ptr().add(from), len);
                read(here.as_mut_ptr().add(from), there, len);
            }
            let mut expected = [0; 24];
            expected[from..from + len].copy_from_slice(&source[from..from + len]);
            assert_eq!(here, expected, "{len} bytes from {from} to {to}");
        }
    }

    #[test]
    fn eight_bytes_at_an_address_divisible_by_four() {
        let mut memory = [0_u64; 3];
        let middle = memory.as_mut_ptr().cast::<Complex<f32>>().wrapping_byte_add(4);
        // SAFETY: within `memory`, aligned to 4 as `Complex<f32>` asks.
        unsafe {
            store(middle, Complex::new(1.5, -2.5));
            assert_eq!(load(middle), Complex::new(1.5_f32, -2.5));
        }
        assert_eq!(memory[2], 0);
    }
}
