//! C = α·op(A)·op(B) + β·C.
//!
//! | file | contents |
//! |---|---|
//! | `span` | rows and columns of C's patch that this rank owns |
//! | `panels` | pieces of op(A) and op(B) in private memory |
//! | `kernel` | the local product; a loop for integers |
//! | `dense`, `blas` | kernels for floats and complex numbers |
//! | `scratch` | memory that stays with a thread |
//! | `views` | what all kernels ask of their views |
//!
//! # The algorithm
//!
//! SRUMMA: each rank multiplies into its own part of C and fetches what it needs of A and B. No rank waits for another during C's epoch.
//! Since every layout is a product of axes, a rank owns some rows times some columns of a patch of C, adjacent in its part: one matrix
//! for the kernel, even of a block-cyclic array. In a tiled array each tile is a matrix; the panels serve all tiles together.
//!
//! 1. All members agree on the call; C's owner epoch starts.
//! 2. For each tile of own rows, for each block of k: fetch the panel of op(A), rows × k.
//! 3. For each tile of own columns: fetch the panel of op(B), k × columns; multiply into the part of C, with β the first time.
//! 4. The epoch ends; an error on one member is an error on all.
//!
//! Each rank starts at a different block of k, so that not all read from one owner at a time.
//!
//! Factors are copied even if their memory is mapped or this rank's own: another rank may write them at any time, and the kernel must not
//! read memory that changes. Where all memory is mapped there are no panels: the kernel packs blocks that fit the second cache at once,
//! so a factor passes through memory once. A BLAS packs by itself, so it always gets panels.
//!
//! With the feature `rayon` a rank of several cores divides its matrix into about square rectangles, one for each thread of its pool. A
//! thread works on its rectangle as a rank of one core does on its part: it fetches by itself, and no thread waits for another one.
//! What a rank keeps for panels is divided too. The tiles of a tiled array are the work of one thread.
//!
//! # Source
//! M. Krishnan, J. Nieplocha: SRUMMA: a matrix multiplication algorithm suitable for clusters and scalable shared memory systems, IPDPS
//! 2004. We omit its overlap of a get with the previous multiplication, which mapped memory does not need.

#[cfg(feature = "blas")]
pub(crate) mod blas;
mod dense;
mod kernel;
mod panels;
mod scratch;
mod span;
mod views;

use std::ops::Range;

use ndarray::{ArrayViewMut2, Axis, Dimension, Ix2, s};

use self::{
    panels::{Mapped, Panel, Side},
    span::Span,
};
use super::{GlobalArray, IntoOperand, OwnedPartMut, PatchMut, PatchRef, algebra::Operand};
use crate::{
    calls::located,
    comm::kit::mutex::Mutex,
    error::{Error, Result},
    index::Patch,
    sync::{Op, call::Doing, fingerprint},
};
pub use kernel::Matmul;

const OPERATION: &str = "matmul";

/// The variable that chooses a BLAS.
const VARIABLE: &str = "GA_BLAS";

/// The value of [`VARIABLE`] for no BLAS.
const NONE: &str = "none";

/// Bytes of one rank's panels of A and B together, which stay with the thread for its next product.
const PANEL_BYTES: usize = 64 << 20;

/// Multiplications from which the threads of a rank divide a product: some tenths of a millisecond.
const SHARED: usize = 1 << 22;

/// Elements along k of a panel at least, if the factors have them: below, the kernel reads and writes C too often.
const LEAST_DEPTH: usize = 512;

/// # Products of matrices
impl<T: Matmul> GlobalArray<T, Ix2> {
    /// `self = alpha * a * b + beta * self`. Collective over the group of `self`.
    ///
    /// `a` and `b` are arrays, transposed arrays ([`t`](Self::t)) or patches ([`at`](Self::at)), of any distribution over the same
    /// group. If `beta` is zero, the old contents are not read; if `alpha` is zero, the factors are not read.
    /// With the feature `rayon` the threads of a rank share the work; another number of threads may round differently.
    /// Starts and ends with a sync: it sees everything that was put into `a`, `b` and `self` before, and on return all three may be
    /// used immediately. Integers wrap.
    ///
    /// # Errors
    /// Shapes that do not match; arrays of another group; members with different arguments; a transfer that failed; the end
    /// of the job; with the feature `blas`, a `GA_BLAS` that cannot be used.
    ///
    /// # Examples
    /// ```
    /// use global_arrays::prelude::*;
    /// # fn main() -> Result<(), Error> {
    /// Launch::new().ranks(2).network("threads").run(|job| {
    ///     let a = GlobalArray::<f64, Ix2>::builder(job, [4, 3]).fill(1.0).create()?;
    ///     let b = GlobalArray::<f64, Ix2>::builder(job, [5, 3]).fill(2.0).create()?;
    ///     let mut c = GlobalArray::<f64, Ix2>::builder(job, [4, 5]).create()?;
    ///     c.matmul(1.0, &a, b.t(), 0.0)?;
    ///     assert_eq!(c.load([3, 4])?, 6.0);
    ///     job.sync()
    /// })
    /// # }
    /// ```
    ///
    /// # Source
    /// GA: `GA_Dgemm`; the algorithm: SRUMMA.
    #[doc(alias = "GA_Dgemm")]
    #[doc(alias = "gemm")]
    #[track_caller]
    pub fn matmul(&mut self, alpha: T, a: impl IntoOperand<T, Ix2>, b: impl IntoOperand<T, Ix2>, beta: T) -> Result<()> {
        located(move || {
            let patch = self.whole();
            self.matmul_on(&patch, alpha, a.into_operand(), b.into_operand(), beta)
        })
    }

    fn matmul_on<R: Dimension, Q: Dimension>(
        &mut self,
        patch: &Patch<Ix2>,
        alpha: T,
        a: PatchRef<'_, T, Ix2, R>,
        b: PatchRef<'_, T, Ix2, Q>,
        beta: T,
    ) -> Result<()> {
        self.check_sound(OPERATION)?;
        let product = Product { alpha, a: a.resolve(OPERATION)?, b: b.resolve(OPERATION)?, beta, depth: 0 };
        let product = Product { depth: self.check_factors(patch, &product)?, ..product };
        let call = self.call(patch, &product);
        let group = self.group.clone();
        let _doing = Doing::new(&group, OPERATION, (self.id, &self.name));
        group.agree(Op::Algebra, call)?;
        let (member, members) = (group.member(), group.size());
        let spans = span::owned(&self.distribution, patch, member);
        let outcome = self.owner_epoch(|mut part| {
            let by_blas = kernel::is_by_blas::<T>()?;
            for (rows, columns) in
                spans.iter().flat_map(|[rows, columns]| rows.iter().flat_map(|r| columns.iter().map(move |c| (r, c))))
            {
                product.multiply(&mut part, rows, columns, member as f64 / members as f64, by_blas)?;
            }
            Ok(())
        })?;
        // The failure of one member leaves the product wrong for everyone.
        let failed = group.agree_values(Op::Algebra, call, u64::from(outcome.is_err()), 0, 0)?.sum;
        outcome?;
        if failed > 0 {
            return Err(Error::Mismatch {
                operation: OPERATION.into(),
                what: format!("{failed} other member(s) could not multiply"),
            });
        }
        Ok(())
    }

    /// The length of the sum, if the factors fit each other and the patch.
    fn check_factors<R: Dimension, Q: Dimension>(&self, patch: &Patch<Ix2>, product: &Product<'_, T, R, Q>) -> Result<usize> {
        let mismatch = |what: String| Error::Mismatch { operation: OPERATION.into(), what };
        self.check_members(OPERATION, product.a.array)?;
        self.check_members(OPERATION, product.b.array)?;
        let (c, a, b) = (patch.count(), product.a.shape(), product.b.shape());
        if a[1] != b[0] || [a[0], b[1]] != [c[0], c[1]] {
            return Err(mismatch(format!(
                "a patch of {} x {} of array \"{}\" cannot be the product of {} x {} of \"{}\" and {} x {} of \"{}\"",
                c[0], c[1], self.name, a[0], a[1], product.a.array.name, b[0], b[1], product.b.array.name
            )));
        }
        Ok(a[1])
    }

    /// What all members must agree on.
    fn call<R: Dimension, Q: Dimension>(&self, patch: &Patch<Ix2>, product: &Product<'_, T, R, Q>) -> u64 {
        let bytes = |value: &T| bytemuck::bytes_of(value).iter().fold(0, |hash, &byte| fingerprint(&[hash, u64::from(byte)]));
        let place = |patch: &Patch<Ix2>| {
            let axis = |k: usize| [patch.start()[k] as u64, patch.count()[k] as u64, patch.step(k) as u64];
            fingerprint([axis(0), axis(1)].as_flattened())
        };
        let numbers = [bytes(&product.alpha), bytes(&product.beta)];
        let factors = [product.a.fingerprint(), product.b.fingerprint()];
        fingerprint(&[self.id, place(patch), factors[0], factors[1], numbers[0], numbers[1]])
    }
}

impl<T: Matmul> PatchMut<'_, T, Ix2> {
    /// `patch = alpha * a * b + beta * patch`; see [`GlobalArray::matmul`]. Collective.
    ///
    /// # Errors
    /// A patch outside its array; the errors of that method.
    ///
    /// # Source
    /// GA: `NGA_Matmul_patch`.
    #[doc(alias = "NGA_Matmul_patch")]
    #[track_caller]
    pub fn matmul(&mut self, alpha: T, a: impl IntoOperand<T, Ix2>, b: impl IntoOperand<T, Ix2>, beta: T) -> Result<()> {
        located(move || {
            let (array, patch) = self.parts(OPERATION)?;
            array.matmul_on(&patch, alpha, a.into_operand(), b.into_operand(), beta)
        })
    }
}

/// What is to be computed.
struct Product<'a, T, R, Q> {
    alpha: T,
    a: Operand<'a, T, Ix2, R>,
    b: Operand<'a, T, Ix2, Q>,
    beta: T,
    /// Length of the sum.
    depth: usize,
}

impl<T: Matmul, R: Dimension, Q: Dimension> Product<'_, T, R, Q> {
    /// Steps 2 and 3 for some rows and columns of this rank's part of C. `turn`, from 0 to 1, is where along k it begins.
    fn multiply(&self, own: &mut OwnedPartMut<'_, T, Ix2>, rows: &Span, columns: &Span, turn: f64, by_blas: bool) -> Result<()> {
        let (m, n) = (rows.len(), columns.len());
        if self.depth == 0 || self.alpha == T::ZERO {
            span::for_each_matrix(own, [rows, columns], [0..m, 0..n], |c, _, _| views::scale(c, self.beta));
            return Ok(());
        }
        if own.distribution().is_tiled() {
            return self.by_panels([rows, columns], [0..m, 0..n], (turn, by_blas, 1), &mut |place, multiply| {
                span::for_each_matrix(own, [rows, columns], place, multiply);
            });
        }
        let job = &*self.a.array.group.inner.job;
        let threads = if m.saturating_mul(n).saturating_mul(self.depth) < SHARED { 1 } else { job.sharers() };
        let mut outcome = Ok(());
        span::for_each_matrix(own, [rows, columns], [0..m, 0..n], |c, _, _| {
            let rectangles = rectangles(c, threads);
            outcome = job
                .share(rectangles.len(), |at| {
                    let Some((c, place)) = rectangles[at].lock().take() else { return Ok(()) };
                    self.rectangle(c, [rows, columns], place, (turn, by_blas, threads))
                })
                .into_iter()
                .collect();
        });
        outcome
    }

    /// The same for a dense rectangle of C, given by elements of two spans. One of `threads` threads does it.
    fn rectangle(
        &self,
        mut c: ArrayViewMut2<'_, T>,
        [rows, columns]: [&Span; 2],
        [i, j]: [Range<usize>; 2],
        (turn, by_blas, threads): (f64, bool, usize),
    ) -> Result<()> {
        if let Some(by_blocks) = T::BY_BLOCKS.filter(|_| self.a.array.group.inner.mapped && !by_blas) {
            let depth = self.depth;
            let a = Mapped { factor: &self.a, span: rows, part: i, side: Side::Rows, depth };
            let b = Mapped { factor: &self.b, span: columns, part: j, side: Side::Columns, depth };
            return by_blocks(c, self.alpha, &a, &b, self.beta);
        }
        let (first_i, first_j) = (i.start, j.start);
        self.by_panels([rows, columns], [i, j], (turn, by_blas, threads), &mut |[i, j], multiply| {
            let place = s![i.start - first_i..i.end - first_i, j.start - first_j..j.end - first_j];
            multiply(c.slice_mut(place), 0..i.len(), 0..j.len());
        })
    }

    /// The same by panels. `on` calls a function with the matrices that make up a tile of C, and the place of each in the tile.
    fn by_panels(
        &self,
        [rows, columns]: [&Span; 2],
        [all_i, all_j]: [Range<usize>; 2],
        (turn, by_blas, threads): (f64, bool, usize),
        on: OnTile<'_, T>,
    ) -> Result<()> {
        let (m, n) = (all_i.len(), all_j.len());
        let Tiles { m: tile_m, n: tile_n, depth } = Tiles::new::<T>([m, n, self.depth], by_blas, threads);
        let blocks = self.depth.div_ceil(depth);
        let first = (turn * blocks as f64) as usize;
        panels::with((tile_m + tile_n) * depth, |memory: &mut [T]| {
            let (memory_a, memory_b) = memory.split_at_mut(tile_m * depth);
            for i in tiles(&all_i, tile_m) {
                for step in 0..blocks {
                    let at = (first + step) % blocks * depth;
                    let k = at..self.depth.min(at + depth);
                    let beta = if step == 0 { self.beta } else { T::ONE };
                    let a = Panel::rows(&self.a, rows.cut(&i), i.len(), &k, memory_a)?;
                    for j in tiles(&all_j, tile_n) {
                        let b = Panel::columns(&self.b, columns.cut(&j), j.len(), &k, memory_b)?;
                        let (a, b) = (a.view(), b.view());
                        on([i.clone(), j.clone()], &mut |c, rows, columns| {
                            T::multiply(c, self.alpha, a.slice(s![rows, ..]), b.slice(s![.., columns]), beta);
                        });
                        self.work(i.len(), j.len(), k.len());
                    }
                }
            }
            Ok(())
        })
    }

    /// Two panels have been multiplied, which are read to be packed, into a tile of C, which is read and written.
    fn work(&self, m: usize, n: usize, k: usize) {
        let elements = m * k + k * n + 2 * m * n;
        self.a.array.group.work(T::FLOPS * (m * n * k) as f64, (elements * size_of::<T>()) as f64);
    }
}

/// Multiplies into a matrix, which has some rows and columns of a tile of C.
type OnMatrix<'m, T> = &'m mut dyn FnMut(ArrayViewMut2<'_, T>, Range<usize>, Range<usize>);

/// Calls that with the matrices that make up a tile.
type OnTile<'m, T> = &'m mut dyn FnMut([Range<usize>; 2], OnMatrix<'_, T>);

/// A rectangle of a matrix, with its rows and columns, for the thread that takes it.
type Taken<'c, T> = Mutex<Option<(ArrayViewMut2<'c, T>, [Range<usize>; 2])>>;

/// A matrix in as many rectangles as there are threads, about square: then the panels of all are smallest.
pub(crate) fn rectangles<T>(c: ArrayViewMut2<'_, T>, threads: usize) -> Vec<Taken<'_, T>> {
    let (m, n) = c.dim();
    let edges = |down: usize| m.div_ceil(down) + n.div_ceil(threads / down);
    let down = (1..=threads).filter(|down| threads.is_multiple_of(*down)).min_by_key(|down| edges(*down)).unwrap_or(1);
    let (tile_m, tile_n) = (m.div_ceil(down).max(1), n.div_ceil(threads / down).max(1));
    let (mut rectangles, mut below, mut i) = (Vec::new(), c, 0);
    while i < m {
        let height = tile_m.min(m - i);
        let (mut right, next) = below.split_at(Axis(0), height);
        let mut j = 0;
        while j < n {
            let width = tile_n.min(n - j);
            let (rectangle, next) = right.split_at(Axis(1), width);
            rectangles.push(Mutex::new(Some((rectangle, [i..i + height, j..j + width]))));
            (right, j) = (next, j + width);
        }
        (below, i) = (next, i + height);
    }
    rectangles
}

/// Edges of the tiles of C and depth of the panels.
struct Tiles {
    m: usize,
    n: usize,
    depth: usize,
}

impl Tiles {
    fn new<T>([m, n, k]: [usize; 3], by_blas: bool, threads: usize) -> Self {
        let elements = PANEL_BYTES / threads / size_of::<T>().max(1);
        // A BLAS reads panels once more to pack them: those that are not deep are in the last cache then.
        let depth = even(k, if by_blas { LEAST_DEPTH } else { (elements / (m + n)).max(LEAST_DEPTH) });
        // Both panels fit; the shorter one may keep its edge whole if it leaves half to the other.
        let edges = elements / depth;
        let n_first = n.min(edges / 2);
        let m = m.min(edges - n_first);
        Tiles { m, n: n.min(edges - m), depth }
    }
}

/// The length of pieces of `len`, none longer than `most`, that are about equal.
fn even(len: usize, most: usize) -> usize {
    len.div_ceil(len.div_ceil(most.max(1)).max(1)).max(1)
}

fn tiles(all: &Range<usize>, tile: usize) -> impl Iterator<Item = Range<usize>> + use<> {
    let (tile, all) = (even(all.len(), tile), all.clone());
    all.clone().step_by(tile).map(move |start| start..all.end.min(start + tile))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::Array2;

    #[test]
    fn tiles_cover_once_and_fit() {
        for len in [0, 1, 5, 512, 1000] {
            for tile in [1, 7, 512] {
                let all: Vec<usize> = tiles(&(0..len), tile).inspect(|range| assert!(range.len() <= tile)).flatten().collect();
                assert!(all.iter().copied().eq(0..len), "{len} by {tile}");
            }
        }
        for (m, n, k) in [(1, 1, 1), (1, 1, 1 << 40), (1 << 30, 3, 9), (3, 1 << 30, 600), (1 << 20, 1 << 20, 1 << 20)] {
            for (by_blas, threads) in [(false, 1), (true, 1), (false, 64), (true, 64)] {
                let Tiles { m: tile_m, n: tile_n, depth } = Tiles::new::<f64>([m, n, k], by_blas, threads);
                assert!((1..=m).contains(&tile_m) && (1..=n).contains(&tile_n) && (1..=k).contains(&depth));
                let bytes = (tile_m + tile_n) * depth * 8;
                assert!(bytes <= PANEL_BYTES / threads, "{m} x {n} x {k}: {tile_m} x {tile_n} x {depth}");
            }
        }
    }

    #[test]
    fn rectangles_cover_a_matrix_once() {
        for (m, n) in [(1, 1), (1, 9), (40, 3), (17, 23), (0, 3), (3, 0)] {
            for threads in [1, 2, 3, 4, 6, 64] {
                let mut c = Array2::<u8>::zeros((m, n));
                let all = rectangles(c.view_mut(), threads);
                assert!(all.len() <= threads);
                for taken in all {
                    let (mut rectangle, [i, j]) = taken.lock().take().unwrap();
                    assert_eq!(rectangle.dim(), (i.len(), j.len()));
                    rectangle.mapv_inplace(|n| n + 1);
                }
                assert!(c.iter().all(|n| *n == 1), "{m} x {n}, {threads} threads");
            }
        }
    }

    /// Large enough for several threads. Small whole numbers, so that every sum is exact.
    #[test]
    fn threads_of_a_rank_divide_a_product() {
        let (m, n, k) = (171, 203, 160);
        let number = |i: usize, j: usize| ((i * 7 + j * 5) % 11) as f64 - 5.0;
        let a = Array2::from_shape_fn((m, k), |(i, p)| number(i, p));
        let b = Array2::from_shape_fn((k, n), |(p, j)| number(j, p));
        let expected = 2.0 * a.dot(&b) - 1.0;
        for (network, ranks) in [("threads", 1), ("threads", 2), ("threads:unmapped", 2)] {
            let product = |job: &crate::Job| {
                let a = GlobalArray::from_fn(job, [k, m], |(p, i)| number(i, p))?;
                let b = GlobalArray::from_fn(job, [k, n], |(p, j)| number(j, p))?;
                let c = || GlobalArray::<f64, Ix2>::builder(job, [m, n]).fill(1.0);
                for mut c in [c().create()?, c().block_cyclic([16, 9]).create()?, c().tiled([40, 40]).create()?] {
                    c.matmul(2.0, a.t(), &b, -1.0)?;
                    assert_eq!(c.get(..)?, expected);
                    job.sync()?;
                }
                Ok::<(), Error>(())
            };
            crate::Launch::new().ranks(ranks).network(network).run(product).unwrap();
        }
    }
}
