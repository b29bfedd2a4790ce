//! What a target has to bring. `arithmetic.rs` and `transpose.rs` have versions made of its copies.

use super::Stride;
use crate::element::{Additive, Element, Number};

/// A transposition, as [`super::copy_transposed`] says.
#[derive(Clone, Copy)]
pub(super) struct Transpose {
    pub(super) dst: *mut u8,
    pub(super) dst_row_stride: isize,
    pub(super) src: *const u8,
    pub(super) src_row_stride: isize,
    pub(super) rows: usize,
    pub(super) cols: usize,
}

/// The kernels of one kind of processor. The safety clauses of each method are those of the function of the same name in
/// [`super`]; a plane is one level of strides.
pub(super) trait Machine: Sized {
    /// [`super::prefetch`], or [`super::prefetch_to_write`] if `WRITE`.
    #[inline(always)]
    fn prefetch<const WRITE: bool>(_address: *const u8) {}

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
    unsafe fn accumulate<T: Additive>(dst: *mut T, src: *const T, len: usize, alpha: T::Scale);

    /// `stride.count` runs of `run_elements` elements.
    ///
    /// # Safety
    /// [`super::accumulate_strided`] with the one level `stride`.
    #[inline]
    unsafe fn accumulate_plane<T: Additive>(
        mut dst: *mut T,
        mut src: *const T,
        stride: Stride,
        run_elements: usize,
        alpha: T::Scale,
    ) {
        for _ in 0..stride.count {
            // SAFETY: the caller vouches for each of the `count` runs.
            unsafe { Self::accumulate(dst, src, run_elements, alpha) };
            dst = dst.wrapping_byte_offset(stride.dst);
            src = src.wrapping_byte_offset(stride.src);
        }
    }

    /// # Safety
    /// [`super::fill`].
    unsafe fn fill<T: Element>(dst: *mut T, len: usize, value: T);

    /// # Safety
    /// [`super::scale`].
    unsafe fn scale<T: Additive>(dst: *mut T, len: usize, alpha: T::Scale);

    /// # Safety
    /// [`super::axpby`].
    unsafe fn axpby<T: Additive>(dst: *mut T, a: T::Scale, x: *const T, b: T::Scale, y: *const T, len: usize);

    /// # Safety
    /// [`super::dot`].
    unsafe fn dot<T: Number>(x: *const T, y: *const T, len: usize) -> T;

    /// # Safety
    /// [`super::copy_transposed`].
    unsafe fn copy_transposed(whole: Transpose, element_bytes: usize);
}

#[cfg(test)]
mod tests {
    use super::Machine;
    use crate::memory::kernels::testing::{Memory, on_every_machine};

    /// Copies at two alignments and compares all of the destination, guards included, with what a slice does.
    fn copies<M: Machine>(len: usize, to: usize, from: usize) {
        let (mut dst, mut src) = (Memory::new(len, to, 1), Memory::new(len, from, 2));
        let mut expected = dst.clone();
        expected.inside().copy_from_slice(src.inside());
        // SAFETY: two buffers of this test, `len` bytes each.
        unsafe { M::copy(dst.start(), src.start(), len) };
        assert!(dst.with_guards() == expected.with_guards(), "{len} bytes, offsets {to} and {from}");
    }

    fn every_short_length_at_every_alignment<M: Machine>() {
        for len in 0..300 {
            for (to, from) in (0..16).flat_map(|to| [(to, 0), (to, 3), (to, 8), (0, to), (to, to)]) {
                copies::<M>(len, to, from);
            }
        }
        for len in [1, 8, 31, 64, 65, 127, 129, 257] {
            for to in 0..16 {
                (0..16).for_each(|from| copies::<M>(len, to, from));
            }
        }
    }

    fn long_lengths_around_every_threshold<M: Machine>() {
        for len in [511, 1025, 4093, 4096, 24575, 24576, 24577, 32768, 70001, (1 << 20) + 13] {
            for (to, from) in [(0, 0), (1, 0), (0, 7), (24, 24), (63, 1), (16, 8)] {
                copies::<M>(len, to, from);
            }
        }
        for len in [(8 << 20) - 1, 8 << 20, (8 << 20) + 77] {
            for (to, from) in [(0, 0), (1, 0), (24, 24)] {
                copies::<M>(len, to, from);
            }
        }
    }

    on_every_machine!(every_short_length_at_every_alignment, long_lengths_around_every_threshold);
}
