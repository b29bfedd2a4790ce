//! Several sweeps over a block in one pass through memory.
//!
//! One sweep reads a cell from memory and writes one: at some billion cells a second memory is what limits it. So the sweeps of an
//! epoch run one behind the other, plane by plane: when sweep 1 has done plane i, sweep 2 can do plane i − 1, sweep 3 plane i − 2.
//! Only the last one writes to memory; the others keep three planes each in a buffer that stays in the cache. For that the planes
//! must be small, so a block is cut into *tiles*, some rows high, and each tile goes through all planes by itself.
//!
//! What a sweep computes must cover the neighbours of what the next one computes: with `depth` sweeps, sweep s covers the
//! tile and `depth − s` cells around it. Some of these belong to the tile beside it or to another rank's block and are computed there
//! as well, by the same formula from the same values: every cell gets the same bits, whatever the tiles, the depth and the ranks.
//! Beyond an open boundary nothing is computed; the boundary values are copied from sweep to sweep.
//!
//! # Source
//! M. Wolf, M. Lam, *A data locality optimizing algorithm*, PLDI 1991; for stencils: G. Wellein et al., *Efficient temporal blocking
//! for stencil computations by multicore-aware wavefront parallelization*, COMPSAC 2009.

use std::ops::Range;

use global_arrays::prelude::*;
use ndarray::{ArrayView3, ArrayViewMut3};
use pulp::Arch;

/// Planes that the next sweep reads: before, at and after its own.
const PLANES: usize = 3;

/// What one rank needs to sweep over its block.
#[derive(Debug)]
pub(crate) struct Sweeper {
    arch: Arch,
    /// Ghost cells on either side.
    width: usize,
    /// Rows of a tile.
    tile: usize,
    /// Planes, rows and columns on which a cell has a value that changes, in cells of the padded block: all of them if the array is
    /// periodic, else those inside the array.
    inside: [Range<usize>; 3],
    /// Planes of the sweeps between the first and the last.
    buffers: Vec<f64>,
}

/// A box of planes in one piece of memory: a padded block, or the buffer of a sweep.
#[derive(Clone, Copy)]
struct Source<'a> {
    cells: &'a [f64],
    /// Cells from one plane or row to the next.
    plane: usize,
    row: usize,
    /// The first row that there is, and how many planes.
    first_row: usize,
    planes: usize,
}

impl<'a> Source<'a> {
    /// A row of a plane; planes come round.
    fn row(&self, plane: usize, row: usize, columns: Range<usize>) -> &'a [f64] {
        let start = plane % self.planes * self.plane + (row - self.first_row) * self.row;
        &self.cells[start + columns.start..start + columns.end]
    }
}

impl Sweeper {
    /// For this rank's block of arrays distributed as this one.
    pub(crate) fn new(array: &GlobalArray<f64, Ix3>, tile: usize) -> Self {
        let distribution = array.distribution();
        let ghosts = distribution.ghosts().expect("an array with ghost cells");
        let width = ghosts.widths[0];
        let mut inside = [0..0, 0..0, 0..0];
        if let Some(block) = array.blocks(array.group().rank()).next() {
            inside = [0, 1, 2].map(|axis| {
                let (start, count) = (block.region.start()[axis], block.region.count()[axis]);
                match ghosts.boundaries[axis] {
                    Boundary::Periodic => 0..count + 2 * width,
                    Boundary::Open => width.saturating_sub(start)..(width + array.shape()[axis] - start).min(count + 2 * width),
                }
            });
        }
        Sweeper { arch: Arch::new(), width, tile, inside, buffers: Vec::new() }
    }

    /// As many sweeps as `depth`, at most the width of the ghost cells, from one padded block to the other.
    pub(crate) fn run(&mut self, from: &ArrayView3<'_, f64>, to: &mut ArrayViewMut3<'_, f64>, depth: usize) {
        let (planes, rows, columns) = from.dim();
        if from.is_empty() {
            return;
        }
        let arch = self.arch;
        let (from, to) = (from.as_slice().expect("a part in C order"), to.as_slice_mut().expect("a part in C order"));
        let block = Source { cells: from, plane: rows * columns, row: columns, first_row: 0, planes };
        let interior = self.width..rows - self.width;
        for start in interior.clone().step_by(self.tile) {
            let tile = start..interior.end.min(start + self.tile);
            arch.dispatch(|| self.tile(&block, to, tile.clone(), depth));
        }
    }

    /// All planes of some rows.
    #[inline(always)] // into what is compiled for the widest vectors
    fn tile(&mut self, block: &Source<'_>, to: &mut [f64], tile: Range<usize>, depth: usize) {
        let (width, columns) = (self.width, block.row);
        // Sweep 1 covers the most rows; what it reads beyond them is in the block.
        let first_row = tile.start - (depth - 1);
        let plane = (tile.len() + 2 * (depth - 1)) * columns;
        self.buffers.resize(self.buffers.len().max((depth - 1) * PLANES * plane), 0.0);
        let inside = &self.inside;
        let interior = width..block.planes - width;
        // At step t sweep 1 does the t-th of its planes, and sweep s the one that lies s − 1 planes behind.
        for t in 0..interior.len() + 2 * (depth - 1) {
            // A sweep begins one plane later than the one before it, and so two steps later.
            for s in (1..=depth).take_while(|s| 2 * (s - 1) <= t) {
                let margin = depth - s;
                let p = width + 2 + t - depth - s;
                if p >= interior.end + margin {
                    continue;
                }
                let (before, after) = self.buffers.split_at_mut((s - 1) * PLANES * plane);
                let source = if s == 1 {
                    *block
                } else {
                    Source { cells: &before[(s - 2) * PLANES * plane..], plane, row: columns, first_row, planes: PLANES }
                };
                let covered = width - margin..columns - width + margin;
                let computed = covered.start.max(inside[2].start)..covered.end.min(inside[2].end);
                for r in tile.start - margin..tile.end + margin {
                    let target = if s == depth {
                        let start = (p * (block.plane / columns) + r) * columns;
                        &mut to[start..start + columns]
                    } else {
                        let start = p % PLANES * plane + (r - first_row) * columns;
                        &mut after[start..start + columns]
                    };
                    if !inside[0].contains(&p) || !inside[1].contains(&r) {
                        target[covered.clone()].copy_from_slice(block.row(p, r, covered.clone()));
                        continue;
                    }
                    mean(&mut target[computed.clone()], &source, p, r, computed.clone());
                    if s < depth {
                        // Boundary values beside the cells, for the next sweep.
                        for beside in (covered.start..computed.start).chain(computed.end..covered.end) {
                            target[beside] = block.row(p, r, beside..beside + 1)[0];
                        }
                    }
                }
            }
        }
    }
}

/// The means of the six neighbours of some cells of a row.
#[inline(always)]
fn mean(to: &mut [f64], from: &Source<'_>, plane: usize, row: usize, columns: Range<usize>) {
    let len = to.len();
    let [below, above] = [plane - 1, plane + 1].map(|plane| &from.row(plane, row, columns.clone())[..len]);
    let [north, south] = [row - 1, row + 1].map(|row| &from.row(plane, row, columns.clone())[..len]);
    let own = &from.row(plane, row, columns.start - 1..columns.end + 1)[..len + 2];
    for i in 0..len {
        to[i] = ((own[i] + own[i + 2]) + (north[i] + south[i]) + (below[i] + above[i])) * (1.0 / 6.0);
    }
}
