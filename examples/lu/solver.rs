//! A factored matrix on all ranks, as `accuracy` uses it.

use global_arrays::{prelude::*, simulation::Work};
use ndarray::ArrayView2;

use crate::accuracy::FactoredSystem;
use crate::distributed::Rank;
use crate::matrix::Matrix;
use crate::report::largest;

/// See the module's essay.
pub(crate) struct Solver<'a> {
    pub(crate) job: &'a Job,
    pub(crate) rank: &'a Rank<'a>,
    /// This rank's part of the factors.
    pub(crate) part: ArrayView2<'a, f64>,
    pub(crate) pivots: &'a [usize],
    pub(crate) matrix: &'a Matrix,
}

/// Sums over all entries of a matrix: each rank adds what its own give. Collective.
pub(crate) fn sums<const N: usize>(
    job: &Job,
    rank: &Rank<'_>,
    matrix: &Matrix,
    mut add: impl FnMut(&mut [Vec<f64>; N], usize, usize, f64),
) -> Result<[Vec<f64>; N], Error> {
    let mut sums = [const { Vec::new() }; N];
    sums.iter_mut().for_each(|sum| sum.resize(matrix.order(), 0.0));
    let mut entries = 0.0;
    matrix.entries(rank.rows, rank.columns, |row, column, value| {
        entries += 1.0;
        add(&mut sums, row, column, value);
    });
    job.simulation().work(Work::flops(2.0 * N as f64 * entries));
    sums.iter_mut().try_for_each(|sum| job.all_reduce(sum, ops::sum))?;
    Ok(sums)
}

impl Solver<'_> {
    fn sums<const N: usize>(&self, add: impl FnMut(&mut [Vec<f64>; N], usize, usize, f64)) -> Result<[Vec<f64>; N], Error> {
        sums(self.job, self.rank, self.matrix, add)
    }
}

impl FactoredSystem for Solver<'_> {
    type Error = Error;

    fn solve(&self, b: &[f64]) -> Result<Vec<f64>, Error> {
        self.rank.solve(self.job, self.part, self.pivots, b)
    }

    fn solve_transposed(&self, b: &[f64]) -> Result<Vec<f64>, Error> {
        self.rank.solve_transposed(self.job, self.part, self.pivots, b)
    }

    fn product_and_scale(&self, x: &[f64]) -> Result<[Vec<f64>; 2], Error> {
        self.sums(|[product, scale], row, column, value| {
            product[row] += value * x[column];
            scale[row] += (value * x[column]).abs();
        })
    }

    fn norm(&self) -> Result<f64, Error> {
        let [columns] = self.sums(|[columns], _, column, value| columns[column] += value.abs())?;
        Ok(largest(columns))
    }
}

#[cfg(test)]
mod tests {
    use ndarray::ShapeBuilder;

    use super::*;
    use crate::accuracy::{condition, refine};
    use crate::cli::Grid;
    use crate::market::Sparse;

    /// What one rank finds of a factored matrix.
    fn with_factors(
        matrix: &Matrix,
        (rows, columns): (usize, usize),
        block: usize,
        find: impl Fn(&Solver<'_>) -> Result<(), Error> + Sync,
    ) {
        let found = Launch::new().network("threads").ranks(rows * columns).run(|job| {
            let mut rank = Rank::new(job, matrix.order(), block, Grid { rows, columns })?;
            let mut part = Array2::zeros((rank.rows.local_extent(), rank.columns.local_extent()).f());
            matrix.fill(rank.rows, rank.columns, part.view_mut());
            let pivots = rank.factor(part.view_mut(), |_| ()).map_err(|_| Error::other("the matrix is singular"))?;
            find(&Solver { job, rank: &rank, part: part.view(), pivots: &pivots, matrix })
        });
        found.unwrap();
    }

    const GRIDS: [(usize, usize); 6] = [(1, 1), (1, 2), (2, 1), (2, 2), (2, 3), (5, 1)];

    #[test]
    fn both_systems_are_solved_on_any_grid() {
        let matrix = Matrix::Generated { order: 37, seed: 3 };
        let b: Vec<f64> = (0..37).map(|row| matrix.right_hand_side(row)).collect();
        for grid in GRIDS {
            with_factors(&matrix, grid, 5, |solver| {
                let (x, y) = (solver.solve(&b)?, solver.solve_transposed(&b)?);
                let [forward, backward] = solver.sums(|[forward, backward], row, column, value| {
                    forward[row] += value * x[column];
                    backward[column] += value * y[row];
                })?;
                for product in [forward, backward] {
                    assert!(product.iter().zip(&b).all(|(p, b)| (p - b).abs() < 1e-11), "{grid:?}: {product:?}, {b:?}");
                }
                Ok(())
            });
        }
    }

    /// The inverse of this Hilbert matrix has whole entries, so its condition number is known.
    #[test]
    fn the_condition_is_the_same_on_any_grid_and_refinement_converges() {
        const EXACT: f64 = 29_070_279.0;
        let order = 6;
        let entries = (0..order * order).map(|k| (k % order, k / order, 1.0 / (k % order + k / order + 1) as f64)).collect();
        let matrix = Matrix::Read { sparse: Sparse { order, entries }, seed: 1 };
        let b: Vec<f64> = (0..order).map(|row| matrix.right_hand_side(row)).collect();
        for grid in GRIDS {
            with_factors(&matrix, grid, 2, |solver| {
                let estimate = condition(solver, order)?;
                assert!((estimate / EXACT - 1.0).abs() < 1e-6, "{grid:?}: {estimate}");
                let mut x = solver.solve(&b)?;
                x[2] *= 1.0 + 1e-6;
                let refined = refine(solver, &b, &mut x)?;
                assert!(refined.before > 1e-9 && refined.after < 4e-16, "{grid:?}: {refined:?}");
                Ok(())
            });
        }
    }
}
