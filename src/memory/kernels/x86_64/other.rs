//! Arithmetic on other elements: the loops that any machine has, compiled for each width of vector.
//!
//! Integers gain from that as much as `f64` from hand-written loops: the compiler vectorizes the safe Rust between two copies.

use super::X86_64;
use super::level::Kernel;
use super::vector::Vector;
use crate::element::{Additive, Number};
use crate::memory::kernels::{Stride, arithmetic};

/// [`crate::memory::kernels::accumulate_strided`] with one level.
pub(super) struct OtherPlane<T: Additive> {
    pub(super) dst: *mut T,
    pub(super) src: *const T,
    pub(super) stride: Stride,
    pub(super) run_elements: usize,
    pub(super) alpha: T::Scale,
}

impl<T: Additive> Kernel for OtherPlane<T> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        let OtherPlane { mut dst, mut src, stride, run_elements, alpha } = self;
        for _ in 0..stride.count {
            // SAFETY: one of the runs.
            unsafe { arithmetic::accumulate::<X86_64, T>(dst, src, run_elements, alpha) };
            dst = dst.wrapping_byte_offset(stride.dst);
            src = src.wrapping_byte_offset(stride.src);
        }
    }
}

/// [`crate::memory::kernels::scale`].
pub(super) struct OtherScale<T: Additive> {
    pub(super) dst: *mut T,
    pub(super) len: usize,
    pub(super) alpha: T::Scale,
}

impl<T: Additive> Kernel for OtherScale<T> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        // SAFETY: passed on unchanged.
        unsafe { arithmetic::scale::<X86_64, T>(self.dst, self.len, self.alpha) }
    }
}

/// [`crate::memory::kernels::axpby`].
pub(super) struct OtherAxpby<T: Additive> {
    pub(super) dst: *mut T,
    pub(super) a: T::Scale,
    pub(super) x: *const T,
    pub(super) b: T::Scale,
    pub(super) y: *const T,
    pub(super) len: usize,
}

impl<T: Additive> Kernel for OtherAxpby<T> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        // SAFETY: passed on unchanged.
        unsafe { arithmetic::axpby::<X86_64, T>(self.dst, self.a, self.x, self.b, self.y, self.len) }
    }
}

/// [`crate::memory::kernels::dot`].
pub(super) struct OtherDot<T> {
    pub(super) x: *const T,
    pub(super) y: *const T,
    pub(super) len: usize,
}

impl<T: Number> Kernel for OtherDot<T> {
    type Output = T;

    #[inline(always)]
    unsafe fn run<V: Vector>(self) -> T {
        // SAFETY: passed on unchanged.
        unsafe { arithmetic::dot::<X86_64, T>(self.x, self.y, self.len) }
    }
}
