//! Parts by the indices of the array: no program needs to know where its block begins.

use std::ops::Range;

use ndarray::{ArrayViewMut, Axis, Dimension, IntoDimension, ShapeBuilder, Slice, indices};

use super::{GhostPart, GhostPartMut, OwnedPart, OwnedPartMut};
use crate::{
    distribution::{Block, Blocks, Boundary, Distribution, Side},
    element::Element,
};

/// The elements of a part and its ghost cells, as the neighbors of elements; [`GhostPart::cells`] returns it.
#[derive(Debug)]
pub struct Cells<'a, T, D> {
    cells: &'a [T],
    /// The index of the first cell, `isize as usize`: it may lie before the array.
    corner: D,
    shape: D,
    strides: D,
}

impl<T: Element, D: Dimension> Cells<'_, T, D> {
    /// The cell that lies `offset` away from the element with this index of the array, for instance `u.near((i, j), [-1, 0])`. On a
    /// periodic axis the cells go round, on an open one those beyond the edge are what the program wrote there.
    ///
    /// # Panics
    /// If there is no such cell here: the element is not this rank's, or the offset is larger than the width of the ghost cells.
    #[doc(alias("NGA_Access_ghost_element", "NGA_Release_ghost_element"))]
    #[inline]
    #[must_use]
    #[track_caller]
    pub fn near<const N: usize>(&self, index: impl IntoDimension<Dim = D>, offset: [isize; N]) -> T {
        let index = index.into_dimension();
        let axes = self.shape.ndim();
        assert!(index.ndim() == axes && N == axes, "an index and an offset have as many numbers as the array has axes, {axes}");
        let mut at = 0;
        for (axis, offset) in offset.into_iter().enumerate() {
            let local = index[axis].wrapping_sub(self.corner[axis]).wrapping_add_signed(offset);
            if local >= self.shape[axis] {
                self.none(index.slice(), offset, axis);
            }
            at += local * self.strides[axis];
        }
        self.cells[at]
    }

    #[cold]
    #[track_caller]
    fn none(&self, index: &[usize], offset: isize, axis: usize) -> ! {
        let first = self.corner[axis] as isize;
        let end = first + self.shape[axis] as isize;
        panic!("no cell {offset} away from index {index:?} on axis {axis}: the cells of this rank are {first}..{end} there")
    }
}

/// Where a part's block lies, and how far ghost cells reach beyond it.
#[track_caller]
fn cells<'p, T, D: Dimension>(cells: &'p [T], distribution: &Distribution<D>, member: usize) -> Cells<'p, T, D> {
    let several = distribution.blocks(member).nth(1).is_some();
    assert!(!several, "a {} array: a rank has several blocks, and ghost cells surround one", distribution.kind());
    let shape = distribution.part_shape(member);
    let mut corner = D::zeros(shape.ndim());
    if let Some(block) = distribution.blocks(member).next() {
        let (start, widths) = (block.patch.start(), distribution.ghost_widths());
        (0..shape.ndim()).for_each(|axis| corner[axis] = start[axis].wrapping_sub(widths[axis]));
    }
    let strides = distribution.blocks(member).next().map_or_else(|| shape.clone(), |block| block.strides);
    Cells { cells, corner, shape, strides }
}

/// The cells of an axis that lie beyond the array's edge: none where a halo does not reach so far.
#[track_caller]
fn beyond<D: Dimension>(distribution: &Distribution<D>, member: usize, axis: usize, side: Side) -> Range<usize> {
    let is_open = distribution.ghosts().is_some_and(|ghosts| ghosts.boundaries[axis] == Boundary::Open);
    assert!(is_open, "the boundary of axis {axis} is not open: updates fill the cells beyond the edge");
    let (width, len) = (distribution.ghost_widths()[axis], distribution.part_shape(member)[axis]);
    let Some(block) = distribution.blocks(member).next() else { return 0..0 };
    let range = block.patch.range(axis);
    match side {
        Side::Low => 0..width.saturating_sub(range.start),
        Side::High => len - (range.end + width).saturating_sub(distribution.shape()[axis])..len,
    }
}

/// The index in the array of a position in a block.
fn index_in<D: Dimension>(block: &Block<D>, position: D::Pattern) -> D::Pattern {
    let mut index = position.into_dimension();
    index.slice_mut().iter_mut().zip(block.patch.start().slice()).for_each(|(index, start)| *index += start);
    index.into_pattern()
}

/// The indices in the array of a block, for each axis.
fn axes_of<D: Dimension>(block: &Block<D>) -> Vec<Vec<usize>> {
    (0..block.local_start.ndim()).map(|axis| block.patch.range(axis).collect()).collect()
}

/// The indices in the array of all local indices, for each axis.
fn axes_of_all<D: Dimension>(blocks: Blocks<'_, D>, shape: &D) -> Vec<Vec<usize>> {
    let mut axes: Vec<Vec<usize>> = shape.slice().iter().map(|&len| vec![0; len]).collect();
    for block in blocks {
        for (axis, indices) in axes.iter_mut().enumerate() {
            let (local, range) = (block.local_start[axis], block.patch.range(axis));
            indices[local..local + range.len()].iter_mut().zip(range).for_each(|(to, index)| *to = index);
        }
    }
    axes
}

/// A view of a part, and the indices in the array of each axis of it.
type Indexed<'p, T, D> = (Vec<Vec<usize>>, ArrayViewMut<'p, T, D>);

/// A tiled part, which lies tile after tile, as views of its tiles.
fn tiles<'p, T, D: Dimension>(mut part: &'p mut [T], blocks: Blocks<'_, D>) -> Vec<Indexed<'p, T, D>> {
    let mut blocks: Vec<Block<D>> = blocks.collect();
    blocks.sort_by_key(|block| block.offset);
    let view = |block: Block<D>| {
        let (tile, rest) = std::mem::take(&mut part).split_at_mut(block.patch.len());
        part = rest;
        let shape = block.patch.count().clone().strides(block.strides.clone());
        (axes_of(&block), ArrayViewMut::from_shape(shape, tile).expect("a tile of the part"))
    };
    blocks.into_iter().map(view).collect()
}

macro_rules! readable {
    ($part:ident) => {
        impl<T: Element, D: Dimension> $part<'_, T, D> {
            /// The elements with their indices in the array, block after block; as in ndarray, an index is a tuple for up to six axes.
            /// For every distribution; ghost cells are left out.
            pub fn indexed_iter(&self) -> impl Iterator<Item = (D::Pattern, &T)> {
                self.blocks().flat_map(move |block| {
                    let view = self.block(&block);
                    indices(view.raw_dim()).into_iter().zip(view).map(move |(at, x)| (index_in(&block, at), x))
                })
            }
        }
    };
}
readable!(OwnedPart);
readable!(OwnedPartMut);
readable!(GhostPart);
readable!(GhostPartMut);

macro_rules! writable {
    ($part:ident) => {
        impl<T: Element, D: Dimension> $part<'_, T, D> {
            /// As [`indexed_iter`](Self::indexed_iter), writable, in an unspecified order.
            pub fn indexed_iter_mut(&mut self) -> impl Iterator<Item = (D::Pattern, &mut T)> {
                let blocks = self.blocks();
                let views = if self.distribution().is_tiled() {
                    tiles(&mut *self.elements, blocks)
                } else {
                    vec![(axes_of_all(blocks, &self.local_shape()), self.elements_mut())]
                };
                views.into_iter().flat_map(|(axes, view)| {
                    indices(view.raw_dim()).into_iter().zip(view).map(move |(at, x)| {
                        let mut index = at.into_dimension();
                        index.slice_mut().iter_mut().zip(&axes).for_each(|(index, axis)| *index = axis[*index]);
                        (index.into_pattern(), x)
                    })
                })
            }
        }
    };
}
writable!(OwnedPartMut);
writable!(GhostPartMut);

macro_rules! with_ghosts {
    ($part:ident) => {
        impl<T: Element, D: Dimension> $part<'_, T, D> {
            /// The elements and ghost cells by their distance from elements, for stencils.
            ///
            /// # Panics
            /// If this rank has several blocks, as of a block-cyclic array.
            #[must_use]
            #[track_caller]
            pub fn cells(&self) -> Cells<'_, T, D> {
                cells(self.elements, self.distribution, self.member)
            }
        }
    };
}
with_ghosts!(GhostPart);
with_ghosts!(GhostPartMut);

impl<T: Element, D: Dimension> GhostPartMut<'_, T, D> {
    /// The ghost cells beyond the array's edge on one side of an axis, where an open boundary leaves them to the program; an empty view
    /// if this rank's ghost cells do not reach beyond that edge.
    ///
    /// # Examples
    /// A plate whose left side is kept hot:
    /// ```
    /// use global_arrays::{Boundary, Side, prelude::*};
    /// # fn main() -> Result<(), Error> {
    /// Launch::new().ranks(2).network("threads").run(|job| {
    ///     let plate = || GlobalArray2::<f64>::builder(job, [8, 8]).ghosts([1, 1]).boundaries([Boundary::Open; 2]).zeros();
    ///     let (mut old, mut new) = (plate().create()?, plate().create()?);
    ///     job.epoch(old.ghosts_mut(), |mut old| old.beyond_mut(1, Side::Low).fill(1.0))?;
    ///     job.epoch((old.ghosts(), new.owned_mut()), |(old, mut new)| {
    ///         let u = old.cells();
    ///         for (at, next) in new.indexed_iter_mut() {
    ///             *next = 0.25 * (u.near(at, [-1, 0]) + u.near(at, [1, 0]) + u.near(at, [0, -1]) + u.near(at, [0, 1]));
    ///         }
    ///     })?;
    ///     assert_eq!((new.load([3, 0])?, new.load([3, 1])?), (0.25, 0.0));
    ///     job.sync()
    /// })
    /// # }
    /// ```
    ///
    /// # Panics
    /// If there is no such axis, or its boundary is not open.
    #[track_caller]
    pub fn beyond_mut(&mut self, axis: usize, side: Side) -> ArrayViewMut<'_, T, D> {
        let cells = beyond(self.distribution, self.member, axis, side);
        let mut view = self.memory_mut();
        view.slice_axis_inplace(Axis(axis), Slice::from(cells));
        view
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use ndarray::{Ix2, IxDyn};

    use super::*;
    use crate::{Error, GlobalArray, Launch, distribution::Order};

    /// What a closure says when it panics.
    fn refusal<R>(f: impl FnOnce() -> R) -> String {
        let panic = catch_unwind(AssertUnwindSafe(f)).err().expect("a refusal");
        panic.downcast_ref::<String>().cloned().unwrap_or_default()
    }

    #[test]
    fn cells_that_are_not_there_are_refused() {
        let body = |job: &crate::Job| {
            let mut a = GlobalArray::<u8, IxDyn>::builder(job, IxDyn(&[4, 6])).ghosts([1, 1]).zeros().create()?;
            job.epoch(a.ghosts(), |part| {
                let cells = part.cells();
                assert!(refusal(|| cells.near(IxDyn(&[3]), [0])).contains("as many numbers as the array has axes, 2"));
                assert!(refusal(|| cells.near(IxDyn(&[3, 5]), [0, 2])).contains("no cell 2 away from index [3, 5] on axis 1"));
                assert!(refusal(|| cells.near(IxDyn(&[3, 9]), [0, 0])).contains("the cells of this rank are -1..7"));
                assert_eq!(cells.near(IxDyn(&[3, 5]), [1, -6]), 0);
            })?;
            job.epoch(a.ghosts_mut(), |mut part| {
                assert!(refusal(|| part.beyond_mut(0, Side::Low).len()).contains("axis 0 is not open"));
            })?;
            let cyclic = || GlobalArray::<u8, Ix2>::builder(job, [4, 6]).order(Order::ColumnMajor).tiled([1, 2]).zeros().create();
            let mut several = cyclic()?;
            job.epoch(several.ghosts(), |part| {
                assert!(refusal(|| part.cells().near((0, 0), [0, 0])).contains("several blocks"))
            })?;
            Ok::<_, Error>(())
        };
        Launch::new().ranks(1).network("threads").run(body).unwrap();
    }
}
