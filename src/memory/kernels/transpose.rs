//! Transposition in tiles small enough that the rows of both sides stay in the first-level cache.

use super::Stride;
use super::machine::{Machine, Transpose};

/// Bytes of a row of the destination in a tile: a cache line. More lines of the source than that, at a stride that is a power of
/// two, would push each other out of the first-level cache.
const TILE_ROW_BYTES: usize = 64;

/// Columns of the source in a tile.
const TILE_COLS: usize = 64;

/// [`super::copy_transposed`] for any element.
///
/// # Safety
/// As there.
pub(super) unsafe fn by_tiles<M: Machine>(whole: Transpose, element_bytes: usize) {
    let Transpose { dst, dst_row_stride, src, src_row_stride, rows, cols } = whole;
    let width = element_bytes.cast_signed();
    let tile_rows = (TILE_ROW_BYTES / element_bytes.max(1)).max(4);
    for col_start in (0..cols).step_by(TILE_COLS) {
        let col_end = cols.min(col_start + TILE_COLS);
        for row in (0..rows).step_by(tile_rows) {
            let stride = Stride { count: tile_rows.min(rows - row), dst: width, src: src_row_stride };
            let row = row.cast_signed();
            for col in col_start.cast_signed()..col_end.cast_signed() {
                // SAFETY: a part of one column of `src` and of one row of `dst`, elements that the caller vouches for.
                unsafe {
                    M::copy_plane(
                        dst.wrapping_offset(col * dst_row_stride + row * width),
                        src.wrapping_offset(row * src_row_stride + col * width),
                        stride,
                        element_bytes,
                    );
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::memory::kernels::machine::{Machine, Transpose};
    use crate::memory::kernels::testing::{Memory, on_every_machine};

    /// Transposes between buffers with `gap` more bytes to a row than needed, upside down where `up`.
    fn transposes<M: Machine>(rows: usize, cols: usize, width: usize, gaps: (usize, usize), offsets: (usize, usize), up: bool) {
        let (dst_stride, src_stride) = (rows * width + gaps.0, cols * width + gaps.1);
        let mut dst = Memory::new(cols * dst_stride, offsets.0, 1);
        let mut src = Memory::new(rows * src_stride, offsets.1, 2);
        let mut expected = dst.clone();
        for (i, j) in (0..rows).flat_map(|i| (0..cols).map(move |j| (i, j))) {
            let to = if up { cols - 1 - j } else { j } * dst_stride + i * width;
            let from = i * src_stride + j * width;
            expected.inside()[to..to + width].copy_from_slice(&src.inside()[from..from + width]);
        }
        let first = if up { cols.saturating_sub(1) * dst_stride } else { 0 };
        let dst_step = if up { -dst_stride.cast_signed() } else { dst_stride.cast_signed() };
        // SAFETY: all elements lie within two buffers of this test.
        unsafe {
            let (dst, src) = (dst.start().wrapping_add(first), src.start());
            let src_row_stride = src_stride.cast_signed();
            M::copy_transposed(Transpose { dst, dst_row_stride: dst_step, src, src_row_stride, rows, cols }, width);
        }
        assert!(dst.with_guards() == expected.with_guards(), "{rows} × {cols} of {width}, {gaps:?} {offsets:?} {up}");
    }

    fn every_small_shape<M: Machine>() {
        for (rows, cols) in (0..20).flat_map(|rows| (0..20).map(move |cols| (rows, cols))) {
            transposes::<M>(rows, cols, 8, (0, 0), (0, 0), false);
            transposes::<M>(rows, cols, 8, (8, 24), (8, 16), true);
        }
    }

    fn every_width<M: Machine>() {
        for width in [1, 2, 4, 8, 12, 16, 24, 100] {
            for (rows, cols) in [(1, 7), (33, 70), (70, 33), (64, 64)] {
                transposes::<M>(rows, cols, width, (0, 0), (0, 0), false);
                transposes::<M>(rows, cols, width, (3, 5), (1, 2), true);
            }
        }
    }

    fn large_enough_to_be_streamed<M: Machine>() {
        for (rows, cols, offset) in [(1024, 1029, 0), (1031, 1024, 8), (1024, 1025, 40), (1032, 1024, 4)] {
            let gap = (rows * 8_usize).wrapping_neg() % 64;
            transposes::<M>(rows, cols, 8, (gap, 0), (offset, 8), false);
        }
    }

    on_every_machine!(every_small_shape, every_width, large_enough_to_be_streamed);
}
