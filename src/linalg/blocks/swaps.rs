//! The row interchanges of one panel, applied to the columns right of it.
//!
//! A panel of w columns gives w interchanges in a row. They are not carried out one by one: [`RowMoves`] says where each
//! row *ends*. Then every column is touched once: w rows move into the block row of the panel (the rows of U), and the
//! rows that they push out take the places of those that came from below. Only rows of the block row are ever pushed
//! out, so `out_of_top` is the whole of the rest. Columns left of a panel are never touched: the solve applies each
//! panel's interchanges just before it uses the panel (LINPACK's `dgesl` does so; LAPACK moves them).

use std::collections::HashMap;

use ndarray::ArrayViewMut2;

/// Where the interchanges of one panel put each row. Row numbers are global.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::linalg) struct RowMoves {
    /// The first row of the panel's block row.
    pub(in crate::linalg) first: usize,
    /// The row that ends in each row of the block row, from the top.
    pub(in crate::linalg) into_top: Vec<usize>,
    /// The rows of the block row that end below it: (row, row where it ends), ordered by the latter.
    pub(in crate::linalg) out_of_top: Vec<(usize, usize)>,
}

impl RowMoves {
    /// The effect of interchanging row `first + i` with row `pivots[i]`, for i from 0 upwards.
    ///
    /// # Panics
    ///
    /// When a pivot lies above the row that it is interchanged with.
    pub(in crate::linalg) fn new(first: usize, pivots: &[usize]) -> Self {
        let width = pivots.len();
        let mut into_top: Vec<usize> = (first..first + width).collect();
        let mut below: HashMap<usize, usize> = HashMap::with_capacity(width);
        for (i, &pivot) in pivots.iter().enumerate() {
            assert!(pivot >= first + i, "row {} is interchanged with row {pivot} above it", first + i);
            if pivot < first + width {
                into_top.swap(i, pivot - first);
            } else {
                let leaving = into_top[i];
                into_top[i] = below.insert(pivot, leaving).unwrap_or(pivot);
            }
        }
        let mut out_of_top: Vec<(usize, usize)> = below.into_iter().map(|(to, from)| (from, to)).collect();
        out_of_top.sort_unstable_by_key(|&(_, to)| to);
        Self { first, into_top, out_of_top }
    }

    /// Carries the moves out where all rows are at hand: `u` (w × n) receives the new block row, `columns` the rows that
    /// leave it. The block row of `columns` itself is left as it was: it is overwritten from `u` once that is solved.
    ///
    /// `local` gives the row of `columns` that holds a global row; the columns of both are contiguous.
    pub(in crate::linalg) fn apply<T: Copy>(
        &self,
        mut columns: ArrayViewMut2<'_, T>,
        mut u: ArrayViewMut2<'_, T>,
        local: impl Fn(usize) -> usize,
    ) {
        let sources: Vec<usize> = self.into_top.iter().map(|&from| local(from)).collect();
        let leaving: Vec<(usize, usize)> = self.out_of_top.iter().map(|&(from, to)| (local(from), local(to))).collect();
        for (column, top) in columns.columns_mut().into_iter().zip(u.columns_mut()) {
            let column = column.into_slice().expect("contiguous columns");
            let top = top.into_slice().expect("contiguous columns");
            for (value, &from) in top.iter_mut().zip(&sources) {
                *value = column[from];
            }
            for &(from, to) in &leaving {
                column[to] = column[from];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use ndarray::{Array2, ShapeBuilder, s};
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The moves leave every row where the interchanges, carried out one by one, leave it.
        #[test]
        fn moves_equal_the_interchanges(first in 0usize..5, width in 0usize..9, below in 0usize..12, seed in any::<u64>()) {
            let rows = first + width + below;
            let mut state = seed;
            let mut below_or_at = |low: usize| {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                low + (state >> 33) as usize % (rows - low)
            };
            let pivots: Vec<usize> = (0..width).map(|i| below_or_at(first + i)).collect();
            let original = Array2::from_shape_fn((rows, 3).f(), |(i, j)| (10 * i + j) as f64);
            let mut expected = original.clone();
            for (i, &pivot) in pivots.iter().enumerate() {
                for j in 0..3 {
                    expected.swap([first + i, j], [pivot, j]);
                }
            }
            let (mut columns, mut u) = (original, Array2::zeros((width, 3).f()));
            RowMoves::new(first, &pivots).apply(columns.view_mut(), u.view_mut(), |row| row);
            columns.slice_mut(s![first..first + width, ..]).assign(&u);
            prop_assert_eq!(columns, expected);
        }
    }
}
