//! The factorisation and the solves on one process, from the parts that the distributed ones are made of.

use std::convert::Infallible;

use ndarray::{ArrayView2, ArrayViewMut1, ArrayViewMut2, Axis as Dimension, ShapeBuilder, s};

use crate::axis::Axis;
use crate::kernels::{multiply_subtract, solve_unit_lower};
use crate::panel::{self, Alone, Stopped};
use crate::report::Phases;
use crate::solve::{interchange, solve_lower, solve_upper, subtract_product};
use crate::swaps::RowMoves;

/// Columns of the trailing matrix that are swapped, solved and updated together: narrow enough for its
/// buffer to stay in the second-level cache, wide enough to pay for packing L again. Measured on one core of a busy Zen 5,
/// n = 4096: 128 is 8–10 % slower; 512, 1024 and all at once differ by less than the noise of 5 %.
const STRIP: usize = 512;

/// Overwrites `a` (n × n, columns contiguous) with its factors and returns the interchanges of all panels, row by row.
///
/// # Errors
///
/// [`Stopped::Singular`].
pub(crate) fn factor(
    mut a: ArrayViewMut2<'_, f64>,
    block: usize,
    phases: &mut Phases,
) -> Result<Vec<usize>, Stopped<Infallible>> {
    let n = a.nrows();
    let rows = Axis { extent: n, block, processes: 1, me: 0 };
    let mut pivots = Vec::with_capacity(n);
    let mut buffer = vec![0.0; block.min(n) * STRIP.min(n)];
    for first in (0..n).step_by(block) {
        let end = (first + block).min(n);
        let width = end - first;
        let (mut left, mut right) = a.multi_slice_mut((s![first.., first..end], s![first.., end..]));
        let panel = Phases::time(&mut phases.panel, || panel::factor(left.view_mut(), first, rows, &mut Alone))?;
        let moves = RowMoves::new(first, &panel.pivots);
        pivots.extend(panel.pivots);
        for mut strip in right.axis_chunks_iter_mut(Dimension(1), STRIP) {
            let shape = (width, strip.ncols());
            let mut u = ArrayViewMut2::from_shape(shape.f(), &mut buffer[..shape.0 * shape.1]).expect("a strip fits");
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
pub(crate) fn solve(factors: ArrayView2<'_, f64>, pivots: &[usize], block: usize, z: &mut [f64]) {
    let n = z.len();
    for first in (0..n).step_by(block) {
        let end = (first + block).min(n);
        interchange(z, first, &pivots[first..end]);
        let (here, below) = ArrayViewMut1::from(&mut *z).split_at(Dimension(0), end);
        let mut here = here.slice_move(s![first..]);
        solve_lower(factors.slice(s![first..end, first..end]), here.view_mut());
        subtract_product(below, factors.slice(s![end.., first..end]), here.view());
    }
    for first in (0..n).step_by(block).rev() {
        let end = (first + block).min(n);
        let (above, here) = ArrayViewMut1::from(&mut *z).split_at(Dimension(0), first);
        let mut here = here.slice_move(s![..end - first]);
        solve_upper(factors.slice(s![first..end, first..end]), here.view_mut());
        subtract_product(above, factors.slice(s![..first, first..end]), here.view());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::Matrix;
    use crate::report::residual;

    fn check(matrix: &Matrix, block: usize, pad: usize) -> Result<f64, Stopped<Infallible>> {
        let n = matrix.order();
        let all = Axis { extent: n, block, processes: 1, me: 0 };
        let mut store = ndarray::Array2::zeros((n + pad, n).f());
        let mut a = store.slice_mut(s![..n, ..]);
        matrix.fill(all, all, a.view_mut());
        let pivots = factor(a.view_mut(), block, &mut Phases::default())?;
        let b: Vec<f64> = (0..n).map(|row| matrix.right_hand_side(row)).collect();
        let mut x = b.clone();
        solve(a.view(), &pivots, block, &mut x);
        let (mut product, mut magnitudes) = (vec![0.0; n], vec![0.0; n]);
        matrix.multiply(all, all, &x, &mut product, &mut magnitudes);
        Ok(residual(&product, &magnitudes, &x, &b))
    }

    #[test]
    fn small_residual_for_any_order_and_block() {
        for order in [1, 2, 3, 7, 8, 9, 31, 64, 100, 257] {
            for block in [1, 2, 5, 8, 33, 64, 300] {
                let found = check(&Matrix::Generated { order, seed: 3 }, block, order % 3).unwrap();
                assert!(found < 1.0, "{order} {block}: {found}");
            }
        }
    }

    #[test]
    fn real_matrices() {
        let data = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/lu/data");
        for file in ["west0067.mtx", "west0479.mtx"] {
            let sparse = crate::market::read(&data.join(file)).unwrap();
            for block in [16, 192] {
                let found = check(&Matrix::Read { sparse: sparse.clone(), seed: 7 }, block, 0).unwrap();
                assert!(found < 1.0, "{file} {block}: {found}");
            }
        }
    }

    #[test]
    fn a_singular_matrix_is_refused() {
        let sparse = crate::market::Sparse { order: 3, entries: vec![(0, 0, 1.0), (1, 1, 1.0), (0, 2, 1.0)] };
        assert_eq!(check(&Matrix::Read { sparse, seed: 1 }, 2, 0), Err(Stopped::Singular { column: 2 }));
    }
}
