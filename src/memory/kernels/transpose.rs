//! Transposition in tiles small enough that the rows of both sides stay in the first-level cache.

use super::Stride;
use super::machine::Machine;

/// Elements along one side of a tile: 32 rows of 8-byte elements touch 32 × 4 cache lines on each side, 16 KiB together.
const TILE: usize = 32;

/// [`super::copy_transposed`] for any element.
///
/// # Safety
/// As there.
pub(super) unsafe fn by_tiles<M: Machine>(
    dst: *mut u8,
    dst_row_stride: isize,
    src: *const u8,
    src_row_stride: isize,
    rows: usize,
    cols: usize,
    element_bytes: usize,
) {
    let width = element_bytes.cast_signed();
    for row_start in (0..rows).step_by(TILE) {
        let row_end = rows.min(row_start + TILE);
        for col in (0..cols).step_by(TILE) {
            let stride = Stride { count: TILE.min(cols - col), dst: dst_row_stride, src: width };
            let col = col.cast_signed();
            for row in row_start.cast_signed()..row_end.cast_signed() {
                // SAFETY: a part of one row of `src` and of one column of `dst`, elements that the caller vouches for.
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
