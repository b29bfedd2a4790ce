//! Ghost cells: blocks padded by copies of the elements around them.
//!
//! A member's block has a margin, its *halo*, of `w` cells on both sides of each axis, in one dense local array. So a padded layout is
//! the layout that it pads, with `w` added to each local index and `2w` to each extent ([`PaddedMap`]). A member without elements has no
//! ghost cells.
//!
//! After an update cell `l` of an axis is a copy of index `start - w + l` ([`Distribution::ghost_boxes`]). Beyond the array's edge this
//! index is taken modulo the extent on a periodic axis; on an open axis the cell copies nothing. A halo is cut into boxes in which the
//! index is one progression. Each is read from the *owners* of its elements, so a halo may be wider than the blocks around it, or the
//! array.

use ndarray::Dimension;

use super::Distribution;
use super::axis_map::{AxisMap, BlockMap, BlockSizes, IrregularMap, Place, map};
use crate::index::Patch;

/// What lies beyond the edge of an array on one axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Boundary {
    /// The array's other end: index −1 is the last index.
    #[default]
    Periodic,
    /// Nothing: ghost cells there keep what the program writes into them.
    Open,
}

/// One of the two sides of a block on an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// Before the first index.
    Low,
    /// After the last index.
    High,
}

/// Widths and boundaries of an array's ghost cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ghosts<D> {
    /// Cells on either side of a block, for each axis.
    pub widths: D,
    /// For each axis.
    pub boundaries: Vec<Boundary>,
    /// Whether updates fill cells that lie beyond the block on more than one axis.
    pub corners: bool,
}

/// The layout of the blocks, and what pads them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Padded<D> {
    pub(super) base: Base<D>,
    pub(super) ghosts: Ghosts<D>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Base<D> {
    Block(BlockSizes<D>),
    Irregular(Vec<Vec<usize>>),
}

pub(super) struct PaddedMap<'a, D> {
    pub(super) extents: &'a D,
    pub(super) grid: &'a D,
    pub(super) padded: &'a Padded<D>,
}

impl<D: Dimension> PaddedMap<'_, D> {
    fn width(&self, axis: usize) -> usize {
        self.padded.ghosts.widths.slice()[axis]
    }

    /// A block that is not empty, padded.
    fn pad(&self, axis: usize, extent: usize) -> usize {
        if extent == 0 { 0 } else { extent + 2 * self.width(axis) }
    }
}

impl<D: Dimension> AxisMap for PaddedMap<'_, D> {
    fn place(&self, axis: usize, index: usize) -> Place {
        let &PaddedMap { extents, grid, padded } = self;
        let place = match &padded.base {
            Base::Block(sizes) => BlockMap { extents, grid, sizes }.place(axis, index),
            Base::Irregular(cuts) => IrregularMap { extents, cuts }.place(axis, index),
        };
        Place { local: place.local + self.width(axis), extent: self.pad(axis, place.extent), ..place }
    }

    fn extent(&self, axis: usize, coordinate: usize) -> usize {
        let (_, count) = self.block_at(axis, coordinate, 0);
        self.pad(axis, count)
    }

    fn block_at(&self, axis: usize, coordinate: usize, local: usize) -> (usize, usize) {
        let &PaddedMap { extents, grid, padded } = self;
        match &padded.base {
            Base::Block(sizes) => BlockMap { extents, grid, sizes }.block_at(axis, coordinate, local),
            Base::Irregular(cuts) => IrregularMap { extents, cuts }.block_at(axis, coordinate, local),
        }
    }

    fn local_step(&self, _axis: usize, _step: isize) -> Option<isize> {
        None
    }
}

impl<D: Dimension> Padded<D> {
    pub(super) fn kind(&self) -> &'static str {
        match &self.base {
            Base::Block(_) => "block",
            Base::Irregular(_) => "irregular",
        }
    }

    pub(super) fn block_shape(&self) -> Option<&[usize]> {
        match &self.base {
            Base::Block(sizes) => Some(sizes.block.slice()),
            Base::Irregular(_) => None,
        }
    }

    /// The numbers by which two such layouts can differ.
    pub(super) fn numbers(&self) -> impl Iterator<Item = usize> + '_ {
        let cuts = match &self.base {
            Base::Block(_) => &[][..],
            Base::Irregular(cuts) => cuts,
        };
        let boundaries = self.ghosts.boundaries.iter().map(|&boundary| boundary as usize);
        let ghosts = self.ghosts.widths.slice().iter().copied().chain(boundaries).chain([usize::from(self.ghosts.corners)]);
        ghosts.chain(cuts.iter().flatten().copied())
    }
}

/// A box of a halo, and the patch of the array that fills it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GhostBox<D> {
    /// The patch, inside the extents.
    pub(crate) patch: Patch<D>,
    /// Index of its first element within the padded part.
    pub(crate) local: D,
    /// On which axes it lies beyond the block, and where.
    pub(crate) sides: Vec<Option<Side>>,
}

/// A stretch of one axis of a padded block in which the index ascends by one.
#[derive(Clone, Copy)]
struct Stretch {
    local: usize,
    index: usize,
    count: usize,
    side: Option<Side>,
}

impl<D: Dimension> Distribution<D> {
    /// Ghost cells on either side of a block, for each axis.
    #[must_use]
    pub fn ghost_widths(&self) -> D {
        self.ghosts().map_or_else(|| D::zeros(self.extents.ndim()), |ghosts| ghosts.widths.clone())
    }

    /// The boxes of a member's halo that an update fills; together they cover each such cell once.
    pub(crate) fn ghost_boxes(&self, member: usize) -> Vec<GhostBox<D>> {
        let (Some(ghosts), Some(block)) = (self.ghosts(), self.blocks(member).next()) else { return Vec::new() };
        let axes = self.extents.ndim();
        let stretches: Vec<Vec<Stretch>> = (0..axes).map(|axis| self.stretches(ghosts, axis, &block.patch)).collect();
        let mut boxes = Vec::new();
        let mut at = vec![0; axes];
        loop {
            let chosen: Vec<Stretch> = at.iter().zip(&stretches).map(|(&at, axis)| axis[at]).collect();
            let beyond = chosen.iter().filter(|stretch| stretch.side.is_some()).count();
            if beyond == 1 || beyond > 1 && ghosts.corners {
                let of = |value: fn(&Stretch) -> usize| map(&self.extents, |axis| value(&chosen[axis]));
                boxes.push(GhostBox {
                    patch: Patch::block(of(|s| s.index), of(|s| s.count)),
                    local: of(|s| s.local),
                    sides: chosen.iter().map(|stretch| stretch.side).collect(),
                });
            }
            let Some(axis) = (0..axes).rev().find(|&axis| at[axis] + 1 < stretches[axis].len()) else { return boxes };
            at[axis] += 1;
            at[axis + 1..].fill(0);
        }
    }

    /// What one axis of a padded block stands for, from its low end to its high end.
    fn stretches(&self, ghosts: &Ghosts<D>, axis: usize, block: &Patch<D>) -> Vec<Stretch> {
        let (start, count) = (block.start().slice()[axis], block.count().slice()[axis]);
        let (width, extent) = (ghosts.widths.slice()[axis], self.extents.slice()[axis]);
        let periodic = ghosts.boundaries[axis] == Boundary::Periodic;
        let mut stretches = Vec::new();
        let mut margin = |side, mut local: usize| {
            let end = local + width;
            while local < end {
                // Padded extents fit `isize`, and cell `width` is the block's first.
                let index = start as isize + local as isize - width as isize;
                let inside = index.rem_euclid(extent as isize) as usize;
                let outside = !periodic && inside as isize != index;
                let count = if outside && index < 0 { index.unsigned_abs() } else { extent - inside };
                let count = if outside && index > 0 { end - local } else { count.min(end - local) };
                if !outside {
                    stretches.push(Stretch { local, index: inside, count, side: Some(side) });
                }
                local += count;
            }
        };
        margin(Side::Low, 0);
        margin(Side::High, width + count);
        let low = stretches.iter().filter(|stretch| stretch.side == Some(Side::Low)).count();
        stretches.insert(low, Stretch { local: width, index: start, count, side: None });
        stretches
    }
}

#[cfg(test)]
mod tests;
