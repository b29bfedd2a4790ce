//! The shortest path to an owner: arrays of which only the slowest axis is cut.
//!
//! The elements of such an array are dealt out in linear order, in equal runs: the owner is the linear index divided by the length of a
//! run, the offset is the remainder. All one-dimensional block arrays are of this kind, and all arrays with one owner.

use ndarray::Dimension;

use super::reciprocal::{divide, reciprocal};
use super::{Location, Order, Single};

/// The strides of the whole array, and the elements of a full part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Slabs<D> {
    strides: D,
    part: usize,
    reciprocal: usize,
}

impl<D: Dimension> Slabs<D> {
    /// `None` if another axis than the slowest is cut. `block` are the edges of full blocks.
    pub(super) fn of(extents: &D, grid: &D, block: &D, order: Order) -> Option<Self> {
        let axes = extents.ndim();
        let fast_to_slow = |k: usize| if order == Order::RowMajor { axes - 1 - k } else { k };
        let mut strides = D::zeros(axes);
        let mut elements = 1;
        for k in 0..axes {
            let axis = fast_to_slow(k);
            let slowest = k + 1 == axes;
            if grid[axis] != 1 && !slowest {
                return None;
            }
            strides[axis] = elements;
            elements *= if grid[axis] == 1 { extents[axis] } else { block[axis] };
        }
        // Nothing is ever looked for in an array without elements.
        let part = elements.max(1);
        Some(Self { strides, part, reciprocal: reciprocal(part) })
    }

    #[inline(always)]
    pub(super) fn locate(&self, index: &D) -> Location {
        let linear = index.slice().iter().zip(self.strides.slice()).map(|(index, stride)| index * stride).sum();
        let (member, offset) = divide(linear, self.part, self.reciprocal);
        Location { member, offset }
    }

    /// A patch that is not empty: one owner holds it if its last element lies in the run of its first.
    #[inline(always)]
    pub(super) fn single(&self, start: &D, count: &D) -> Option<Single<D>> {
        let location = self.locate(start);
        let reach: usize = count.slice().iter().zip(self.strides.slice()).map(|(count, stride)| (count - 1) * stride).sum();
        (location.offset + reach < self.part).then(|| Single { location, strides: self.strides.clone() })
    }
}
