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

use global_arrays::{prelude::*, simulation::Work};
use ndarray::{ArrayView3, ArrayViewMut3};
use pulp::{Arch, Simd, WithSimd};

/// Planes that the next sweep reads: before, at and after its own.
const PLANES: usize = 3;

/// Cells of a cache line, which is also the longest vector.
pub(crate) const LINE: usize = 64 / size_of::<f64>();

/// Of six neighbours, to their mean.
const SIXTH: f64 = 1.0 / 6.0;

/// What one rank needs to sweep over its block.
#[derive(Debug)]
pub(crate) struct Sweeper {
    arch: Arch,
    /// Ghost cells on either side, for each axis.
    widths: [usize; 3],
    /// Rows of a tile.
    tile: usize,
    /// Planes, rows and columns on which a cell has a value that changes, in cells of the padded block: all of them if the array is
    /// periodic, else those inside the array.
    inside: [Range<usize>; 3],
    /// Planes, rows and columns of the padded block.
    shape: [usize; 3],
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
    /// A plane; they come round.
    fn plane(&self, plane: usize) -> &'a [f64] {
        &self.cells[plane % self.planes * self.plane..][..self.plane]
    }
}

impl Sweeper {
    /// For this rank's block of arrays distributed as this one.
    pub(crate) fn new(array: &GlobalArray<f64, Ix3>, tile: usize) -> Self {
        let distribution = array.distribution();
        let ghosts = distribution.ghosts().expect("an array with ghost cells");
        let widths = [0, 1, 2].map(|axis| ghosts.widths[axis]);
        let (mut inside, mut shape) = ([0..0, 0..0, 0..0], [0; 3]);
        if let Some(block) = array.blocks(array.group().member()).next() {
            shape = [0, 1, 2].map(|axis| block.patch.count()[axis] + 2 * widths[axis]);
            inside = [0, 1, 2].map(|axis| {
                let (start, count, width) = (block.patch.start()[axis], block.patch.count()[axis], widths[axis]);
                match ghosts.boundaries[axis] {
                    Boundary::Periodic => 0..count + 2 * width,
                    Boundary::Open => width.saturating_sub(start)..(width + array.shape()[axis] - start).min(count + 2 * width),
                }
            });
        }
        Sweeper { arch: Arch::new(), widths, tile, inside, shape, buffers: Vec::new() }
    }

    /// What [`run`](Self::run) computes and moves: for each cell five additions and a product, those around the tiles included; and through memory
    /// once the padded block, and once what comes out.
    pub(crate) fn work(&self, depth: usize) -> Work {
        let [planes, rows, columns] = self.shape;
        if planes == 0 {
            return Work::flops(0.0);
        }
        let interior = |axis: usize| self.widths[axis]..self.shape[axis] - self.widths[axis];
        let around = |range: &Range<usize>, margin: usize| range.start - margin..range.end + margin;
        let mut cells = 0;
        for s in 1..=depth {
            let margin = depth - s;
            let across = across(columns, self.widths[2], s == depth, margin);
            let tiled = self.tiles(interior(1)).map(|tile| common(&around(&tile, margin), &self.inside[1]).len());
            let area = tiled.sum::<usize>() * common(&across, &self.inside[2]).len();
            cells += common(&around(&interior(0), margin), &self.inside[0]).len() * area;
        }
        let moved = planes * rows * columns + (0..3).map(|axis| interior(axis).len()).product::<usize>();
        Work::flops(6.0 * cells as f64) + Work::bytes((size_of::<f64>() * moved) as f64)
    }

    /// The rows of each tile.
    fn tiles(&self, interior: Range<usize>) -> impl Iterator<Item = Range<usize>> + use<> {
        let tile = self.tile;
        interior.clone().step_by(tile).map(move |start| start..interior.end.min(start.saturating_add(tile)))
    }

    /// As many sweeps as `depth`, at most the width of the ghost cells, from one padded block to the other.
    pub(crate) fn run(&mut self, from: &ArrayView3<'_, f64>, to: &mut ArrayViewMut3<'_, f64>, depth: usize) {
        let (planes, rows, columns) = from.dim();
        if from.is_empty() {
            return;
        }
        let (from, to) = (from.as_slice().expect("a part in C order"), to.as_slice_mut().expect("a part in C order"));
        let block = Source { cells: from, plane: rows * columns, row: columns, first_row: 0, planes };
        for tile in self.tiles(self.widths[1]..rows - self.widths[1]) {
            self.tile(&block, to, &tile, depth);
        }
    }

    /// All planes of some rows.
    fn tile(&mut self, block: &Source<'_>, to: &mut [f64], tile: &Range<usize>, depth: usize) {
        let (widths, columns) = (self.widths, block.row);
        // Sweep 1 covers the most rows; what it reads beyond them is in the block.
        let first_row = tile.start - (depth - 1);
        let plane = (tile.len() + 2 * (depth - 1)) * columns;
        self.buffers.resize(self.buffers.len().max((depth - 1) * PLANES * plane + LINE), 0.0);
        let aligned = self.buffers.as_ptr().align_offset(LINE * size_of::<f64>()).min(LINE);
        let buffers = &mut self.buffers[aligned..];
        let interior = widths[0]..block.planes - widths[0];
        // At step t sweep 1 does the t-th of its planes, and sweep s the one that lies s − 1 planes behind.
        for t in 0..interior.len() + 2 * (depth - 1) {
            // A sweep begins one plane later than the one before it, and so two steps later.
            for s in (1..=depth).take_while(|s| 2 * (s - 1) <= t) {
                let margin = depth - s;
                let p = widths[0] + 2 + t - depth - s;
                if p >= interior.end + margin {
                    continue;
                }
                let (before, after) = buffers.split_at_mut((s - 1) * PLANES * plane);
                let source = if s == 1 {
                    *block
                } else {
                    Source { cells: &before[(s - 2) * PLANES * plane..], plane, row: columns, first_row, planes: PLANES }
                };
                let covered = [tile.start - margin..tile.end + margin, across(columns, widths[2], s == depth, margin)];
                let mut computed = [0, 1].map(|k| common(&covered[k], &self.inside[k + 1]));
                if !self.inside[0].contains(&p) {
                    computed[0].end = computed[0].start;
                }
                let (planes, first) = if s == depth {
                    (&mut *to, p * block.plane + covered[0].start * columns)
                } else {
                    (after, p % PLANES * plane + (covered[0].start - first_row) * columns)
                };
                let target = &mut planes[first..first + covered[0].len() * columns];
                if computed != covered {
                    keep(target, block, p, &covered, &computed);
                }
                let target = &mut target[(computed[0].start - covered[0].start) * columns..];
                let target = &mut target[..computed[0].len() * source.row];
                let [rows, columns] = computed;
                let from = [p - 1, p, p + 1].map(|plane| source.plane(plane));
                self.arch.dispatch(Means { from, to: target, stride: source.row, first: rows.start - source.first_row, columns });
            }
        }
    }
}

/// The columns that a sweep covers, of so many with a halo. But for the last sweep, whole cache lines: it costs less to compute cells that
/// nobody reads than to leave them out.
fn across(columns: usize, width: usize, last: bool, margin: usize) -> Range<usize> {
    let end = (columns - width + margin).next_multiple_of(if last { 1 } else { LINE }).min(columns);
    width - margin.next_multiple_of(LINE)..end
}

/// The indices of two ranges.
fn common(a: &Range<usize>, b: &Range<usize>) -> Range<usize> {
    let start = a.start.max(b.start).min(a.end);
    start..a.end.min(b.end).max(start)
}

/// Copies the boundary values of a plane, what is covered and not computed, for the next sweep.
fn keep(to: &mut [f64], block: &Source<'_>, plane: usize, covered: &[Range<usize>; 2], computed: &[Range<usize>; 2]) {
    for (to, row) in to.chunks_exact_mut(block.row).zip(covered[0].clone()) {
        let from = &block.plane(plane)[(row - block.first_row) * block.row..][..block.row];
        let kept = if computed[0].contains(&row) { computed[1].clone() } else { 0..0 };
        let (before, behind) =
            if kept.is_empty() { (covered[1].clone(), 0..0) } else { (covered[1].start..kept.start, kept.end..covered[1].end) };
        to[before.clone()].copy_from_slice(&from[before]);
        to[behind.clone()].copy_from_slice(&from[behind]);
    }
}

/// The means of the six neighbours of some cells of a plane.
struct Means<'a> {
    /// The planes before, at and after it.
    from: [&'a [f64]; 3],
    /// The rows to be computed.
    to: &'a mut [f64],
    /// Cells from one row to the next, in all four.
    stride: usize,
    /// The row of the planes that is the first of `to`; not their first and not their last.
    first: usize,
    columns: Range<usize>,
}

impl WithSimd for Means<'_> {
    type Output = ();

    // What is inlined here is compiled for the widest vectors of the processor.
    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Means { from: [below, own, above], to, stride, first, columns } = self;
        let sixth = simd.splat_f64s(SIXTH);
        for (to, row) in to.chunks_exact_mut(stride).zip(first..) {
            let to = &mut to[columns.clone()];
            let (at, len) = (row * stride + columns.start, to.len());
            let (west, west_rest) = S::as_simd_f64s(&own[at - 1..][..len]);
            let (east, east_rest) = S::as_simd_f64s(&own[at + 1..][..len]);
            let (north, north_rest) = S::as_simd_f64s(&own[at - stride..][..len]);
            let (south, south_rest) = S::as_simd_f64s(&own[at + stride..][..len]);
            let (below, below_rest) = S::as_simd_f64s(&below[at..][..len]);
            let (above, above_rest) = S::as_simd_f64s(&above[at..][..len]);
            let (vectors, rest) = S::as_mut_simd_f64s(to);
            let across = west.iter().zip(east).zip(north.iter().zip(south)).zip(below.iter().zip(above));
            for (to, (((&w, &e), (&n, &s)), (&b, &a))) in vectors.iter_mut().zip(across) {
                let sum = simd.add_f64s(simd.add_f64s(w, e), simd.add_f64s(n, s));
                *to = simd.mul_f64s(simd.add_f64s(sum, simd.add_f64s(b, a)), sixth);
            }
            // The same sums in the same order, cell by cell.
            for (k, to) in rest.iter_mut().enumerate() {
                let sum = (west_rest[k] + east_rest[k]) + (north_rest[k] + south_rest[k]);
                *to = (sum + (below_rest[k] + above_rest[k])) * SIXTH;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_around_tiles_and_blocks_are_work_too() {
        const N: usize = 16;
        let check = |ranks: usize, depth: usize, tile: usize, boundary: Boundary, [cells, padded, own]: [usize; 3]| {
            let expected = Work::flops((6 * cells) as f64) + Work::bytes((8 * (padded + own)) as f64);
            let body = |job: &Job| {
                let array = GlobalArray::<f64, Ix3>::builder(job, [N; 3]).min_block([1, 1, N]).ghosts([depth, depth, LINE]);
                let array = array.boundaries([boundary; 3]).create()?;
                assert_eq!(Sweeper::new(&array, tile).work(depth), expected);
                Ok::<_, Error>(())
            };
            Launch::new().ranks(ranks).network("threads").run(body).unwrap();
        };
        let (all, columns) = (N * N * N, N + 2 * LINE);
        // Beyond an open boundary nothing is computed.
        check(1, 1, N, Boundary::Open, [all, (N + 2).pow(2) * columns, all]);
        check(1, 2, N, Boundary::Open, [2 * all, (N + 4).pow(2) * columns, all]);
        // Of two tiles each computes a row of the other in the first sweep.
        check(1, 2, N / 2, Boundary::Open, [2 * all + 2 * N * N, (N + 4).pow(2) * columns, all]);
        // Periodic: a cell more on each side, along the rows a line.
        let (around, block) = ((N + 2).pow(2) * columns, (N + 4).pow(2) * columns);
        check(1, 2, N, Boundary::Periodic, [around + all, block, all]);
        // Half of the planes.
        let half = (N / 2 + 1) * N * N + all / 2;
        check(2, 2, N, Boundary::Open, [half, (N / 2 + 4) * (N + 4) * columns, all / 2]);
    }
}
