//! The kernels in x86-64 assembly, for SSE2, AVX2 and AVX-512, whichever the processor has.

mod arithmetic;
mod copy;
mod fill;
pub(super) mod level;
mod other;
mod runs;
mod scalar;
mod small;
mod transpose;
mod vector;

use std::{any::TypeId, arch::asm};

use bytemuck::cast;

use self::arithmetic::{AddScaled, Combined, Dot, Map, MapPlane, Scaled};
use self::fill::{Fill, Pattern};
use self::level::{on_sse2, on_widest};
use self::other::{OtherAxpby, OtherDot, OtherPlane, OtherScale};
use super::machine::{Machine, Transpose};
use super::transpose::by_tiles;
use super::{Stride, arithmetic as any};
use crate::element::{Additive, Element, Number};

/// Assembly, with the widest vectors that the processor has.
pub(super) enum X86_64 {}

impl Machine for X86_64 {
    #[inline(always)]
    fn prefetch<const WRITE: bool>(address: *const u8) {
        // SAFETY: hints touch nothing that a program could see, and fault at no address. Processors without the second take it for
        // no operation.
        unsafe {
            if WRITE {
                asm!("prefetchw [{}]", in(reg) address, options(nostack, preserves_flags, readonly));
            } else {
                asm!("prefetcht0 [{}]", in(reg) address, options(nostack, preserves_flags, readonly));
            }
        }
    }

    #[inline(always)]
    unsafe fn copy(dst: *mut u8, src: *const u8, len: usize) {
        // SAFETY: passed on, with the length that each asks for.
        unsafe {
            if len <= small::SMALL_BYTES {
                small::copy(dst, src, len);
            } else {
                copy_long(dst, src, len);
            }
        }
    }

    unsafe fn copy_plane(dst: *mut u8, src: *const u8, stride: Stride, run: usize) {
        // SAFETY: passed on unchanged.
        unsafe { runs::copy(dst, src, stride, run) }
    }

    unsafe fn accumulate<T: Additive>(dst: *mut T, src: *const T, len: usize, alpha: T::Scale) {
        // SAFETY: passed on; `T` is the type that `Vectors` names, so pointers and values keep their type.
        unsafe {
            match Vectors::of::<T>() {
                Vectors::F64 if len < SHORT_ELEMENTS => on_sse2(add_scaled::<f64>(dst.cast(), src.cast(), len, cast(alpha))),
                Vectors::F64 => on_widest(add_scaled::<f64>(dst.cast(), src.cast(), len, cast(alpha))),
                Vectors::F32 => on_widest(add_scaled::<f32>(dst.cast(), src.cast(), len, cast(alpha))),
                Vectors::None => on_widest(OtherPlane::<T> { dst, src, stride: ONCE, run_elements: len, alpha }),
            }
        }
    }

    unsafe fn accumulate_plane<T: Additive>(dst: *mut T, src: *const T, stride: Stride, run_elements: usize, alpha: T::Scale) {
        // SAFETY: as in `accumulate`.
        unsafe {
            match Vectors::of::<T>() {
                Vectors::F64 => {
                    let map = add_scaled::<f64>(dst.cast(), src.cast(), run_elements, cast(alpha));
                    on_widest(MapPlane { map, stride });
                }
                Vectors::F32 => {
                    let map = add_scaled::<f32>(dst.cast(), src.cast(), run_elements, cast(alpha));
                    on_widest(MapPlane { map, stride });
                }
                Vectors::None => on_widest(OtherPlane::<T> { dst, src, stride, run_elements, alpha }),
            }
        }
    }

    unsafe fn fill<T: Element>(dst: *mut T, len: usize, value: T) {
        // SAFETY: passed on unchanged.
        unsafe {
            if Pattern::suits(size_of::<T>()) {
                let pattern = Pattern::new(bytemuck::bytes_of(&value));
                on_widest(Fill { dst: dst.cast(), len: len * size_of::<T>(), pattern: &pattern });
            } else {
                any::fill::<Self, T>(dst, len, value);
            }
        }
    }

    unsafe fn scale<T: Additive>(dst: *mut T, len: usize, alpha: T::Scale) {
        // SAFETY: as in `accumulate`.
        unsafe {
            match Vectors::of::<T>() {
                Vectors::F64 => on_widest(scaled::<f64>(dst.cast(), len, cast(alpha))),
                Vectors::F32 => on_widest(scaled::<f32>(dst.cast(), len, cast(alpha))),
                Vectors::None => on_widest(OtherScale::<T> { dst, len, alpha }),
            }
        }
    }

    unsafe fn axpby<T: Additive>(dst: *mut T, a: T::Scale, x: *const T, b: T::Scale, y: *const T, len: usize) {
        // SAFETY: as in `accumulate`.
        unsafe {
            match Vectors::of::<T>() {
                Vectors::F64 => {
                    let formula = Combined::<f64>(cast(a), cast(b));
                    on_widest(Map::<f64, _> { dst: dst.cast(), x: x.cast(), y: y.cast(), len, formula });
                }
                Vectors::F32 => {
                    let formula = Combined::<f32>(cast(a), cast(b));
                    on_widest(Map::<f32, _> { dst: dst.cast(), x: x.cast(), y: y.cast(), len, formula });
                }
                Vectors::None => on_widest(OtherAxpby::<T> { dst, a, x, b, y, len }),
            }
        }
    }

    unsafe fn dot<T: Number>(x: *const T, y: *const T, len: usize) -> T {
        // SAFETY: as in `accumulate`.
        unsafe {
            match Vectors::of::<T>() {
                Vectors::F64 => cast(on_widest(Dot::<f64> { x: x.cast(), y: y.cast(), len })),
                Vectors::F32 => cast(on_widest(Dot::<f32> { x: x.cast(), y: y.cast(), len })),
                Vectors::None => on_widest(OtherDot::<T> { x, y, len }),
            }
        }
    }

    unsafe fn copy_transposed(whole: Transpose, element_bytes: usize) {
        // SAFETY: passed on unchanged.
        unsafe {
            if element_bytes == 8 {
                transpose::transpose(whole);
            } else {
                by_tiles::<Self>(whole, element_bytes);
            }
        }
    }
}

/// The arithmetic that vectors do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Vectors {
    F64,
    F32,
    None,
}

impl Vectors {
    /// That of a type; a constant once the type is known.
    #[inline(always)]
    fn of<T: 'static>() -> Self {
        if TypeId::of::<T>() == TypeId::of::<f64>() {
            Vectors::F64
        } else if TypeId::of::<T>() == TypeId::of::<f32>() {
            Vectors::F32
        } else {
            Vectors::None
        }
    }
}

/// Below this accumulates are over before the processor has been asked for wider vectors.
const SHORT_ELEMENTS: usize = 8;

/// A plane of one run.
const ONCE: Stride = Stride { count: 1, dst: 0, src: 0 };

/// # Safety
/// As [`super::copy`], and `len > 64`.
unsafe fn copy_long(dst: *mut u8, src: *const u8, len: usize) {
    // SAFETY: passed on unchanged.
    unsafe {
        if len <= 2 * small::SMALL_BYTES {
            small::copy_64_to_128(dst, src, len);
        } else {
            on_widest(copy::Copy { dst, src, len });
        }
    }
}

/// The map that is [`super::accumulate`].
#[inline(always)]
fn add_scaled<T>(dst: *mut T, src: *const T, len: usize, alpha: T) -> Map<T, AddScaled<T>> {
    Map { dst, x: dst, y: src, len, formula: AddScaled(alpha) }
}

/// The map that is [`super::scale`].
#[inline(always)]
fn scaled<T>(dst: *mut T, len: usize, alpha: T) -> Map<T, Scaled<T>> {
    Map { dst, x: dst, y: dst, len, formula: Scaled(alpha) }
}
