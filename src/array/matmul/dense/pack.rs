//! Packed blocks of the factors: panels of as many rows of A, or columns of B, as a tile has. In a panel one column of A, or row of B,
//! follows the other. What a last panel lacks is zero.
#![allow(unsafe_code)]

use std::{cell::Cell, ops::Range};

use ndarray::{ArrayView1, ArrayView2, ArrayViewMut2, Axis};
use num_complex::Complex;

use super::{
    factor::Factor,
    tile::{Kernel, Real},
};
use crate::{
    array::matmul::scratch::{self, Line},
    element::{Additive, Number},
    error::Result,
};

thread_local! {
    static COPIED: Cell<Vec<Line>> = const { Cell::new(Vec::new()) };
}

/// An element made of one or two floats.
pub(in crate::array::matmul) trait Packable: Number<Real: Real> {
    /// How many floats: 1 or 2.
    const PARTS: usize;

    /// Writes `W` elements of a column of packed A, from row `first` on.
    fn put_left<const W: usize>(values: [Self; W], column: &mut [Self::Real], first: usize);

    /// Writes `W` elements of a row of packed B, from column `first` on.
    fn put_right<const W: usize>(values: [Self; W], row: &mut [Self::Real], first: usize);

    /// The product of a panel of packed A and one of packed B into a tile of C, or added to it.
    ///
    /// # Panics
    /// If the tile is not as high and wide as the panels, or its columns are not contiguous.
    fn tile(kernel: &Kernel<Self::Real>, a: &[Self::Real], b: &[Self::Real], mut c: ArrayViewMut2<'_, Self>, add: bool) {
        assert!(c.ncols() == kernel.columns && c.strides()[0] == 1, "{:?} {:?}", c.dim(), c.strides());
        let (rows, stride) = (c.nrows() * Self::PARTS, c.strides()[1] * Self::PARTS as isize);
        // SAFETY: `c` is an exclusive borrow of as many columns as the kernel writes, each contiguous, and an element is `PARTS`
        // floats without padding. The kernel is one that `best` returned.
        unsafe { kernel.tile(rows, a, b, c.as_mut_ptr().cast(), stride, add) }
    }
}

macro_rules! number {
    ($t:ty) => {
        impl Packable for $t {
            const PARTS: usize = 1;

            #[inline(always)]
            fn put_left<const W: usize>(values: [$t; W], column: &mut [$t], first: usize) {
                column[first..first + W].copy_from_slice(&values);
            }

            #[inline(always)]
            fn put_right<const W: usize>(values: [$t; W], row: &mut [$t], first: usize) {
                row[first..first + W].copy_from_slice(&values);
            }
        }

        impl Packable for Complex<$t> {
            const PARTS: usize = 2;

            #[inline(always)]
            fn put_left<const W: usize>(values: [Self; W], column: &mut [$t], first: usize) {
                let (one, other) = column.split_at_mut(column.len() / 2);
                let one = &mut one.as_chunks_mut::<2>().0[first..first + W];
                let other = &mut other.as_chunks_mut::<2>().0[first..first + W];
                for ((value, one), other) in values.iter().zip(one).zip(other) {
                    (*one, *other) = ([value.re, value.im], [-value.im, value.re]);
                }
            }

            #[inline(always)]
            fn put_right<const W: usize>(values: [Self; W], row: &mut [$t], first: usize) {
                let (re, im) = row.split_at_mut(row.len() / 2);
                re[first..first + W].copy_from_slice(&values.map(|value| value.re));
                im[first..first + W].copy_from_slice(&values.map(|value| value.im));
            }
        }
    };
}
number!(f32);
number!(f64);

/// What a packed factor is: how values of one matrix column are written, from which place on.
trait Side<T: Packable> {
    fn put<const W: usize>(&self, values: [T; W], to: &mut [T::Real], first: usize);
}

struct Left;
struct Scaled<T>(T);
struct Right;

impl<T: Packable> Side<T> for Left {
    #[inline(always)]
    fn put<const W: usize>(&self, values: [T; W], to: &mut [T::Real], first: usize) {
        T::put_left(values, to, first);
    }
}

impl<T: Packable> Side<T> for Scaled<T> {
    #[inline(always)]
    fn put<const W: usize>(&self, values: [T; W], to: &mut [T::Real], first: usize) {
        T::put_left(values.map(|value| self.0.scaled(value)), to, first);
    }
}

impl<T: Packable> Side<T> for Right {
    #[inline(always)]
    fn put<const W: usize>(&self, values: [T; W], to: &mut [T::Real], first: usize) {
        T::put_right(values, to, first);
    }
}

/// Packs a block of A, times `alpha`, for tiles of a kernel.
pub(super) fn left<'p, T: Packable>(
    a: &dyn Factor<T>,
    [rows, depth]: [Range<usize>; 2],
    alpha: T,
    kernel: &Kernel<T::Real>,
    packed: &'p mut [T::Real],
) -> Result<&'p [T::Real]> {
    let (width, unit, floats) = (kernel.rows / T::PARTS, kernel.lanes / T::PARTS, T::PARTS * T::PARTS);
    let sizes = Sizes { width, unit, floats };
    let packed = &mut packed[..rows.len().next_multiple_of(unit) * floats * depth.len()];
    pieces(a, rows, depth.len(), width, |rows, memory| {
        let packed = &mut packed[rows.start * floats * depth.len()..];
        let a = a.block([rows.block, depth.clone()], memory)?;
        if alpha == T::ONE {
            panels(a, sizes, packed, &Left);
        } else {
            panels(a, sizes, packed, &Scaled(alpha));
        }
        Ok(())
    })?;
    Ok(packed)
}

/// Packs a block of B for tiles of a kernel.
pub(super) fn right<'p, T: Packable>(
    b: &dyn Factor<T>,
    [depth, columns]: [Range<usize>; 2],
    kernel: &Kernel<T::Real>,
    packed: &'p mut [T::Real],
) -> Result<&'p [T::Real]> {
    let width = kernel.columns;
    let packed = &mut packed[..columns.len().next_multiple_of(width) * T::PARTS * depth.len()];
    pieces(b, columns, depth.len(), width, |columns, memory| {
        let packed = &mut packed[columns.start * T::PARTS * depth.len()..];
        let b = b.block([depth.clone(), columns.block], memory)?;
        panels(b.reversed_axes(), Sizes { width, unit: width, floats: T::PARTS }, packed, &Right);
        Ok(())
    })?;
    Ok(packed)
}

/// Some rows of A or columns of B.
struct Piece {
    block: Range<usize>,
    /// How many of the block are before them.
    start: usize,
}

/// Calls `pack` for pieces of a block of a factor, in whole panels, and with memory for the copy of one.
fn pieces<T: Packable>(
    factor: &dyn Factor<T>,
    block: Range<usize>,
    depth: usize,
    width: usize,
    mut pack: impl FnMut(Piece, &mut [T]) -> Result<()>,
) -> Result<()> {
    let Some(most) = factor.piece() else { return pack(Piece { block, start: 0 }, &mut []) };
    let len = (most / depth / width * width).clamp(width, block.len().next_multiple_of(width));
    scratch::with(&COPIED, len * depth, |memory: &mut [T]| {
        let mut starts = block.clone().step_by(len);
        starts.try_for_each(|start| pack(Piece { block: start..block.end.min(start + len), start: start - block.start }, memory))
    })
}

/// How a matrix is packed: in panels of `width` of its rows, the last a multiple of `unit`; an element takes so many `floats`.
#[derive(Clone, Copy)]
struct Sizes {
    width: usize,
    unit: usize,
    floats: usize,
}

/// Packs a matrix.
fn panels<T: Packable>(matrix: ArrayView2<'_, T>, sizes: Sizes, packed: &mut [T::Real], side: &impl Side<T>) {
    #[cfg(target_arch = "x86_64")]
    if std::is_x86_feature_detected!("avx2") {
        #[target_feature(enable = "avx2")]
        fn with_avx2<T: Packable>(matrix: ArrayView2<'_, T>, sizes: Sizes, packed: &mut [T::Real], side: &impl Side<T>) {
            panels_by_any(matrix, sizes, packed, side);
        }
        // SAFETY: the processor has these instructions.
        return unsafe { with_avx2(matrix, sizes, packed, side) };
    }
    panels_by_any(matrix, sizes, packed, side);
}

/// As [`panels`], with the vectors of the caller.
#[inline(always)]
fn panels_by_any<T: Packable>(
    matrix: ArrayView2<'_, T>,
    Sizes { width, unit, floats }: Sizes,
    packed: &mut [T::Real],
    side: &impl Side<T>,
) {
    let columns = matrix.ncols();
    let packed = &mut packed[..matrix.nrows().next_multiple_of(unit) * floats * columns];
    for (source, panel) in matrix.axis_chunks_iter(Axis(0), width).zip(packed.chunks_mut(width * floats * columns)) {
        let length = panel.len() / columns;
        if source.nrows() * floats < length {
            panel.fill(T::Real::ZERO);
        }
        if source.strides()[0] == 1 {
            for (from, to) in source.columns().into_iter().zip(panel.chunks_exact_mut(length)) {
                let (fours, rest) = from.to_slice().expect("a contiguous column").as_chunks::<4>();
                for (k, &values) in fours.iter().enumerate() {
                    side.put(values, to, 4 * k);
                }
                for (k, &value) in rest.iter().enumerate() {
                    side.put([value], to, 4 * fours.len() + k);
                }
            }
            continue;
        }
        let (fours, twos) = (source.nrows() / 4 * 4, source.nrows() / 2 * 2);
        for first in (0..fours).step_by(4) {
            turn([0, 1, 2, 3].map(|row| source.row(first + row)), first, length, panel, side);
        }
        for first in (fours..twos).step_by(2) {
            turn([0, 1].map(|row| source.row(first + row)), first, length, panel, side);
        }
        for first in twos..source.nrows() {
            turn([source.row(first)], first, length, panel, side);
        }
    }
}

/// Writes some rows of a matrix, from `first` on, into its panel: several at a time, so that what is written lies side by side.
#[inline(always)]
fn turn<T: Packable, const W: usize>(
    rows: [ArrayView1<'_, T>; W],
    first: usize,
    length: usize,
    panel: &mut [T::Real],
    side: &impl Side<T>,
) {
    let columns = rows[0].len();
    let mut done = 0;
    if rows[0].strides()[0] == 1 {
        // Squares of four columns, each of which stays in registers.
        let rows = rows.map(|row| row.to_slice().expect("a contiguous row").as_chunks::<4>().0);
        for (k, panel) in panel.chunks_exact_mut(4 * length).enumerate().take(columns / 4) {
            let square: [[T; 4]; W] = rows.map(|row| row[k]);
            let (front, back) = panel.split_at_mut(2 * length);
            let ((to_0, to_1), (to_2, to_3)) = (front.split_at_mut(length), back.split_at_mut(length));
            side.put(square.map(|row| row[0]), to_0, first);
            side.put(square.map(|row| row[1]), to_1, first);
            side.put(square.map(|row| row[2]), to_2, first);
            side.put(square.map(|row| row[3]), to_3, first);
        }
        done = columns / 4 * 4;
    }
    for (j, to) in panel.chunks_exact_mut(length).enumerate().skip(done) {
        side.put(rows.map(|row| row[j]), to, first);
    }
}
