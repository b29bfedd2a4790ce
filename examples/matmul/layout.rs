//! Who owns what: each block in equal slices, one for each rank of the line that needs it.
//!
//! The slices of A are columns of a block, and A is stored by columns; those of B and C are rows, and they are stored by rows. So what a rank gets or
//! adds to of another's is one piece of memory. In the array the slices are the blocks of an irregular distribution, and the list of its
//! owners says which rank has which.

use std::ops::Range;

use global_arrays::prelude::*;

use crate::cube::{Cube, Sizes};

/// Matrices in blocks on a cube.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Blocks {
    pub(crate) sizes: Sizes,
    pub(crate) cube: Cube,
}

/// The `k`-th of `parts` about equal parts of a range.
fn part(range: Range<usize>, parts: usize, k: usize) -> Range<usize> {
    let cut = |k: usize| range.start + (range.len() as u128 * k as u128 / parts as u128) as usize;
    cut(k)..cut(k + 1)
}

impl Blocks {
    /// Rows of A and C that a place works on.
    pub(crate) fn rows(self, [x, _, _]: [usize; 3]) -> Range<usize> {
        part(0..self.sizes.m, self.cube.p, x)
    }

    /// Columns of B and C that a place works on.
    pub(crate) fn columns(self, [_, y, _]: [usize; 3]) -> Range<usize> {
        part(0..self.sizes.n, self.cube.q, y)
    }

    /// Terms of the sums that a place works on: columns of A, rows of B.
    pub(crate) fn depth(self, [_, _, z]: [usize; 3]) -> Range<usize> {
        part(0..self.sizes.k, self.cube.r, z)
    }

    /// The slices of the block of C that a place works on, as ranges of rows, from its own on.
    pub(crate) fn slices(self, place: [usize; 3]) -> impl Iterator<Item = Range<usize>> {
        let r = self.cube.r;
        (0..r).map(move |turn| part(self.rows(place), r, (place[2] + turn) % r))
    }

    /// A: the block (x, z) in slices along y. Collective.
    pub(crate) fn a(self, job: &Job) -> Result<GlobalArray<f64, Ix2>, Error> {
        let Cube { p, q, r } = self.cube;
        let columns = (0..r).flat_map(|z| (0..q).map(move |y| part(self.depth([0, 0, z]), q, y).start));
        let owners = (0..p).flat_map(|x| (0..r).flat_map(move |z| (0..q).map(move |y| self.cube.rank([x, y, z]))));
        let rows = (0..p).map(|x| self.rows([x, 0, 0]).start);
        let Sizes { m, k, .. } = self.sizes;
        self.create(job, ("A", [m, k]), Order::ColumnMajor, [rows.collect(), columns.collect()], owners)
    }

    /// B: the block (z, y) in slices along x. Collective.
    pub(crate) fn b(self, job: &Job) -> Result<GlobalArray<f64, Ix2>, Error> {
        let Cube { p, q, r } = self.cube;
        let rows = (0..r).flat_map(|z| (0..p).map(move |x| part(self.depth([0, 0, z]), p, x).start));
        let owners = (0..r).flat_map(|z| (0..p).flat_map(move |x| (0..q).map(move |y| self.cube.rank([x, y, z]))));
        let Sizes { n, k, .. } = self.sizes;
        self.create(job, ("B", [k, n]), Order::RowMajor, [rows.collect(), self.column_cuts()], owners)
    }

    /// C: the block (x, y) in slices along z. Collective.
    pub(crate) fn c(self, job: &Job) -> Result<GlobalArray<f64, Ix2>, Error> {
        let Cube { p, q, r } = self.cube;
        let rows = (0..p).flat_map(|x| (0..r).map(move |z| part(self.rows([x, 0, 0]), r, z).start));
        let owners = (0..p).flat_map(|x| (0..r).flat_map(move |z| (0..q).map(move |y| self.cube.rank([x, y, z]))));
        let Sizes { m, n, .. } = self.sizes;
        self.create(job, ("C", [m, n]), Order::RowMajor, [rows.collect(), self.column_cuts()], owners)
    }

    fn column_cuts(self) -> Vec<usize> {
        (0..self.cube.q).map(|y| self.columns([0, y, 0]).start).collect()
    }

    fn create(
        self,
        job: &Job,
        (name, extents): (&str, [usize; 2]),
        order: Order,
        cuts: [Vec<usize>; 2],
        owners: impl Iterator<Item = usize>,
    ) -> Result<GlobalArray<f64, Ix2>, Error> {
        GlobalArray::builder(job, extents).name(name).order(order).irregular(cuts).restrict(owners).hollow().create()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rank_owns_a_slice_of_what_it_works_on() {
        for (ranks, cube) in [(12, Cube { p: 2, q: 3, r: 2 }), (8, Cube { p: 1, q: 2, r: 4 }), (1, Cube { p: 1, q: 1, r: 1 })] {
            for (m, n, k) in [(29, 29, 29), (5, 5, 5), (1, 1, 1), (3, 40, 11), (40, 1, 7)] {
                let outcome = Launch::new().ranks(ranks).network("threads").run(|job| {
                    let blocks = Blocks { sizes: Sizes { m, n, k }, cube };
                    let place = cube.place(job.rank());
                    let (rows, columns, k) = (blocks.rows(place), blocks.columns(place), blocks.depth(place));
                    let needed = [(&rows, &k), (&k, &columns), (&rows, &columns)];
                    for (array, (rows, columns)) in [blocks.a(job)?, blocks.b(job)?, blocks.c(job)?].iter().zip(needed) {
                        for block in array.blocks(job.rank()) {
                            let inside = |axis: usize, range: &Range<usize>| {
                                let (start, count) = (block.patch.start()[axis], block.patch.count()[axis]);
                                range.start <= start && start + count <= range.end
                            };
                            assert!(inside(0, rows) && inside(1, columns), "{block:?} of {array:?}");
                        }
                    }
                    let slices: usize = blocks.slices(place).map(|slice| slice.len()).sum();
                    assert_eq!(slices, rows.len());
                    job.sync()
                });
                outcome.unwrap_or_else(|error: Error| panic!("{error}"));
            }
        }
    }
}
