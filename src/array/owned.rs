//! What a rank sees of an array inside an epoch, or by unchecked access: its own part, as plain memory.

use std::ops::{Deref, DerefMut};

use ndarray::{ArrayView, ArrayViewMut, Dimension, ShapeBuilder, ShapeError};

use crate::{
    distribution::{Block, Blocks, Distribution, Order},
    element::Element,
};

/// This rank's part, readable; made by a read epoch, or by an owner epoch as [`OwnedPartMut`].
///
/// The part is one dense local array of [`local_shape`](Self::local_shape) in the array's order, as ScaLAPACK and ELPA keep a
/// block-cyclic matrix: with [`Order::ColumnMajor`] the slice, [`leading_dimension`](Self::leading_dimension) and the blocking are
/// what their descriptors ask for. Of a tiled array only each block is one: [`blocks`](Self::blocks) and [`block`](Self::block)
/// work for every distribution.
#[derive(Debug)]
pub struct OwnedPart<'a, T, D> {
    elements: &'a [T],
    distribution: &'a Distribution<D>,
    member: usize,
}

/// This rank's part, readable and writable; made by an owner epoch, or by [`GlobalArray::access`](crate::GlobalArray::access).
#[derive(Debug)]
pub struct OwnedPartMut<'a, T, D> {
    elements: &'a mut [T],
    distribution: &'a Distribution<D>,
    member: usize,
}

macro_rules! reading {
    ($part:ident) => {
        impl<'a, T: Element, D: Dimension> $part<'a, T, D> {
            /// Who owns what.
            #[must_use]
            pub fn distribution(&self) -> &'a Distribution<D> {
                self.distribution
            }

            /// The blocks of this part in row-major order of their places in it: where each lies in the array and in the part.
            #[must_use]
            pub fn blocks(&self) -> Blocks<'a, D> {
                self.distribution.blocks(self.member)
            }

            /// Elements along each axis of the part.
            #[must_use]
            pub fn local_shape(&self) -> D {
                self.distribution.local_shape(self.member)
            }

            /// One of this part's blocks; its element 0 is the array's element `block.region.start()`.
            ///
            /// # Panics
            /// If the block is not one of [`blocks`](Self::blocks).
            #[must_use]
            #[track_caller]
            pub fn block(&self, block: &Block<D>) -> ArrayView<'_, T, D> {
                inside(ArrayView::from_shape(
                    block.region.count().clone().strides(block.strides.clone()),
                    &self.elements[block.offset..],
                ))
            }

            /// Elements between neighbours on the slower axis of a matrix: the LLD of ScaLAPACK's descriptor, at least 1.
            ///
            /// # Panics
            /// For a tiled array.
            #[must_use]
            #[track_caller]
            pub fn leading_dimension(&self) -> usize {
                check_dense(self.distribution);
                let shape = self.local_shape();
                let fast = match self.distribution.order() {
                    Order::RowMajor => shape.slice().last(),
                    Order::ColumnMajor => shape.slice().first(),
                };
                fast.copied().unwrap_or(1).max(1)
            }

            /// The part as an n-dimensional view of the local shape.
            ///
            /// # Panics
            /// For a tiled array.
            #[must_use]
            #[track_caller]
            pub fn view(&self) -> ArrayView<'_, T, D> {
                check_dense(self.distribution);
                let shape = self.local_shape().set_f(self.distribution.order() == Order::ColumnMajor);
                whole(ArrayView::from_shape(shape, &*self.elements))
            }
        }

        impl<T, D> Deref for $part<'_, T, D> {
            type Target = [T];

            fn deref(&self) -> &[T] {
                self.elements
            }
        }
    };
}
reading!(OwnedPart);
reading!(OwnedPartMut);

/// What belongs to the part as a whole has no meaning where it lies tile after tile.
#[track_caller]
fn check_dense<D: Dimension>(distribution: &Distribution<D>) {
    assert!(
        !distribution.is_tiled(),
        "the part of a {} array is no dense array: its blocks are, by blocks(), block() and block_mut()",
        distribution.kind()
    );
}

#[track_caller]
fn inside<V>(view: Result<V, ShapeError>) -> V {
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

impl<'a, T: Element, D: Dimension> OwnedPartMut<'a, T, D> {
    pub(super) fn new(elements: &'a mut [T], distribution: &'a Distribution<D>, member: usize) -> Self {
        OwnedPartMut { elements, distribution, member }
    }

    /// The part as a writable view of the local shape.
    ///
    /// # Panics
    /// For a tiled array.
    #[track_caller]
    pub fn view_mut(&mut self) -> ArrayViewMut<'_, T, D> {
        check_dense(self.distribution);
        let shape = self.local_shape().set_f(self.distribution.order() == Order::ColumnMajor);
        whole(ArrayViewMut::from_shape(shape, &mut *self.elements))
    }

    /// One of this part's blocks as a writable view; its element 0 is the array's element `block.region.start()`.
    ///
    /// # Panics
    /// If the block is not one of [`blocks`](Self::blocks).
    #[track_caller]
    pub fn block_mut(&mut self, block: &Block<D>) -> ArrayViewMut<'_, T, D> {
        let shape = block.region.count().clone().strides(block.strides.clone());
        inside(ArrayViewMut::from_shape(shape, &mut self.elements[block.offset..]))
    }
}

impl<T, D> DerefMut for OwnedPartMut<'_, T, D> {
    fn deref_mut(&mut self) -> &mut [T] {
        self.elements
    }
}
