//! The pair calculators of one rank, and the arrays between which they stand.

use std::collections::BTreeMap;

use global_arrays::{algebra::Matmul, prelude::*, simulation::Work};
use num_complex::Complex;

use crate::pairs::{Pair, Place, Shape, places};

type C64 = Complex<f64>;
const ZERO: C64 = C64::ZERO;
const ONE: C64 = C64::ONE;

/// What a rank calculates.
#[derive(Debug)]
pub(crate) struct Calculators<'j> {
    job: &'j Job,
    shape: Shape,
    /// Coefficients by plane, state and point, of this iteration and of the next.
    states: GlobalArray<C64, Ix3>,
    next: GlobalArray<C64, Ix3>,
    /// S, or what there is of it.
    overlap: GlobalArray<C64, Ix2>,
    pairs: Vec<Pair>,
    /// The blocks that the pairs need, the same in each iteration, and the sums for the next states of each.
    blocks: BTreeMap<Place, Array2<C64>>,
    sums: BTreeMap<Place, Array2<C64>>,
}

impl<'j> Calculators<'j> {
    /// Makes the arrays and the first states. Collective.
    pub(crate) fn new(job: &'j Job, shape: Shape) -> Result<Self, Error> {
        let extents = [shape.planes, shape.states, shape.points];
        // Points stay together: a block of states in a plane is one run.
        let array = |name: &str| GlobalArray::builder(job, extents).min_block([1, 1, shape.points]).name(name).zeros().create();
        let (mut states, next) = (array("states")?, array("next states")?);
        let overlap = GlobalArray::builder(job, [shape.states; 2]).name("overlap").zeros().create()?;
        states.owner_epoch(|mut part| {
            for block in part.blocks() {
                let start = *block.patch.start();
                for ((plane, state, point), value) in part.block_mut(&block).indexed_iter_mut() {
                    *value = shape.first(start[1] + state, start[0] + plane, start[2] + point);
                }
            }
        })?;
        let pairs = shape.pairs(job.rank(), job.size());
        let empty = || -> BTreeMap<Place, Array2<C64>> {
            let block = |(plane, block)| ((plane, block), Array2::zeros((shape.block(block).len(), shape.points)));
            places(&pairs).into_iter().map(block).collect()
        };
        let (blocks, sums) = (empty(), empty());
        Ok(Calculators { job, shape, states, next, overlap, pairs, blocks, sums })
    }

    /// Steps 1 and 2: the overlap of the states. Collective.
    pub(crate) fn overlap(&mut self) -> Result<(), Error> {
        let shape = self.shape;
        self.overlap.zero()?;
        let (states, blocks) = (&self.states, &mut self.blocks);
        self.job.scope(|scope| {
            blocks.iter_mut().try_for_each(|(&(plane, block), to)| scope.get_into(states, s![plane, shape.block(block), ..], to))
        })?;
        for pair in &self.pairs {
            let [a, b] = pair.places().map(|place| &self.blocks[&place]);
            let adjoint = b.t().mapv(|x| x.conj());
            let mut product = Array2::zeros((a.nrows(), b.nrows()));
            C64::multiply(product.view_mut(), ONE, a.view(), adjoint.view(), ZERO);
            // The adjoint is a copy. The conjugates of the product, if they are made, are in the cache.
            self.job
                .simulation()
                .work(multiplied(&product, b.ncols()) + Work::bytes((2 * size_of_val(b.as_slice().unwrap_or_default())) as f64));
            let (rows, columns) = (shape.block(pair.row), shape.block(pair.column));
            self.overlap.accumulate(s![rows.clone(), columns.clone()], ONE, &product)?;
            if !pair.is_diagonal() {
                product.mapv_inplace(|x| x.conj());
                self.overlap.accumulate(s![columns, rows], ONE, product.t())?;
            }
        }
        self.job.sync()
    }

    /// Step 3: the next states. Returns the largest deviation from orthonormality that this rank saw. Collective.
    pub(crate) fn correct(&mut self) -> Result<f64, Error> {
        self.next.zero()?;
        self.sums.values_mut().for_each(|sum| sum.fill(ZERO));
        self.job.simulation().work(Work::bytes((size_of::<C64>() * self.sums.values().map(Array2::len).sum::<usize>()) as f64));
        let mut deviation = 0.0;
        let mut add = |place: Place, factor: ndarray::ArrayView2<'_, C64>, block: &Array2<C64>| {
            let sum = self.sums.get_mut(&place).expect("a sum for each block of the pairs");
            C64::multiply(sum.view_mut(), ONE, factor, block.view(), ONE);
            self.job.simulation().work(multiplied(sum, factor.ncols()));
        };
        for pair in &self.pairs {
            let mut factor = block_of_overlap(&self.overlap, self.shape, *pair)?;
            deviation = ops::max_nan(deviation, from_identity(&factor, *pair));
            factor.mapv_inplace(|x| -0.5 * x);
            if pair.is_diagonal() {
                factor.diag_mut().mapv_inplace(|x| x + 1.5);
            }
            let [row, column] = pair.places();
            add(row, factor.view(), &self.blocks[&column]);
            if !pair.is_diagonal() {
                factor.mapv_inplace(|x| x.conj());
                add(column, factor.t(), &self.blocks[&row]);
            }
        }
        for (&(plane, block), sum) in &self.sums {
            self.next.accumulate(s![plane, self.shape.block(block), ..], ONE, sum)?;
        }
        self.job.sync()?;
        std::mem::swap(&mut self.states, &mut self.next);
        Ok(deviation)
    }

    /// The largest deviation of the overlap from the identity in this rank's pairs. One-sided.
    pub(crate) fn deviation(&self) -> Result<f64, Error> {
        self.pairs.iter().try_fold(0.0, |most, &pair| {
            let block = block_of_overlap(&self.overlap, self.shape, pair)?;
            Ok(ops::max_nan(most, from_identity(&block, pair)))
        })
    }

    /// The states as they are now.
    pub(crate) fn states(&mut self) -> &mut GlobalArray<C64, Ix3> {
        &mut self.states
    }
}

/// A product of matrices of complex numbers: four multiplications and four additions for each term. Both factors and the product pass
/// through memory, this twice.
fn multiplied(product: &Array2<C64>, depth: usize) -> Work {
    let (m, n) = product.dim();
    let elements = m * depth + depth * n + 2 * m * n;
    Work::flops(8.0 * (m * n * depth) as f64) + Work::bytes((size_of::<C64>() * elements) as f64)
}

fn block_of_overlap(overlap: &GlobalArray<C64, Ix2>, shape: Shape, pair: Pair) -> Result<Array2<C64>, Error> {
    overlap.get(s![shape.block(pair.row), shape.block(pair.column)])
}

/// The largest element of a block of S less the identity.
fn from_identity(block: &Array2<C64>, pair: Pair) -> f64 {
    let identity = |i, j| if pair.is_diagonal() && i == j { ONE } else { ZERO };
    block.indexed_iter().fold(0.0, |most, ((i, j), &x)| ops::max_nan(most, (x - identity(i, j)).norm()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_diagonal_blocks_have_ones() {
        let block = Array2::from_diag_elem(3, C64::new(1.0, 0.5));
        let pair = |row| Pair { plane: 0, row, column: 1 };
        assert_eq!(from_identity(&block, pair(1)), 0.5);
        assert_eq!(from_identity(&block, pair(2)), 1.25_f64.sqrt());
    }
}
