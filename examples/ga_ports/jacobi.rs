//! Eigenvalues of small symmetric matrices, by Jacobi's method: each rotation makes one element zero. (G. H. Golub, C. F. Van Loan, *Matrix
//! Computations*, §8.5.)

use global_arrays::prelude::*;

/// Sweeps over all elements at most; about eight are enough.
const SWEEPS: usize = 50;

/// Eigenvalues in ascending order, and eigenvectors as columns.
pub(crate) fn eigh(mut a: Array2<f64>) -> (Vec<f64>, Array2<f64>) {
    let rotate = |(x, y): (ArrayViewMut1<f64>, ArrayViewMut1<f64>), cos: f64, sin: f64| {
        for (x, y) in x.into_iter().zip(y) {
            (*x, *y) = (cos * *x - sin * *y, sin * *x + cos * *y);
        }
    };
    let n = a.nrows();
    let goal = 1e-28 * a.iter().map(|x| x * x).sum::<f64>();
    let mut vectors = Array2::eye(n);
    for _sweep in 0..SWEEPS {
        let above_diagonal: f64 = a.indexed_iter().filter(|((i, j), _)| i < j).map(|(_, x)| x * x).sum();
        if above_diagonal <= goal {
            break;
        }
        for p in 0..n {
            for q in p + 1..n {
                if a[[p, q]] != 0.0 {
                    let cot = (a[[q, q]] - a[[p, p]]) / (2.0 * a[[p, q]]);
                    let tan = cot.signum() / (cot.abs() + cot.hypot(1.0));
                    let cos = 1.0 / tan.hypot(1.0);
                    rotate(a.multi_slice_mut((s![.., p], s![.., q])), cos, tan * cos);
                    rotate(a.multi_slice_mut((s![p, ..], s![q, ..])), cos, tan * cos);
                    rotate(vectors.multi_slice_mut((s![.., p], s![.., q])), cos, tan * cos);
                }
            }
        }
    }
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&i, &j| a[[i, i]].total_cmp(&a[[j, j]]));
    (order.iter().map(|&i| a[[i, i]]).collect(), vectors.select(Axis(1), &order))
}
