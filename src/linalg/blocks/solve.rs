//! What a solve does with one block of the factors and some right-hand sides, which are the columns of z.

use ndarray::{ArrayView2, ArrayViewMut2, Axis};

use super::triangle::{adjoint, multiply_subtract};
use crate::{linalg::field::Field, memory::vectorized::vectorized};

/// Right-hand sides from which the product of matrices is worth its packing.
const SEVERAL: usize = 4;

/// Interchanges row `first + i` of z with row `pivots[i]`, for i from 0 upwards, or the same backwards.
pub(super) fn interchange<T: Field>(z: &mut ArrayViewMut2<'_, T>, first: usize, pivots: &[usize], backwards: bool) {
    for k in 0..pivots.len() {
        let i = if backwards { pivots.len() - 1 - k } else { k };
        if pivots[i] != first + i {
            z.columns_mut().into_iter().for_each(|mut column| column.swap(first + i, pivots[i]));
        }
    }
}

/// z ← z − block·y. Columns of all are contiguous.
///
/// A product with one column reads each element once, so it is as fast as memory: four columns go over z together.
pub(super) fn subtract_product<T: Field>(mut z: ArrayViewMut2<'_, T>, block: ArrayView2<'_, T>, y: ArrayView2<'_, T>) {
    if z.ncols() >= SEVERAL {
        return multiply_subtract(z, block, y);
    }
    for (mut z, y) in z.columns_mut().into_iter().zip(y.columns()) {
        let z = z.as_slice_mut().expect("contiguous columns");
        vectorized(
            #[inline(always)]
            || {
                for (columns, y) in block.axis_chunks_iter(Axis(1), 4).zip(y.axis_chunks_iter(Axis(0), 4)) {
                    let column = |j: usize| columns.index_axis_move(Axis(1), j).to_slice().expect("contiguous columns");
                    if y.len() == 4 {
                        let columns = column(0).iter().zip(column(1)).zip(column(2)).zip(column(3));
                        for (z, (((&a0, &a1), &a2), &a3)) in z.iter_mut().zip(columns) {
                            *z -= (a0 * y[0] + a1 * y[1]) + (a2 * y[2] + a3 * y[3]);
                        }
                    } else {
                        for (j, &y) in y.iter().enumerate() {
                            z.iter_mut().zip(column(j)).for_each(|(z, &a)| *z -= a * y);
                        }
                    }
                }
            },
        );
    }
}

/// z ← z − blockᴴ·y.
pub(super) fn subtract_adjoint<T: Field>(mut z: ArrayViewMut2<'_, T>, block: ArrayView2<'_, T>, y: ArrayView2<'_, T>) {
    if z.ncols() >= SEVERAL {
        return multiply_subtract(z, adjoint(block).view(), y);
    }
    for (mut z, y) in z.columns_mut().into_iter().zip(y.columns()) {
        let conjugate = y.mapv(T::conj);
        z.iter_mut().zip(block.columns()).for_each(|(z, column)| *z -= column.dot(&conjugate).conj());
    }
}

#[cfg(test)]
mod tests {
    use ndarray::{Array2, ShapeBuilder, s};
    use num_complex::Complex64;

    use super::*;

    #[test]
    fn products_are_subtracted_for_any_number_of_columns() {
        for (rows, width, right) in
            [0, 1, 7, 40].into_iter().flat_map(|rows| (0..10).map(move |width| (rows, width, 1 + width % 6)))
        {
            // A part of longer columns, as a panel of the factors is. Small integers: sums are exact in any order.
            let number = |i: usize, j: usize| Complex64::new(((i * 7 + j * 5) % 11) as f64 - 5.0, ((i + j * 3) % 5) as f64);
            let panel = Array2::from_shape_fn((rows + 3, width).f(), |(i, j)| number(i, j));
            let block = panel.slice(s![3.., ..]);
            let [y, z] = [width, rows].map(|len| Array2::from_shape_fn((len, right).f(), |(i, j)| number(j, i)));
            let (mut below, mut above) = (z.clone(), y.clone());
            subtract_product(below.view_mut(), block, y.view());
            subtract_adjoint(above.view_mut(), block, z.view());
            assert_eq!(below, &z - &block.dot(&y), "{rows} x {width}, {right}");
            assert_eq!(above, &y - &block.t().mapv(|x| x.conj()).dot(&z), "{rows} x {width}, {right}");
        }
    }
}
