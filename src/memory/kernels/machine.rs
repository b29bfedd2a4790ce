//! What a target has to bring: a copy. The rest has a version made of copies, which a target may replace.

use super::{Stride, arithmetic, transpose};
use crate::element::{Accumulate, Element};

/// The kernels of one kind of processor. The safety clauses of each method are those of the function of the same name in
/// [`super`]; a plane is one level of strides.
pub(super) trait Machine: Sized {
    /// # Safety
    /// [`super::copy`].
    unsafe fn copy(dst: *mut u8, src: *const u8, len: usize);

    /// `stride.count` runs of `run` bytes.
    ///
    /// # Safety
    /// [`super::copy_strided`] with the one level `stride`.
    #[inline]
    unsafe fn copy_plane(mut dst: *mut u8, mut src: *const u8, stride: Stride, run: usize) {
        for _ in 0..stride.count {
            // SAFETY: the caller vouches for each of the `count` runs.
            unsafe { Self::copy(dst, src, run) };
            dst = dst.wrapping_offset(stride.dst);
            src = src.wrapping_offset(stride.src);
        }
    }

    /// # Safety
    /// [`super::accumulate`].
    unsafe fn accumulate<T: Accumulate>(dst: *mut T, src: *const T, len: usize, alpha: T) {
        // SAFETY: passed on unchanged.
        unsafe { arithmetic::accumulate::<Self, T>(dst, src, len, alpha) }
    }

    /// `stride.count` runs of `run_elements` elements.
    ///
    /// # Safety
    /// [`super::accumulate_strided`] with the one level `stride`.
    #[inline]
    unsafe fn accumulate_plane<T: Accumulate>(mut dst: *mut T, mut src: *const T, stride: Stride, run_elements: usize, alpha: T) {
        for _ in 0..stride.count {
            // SAFETY: the caller vouches for each of the `count` runs.
            unsafe { Self::accumulate(dst, src, run_elements, alpha) };
            dst = dst.wrapping_byte_offset(stride.dst);
            src = src.wrapping_byte_offset(stride.src);
        }
    }

    /// # Safety
    /// [`super::fill`].
    unsafe fn fill<T: Element>(dst: *mut T, len: usize, value: T) {
        // SAFETY: passed on unchanged.
        unsafe { arithmetic::fill::<Self, T>(dst, len, value) }
    }

    /// # Safety
    /// [`super::scale`].
    unsafe fn scale<T: Accumulate>(dst: *mut T, len: usize, alpha: T) {
        // SAFETY: passed on unchanged.
        unsafe { arithmetic::scale::<Self, T>(dst, len, alpha) }
    }

    /// # Safety
    /// [`super::axpby`].
    unsafe fn axpby<T: Accumulate>(dst: *mut T, a: T, x: *const T, b: T, y: *const T, len: usize) {
        // SAFETY: passed on unchanged.
        unsafe { arithmetic::axpby::<Self, T>(dst, a, x, b, y, len) }
    }

    /// # Safety
    /// [`super::dot`].
    unsafe fn dot<T: Accumulate>(x: *const T, y: *const T, len: usize) -> T {
        // SAFETY: passed on unchanged.
        unsafe { arithmetic::dot::<Self, T>(x, y, len) }
    }

    /// # Safety
    /// [`super::copy_transposed`].
    unsafe fn copy_transposed(
        dst: *mut u8,
        dst_row_stride: isize,
        src: *const u8,
        src_row_stride: isize,
        rows: usize,
        cols: usize,
        element_bytes: usize,
    ) {
        // SAFETY: passed on unchanged.
        unsafe { transpose::by_tiles::<Self>(dst, dst_row_stride, src, src_row_stride, rows, cols, element_bytes) }
    }
}
