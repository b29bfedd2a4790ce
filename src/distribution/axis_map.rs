//! The arithmetic of one axis.

use ndarray::Dimension;

use super::reciprocal::{divide, reciprocal};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BlockSizes<D> {
    pub(super) block: D,
    reciprocal: D,
}

/// The local extent is one of three numbers: `base + block` for coordinates less than `split`, `base + rest` for `split` itself
/// and `base` beyond.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CyclicSizes<D> {
    pub(super) block: D,
    pub(super) block_reciprocal: D,
    pub(super) grid_reciprocal: D,
    split: D,
    base: D,
    rest: D,
}

/// Where an index lies on its axis. Inlining removes what a caller does not use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) coordinate: usize,
    /// Index within what is stored by itself: the owner's part, or a tile of it.
    pub(super) local: usize,
    /// Of what is stored by itself.
    pub(super) extent: usize,
    /// Indices of the owner before the tile; 0 where the part is one.
    pub(super) earlier: usize,
    /// Indices of the same block before this one.
    pub(super) before: usize,
    /// Indices from this one to the end of its block. The last block of an axis counts as full: patches end inside the array.
    pub(super) room: usize,
}

/// The arithmetic of each axis of a distribution. Coordinates are less than the grid, indices less than the extent.
pub(super) trait AxisMap {
    /// Whether each block is stored by itself.
    const TILES: bool = false;
    /// Where an index lies.
    fn place(&self, axis: usize, index: usize) -> Place;
    /// Of the local part of a coordinate.
    fn extent(&self, axis: usize, coordinate: usize) -> usize;
    /// First global index and length of the block in which local index `local` of a coordinate lies.
    fn block_at(&self, axis: usize, coordinate: usize, local: usize) -> (usize, usize);
    /// The local step, where a progression of this step stays with one coordinate across blocks.
    fn local_step(&self, axis: usize, step: isize) -> Option<isize>;
}

pub(super) struct BlockMap<'a, D> {
    pub(super) extents: &'a D,
    pub(super) grid: &'a D,
    pub(super) sizes: &'a BlockSizes<D>,
}

pub(super) struct CyclicMap<'a, D> {
    pub(super) extents: &'a D,
    pub(super) grid: &'a D,
    pub(super) sizes: &'a CyclicSizes<D>,
}

pub(super) struct IrregularMap<'a, D> {
    pub(super) extents: &'a D,
    pub(super) cuts: &'a [Vec<usize>],
}

impl<D: Dimension> BlockSizes<D> {
    pub(super) fn new(block: D) -> Self {
        Self { reciprocal: map(&block, |axis| reciprocal(block.slice()[axis])), block }
    }
}

impl<D: Dimension> CyclicSizes<D> {
    /// Of the local part of a coordinate.
    #[inline(always)]
    pub(super) fn extent(&self, axis: usize, coordinate: usize) -> usize {
        let split = self.split.slice()[axis];
        let last = if coordinate == split { self.rest.slice()[axis] } else { 0 };
        self.base.slice()[axis] + if coordinate < split { self.block.slice()[axis] } else { last }
    }

    pub(super) fn new(extents: &D, grid: &D, block: D) -> Self {
        let (n, p, b) = (extents.slice(), grid.slice(), block.slice());
        let full = |axis: usize| n[axis] / b[axis];
        Self {
            block_reciprocal: map(extents, |axis| reciprocal(b[axis])),
            grid_reciprocal: map(extents, |axis| reciprocal(p[axis])),
            split: map(extents, |axis| full(axis) % p[axis]),
            base: map(extents, |axis| full(axis) / p[axis] * b[axis]),
            rest: map(extents, |axis| n[axis] % b[axis]),
            block,
        }
    }
}

/// A value for each axis.
pub(super) fn map<D: Dimension>(like: &D, value: impl Fn(usize) -> usize) -> D {
    let mut answer = D::zeros(like.ndim());
    answer.slice_mut().iter_mut().enumerate().for_each(|(axis, slot)| *slot = value(axis));
    answer
}

/// On an axis that one coordinate holds: no division.
#[inline(always)]
fn undivided(extent: usize, index: usize) -> Place {
    Place { coordinate: 0, local: index, extent, earlier: 0, before: index, room: extent - index }
}

impl<D: Dimension> AxisMap for BlockMap<'_, D> {
    #[inline(always)]
    fn place(&self, axis: usize, index: usize) -> Place {
        if self.grid.slice()[axis] == 1 {
            return undivided(self.extents.slice()[axis], index);
        }
        let block = self.sizes.block.slice()[axis];
        let (coordinate, local) = divide(index, block, self.sizes.reciprocal.slice()[axis]);
        let extent = block.min(self.extents.slice()[axis] - (index - local));
        Place { coordinate, local, extent, earlier: 0, before: local, room: block - local }
    }

    #[inline]
    fn extent(&self, axis: usize, coordinate: usize) -> usize {
        let block = self.sizes.block.slice()[axis];
        block.min(self.extents.slice()[axis].saturating_sub(block * coordinate))
    }

    #[inline]
    fn block_at(&self, axis: usize, coordinate: usize, _local: usize) -> (usize, usize) {
        (self.sizes.block.slice()[axis] * coordinate, self.extent(axis, coordinate))
    }

    #[inline]
    fn local_step(&self, _axis: usize, _step: isize) -> Option<isize> {
        None
    }
}

impl<D: Dimension> AxisMap for CyclicMap<'_, D> {
    #[inline(always)]
    fn place(&self, axis: usize, index: usize) -> Place {
        let grid = self.grid.slice()[axis];
        if grid == 1 {
            // Blocks of one owner that follow one another are one block.
            return undivided(self.extents.slice()[axis], index);
        }
        let block = self.sizes.block.slice()[axis];
        let (number, within) = divide(index, block, self.sizes.block_reciprocal.slice()[axis]);
        let (round, coordinate) = divide(number, grid, self.sizes.grid_reciprocal.slice()[axis]);
        let extent = self.extent(axis, coordinate);
        Place { coordinate, local: round * block + within, extent, earlier: 0, before: within, room: block - within }
    }

    #[inline(always)]
    fn extent(&self, axis: usize, coordinate: usize) -> usize {
        self.sizes.extent(axis, coordinate)
    }

    #[inline]
    fn block_at(&self, axis: usize, coordinate: usize, local: usize) -> (usize, usize) {
        let grid = self.grid.slice()[axis];
        if grid == 1 {
            return (0, self.extents.slice()[axis]);
        }
        let block = self.sizes.block.slice()[axis];
        let (round, _) = divide(local, block, self.sizes.block_reciprocal.slice()[axis]);
        let length = block.min(self.extent(axis, coordinate) - round * block);
        ((round * grid + coordinate) * block, length)
    }

    #[inline]
    fn local_step(&self, axis: usize, step: isize) -> Option<isize> {
        let grid = self.grid.slice()[axis];
        let round = self.sizes.block.slice()[axis].checked_mul(grid)?;
        step.unsigned_abs().is_multiple_of(round).then(|| step / grid as isize)
    }
}

impl<D: Dimension> IrregularMap<'_, D> {
    /// First index of a block and of the next.
    #[inline]
    fn ends(&self, axis: usize, coordinate: usize) -> (usize, usize) {
        let cuts = &self.cuts[axis];
        (cuts[coordinate], cuts.get(coordinate + 1).copied().unwrap_or(self.extents.slice()[axis]))
    }
}

impl<D: Dimension> AxisMap for IrregularMap<'_, D> {
    #[inline]
    fn place(&self, axis: usize, index: usize) -> Place {
        // The first cut is 0, so that at least one is not beyond the index.
        let coordinate = self.cuts[axis].partition_point(|&cut| cut <= index) - 1;
        let (start, end) = self.ends(axis, coordinate);
        let local = index - start;
        Place { coordinate, local, extent: end - start, earlier: 0, before: local, room: end - index }
    }

    #[inline]
    fn extent(&self, axis: usize, coordinate: usize) -> usize {
        let (start, end) = self.ends(axis, coordinate);
        end - start
    }

    #[inline]
    fn block_at(&self, axis: usize, coordinate: usize, _local: usize) -> (usize, usize) {
        let (start, end) = self.ends(axis, coordinate);
        (start, end - start)
    }

    #[inline]
    fn local_step(&self, _axis: usize, _step: isize) -> Option<isize> {
        None
    }
}
