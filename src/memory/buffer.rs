//! The caller's side of a transfer: an ndarray view, spread over the axes of the array.

use std::marker::PhantomData;

use ndarray::{ArrayView, ArrayViewMut, Dimension};

use crate::index::{KeptAxes, Patch};

/// Private memory of the caller, strided, borrowed shared or exclusively. `M` is `*const T` or `*mut T`.
#[derive(Clone, Debug)]
pub(crate) struct Buffer<'a, M, D> {
    pub(super) first: M,
    pub(super) counts: D,
    /// In elements, `isize as usize`.
    pub(super) strides: D,
    life: PhantomData<&'a mut [u8]>,
}

/// A buffer that is read.
pub(crate) type Source<'a, T, D> = Buffer<'a, *const T, D>;
/// A buffer that is written.
pub(crate) type Target<'a, T, D> = Buffer<'a, *mut T, D>;

/// The element of a view whose axes all have length 1, whatever its strides.
#[inline(always)]
pub(crate) fn only_element<'v, T, D: Dimension>(view: &'v ArrayView<'_, T, D>) -> Option<&'v T> {
    // SAFETY: all axes have length 1, so there is an element and the view's pointer leads to it.
    view.shape().iter().all(|&extent| extent == 1).then(|| unsafe { &*view.as_ptr() })
}

/// As [`only_element`], writable.
#[inline(always)]
pub(crate) fn only_element_mut<'v, T, D: Dimension>(view: &'v mut ArrayViewMut<'_, T, D>) -> Option<&'v mut T> {
    // SAFETY: as in `only_element`; the view is borrowed exclusively.
    view.shape().iter().all(|&extent| extent == 1).then(|| unsafe { &mut *view.as_mut_ptr() })
}

impl<'a, T, D: Dimension> Source<'a, T, D> {
    /// `None` if the shapes differ.
    #[inline(always)]
    pub(crate) fn of<Out: Dimension>(view: &ArrayView<'a, T, Out>, patch: &Patch<D>, kept: &KeptAxes) -> Option<Self> {
        let strides = fits::<D, Out>(view.shape(), view.strides(), patch, kept)?;
        Some(Buffer { first: view.as_ptr(), counts: patch.count().clone(), strides, life: PhantomData })
    }

    /// A whole view of the same number of axes.
    pub(crate) fn whole(view: &ArrayView<'a, T, D>) -> Self {
        let mut strides = view.raw_dim();
        strides.slice_mut().iter_mut().zip(view.strides()).for_each(|(to, &stride)| *to = stride as usize);
        Buffer { first: view.as_ptr(), counts: view.raw_dim(), strides, life: PhantomData }
    }
}

impl<'a, T, D: Dimension> Target<'a, T, D> {
    /// `None` if the shapes differ.
    #[inline(always)]
    pub(crate) fn of<Out: Dimension>(view: &mut ArrayViewMut<'a, T, Out>, patch: &Patch<D>, kept: &KeptAxes) -> Option<Self> {
        let strides = fits::<D, Out>(view.shape(), view.strides(), patch, kept)?;
        Some(Buffer { first: view.as_mut_ptr(), counts: patch.count().clone(), strides, life: PhantomData })
    }

    /// A block of a part.
    pub(super) fn at(first: *mut T, counts: D, strides: D) -> Self {
        Buffer { first, counts, strides, life: PhantomData }
    }

    /// A whole view of the same number of axes.
    pub(crate) fn whole(view: &mut ArrayViewMut<'a, T, D>) -> Self {
        let mut strides = view.raw_dim();
        strides.slice_mut().iter_mut().zip(view.strides()).for_each(|(to, &stride)| *to = stride as usize);
        Buffer { first: view.as_mut_ptr(), counts: view.raw_dim(), strides, life: PhantomData }
    }
}

#[inline(always)]
fn fits<D: Dimension, Out: Dimension>(shape: &[usize], strides: &[isize], patch: &Patch<D>, kept: &KeptAxes) -> Option<D> {
    // Shapes are compared axis by axis: comparing slices would load pairs of words that were just stored one by one, a stall on
    // every small patch.
    let same = |wanted: &[usize]| wanted.len() == shape.len() && wanted.iter().zip(shape).all(|(a, b)| a == b);
    if D::NDIM.is_some() && D::NDIM == Out::NDIM {
        // No axis can have been dropped; known when compiled.
        let mut spread = patch.count().clone();
        spread.slice_mut().iter_mut().zip(strides).for_each(|(to, &stride)| *to = stride as usize);
        return same(patch.count().slice()).then_some(spread);
    }
    same(kept.shape::<Out, D>(patch).slice()).then(|| kept.spread::<D>(strides))
}

impl<M, D> Buffer<'_, M, D> {
    /// The same buffer without a borrow.
    ///
    /// # Safety
    /// The memory lives, and is not used by anybody else, as long as the buffer and all transfers started with it.
    pub(crate) unsafe fn unbound<'b>(self) -> Buffer<'b, M, D> {
        Buffer { first: self.first, counts: self.counts, strides: self.strides, life: PhantomData }
    }
}

impl<M: Pointer, D: Dimension> Buffer<'_, M, D> {
    /// A box of it: `counts` elements from position `start`.
    pub(crate) fn window(&self, start: &D, counts: &D) -> Self {
        let mut offset = 0_isize;
        for axis in 0..self.counts.ndim() {
            let (start, count) = (start[axis], counts[axis]);
            assert!(start <= self.counts[axis] && count <= self.counts[axis] - start, "a window outside its buffer");
            offset += start as isize * self.strides[axis] as isize;
        }
        Buffer { first: self.first.step(offset), counts: counts.clone(), strides: self.strides.clone(), life: PhantomData }
    }

    /// Number of elements.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.counts.slice().iter().product()
    }

    /// Elements on each axis.
    pub(crate) fn counts(&self) -> &D {
        &self.counts
    }

    /// Strides in elements.
    pub(crate) fn strides(&self) -> &[isize] {
        bytemuck::cast_slice(self.strides.slice())
    }

    /// The first element.
    pub(crate) fn first(&self) -> M {
        self.first
    }
}

/// `*const T` or `*mut T`.
pub(crate) trait Pointer: Copy {
    fn step(self, elements: isize) -> Self;
}
impl<T> Pointer for *const T {
    fn step(self, elements: isize) -> Self {
        self.wrapping_offset(elements)
    }
}
impl<T> Pointer for *mut T {
    fn step(self, elements: isize) -> Self {
        self.wrapping_offset(elements)
    }
}
