//! The short path: the owner of one index, or of a patch with one owner.

use ndarray::Dimension;

use super::axis_map::{AxisMap, Place};
use super::layout::{Layout, with_dense_map, with_map};
use super::{Distribution, Order};

/// An element's owner and position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Location {
    /// Index of the owner within the array's group.
    pub member: usize,
    /// Elements from the start of the owner's part.
    pub offset: usize,
}

/// A patch that lies in one block of one owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Single<D> {
    /// Of the first element.
    pub location: Location,
    /// Elements from one index of the owner's part to the next, on each axis.
    pub strides: D,
}

impl<D: Dimension> Distribution<D> {
    /// Owner and position of one element. `index` must lie inside the extents; debug builds check it.
    #[inline(always)]
    #[must_use]
    pub fn locate(&self, index: &D) -> Location {
        debug_assert!(
            index.slice().iter().zip(self.extents.slice()).all(|(index, extent)| index < extent),
            "{index:?} is outside {:?}",
            self.extents
        );
        match &self.slabs {
            Some(slabs) => slabs.locate(index),
            None => with_dense_map!(&self.layout, (&self.extents, &self.grid), map => self.locate_by(&map, index, |_, _| {}),
                // A copy goes there, so that the index itself can stay in registers.
                else self.locate_elsewhere(index.clone())),
        }
    }

    /// Owner, position and strides of a patch of adjacent indices, if it lies in one block of one owner. `None` for an empty
    /// patch too. The patch must lie inside the extents.
    #[inline(always)]
    #[must_use]
    pub fn single(&self, start: &D, count: &D) -> Option<Single<D>> {
        // An empty patch may start at the very end of an axis, where no element is to be located. The fold beyond the first axis
        // costs less than a branch for each.
        let mut inside = count.slice().iter().all(|&count| count != 0);
        if !inside {
            return None;
        }
        if let Some(slabs) = &self.slabs {
            return slabs.single(start, count);
        }
        let mut shape = D::zeros(self.extents.ndim());
        let see = |axis: usize, place: &Place| {
            inside &= count.slice()[axis] <= place.room;
            shape.slice_mut()[axis] = place.extent;
        };
        let location = with_dense_map!(&self.layout, (&self.extents, &self.grid), map => self.locate_by(&map, start, see),
            else return self.single_elsewhere(start.clone(), count.clone()));
        inside.then(|| Single { location, strides: self.strides_of(&shape) })
    }

    /// Tiles, ghost cells and restricted arrays. Out of line: what every loop over elements contains is the dense layouts' arithmetic.
    #[cold]
    #[inline(never)]
    fn locate_elsewhere(&self, index: D) -> Location {
        self.locate_any(&index, |_, _| {})
    }

    #[cold]
    #[inline(never)]
    fn single_elsewhere(&self, start: D, count: D) -> Option<Single<D>> {
        let (mut inside, mut shape) = (true, D::zeros(self.extents.ndim()));
        let location = self.locate_any(&start, |axis, place| {
            inside &= count.slice()[axis] <= place.room;
            shape.slice_mut()[axis] = place.extent;
        });
        inside.then(|| Single { location, strides: self.strides_of(&shape) })
    }

    fn locate_any(&self, index: &D, see: impl FnMut(usize, &Place)) -> Location {
        let mut location = with_map!(self, map => self.locate_by(&map, index, see));
        if let Layout::Restricted(restricted) = &self.layout {
            location.member = restricted.owners.member(location.member);
        }
        location
    }

    #[inline(always)]
    fn locate_by<M: AxisMap>(&self, map: &M, index: &D, mut see: impl FnMut(usize, &Place)) -> Location {
        if M::TILES {
            return self.locate_in_tiles(map, index, see);
        }
        let (mut member, mut offset) = (0, 0);
        let grid = self.grid.slice();
        match self.order {
            Order::RowMajor => {
                for (axis, &index) in index.slice().iter().enumerate() {
                    let place = map.place(axis, index);
                    see(axis, &place);
                    member = if axis == 0 { place.coordinate } else { member * grid[axis] + place.coordinate };
                    offset = if axis == 0 { place.local } else { offset * place.extent + place.local };
                }
            }
            Order::ColumnMajor => {
                let mut stride = 1;
                for (axis, &index) in index.slice().iter().enumerate() {
                    let place = map.place(axis, index);
                    see(axis, &place);
                    member = if axis == 0 { place.coordinate } else { member * grid[axis] + place.coordinate };
                    offset += place.local * stride;
                    stride *= place.extent;
                }
            }
        }
        Location { member, offset }
    }
}
