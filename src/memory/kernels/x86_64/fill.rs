//! One value over and over, as a vector of its bytes.

use super::copy::STREAM_BYTES;
use super::level::Kernel;
use super::small;
use super::vector::{Vector, store_fence};

/// The widest vector.
const PATTERN_BYTES: usize = 64;

/// Two widest vectors of repeated elements: a vector may begin at any byte of the first.
#[repr(align(64))]
pub(super) struct Pattern([u8; 2 * PATTERN_BYTES]);

impl Pattern {
    /// Whether elements of that many bytes come round at the end of a vector.
    pub(super) const fn suits(element_bytes: usize) -> bool {
        element_bytes.is_power_of_two() && element_bytes <= PATTERN_BYTES
    }

    /// `element` again and again.
    #[inline]
    pub(super) fn new(element: &[u8]) -> Self {
        let mut bytes = [0; 2 * PATTERN_BYTES];
        for part in bytes.chunks_exact_mut(element.len()) {
            part.copy_from_slice(element);
        }
        Pattern(bytes)
    }
}

/// Fills `len` bytes, a whole number of elements, with the pattern. Its fields are as [`crate::memory::kernels::fill`] says.
pub(super) struct Fill<'a> {
    pub(super) dst: *mut u8,
    pub(super) len: usize,
    pub(super) pattern: &'a Pattern,
}

impl Kernel for Fill<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        let Fill { mut dst, mut len, pattern } = self;
        let start = pattern.0.as_ptr();
        // SAFETY: reads of the pattern stay within its two vectors; writes within `len` bytes, which counts what is left. The last
        // vector ends with the range, a whole number of elements from its start, so it begins as the pattern does. From `skip` on
        // `dst` is aligned to the vector.
        unsafe {
            if len < V::BYTES {
                return small::copy(dst, start, len);
            }
            let last = dst.wrapping_add(len - V::BYTES);
            let first = V::load::<0>(start);
            first.store::<0>(dst);
            let stream = len >= STREAM_BYTES;
            let skip = dst.addr().wrapping_neg() % V::BYTES;
            let value = V::load::<0>(start.add(skip));
            (dst, len) = (dst.wrapping_add(skip), len - skip);
            while len >= 4 * V::BYTES {
                if stream {
                    value.stream::<0>(dst);
                    value.stream::<1>(dst);
                    value.stream::<2>(dst);
                    value.stream::<3>(dst);
                } else {
                    value.store::<0>(dst);
                    value.store::<1>(dst);
                    value.store::<2>(dst);
                    value.store::<3>(dst);
                }
                (dst, len) = (dst.wrapping_add(4 * V::BYTES), len - 4 * V::BYTES);
            }
            while len >= V::BYTES {
                value.store::<0>(dst);
                (dst, len) = (dst.wrapping_add(V::BYTES), len - V::BYTES);
            }
            first.store::<0>(last);
            if stream {
                store_fence();
            }
        }
    }
}
