//! The symmetric and the antisymmetric part of a square matrix, in place.
//!
//! One member reads and writes both elements of a pair (i, j) and (j, i), so no second matrix is needed. For balance, the matrix is
//! divided into squares. Of two that mirror each other, the owner of the lower or of the upper one works, alternating like a chess board.
//! The owner fetches the mirror image of its boxes, small enough to be read across rows, and puts it back.

use std::ops::Range;

use ndarray::{ArrayView, Dim, Ix2, ShapeBuilder};
use num_complex::Complex;

use super::Elements;
use crate::{
    array::GlobalArray,
    calls::located,
    distribution::{Block, Order, Piece},
    element::Number,
    error::{Error, Result},
    index::Patch,
    sync::Op,
};

/// Elements along an edge of a square: two of them fit the second-level cache.
const EDGE: usize = 64;
/// The same where each of its rows is a transfer over a network, and latency counts; and where operations are counted.
const FAR_EDGE: usize = 256;

/// An element that can be halved: floats and complex numbers.
pub trait Halve: Number {
    /// `self / 2`.
    #[must_use]
    fn half(self) -> Self;
    /// `self - other`.
    #[must_use]
    fn minus(self, other: Self) -> Self;
}

macro_rules! halve {
    ($($t:ty, $two:expr);*) => {$(
        impl Halve for $t {
            #[inline]
            fn half(self) -> Self { self / $two }
            #[inline]
            fn minus(self, other: Self) -> Self { self - other }
        }
    )*};
}
halve!(f32, 2.0; f64, 2.0; Complex<f32>, 2.0; Complex<f64>, 2.0);

/// # Algebra of square matrices
impl<T: Halve> GlobalArray<T, Ix2> {
    /// `A = A/2 + Aᵀ/2`, without conjugation. Collective; any distribution; in place.
    ///
    /// # Errors
    /// A matrix that is not square; the errors of [`fill`](Self::fill).
    ///
    /// # Examples
    /// ```
    /// use global_arrays::prelude::*;
    /// # fn main() -> Result<(), Error> {
    /// Launch::new().ranks(3).network("threads").run(|job| {
    ///     let mut a = GlobalArray::<f64, Ix2>::builder(job, [5, 5]).create()?;
    ///     a.map_indexed(|(i, j), _| (10 * i + j) as f64)?;
    ///     a.symmetrize()?;
    ///     assert_eq!((a.load([1, 4])?, a.load([4, 1])?), (27.5, 27.5));
    ///     job.sync()
    /// })
    /// # }
    /// ```
    ///
    /// # Source
    /// GA: `GA_Symmetrize`.
    #[doc(alias = "GA_Symmetrize")]
    #[track_caller]
    pub fn symmetrize(&mut self) -> Result<()> {
        located(move || {
            self.pair_up("symmetrize", |x, y| {
                let mean = x.half().plus(y.half());
                (mean, mean)
            })
        })
    }

    /// `A = A/2 - Aᵀ/2`, without conjugation. Collective; any distribution; in place.
    ///
    /// # Errors
    /// Same as [`symmetrize`](Self::symmetrize).
    ///
    /// # Source
    /// `ga_antisymmetrize` of NWChem.
    #[track_caller]
    pub fn antisymmetrize(&mut self) -> Result<()> {
        located(move || {
            self.pair_up("antisymmetrize", |x, y| {
                let (x, y) = (x.half(), y.half());
                (x.minus(y), y.minus(x))
            })
        })
    }

    /// Replaces the elements x = (i, j) and y = (j, i) of each pair by `f(x, y)`; i may be either of the two indices.
    fn pair_up(&self, operation: &'static str, f: impl Fn(T, T) -> (T, T) + Copy) -> Result<()> {
        if self.shape()[0] != self.shape()[1] {
            let what = format!("array \"{}\" has extents {:?}, which is not square", self.name, self.shape());
            return Err(Error::Mismatch { operation: operation.into(), what });
        }
        let section = self.enter(operation, &[], Elements::All)?;
        // What was put to others is part of what the end promises.
        let paired = self.pair_own(f).and_then(|()| self.group.fence_all(Op::Algebra));
        section.leave(paired)
    }

    fn pair_own(&self, f: impl Fn(T, T) -> (T, T) + Copy) -> Result<()> {
        // Not what is mapped: what a job counts does not depend on its network.
        let edge = if self.group.inner.direct { EDGE } else { FAR_EDGE };
        let area = (edge * edge).min(self.len());
        let mut buffers = [vec![T::zeroed(); area], vec![T::zeroed(); area]];
        for block in self.distribution.blocks(self.group.member()) {
            let [rows, columns] = [0, 1].map(|axis| {
                let start = block.patch.start()[axis];
                start..start + block.patch.count()[axis]
            });
            for (i, rows) in ruled(rows, edge) {
                for (j, columns) in ruled(columns.clone(), edge) {
                    if i == j {
                        for [rows, columns] in on_and_below(&rows, &columns) {
                            self.pair_box(&block, [rows, columns], &mut buffers, f)?;
                        }
                    } else if is_in_turn(i, j) {
                        self.pair_box(&block, [rows.clone(), columns], &mut buffers, f)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Some rows and columns of a block of this rank with their mirror image; equal ranges are their own.
    fn pair_box(
        &self,
        block: &Block<Ix2>,
        [rows, columns]: [Range<usize>; 2],
        [own, other]: &mut [Vec<T>; 2],
        f: impl Fn(T, T) -> (T, T),
    ) -> Result<()> {
        let (start, strides) = (block.patch.start(), block.strides);
        let offset = block.offset + (rows.start - start[0]) * strides[0] + (columns.start - start[1]) * strides[1];
        let count = Dim([rows.len(), columns.len()]);
        let piece = Piece { member: self.group.member(), offset, strides, start: Dim([rows.start, columns.start]), count };
        let all = self.all();
        all.read_box(&piece, &mut all.box_view(&count, own));
        // Column-major boxes are row-major ones of the transposed shape.
        let by_rows = self.distribution.order() == Order::RowMajor;
        let (m, n) = if by_rows { (count[0], count[1]) } else { (count[1], count[0]) };
        if rows == columns {
            for i in 0..m {
                for j in 0..=i {
                    (own[i * n + j], own[j * n + i]) = f(own[i * n + j], own[j * n + i]);
                }
            }
        } else {
            let mirrored = Dim([count[1], count[0]]);
            let patch = Patch::block(Dim([columns.start, rows.start]), mirrored);
            self.get_into(&patch, all.box_view(&mirrored, other))?;
            across(&mut own[..m * n], &mut other[..m * n], m, f);
            let shape = mirrored.set_f(!by_rows);
            self.put(&patch, ArrayView::from_shape(shape, &other[..m * n]).expect("as many as the box has"))?;
        }
        all.write_box(&piece, &all.box_view(&count, own).view());
        // The box and its mirror image, read and written.
        self.streamed::<T>(4 * m * n);
        Ok(())
    }
}

/// `f` on the elements (i, j) of a row-major matrix of `m` rows and (j, i) of another of `m` columns.
fn across<T: Copy>(xs: &mut [T], ys: &mut [T], m: usize, f: impl Fn(T, T) -> (T, T)) {
    /// Of the columns of `ys` that lie in the first-level cache together, and share their lines.
    const STEP: usize = 8;
    let n = xs.len() / m.max(1);
    for i in (0..m).step_by(STEP) {
        for j in 0..n {
            let column = &mut ys[j * m..][i..m.min(i + STEP)];
            for (k, y) in column.iter_mut().enumerate() {
                let x = &mut xs[(i + k) * n + j];
                (*x, *y) = f(*x, *y);
            }
        }
    }
}

/// Of two squares that mirror each other, which is worked on by its owner.
fn is_in_turn(i: usize, j: usize) -> bool {
    (i > j) == (i + j).is_multiple_of(2)
}

/// A range cut at multiples of `edge`, with the number of each piece.
fn ruled(range: Range<usize>, edge: usize) -> impl Iterator<Item = (usize, Range<usize>)> {
    let squares = if range.is_empty() { 0..0 } else { range.start / edge..(range.end - 1) / edge + 1 };
    squares.map(move |k| (k, range.start.max(k * edge)..range.end.min((k + 1) * edge)))
}

/// Rows and columns cut so that the boxes lie beside the diagonal or are squares on it; those above it are left out.
fn on_and_below(rows: &Range<usize>, columns: &Range<usize>) -> Vec<[Range<usize>; 2]> {
    let mut cuts = [rows.start, rows.end, columns.start, columns.end];
    cuts.sort_unstable();
    let pieces = |range: &Range<usize>| {
        let inside = |pair: &&[usize]| pair[0] < pair[1] && range.start <= pair[0] && pair[1] <= range.end;
        cuts.windows(2).filter(inside).map(|pair| pair[0]..pair[1]).collect::<Vec<_>>()
    };
    let columns = pieces(columns);
    let boxes = pieces(rows).into_iter().flat_map(|rows| columns.iter().map(move |columns| [rows.clone(), columns.clone()]));
    boxes.filter(|[rows, columns]| rows.start >= columns.start).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_on_and_below_the_diagonal_cover_it_once() {
        for (rows, columns) in [(0..5, 0..5), (2..6, 0..9), (0..9, 2..6), (3..8, 0..5), (0..5, 3..8), (0..2, 5..9), (5..9, 0..2)]
        {
            let mut seen = ndarray::Array2::<u8>::zeros((9, 9));
            for [r, c] in on_and_below(&rows, &columns) {
                assert!(r == c || r.start >= c.end, "{r:?} x {c:?} crosses the diagonal");
                seen.slice_mut(ndarray::s![r, c]).mapv_inplace(|n| n + 1);
            }
            for ((i, j), &n) in seen.indexed_iter() {
                let inside = rows.contains(&i) && columns.contains(&j);
                assert!(n == u8::from(inside && i >= j) || n == 1 && inside && rows.contains(&j) && columns.contains(&i));
            }
        }
    }

    #[test]
    fn one_of_two_squares_is_in_turn_and_rows_have_equally_many() {
        let n = 21;
        assert!((0..n).all(|i| (0..i).all(|j| is_in_turn(i, j) != is_in_turn(j, i))));
        let counts = (0..n).map(|i| (0..n).filter(|&j| j != i && is_in_turn(i, j)).count());
        assert!(counts.clone().all(|count| count.abs_diff((n - 1) / 2) <= 1), "{:?}", counts.collect::<Vec<_>>());
    }

    #[test]
    fn a_range_is_ruled_at_multiples() {
        assert_eq!(ruled(5..17, 8).collect::<Vec<_>>(), [(0, 5..8), (1, 8..16), (2, 16..17)]);
        assert_eq!(ruled(8..8, 8).count(), 0);
    }

    #[test]
    fn pairs_meet_across() {
        let (m, n) = (11, 9);
        let mut xs: Vec<usize> = (0..m * n).collect();
        let mut ys: Vec<usize> = (0..m * n).map(|k| (k % m) * n + k / m).collect();
        across(&mut xs, &mut ys, m, |x, y| {
            assert_eq!(x, y);
            (x + 1, y + 2)
        });
        assert!(xs.iter().enumerate().all(|(k, &x)| x == k + 1) && ys[1] == n + 2);
    }
}
