//! The triangular solves, block by block: what each does with one vector and one block of the factors.
//!
//! For A·x = b. Forward, for the panels from left to right: carry out the panel's interchanges on z, solve its unit lower triangle for
//! y, subtract L₂₁·y from the rows of z below. Backward, from right to left: solve the upper triangle for x, subtract
//! U₁₂·x from the rows above. The interchanges come just in time because the columns of L stand in the order of rows that
//! held when they were computed.
//!
//! For Aᵀ·x = b the other way round. Forward with Uᵀ: subtract from a block of z what the blocks above give, and solve. Backward with Lᵀ:
//! subtract what the rows below give, solve, and carry out the panel's interchanges backwards on all of z.

use ndarray::{ArrayView2, ArrayViewMut1, Axis, s};
use program::vectorized::vectorized;

use crate::kernels::solve_unit_lower;

/// Interchanges row `first + i` of z with row `pivots[i]`, for i from 0 upwards.
pub(crate) fn interchange(z: &mut [f64], first: usize, pivots: &[usize]) {
    for (i, &pivot) in pivots.iter().enumerate() {
        z.swap(first + i, pivot);
    }
}

/// z ← L⁻¹·z for the unit lower triangle of `block`.
pub(crate) fn solve_lower(block: ArrayView2<'_, f64>, z: ArrayViewMut1<'_, f64>) {
    solve_unit_lower(block, z.insert_axis(Axis(1)));
}

/// z ← U⁻¹·z for the upper triangle of `block`.
pub(crate) fn solve_upper(block: ArrayView2<'_, f64>, mut z: ArrayViewMut1<'_, f64>) {
    for j in (0..z.len()).rev() {
        let solved = z[j] / block[[j, j]];
        z[j] = solved;
        for i in 0..j {
            z[i] -= solved * block[[i, j]];
        }
    }
}

/// z ← L⁻ᵀ·z for the unit lower triangle of `block`, whose columns are contiguous.
pub(crate) fn solve_lower_transposed(block: ArrayView2<'_, f64>, mut z: ArrayViewMut1<'_, f64>) {
    for j in (0..z.len()).rev() {
        z[j] -= block.slice(s![j + 1.., j]).dot(&z.slice(s![j + 1..]));
    }
}

/// z ← U⁻ᵀ·z for the upper triangle of `block`, whose columns are contiguous.
pub(crate) fn solve_upper_transposed(block: ArrayView2<'_, f64>, mut z: ArrayViewMut1<'_, f64>) {
    for j in 0..z.len() {
        z[j] = (z[j] - block.slice(s![..j, j]).dot(&z.slice(s![..j]))) / block[[j, j]];
    }
}

/// The same interchanges backwards.
pub(crate) fn interchange_back(z: &mut [f64], first: usize, pivots: &[usize]) {
    for (i, &pivot) in pivots.iter().enumerate().rev() {
        z.swap(first + i, pivot);
    }
}

/// z ← z − block·y. Columns of the block are contiguous.
///
/// A product with one column reads each element once, so it is as fast as memory: four columns go over z together.
pub(crate) fn subtract_product(z: &mut [f64], block: ArrayView2<'_, f64>, y: &[f64]) {
    vectorized(
        #[inline(always)]
        || {
            for (columns, y) in block.axis_chunks_iter(Axis(1), 4).zip(y.chunks(4)) {
                let column = |j: usize| columns.index_axis_move(Axis(1), j).to_slice().expect("contiguous columns");
                if let &[y0, y1, y2, y3] = y {
                    let columns = column(0).iter().zip(column(1)).zip(column(2)).zip(column(3));
                    for (z, (((a0, a1), a2), a3)) in z.iter_mut().zip(columns) {
                        *z -= (a0 * y0 + a1 * y1) + (a2 * y2 + a3 * y3);
                    }
                } else {
                    for (j, y) in y.iter().enumerate() {
                        z.iter_mut().zip(column(j)).for_each(|(z, a)| *z -= a * y);
                    }
                }
            }
        },
    );
}

#[cfg(test)]
mod tests {
    use ndarray::{Array1, Array2, ShapeBuilder};

    use super::*;

    #[test]
    fn a_product_is_subtracted_for_any_number_of_columns() {
        for rows in [0, 1, 7, 40] {
            for width in 0..10 {
                // A part of longer columns, as a panel of the factors is. Small integers: sums are exact in any order.
                let panel = Array2::from_shape_fn((rows + 3, width).f(), |(i, j)| ((i * 7 + j * 5) % 11) as f64 - 5.0);
                let block = panel.slice(s![3.., ..]);
                let y = Array1::from_shape_fn(width, |j| (j * 3 % 7) as f64 - 3.0);
                let mut z = Array1::from_shape_fn(rows, |i| i as f64);
                let expected = &z - &block.dot(&y);
                subtract_product(z.as_slice_mut().expect("contiguous"), block, y.as_slice().expect("contiguous"));
                assert_eq!(z, expected, "{rows} x {width}");
            }
        }
    }
}
