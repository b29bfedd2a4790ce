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

    #[inline(always)]
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

    #[inline(always)]
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

#[cfg(test)]
mod tests {
    use ndarray::{Array, Dim, NewAxis, s};
    use proptest::prelude::*;

    use super::*;

    /// The elements of a patch of an iota array, in patch order, and the shape of the user's buffer.
    fn elements<D: Dimension, P: IntoPatch<D>>(patch: P, extents: &D) -> Result<(Vec<usize>, Vec<usize>), PatchError> {
        let Selection { patch, kept } = patch.into_patch(extents)?;
        let strides = extents.default_strides();
        let mut offsets = vec![0_isize];
        for axis in 0..patch.ndim() {
            let (start, stride) = (patch.start().slice()[axis] as isize, strides.slice()[axis] as isize);
            let steps: Vec<_> =
                (0..patch.count().slice()[axis] as isize).map(|i| (start + i * patch.step(axis)) * stride).collect();
            offsets = offsets.iter().flat_map(|offset| steps.iter().map(move |step| offset + step)).collect();
        }
        let shape: P::Output = kept.shape(&patch);
        Ok((offsets.into_iter().map(|offset| offset as usize).collect(), shape.slice().to_vec()))
    }

    fn item(extent: isize) -> impl Strategy<Value = SliceInfoElem> {
        let end = prop_oneof![1 => Just(None), 3 => (-extent..=extent).prop_map(Some)];
        prop_oneof![
            3 => (-extent..=extent, end, prop_oneof![-4..=-1_isize, 1..=4_isize])
                .prop_map(|(start, end, step)| SliceInfoElem::Slice { start, end, step }),
            1 => (-extent..extent).prop_map(SliceInfoElem::Index),
        ]
    }

    fn check<D: Dimension>(extents: D, items: &[SliceInfoElem]) -> Result<(), TestCaseError>
    where
        for<'a> SliceInfo<&'a [SliceInfoElem], D, IxDyn>: TryFrom<&'a [SliceInfoElem]> + IntoPatch<D> + ndarray::SliceArg<D>,
    {
        let iota = Array::from_shape_fn(extents.clone().into_dyn(), |index| {
            index.slice().iter().zip(extents.default_strides().slice()).map(|(i, s)| i * s).sum::<usize>()
        });
        let theirs = iota.slice(items);
        let Ok(info) = SliceInfo::<_, D, IxDyn>::try_from(items) else { unreachable!("items fit the axes") };
        let (ours, shape) = elements(info, &extents).unwrap();
        prop_assert_eq!(shape, theirs.shape());
        prop_assert_eq!(ours, theirs.iter().copied().collect::<Vec<_>>());
        Ok(())
    }

    proptest! {
        #[test]
        fn means_what_ndarray_means(items in (item(7), item(1), item(5))) {
            check(Dim([7, 1, 5]), &[items.0, items.1, items.2])?;
            check(IxDyn(&[7, 1, 5]), &[items.0, items.1, items.2])?;
        }

        #[test]
        fn never_panics(extent in prop_oneof![0..9_usize, Just(isize::MAX as usize)], start: isize, end: Option<isize>, step: isize) {
            let items = [SliceInfoElem::Slice { start, end, step }];
            if let Ok(selection) = resolve(&items, &Dim([extent])) {
                prop_assert!(selection.patch.into_patch(&Dim([extent])).is_ok());
            }
            if let Ok(selection) = resolve(&[SliceInfoElem::Index(start)], &Dim([extent])) {
                prop_assert!(selection.patch.start()[0] < extent);
            }
        }
    }

    #[test]
    #[allow(clippy::reversed_empty_ranges)]
    fn as_written() {
        let extents = Dim([6, 4]);
        assert_eq!(elements(s![2, ..], &extents).unwrap(), (vec![8, 9, 10, 11], vec![4]));
        assert_eq!(elements(s![-1, -1], &extents).unwrap(), (vec![23], vec![]));
        assert_eq!(elements(s![1..6;-2, 3], &extents).unwrap(), (vec![23, 15, 7], vec![3]));
        assert_eq!(elements(&s![4..2, ..], &extents).unwrap(), (vec![], vec![0, 4]));
        assert_eq!(elements(s![..=1, 0..1], &IxDyn(&[6, 4])).unwrap(), (vec![0, 4], vec![2, 1]));
        assert_eq!(elements(s![..;-1], &Dim([0])).unwrap(), (vec![], vec![0]));
    }

    #[test]
    fn what_is_wrong_is_said() {
        let extents = Dim([6, 4]);
        let outside = |axis, start, end, extent| Err(PatchError::OutOfBounds { axis, start, end, extent });
        assert_eq!(s![0..7, ..].into_patch(&extents), outside(0, 0, 7, 6));
        assert_eq!(s![.., -5..].into_patch(&extents), outside(1, -5, 4, 4));
        assert_eq!(s![6, 0].into_patch(&extents), outside(0, 6, 7, 6));
        assert_eq!(s![-7, 0].into_patch(&extents), outside(0, -7, -6, 6));
        assert_eq!(s![7.., ..].into_patch(&extents), outside(0, 7, 6, 6));
        // `s![..;0]` itself panics in debug builds.
        let stuck = [SliceInfoElem::Slice { start: 0, end: None, step: 0 }];
        assert_eq!(resolve(&stuck, &Dim([3])), Err(PatchError::ZeroStep { axis: 0 }));
        assert_eq!(s![.., NewAxis, ..].into_patch(&extents), Err(PatchError::NewAxis { position: 1 }));
        assert_eq!(s![.., ..].into_patch(&IxDyn(&[3])), Err(PatchError::AxisCount { given: 2, expected: 1 }));
    }
}
