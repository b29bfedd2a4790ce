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
//! # Source
//! M. Krishnan, J. Nieplocha: SRUMMA: a matrix multiplication algorithm suitable for clusters and scalable shared memory systems, IPDPS
//! 2004. We omit its overlap of a get with the previous multiplication, which mapped memory does not need.

#[cfg(feature = "blas")]
mod blas;
mod dense;
mod kernel;
mod panels;
mod scratch;
mod span;
mod views;

use std::ops::Range;

use ndarray::{Dimension, Ix2, s};

use self::{
    panels::{Mapped, Panel, Side},
    span::Span,
};
use super::{GlobalArray, IntoOperand, OwnedPartMut, PatchMut, PatchRef, algebra::Operand};
use crate::{
    calls::located,
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

/// Elements along k of a panel at least, if the factors have them: below, the kernel reads and writes C too often.
const LEAST_DEPTH: usize = 512;

/// # Products of matrices
impl<T: Matmul> GlobalArray<T, Ix2> {
    /// `self = alpha * a * b + beta * self`. Collective over the group of `self`.
    ///
    /// `a` and `b` are arrays, transposed arrays ([`t`](Self::t)) or patches ([`at`](Self::at)), of any distribution over the same
    /// group. If `beta` is zero, the old contents are not read; if `alpha` is zero, the factors are not read.
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
        let is_mapped = self.a.array.group.inner.mapped && !own.distribution().is_tiled();
        if let Some(by_blocks) = T::BY_BLOCKS.filter(|_| is_mapped && !by_blas) {
            let depth = self.depth;
            let a = Mapped { factor: &self.a, span: rows, side: Side::Rows, depth };
            let b = Mapped { factor: &self.b, span: columns, side: Side::Columns, depth };
            let mut outcome = Ok(());
            span::for_each_matrix(own, [rows, columns], [0..m, 0..n], |c, _, _| {
                outcome = by_blocks(c, self.alpha, &a, &b, self.beta);
            });
            return outcome;
        }
        let Tiles { m: tile_m, n: tile_n, depth } = Tiles::new::<T>([m, n, self.depth], by_blas);
        let blocks = self.depth.div_ceil(depth);
        let first = (turn * blocks as f64) as usize;
        panels::with((tile_m + tile_n) * depth, |memory: &mut [T]| {
            let (memory_a, memory_b) = memory.split_at_mut(tile_m * depth);
            for i in tiles(m, tile_m) {
                for step in 0..blocks {
                    let at = (first + step) % blocks * depth;
                    let k = at..self.depth.min(at + depth);
                    let beta = if step == 0 { self.beta } else { T::ONE };
                    let a = Panel::rows(&self.a, rows.cut(&i), i.len(), &k, memory_a)?;
                    for j in tiles(n, tile_n) {
                        let b = Panel::columns(&self.b, columns.cut(&j), j.len(), &k, memory_b)?;
                        let (a, b) = (a.view(), b.view());
                        span::for_each_matrix(own, [rows, columns], [i.clone(), j.clone()], |c, rows, columns| {
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

/// Edges of the tiles of C and depth of the panels.
struct Tiles {
    m: usize,
    n: usize,
    depth: usize,
}

impl Tiles {
    fn new<T>([m, n, k]: [usize; 3], by_blas: bool) -> Self {
        let elements = PANEL_BYTES / size_of::<T>().max(1);
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

fn tiles(len: usize, tile: usize) -> impl Iterator<Item = Range<usize>> {
    let tile = even(len, tile);
    (0..len).step_by(tile).map(move |start| start..len.min(start + tile))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_cover_once_and_fit() {
        for len in [0, 1, 5, 512, 1000] {
            for tile in [1, 7, 512] {
                let all: Vec<usize> = tiles(len, tile).inspect(|range| assert!(range.len() <= tile)).flatten().collect();
                assert!(all.iter().copied().eq(0..len), "{len} by {tile}");
            }
        }
        for (m, n, k) in [(1, 1, 1), (1, 1, 1 << 40), (1 << 30, 3, 9), (3, 1 << 30, 600), (1 << 20, 1 << 20, 1 << 20)] {
            for by_blas in [false, true] {
                let Tiles { m: tile_m, n: tile_n, depth } = Tiles::new::<f64>([m, n, k], by_blas);
                assert!((1..=m).contains(&tile_m) && (1..=n).contains(&tile_n) && (1..=k).contains(&depth));
                assert!((tile_m + tile_n) * depth * 8 <= PANEL_BYTES, "{m} x {n} x {k}: {tile_m} x {tile_n} x {depth}");
            }
        }
    }
}
