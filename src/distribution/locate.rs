//! The short road: the owner of one index, or of a patch that one owner holds.

use ndarray::Dimension;

use super::axis_map::{AxisMap, with_map};
use super::{Distribution, Order};

/// An element's owner and place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Location {
    /// Index of the owner within the array's group.
    pub member: usize,
    /// Elements from the start of the owner's part.
    pub offset: usize,
}

impl<D: Dimension> Distribution<D> {
    /// Owner and place of one element. `index` must lie inside the extents; debug builds check it.
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
            None => with_map!(self, map => self.locate_by(&map, index, |_, _| {})),
        }
    }

    /// Owner and place of the first element of a patch of neighbouring indices, if one owner holds all of it in one block. `None`
    /// for an empty patch too. The patch must lie inside the extents.
    #[inline(always)]
    #[must_use]
    pub fn single(&self, start: &D, count: &D) -> Option<Location> {
        let count = count.slice();
        // An empty patch may start at the very end of an axis, where no element is to be located. The fold beyond the first axis
        // costs less than a branch for each.
        let mut inside = count.iter().all(|&count| count != 0);
        if !inside {
            return None;
        }
        let location = with_map!(self, map => self.locate_by(&map, start, |axis, room| inside &= count[axis] <= room));
        inside.then_some(location)
    }

    #[inline(always)]
    fn locate_by(&self, map: &impl AxisMap, index: &D, mut room: impl FnMut(usize, usize)) -> Location {
        let (mut member, mut offset) = (0, 0);
        let grid = self.grid.slice();
        match self.order {
            Order::RowMajor => {
                for (axis, &index) in index.slice().iter().enumerate() {
                    let place = map.place(axis, index);
                    room(axis, place.room);
                    member = if axis == 0 { place.coordinate } else { member * grid[axis] + place.coordinate };
                    offset = if axis == 0 { place.local } else { offset * place.extent + place.local };
                }
            }
            Order::ColumnMajor => {
                let mut stride = 1;
                for (axis, &index) in index.slice().iter().enumerate() {
                    let place = map.place(axis, index);
                    room(axis, place.room);
                    member = if axis == 0 { place.coordinate } else { member * grid[axis] + place.coordinate };
                    offset += place.local * stride;
                    stride *= place.extent;
                }
            }
        }
        Location { member, offset }
    }
}
