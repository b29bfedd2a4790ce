//! A patch cut at the edges of owners' blocks.

use ndarray::Dimension;

use super::Distribution;
use super::axis_map::AxisMap;
use super::layout::{Layout, with_map};
use crate::index::Patch;

/// A part of a patch that lies in one member's part with fixed strides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece<D> {
    /// Index of the owner within the array's group.
    pub member: usize,
    /// Elements from the start of the owner's part to the piece's first element in patch order.
    pub offset: usize,
    /// Elements of the owner's memory for one step of the patch on each axis, `isize as usize`.
    pub strides: D,
    /// Position of the first element within the patch.
    pub start: D,
    /// Positions of the patch on each axis.
    pub count: D,
}

/// The pieces of a patch, in row-major order of their positions in it. Together they cover each element once.
#[derive(Clone, Debug)]
pub struct Pieces<'a, D> {
    distribution: &'a Distribution<D>,
    patch: &'a Patch<D>,
    /// The next piece in factors: on each axis, position and count within the patch,
    start: D,
    count: D,
    /// the owner's coordinate, extent and local index of the first element in what is stored by itself, and the local step.
    coordinate: D,
    extent: D,
    local: D,
    step: D,
    exhausted: bool,
}

impl<D: Dimension> Distribution<D> {
    /// Cuts a patch, which must lie inside the extents, into one piece for each owner's block that it intersects. Blocks of one owner
    /// are merged into one piece if the patch crosses them in equal local steps.
    #[doc(alias("NGA_Locate_region", "NGA_Locate_nnodes"))]
    #[must_use]
    pub fn pieces<'a>(&'a self, patch: &'a Patch<D>) -> Pieces<'a, D> {
        let axes = self.extents.ndim();
        debug_assert_eq!(patch.ndim(), axes, "axes of the patch and of the array");
        let zeros = || D::zeros(axes);
        let mut pieces = Pieces {
            distribution: self,
            patch,
            start: zeros(),
            count: zeros(),
            coordinate: zeros(),
            extent: zeros(),
            local: zeros(),
            step: zeros(),
            exhausted: patch.is_empty(),
        };
        if !pieces.exhausted {
            (0..axes).for_each(|axis| pieces.enter(axis, 0));
        }
        pieces
    }
}

impl<D: Dimension> Pieces<'_, D> {
    /// Computes what the axis contributes to the piece that begins at this position of the patch.
    #[inline]
    fn enter(&mut self, axis: usize, position: usize) {
        let step = self.patch.step(axis);
        let first = self.patch.start().slice()[axis];
        let index = first.wrapping_add_signed((position as isize).wrapping_mul(step));
        debug_assert!(index < self.distribution.extents.slice()[axis], "axis {axis}: the patch leaves the array at {index}");
        let remaining = self.patch.count().slice()[axis] - position;
        let (place, count, local_step) = with_map!(self.distribution, map => {
            let place = map.place(axis, index);
            match step {
                1 => (place, remaining.min(place.room), 1),
                -1 => (place, remaining.min(place.before + 1), -1),
                _ => match map.local_step(axis, step) {
                    Some(local_step) => (place, remaining, local_step),
                    None => {
                        let reach = if step < 0 { place.before } else { place.room - 1 };
                        (place, remaining.min(reach / step.unsigned_abs() + 1), step)
                    }
                },
            }
        });
        self.start.slice_mut()[axis] = position;
        self.count.slice_mut()[axis] = count;
        self.coordinate.slice_mut()[axis] = place.coordinate;
        self.extent.slice_mut()[axis] = place.extent;
        self.local.slice_mut()[axis] = place.local;
        self.step.slice_mut()[axis] = local_step as usize;
    }

    /// The piece at which the axes stand.
    #[inline]
    fn piece(&self) -> Piece<D> {
        let mut strides = self.distribution.strides_of(&self.extent);
        let (mut member, mut offset) = (0, 0);
        for (axis, stride) in strides.slice_mut().iter_mut().enumerate() {
            member = member * self.distribution.grid.slice()[axis] + self.coordinate.slice()[axis];
            offset += self.local.slice()[axis] * *stride;
            // Two's complement: the product of the bit patterns is the bit pattern of the signed product.
            *stride = stride.wrapping_mul(self.step.slice()[axis]);
        }
        match &self.distribution.layout {
            Layout::Block(_) | Layout::Cyclic(_) | Layout::Irregular(_) => {}
            _ => (member, offset) = self.elsewhere(member, offset),
        }
        Piece { member, offset, strides, start: self.start.clone(), count: self.count.clone() }
    }

    /// Member and offset where the offset so far counts from a tile, or the members so far are places among the owners.
    fn elsewhere(&self, place: usize, within: usize) -> (usize, usize) {
        let member = match &self.distribution.layout {
            Layout::Restricted(restricted) => restricted.owners.member(place),
            _ => place,
        };
        if !self.distribution.is_tiled() {
            return (member, within);
        }
        let mut first = self.start.clone();
        for (axis, index) in first.slice_mut().iter_mut().enumerate() {
            // Two's complement: steps are signed.
            *index = self.patch.start().slice()[axis].wrapping_add(index.wrapping_mul(self.patch.step(axis) as usize));
        }
        (member, self.distribution.locate(&first).offset)
    }

    /// Moves to the next piece, the last axis fastest.
    #[inline]
    fn advance(&mut self) {
        for axis in (0..self.start.ndim()).rev() {
            let next = self.start.slice()[axis] + self.count.slice()[axis];
            if next < self.patch.count().slice()[axis] {
                return self.enter(axis, next);
            }
            // An axis with a single piece stands where it began.
            if self.start.slice()[axis] != 0 {
                self.enter(axis, 0);
            }
        }
        self.exhausted = true;
    }
}

impl<D: Dimension> Iterator for Pieces<'_, D> {
    type Item = Piece<D>;

    #[inline]
    fn next(&mut self) -> Option<Piece<D>> {
        if self.exhausted {
            return None;
        }
        let piece = self.piece();
        self.advance();
        Some(piece)
    }
}

impl<D: Dimension> std::iter::FusedIterator for Pieces<'_, D> {}
