//! Fields on the grid: a vector with one value for each cell, spread over the ranks in blocks.
//!
//! A rank keeps the values of its block with a border one cell wide around it, as one dense array; the values of neighbours'
//! cells go into the border. A field whose border is needed passes through a *global array*: the rank puts its block, all ranks
//! sync, and each gets the six slabs of cells next to its block, whoever owns them. The five- and seven-point operators need no
//! corners. There are two such arrays, used in turn: a rank that puts into one again has passed the sync of the exchange between,
//! so everybody has finished reading it, and one sync for each exchange is enough.
//!
//! A rank without a block (there are more ranks than cells along the cut axes) takes part in every collective and does nothing
//! else.

use std::collections::BTreeSet;
use std::ops::Range;

use global_arrays::prelude::*;
use ndarray::ArrayViewMut3;

/// This rank's block and where its cells lie in a bordered array.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Layout {
    /// Cells of the whole grid along each axis.
    pub(crate) extents: [usize; 3],
    /// First cell of the block.
    pub(crate) start: [usize; 3],
    /// Cells of the block; all zero for a rank without one.
    pub(crate) count: [usize; 3],
    /// Distance in the bordered array between neighbours along each axis.
    pub(crate) strides: [usize; 3],
}

impl Layout {
    pub(crate) fn new(extents: [usize; 3], start: [usize; 3], count: [usize; 3]) -> Layout {
        Layout { extents, start, count, strides: [(count[1] + 2) * (count[2] + 2), count[2] + 2, 1] }
    }

    /// Elements of a bordered array.
    pub(crate) fn len(&self) -> usize {
        self.shape().iter().product()
    }

    /// Extents of a bordered array.
    fn shape(&self) -> [usize; 3] {
        self.count.map(|count| count + 2)
    }

    /// Where a cell of the block, counted from its first, lies in a bordered array.
    pub(crate) fn place(&self, [i, j, k]: [usize; 3]) -> usize {
        (i + 1) * self.strides[0] + (j + 1) * self.strides[1] + k + 1
    }

    /// The block's rows along the fastest axis, as ranges of a bordered array, in the order of memory.
    pub(crate) fn rows(&self) -> impl DoubleEndedIterator<Item = Range<usize>> + Clone + use<> {
        let Layout { count: [n, m, length], strides, .. } = *self;
        let base = move |i, j| (i + 1) * strides[0] + (j + 1) * strides[1] + 1;
        (0..n).flat_map(move |i| (0..m).map(move |j| base(i, j)..base(i, j) + length))
    }

    /// The cells of the block: their number in the grid, and where they lie in a bordered array.
    pub(crate) fn cells(&self) -> impl Iterator<Item = ([usize; 3], usize)> + '_ {
        let [n, m, l] = self.count;
        let cell = move |i, j, k| ([self.start[0] + i, self.start[1] + j, self.start[2] + k], self.place([i, j, k]));
        (0..n).flat_map(move |i| (0..m).flat_map(move |j| (0..l).map(move |k| cell(i, j, k))))
    }

    /// Sum over the block of a product, element by element.
    pub(crate) fn dot(&self, a: &[f64], b: &[f64]) -> f64 {
        self.rows().map(|row| a[row.clone()].iter().zip(&b[row]).map(|(a, b)| a * b).sum::<f64>()).sum()
    }

    /// Sum over the block of magnitudes.
    pub(crate) fn magnitude(&self, a: &[f64]) -> f64 {
        self.rows().map(|row| a[row].iter().map(|a| a.abs()).sum::<f64>()).sum()
    }

    /// The cells next to the block: for each axis and side on which there are any, where they lie in the grid and in a bordered
    /// array.
    fn slabs(&self) -> Vec<[(Range<usize>, Range<usize>); 3]> {
        let mut slabs = Vec::new();
        if self.count.contains(&0) {
            return slabs;
        }
        for axis in 0..3 {
            let own = |a: usize| (self.start[a]..self.start[a] + self.count[a], 1..self.count[a] + 1);
            let (first, last) = (self.start[axis], self.start[axis] + self.count[axis]);
            let mut slab = |global: Range<usize>, local: Range<usize>| {
                let mut ranges = [own(0), own(1), own(2)];
                ranges[axis] = (global, local);
                slabs.push(ranges);
            };
            if first > 0 {
                slab(first - 1..first, 0..1);
            }
            if last < self.extents[axis] {
                slab(last..last + 1, self.count[axis] + 1..self.count[axis] + 2);
            }
        }
        slabs
    }
}

/// Of memory, all ranks together: fields, matrix with its factors, media, global arrays.
const BYTES_PER_CELL: u64 = 350;

/// The ranks of a solver, with the arrays through which fields get their borders.
#[derive(Debug)]
pub(crate) struct Team<'j> {
    job: &'j Job,
    arrays: [GlobalArray<f64, Ix3>; 2],
    turn: usize,
    /// The last field that was [`published`](Self::publish).
    published: GlobalArray<f64, Ix3>,
    pub(crate) layout: Layout,
    slabs: Vec<[(Range<usize>, Range<usize>); 3]>,
}

impl<'j> Team<'j> {
    /// Spreads a grid over the ranks of `job`, in blocks that the library chooses. Collective.
    pub(crate) fn new(job: &'j Job, extents: [usize; 3]) -> Result<Team<'j>, Error> {
        // The arrays' creation finds out about their own part only.
        let (needed, available) = (BYTES_PER_CELL * extents.iter().product::<usize>() as u64, job.memory().available);
        if needed > available {
            return Err(Error::other(format!("{extents:?} cells need some {needed} bytes, and {available} are left")));
        }
        let first = GlobalArray::<f64, Ix3>::builder(job, extents).name("field").zeros().create()?;
        let arrays = [first.duplicate("field, second")?, first.duplicate("field, third")?];
        let corner = |block: [&Ix3; 2]| block.map(|index| [index[0], index[1], index[2]]);
        let block = first.blocks(job.rank()).next();
        let [start, count] = block.map_or([[0; 3]; 2], |block| corner([block.patch.start(), block.patch.count()]));
        let layout = Layout::new(extents, start, count);
        let slabs = layout.slabs();
        Ok(Team { job, arrays, turn: 0, published: first, layout, slabs })
    }

    /// A field of zeros.
    pub(crate) fn zeros(&self) -> Vec<f64> {
        vec![0.0; self.layout.len()]
    }

    /// Sums over all ranks. Collective.
    pub(crate) fn sum<const N: usize>(&self, mut values: [f64; N]) -> Result<[f64; N], Error> {
        self.job.all_reduce(&mut values, ops::sum)?;
        Ok(values)
    }

    /// The largest over all ranks. Collective.
    pub(crate) fn largest(&self, value: f64) -> Result<f64, Error> {
        self.job.all_reduce_one(value, ops::max)
    }

    /// Fills the border of a field with the neighbours' cells. Collective.
    pub(crate) fn exchange(&mut self, field: &mut [f64]) -> Result<(), Error> {
        let array = &self.arrays[self.turn];
        put(array, &self.layout, field)?;
        self.job.sync()?;
        let mut view = ArrayViewMut3::from_shape(self.layout.shape(), field).map_err(Error::other)?;
        for [(i, to_i), (j, to_j), (k, to_k)] in self.slabs.iter().cloned() {
            array.get_into(s![i, j, k], view.slice_mut(s![to_i, to_j, to_k]))?;
        }
        self.turn = 1 - self.turn;
        Ok(())
    }

    /// Shows a field to all ranks: on return the array holds it, until the next [`exchange`](Self::exchange). Collective.
    pub(crate) fn publish(&mut self, field: &[f64]) -> Result<&GlobalArray<f64, Ix3>, Error> {
        put(&self.published, &self.layout, field)?;
        self.job.sync()?;
        Ok(&self.published)
    }

    /// Number of other ranks that own cells next to this rank's block.
    pub(crate) fn peers(&self) -> Result<usize, Error> {
        let mut peers = BTreeSet::new();
        for [(i, _), (j, _), (k, _)] in self.slabs.iter().cloned() {
            for index in i.flat_map(|i| j.clone().map(move |j| (i, j))).flat_map(|(i, j)| k.clone().map(move |k| [i, j, k])) {
                peers.insert(self.published.owner(index)?);
            }
        }
        Ok(peers.len())
    }
}

/// Writes this rank's block of `field` to where it belongs in `array`.
fn put(array: &GlobalArray<f64, Ix3>, layout: &Layout, field: &[f64]) -> Result<(), Error> {
    let ([i, j, k], [n, m, l]) = (layout.start, layout.count);
    if n * m * l == 0 {
        return Ok(());
    }
    let view = ndarray::ArrayView3::from_shape(layout.shape(), field).map_err(Error::other)?;
    array.put(s![i..i + n, j..j + m, k..k + l], view.slice(s![1..=n, 1..=m, 1..=l]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After an exchange every border cell inside the grid holds its neighbour's value; corners and what is outside stay.
    #[test]
    fn borders_hold_the_neighbours_cells() {
        for (ranks, extents) in [(1, [3, 4, 5]), (4, [3, 4, 5]), (7, [2, 9, 9]), (5, [3, 1, 1]), (6, [1, 8, 8])] {
            let body = |job: &Job| {
                let mut team = Team::new(job, extents)?;
                let mut field = vec![-1.0; team.layout.len()];
                let layout = team.layout.clone();
                let value = |cell: [usize; 3]| (cell[0] * 10_000 + cell[1] * 100 + cell[2]) as f64;
                for round in 0..5 {
                    layout.cells().for_each(|(cell, place)| field[place] = value(cell) + f64::from(round));
                    team.exchange(&mut field)?;
                    for (cell, place) in layout.cells() {
                        for axis in 0..3 {
                            let mut neighbour = cell;
                            neighbour[axis] = cell[axis].wrapping_sub(1);
                            let inside = cell[axis] > 0;
                            let expected = if inside { value(neighbour) + f64::from(round) } else { -1.0 };
                            assert_eq!(field[place - layout.strides[axis]], expected, "{cell:?} {axis}");
                            neighbour[axis] = cell[axis] + 1;
                            let inside = cell[axis] + 1 < extents[axis];
                            let expected = if inside { value(neighbour) + f64::from(round) } else { -1.0 };
                            assert_eq!(field[place + layout.strides[axis]], expected, "{cell:?} {axis}");
                        }
                    }
                }
                let [cells] = team.sum([layout.cells().count() as f64])?;
                assert_eq!(cells as usize, extents.iter().product::<usize>());
                Ok::<(), Error>(())
            };
            Launch::new().ranks(ranks).network("threads").run(body).unwrap();
        }
    }

    #[test]
    fn rows_and_cells_are_the_same_places() {
        let layout = Layout::new([9, 9, 9], [1, 2, 3], [2, 3, 4]);
        let by_rows: Vec<usize> = layout.rows().flatten().collect();
        let by_cells: Vec<usize> = layout.cells().map(|(_, place)| place).collect();
        assert_eq!(by_rows, by_cells);
        assert_eq!(by_rows.len(), 24);
    }
}
