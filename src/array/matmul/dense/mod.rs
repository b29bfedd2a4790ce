//! The product of three dense views of floats or complex numbers.
//!
//! | file | contents |
//! |---|---|
//! | `factor` | a view, or an array from which blocks are copied |
//! | `tile` | the inner loop |
//! | `pack` | blocks of the factors in the order of the inner loop |
//! | `caches`, `blocking` | the sizes of caches and of blocks |
//!
//! 1. For each `m` rows of C, for each `k` of the sum: pack `m × k` of A, times α. It stays in this core's share of the last cache.
//! 2. For each `n` columns of C: pack `k × n` of B. It stays in the second cache.
//! 3. For each few rows of packed A, which stay in the first cache, and each few columns of packed B: one tile of C, in registers.
//!
//! A tile has about three times as many rows as columns: the narrow panel streams through the first cache.
//!
//! A complex column `a` is packed as the real columns `(re a, im a)` and `(-im a, re a)`, interleaved by rows; a complex row `b` as the
//! real rows `re b` and `im b`. The real product of twice the depth then writes real and imaginary parts of C where they belong.
//!
//! # Why not a library
//!
//! On one core of Zen 3, between orders of 1000 and 2048, `private-gemm-x86` reached 0.89 to 0.97 of OpenBLAS, `gemm` 0.93 to 1.02, and
//! this 0.93 to 1.04. The first needs x86-64 and a buffer of twice the last cache for each rank; the second took longest of all crates to
//! build. Neither packs a factor while it is copied out of shared memory, which is worth 9 % at order 1024.
//!
//! # Source
//! K. Goto, R. A. van de Geijn: Anatomy of high-performance matrix multiplication, ACM TOMS 34(3), 2008. F. G. Van Zee, R. A. van de
//! Geijn: BLIS: a framework for rapidly instantiating BLAS functionality, ACM TOMS 41(3), 2015. Complex numbers: F. G. Van Zee:
//! Implementing high-performance complex matrix multiplication via the 1m method, SIAM J. Sci. Comput. 42(5), 2020.

mod blocking;
mod caches;
mod factor;
mod pack;
mod tile;

use std::cell::Cell;

use ndarray::{ArrayView2, ArrayViewMut2, Axis, ShapeBuilder, Zip, s};

use self::{blocking::Blocking, caches::Caches, tile::Kernel};
use super::{
    scratch::{self, Line},
    views::scale,
};
use crate::error::Result;
#[allow(unreachable_pub, reason = "in the type of a hidden constant of a public trait")]
pub use factor::Factor;
use factor::Transposed;
pub(super) use pack::Packable;

thread_local! {
    static PACKED_A: Cell<Vec<Line>> = const { Cell::new(Vec::new()) };
    static PACKED_B: Cell<Vec<Line>> = const { Cell::new(Vec::new()) };
}

/// `c = alpha * a * b + beta * c` for factors whose shapes go together with it. With `beta` zero `c` is not read.
pub(super) fn product<T: Packable>(
    c: ArrayViewMut2<'_, T>,
    alpha: T,
    a: &dyn Factor<T>,
    b: &dyn Factor<T>,
    beta: T,
) -> Result<()> {
    product_by((tile::best(), caches::of_this_core()), c, alpha, a, b, beta)
}

fn product_by<T: Packable>(
    (kernel, caches): (&Kernel<T::Real>, Caches),
    mut c: ArrayViewMut2<'_, T>,
    alpha: T,
    a: &dyn Factor<T>,
    b: &dyn Factor<T>,
    beta: T,
) -> Result<()> {
    if c.strides()[0] != 1 && c.strides()[1] == 1 {
        return product_by((kernel, caches), c.reversed_axes(), alpha, &Transposed(b), &Transposed(a), beta);
    }
    if beta != T::ZERO && beta != T::ONE {
        scale(c.view_mut(), beta);
    }
    let (m, n, k) = (c.nrows(), c.ncols(), a.shape()[1]);
    // As in BLAS, factors that are multiplied by zero are not read.
    let is_empty = k == 0 || alpha == T::ZERO;
    if is_empty && beta == T::ZERO {
        c.fill(T::ZERO);
    }
    if m == 0 || n == 0 || is_empty {
        return Ok(());
    }
    let block = Blocking::of::<T>(kernel, caches, [m, n, k]);
    let elements_a = block.m.next_multiple_of(kernel.lanes) * T::PARTS * block.k * T::PARTS;
    let elements_b = block.n.next_multiple_of(kernel.columns) * block.k * T::PARTS;
    scratch::with(&PACKED_A, elements_a, |packed_a: &mut [T::Real]| {
        scratch::with(&PACKED_B, elements_b, |packed_b: &mut [T::Real]| {
            for (i, mut c) in c.axis_chunks_iter_mut(Axis(0), block.m).enumerate() {
                let rows = i * block.m..i * block.m + c.nrows();
                for start in (0..k).step_by(block.k) {
                    let depth = start..k.min(start + block.k);
                    let add = start > 0 || beta != T::ZERO;
                    let packed_a = pack::left(a, [rows.clone(), depth.clone()], alpha, kernel, packed_a)?;
                    for (j, c) in c.axis_chunks_iter_mut(Axis(1), block.n).enumerate() {
                        let columns = j * block.n..j * block.n + c.ncols();
                        let packed_b = pack::right(b, [depth.clone(), columns], kernel, packed_b)?;
                        tiles(kernel, packed_a, packed_b, c, depth.len() * T::PARTS, add);
                    }
                }
            }
            Ok(())
        })
    })
}

/// The tiles of a block of C from packed blocks of A and B. `depth` is that of the real product.
fn tiles<T: Packable>(
    kernel: &Kernel<T::Real>,
    a: &[T::Real],
    b: &[T::Real],
    mut c: ArrayViewMut2<'_, T>,
    depth: usize,
    add: bool,
) {
    let (panel_a, panel_b) = (kernel.rows * depth, kernel.columns * depth);
    // While the tiles of one panel of A are computed, the next panel comes from the last cache to the second, piece by piece.
    let piece = panel_a.div_ceil(b.len() / panel_b);
    let panels = a.chunks(panel_a).zip(a.chunks(panel_a).skip(1).chain([&[][..]]));
    for (mut c, (a, next)) in c.axis_chunks_iter_mut(Axis(0), kernel.rows / T::PARTS).zip(panels) {
        let mut next = next.chunks(piece);
        for (c, b) in c.axis_chunks_iter_mut(Axis(1), kernel.columns).zip(b.chunks_exact(panel_b)) {
            tile::prefetch(next.next().unwrap_or_default());
            if c.len() * T::PARTS * depth == a.len() * kernel.columns && c.strides()[0] == 1 {
                T::tile(kernel, a, b, c, add);
            } else {
                edge(kernel, a, b, c, add);
            }
        }
    }
}

/// A tile that reaches beyond C, or whose columns are not contiguous.
fn edge<T: Packable>(kernel: &Kernel<T::Real>, a: &[T::Real], b: &[T::Real], mut c: ArrayViewMut2<'_, T>, add: bool) {
    let mut buffer = [T::ZERO; tile::LARGEST];
    let whole = ((c.nrows() * T::PARTS).next_multiple_of(kernel.lanes) / T::PARTS, kernel.columns);
    let buffer = &mut buffer[..whole.0 * whole.1];
    T::tile(kernel, a, b, ArrayViewMut2::from_shape(whole.f(), &mut *buffer).expect("a buffer of the tile's length"), false);
    let whole = ArrayView2::from_shape(whole.f(), &*buffer).expect("a buffer of the tile's length");
    let part = whole.slice(s![..c.nrows(), ..c.ncols()]);
    Zip::from(&mut c).and(part).for_each(|c, &sum| *c = if add { c.plus(sum) } else { sum });
}

#[cfg(test)]
mod tests {
    use super::{tile::Real, *};
    use ndarray::Array2;
    use num_complex::Complex;

    /// Small whole numbers, so that every sum is exact.
    fn number<T: Packable>(i: usize, j: usize, unit: T) -> T {
        (0..(i * 7 + j * 5) % 11).fold(T::ZERO, |sum, _| sum.plus(unit))
    }

    /// Every inner loop that runs here, on blocks of tiny caches, so that each loop has several turns and a rest.
    fn check<T: Packable>(unit: T, alpha: T) {
        let caches = Caches { first: 1 << 10, second: 4 << 10, last: 16 << 10 };
        for (_, kernel) in T::Real::kernels().iter().filter(|(has, _)| has()) {
            for (m, n, k) in [(1, 1, 1), (3, 50, 9), (97, 41, 23), (64, 64, 64), (25, 7, 90), (5, 4, 0), (0, 3, 2), (3, 0, 2)] {
                for layout in 0..8 {
                    let by = |bit: usize, [rows, columns]: [usize; 2], step: usize| {
                        let shape = (rows * step, columns).set_f(layout >> bit & 1 == 1);
                        Array2::from_shape_fn(shape, |(i, j)| number(i, j + bit, unit))
                    };
                    let (a, b, start) = (by(0, [m, k], 1), by(1, [k, n], 1), by(2, [m, n], 2));
                    for (step, beta) in [(1, T::ZERO), (1, T::ONE), (2, alpha)] {
                        let mut c = start.clone();
                        let place = s![..m * step;step, ..];
                        product_by((kernel, caches), c.slice_mut(place), alpha, &a.view(), &b.view(), beta).unwrap();
                        let mut expected = start.clone();
                        for ((i, j), c) in expected.slice_mut(place).indexed_iter_mut() {
                            let sum = (0..k).fold(T::ZERO, |sum, p| sum.plus(a[[i, p]].scaled(b[[p, j]])));
                            *c = beta.scaled(*c).plus(alpha.scaled(sum));
                        }
                        assert_eq!(c, expected, "{m} x {n} x {k}, {} x {}, {layout}", kernel.rows, kernel.columns);
                    }
                }
            }
        }
    }

    #[test]
    fn factors_times_zero_are_not_read() {
        let nan = Array2::from_elem((3, 3), f64::NAN);
        let mut c = Array2::from_elem((3, 3), 2.0);
        product(c.view_mut(), 0.0, &nan.view(), &nan.view(), 3.0).unwrap();
        assert_eq!(c, Array2::from_elem((3, 3), 6.0));
        product(c.view_mut(), 0.0, &nan.view(), &nan.view(), 0.0).unwrap();
        assert_eq!(c, Array2::<f64>::zeros((3, 3)));
    }

    #[test]
    fn every_inner_loop_is_the_definition() {
        check::<f32>(1.0, 3.0);
        check::<f64>(1.0, -2.0);
        check(Complex::new(1.0f32, -1.0), Complex::new(2.0, 1.0));
        check(Complex::new(1.0f64, 2.0), Complex::new(1.0, 0.0));
    }
}
