//! ndarray's `s![..]` as a patch, with ndarray's meaning of negative indices and steps.

use ndarray::{Dimension, Ix0, Ix1, Ix2, Ix3, Ix4, Ix5, Ix6, IxDyn, SliceInfo, SliceInfoElem};

use super::{IntoPatch, KeptAxes, Patch, PatchError, Selection};

impl<T, D, Out> IntoPatch<D> for SliceInfo<T, D, Out>
where
    T: AsRef<[SliceInfoElem]>,
    D: Dimension,
    Out: Dimension,
{
    type Output = Out;

    #[inline]
    fn into_patch(self, extents: &D) -> Result<Selection<D>, PatchError> {
        resolve(self.as_ref(), extents)
    }
}

impl<T, D, Out> IntoPatch<D> for &SliceInfo<T, D, Out>
where
    T: AsRef<[SliceInfoElem]>,
    D: Dimension,
    Out: Dimension,
{
    type Output = Out;

    #[inline]
    fn into_patch(self, extents: &D) -> Result<Selection<D>, PatchError> {
        resolve(self.as_ref(), extents)
    }
}

/// `s![..]` knows its number of axes by type; an array that does not takes any, and compares.
macro_rules! slice_of_a_dynamic_array {
    ($($D:ty),*) => {$(
        impl<T: AsRef<[SliceInfoElem]>, Out: Dimension> IntoPatch<IxDyn> for SliceInfo<T, $D, Out> {
            type Output = Out;

            fn into_patch(self, extents: &IxDyn) -> Result<Selection<IxDyn>, PatchError> {
                resolve(self.as_ref(), extents)
            }
        }

        impl<T: AsRef<[SliceInfoElem]>, Out: Dimension> IntoPatch<IxDyn> for &SliceInfo<T, $D, Out> {
            type Output = Out;

            fn into_patch(self, extents: &IxDyn) -> Result<Selection<IxDyn>, PatchError> {
                resolve(self.as_ref(), extents)
            }
        }
    )*};
}
slice_of_a_dynamic_array!(Ix0, Ix1, Ix2, Ix3, Ix4, Ix5, Ix6);

#[inline(always)]
fn resolve<D: Dimension>(items: &[SliceInfoElem], extents: &D) -> Result<Selection<D>, PatchError> {
    let axes = extents.ndim();
    let mut kept = KeptAxes::all(axes)?;
    if items.len() != axes || items.iter().any(SliceInfoElem::is_new_axis) {
        return Err(mismatch(items, axes));
    }
    let (mut start, mut count, mut step) = (D::zeros(axes), D::zeros(axes), D::zeros(axes));
    for (axis, item) in items.iter().enumerate() {
        let extent = extents.slice()[axis];
        let progression = match *item {
            SliceInfoElem::Slice { start, end, step } => slice(axis, extent, start, end, step)?,
            SliceInfoElem::Index(index) => {
                kept.drop_axis(axis);
                (single(axis, extent, index)?, 1, 1)
            }
            SliceInfoElem::NewAxis => return Err(PatchError::NewAxis { position: axis }),
        };
        (start.slice_mut()[axis], count.slice_mut()[axis]) = (progression.0, progression.1);
        step.slice_mut()[axis] = progression.2 as usize;
    }
    Ok(Selection { patch: Patch::new(start, count, step), kept })
}

/// First index, count and step of one axis.
#[inline(always)]
fn slice(axis: usize, extent: usize, start: isize, end: Option<isize>, step: isize) -> Result<(usize, usize, isize), PatchError> {
    if step == 0 {
        return Err(PatchError::ZeroStep { axis });
    }
    let low = from_front(extent, start);
    let high = end.map_or(extent, |end| from_front(extent, end));
    // An end before the start is an empty slice there, but both must exist.
    let high = if high < low { low } else { high };
    if low > extent || high > extent {
        return Err(outside(axis, extent, start, end));
    }
    let span = high - low;
    let count = if step == 1 { span } else { span.div_ceil(step.unsigned_abs()) };
    let first = if step < 0 && span > 0 { high - 1 } else { low };
    Ok((first, count, step))
}

#[inline(always)]
fn single(axis: usize, extent: usize, index: isize) -> Result<usize, PatchError> {
    let front = from_front(extent, index);
    if front < extent { Ok(front) } else { Err(outside(axis, extent, index, Some(index.saturating_add(1)))) }
}

/// A negative index counts from the back. One before the first element wraps to beyond every extent, where the comparison with
/// the extent finds it: one comparison for both ends.
#[inline(always)]
fn from_front(extent: usize, index: isize) -> usize {
    if index < 0 { extent.wrapping_add_signed(index) } else { index as usize }
}

#[cold]
fn outside(axis: usize, extent: usize, start: isize, end: Option<isize>) -> PatchError {
    PatchError::OutOfBounds { axis, start, end: end.unwrap_or(super::error::signed(extent)), extent }
}

#[cold]
fn mismatch(items: &[SliceInfoElem], axes: usize) -> PatchError {
    match items.iter().position(SliceInfoElem::is_new_axis) {
        Some(position) => PatchError::NewAxis { position },
        None => PatchError::AxisCount { given: items.len(), expected: axes },
    }
}
