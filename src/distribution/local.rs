//! A member's own part: its shape in memory and the blocks of the array that it holds.

use ndarray::Dimension;

use super::axis_map::{AxisMap, map, with_map};
use super::{Distribution, Layout, Order};
use crate::index::Patch;

/// One block of a member's part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block<D> {
    /// The elements of the array, by steps of one.
    pub region: Patch<D>,
    /// From the start of the member's memory to the first element of the block, in elements; ghost cells before it count.
    pub offset: usize,
    /// The first element's index among the member's elements; ghost cells do not count.
    pub local_start: D,
}

/// The blocks of one member, in row-major order of their place in its part.
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
    /// Elements that a member owns along each axis; all zeros for a member without a place in the grid.
    #[must_use]
    pub fn local_shape(&self, member: usize) -> D {
        let mut shape = self.part_shape(member);
        if let Some(ghosts) = self.ghosts() {
            // An axis without elements has no margins either.
            shape.slice_mut().iter_mut().zip(ghosts.widths.slice()).for_each(|(n, width)| *n = n.saturating_sub(2 * width));
        }
        shape
    }

    /// The shape of a member's part in memory: as [`local_shape`](Self::local_shape), with the ghost cells on both sides.
    #[must_use]
    pub fn part_shape(&self, member: usize) -> D {
        let Some(coordinates) = self.coordinates(member) else {
            return D::zeros(self.extents.ndim());
        };
        with_map!(self, axes => map(&self.extents, |axis| axes.extent(axis, coordinates.slice()[axis])))
    }

    /// Elements from one index of a member's part to the next, on each axis.
    #[must_use]
    pub fn local_strides(&self, member: usize) -> D {
        self.strides_of(&self.part_shape(member))
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

    /// Number of elements of the largest part in memory: what every member must set aside where all set aside the same.
    #[must_use]
    pub fn max_part_len(&self) -> usize {
        match &self.layout {
            // Coordinate 0 has the first block of each round, so that no coordinate has more.
            Layout::Block(_) | Layout::Cyclic(_) => self.part_len(0),
            Layout::Irregular(_) | Layout::Padded(_) => with_map!(self, axes => {
                let widest = |axis| (0..self.grid.slice()[axis]).map(|coordinate| axes.extent(axis, coordinate)).max();
                (0..self.extents.ndim()).map(|axis| widest(axis).unwrap_or(0)).product()
            }),
        }
    }

    /// The blocks of the array that a member holds. Blocks that continue each other (one process on an axis) come as one.
    #[must_use]
    pub fn blocks(&self, member: usize) -> Blocks<'_, D> {
        let shape = self.local_shape(member);
        let coordinates = self.coordinates(member);
        let none = coordinates.is_none() || shape.slice().contains(&0);
        Blocks {
            distribution: self,
            coordinates: coordinates.unwrap_or_else(|| shape.clone()),
            strides: self.local_strides(member),
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
        Some(Block { region: Patch::block(start, count), offset, local_start })
    }
}
