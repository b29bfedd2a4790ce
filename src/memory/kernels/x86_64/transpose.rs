//! Transposition of 8-byte elements in registers: 8 × 8 blocks by AVX-512, 4 × 4 by AVX2.
//!
//! Blocks go along the rows of a strip of the source that is [`STRIP_COLS`] wide: its few rows are read line after line, and the rows of
//! the destination stay in the page tables' cache. Large destinations are streamed.

use std::arch::x86_64::*;

use super::X86_64;
use super::copy::STREAM_BYTES;
use super::level::Level;
use super::vector::{Avx2, Avx512, Vector, store_fence};
use crate::memory::kernels::machine::Transpose;
use crate::memory::kernels::transpose::by_tiles;

/// Columns of the source that are done before those beside them: measured on 4096² elements, two processes with a half each: 32 to
/// 128 do 2.2 to 2.6 times what a loop in blocks of 32 × 32 does, 16 and 4096 less than 2.
const STRIP_COLS: usize = 64;

/// A cache line.
const LINE_BYTES: usize = 64;

/// Of 8-byte elements.
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

/// Transposes whole blocks in registers, and what they leave over at two edges in tiles.
///
/// # Safety
/// As [`crate::memory::kernels::copy_transposed`] with 8-byte elements.
pub(super) unsafe fn transpose(whole: Transpose) {
    let level = Level::of_processor();
    let side = match level {
        Level::Avx512 => 8,
        Level::Avx2 => 4,
        Level::Sse2 => 1,
    };
    let lines = whole.dst_row_stride.cast_unsigned().is_multiple_of(LINE_BYTES) && whole.dst.addr().is_multiple_of(8);
    let stream = side == 8 && lines && whole.rows * whole.cols * 8 >= STREAM_BYTES;
    // Rows of the source before the first whole line of the destination.
    let head = if stream { whole.dst.addr().wrapping_neg() % LINE_BYTES / 8 } else { 0 };
    let rows = if side == 1 { 0 } else { (whole.rows - head) / side * side };
    let cols = whole.cols / side * side;
    // SAFETY: the blocks and the three strips around them are the whole; after `head` rows the destination is aligned to lines, and so
    // are its other rows.
    unsafe {
        let blocks = whole.part(head, 0, rows, cols);
        match level {
            Level::Avx512 if stream => {
                avx512::<true>(blocks);
                store_fence();
            }
            Level::Avx512 => avx512::<false>(blocks),
            Level::Avx2 => avx2(blocks),
            Level::Sse2 => {}
        }
        tiles(whole.part(0, 0, head, whole.cols));
        tiles(whole.part(head, cols, rows, whole.cols - cols));
        tiles(whole.part(head + rows, 0, whole.rows - head - rows, whole.cols));
    }
}

/// Transposes in tiles of copies.
///
/// # Safety
/// As [`transpose`].
unsafe fn tiles(part: Transpose) {
    // SAFETY: passed on unchanged.
    unsafe { by_tiles::<X86_64>(part, 8) }
}

/// Calls `block` for every block of `side` × `side`.
#[inline(always)]
fn each_block(whole: Transpose, side: usize, block: impl Fn(Transpose)) {
    for strip in (0..whole.cols).step_by(STRIP_COLS) {
        for row in (0..whole.rows).step_by(side) {
            for col in (strip..whole.cols.min(strip + STRIP_COLS)).step_by(side) {
                block(whole.part(row, col, side, side));
            }
        }
    }
}

/// # Safety
/// As [`transpose`], where `rows` and `cols` are multiples of 8; where `STREAM`, `dst` and its stride are multiples of 64, and a fence
/// follows; the processor has AVX-512F.
#[target_feature(enable = "avx512f")]
unsafe fn avx512<const STREAM: bool>(whole: Transpose) {
    // SAFETY: the closure is called with blocks within `rows` and `cols`.
    each_block(whole, 8, |block| unsafe { block_8::<STREAM>(block) });
}

/// # Safety
/// As [`transpose`], where `rows` and `cols` are multiples of 4; the processor has AVX2.
#[target_feature(enable = "avx2")]
unsafe fn avx2(whole: Transpose) {
    // SAFETY: the closure is called with blocks within `rows` and `cols`.
    each_block(whole, 4, |block| unsafe { block_4(block) });
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

/// One 4 × 4 block: interleaves pairs of rows, then swaps halves.
///
/// # Safety
/// As [`avx2`], for the first 4 rows and columns.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn block_4(block: Transpose) {
    let zero = _mm256_setzero_pd();
    let mut rows = [zero; 4];
    for (i, row) in rows.iter_mut().enumerate() {
        // SAFETY: 4 elements of one row of the source.
        *row = _mm256_castsi256_pd(unsafe { Avx2::load::<0>(block.src_row(i.cast_signed())) }.0);
    }
    let even = [_mm256_unpacklo_pd(rows[0], rows[1]), _mm256_unpacklo_pd(rows[2], rows[3])];
    let odd = [_mm256_unpackhi_pd(rows[0], rows[1]), _mm256_unpackhi_pd(rows[2], rows[3])];
    let columns = [
        _mm256_permute2f128_pd::<0x20>(even[0], even[1]),
        _mm256_permute2f128_pd::<0x20>(odd[0], odd[1]),
        _mm256_permute2f128_pd::<0x31>(even[0], even[1]),
        _mm256_permute2f128_pd::<0x31>(odd[0], odd[1]),
    ];
    for (i, &column) in columns.iter().enumerate() {
        // SAFETY: 4 elements of one row of the destination.
        unsafe { Avx2(_mm256_castpd_si256(column)).store::<0>(block.dst_row(i.cast_signed())) };
    }
}
