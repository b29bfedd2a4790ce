//! The factorisation and the solves on one process, from the parts that the distributed ones are made of.

use std::convert::Infallible;

use ndarray::{Array2, ArrayViewMut2, ShapeBuilder, s};

use crate::axis::Axis;
use crate::kernels::{multiply_subtract, solve_unit_lower};
use crate::panel::{self, Alone, Stopped};
use crate::report::Phases;
use crate::solve::{interchange, solve_lower, solve_upper, subtract_product};
use crate::swaps::RowMoves;

/// Columns of the trailing matrix that are swapped, solved and updated together.
const STRIP: usize = 1 << 20;

/// Overwrites `a` (n × n, columns contiguous) with its factors and returns the interchanges of all panels, row by row.
///
/// # Errors
///
/// [`Stopped::Singular`].
pub(crate) fn factor(mut a: ArrayViewMut2<'_, f64>, block: usize, phases: &mut Phases) -> Result<Vec<usize>, Stopped<Infallible>> {
    let n = a.nrows();
    let rows = Axis { extent: n, block, processes: 1, me: 0 };
    let mut pivots = Vec::with_capacity(n);
    for first in (0..n).step_by(block) {
        let end = (first + block).min(n);
        let width = end - first;
        let (mut left, mut right) = a.multi_slice_mut((s![first.., first..end], s![first.., end..]));
        let panel = Phases::time(&mut phases.panel, || panel::factor(left.view_mut(), first, rows, &mut Alone))?;
        let moves = RowMoves::new(first, &panel.pivots);
        pivots.extend(panel.pivots);
        for mut strip in right.axis_chunks_iter_mut(ndarray::Axis(1), STRIP) {
            let mut u = Array2::zeros((width, strip.ncols()).f());
            Phases::time(&mut phases.swap, || moves.apply(strip.view_mut(), u.view_mut(), |row| row - first));
            Phases::time(&mut phases.triangle, || solve_unit_lower(panel.top.view(), u.view_mut()));
            Phases::time(&mut phases.swap, || strip.slice_mut(s![..width, ..]).assign(&u));
            let below = strip.slice_mut(s![width.., ..]);
            Phases::time(&mut phases.update, || multiply_subtract(below, left.slice(s![width.., ..]), u.view()));
        }
    }
    Ok(pivots)
}

/// Overwrites `z` with the solution of A·x = z from the factors of A.
pub(crate) fn solve(factors: ndarray::ArrayView2<'_, f64>, pivots: &[usize], block: usize, z: &mut [f64]) {
    let n = z.len();
    for first in (0..n).step_by(block) {
        let end = (first + block).min(n);
        interchange(z, first, &pivots[first..end]);
        let (here, below) = ndarray::ArrayViewMut1::from(&mut *z).split_at(ndarray::Axis(0), end);
        let mut here = here.slice_move(s![first..]);
        solve_lower(factors.slice(s![first..end, first..end]), here.view_mut());
        subtract_product(below, factors.slice(s![end.., first..end]), here.view());
    }
    for first in (0..n).step_by(block).rev() {
        let end = (first + block).min(n);
        let (above, here) = ndarray::ArrayViewMut1::from(&mut *z).split_at(ndarray::Axis(0), first);
        let mut here = here.slice_move(s![..end - first]);
        solve_upper(factors.slice(s![first..end, first..end]), here.view_mut());
        subtract_product(above, factors.slice(s![..first, first..end]), here.view());
    }
}
