//! What all kernels ask of their views: matching shapes, and the result scaled.

use ndarray::{ArrayView2, ArrayViewMut2};

use crate::element::Number;

/// `c = beta * c`, not read if `beta` is zero.
pub(super) fn scale<T: Number>(mut c: ArrayViewMut2<'_, T>, beta: T) {
    if beta == T::ZERO {
        c.fill(T::ZERO);
    } else if beta != T::ONE {
        c.mapv_inplace(|c| c.scaled(beta));
    }
}

#[track_caller]
pub(super) fn check<T>(c: &ArrayViewMut2<'_, T>, a: &ArrayView2<'_, T>, b: &ArrayView2<'_, T>) {
    assert!(
        a.ncols() == b.nrows() && c.dim() == (a.nrows(), b.ncols()),
        "{:?} is not the shape of a product of {:?} and {:?}",
        c.dim(),
        a.dim(),
        b.dim()
    );
}
