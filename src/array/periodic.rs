//! Patches of a periodic array. On each axis a patch is cut where its indices wrap; each box between cuts is an ordinary patch.

use std::{fmt, ops::Range};

use ndarray::{Array, ArrayView, ArrayViewMut, Dimension, Slice};

use super::GlobalArray;
use crate::{
    calls::located,
    element::{Additive, Element},
    error::{Error, Result},
    index::{Patch, PatchError},
};

/// A periodic patch: for each axis, a range of any indices. An array of one axis also takes a single range.
pub trait IndexRanges {
    /// The ranges, one for each axis.
    fn ranges(&self) -> &[Range<i64>];
}

impl IndexRanges for Range<i64> {
    fn ranges(&self) -> &[Range<i64>] {
        std::slice::from_ref(self)
    }
}

impl<const N: usize> IndexRanges for [Range<i64>; N] {
    fn ranges(&self) -> &[Range<i64>] {
        self
    }
}

impl IndexRanges for [Range<i64>] {
    fn ranges(&self) -> &[Range<i64>] {
        self
    }
}

impl IndexRanges for Vec<Range<i64>> {
    fn ranges(&self) -> &[Range<i64>] {
        self
    }
}

impl<R: IndexRanges + ?Sized> IndexRanges for &R {
    fn ranges(&self) -> &[Range<i64>] {
        (*self).ranges()
    }
}

/// An array that is periodic on every axis; see [`GlobalArray::periodic`].
pub struct Periodic<'a, T, D>(&'a GlobalArray<T, D>);

impl<T, D> fmt::Debug for Periodic<'_, T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Periodic({})", self.0.name)
    }
}

/// A box of a periodic patch: the elements, and where in the patch.
struct Piece<D> {
    patch: Patch<D>,
    position: D,
}

/// The boxes of a patch, one axis at a time: a range may wrap around any number of times, so they are computed one by one.
struct Boxes<'a, D> {
    /// Shape of the whole patch.
    shape: D,
    /// Where it begins in the array.
    first: D,
    extents: &'a D,
}

/// # Patches that wrap around
impl<T: Element, D: Dimension> GlobalArray<T, D> {
    /// A periodic view of the array, in which patches are ranges of any indices. Index −1 is the last element, and the index equal to
    /// the extent is the first.
    ///
    /// # Examples
    /// ```
    /// use global_arrays::prelude::*;
    /// # fn main() -> Result<(), Error> {
    /// Launch::new().ranks(2).network("threads").run(|job| {
    ///     let mut ring = GlobalArray::<i64, Ix1>::builder(job, [5]).create()?;
    ///     ring.map_indexed(|i, _| i as i64)?;
    ///     assert_eq!(ring.periodic().get(-2..6)?.to_vec(), [3, 4, 0, 1, 2, 3, 4, 0]);
    ///     job.sync()
    /// })
    /// # }
    /// ```
    #[must_use]
    pub fn periodic(&self) -> Periodic<'_, T, D> {
        Periodic(self)
    }
}

impl<T: Element, D: Dimension> Periodic<'_, T, D> {
    /// Reads a patch, one range for each axis, into the caller's view of the same shape. One-sided; complete on return.
    ///
    /// # Errors
    /// The wrong number of ranges; a view of the wrong shape; elements of an empty array; the end of the job.
    ///
    /// # Source
    /// GA: `NGA_Periodic_get`.
    #[doc(alias = "NGA_Periodic_get")]
    #[track_caller]
    pub fn get_into<'v>(&self, ranges: impl IndexRanges, to: impl Into<ArrayViewMut<'v, T, D>>) -> Result<()> {
        located(move || {
            let (boxes, mut to) = (self.boxes("periodic get_into", ranges.ranges())?, to.into());
            self.check_shape("periodic get_into", &boxes.shape, to.shape())?;
            boxes.each(|part| self.0.get_into(&part.patch, to.slice_each_axis_mut(|axis| part.slice(axis.axis.index()))))
        })
    }

    /// Reads a patch into a new array. One-sided; complete on return.
    ///
    /// # Errors
    /// Same as [`get_into`](Self::get_into); more elements than fit into an address space.
    #[track_caller]
    pub fn get(&self, ranges: impl IndexRanges) -> Result<Array<T, D>> {
        located(move || {
            const OPERATION: &str = "periodic get";
            let shape = self.boxes(OPERATION, ranges.ranges())?.shape;
            // ndarray's limits: the elements of axes that are not empty are counted, and they have to be somewhere if there are any.
            let width = if shape.slice().contains(&0) { 1 } else { size_of::<T>() };
            let bytes = shape.slice().iter().filter(|&&n| n > 0).try_fold(width, |bytes, &n| bytes.checked_mul(n));
            if bytes.is_none_or(|bytes| isize::try_from(bytes).is_err()) {
                let (name, shape) = (&self.0.name, shape.slice());
                return Err(Error::argument(
                    OPERATION,
                    format_args!("a patch of {shape:?} elements of array \"{name}\" is too large"),
                ));
            }
            let mut array = Array::from_elem(shape, T::zeroed());
            self.get_into(ranges, &mut array).map(|()| array)
        })
    }

    /// Reads one element, by an index for each axis. One-sided; elements up to 8 bytes do not tear.
    ///
    /// # Errors
    /// The wrong number of indices; an array without elements; the end of the job.
    #[track_caller]
    pub fn load(&self, index: impl AsRef<[i64]>) -> Result<T> {
        located(move || {
            let index = self.wrap("periodic load", index.as_ref())?;
            self.0.load(index)
        })
    }

    /// An index inside the array.
    fn wrap(&self, operation: &'static str, index: &[i64]) -> Result<D> {
        self.0.check_sound(operation)?;
        let axes = self.0.ndim();
        if index.len() != axes {
            return Err(self.0.patch_error(operation, PatchError::AxisCount { given: index.len(), expected: axes }));
        }
        let mut inside = D::zeros(axes);
        for (inside, (&index, &extent)) in inside.slice_mut().iter_mut().zip(index.iter().zip(self.0.shape())) {
            // Extents are below 2^63. Of an empty axis every index is outside, which the load says.
            *inside = if extent == 0 { 0 } else { index.rem_euclid(extent as i64) as usize };
        }
        Ok(inside)
    }

    /// Writes the caller's view into a patch. One-sided, with the completion of [`GlobalArray::put`]. If the patch contains an element
    /// more than once, one of the values remains.
    ///
    /// # Errors
    /// Same as [`get_into`](Self::get_into).
    ///
    /// # Source
    /// GA: `NGA_Periodic_put`.
    #[doc(alias = "NGA_Periodic_put")]
    #[track_caller]
    pub fn put<'v>(&self, ranges: impl IndexRanges, from: impl Into<ArrayView<'v, T, D>>) -> Result<()> {
        located(move || {
            let (boxes, from) = (self.boxes("periodic put", ranges.ranges())?, from.into());
            self.check_shape("periodic put", &boxes.shape, from.shape())?;
            boxes.each(|part| self.0.put(&part.patch, from.slice_each_axis(|axis| part.slice(axis.axis.index()))))
        })
    }

    /// Where the ranges begin and how long they are.
    fn boxes(&self, operation: &'static str, ranges: &[Range<i64>]) -> Result<Boxes<'_, D>> {
        self.0.check_sound(operation)?;
        self.0.check_job(operation)?;
        let axes = self.0.shape().len();
        if ranges.len() != axes {
            return Err(self.0.patch_error(operation, PatchError::AxisCount { given: ranges.len(), expected: axes }));
        }
        let mut boxes = Boxes { shape: D::zeros(axes), first: D::zeros(axes), extents: &self.0.extents };
        for (axis, (range, &extent)) in ranges.iter().zip(self.0.shape()).enumerate() {
            // A range with its end before its start is empty, as everywhere.
            let count = if range.is_empty() { 0 } else { range.end.abs_diff(range.start) as usize };
            if count > 0 && extent == 0 {
                let (start, end) = (range.start as isize, range.end as isize);
                return Err(self.0.patch_error(operation, PatchError::OutOfBounds { axis, start, end, extent }));
            }
            boxes.shape[axis] = count;
            // Extents are below 2^63.
            boxes.first[axis] = if count == 0 { 0 } else { range.start.rem_euclid(extent as i64) as usize };
        }
        Ok(boxes)
    }

    fn check_shape(&self, operation: &'static str, patch: &D, buffer: &[usize]) -> Result<()> {
        if patch.slice() == buffer { Ok(()) } else { Err(self.0.shape_error(operation, patch.slice(), buffer)) }
    }
}

impl<T: Element, D: Dimension + Copy> Periodic<'_, T, D> {
    /// Reads the elements at `subscripts`, an index for each axis, into `to`, which has the same length. One-sided; complete on
    /// return.
    ///
    /// # Errors
    /// Same as [`load`](Self::load); lists of different lengths.
    ///
    /// # Examples
    /// ```
    /// use global_arrays::prelude::*;
    /// # fn main() -> Result<(), Error> {
    /// Launch::new().ranks(2).network("threads").run(|job| {
    ///     let mut ring = GlobalArray::<i64, Ix1>::builder(job, [5]).create()?;
    ///     ring.map_indexed(|i, _| i as i64)?;
    ///     let mut around = [0; 3];
    ///     ring.periodic().gather(&[[-1], [0], [11]], &mut around)?;
    ///     assert_eq!(around, [4, 0, 1]);
    ///     assert_eq!(ring.periodic().load([-2])?, 3);
    ///     job.sync()
    /// })
    /// # }
    /// ```
    #[track_caller]
    pub fn gather<I: AsRef<[i64]>>(&self, subscripts: &[I], to: &mut [T]) -> Result<()> {
        located(move || {
            let inside =
                subscripts.iter().map(|index| self.wrap("periodic gather", index.as_ref())).collect::<Result<Vec<D>>>()?;
            self.0.gather(&inside, to)
        })
    }
}

impl<T: Additive, D: Dimension> Periodic<'_, T, D> {
    /// Adds `alpha` times the caller's view to a patch. One-sided; atomic for each element with respect to other accumulates. If
    /// the patch contains an element more than once, the values add up.
    ///
    /// # Errors
    /// Same as [`get_into`](Self::get_into).
    ///
    /// # Source
    /// GA: `NGA_Periodic_acc`.
    #[doc(alias = "NGA_Periodic_acc")]
    #[track_caller]
    pub fn accumulate<'v>(&self, ranges: impl IndexRanges, alpha: T::Scale, from: impl Into<ArrayView<'v, T, D>>) -> Result<()> {
        located(move || {
            let (boxes, from) = (self.boxes("periodic accumulate", ranges.ranges())?, from.into());
            self.check_shape("periodic accumulate", &boxes.shape, from.shape())?;
            boxes.each(|part| self.0.accumulate(&part.patch, alpha, from.slice_each_axis(|axis| part.slice(axis.axis.index()))))
        })
    }
}

impl<D: Dimension> Boxes<'_, D> {
    /// Between two cuts of an axis: first index, position in the patch, length. `None` beyond the last.
    fn stretch(&self, axis: usize, number: usize) -> Option<[usize; 3]> {
        let (first, extent, count) = (self.first[axis], self.extents[axis], self.shape[axis]);
        let (index, position) = match number.checked_sub(1) {
            None => (first, 0),
            // Beyond the last, what saturates is beyond as well.
            Some(rounds) => (0, rounds.saturating_mul(extent).saturating_add(extent - first)),
        };
        (position < count).then(|| [index, position, (extent - index).min(count - position)])
    }

    /// Calls `f` with each box, in row-major order.
    fn each(&self, mut f: impl FnMut(&Piece<D>) -> Result<()>) -> Result<()> {
        let axes = self.shape.ndim();
        let mut at = vec![0; axes];
        let Some(mut chosen) = (0..axes).map(|axis| self.stretch(axis, 0)).collect::<Option<Vec<_>>>() else { return Ok(()) };
        loop {
            let of = |what: usize| {
                let mut values = D::zeros(axes);
                (0..axes).for_each(|axis| values[axis] = chosen[axis][what]);
                values
            };
            f(&Piece { patch: Patch::block(of(0), of(2)), position: of(1) })?;
            let next = |axis: usize| self.stretch(axis, at[axis] + 1).map(|stretch| (axis, stretch));
            let Some((axis, stretch)) = (0..axes).rev().find_map(next) else { return Ok(()) };
            (at[axis], chosen[axis]) = (at[axis] + 1, stretch);
            for after in axis + 1..axes {
                at[after] = 0;
                chosen[after] = self.stretch(after, 0).unwrap_or_default();
            }
        }
    }
}

impl<D: Dimension> Piece<D> {
    /// Its positions on an axis of the patch.
    fn slice(&self, axis: usize) -> Slice {
        let start = self.position[axis];
        Slice::from(start..start + self.patch.count()[axis])
    }
}
