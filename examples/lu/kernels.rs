//! Dense kernels on one process: the matrix product behind everything, and the triangular solve built on it.
//!
//! Matrices are `ndarray` views. The product is the library's, which chooses AVX-512, AVX2 or plain code when it
//! runs; the little that is left beside it (leaves of the triangular solve here, columns of a panel in `panel.rs`) are
//! plain loops that [`vectorized`] compiles for the same instruction sets. One thread: parallelism is that of ranks and of `trailing`.

use global_arrays::algebra::Matmul;
use ndarray::{ArrayView2, ArrayViewMut2, Axis, s};
use program::vectorized::vectorized;

/// Rows of a triangle up to which the triangular solve is a plain loop.
///
/// Measured on one core of Zen 5, n = 4096, blocks of 192, milliseconds in all solves: 25 with 8 rows, 35 with 16, 82 with
/// 32 (there the compiler gives up on vectors).
const TRIANGLE_LEAF: usize = 8;

/// c ← c − a·b for c of m × n, a of m × k, b of k × n.
///
/// # Panics
///
/// When the shapes do not fit.
pub(crate) fn multiply_subtract(c: ArrayViewMut2<'_, f64>, a: ArrayView2<'_, f64>, b: ArrayView2<'_, f64>) {
    f64::multiply(c, -1.0, a, b, 1.0);
}

/// x ← l⁻¹·x for the unit lower triangle of l (k × k; diagonal and upper part are not read), x of k × n, columns of
/// both contiguous.
///
/// Recursive: the upper half of x is solved, its product with the square below the upper triangle is subtracted from the
/// lower half, the lower half is solved. So nearly all the work is in [`multiply_subtract`].
///
/// # Panics
///
/// When the shapes do not fit or a column is not contiguous.
pub(crate) fn solve_unit_lower(l: ArrayView2<'_, f64>, x: ArrayViewMut2<'_, f64>) {
    let k = l.nrows();
    assert!(l.ncols() == k && x.nrows() == k, "l {:?}, x {:?}", l.dim(), x.dim());
    if k <= TRIANGLE_LEAF {
        return solve_unit_lower_leaf(l, x);
    }
    let half = (k / 2).next_multiple_of(TRIANGLE_LEAF);
    let (mut upper, mut lower) = x.split_at(Axis(0), half);
    solve_unit_lower(l.slice(s![..half, ..half]), upper.view_mut());
    multiply_subtract(lower.view_mut(), l.slice(s![half.., ..half]), upper.view());
    solve_unit_lower(l.slice(s![half.., half..]), lower);
}

/// One column of x at a time, in a square of fixed size padded by zeros, so that a column is a handful of registers.
fn solve_unit_lower_leaf(l: ArrayView2<'_, f64>, mut x: ArrayViewMut2<'_, f64>) {
    let k = l.nrows();
    let mut triangle = [[0.0; TRIANGLE_LEAF]; TRIANGLE_LEAF];
    for (j, column) in triangle.iter_mut().enumerate().take(k) {
        for (i, entry) in column.iter_mut().enumerate().take(k).skip(j + 1) {
            *entry = l[[i, j]];
        }
    }
    let columns = x.columns_mut().into_iter().map(|c| c.into_slice().expect("contiguous columns"));
    vectorized(
        #[inline(always)]
        || {
            for column in columns {
                let mut solution = [0.0; TRIANGLE_LEAF];
                solution[..k].copy_from_slice(column);
                for j in 0..TRIANGLE_LEAF {
                    let pivot = solution[j];
                    for i in 0..TRIANGLE_LEAF {
                        solution[i] -= pivot * triangle[j][i];
                    }
                }
                column.copy_from_slice(&solution[..k]);
            }
        },
    );
}

#[cfg(test)]
mod tests {
    use ndarray::{Array2, ShapeBuilder};

    use super::*;

    fn random(m: usize, n: usize, seed: u64) -> Array2<f64> {
        let mut state = seed;
        Array2::from_shape_simple_fn((m, n).f(), || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 11) as f64 / (1u64 << 53) as f64 - 0.5
        })
    }

    #[test]
    fn product_is_subtracted_also_on_strided_views() {
        for (m, n, k) in [(0, 3, 2), (3, 0, 2), (3, 2, 0), (1, 1, 1), (7, 5, 3), (40, 33, 65)] {
            let (a, b) = (random(m + 2, k + 1, 1), random(k + 3, n + 1, 2));
            let (a, b) = (a.slice(s![1..m + 1, 1..]), b.slice(s![..k, ..n]));
            let mut c = random(m + 1, n, 3);
            let expected = &c.slice(s![1.., ..]) - &a.dot(&b);
            multiply_subtract(c.slice_mut(s![1.., ..]), a, b);
            for (x, y) in c.slice(s![1.., ..]).iter().zip(&expected) {
                assert!((x - y).abs() < 1e-13, "{x} {y}");
            }
        }
    }

    #[test]
    fn triangular_solve_undoes_the_product() {
        for (k, n) in [(0, 2), (1, 1), (5, 3), (16, 4), (17, 2), (100, 9), (192, 31)] {
            let l = random(k, k, 4);
            let unit = Array2::from_shape_fn((k, k), |(i, j)| if i > j { l[[i, j]] } else { (i == j) as u8 as f64 });
            let solution = random(k, n, 5);
            let product = unit.dot(&solution);
            let mut x = Array2::zeros((k, n).f());
            x.assign(&product);
            solve_unit_lower(l.view(), x.view_mut());
            let scale = x.iter().fold(1.0f64, |m, v| m.max(v.abs()));
            // Random unit triangles are badly conditioned: compare the products.
            for (p, q) in unit.dot(&x).iter().zip(&product) {
                assert!((p - q).abs() < 1e-12 * scale, "k {k}: {p} {q}");
            }
        }
    }
}
