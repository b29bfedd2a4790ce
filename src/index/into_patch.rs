//! Converts what a program writes into a patch that lies inside an array.

use std::ops::RangeFull;

use ndarray::Dimension;

use super::error::signed;
use super::{Patch, PatchError};

/// Names a patch of an array with axes `D`.
///
/// Implemented for ndarray's `s![..]` by value and by reference, tuples and arrays of ranges, one range for `Ix1`, `..` for the
/// whole array, and [`Patch`] itself.
///
/// Sealed: transfers move as many elements as the patch says, to or from a view that was compared with the kept axes. To name
/// patches in another way, make a [`Patch`], which is compared with the extents.
///
/// ```compile_fail,E0277
/// use global_arrays::{index::{IntoPatch, KeptAxes, Patch, PatchError, Selection}, prelude::*};
///
/// struct Liar;
/// impl IntoPatch<Ix2> for Liar {
///     type Output = Ix3;
///     fn into_patch(self, extents: &Ix2) -> Result<Selection<Ix2>, PatchError> {
///         Ok(Selection { patch: Patch::whole(extents), kept: KeptAxes::all(2)? })
///     }
/// }
/// ```
pub trait IntoPatch<D: Dimension>: sealed::Sealed {
    /// The axes of the user's buffer: those of the array, without the ones that a single index removes.
    type Output: Dimension;

    /// Resolves against the extents of an array. The returned patch lies inside them.
    ///
    /// # Errors
    /// Indices outside the extents, a wrong number of axes, a zero step, `NewAxis`.
    fn into_patch(self, extents: &D) -> Result<Selection<D>, PatchError>;
}

mod sealed {
    use std::ops::{Range, RangeFull};

    use ndarray::{Dimension, SliceInfo, SliceInfoElem};

    pub trait Sealed {}

    impl Sealed for RangeFull {}
    impl Sealed for Range<usize> {}
    impl Sealed for [Range<usize>] {}
    impl<const N: usize> Sealed for [Range<usize>; N] {}
    impl<D> Sealed for super::Patch<D> {}
    impl<T: AsRef<[SliceInfoElem]>, D: Dimension, Out: Dimension> Sealed for SliceInfo<T, D, Out> {}
    impl<S: Sealed + ?Sized> Sealed for &S {}

    macro_rules! tuples {
        ($(($($R:ident),*)),*) => {$( impl<$($R: crate::index::AxisRange),*> Sealed for ($($R,)*) {} )*};
    }
    tuples!((A), (A, B), (A, B, C), (A, B, C, E), (A, B, C, E, F), (A, B, C, E, F, G));
}

/// A patch inside an array, and those of its axes that the user's buffer has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection<D> {
    /// The elements, on all axes of the array.
    pub patch: Patch<D>,
    /// The axes of the user's buffer.
    pub kept: KeptAxes,
}

/// Which axes of an array remain in the user's buffer: a single index in a slice removes its axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptAxes {
    /// Bit `k` for axis `k`.
    mask: u64,
    axes: u32,
}

impl KeptAxes {
    /// The maximum number of axes: each has a bit here. Creation rejects an array with more, because no patch could name it.
    pub const MOST: usize = u64::BITS as usize;

    /// All axes; none is removed.
    ///
    /// # Errors
    /// [`PatchError::TooManyAxes`] beyond 64 axes.
    #[inline(always)]
    pub fn all(axes: usize) -> Result<Self, PatchError> {
        if axes > Self::MOST {
            return Err(PatchError::TooManyAxes { given: axes, most: Self::MOST });
        }
        Ok(Self { mask: if axes == Self::MOST { u64::MAX } else { (1 << axes) - 1 }, axes: axes as u32 })
    }

    /// Removes axis `axis`, which must exist, from the buffer.
    #[inline]
    pub(super) fn drop_axis(&mut self, axis: usize) {
        self.mask &= !(1 << axis);
    }

    /// Whether this axis of the array is an axis of the buffer.
    #[inline]
    #[must_use]
    pub fn contains(&self, axis: usize) -> bool {
        axis < Self::MOST && self.mask >> axis & 1 == 1
    }

    /// Number of axes of the buffer.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.mask.count_ones() as usize
    }

    /// Whether the buffer has no axes: the patch is a single element.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.mask == 0
    }

    /// The shape of the buffer that a patch fills. `Out` is the `Output` of the [`IntoPatch`] that made the selection.
    #[inline]
    #[must_use]
    pub fn shape<Out: Dimension, D: Dimension>(&self, patch: &Patch<D>) -> Out {
        let mut shape = Out::zeros(Out::NDIM.unwrap_or(self.len()));
        let mut kept = 0;
        for (axis, &count) in patch.count().slice().iter().enumerate() {
            if self.contains(axis) {
                if let Some(slot) = shape.slice_mut().get_mut(kept) {
                    *slot = count;
                }
                kept += 1;
            }
        }
        shape
    }

    /// The strides of a buffer (one for each of its axes) spread over the axes of the array, with 0 for removed axes.
    #[inline]
    #[must_use]
    pub fn spread<D: Dimension>(&self, strides: &[isize]) -> D {
        let mut spread = D::zeros(D::NDIM.unwrap_or(self.axes as usize));
        let mut strides = strides.iter();
        for (axis, slot) in spread.slice_mut().iter_mut().enumerate() {
            if self.contains(axis) {
                *slot = strides.next().map_or(0, |&stride| stride as usize);
            }
        }
        spread
    }
}

impl<D: Dimension> IntoPatch<D> for RangeFull {
    type Output = D;

    #[inline]
    fn into_patch(self, extents: &D) -> Result<Selection<D>, PatchError> {
        Ok(Selection { patch: Patch::whole(extents), kept: KeptAxes::all(extents.ndim())? })
    }
}

impl<D: Dimension> IntoPatch<D> for Patch<D> {
    type Output = D;

    #[inline]
    fn into_patch(self, extents: &D) -> Result<Selection<D>, PatchError> {
        check(&self, extents)?;
        Ok(Selection { kept: KeptAxes::all(extents.ndim())?, patch: self })
    }
}

impl<D: Dimension> IntoPatch<D> for &Patch<D> {
    type Output = D;

    #[inline]
    fn into_patch(self, extents: &D) -> Result<Selection<D>, PatchError> {
        self.clone().into_patch(extents)
    }
}

/// Whether a patch lies inside.
#[inline]
fn check<D: Dimension>(patch: &Patch<D>, extents: &D) -> Result<(), PatchError> {
    if patch.ndim() != extents.ndim() {
        return Err(PatchError::AxisCount { given: patch.ndim(), expected: extents.ndim() });
    }
    for (axis, &extent) in extents.slice().iter().enumerate() {
        let (start, count, step) = (patch.start().slice()[axis], patch.count().slice()[axis], patch.step(axis));
        if step == 0 {
            return Err(PatchError::ZeroStep { axis });
        }
        let inside = if step == 1 {
            start <= extent && count <= extent - start
        } else {
            // A step other than 1 means that there are two indices or more.
            let last = start as i128 + (count as i128 - 1).saturating_mul(step as i128);
            start < extent && (0..extent as i128).contains(&last)
        };
        if !inside {
            return Err(outside(axis, start, count, step, extent));
        }
    }
    Ok(())
}

/// The range of a progression that does not fit.
#[cold]
fn outside(axis: usize, start: usize, count: usize, step: isize, extent: usize) -> PatchError {
    let reach = signed(count.saturating_sub(1)).saturating_mul(step);
    let start = signed(start);
    let (low, high) = if step < 0 { (start.saturating_add(reach), start) } else { (start, start.saturating_add(reach)) };
    let end = if count == 0 { low } else { high.saturating_add(1) };
    PatchError::OutOfBounds { axis, start: low, end, extent }
}

#[cfg(test)]
mod tests {
    use ndarray::{Dim, Ix1, Ix2, Ix3, IxDyn};

    use super::*;

    #[test]
    fn a_patch_must_lie_inside() {
        let extents = Dim([10, 5]);
        let down = -3_isize as usize;
        assert!(Patch::new(Dim([9, 0]), Dim([4, 5]), Dim([down, 1])).into_patch(&extents).is_ok());
        assert_eq!(
            Patch::new(Dim([8, 0]), Dim([4, 5]), Dim([down, 1])).into_patch(&extents),
            Err(PatchError::OutOfBounds { axis: 0, start: -1, end: 9, extent: 10 })
        );
        assert_eq!(
            Patch::block(Dim([0, 3]), Dim([10, 3])).into_patch(&extents),
            Err(PatchError::OutOfBounds { axis: 1, start: 3, end: 6, extent: 5 })
        );
        assert!(Patch::block(Dim([10, 5]), Dim([0, 0])).into_patch(&extents).is_ok());
        assert!(Patch::block(Dim([11, 5]), Dim([0, 0])).into_patch(&extents).is_err());
        assert_eq!(Patch::new(Dim([0]), Dim([2]), Dim([0])).into_patch(&Dim([4])), Err(PatchError::ZeroStep { axis: 0 }));
        let extreme = Patch::new(Dim([usize::MAX]), Dim([usize::MAX]), Dim([isize::MIN as usize]));
        assert!(extreme.into_patch(&Dim([4])).is_err());
    }

    #[test]
    fn dropped_axes_have_no_shape_and_no_stride() {
        let mut kept = KeptAxes::all(3).unwrap();
        kept.drop_axis(1);
        let patch = Patch::block(Dim([0, 1, 2]), Dim([4, 1, 6]));
        assert_eq!(kept.shape::<Ix2, Ix3>(&patch), Dim([4, 6]));
        assert_eq!(kept.shape::<IxDyn, Ix3>(&patch).slice(), &[4, 6]);
        assert_eq!(kept.spread::<Ix3>(&[6, -1]), Dim([6, 0, -1_isize as usize]));
        assert_eq!(kept.spread::<IxDyn>(&[6, 1]).slice(), &[6, 0, 1]);
    }

    #[test]
    fn axis_counts_are_compared_and_limited() {
        let given = Patch::whole(&IxDyn(&[2, 2]));
        assert_eq!(given.into_patch(&IxDyn(&[2])), Err(PatchError::AxisCount { given: 2, expected: 1 }));
        assert_eq!((..).into_patch(&IxDyn(&[1; 65])).unwrap_err(), PatchError::TooManyAxes { given: 65, most: 64 });
        assert_eq!((..).into_patch(&IxDyn(&[1; 64])).unwrap().kept.len(), 64);
        assert_eq!((..).into_patch(&Ix1(7)).unwrap().patch.len(), 7);
    }
}
