//! An incomplete factorization of the whole matrix, of which each rank keeps the rows of its own cells.
//!
//! ILU(0): on a grid with seven-point couplings the product of the strict triangles falls on the diagonal or outside the pattern,
//! so that only the pivots differ from the matrix (Meijerink & van der Vorst 1977, "DILU" where L and U are the matrix's own):
//!
//! ```text
//! M = (P + L)·P⁻¹·(P + U),      p_n = a_nn − Σ over cells j eliminated before n: a_nj·a_jn / p_j
//! ```
//!
//! # The order of elimination
//!
//! Couplings across a cut are as strong as any; a factorization that drops them (block Jacobi) needs several times the
//! iterations. So the order lets all ranks work at once and yet keeps them:
//!
//! * Along each axis the blocks of the ranks are swept *towards* each other in pairs: blocks 0, 2, 4 … upwards, blocks 1, 3, 5 …
//!   downwards. Two sweeps meet at the cut between them. A line of cells that crosses this cut is eliminated from both of its
//!   ends, which causes no fill: in one dimension and on two ranks the factorization is exact, as it is on one.
//! * The cells at such a cut, the *ends* of the sweeps, come last. No cell inside a block is eliminated after one of them that it
//!   is coupled to, so this is still the order of the sweep. Blocks that meet have opposite colors, as on a chessboard: the ends
//!   of the first color come before those of the second. So an application of M⁻¹ passes the border twice between neighbors, once
//!   in each direction.
//! * Where three or more blocks lie along an axis, pairs meet back to back at every other cut. Both sides begin there, and the
//!   couplings across that cut are dropped.
//!
//! # Source
//! Elimination from both ends: H. A. van der Vorst, *Large tridiagonal and block tridiagonal linear systems on vector and
//! parallel computers*, Parallel Computing 5, 1987. Cells at the borders last, by color: D. Hysom, A. Pothen, *A scalable
//! parallel algorithm for incomplete factor preconditioning*, SIAM J. Sci. Comput. 22, 2001.

use std::ops::Range;

use global_arrays::prelude::*;

use crate::field::{Layout, Team};
use crate::matrix::SevenPoint;

/// A coupling of a cell of this rank with one of another rank, across a cut at which both sweeps end.
#[derive(Debug, Clone, Copy)]
struct Bridge {
    /// This rank's cell, in a bordered array.
    own: usize,
    /// The other's, in the border.
    other: usize,
    axis: usize,
    /// The other cell is the one behind.
    upper: bool,
}

/// The factors of one matrix.
#[derive(Debug, Clone)]
pub(crate) struct Incomplete {
    layout: Layout,
    /// Rows of cells that are no ends, in the order of elimination.
    rows: Vec<Range<usize>>,
    /// The ends, in the order of elimination.
    ends: Vec<usize>,
    bridges: Vec<Bridge>,
    /// What of a vector sweeps read before they write it: the border beside the block, and the ends.
    unset: Vec<usize>,
    /// Reciprocals of the pivots; zero in the border.
    pivots: Vec<f64>,
    /// Couplings along the fastest axis with the cells eliminated before and after, times the reciprocal pivot.
    before: Vec<f64>,
    after: Vec<f64>,
}

impl Incomplete {
    /// Factors for matrices over the cells of `team`, not yet computed.
    pub(crate) fn new(team: &Team<'_>) -> Incomplete {
        let layout = team.layout.clone();
        let Layout { count, strides, .. } = layout;
        // Without the plane of ends along each axis.
        let inside = [0, 1, 2].map(|axis| {
            let last = count[axis].saturating_sub(usize::from(layout.meets(axis)));
            if layout.is_reversed(axis) { count[axis] - last..count[axis] } else { 0..last }
        });
        let order = |axis: usize, range: Range<usize>| -> Vec<usize> {
            if layout.is_reversed(axis) { range.rev().collect() } else { range.collect() }
        };
        let all = [0, 1, 2].map(|axis| order(axis, 0..count[axis]));
        let (mut rows, mut ends, mut bridges) = (Vec::new(), Vec::new(), Vec::new());
        for &i in &all[0] {
            for &j in &all[1] {
                let row_inside = inside[0].contains(&i) && inside[1].contains(&j);
                if row_inside && !inside[2].is_empty() {
                    rows.push(layout.place([i, j, inside[2].start])..layout.place([i, j, inside[2].end]));
                }
                ends.extend(all[2].iter().filter(|k| !row_inside || !inside[2].contains(k)).map(|&k| layout.place([i, j, k])));
            }
        }
        for &own in &ends {
            for axis in (0..3).filter(|&axis| layout.meets(axis)) {
                let coordinate = [own / strides[0], own % strides[0] / strides[1], own % strides[1]][axis] - 1;
                if !inside[axis].contains(&coordinate) {
                    let upper = !layout.is_reversed(axis);
                    bridges.push(Bridge { own, other: layout.step(own, axis, upper), axis, upper });
                }
            }
        }
        let mut unset = ends.clone();
        // Where an axis has one cell, nothing is ever written to the border across it.
        for axis in (0..3).filter(|&axis| layout.extents[axis] > 1) {
            let plane = |last: bool| {
                let cells = layout
                    .cells()
                    .filter(move |(cell, _)| cell[axis] == layout.start[axis] + if last { count[axis] - 1 } else { 0 });
                cells.map(|(_, n)| layout.step(n, axis, last)).collect::<Vec<_>>()
            };
            unset.extend(plane(false));
            unset.extend(plane(true));
        }
        Incomplete { rows, ends, bridges, unset, pivots: team.zeros(), before: team.zeros(), after: team.zeros(), layout }
    }

    /// Computes the factors of `a`. Collective.
    pub(crate) fn factor(&mut self, team: &mut Team<'_>, a: &SevenPoint) -> Result<(), Error> {
        let Incomplete { layout, rows, ends, bridges, pivots, before, after, .. } = self;
        let second = layout.is_second();
        pivots.fill(0.0);
        for n in rows.iter().flat_map(|row| order(row.clone(), layout.is_reversed(2))) {
            pivots[n] = pivot(layout, a, n, pivots).recip();
        }
        if !second {
            ends.iter().for_each(|&n| pivots[n] = pivot(layout, a, n, pivots).recip());
        }
        team.pass(pivots, false)?;
        if second {
            let mut less = vec![0.0; layout.len()];
            for &Bridge { own, other, axis, upper } in &*bridges {
                // The other rank's row has its entry here, too: the system computes each face on both sides.
                less[own] += a.band(axis, upper)[own] * pivots[other] * a.band(axis, !upper)[other];
                pivots[other] = 0.0;
            }
            ends.iter().for_each(|&n| pivots[n] = (pivot(layout, a, n, pivots) - less[n]).recip());
        }
        let reversed = layout.is_reversed(2);
        // Three products of three numbers, a reciprocal, two scaled bands; seven bands, pivots and the scaled bands.
        team.work(12.0, 11);
        for n in layout.rows().flatten() {
            before[n] = a.band(2, reversed)[n] * pivots[n];
            after[n] = a.band(2, !reversed)[n] * pivots[n];
        }
        Ok(())
    }

    /// z ← M⁻¹·r. Afterwards the border of z holds no values of use. Collective.
    pub(crate) fn solve(&self, team: &mut Team<'_>, a: &SevenPoint, r: &[f64], z: &mut [f64]) -> Result<(), Error> {
        let second = self.layout.is_second();
        self.unset.iter().for_each(|&n| z[n] = 0.0);
        self.forward(a, r, z);
        if !second {
            self.forward_ends(a, r, z);
        }
        // Two bands, the scaled one, pivots, r and z. An axis of one cell is counted like any other.
        team.work(7.0, 6);
        team.pass(z, false)?;
        if second {
            for &Bridge { own, other, axis, upper } in &self.bridges {
                z[own] += a.band(axis, upper)[own] * z[other];
                // It comes before, so that it has no part in the way back.
                z[other] = 0.0;
            }
            self.forward_ends(a, r, z);
            self.backward_ends(a, z);
        }
        team.pass(z, true)?;
        if !second {
            self.backward_ends(a, z);
        }
        self.backward(a, z);
        team.work(8.0, 6);
        Ok(())
    }

    /// z ← (P + L)⁻¹·r in the ends, where z holds the part of L·z of another rank's cells before.
    fn forward_ends(&self, a: &SevenPoint, r: &[f64], z: &mut [f64]) {
        for &n in &self.ends {
            let known = (0..3).fold(r[n] - z[n], |sum, axis| {
                let reversed = self.layout.is_reversed(axis);
                sum - a.band(axis, reversed)[n] * z[self.layout.step(n, axis, reversed)]
            });
            z[n] = known * self.pivots[n];
        }
    }

    /// z ← z − P⁻¹·U·z in the ends.
    fn backward_ends(&self, a: &SevenPoint, z: &mut [f64]) {
        for &n in self.ends.iter().rev() {
            let known: f64 = (0..3)
                .map(|axis| {
                    let reversed = self.layout.is_reversed(axis);
                    a.band(axis, !reversed)[n] * z[self.layout.step(n, axis, !reversed)]
                })
                .sum();
            z[n] -= known * self.pivots[n];
        }
    }

    fn forward(&self, a: &SevenPoint, r: &[f64], z: &mut [f64]) {
        let layout = &self.layout;
        let [back_0, back_1, back_2] = [0, 1, 2].map(|axis| layout.is_reversed(axis));
        let deep = layout.extents[0] > 1;
        for row in &self.rows {
            let mut around = Around::new(layout, z, row, [back_0, back_1, back_2]);
            let band = |axis, upper| &a.band(axis, upper)[row.clone()];
            let (r, pivots, before) = (&r[row.clone()], &self.pivots[row.clone()], &self.before[row.clone()]);
            let (l0, l1) = (band(0, back_0), band(1, back_1));
            let Around { here, far, middle, ref mut near } = around;
            let mut step = |k: usize| {
                let mut known = r[k] - l1[k] * middle[k];
                if deep {
                    known -= l0[k] * far[k];
                }
                *near = known * pivots[k] - before[k] * *near;
                here[k] = *near;
            };
            if back_2 { (0..row.len()).rev().for_each(&mut step) } else { (0..row.len()).for_each(&mut step) }
        }
    }

    fn backward(&self, a: &SevenPoint, z: &mut [f64]) {
        let layout = &self.layout;
        let [back_0, back_1, back_2] = [0, 1, 2].map(|axis| !layout.is_reversed(axis));
        let deep = layout.extents[0] > 1;
        for row in self.rows.iter().rev() {
            let mut around = Around::new(layout, z, row, [back_0, back_1, back_2]);
            let band = |axis, upper| &a.band(axis, upper)[row.clone()];
            let (pivots, after) = (&self.pivots[row.clone()], &self.after[row.clone()]);
            let (u0, u1) = (band(0, back_0), band(1, back_1));
            let Around { here, far, middle, ref mut near } = around;
            let mut step = |k: usize| {
                let mut known = u1[k] * middle[k];
                if deep {
                    known += u0[k] * far[k];
                }
                *near = here[k] - known * pivots[k] - after[k] * *near;
                here[k] = *near;
            };
            if back_2 { (0..row.len()).rev().for_each(&mut step) } else { (0..row.len()).for_each(&mut step) }
        }
    }
}

/// A row of a vector with what a sweep over it reads around it.
struct Around<'z> {
    here: &'z mut [f64],
    /// The row passed before along axis 0.
    far: &'z [f64],
    /// The row passed before along axis 1.
    middle: &'z [f64],
    /// The cell passed before along axis 2.
    near: f64,
}

impl<'z> Around<'z> {
    /// For sweeps that go `back` along some axes.
    fn new(layout: &Layout, z: &'z mut [f64], row: &Range<usize>, back: [bool; 3]) -> Around<'z> {
        let length = row.len();
        let (before, rest) = z.split_at_mut(row.start);
        let (here, after) = rest.split_at_mut(length);
        let (before, after): (&[f64], &[f64]) = (before, after);
        let other = |axis: usize| {
            let stride = layout.strides[axis];
            if back[axis] { &after[stride - length..][..length] } else { &before[row.start - stride..][..length] }
        };
        Around { far: other(0), middle: other(1), near: if back[2] { after[0] } else { before[row.start - 1] }, here }
    }
}

/// The pivot of cell n, as far as cells of this rank have a part in it.
fn pivot(layout: &Layout, a: &SevenPoint, n: usize, pivots: &[f64]) -> f64 {
    (0..3).fold(a.diagonal[n], |pivot, axis| {
        let reversed = layout.is_reversed(axis);
        let before = layout.step(n, axis, reversed);
        pivot - a.band(axis, reversed)[n] * pivots[before] * a.band(axis, !reversed)[before]
    })
}

/// A row in the order of a sweep.
fn order(row: Range<usize>, reversed: bool) -> impl Iterator<Item = usize> {
    let (first, last) = (row.start, row.end);
    row.map(move |n| if reversed { first + last - 1 - n } else { n })
}
