//! The constructors: they find every mistake.

use ndarray::Dimension;

use super::axis_map::{BlockSizes, CyclicSizes, map};
use super::halo::{Base, Ghosts, Padded};
use super::layout::{Layout, Restricted};
use super::restricted::Owners;
use super::tiles::TileEdges;
use super::{Distribution, DistributionError, Order, Slabs, grid};
use crate::index::KeptAxes;

impl<D: Dimension> Distribution<D> {
    /// One block per member. Of the process grids that give a block to as many members as possible, it uses the one with the least
    /// surface between blocks.
    ///
    /// `min_block` is a lower limit for the edges of blocks: an axis whose limit is its extent is not cut. Blocks at the end of an
    /// axis may be smaller. With more than six axes, only the six that can be cut most often are cut.
    ///
    /// # Errors
    /// No members, too many elements, a limit for the wrong number of axes.
    ///
    /// # Source
    /// Global Arrays: `NGA_Create` with its argument `chunk`.
    pub fn block(extents: &D, members: usize, min_block: Option<&[usize]>, order: Order) -> Result<Self, DistributionError> {
        check_size(extents, members)?;
        if let Some(min_block) = min_block {
            check_axes("a minimum block", min_block.len(), extents)?;
        }
        let grid = grid::for_blocks(extents.slice(), members, min_block, order);
        Ok(Self::blocks_on(extents, members, &grid, order))
    }

    /// One block for each member of a given process grid.
    ///
    /// # Errors
    /// Too many elements, a grid for the wrong number of axes or with a zero.
    pub fn block_with_grid(extents: &D, grid: &[usize], order: Order) -> Result<Self, DistributionError> {
        check_size(extents, 1)?;
        let members = check_grid(extents, grid, usize::MAX)?;
        Ok(Self::blocks_on(extents, members, grid, order))
    }

    /// Equal blocks, dealt out cyclically on each axis of a process grid. The default grid is as nearly square as the number of
    /// members allows, with at most as many rows as columns.
    ///
    /// # Errors
    /// No members, too many elements, a block or grid for the wrong number of axes or with a zero, a grid of more than `members`.
    ///
    /// # Source
    /// ScaLAPACK: `DESCINIT` with `RSRC = CSRC = 0` on a row-major process grid. Global Arrays: `GA_Set_block_cyclic_proc_grid`.
    pub fn block_cyclic(
        extents: &D,
        block: &[usize],
        members: usize,
        grid: Option<&[usize]>,
        order: Order,
    ) -> Result<Self, DistributionError> {
        let (grid, sizes) = dealt(extents, block, members, grid)?;
        // Blocks that come round are no slab; with one owner there is nothing to come round.
        let slabs = if grid.size() == 1 { Slabs::of(extents, &grid, extents, order) } else { None };
        Ok(Self { extents: extents.clone(), grid, members, order, layout: Layout::Cyclic(sizes), slabs })
    }

    /// Blocks with given cuts: for each axis, the first index of each block, ascending from 0. Two equal cuts make an
    /// empty block. The blocks belong to the members in row-major order.
    ///
    /// # Errors
    /// No members, too many elements, cuts for the wrong number of axes, not ascending or beyond the extent, more blocks than members.
    ///
    /// # Source
    /// Global Arrays: `NGA_Create_irreg`.
    pub fn irregular(extents: &D, cuts: &[Vec<usize>], members: usize, order: Order) -> Result<Self, DistributionError> {
        check_size(extents, members)?;
        check_cuts(extents, cuts)?;
        let grid = map(extents, |axis| cuts[axis].len());
        check_grid(extents, grid.slice(), members)?;
        Ok(Self { extents: extents.clone(), grid, members, order, layout: Layout::Irregular(cuts.to_vec()), slabs: None })
    }

    /// Equal tiles, dealt out in turn on each axis of a process grid, each contiguous in memory. The grid is by default that of
    /// [`block_cyclic`](Self::block_cyclic).
    ///
    /// # Errors
    /// Same as [`block_cyclic`](Self::block_cyclic).
    ///
    /// # Source
    /// Global Arrays: `GA_Set_tiled_proc_grid`.
    pub fn tiled(
        extents: &D,
        tile: &[usize],
        members: usize,
        grid: Option<&[usize]>,
        order: Order,
    ) -> Result<Self, DistributionError> {
        let (grid, sizes) = dealt(extents, tile, members, grid)?;
        Ok(Self { extents: extents.clone(), grid, members, order, layout: Layout::Tiled(sizes), slabs: None })
    }

    /// Tiles with given cuts, dealt out cyclically on each axis of a process grid, each contiguous in memory. `cuts` has, for each
    /// axis, the first index of each tile, ascending from 0; two equal cuts make an empty tile. The default grid is that of
    /// [`block_cyclic`](Self::block_cyclic).
    ///
    /// # Errors
    /// No members, too many elements, cuts or grid for the wrong number of axes, cuts that do not ascend or lie beyond the extent, a
    /// grid with a zero or of more than `members`.
    ///
    /// # Source
    /// Global Arrays: `GA_Set_tiled_irreg_proc_grid`.
    pub fn tiled_irregular(
        extents: &D,
        cuts: &[Vec<usize>],
        members: usize,
        grid: Option<&[usize]>,
        order: Order,
    ) -> Result<Self, DistributionError> {
        check_size(extents, members)?;
        check_cuts(extents, cuts)?;
        let tiles: Vec<usize> = cuts.iter().map(Vec::len).collect();
        let grid = dealing_grid(extents, &tiles, members, grid)?;
        let edges = (0..extents.ndim()).map(|axis| TileEdges::new(&cuts[axis], extents[axis], grid[axis])).collect();
        Ok(Self { extents: extents.clone(), grid, members, order, layout: Layout::TiledIrregular(edges), slabs: None })
    }

    /// The same distribution with parts padded by ghost cells. Widths of zero change nothing.
    ///
    /// # Errors
    /// A block-cyclic, tiled or restricted distribution (add the ghost cells before the restriction); widths or boundaries for the
    /// wrong number of axes; too many elements with the padding.
    ///
    /// # Source
    /// Global Arrays: `NGA_Create_ghosts`, `NGA_Create_ghosts_irreg`.
    pub fn with_ghosts(self, ghosts: Ghosts<D>) -> Result<Self, DistributionError> {
        let expected = self.extents.ndim();
        for (what, given) in [("ghost widths", ghosts.widths.ndim()), ("boundaries", ghosts.boundaries.len())] {
            if given != expected {
                return Err(DistributionError::AxisCount { what, given, expected });
            }
        }
        if ghosts.widths.slice().iter().all(|&width| width == 0) {
            return Ok(self);
        }
        let margins = self.extents.slice().iter().zip(ghosts.widths.slice());
        let padded: Vec<usize> = margins.map(|(n, w)| n.saturating_add(w.saturating_mul(2))).collect();
        check_product(&padded)?;
        let base = match self.layout {
            Layout::Block(sizes) => Base::Block(sizes),
            Layout::Irregular(cuts) => Base::Irregular(cuts),
            Layout::Padded(padded) => padded.base,
            Layout::Cyclic(_) | Layout::Tiled(_) | Layout::TiledIrregular(_) => {
                return Err(DistributionError::GhostsOfManyBlocks);
            }
            Layout::Restricted(_) => return Err(DistributionError::GhostsOfRestricted),
        };
        Ok(Self { layout: Layout::Padded(Padded { base, ghosts }), slabs: None, ..self })
    }

    /// The same distribution over a larger group, in which only the listed members own parts: the first one takes the part of member
    /// 0, and so on.
    ///
    /// # Errors
    /// Fewer owners than the distribution has members; an owner that is not a member, or is listed twice.
    ///
    /// # Source
    /// Global Arrays: `GA_Set_restricted`.
    pub fn restricted(self, owners: &[usize], members: usize) -> Result<Self, DistributionError> {
        if owners.len() < self.members {
            return Err(DistributionError::GridTooLarge { grid: self.grid.slice().to_vec(), members: owners.len() });
        }
        if let Some(&owner) = owners.iter().find(|&&owner| owner >= members) {
            return Err(DistributionError::NoSuchOwner { owner, members });
        }
        let mut sorted = owners.to_vec();
        sorted.sort_unstable();
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(DistributionError::OwnerTwice { owner: pair[0] });
        }
        let (layout, owners) = match self.layout {
            Layout::Restricted(inner) => (inner.layout, inner.owners.iter().map(|owner| owners[owner]).collect()),
            layout => (layout, owners.to_vec()),
        };
        if owners.iter().copied().eq(0..owners.len()) {
            // The first members, in their order: those beyond own nothing anyway.
            return Ok(Self { members, layout, ..self });
        }
        let owners = match owners.first() {
            Some(&first) if owners.iter().copied().eq(first..first + owners.len()) => Owners::Range { first, len: owners.len() },
            _ => Owners::List(owners),
        };
        Ok(Self { members, layout: Layout::Restricted(Box::new(Restricted { layout, owners })), slabs: None, ..self })
    }

    /// The grid has been checked.
    fn blocks_on(extents: &D, members: usize, grid: &[usize], order: Order) -> Self {
        let block = map(extents, |axis| extents.slice()[axis].div_ceil(grid[axis]).max(1));
        let grid = map(extents, |axis| grid[axis]);
        let slabs = Slabs::of(extents, &grid, &block, order);
        Self { extents: extents.clone(), grid, members, order, layout: Layout::Block(BlockSizes::new(block)), slabs }
    }
}

/// Grid and sizes of equal blocks dealt round.
fn dealt<D: Dimension>(
    extents: &D,
    block: &[usize],
    members: usize,
    grid: Option<&[usize]>,
) -> Result<(D, CyclicSizes<D>), DistributionError> {
    check_size(extents, members)?;
    check_axes("a block", block.len(), extents)?;
    if let Some(axis) = block.iter().position(|&edge| edge == 0) {
        return Err(DistributionError::ZeroBlock { axis });
    }
    let blocks: Vec<_> = extents.slice().iter().zip(block).map(|(n, b)| n.div_ceil(*b)).collect();
    let grid = dealing_grid(extents, &blocks, members, grid)?;
    let sizes = CyclicSizes::new(extents, &grid, map(extents, |axis| block[axis]));
    Ok((grid, sizes))
}

/// The grid that the caller gave, or one that suits the number of blocks on each axis.
fn dealing_grid<D: Dimension>(
    extents: &D,
    blocks: &[usize],
    members: usize,
    grid: Option<&[usize]>,
) -> Result<D, DistributionError> {
    let chosen;
    let grid = match grid {
        Some(grid) => grid,
        None => {
            chosen = grid::for_dealing(blocks, members);
            &chosen
        }
    };
    check_grid(extents, grid, members)?;
    Ok(map(extents, |axis| grid[axis]))
}

/// For each axis the first indices of blocks: the first 0, ascending, none beyond the extent.
fn check_cuts<D: Dimension>(extents: &D, cuts: &[Vec<usize>]) -> Result<(), DistributionError> {
    check_axes("cuts", cuts.len(), extents)?;
    for (axis, (cuts, &extent)) in cuts.iter().zip(extents.slice()).enumerate() {
        if cuts.first() != Some(&0) {
            return Err(DistributionError::FirstCut { axis });
        }
        for (position, pair) in cuts.windows(2).enumerate() {
            if pair[1] < pair[0] || pair[1] > extent {
                let (previous, cut) = (pair[0], pair[1]);
                return Err(DistributionError::Cut { axis, position: position + 1, cut, previous, extent });
            }
        }
    }
    Ok(())
}

/// A patch must be able to name all axes.
fn check_size<D: Dimension>(extents: &D, members: usize) -> Result<(), DistributionError> {
    if members == 0 {
        return Err(DistributionError::NoMembers);
    }
    let (axes, most) = (extents.ndim(), KeptAxes::MOST);
    if axes > most {
        return Err(DistributionError::TooManyAxes { axes, most });
    }
    check_product(extents.slice())
}

/// The product of the non-zero extents must fit `isize`: then so do all products of local extents, and differences of offsets.
fn check_product(extents: &[usize]) -> Result<(), DistributionError> {
    let product = extents.iter().filter(|&&n| n != 0).try_fold(1_usize, |product, &n| product.checked_mul(n));
    match product {
        Some(product) if isize::try_from(product).is_ok() => Ok(()),
        _ => Err(DistributionError::TooLarge { extents: extents.to_vec() }),
    }
}

fn check_axes<D: Dimension>(what: &'static str, given: usize, extents: &D) -> Result<(), DistributionError> {
    let expected = extents.ndim();
    if given == expected { Ok(()) } else { Err(DistributionError::AxisCount { what, given, expected }) }
}

/// Answers the number of places in the grid.
fn check_grid<D: Dimension>(extents: &D, grid: &[usize], members: usize) -> Result<usize, DistributionError> {
    check_axes("a process grid", grid.len(), extents)?;
    if let Some(axis) = grid.iter().position(|&processes| processes == 0) {
        return Err(DistributionError::ZeroGrid { axis });
    }
    match grid.iter().try_fold(1_usize, |product, &processes| product.checked_mul(processes)) {
        // Half of the range keeps `block * coordinate` below overflow, whatever the extents are.
        Some(product) if product <= members && isize::try_from(product).is_ok() => Ok(product),
        _ => Err(DistributionError::GridTooLarge { grid: grid.to_vec(), members }),
    }
}

#[cfg(test)]
mod tests {
    use ndarray::{Dim, Ix0, IxDyn};

    use super::*;

    const ROWS: Order = Order::RowMajor;

    #[test]
    fn what_is_wrong_is_said() {
        let extents = Dim([10, 10]);
        assert_eq!(Distribution::block(&extents, 0, None, ROWS), Err(DistributionError::NoMembers));
        assert!(matches!(
            Distribution::block(&extents, 4, Some(&[1]), ROWS),
            Err(DistributionError::AxisCount { given: 1, expected: 2, .. })
        ));
        assert_eq!(Distribution::block_cyclic(&extents, &[2, 0], 4, None, ROWS), Err(DistributionError::ZeroBlock { axis: 1 }));
        assert_eq!(
            Distribution::block_cyclic(&extents, &[2, 2], 4, Some(&[0, 4]), ROWS),
            Err(DistributionError::ZeroGrid { axis: 0 })
        );
        assert!(Distribution::block_cyclic(&extents, &[2, 2], 4, Some(&[5, 1]), ROWS).is_err());
        assert!(Distribution::block_with_grid(&extents, &[usize::MAX, 2], ROWS).is_err());
        let irregular = |cuts: &[Vec<usize>], members| Distribution::irregular(&extents, cuts, members, ROWS);
        assert_eq!(irregular(&[vec![0], vec![1]], 4), Err(DistributionError::FirstCut { axis: 1 }));
        assert_eq!(irregular(&[vec![], vec![0]], 4), Err(DistributionError::FirstCut { axis: 0 }));
        assert_eq!(
            irregular(&[vec![0, 5, 4], vec![0]], 4),
            Err(DistributionError::Cut { axis: 0, position: 2, cut: 4, previous: 5, extent: 10 })
        );
        assert!(irregular(&[vec![0, 11], vec![0]], 4).is_err());
        assert!(irregular(&[vec![0, 5], vec![0, 1, 2]], 5).is_err());
        assert!(irregular(&[vec![0, 5], vec![0, 1, 2]], 6).is_ok());
    }

    #[test]
    fn elements_must_be_countable() {
        let half = 1_usize << 32;
        assert!(matches!(Distribution::block(&Dim([half, half]), 4, None, ROWS), Err(DistributionError::TooLarge { .. })));
        assert!(Distribution::block(&Dim([half, half, 0]), 4, None, ROWS).is_err());
        assert!(Distribution::block(&Dim([half, half / 4]), 4, None, ROWS).is_ok());
        let most = isize::MAX as usize;
        let line = Distribution::block(&Dim([most]), 4097, None, ROWS).unwrap();
        assert_eq!(line.locate(&Dim([most - 1])).member, 4096);
        let dealt = Distribution::block_cyclic(&Dim([most]), &[usize::MAX], 3, None, ROWS).unwrap();
        assert_eq!(dealt.locate(&Dim([most - 1])).offset, most - 1);
    }

    #[test]
    fn a_patch_must_be_able_to_name_every_axis() {
        let most = KeptAxes::MOST;
        assert!(KeptAxes::all(most).is_ok());
        let ones = vec![1; most + 1];
        let extents = IxDyn(&ones);
        let cuts = vec![vec![0]; most + 1];
        let refused = Err(DistributionError::TooManyAxes { axes: most + 1, most });
        assert_eq!(Distribution::block(&extents, 2, None, ROWS), refused);
        assert_eq!(Distribution::block_with_grid(&extents, &ones, ROWS), refused);
        assert_eq!(Distribution::block_cyclic(&extents, &ones, 2, None, ROWS), refused);
        assert_eq!(Distribution::irregular(&extents, &cuts, 2, ROWS), refused);
        assert_eq!(Distribution::tiled(&extents, &ones, 2, None, ROWS), refused);
        assert_eq!(Distribution::tiled_irregular(&extents, &cuts, 2, None, ROWS), refused);
        assert!(Distribution::block(&IxDyn(&ones[..most]), 2, None, ROWS).is_ok());
    }

    #[test]
    fn an_array_without_axes_is_one_element() {
        let point = Distribution::block(&Ix0(), 3, None, ROWS).unwrap();
        assert_eq!((point.local_len(0), point.local_len(1), point.blocks(1).count()), (1, 0, 0));
        assert_eq!(point.blocks(0).count(), 1);
        assert_eq!(point.locate(&Ix0()).member, 0);
    }
}
