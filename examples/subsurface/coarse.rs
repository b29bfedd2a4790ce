//! A coarse level: corrections that are constant in boxes of cells.
//!
//! An incomplete factorization passes news on from cell to cell, so it takes as many iterations as there are cells across the
//! grid to even out what is wrong with whole regions. The coarse level does that at once: the grid is cut into boxes of equally
//! many cells along each axis, at most [`MOST`] in all, and with Z the matrix of the boxes' indicators the preconditioner becomes
//!
//! ```text
//! M⁻¹ + Z·(Zᵀ·A·Z)⁻¹·Zᵀ
//! ```
//!
//! (additive Schwarz with a coarse correction). Boxes are the grid's and not the ranks', so that they cross the cuts and are the
//! same on any number of ranks. Their matrix is small: it is summed over all ranks, and each rank factors and solves it for
//! itself, with the same bits. The sums over boxes travel in an all-reduce that conjugate gradients need anyway.
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
    /// The Cholesky factor: row by row, `width` entries left of the diagonal and the reciprocal of that on it.
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
        Coarse { boxes, runs, beside, places, width, factor: vec![0.0; count * (width + 1)], sums: vec![0.0; count] }
    }

    /// Number of boxes.
    pub(crate) fn len(&self) -> usize {
        self.sums.len()
    }

    /// Computes the boxes' matrix of a symmetric `a` and its factor; without effect if that is not positive definite, by
    /// rounding. Collective.
    pub(crate) fn factor(&mut self, team: &Team<'_>, a: &SevenPoint) -> Result<(), Error> {
        let (layout, count, strides) = (&team.layout, self.len(), strides(self.boxes));
        // The diagonal, then the entry for the next box along each axis.
        let mut entries = vec![0.0; 4 * count];
        for (run, own) in &self.runs {
            for n in run.clone() {
                entries[*own] += a.diagonal[n];
                for (axis, upper) in (0..3).flat_map(|axis| [(axis, false), (axis, true)]) {
                    let entry = a.band(axis, upper)[n];
                    if self.places[layout.step(n, axis, upper)] == *own {
                        entries[*own] += entry;
                    } else if upper {
                        entries[(1 + axis) * count + own] += entry;
                    }
                }
            }
        }
        // Each row's entries are added up, in one box or another.
        team.work(7.0, 7);
        team.sum_all(&mut entries)?;
        team.compute(count * self.width * self.width);
        // Row by row: L_ij = (A_ij − Σ_k L_ik·L_jk) / L_jj within the band.
        let width = self.width;
        let at = |i: usize, j: usize| i * (width + 1) + j + width - i;
        self.factor.fill(0.0);
        for i in 0..count {
            self.factor[at(i, i)] = entries[i];
            for axis in (0..3).filter(|&axis| self.boxes[axis] > 1 && i >= strides[axis]) {
                self.factor[at(i, i - strides[axis])] += entries[(1 + axis) * count + i - strides[axis]];
            }
            for j in i.saturating_sub(width)..=i {
                let shared = i.saturating_sub(width)..j;
                let sum: f64 = shared.map(|k| self.factor[at(i, k)] * self.factor[at(j, k)]).sum();
                let entry = self.factor[at(i, j)] - sum;
                if j < i {
                    self.factor[at(i, j)] = entry * self.factor[at(j, j)];
                } else if entry > 0.0 && entry.is_finite() {
                    self.factor[at(i, i)] = entry.sqrt().recip();
                } else {
                    // All ranks find this. Solutions are zero then.
                    self.factor.fill(0.0);
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Adds up this rank's cells of each box: `sums` ← Zᵀ·r, this rank's share.
    pub(crate) fn restrict(&self, r: &[f64], sums: &mut [f64]) {
        sums.fill(0.0);
        for (run, number) in &self.runs {
            sums[*number] += r[run.clone()].iter().sum::<f64>();
        }
    }

    /// Operations of [`solve`](Self::solve): each entry of the factor has a part in two products.
    pub(crate) fn flops(&self) -> usize {
        4 * self.factor.len()
    }

    /// Solves the boxes' equations for the right-hand side `sums`, and returns it times the solution.
    pub(crate) fn solve(&mut self, sums: &[f64]) -> f64 {
        let (count, width) = (self.len(), self.width);
        let row = |i: usize| &self.factor[i * (width + 1)..][..width + 1];
        let x = &mut self.sums;
        for i in 0..count {
            let first = i.saturating_sub(width);
            let row = row(i);
            let known: f64 = row[width - (i - first)..width].iter().zip(&x[first..i]).map(|(l, x)| l * x).sum();
            x[i] = (sums[i] - known) * row[width];
        }
        let product = x.iter().map(|x| x * x).sum();
        for i in (0..count).rev() {
            let first = i.saturating_sub(width);
            let row = row(i);
            let value = x[i] * row[width];
            x[i] = value;
            row[width - (i - first)..width].iter().zip(&mut x[first..i]).for_each(|(l, x)| *x -= l * value);
        }
        product
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
                let entry = |from: [usize; 3], to: [usize; 3]| -1.0 - (from.iter().chain(&to).sum::<usize>() % 7) as f64;
                let a = SevenPoint::of(&layout, 0.01, entry);
                let mut coarse = Coarse::new(&team);
                assert!(coarse.len() > 35, "{extents:?}");
                coarse.factor(&team, &a)?;
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

    #[test]
    fn boxes_are_few() {
        assert_eq!(cut([1, 129, 129]), [1, 12, 12]);
        assert_eq!(cut([15, 64, 64]), [5, 5, 5]);
        assert_eq!(cut([400, 1, 1]), [144, 1, 1]);
        assert_eq!(cut([2, 3, 4]), [2, 3, 4]);
    }
}
