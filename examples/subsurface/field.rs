//! Fields on the grid: a vector with one value for each cell, spread over the ranks in blocks.
//!
//! A rank keeps the values of its block with a border one cell wide around it, as one dense array; the values of neighbors'
//! cells go into the border. A field whose border is needed passes through a *global array*: the rank puts its cells at the faces
//! of its block, all ranks sync, and each gets the planes of cells next to its block, whoever owns them. The five- and
//! seven-point operators need no corners. There are two such arrays, used in turn: a rank that puts into one again has passed the
//! sync of the exchange between, so everybody has finished reading it, and one sync for each exchange is enough.
//!
//! A rank without a block (there are more ranks than cells along the cut axes) takes part in every collective and does nothing
//! else.

use std::collections::BTreeSet;
use std::ops::Range;

use global_arrays::{prelude::*, simulation::Work};
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
    /// Distance in the bordered array between neighbors along each axis.
    pub(crate) strides: [usize; 3],
    /// Number of the block along each axis.
    block: [usize; 3],
}

impl Layout {
    pub(crate) fn new(extents: [usize; 3], start: [usize; 3], count: [usize; 3]) -> Layout {
        Layout { extents, start, count, strides: [(count[1] + 2) * (count[2] + 2), count[2] + 2, 1], block: [0; 3] }
    }

    /// Whether sweeps go downwards along `axis`: those of odd blocks do, so that they meet those of the block before.
    pub(crate) fn is_reversed(&self, axis: usize) -> bool {
        !self.block[axis].is_multiple_of(2)
    }

    /// Whether sweeps along `axis` end where those of another block do.
    pub(crate) fn meets(&self, axis: usize) -> bool {
        self.count[axis] > 0 && (self.is_reversed(axis) || self.start[axis] + self.count[axis] < self.extents[axis])
    }

    /// The color of the block: blocks that touch have different ones.
    pub(crate) fn is_second(&self) -> bool {
        !self.block.iter().sum::<usize>().is_multiple_of(2)
    }

    /// The place of the neighbor of cell n along `axis`: the one behind if `upper`, else the one before.
    #[inline(always)]
    pub(crate) fn step(&self, n: usize, axis: usize, upper: bool) -> usize {
        if upper { n + self.strides[axis] } else { n - self.strides[axis] }
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
        self.rows().map(|row| sum(&a[row.clone()], &b[row], |a, b| a * b)).sum()
    }

    /// Sum over the block of magnitudes.
    pub(crate) fn magnitude(&self, a: &[f64]) -> f64 {
        self.rows().map(|row| sum(&a[row.clone()], &a[row], |a, _| a.abs())).sum()
    }

    /// Where the cells of other ranks beside the block lie in a bordered array.
    pub(crate) fn beside(&self) -> Vec<usize> {
        let at = |[(_, i), (_, j), (_, k)]: Plane| {
            let rows = i.flat_map(move |i| j.clone().map(move |j| i * self.strides[0] + j * self.strides[1]));
            rows.flat_map(move |row| k.clone().map(move |k| row + k)).collect::<Vec<_>>()
        };
        self.faces().into_iter().flat_map(|face| at(face.other)).collect()
    }

    /// The faces of the block behind which there are cells of the grid.
    fn faces(&self) -> Vec<Face> {
        let mut faces = Vec::new();
        if self.count.contains(&0) {
            return faces;
        }
        for axis in 0..3 {
            let own = |a: usize| (self.start[a]..self.start[a] + self.count[a], 1..self.count[a] + 1);
            let (first, count) = (self.start[axis], self.count[axis]);
            let plane = |global: usize, local: usize| {
                let mut ranges = [own(0), own(1), own(2)];
                ranges[axis] = (global..global + 1, local..local + 1);
                ranges
            };
            if first > 0 {
                faces.push(Face { own: plane(first, 1), other: plane(first - 1, 0), meets: self.is_reversed(axis) });
            }
            if first + count < self.extents[axis] {
                let (own, other) = (plane(first + count - 1, count), plane(first + count, count + 1));
                faces.push(Face { own, other, meets: !self.is_reversed(axis) });
            }
        }
        faces
    }
}

/// Σ f(a, b) in several sums side by side: one alone would wait for each of its additions.
#[inline(always)]
fn sum(a: &[f64], b: &[f64], f: impl Fn(f64, f64) -> f64) -> f64 {
    const SIDE_BY_SIDE: usize = 8;
    let mut sums = [0.0; SIDE_BY_SIDE];
    let (heads, tails) = (a.chunks_exact(SIDE_BY_SIDE), b.chunks_exact(SIDE_BY_SIDE));
    let rest: f64 = heads.remainder().iter().zip(tails.remainder()).map(|(&a, &b)| f(a, b)).sum();
    for (a, b) in heads.zip(tails) {
        for k in 0..SIDE_BY_SIDE {
            sums[k] += f(a[k], b[k]);
        }
    }
    sums.iter().sum::<f64>() + rest
}

/// Cells as ranges along each axis: in the grid, and in a bordered array.
type Plane = [(Range<usize>, Range<usize>); 3];

/// A face between this rank's block and cells of other ranks.
#[derive(Debug)]
struct Face {
    /// This rank's cells at the face.
    own: Plane,
    /// The others'.
    other: Plane,
    /// The sweeps of both sides end here.
    meets: bool,
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
    faces: Vec<Face>,
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
        let edges = first.distribution().block_shape().map_or([1; 3], |edges| [edges[0], edges[1], edges[2]]);
        let number = std::array::from_fn(|axis| start[axis] / edges[axis].max(1));
        let layout = Layout { block: number, ..Layout::new(extents, start, count) };
        let faces = layout.faces();
        Ok(Team { job, arrays, turn: 0, published: first, layout, faces })
    }

    /// This rank.
    pub(crate) fn rank(&self) -> usize {
        self.job.rank()
    }

    /// A field of zeros.
    pub(crate) fn zeros(&self) -> Vec<f64> {
        vec![0.0; self.layout.len()]
    }

    /// For each cell of the block, this rank has carried out so many operations and read or written so many numbers of bordered
    /// arrays. Numbers of the rows around a cell are in the cache, and count once.
    pub(crate) fn work(&self, flops: f64, numbers: usize) {
        let cells = self.layout.count.iter().product::<usize>() as f64;
        self.job.simulation().work(Work::flops(cells * flops) + Work::bytes(8.0 * cells * numbers as f64));
    }

    /// The same for what all ranks compute alike, whatever the cells.
    pub(crate) fn compute(&self, flops: usize) {
        self.job.simulation().work(Work::flops(flops as f64));
    }

    /// Sums over all ranks. Collective.
    pub(crate) fn sum<const N: usize>(&self, mut values: [f64; N]) -> Result<[f64; N], Error> {
        self.job.all_reduce(&mut values, ops::sum)?;
        Ok(values)
    }

    /// The same for as many values as one likes. Collective.
    pub(crate) fn sum_all(&self, values: &mut [f64]) -> Result<(), Error> {
        self.job.all_reduce(values, ops::sum)
    }

    /// The largest over all ranks. Collective.
    pub(crate) fn largest(&self, value: f64) -> Result<f64, Error> {
        self.job.all_reduce_one(value, ops::max)
    }

    /// Fills the border of a field with the neighbors' cells. Collective.
    pub(crate) fn exchange(&mut self, field: &mut [f64]) -> Result<(), Error> {
        self.carry(field, |_| true, |_| true, |_, job| job.sync())
    }

    /// The same, and sums over all ranks, for the price of the sums alone. Collective.
    pub(crate) fn exchange_and_sum(&mut self, field: &mut [f64], values: &mut [f64]) -> Result<(), Error> {
        let turn = self.turn;
        // What was put is visible after a fence, and a reduction ends on no rank before all have entered it.
        let meet = |arrays: &[GlobalArray<f64, Ix3>; 2], job: &Job| {
            arrays[turn].fence()?;
            job.all_reduce(values, ops::sum)
        };
        self.carry(field, |_| true, |_| true, meet)
    }

    /// Fills the border of a field with the neighbors' cells where sweeps meet, in blocks of one color: the first if
    /// `from_second`, else the second. Collective.
    pub(crate) fn pass(&mut self, field: &mut [f64], from_second: bool) -> Result<(), Error> {
        let gives = self.layout.is_second() == from_second;
        self.carry(field, |face| gives && face.meets, |face| !gives && face.meets, |_, job| job.sync())
    }

    /// Puts this rank's cells at the faces that `give`, lets all ranks `meet`, and gets the others' at those that `take`.
    /// Collective.
    fn carry(
        &mut self,
        field: &mut [f64],
        give: impl Fn(&Face) -> bool,
        take: impl Fn(&Face) -> bool,
        meet: impl FnOnce(&[GlobalArray<f64, Ix3>; 2], &Job) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let array = &self.arrays[self.turn];
        let mut view = ArrayViewMut3::from_shape(self.layout.shape(), field).map_err(Error::other)?;
        for Face { own, .. } in self.faces.iter().filter(|face| give(face)) {
            let [(i, from_i), (j, from_j), (k, from_k)] = own.clone();
            array.put(s![i, j, k], view.slice(s![from_i, from_j, from_k]))?;
        }
        meet(&self.arrays, self.job)?;
        for Face { other, .. } in self.faces.iter().filter(|face| take(face)) {
            let [(i, to_i), (j, to_j), (k, to_k)] = other.clone();
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

    /// Another array over the grid, spread alike. Collective.
    pub(crate) fn array(&self, name: &str) -> Result<GlobalArray<f64, Ix3>, Error> {
        self.published.duplicate(name)
    }

    /// Completes what any rank did to arrays. Collective.
    pub(crate) fn sync(&self) -> Result<(), Error> {
        self.job.sync()
    }

    /// Number of other ranks that own cells next to this rank's block.
    pub(crate) fn peers(&self) -> Result<usize, Error> {
        let mut peers = BTreeSet::new();
        for [(i, _), (j, _), (k, _)] in self.faces.iter().map(|face| face.other.clone()) {
            for index in i.flat_map(|i| j.clone().map(move |j| (i, j))).flat_map(|(i, j)| k.clone().map(move |k| [i, j, k])) {
                peers.insert(self.published.owner(index)?);
            }
        }
        Ok(peers.len())
    }
}

/// This rank's block of `array`, as a field.
pub(crate) fn get(array: &GlobalArray<f64, Ix3>, layout: &Layout) -> Result<Vec<f64>, Error> {
    let ([i, j, k], [n, m, l]) = (layout.start, layout.count);
    let mut field = vec![0.0; layout.len()];
    if n * m * l > 0 {
        let mut view = ArrayViewMut3::from_shape(layout.shape(), &mut field).map_err(Error::other)?;
        array.get_into(s![i..i + n, j..j + m, k..k + l], view.slice_mut(s![1..=n, 1..=m, 1..=l]))?;
    }
    Ok(field)
}

/// Writes this rank's block of `field` to where it belongs in `array`.
pub(crate) fn put(array: &GlobalArray<f64, Ix3>, layout: &Layout, field: &[f64]) -> Result<(), Error> {
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

    /// After an exchange every border cell inside the grid holds its neighbor's value; corners and what is outside stay.
    #[test]
    fn borders_hold_the_neighbors_cells() {
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
                            let mut neighbor = cell;
                            neighbor[axis] = cell[axis].wrapping_sub(1);
                            let inside = cell[axis] > 0;
                            let expected = if inside { value(neighbor) + f64::from(round) } else { -1.0 };
                            assert_eq!(field[place - layout.strides[axis]], expected, "{cell:?} {axis}");
                            neighbor[axis] = cell[axis] + 1;
                            let inside = cell[axis] + 1 < extents[axis];
                            let expected = if inside { value(neighbor) + f64::from(round) } else { -1.0 };
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
