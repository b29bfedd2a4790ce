//! A coarse level: corrections that are constant in boxes of cells.
//!
//! An incomplete factorization passes news on from cell to cell, so it takes as many iterations as there are cells across the
//! grid to even out what is wrong with whole regions. The coarse level does that at once: the grid is cut into boxes of equally
//! many cells along each axis, at most [`MOST`] in all, and with Z the matrix of the boxes' indicators the coarse level is
//!
//! ```text
//! Q = Z·(Zᵀ·A·Z)⁻¹·Zᵀ
//! ```
//!
//! [`crate::krylov`] says how the preconditioners use it. Boxes are the grid's and not the ranks', so that they cross the cuts
//! and are the same on any number of ranks. Their matrix is small: it is summed over all ranks, and each rank factors and solves it
//! for itself, with the same bits. The sums over boxes travel in all-reduces that the solvers need anyway.
//!
//! The factorization has no pivoting. A symmetric positive definite matrix needs none. In the Jacobian of Richards' equation with
//! upstream weighting, what leaves a cell enters others, so columns are dominated by their diagonals, and those of the boxes'
//! matrix too. With the mean permeability of two cells this need not hold. Where a pivot is too small, there is no coarse
//! correction.
//!
//! # Source
//! R. A. Nicolaides, *Deflation of conjugate gradients with applications to boundary value problems*, SIAM J. Numer. Anal. 24,
//! 1987 (this coarse space); B. F. Smith, P. E. Bjørstad, W. D. Gropp, *Domain Decomposition*, Cambridge 1996, §1.3 (added to
//! another preconditioner).

use std::ops::Range;

use global_arrays::prelude::*;

use crate::field::{Layout, Team};
use crate::matrix::SevenPoint;

/// Boxes of the whole grid.
const MOST: usize = 144;
/// Pivots up to this times the largest entry below them are refused.
const SMALL: f64 = 1e-3;
/// Pivots up to this times the entry that was in their place are refused: they are rounding errors. The matrix of closed ground
/// without storage is singular, and its last pivot is zero.
const ROUNDING: f64 = 1e-13;

/// The boxes, and the factors of their matrix.
#[derive(Debug, Clone)]
pub(crate) struct Coarse {
    /// Boxes along each axis.
    boxes: [usize; 3],
    /// Runs of this rank's cells, in a bordered array, that lie in one box, with the number of the box.
    runs: Vec<(Range<usize>, usize)>,
    /// Cells of other ranks beside the block.
    beside: Vec<usize>,
    /// The box of each place of a bordered array, of those beside the block as well.
    places: Vec<usize>,
    /// Half of the bandwidth of the boxes' matrix.
    width: usize,
    /// The factors L and U: row by row, `width` entries of L, the reciprocal of the pivot, `width` entries of U.
    factor: Vec<f64>,
    sums: Vec<f64>,
}

impl Coarse {
    /// Boxes for the grid of `team`.
    pub(crate) fn new(team: &Team<'_>) -> Coarse {
        let layout = &team.layout;
        let boxes = cut(layout.extents);
        let (mut runs, mut places) = (Vec::<(Range<usize>, usize)>::new(), vec![0; layout.len()]);
        for (cell, n) in layout.cells() {
            let number = number(layout, boxes, cell);
            places[n] = number;
            for (axis, upper) in (0..3).flat_map(|axis| [(axis, false), (axis, true)]) {
                let mut neighbor = cell;
                neighbor[axis] =
                    if upper { (cell[axis] + 1).min(layout.extents[axis] - 1) } else { cell[axis].saturating_sub(1) };
                places[layout.step(n, axis, upper)] = self::number(layout, boxes, neighbor);
            }
            match runs.last_mut() {
                Some((run, last)) if run.end == n && *last == number => run.end += 1,
                _ => runs.push((n..n + 1, number)),
            }
        }
        let beside = layout.beside();
        let count = boxes.iter().product::<usize>();
        let strides = strides(boxes);
        let width = (0..3).filter(|&axis| boxes[axis] > 1).map(|axis| strides[axis]).max().unwrap_or(0);
        Coarse { boxes, runs, beside, places, width, factor: vec![0.0; count * (2 * width + 1)], sums: vec![0.0; count] }
    }

    /// Number of boxes.
    pub(crate) fn len(&self) -> usize {
        self.sums.len()
    }

    /// Computes the boxes' matrix of `a` and its factors. If elimination without pivoting fails, returns false, and solutions are
    /// zero. Collective.
    pub(crate) fn factor(&mut self, team: &Team<'_>, a: &SevenPoint) -> Result<bool, Error> {
        let (layout, count, strides) = (&team.layout, self.len(), strides(self.boxes));
        // The diagonal, then the entries for the boxes before and behind along each axis.
        let mut entries = vec![0.0; 7 * count];
        for (run, own) in &self.runs {
            for n in run.clone() {
                entries[*own] += a.diagonal[n];
                for (axis, upper) in (0..3).flat_map(|axis| [(axis, false), (axis, true)]) {
                    let same = self.places[layout.step(n, axis, upper)] == *own;
                    let kind = if same { 0 } else { 1 + 2 * axis + usize::from(upper) };
                    entries[kind * count + own] += a.band(axis, upper)[n];
                }
            }
        }
        // Each row's entries are added up, in one box or another.
        team.work(7.0, 7);
        team.sum_all(&mut entries)?;
        let width = self.width;
        team.compute(2 * count * width * width);
        let edge = 2 * width + 1;
        let at = |i: usize, j: usize| i * edge + j + width - i;
        let factor = &mut self.factor;
        factor.fill(0.0);
        for i in 0..count {
            factor[at(i, i)] = entries[i];
            for axis in (0..3).filter(|&axis| self.boxes[axis] > 1) {
                // Where there is no box the entry is zero.
                if i >= strides[axis] {
                    factor[at(i, i - strides[axis])] += entries[(1 + 2 * axis) * count + i];
                }
                if i + strides[axis] < count {
                    factor[at(i, i + strides[axis])] += entries[(2 + 2 * axis) * count + i];
                }
            }
        }
        for k in 0..count {
            let behind = k + 1..(k + width + 1).min(count);
            let column = behind.clone().map(|i| factor[at(i, k)].abs()).fold(0.0, f64::max);
            let pivot = factor[at(k, k)];
            // Positive in all matrices for which no pivoting is needed.
            if !(pivot.is_finite() && pivot > SMALL * column && pivot > ROUNDING * entries[k].abs()) {
                // All ranks find this.
                factor.fill(0.0);
                return Ok(false);
            }
            factor[at(k, k)] = pivot.recip();
            let (above, below) = factor.split_at_mut((k + 1) * edge);
            let row = &above[k * edge + width..];
            for (i, other) in behind.zip(below.chunks_exact_mut(edge)) {
                let first = width + k - i;
                let multiple = other[first] * row[0];
                other[first] = multiple;
                other[first + 1..].iter_mut().zip(&row[1..]).for_each(|(entry, above)| *entry -= multiple * above);
            }
        }
        Ok(true)
    }

    /// Adds up this rank's cells of each box: `sums` ← Zᵀ·r, this rank's share.
    pub(crate) fn restrict(&self, r: &[f64], sums: &mut [f64]) {
        sums.fill(0.0);
        for (run, number) in &self.runs {
            sums[*number] += r[run.clone()].iter().sum::<f64>();
        }
    }

    /// Operations of [`solve`](Self::solve): each entry of the factors has a part in one product.
    pub(crate) fn flops(&self) -> usize {
        2 * self.factor.len()
    }

    /// Solves the boxes' equations for the right-hand side `sums`, and returns it times the solution.
    pub(crate) fn solve(&mut self, sums: &[f64]) -> f64 {
        let (count, width) = (self.len(), self.width);
        let row = |i: usize| &self.factor[i * (2 * width + 1)..][..2 * width + 1];
        let x = &mut self.sums;
        for i in 0..count {
            let first = i.saturating_sub(width);
            let known: f64 = row(i)[width - (i - first)..width].iter().zip(&x[first..i]).map(|(l, x)| l * x).sum();
            x[i] = sums[i] - known;
        }
        for i in (0..count).rev() {
            let known: f64 = row(i)[width + 1..].iter().zip(&x[i + 1..]).map(|(u, x)| u * x).sum();
            x[i] = (x[i] - known) * row(i)[width];
        }
        x.iter().zip(sums).map(|(x, sum)| x * sum).sum()
    }

    /// y ← Z·x, where x is the last solution; in the border, too.
    pub(crate) fn spread(&self, y: &mut [f64]) {
        self.runs.iter().for_each(|(run, number)| y[run.clone()].fill(self.sums[*number]));
        self.beside.iter().for_each(|&n| y[n] = self.sums[self.places[n]]);
    }

    /// y ← y + Z·x, where x is the last solution; in the border, too.
    pub(crate) fn lift(&self, y: &mut [f64]) {
        for (run, number) in &self.runs {
            let correction = self.sums[*number];
            y[run.clone()].iter_mut().for_each(|y| *y += correction);
        }
        self.beside.iter().for_each(|&n| y[n] += self.sums[self.places[n]]);
    }

    /// p ← z + Z·x + β·p, where x is the last solution; in the border, too.
    pub(crate) fn add(&self, z: &[f64], beta: f64, p: &mut [f64]) {
        for (run, number) in &self.runs {
            let correction = self.sums[*number];
            p[run.clone()].iter_mut().zip(&z[run.clone()]).for_each(|(p, z)| *p = z + correction + beta * *p);
        }
        for &n in &self.beside {
            p[n] = z[n] + self.sums[self.places[n]] + beta * p[n];
        }
    }
}

/// At most [`MOST`] boxes: as many along each axis as it has cells, or one number along all that have more.
fn cut(extents: [usize; 3]) -> [usize; 3] {
    let cut = |each: usize| extents.map(|extent| extent.min(each));
    let mut each = 1;
    while cut(each + 1) != cut(each) && cut(each + 1).iter().product::<usize>() <= MOST {
        each += 1;
    }
    cut(each)
}

fn strides(boxes: [usize; 3]) -> [usize; 3] {
    [boxes[1] * boxes[2], boxes[2], 1]
}

/// The box of a cell.
fn number(layout: &Layout, boxes: [usize; 3], cell: [usize; 3]) -> usize {
    let strides = strides(boxes);
    (0..3).map(|axis| cell[axis] * boxes[axis] / layout.extents[axis] * strides[axis]).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the coarse level leaves of a residual sums to zero in each box, on any number of ranks.
    #[test]
    fn a_correction_takes_the_sums_of_all_boxes_away() {
        for (ranks, extents) in [(1, [1, 30, 31]), (2, [1, 30, 31]), (3, [7, 8, 9]), (7, [1, 30, 31]), (2, [40, 1, 1])] {
            let body = |job: &Job| {
                let mut team = Team::new(job, extents)?;
                let layout = team.layout.clone();
                // Without symmetry.
                let entry = |from: [usize; 3], to: [usize; 3]| {
                    -1.0 - ((3 * from.iter().sum::<usize>() + to.iter().sum::<usize>()) % 7) as f64
                };
                let a = SevenPoint::of(&layout, 0.01, entry);
                let mut coarse = Coarse::new(&team);
                assert!(coarse.len() > 35, "{extents:?}");
                assert!(coarse.factor(&team, &a)?);
                let (mut r, mut correction, mut product) = (team.zeros(), team.zeros(), team.zeros());
                layout.cells().for_each(|(cell, n)| r[n] = (cell[0] * 31 + cell[1] * 7 + cell[2]) as f64 % 5.0);
                let mut sums = vec![0.0; coarse.len()];
                coarse.restrict(&r, &mut sums);
                team.sum_all(&mut sums)?;
                let energy = coarse.solve(&sums);
                coarse.add(&team.zeros(), 0.0, &mut correction);
                team.exchange(&mut correction)?;
                a.multiply(&layout, &correction, &mut product);
                let [expected] = team.sum([layout.dot(&correction, &product)])?;
                assert!((energy / expected - 1.0).abs() < 1e-9, "{energy} {expected}");
                layout.rows().flatten().for_each(|n| r[n] -= product[n]);
                coarse.restrict(&r, &mut sums);
                team.sum_all(&mut sums)?;
                assert!(sums.iter().all(|sum| sum.abs() < 1e-8), "{ranks} ranks, {extents:?}: {sums:?}");
                Ok::<(), Error>(())
            };
            Launch::new().ranks(ranks).network("threads").run(body).unwrap();
        }
    }

    /// Closed ground without storage: any constant solves A·x = 0.
    #[test]
    fn a_singular_matrix_is_refused() {
        for (ranks, extents) in [(1, [1, 30, 31]), (2, [7, 8, 9]), (3, [40, 1, 1])] {
            let body = |job: &Job| {
                let team = Team::new(job, extents)?;
                let entry = |from: [usize; 3], to: [usize; 3]| -1.0 - 0.1 * (from.iter().chain(&to).sum::<usize>() as f64).sin();
                let (mut coarse, a) = (Coarse::new(&team), SevenPoint::of(&team.layout, 0.0, entry));
                assert!(!coarse.factor(&team, &a)?, "{ranks} ranks, {extents:?}");
                coarse.solve(&vec![1.0; coarse.len()]);
                assert!(coarse.sums.iter().all(|&value| value == 0.0));
                Ok::<(), Error>(())
            };
            Launch::new().ranks(ranks).network("threads").run(body).unwrap();
        }
    }

    #[test]
    fn boxes_are_few() {
        assert_eq!(cut([1, 129, 129]), [1, 12, 12]);
        assert_eq!(cut([15, 64, 64]), [5, 5, 5]);
        assert_eq!(cut([400, 1, 1]), [144, 1, 1]);
        assert_eq!(cut([2, 3, 4]), [2, 3, 4]);
    }
}
