//! Tuples and arrays of ranges as a patch.

use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo};

use ndarray::{Dim, Dimension, Ix1, Ix2, Ix3, Ix4, Ix5, Ix6, IxDyn};

use super::error::signed;
use super::{IntoPatch, KeptAxes, Patch, PatchError, Selection};

/// A range of indices on one axis: `a..b`, `a..`, `..b`, `a..=b` or `..`.
pub trait AxisRange {
    /// First index and one past the last on an axis of this extent. Not yet compared with the extent.
    fn bounds(self, extent: usize) -> Range<usize>;
}

impl AxisRange for Range<usize> {
    #[inline]
    fn bounds(self, _extent: usize) -> Range<usize> {
        self
    }
}

impl AxisRange for RangeFrom<usize> {
    #[inline]
    fn bounds(self, extent: usize) -> Range<usize> {
        self.start..extent
    }
}

impl AxisRange for RangeTo<usize> {
    #[inline]
    fn bounds(self, _extent: usize) -> Range<usize> {
        0..self.end
    }
}

impl AxisRange for RangeInclusive<usize> {
    #[inline]
    fn bounds(self, _extent: usize) -> Range<usize> {
        // The saturated end is outside every array, as the true one would be.
        *self.start()..self.end().saturating_add(1)
    }
}

impl AxisRange for RangeFull {
    #[inline]
    fn bounds(self, extent: usize) -> Range<usize> {
        0..extent
    }
}

/// First index and count. As in `s![..]`, an end before the start is empty, and the start must not be beyond the extent.
#[inline]
fn resolve(axis: usize, extent: usize, range: impl AxisRange) -> Result<(usize, usize), PatchError> {
    let Range { start, end } = range.bounds(extent);
    if start > extent || end > extent {
        return Err(PatchError::OutOfBounds { axis, start: signed(start), end: signed(end), extent });
    }
    Ok((start, end.saturating_sub(start)))
}

macro_rules! tuple {
    ($Ix:ty, $n:literal: $($R:ident $axis:tt),*) => {
        impl<$($R: AxisRange),*> IntoPatch<$Ix> for ($($R,)*) {
            type Output = $Ix;

            #[inline]
            fn into_patch(self, extents: &$Ix) -> Result<Selection<$Ix>, PatchError> {
                let axes = [$(resolve($axis, extents.slice()[$axis], self.$axis)?),*];
                let patch = Patch::block(Dim(axes.map(|(start, _)| start)), Dim(axes.map(|(_, count)| count)));
                Ok(Selection { patch, kept: KeptAxes::all($n)? })
            }
        }

        impl IntoPatch<$Ix> for [Range<usize>; $n] {
            type Output = $Ix;

            #[inline]
            fn into_patch(self, extents: &$Ix) -> Result<Selection<$Ix>, PatchError> {
                list(self.into_iter(), extents)
            }
        }
    };
}
tuple!(Ix1, 1: A 0);
tuple!(Ix2, 2: A 0, B 1);
tuple!(Ix3, 3: A 0, B 1, C 2);
tuple!(Ix4, 4: A 0, B 1, C 2, E 3);
tuple!(Ix5, 5: A 0, B 1, C 2, E 3, F 4);
tuple!(Ix6, 6: A 0, B 1, C 2, E 3, F 4, G 5);

impl<const N: usize> IntoPatch<IxDyn> for [Range<usize>; N] {
    type Output = IxDyn;

    fn into_patch(self, extents: &IxDyn) -> Result<Selection<IxDyn>, PatchError> {
        list(self.into_iter(), extents)
    }
}

impl IntoPatch<IxDyn> for &[Range<usize>] {
    type Output = IxDyn;

    fn into_patch(self, extents: &IxDyn) -> Result<Selection<IxDyn>, PatchError> {
        list(self.iter().cloned(), extents)
    }
}

impl IntoPatch<Ix1> for Range<usize> {
    type Output = Ix1;

    #[inline]
    fn into_patch(self, extents: &Ix1) -> Result<Selection<Ix1>, PatchError> {
        (self,).into_patch(extents)
    }
}

#[inline]
fn list<D: Dimension>(ranges: impl ExactSizeIterator<Item = Range<usize>>, extents: &D) -> Result<Selection<D>, PatchError> {
    let axes = extents.ndim();
    if ranges.len() != axes {
        return Err(PatchError::AxisCount { given: ranges.len(), expected: axes });
    }
    let (mut start, mut count) = (D::zeros(axes), D::zeros(axes));
    for (axis, range) in ranges.enumerate() {
        (start.slice_mut()[axis], count.slice_mut()[axis]) = resolve(axis, extents.slice()[axis], range)?;
    }
    Ok(Selection { patch: Patch::block(start, count), kept: KeptAxes::all(axes)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_range() {
        let selection = (2..4, 3.., ..5, 1..=2, ..).into_patch(&Dim([9, 9, 9, 9, 9])).unwrap();
        assert_eq!(selection.patch, Patch::block(Dim([2, 3, 0, 1, 0]), Dim([2, 6, 5, 2, 9])));
        assert_eq!(selection.kept, KeptAxes::all(5).unwrap());
    }

    #[test]
    fn arrays_and_a_bare_range() {
        let block = Patch::block(Dim([1, 0]), Dim([2, 5]));
        assert_eq!([1..3, 0..5].into_patch(&Dim([9, 5])).unwrap().patch, block);
        let ranges: &[Range<usize>] = &[1..3, 0..5];
        let dynamic = ranges.into_patch(&IxDyn(&[9, 5])).unwrap().patch;
        assert_eq!((dynamic.start().slice(), dynamic.count().slice()), (&[1, 0][..], &[2, 5][..]));
        assert_eq!([1..3, 0..5].into_patch(&IxDyn(&[9])), Err(PatchError::AxisCount { given: 2, expected: 1 }));
        assert_eq!((2..7).into_patch(&Dim([9])).unwrap().patch, Patch::block(Dim([2]), Dim([5])));
    }

    #[test]
    fn bad_ranges_are_errors() {
        assert_eq!((0..3, 4..6).into_patch(&Dim([3, 5])).unwrap_err().to_string(), "axis 1: 4..6 is outside an extent of 5");
        assert!((0..=usize::MAX,).into_patch(&Dim([3])).is_err());
        assert!((4..,).into_patch(&Dim([3])).is_err());
        #[allow(clippy::reversed_empty_ranges)]
        let reversed = (3..1,).into_patch(&Dim([3])).unwrap();
        assert!(reversed.patch.is_empty());
        assert!((0..0,).into_patch(&Dim([0])).unwrap().patch.is_empty());
    }
}
