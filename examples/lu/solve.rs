//! The triangular solves, block by block: what each does with one vector and one block of the factors.
//!
//! Forward, for the panels from left to right: carry out the panel's interchanges on z, solve its unit lower triangle for
//! y, subtract L₂₁·y from the rows of z below. Backward, from right to left: solve the upper triangle for x, subtract
//! U₁₂·x from the rows above. The interchanges come just in time because the columns of L stand in the order of rows that
//! held when they were computed.

use ndarray::{ArrayView1, ArrayView2, ArrayViewMut1, Axis};

use crate::kernels::{multiply_subtract, solve_unit_lower};

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

/// z ← z − block·y.
pub(crate) fn subtract_product(z: ArrayViewMut1<'_, f64>, block: ArrayView2<'_, f64>, y: ArrayView1<'_, f64>) {
    multiply_subtract(z.insert_axis(Axis(1)), block, y.insert_axis(Axis(1)));
}
