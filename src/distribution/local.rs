//! A member's own part: its shape in memory and the blocks of the array that it holds.
//!
//! On each axis, the *local indices* of a member number the indices of its coordinate in order.

use ndarray::Dimension;

use super::axis_map::{AxisMap, map};
use super::layout::{Layout, with_map};
use super::{Distribution, Order};
use crate::index::Patch;

/// One block of a member's part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block<D> {
    /// The elements of the array; all steps are 1.
    pub patch: Patch<D>,
    /// Elements from the start of the member's part to the first element of the block, including ghost cells.
    pub offset: usize,
    /// Local index of the first element: how many of the member's indices precede it on each axis, without ghost cells.
    pub local_start: D,
    /// Elements of the member's part from one index of the block to the next, on each axis.
    pub strides: D,
}

/// The blocks of one member, in row-major order of their positions in its part.
#[derive(Clone, Debug)]
pub struct Blocks<'a, D> {
    distribution: &'a Distribution<D>,
    coordinates: D,
    shape: D,
    strides: D,
    /// First local index of the next block, if there is one.
    next: Option<D>,
}

impl<D: Dimension> Distribution<D> {
    /// The number of a member's indices on each axis: the shape of its elements. All zeros for a member outside the grid.
    ///
    /// The part of a tiled array has the same number of elements as a dense array of this shape, but lies tile after tile.
    #[must_use]
    pub fn local_shape(&self, member: usize) -> D {
        let mut shape = self.part_shape(member);
        if let Some(ghosts) = self.ghosts() {
            // An axis without elements has no margins either.
            shape.slice_mut().iter_mut().zip(ghosts.widths.slice()).for_each(|(n, width)| *n = n.saturating_sub(2 * width));
        }
        shape
    }

    /// The shape of a member's part in memory: [`local_shape`](Self::local_shape), plus the ghost cells on both sides.
    #[must_use]
    pub fn part_shape(&self, member: usize) -> D {
        let Some(coordinates) = self.coordinates(member) else {
            return D::zeros(self.extents.ndim());
        };
        with_map!(self, axes => map(&self.extents, |axis| axes.extent(axis, coordinates.slice()[axis])))
    }

    /// Elements from one index of a member's part to the next, on each axis.
    ///
    /// # Panics
    /// For a [tiled](Self::is_tiled) array: only a [block](Self::blocks) has strides there.
    #[must_use]
    #[track_caller]
    pub fn local_strides(&self, member: usize) -> D {
        assert!(!self.is_tiled(), "the part of a {} array has no strides of its own, its blocks have", self.kind());
        self.strides_of(&self.part_shape(member))
    }

    /// How many indices its owner has before an index of an axis.
    pub(crate) fn local_index(&self, axis: usize, index: usize) -> usize {
        let place = with_map!(self, map => map.place(axis, index));
        place.earlier + place.local - self.ghosts().map_or(0, |ghosts| ghosts.widths.slice()[axis])
    }

    /// Number of elements that a member owns.
    #[must_use]
    pub fn local_len(&self, member: usize) -> usize {
        if self.coordinates(member).is_none() {
            return 0;
        }
        self.local_shape(member).size()
    }

    /// Number of elements of a member's part in memory, ghost cells included.
    #[must_use]
    pub fn part_len(&self, member: usize) -> usize {
        if self.coordinates(member).is_none() {
            return 0;
        }
        self.part_shape(member).size()
    }

    /// Number of elements of the largest part in memory: what each member must reserve if all reserve the same.
    #[must_use]
    pub fn max_part_len(&self) -> usize {
        // Coordinate 0 has the first block of each round, so that no coordinate has more where blocks are equal.
        let equal = matches!(self.layout.arithmetic(), Layout::Block(_) | Layout::Cyclic(_) | Layout::Tiled(_));
        with_map!(self, axes => {
            let candidates = |axis: usize| if equal { 1 } else { self.grid.slice()[axis] };
            let widest = |axis| (0..candidates(axis)).map(|coordinate| axes.extent(axis, coordinate)).max();
            (0..self.extents.ndim()).map(|axis| widest(axis).unwrap_or(0)).product()
        })
    }

    /// The blocks of the array that a member owns. Adjacent blocks (one process on an axis) are merged, except tiles, which are stored
    /// separately.
    #[must_use]
    pub fn blocks(&self, member: usize) -> Blocks<'_, D> {
        let shape = self.local_shape(member);
        let coordinates = self.coordinates(member);
        let none = coordinates.is_none() || shape.slice().contains(&0);
        Blocks {
            distribution: self,
            coordinates: coordinates.unwrap_or_else(|| shape.clone()),
            strides: self.strides_of(&self.part_shape(member)),
            next: (!none).then(|| D::zeros(shape.ndim())),
            shape,
        }
    }

    /// The strides of a part of this shape. Axes are walked from the contiguous one.
    #[inline]
    pub(super) fn strides_of(&self, shape: &D) -> D {
        let axes = shape.ndim();
        let mut strides = D::zeros(axes);
        let mut stride = 1;
        for step in 0..axes {
            let axis = match self.order {
                Order::RowMajor => axes - 1 - step,
                Order::ColumnMajor => step,
            };
            strides.slice_mut()[axis] = stride;
            stride *= shape.slice()[axis];
        }
        strides
    }
}

impl<D: Dimension> Iterator for Blocks<'_, D> {
    type Item = Block<D>;

    fn next(&mut self) -> Option<Block<D>> {
        let local_start = self.next.take()?;
        let axes = local_start.ndim();
        let (mut start, mut count) = (D::zeros(axes), D::zeros(axes));
        let widths = self.distribution.ghosts().map(|ghosts| ghosts.widths.slice());
        let mut offset = 0;
        for axis in 0..axes {
            let local = local_start.slice()[axis];
            (start.slice_mut()[axis], count.slice_mut()[axis]) =
                with_map!(self.distribution, map => map.block_at(axis, self.coordinates.slice()[axis], local));
            offset += (local + widths.map_or(0, |widths| widths[axis])) * self.strides.slice()[axis];
        }
        let mut strides = self.strides.clone();
        if self.distribution.is_tiled() {
            (offset, strides) = (self.distribution.locate(&start).offset, self.distribution.strides_of(&count));
        }
        let mut following = local_start.clone();
        for axis in (0..axes).rev() {
            let end = local_start.slice()[axis] + count.slice()[axis];
            if end < self.shape.slice()[axis] {
                following.slice_mut()[axis] = end;
                self.next = Some(following);
                break;
            }
            following.slice_mut()[axis] = 0;
        }
        Some(Block { patch: Patch::block(start, count), offset, local_start, strides })
    }
}
