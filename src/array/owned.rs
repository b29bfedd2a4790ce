//! A rank's own part as plain memory, inside an epoch or by unchecked access.

use ndarray::{
    ArrayView, ArrayViewMut, Dimension, ShapeBuilder, ShapeError, Slice,
    iter::{Iter, IterMut},
};

use crate::{
    distribution::{Block, Blocks, Distribution, Order},
    element::Element,
    memory::kernels,
};

/// This rank's part, readable. A read epoch returns it; an owner epoch returns an [`OwnedPartMut`].
///
/// The part is one dense local array of shape [`local_shape`](Self::local_shape) in the array's order, as ScaLAPACK and ELPA store a
/// block-cyclic matrix: with [`Order::ColumnMajor`] the slice, [`leading_dimension`](Self::leading_dimension) and the blocking are
/// what their descriptors require. In a tiled array only each block is dense: [`blocks`](Self::blocks) and [`block`](Self::block)
/// work for every distribution. The part of an array with ghost cells is not dense: it has views but no slice.
#[derive(Debug)]
pub struct OwnedPart<'a, T, D> {
    pub(super) elements: &'a [T],
    pub(super) distribution: &'a Distribution<D>,
    pub(super) member: usize,
}

/// This rank's part, readable and writable. An owner epoch or [`GlobalArray::access`](crate::GlobalArray::access) returns it.
#[derive(Debug)]
pub struct OwnedPartMut<'a, T, D> {
    pub(super) elements: &'a mut [T],
    pub(super) distribution: &'a Distribution<D>,
    pub(super) member: usize,
}

/// This rank's part and its ghost cells, readable, in an epoch of [`GlobalArray::ghosts`](crate::GlobalArray::ghosts).
#[derive(Debug)]
pub struct GhostPart<'a, T, D> {
    pub(super) elements: &'a [T],
    pub(super) distribution: &'a Distribution<D>,
    pub(super) member: usize,
}

/// This rank's part and its ghost cells, readable and writable, in an epoch of
/// [`GlobalArray::ghosts_mut`](crate::GlobalArray::ghosts_mut).
#[derive(Debug)]
pub struct GhostPartMut<'a, T, D> {
    pub(super) elements: &'a mut [T],
    pub(super) distribution: &'a Distribution<D>,
    pub(super) member: usize,
}

macro_rules! any_part {
    ($part:ident) => {
        impl<'a, T: Element, D: Dimension> $part<'a, T, D> {
            /// Which member owns which elements.
            #[must_use]
            pub fn distribution(&self) -> &'a Distribution<D> {
                self.distribution
            }

            /// The blocks of this part, in row-major order of their positions in it, with the position of each in the array and in the
            /// part.
            #[must_use]
            pub fn blocks(&self) -> Blocks<'a, D> {
                self.distribution.blocks(self.member)
            }

            /// Elements along each axis of the part, without ghost cells.
            #[must_use]
            pub fn local_shape(&self) -> D {
                self.distribution.local_shape(self.member)
            }

            /// One of this part's blocks; its element 0 is the array's element `block.patch.start()`.
            ///
            /// # Panics
            /// If the block is not one of [`blocks`](Self::blocks).
            #[must_use]
            #[track_caller]
            pub fn block(&self, block: &Block<D>) -> ArrayView<'_, T, D> {
                of_part(ArrayView::from_shape(
                    block.patch.count().clone().strides(block.strides.clone()),
                    &self.elements[block.offset..],
                ))
            }

            /// Elements between neighbors on the slower axis of a matrix: the LLD of ScaLAPACK's descriptor, at least 1.
            ///
            /// # Panics
            /// For a tiled array.
            #[must_use]
            #[track_caller]
            pub fn leading_dimension(&self) -> usize {
                check_one(self.distribution);
                let shape = self.distribution.part_shape(self.member);
                let fast = match self.distribution.order() {
                    Order::RowMajor => shape.slice().last(),
                    Order::ColumnMajor => shape.slice().first(),
                };
                fast.copied().unwrap_or(1).max(1)
            }

            /// The whole memory of the part, as its order says.
            fn memory(&self) -> ArrayView<'_, T, D> {
                let shape = self.distribution.part_shape(self.member).set_f(self.distribution.order() == Order::ColumnMajor);
                whole(ArrayView::from_shape(shape, &*self.elements))
            }

            fn elements(&self) -> ArrayView<'_, T, D> {
                let mut view = self.memory();
                let inside = inside(self.distribution);
                view.slice_each_axis_inplace(|axis| inside(axis.axis.index(), axis.len));
                view
            }
        }
    };
}
any_part!(OwnedPart);
any_part!(OwnedPartMut);
any_part!(GhostPart);
any_part!(GhostPartMut);

macro_rules! writable_part {
    ($part:ident) => {
        impl<'a, T: Element, D: Dimension> $part<'a, T, D> {
            pub(super) fn memory_mut(&mut self) -> ArrayViewMut<'_, T, D> {
                let shape = self.distribution.part_shape(self.member).set_f(self.distribution.order() == Order::ColumnMajor);
                whole(ArrayViewMut::from_shape(shape, &mut *self.elements))
            }

            pub(super) fn elements_mut(&mut self) -> ArrayViewMut<'_, T, D> {
                let inside = inside(self.distribution);
                let mut view = self.memory_mut();
                view.slice_each_axis_inplace(|axis| inside(axis.axis.index(), axis.len));
                view
            }

            pub(super) fn new(elements: &'a mut [T], distribution: &'a Distribution<D>, member: usize) -> Self {
                $part { elements, distribution, member }
            }
        }
    };
}
writable_part!(OwnedPartMut);
writable_part!(GhostPartMut);

macro_rules! elements_only {
    ($part:ident) => {
        impl<T: Element, D: Dimension> $part<'_, T, D> {
            /// The part as an n-dimensional view of the local shape.
            ///
            /// # Panics
            /// For a tiled array.
            #[must_use]
            #[track_caller]
            pub fn view(&self) -> ArrayView<'_, T, D> {
                check_one(self.distribution);
                self.elements()
            }
        }

        impl<T: Element, D: Dimension> $part<'_, T, D> {
            /// The elements as one slice in memory order, tile after tile if the array is tiled; `None` for an array with ghost
            /// cells, because these lie between the elements.
            #[inline]
            #[must_use]
            pub fn as_slice(&self) -> Option<&[T]> {
                if self.distribution.ghosts().is_none() { Some(&*self.elements) } else { None }
            }

            /// The elements in memory order, for every distribution; skips ghost cells.
            pub fn iter(&self) -> Iter<'_, T, D> {
                let elements = self.elements();
                // ndarray walks the last axis fastest.
                match self.distribution.order() {
                    Order::RowMajor => elements.into_iter(),
                    Order::ColumnMajor => elements.reversed_axes().into_iter(),
                }
            }

            /// Number of elements, without ghost cells.
            #[must_use]
            pub fn len(&self) -> usize {
                self.distribution.local_len(self.member)
            }

            /// Whether this rank owns no elements.
            #[must_use]
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }
        }
    };
}
elements_only!(OwnedPart);
elements_only!(OwnedPartMut);

macro_rules! with_ghosts {
    ($part:ident) => {
        impl<T: Element, D: Dimension> $part<'_, T, D> {
            /// The elements and the ghost cells around them, as a view in memory layout. It begins [`widths`](Self::widths) cells
            /// before the block on each axis. Empty if this rank owns no elements.
            ///
            /// # Panics
            /// For a tiled array.
            #[must_use]
            #[track_caller]
            pub fn view(&self) -> ArrayView<'_, T, D> {
                check_one(self.distribution);
                self.memory()
            }

            /// The elements without the ghost cells.
            ///
            /// # Panics
            /// For a tiled array.
            #[must_use]
            #[track_caller]
            pub fn interior(&self) -> ArrayView<'_, T, D> {
                check_one(self.distribution);
                self.elements()
            }

            /// Ghost cells on either side of the block, for each axis.
            #[must_use]
            pub fn widths(&self) -> D {
                self.distribution.ghost_widths()
            }
        }
    };
}
with_ghosts!(GhostPart);
with_ghosts!(GhostPartMut);

/// Where the elements lie on an axis of a part's memory, of this length.
fn inside<D: Dimension>(distribution: &Distribution<D>) -> impl Fn(usize, usize) -> Slice + '_ {
    let widths = distribution.ghosts().map(|ghosts| ghosts.widths.slice());
    move |axis, len| {
        let width = if len == 0 { 0 } else { widths.map_or(0, |widths| widths[axis]) };
        Slice::from(width..len - width)
    }
}

/// What belongs to the part as a whole has no meaning where it lies tile after tile.
#[track_caller]
fn check_one<D: Dimension>(distribution: &Distribution<D>) {
    assert!(
        !distribution.is_tiled(),
        "the part of a {} array is no dense array: its blocks are, by blocks(), block() and block_mut()",
        distribution.kind()
    );
}

#[track_caller]
fn of_part<V>(view: Result<V, ShapeError>) -> V {
    view.expect("a block of this part")
}

/// A part is as long as its shape says.
fn whole<V>(view: Result<V, ShapeError>) -> V {
    view.expect("a part holds its shape")
}

impl<'a, T: Element, D: Dimension> OwnedPart<'a, T, D> {
    pub(super) fn new(elements: &'a [T], distribution: &'a Distribution<D>, member: usize) -> Self {
        OwnedPart { elements, distribution, member }
    }
}

impl<'a, T: Element, D: Dimension> GhostPart<'a, T, D> {
    pub(super) fn new(elements: &'a [T], distribution: &'a Distribution<D>, member: usize) -> Self {
        GhostPart { elements, distribution, member }
    }
}

impl<T: Element, D: Dimension> OwnedPartMut<'_, T, D> {
    /// Like [`as_slice`](Self::as_slice), writable.
    #[doc(alias("NGA_Access_block_segment", "NGA_Release_block_segment", "NGA_Release_update_block_segment"))]
    #[inline]
    #[must_use]
    #[doc(alias = "as_slice_mut")]
    pub fn as_mut_slice(&mut self) -> Option<&mut [T]> {
        if self.distribution.ghosts().is_none() { Some(&mut *self.elements) } else { None }
    }

    /// Like [`iter`](Self::iter), writable.
    pub fn iter_mut(&mut self) -> IterMut<'_, T, D> {
        let order = self.distribution.order();
        let elements = self.elements_mut();
        match order {
            Order::RowMajor => elements.into_iter(),
            Order::ColumnMajor => elements.reversed_axes().into_iter(),
        }
    }

    /// Sets all elements; ghost cells do not change.
    pub fn fill(&mut self, value: T) {
        self.elements_mut().fill(value);
    }

    /// Prefetches the cache line of element `at` of [`as_slice`](Self::as_slice) for writing. This is a hint, so `at` may be any
    /// number.
    ///
    /// Use it in loops that change elements in random order: prefetching some tens of elements ahead keeps that many cache misses in
    /// flight.
    #[inline(always)]
    pub fn prefetch(&self, at: usize) {
        kernels::prefetch_to_write(self.elements.as_ptr().wrapping_add(at));
    }

    /// The part as a writable view of the local shape.
    ///
    /// # Panics
    /// For a tiled array.
    #[track_caller]
    pub fn view_mut(&mut self) -> ArrayViewMut<'_, T, D> {
        check_one(self.distribution);
        self.elements_mut()
    }

    /// One of this part's blocks as a writable view; its element 0 is the array's element `block.patch.start()`.
    ///
    /// # Panics
    /// If the block is not one of [`blocks`](Self::blocks).
    #[doc(alias(
        "NGA_Access_block",
        "NGA_Access_block_grid",
        "NGA_Release_block",
        "NGA_Release_block_grid",
        "NGA_Release_update_block",
        "NGA_Release_update_block_grid"
    ))]
    #[track_caller]
    pub fn block_mut(&mut self, block: &Block<D>) -> ArrayViewMut<'_, T, D> {
        let shape = block.patch.count().clone().strides(block.strides.clone());
        of_part(ArrayViewMut::from_shape(shape, &mut self.elements[block.offset..]))
    }
}

impl<T: Element, D: Dimension> GhostPartMut<'_, T, D> {
    /// Like [`view`](Self::view), writable.
    ///
    /// # Panics
    /// For a tiled array.
    #[doc(alias = "NGA_Release_update_ghost_element")]
    #[track_caller]
    pub fn view_mut(&mut self) -> ArrayViewMut<'_, T, D> {
        check_one(self.distribution);
        self.memory_mut()
    }

    /// Like [`interior`](Self::interior), writable.
    ///
    /// # Panics
    /// For a tiled array.
    #[track_caller]
    pub fn interior_mut(&mut self) -> ArrayViewMut<'_, T, D> {
        check_one(self.distribution);
        self.elements_mut()
    }
}
