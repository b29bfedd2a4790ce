//! Tiles: blocks that are dealt out as in a block-cyclic array, but each contiguous in memory.
//!
//! A member's tiles lie behind one another without gaps, in the array's [`Order`] of their places in its part. Each is a dense array in
//! the same order.
//!
//! Edge tiles, or all tiles with edges of the caller's choice, may differ in size; yet nothing is padded and no table of tiles is needed.
//! On axis `a` let a member have `total_a` indices, of which `earlier_a` lie before the tile, which has `size_a`. In row-major order the
//! tiles before it are those with less on the first axis, then, among its equals there, those with less on the second, and so on:
//!
//! ```text
//! offset of the tile = Σ_a  (Π_{b<a} size_b) · earlier_a · (Π_{b>a} total_b)
//! ```
//!
//! One pass over the axes adds this up by Horner's rule; column-major it is the mirror image. Equal tiles have `earlier_a` and `total_a`
//! by division; for tiles of all sizes each axis has a table of its own edges.
//!
//! # Source
//! Global Arrays: `GA_Set_tiled_proc_grid`, `GA_Set_tiled_irreg_proc_grid`.

use ndarray::Dimension;

use super::axis_map::{AxisMap, CyclicSizes, Place};
use super::reciprocal::divide;
use super::{Distribution, Location, Order};

/// The tiles of one axis, of any sizes, dealt to the coordinates of the grid in turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TileEdges {
    /// First index of each tile; an empty tile has that of the next one.
    starts: Vec<usize>,
    /// For each tile the indices that its coordinate has before it.
    earlier: Vec<usize>,
    /// Indices of each coordinate.
    totals: Vec<usize>,
}

pub(super) struct TiledMap<'a, D> {
    pub(super) extents: &'a D,
    pub(super) grid: &'a D,
    pub(super) sizes: &'a CyclicSizes<D>,
}

pub(super) struct TiledIrregularMap<'a, D> {
    pub(super) extents: &'a D,
    pub(super) grid: &'a D,
    pub(super) edges: &'a [TileEdges],
}

impl<D: Dimension> Distribution<D> {
    /// Owner and place of an element in a tiled array; `see` gets what is known of each axis.
    pub(super) fn locate_in_tiles(&self, map: &impl AxisMap, index: &D, mut see: impl FnMut(usize, &Place)) -> Location {
        let (mut member, mut tile, mut within) = (0, 0, 0);
        // Row-major: the product of the tile's own edges so far. Column-major: that of the totals, and the stride in the tile.
        let (mut before, mut stride) = (1, 1);
        for (axis, &index) in index.slice().iter().enumerate() {
            let place = map.place(axis, index);
            see(axis, &place);
            member = member * self.grid.slice()[axis] + place.coordinate;
            let total = map.extent(axis, place.coordinate);
            match self.order {
                Order::RowMajor => {
                    tile = tile * total + before * place.earlier;
                    within = within * place.extent + place.local;
                    before *= place.extent;
                }
                Order::ColumnMajor => {
                    tile = tile * place.extent + before * place.earlier;
                    within += place.local * stride;
                    before *= total;
                    stride *= place.extent;
                }
            }
        }
        Location { member, offset: tile + within }
    }
}

impl TileEdges {
    /// The cuts have been checked.
    pub(super) fn new(starts: &[usize], extent: usize, grid: usize) -> Self {
        let (mut earlier, mut totals) = (Vec::with_capacity(starts.len()), vec![0; grid]);
        for (tile, &start) in starts.iter().enumerate() {
            let total = &mut totals[tile % grid];
            earlier.push(*total);
            *total += starts.get(tile + 1).unwrap_or(&extent) - start;
        }
        Self { starts: starts.to_vec(), earlier, totals }
    }

    /// The first index of each tile.
    pub(super) fn starts(&self) -> &[usize] {
        &self.starts
    }

    fn end(&self, tile: usize, extent: usize) -> usize {
        self.starts.get(tile + 1).copied().unwrap_or(extent)
    }
}

impl<D: Dimension> AxisMap for TiledMap<'_, D> {
    const TILES: bool = true;

    #[inline]
    fn place(&self, axis: usize, index: usize) -> Place {
        let (block, grid) = (self.sizes.block.slice()[axis], self.grid.slice()[axis]);
        let (number, local) = divide(index, block, self.sizes.block_reciprocal.slice()[axis]);
        let (round, coordinate) = divide(number, grid, self.sizes.grid_reciprocal.slice()[axis]);
        let extent = block.min(self.extents.slice()[axis] - (index - local));
        // Whatever comes before a tile is full.
        Place { coordinate, local, extent, earlier: round * block, before: local, room: block - local }
    }

    #[inline]
    fn extent(&self, axis: usize, coordinate: usize) -> usize {
        self.sizes.extent(axis, coordinate)
    }

    #[inline]
    fn block_at(&self, axis: usize, coordinate: usize, local: usize) -> (usize, usize) {
        let block = self.sizes.block.slice()[axis];
        let (round, _) = divide(local, block, self.sizes.block_reciprocal.slice()[axis]);
        let start = (round * self.grid.slice()[axis] + coordinate) * block;
        (start, block.min(self.extents.slice()[axis] - start))
    }

    #[inline]
    fn local_step(&self, _axis: usize, _step: isize) -> Option<isize> {
        None
    }
}

impl<D: Dimension> AxisMap for TiledIrregularMap<'_, D> {
    const TILES: bool = true;

    #[inline]
    fn place(&self, axis: usize, index: usize) -> Place {
        let edges = &self.edges[axis];
        // The first tile begins at 0, so that at least one does not begin beyond the index; of several at one place the last is the
        // one that is not empty.
        let tile = edges.starts.partition_point(|&start| start <= index) - 1;
        let (start, end) = (edges.starts[tile], edges.end(tile, self.extents.slice()[axis]));
        let local = index - start;
        let coordinate = tile % self.grid.slice()[axis];
        Place { coordinate, local, extent: end - start, earlier: edges.earlier[tile], before: local, room: end - index }
    }

    #[inline]
    fn extent(&self, axis: usize, coordinate: usize) -> usize {
        self.edges[axis].totals[coordinate]
    }

    #[inline]
    fn block_at(&self, axis: usize, coordinate: usize, local: usize) -> (usize, usize) {
        let (edges, grid) = (&self.edges[axis], self.grid.slice()[axis]);
        // The last tile of this coordinate that does not begin beyond the local index: it is not empty.
        let (mut low, mut high) = (0, (edges.starts.len() - coordinate).div_ceil(grid));
        while high - low > 1 {
            let middle = low.midpoint(high);
            if edges.earlier[coordinate + middle * grid] <= local { low = middle } else { high = middle }
        }
        let tile = coordinate + low * grid;
        let start = edges.starts[tile];
        (start, edges.end(tile, self.extents.slice()[axis]) - start)
    }

    #[inline]
    fn local_step(&self, _axis: usize, _step: isize) -> Option<isize> {
        None
    }
}

#[cfg(test)]
mod tests {
    use ndarray::Dim;

    use super::*;
    use crate::distribution::DistributionError;

    #[test]
    fn tiles_lie_behind_one_another() {
        // 5 x 7 in tiles of 2 x 3 on one member: tile rows of 2, 2, 1 and tile columns of 3, 3, 1.
        let rows = Distribution::tiled(&Dim([5, 7]), &[2, 3], 1, None, Order::RowMajor).unwrap();
        let offsets = |made: &Distribution<_>| made.blocks(0).map(|block| block.offset).collect::<Vec<_>>();
        assert_eq!(offsets(&rows), [0, 6, 12, 14, 20, 26, 28, 31, 34]);
        assert_eq!(rows.locate(&Dim([3, 4])).offset, 20 + 3 + 1);
        let columns = Distribution::tiled(&Dim([5, 7]), &[2, 3], 1, None, Order::ColumnMajor).unwrap();
        // Columns of tiles: 6, 6 and 3 elements, twice, then 2, 2 and 1.
        assert_eq!(offsets(&columns), [0, 15, 30, 6, 21, 32, 12, 27, 34]);
        assert_eq!(columns.locate(&Dim([3, 4])).offset, 21 + 1 + 2);
    }

    #[test]
    fn what_is_wrong_is_said() {
        let extents = Dim([10, 10]);
        let order = Order::RowMajor;
        assert_eq!(Distribution::tiled(&extents, &[0, 2], 4, None, order), Err(DistributionError::ZeroBlock { axis: 0 }));
        assert!(Distribution::tiled(&extents, &[2, 2], 4, Some(&[2, 3]), order).is_err());
        let cut = |cuts: &[Vec<usize>], grid| Distribution::tiled_irregular(&extents, cuts, 4, grid, order);
        assert_eq!(cut(&[vec![0], vec![2]], None), Err(DistributionError::FirstCut { axis: 1 }));
        assert!(matches!(cut(&[vec![0, 7, 3], vec![0]], None), Err(DistributionError::Cut { axis: 0, position: 2, .. })));
        assert!(matches!(cut(&[vec![0, 11], vec![0]], None), Err(DistributionError::Cut { cut: 11, .. })));
        assert_eq!(cut(&[vec![0], vec![0]], Some(&[1, 0])), Err(DistributionError::ZeroGrid { axis: 1 }));
        assert!(cut(&[vec![0], vec![0]], Some(&[2, 2])).is_ok(), "places without a tile own nothing");
    }
}
