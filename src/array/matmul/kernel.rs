//! The product of three views of one rank: register tiles for floats and complex numbers, a blocked loop for the rest.

use ndarray::{ArrayView2, ArrayViewMut2, Zip};
use num_complex::Complex;

use super::OPERATION;
#[cfg(feature = "blas")]
use super::blas;
use super::dense::{self, Factor, Packable};
use super::views::{check, scale};
#[cfg(not(feature = "blas"))]
use super::{NONE, VARIABLE};
use crate::{
    element::Number,
    error::{Error, Result},
};

/// An element that matrices can be multiplied of.
///
/// Implemented for `f32`, `f64` and their complex numbers by vectorised kernels, or with the feature `blas` by a BLAS, and for all
/// integers by a blocked loop. A type of your own with [`Number`] joins by an empty `impl`.
pub trait Matmul: Number {
    /// `c = alpha * a * b + beta * c` on memory of one rank, of any strides. With `beta` zero `c` is not read.
    ///
    /// # Panics
    /// If the shapes do not go together. For floats and complex numbers, if `GA_BLAS` names a library that cannot be used, or any in a
    /// program without the feature `blas`.
    fn multiply(c: ArrayViewMut2<'_, Self>, alpha: Self, a: ArrayView2<'_, Self>, b: ArrayView2<'_, Self>, beta: Self) {
        blocked(c, alpha, a, b, beta);
    }

    /// Operations on real numbers of a multiplication with an addition.
    #[doc(hidden)]
    const FLOPS: f64 = 2.0;

    /// The product of factors that copy their blocks when these are packed, for types whose kernel packs.
    #[doc(hidden)]
    const BY_BLOCKS: Option<ByBlocks<Self>> = None;
}

/// As [`Matmul::multiply`].
#[doc(hidden)]
#[allow(unreachable_pub, reason = "the type of a hidden constant of a public trait")]
pub type ByBlocks<T> = fn(ArrayViewMut2<'_, T>, T, &dyn Factor<T>, &dyn Factor<T>, T) -> Result<()>;

macro_rules! by_loop {
    ($($t:ty),*) => {$(impl Matmul for $t {})*};
}
by_loop!(i8, u8, i16, u16, i32, u32, i64, u64, i128, u128, isize, usize);

macro_rules! by_tiles {
    ($($t:ty, $flops:expr);*) => {$(
        impl Matmul for $t {
            const FLOPS: f64 = $flops;

            fn multiply(c: ArrayViewMut2<'_, Self>, alpha: Self, a: ArrayView2<'_, Self>, b: ArrayView2<'_, Self>, beta: Self) {
                #[cfg(feature = "blas")]
                let Some(c) = blas::multiply(c, alpha, &a, &b, beta) else { return };
                #[cfg(not(feature = "blas"))]
                if let Some(refusal) = refusal() {
                    panic!("{refusal}");
                }
                vectorised(c, alpha, a, b, beta);
            }

            const BY_BLOCKS: Option<ByBlocks<Self>> = Some(dense::product);
        }
    )*};
}
by_tiles!(f32, 2.0; f64, 2.0; Complex<f32>, 8.0; Complex<f64>, 8.0);

/// Whether a BLAS of the system multiplies elements of this type.
///
/// # Errors
/// The BLAS that the user chose cannot be used.
pub(super) fn is_by_blas<T: Matmul>() -> Result<bool> {
    Ok(T::BY_BLOCKS.is_some() && has_blas()?)
}

#[cfg(feature = "blas")]
fn has_blas() -> Result<bool> {
    blas::library().map(|blas| blas.is_some()).map_err(|what| Error::argument(OPERATION, what))
}

#[cfg(not(feature = "blas"))]
fn has_blas() -> Result<bool> {
    refusal().map_or(Ok(false), |refusal| Err(Error::argument(OPERATION, refusal)))
}

/// Why this program cannot use the BLAS that the user chose, if the user chose one. Decided at the first product, as with the feature.
#[cfg(not(feature = "blas"))]
fn refusal() -> Option<&'static str> {
    static REFUSAL: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    let refuse = || {
        let name = std::env::var_os(VARIABLE).filter(|name| !name.is_empty() && name != NONE)?;
        Some(format!(
            "{VARIABLE}={name:?} chooses a BLAS, but this program was built without the feature \"blas\"; build it with --features blas, \
             or set {VARIABLE} to \"{NONE}\" for the crate's own kernel, or unset it"
        ))
    };
    REFUSAL.get_or_init(refuse).as_deref()
}

fn vectorised<T: Packable>(c: ArrayViewMut2<'_, T>, alpha: T, a: ArrayView2<'_, T>, b: ArrayView2<'_, T>, beta: T) {
    check(&c, &a, &b);
    dense::product(c, alpha, &a, &b, beta).expect("nothing is copied");
}

/// Rows of a block of `b` that stay in the cache while all rows of `c` pass.
const DEPTH: usize = 64;

fn blocked<T: Number>(c: ArrayViewMut2<'_, T>, alpha: T, a: ArrayView2<'_, T>, b: ArrayView2<'_, T>, beta: T) {
    check(&c, &a, &b);
    if c.strides()[1] != 1 && c.strides()[0] == 1 {
        // Contiguous by columns: the transposed product is contiguous by rows.
        return by_rows(c.reversed_axes(), alpha, b.reversed_axes(), a.reversed_axes(), beta);
    }
    by_rows(c, alpha, a, b, beta);
}

fn by_rows<T: Number>(mut c: ArrayViewMut2<'_, T>, alpha: T, a: ArrayView2<'_, T>, b: ArrayView2<'_, T>, beta: T) {
    scale(c.view_mut(), beta);
    if alpha == T::ZERO {
        return;
    }
    let b = b.as_standard_layout();
    let k = a.ncols();
    for start in (0..k).step_by(DEPTH) {
        let depth = start..k.min(start + DEPTH);
        for (a, mut c) in a.rows().into_iter().zip(c.rows_mut()) {
            for p in depth.clone() {
                let factor = alpha.scaled(a[p]);
                Zip::from(&mut c).and(b.row(p)).for_each(|c, &b| *c = c.plus(factor.scaled(b)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{Array2, s};

    #[test]
    fn both_roads_are_the_definition_on_any_strides() {
        let number = |i: usize, j: usize| ((i * 7 + j * 5) % 11) as f64 - 5.0;
        for (m, n, k) in [(1, 1, 1), (5, 3, 70), (17, 33, 4), (0, 4, 3), (4, 0, 3), (4, 3, 0)] {
            let a = Array2::from_shape_fn((2 * k, m), |(i, j)| number(i, j));
            let a = a.slice(s![..;-2, ..]).reversed_axes();
            let b = Array2::from_shape_fn((k, n), |(i, j)| number(j, i));
            for beta in [0.0, 1.0, -2.0] {
                for transposed in [false, true] {
                    let start = Array2::from_shape_fn((2 * m, n), |(i, j)| number(i, j));
                    let old = start.slice(s![..;-2, ..]).to_owned();
                    let expected = beta * &old + 3.0 * a.dot(&b);
                    for road in [vectorised, blocked] {
                        let mut c =
                            if transposed { start.t().as_standard_layout().reversed_axes().to_owned() } else { start.clone() };
                        road(c.slice_mut(s![..;-2, ..]), 3.0, a.view(), b.view(), beta);
                        assert_eq!(c.slice(s![..;-2, ..]), expected);
                        if m > 0 && n > 0 {
                            assert_eq!(c.row(0), start.row(0), "outside the view");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn with_beta_zero_the_old_contents_do_not_matter() {
        let mut c = Array2::from_elem((3, 3), f64::NAN);
        let one = Array2::<f64>::eye(3);
        for road in [vectorised, blocked] {
            c.fill(f64::NAN);
            road(c.view_mut(), 1.0, one.view(), one.view(), 0.0);
            assert_eq!(c, one);
        }
    }

    #[test]
    #[should_panic(expected = "is not the shape of a product")]
    fn shapes_are_checked() {
        let (mut c, a) = (Array2::<f32>::zeros((3, 4)), Array2::zeros((3, 3)));
        f32::multiply(c.view_mut(), 1.0, a.view(), a.view(), 0.0);
    }
}
