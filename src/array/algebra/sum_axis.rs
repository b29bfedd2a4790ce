//! Sums along an axis.

use ndarray::{Array, ArrayView, ArrayView1, Axis, Dimension, RemoveAxis};

use super::{Elements, buffer_elements};
use crate::{
    array::GlobalArray,
    calls::located,
    element::{Additive, Number},
    error::{Error, Result},
    index::Patch,
};

/// # Sums along an axis
impl<T: Additive, D: RemoveAxis> GlobalArray<T, D> {
    /// The sums along an axis, as a new array without it: of a matrix, `sum_axis(Axis(0))` are the sums of its columns. Collective. Integers
    /// wrap. The new array has the default distribution; equal calls give equal bits.
    ///
    /// # Errors
    /// An axis that does not exist; too little memory, of which it needs as much again for each row of the process grid along the axis; the
    /// errors of [`fill`](Self::fill).
    ///
    /// # Examples
    /// ```
    /// use global_arrays::prelude::*;
    /// # fn main() -> Result<(), Error> {
    /// Launch::new().ranks(2).network("threads").run(|job| {
    ///     let a = GlobalArray2::<i64>::from_fn(job, [3, 2], |(i, j)| (10 * i + j) as i64)?;
    ///     assert_eq!(a.sum_axis(Axis(0))?.get(..)?.to_vec(), [30, 33]);
    ///     assert_eq!(a.sum_axis(Axis(1))?.get(..)?.to_vec(), [1, 21, 41]);
    ///     job.sync()
    /// })
    /// # }
    /// ```
    ///
    /// # Source
    /// ndarray's `sum_axis`. In GA a product with a vector of ones.
    #[track_caller]
    pub fn sum_axis(&self, axis: Axis) -> Result<GlobalArray<T, D::Smaller>> {
        located(move || {
            const OPERATION: &str = "sum_axis";
            let k = axis.index();
            if k >= self.ndim() {
                let what = format_args!("axis {k} of array \"{}\", which has {} axes", self.name, self.ndim());
                return Err(Error::argument(OPERATION, what));
            }
            // One sum for each row of the process grid, to which a single member adds: so their order is always the same.
            let grid = &self.distribution.grid()[k..];
            let (rows, me) = (grid[0], self.group.member());
            let place = self.distribution.owners().map_or(Some(me), |mut owners| owners.position(|owner| owner == me));
            let row = place.map_or(0, |place| place / grid[1..].iter().product::<usize>() % rows);
            let mut extents = self.extents.clone();
            extents[k] = rows;
            let name = format!("sums of {}", self.name);
            let parts = GlobalArray::<T, D>::builder(&self.group, extents).name(name.clone()).zeros().create()?;
            let sums = GlobalArray::<T, D::Smaller>::builder(&self.group, self.extents.remove_axis(axis)).name(name).create()?;
            let section = self.enter(OPERATION, &[k as u64], Elements::All)?;
            section.leave(self.add_own(&parts, axis, row))?;
            let section = parts.enter(OPERATION, &[k as u64], Elements::All)?;
            section.leave(sums.add_parts(&parts, axis))?;
            Ok(sums)
        })
    }

    /// Adds what this rank owns to its row of `parts`.
    fn add_own(&self, parts: &Self, axis: Axis, row: usize) -> Result<()> {
        for block in self.own_blocks() {
            let (mut start, mut count) = (block.patch.start().clone(), block.patch.count().clone());
            (start[axis.index()], count[axis.index()]) = (row, 1);
            let mut sums = Array::from_elem(count.clone(), T::ZERO);
            let own = self.at(block.patch).resolve("sum_axis")?;
            own.read_boxes(|part, values| add_lanes(&part.start, values, axis, &mut sums));
            parts.accumulate(Patch::block(start, count), T::Scale::ONE, &sums)?;
        }
        parts.fence()
    }
}

impl<T: Additive, E: Dimension> GlobalArray<T, E> {
    /// Sets what this rank owns to the sums along an axis of `parts`.
    fn add_parts<D: RemoveAxis>(&self, parts: &GlobalArray<T, D>, axis: Axis) -> Result<()> {
        let (own, k) = (self.all(), axis.index());
        let with_axis = |of: &E, value| {
            let mut with = D::zeros(of.ndim() + 1);
            with.slice_mut()[..k].copy_from_slice(&of.slice()[..k]);
            with[k] = value;
            with.slice_mut()[k + 1..].copy_from_slice(&of.slice()[k..]);
            with
        };
        let elements = own.own_boxes(own.edges((buffer_elements::<T>() / parts.extents[k].max(1)).max(1)), |part| {
            let (start, count) = (with_axis(&part.start, 0), with_axis(&part.count, parts.extents[k]));
            let mut values = Array::from_elem(count.clone(), T::ZERO);
            parts.all().read(&start, &count, values.view_mut())?;
            let mut sums = Array::from_elem(with_axis(&part.count, 1), T::ZERO);
            add_lanes(&D::zeros(start.ndim()), values.view(), axis, &mut sums);
            let sums = sums.to_shape(part.count.clone()).expect("an axis of one element goes");
            own.write_box(part, &sums.view());
            Ok(())
        })?;
        self.streamed::<T>(2 * elements);
        Ok(())
    }
}

/// Adds the lanes along an axis of values that begin at `start` to `sums`, where the axis has one element.
fn add_lanes<T: Additive, D: RemoveAxis>(start: &D, values: ArrayView<'_, T, D>, axis: Axis, sums: &mut Array<T, D>) {
    let mut sums = sums.slice_each_axis_mut(|along| {
        let (k, len) = (along.axis.index(), values.len_of(along.axis));
        if along.axis == axis { (..).into() } else { (start[k]..start[k] + len).into() }
    });
    if values.stride_of(axis) == 1 {
        let sum = |sum: T, lane: ArrayView1<'_, T>| lane.iter().fold(sum, |sum, &x| sum.plus(x));
        let lanes = sums.iter_mut().zip(values.lanes(axis));
        return lanes.for_each(|(total, lane)| *total = sum(*total, lane));
    }
    let mut sums = sums.index_axis_mut(axis, 0);
    values.axis_iter(axis).for_each(|row| sums.zip_mut_with(&row, |sum, &x| *sum = sum.plus(x)));
}
