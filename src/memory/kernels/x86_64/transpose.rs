//! Transposition of 8-byte elements in registers: 8 × 8 blocks by AVX-512, 4 × 4 by AVX2.
//!
//! Each block reads whole pieces of rows and writes whole pieces of rows. Blocks go down the source first, so that the rows of the
//! destination are written one line after the other; a tile limits how many pages are in use at a time.

use std::arch::x86_64::*;

use super::vector::{Avx2, Avx512, Vector};

/// A transposition of 8-byte elements. Strides are in bytes; the rest is as [`crate::memory::kernels::copy_transposed`] says.
#[derive(Clone, Copy)]
pub(super) struct Transpose {
    pub(super) dst: *mut u8,
    pub(super) dst_row_stride: isize,
    pub(super) src: *const u8,
    pub(super) src_row_stride: isize,
    pub(super) rows: usize,
    pub(super) cols: usize,
}

impl Transpose {
    /// The part that begins at row `row`, column `col` of the source, cut to `rows` × `cols`.
    #[inline(always)]
    pub(super) fn part(self, row: usize, col: usize, rows: usize, cols: usize) -> Self {
        Transpose {
            dst: self.dst.wrapping_offset(col.cast_signed() * self.dst_row_stride).wrapping_add(8 * row),
            src: self.src.wrapping_offset(row.cast_signed() * self.src_row_stride).wrapping_add(8 * col),
            rows,
            cols,
            ..self
        }
    }

    /// The address of row `row` of the source.
    #[inline(always)]
    fn src_row(self, row: isize) -> *const u8 {
        self.src.wrapping_offset(row * self.src_row_stride)
    }

    /// The address of row `row` of the destination.
    #[inline(always)]
    fn dst_row(self, row: isize) -> *mut u8 {
        self.dst.wrapping_offset(row * self.dst_row_stride)
    }
}

/// Transposes in tiles of `TR` rows and `TC` columns of the source, both multiples of 8, which divide `rows` and `cols` up to multiples of 8.
///
/// # Safety
/// As [`crate::memory::kernels::copy_transposed`] with 8-byte elements; `rows` and `cols` are multiples of 8; where `STREAM`, `dst` and
/// its stride are multiples of 64 and a fence follows; the processor has AVX-512F.
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn avx512<const STREAM: bool, const TR: usize, const TC: usize>(whole: Transpose) {
    for col in (0..whole.cols).step_by(TC) {
        for row in (0..whole.rows).step_by(TR) {
            for c in (col..whole.cols.min(col + TC)).step_by(8) {
                for r in (row..whole.rows.min(row + TR)).step_by(8) {
                    // SAFETY: a block within `rows` and `cols`.
                    unsafe { block_8::<STREAM>(whole.part(r, c, 8, 8)) };
                }
            }
        }
    }
}

/// One 8 × 8 block: interleaves pairs of rows, then gathers quarters.
///
/// # Safety
/// As [`avx512`], for the first 8 rows and columns.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn block_8<const STREAM: bool>(block: Transpose) {
    let zero = _mm512_setzero_pd();
    let mut rows = [zero; 8];
    for (i, row) in rows.iter_mut().enumerate() {
        // SAFETY: 8 elements of one row of the source.
        *row = _mm512_castsi512_pd(unsafe { Avx512::load::<0>(block.src_row(i.cast_signed())) }.0);
    }
    // Pairs of rows: [a0 b0 a2 b2 a4 b4 a6 b6] and [a1 b1 a3 b3 a5 b5 a7 b7].
    let mut pairs = [zero; 8];
    for i in 0..4 {
        pairs[2 * i] = _mm512_unpacklo_pd(rows[2 * i], rows[2 * i + 1]);
        pairs[2 * i + 1] = _mm512_unpackhi_pd(rows[2 * i], rows[2 * i + 1]);
    }
    // Quarters (two elements each) 0 and 2, 1 and 3 of rows 0–3, then of rows 4–7: by parity of the column.
    let mut columns = [zero; 8];
    for odd in 0..2 {
        let even_top = _mm512_shuffle_f64x2::<0b10_00_10_00>(pairs[odd], pairs[2 + odd]);
        let odd_top = _mm512_shuffle_f64x2::<0b11_01_11_01>(pairs[odd], pairs[2 + odd]);
        let even_low = _mm512_shuffle_f64x2::<0b10_00_10_00>(pairs[4 + odd], pairs[6 + odd]);
        let odd_low = _mm512_shuffle_f64x2::<0b11_01_11_01>(pairs[4 + odd], pairs[6 + odd]);
        columns[odd] = _mm512_shuffle_f64x2::<0b10_00_10_00>(even_top, even_low);
        columns[4 + odd] = _mm512_shuffle_f64x2::<0b11_01_11_01>(even_top, even_low);
        columns[2 + odd] = _mm512_shuffle_f64x2::<0b10_00_10_00>(odd_top, odd_low);
        columns[6 + odd] = _mm512_shuffle_f64x2::<0b11_01_11_01>(odd_top, odd_low);
    }
    for (i, &column) in columns.iter().enumerate() {
        let (column, dst) = (Avx512(_mm512_castpd_si512(column)), block.dst_row(i.cast_signed()));
        // SAFETY: 8 elements of one row of the destination, aligned where `STREAM`.
        unsafe { if STREAM { column.stream::<0>(dst) } else { column.store::<0>(dst) } }
    }
}
