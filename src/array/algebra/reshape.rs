//! Copies into another shape.

use ndarray::{ArrayView, ArrayViewMut, Dimension, IntoDimension};

use super::{Elements, IntoOperand, Operand, PatchMut, buffer_elements, copy::TRANSFER};
use crate::{
    array::GlobalArray,
    calls::located,
    element::Element,
    error::{Error, Result},
};

const OPERATION: &str = "assign_reshaped";

/// # Algebra, copies into another shape
impl<T: Element, D: Dimension> GlobalArray<T, D> {
    /// Copies an array or a patch with as many elements and another shape, also another number of axes: element k of `self` in row-major
    /// order is element k of `source`. Collective; any distributions.
    ///
    /// # Errors
    /// Another number of elements; other groups; a patch outside its array; the errors of [`fill`](Self::fill).
    ///
    /// # Examples
    /// ```
    /// use global_arrays::prelude::*;
    /// # fn main() -> Result<(), Error> {
    /// Launch::new().ranks(2).network("threads").run(|job| {
    ///     let matrix = GlobalArray2::<usize>::from_fn(job, [3, 4], |(i, j)| 4 * i + j)?;
    ///     let mut list = GlobalArray1::<usize>::zeros(job, [8])?;
    ///     list.assign_reshaped(matrix.at(s![1.., ..]))?;
    ///     assert_eq!(list.get(..)?.to_vec(), [4, 5, 6, 7, 8, 9, 10, 11]);
    ///     job.sync()
    /// })
    /// # }
    /// ```
    ///
    /// # Source
    /// GA: `NGA_Copy_patch`, where the order is Fortran's; NumPy's `reshape`.
    #[doc(alias = "reshape")]
    #[track_caller]
    pub fn assign_reshaped<E: Dimension>(&mut self, source: impl IntoOperand<T, E>) -> Result<()> {
        located(move || self.all().assign_reshaped(&source.into_operand().resolve(OPERATION)?))
    }
}

impl<T: Element, D: Dimension, S: Dimension> PatchMut<'_, T, D, S> {
    /// Copies an operand with as many elements and another shape; see [`GlobalArray::assign_reshaped`]. Collective.
    ///
    /// # Errors
    /// A patch outside its array; the errors of that method.
    #[track_caller]
    pub fn assign_reshaped<E: Dimension>(&mut self, source: impl IntoOperand<T, E>) -> Result<()> {
        located(move || self.resolve(OPERATION)?.assign_reshaped(&source.into_operand().resolve(OPERATION)?))
    }
}

impl<T: Element, D: Dimension, S: Dimension> Operand<'_, T, D, S> {
    fn assign_reshaped<E: Dimension, R: Dimension>(&self, source: &Operand<'_, T, E, R>) -> Result<()> {
        self.array.check_members(OPERATION, source.array)?;
        let (shape, from) = (self.shape(), source.shape());
        if shape.size() != from.size() {
            let what = format!("{source} has {} elements, {self} has {}", from.size(), shape.size());
            return Err(Error::Mismatch { operation: OPERATION.into(), what });
        }
        let section = self.array.enter(OPERATION, &[self.fingerprint(), source.fingerprint()], Elements::All)?;
        section.leave(self.fetch_reshaped(&shape, source))
    }

    /// Writes what this rank owns. A box lies in the buffer in row-major order, so that what is contiguous in both shapes is fetched at
    /// once.
    fn fetch_reshaped<E: Dimension, R: Dimension>(&self, shape: &D, source: &Operand<'_, T, E, R>) -> Result<()> {
        // Over a network, long enough that not its latency sets the pace.
        let far = TRANSFER / size_of::<T>().max(1);
        let room = if source.array.group.inner.direct { buffer_elements::<T>() } else { far.max(1) };
        let mut buffer = vec![T::zeroed(); room.min(shape.size())];
        let most = buffer.len();
        let edges = |count: &D| {
            let (mut edges, mut room) = (count.clone(), most);
            for edge in edges.slice_mut().iter_mut().rev() {
                *edge = (*edge).min(room).max(1);
                room /= *edge;
            }
            edges
        };
        let from = source.shape();
        let elements = self.own_boxes(edges, |own| {
            let values = &mut buffer[..own.count.size()];
            let mut rest = &mut *values;
            // Axes up to the last that the box does not cover: it is contiguous along the others, and along that one.
            let split = (0..shape.ndim()).rev().find(|&axis| own.count[axis] != shape[axis]).unwrap_or(0);
            let mut outer = own.count.clone();
            outer.slice_mut()[split.min(shape.ndim())..].fill(1);
            let run = own.count.slice()[split..].iter().product();
            for at in ndarray::indices(outer) {
                let at = at.into_dimension();
                let index = at.slice().iter().zip(own.start.slice()).map(|(at, start)| at + start);
                let first = index.zip(shape.slice()).fold(0, |place, (index, n)| place * n + index);
                windows(&from, first, run, |start, count| {
                    let (here, behind) = std::mem::take(&mut rest).split_at_mut(count.size());
                    rest = behind;
                    let view = ArrayViewMut::from_shape(count.clone(), here).expect("a buffer of the window's length");
                    source.read(start, count, view)
                })?;
            }
            let view = ArrayView::from_shape(own.count.clone(), values).expect("a buffer of the box's length");
            self.write_box(own, &view);
            Ok(())
        })?;
        self.array.streamed::<T>(2 * elements);
        Ok(())
    }
}

/// Cuts `len` elements from element `first` on, in row-major order, into boxes: `f` gets first index and shape of each, in order.
fn windows<D: Dimension>(shape: &D, mut first: usize, mut len: usize, mut f: impl FnMut(&D, &D) -> Result<()>) -> Result<()> {
    let axes = shape.ndim();
    while len > 0 {
        let (mut start, mut count, mut rest) = (D::zeros(axes), shape.clone(), first);
        for axis in (0..axes).rev() {
            (start[axis], rest) = (rest % shape[axis], rest / shape[axis]);
        }
        // The slowest axis along which whole rows follow.
        let (mut row, mut at) = (1, axes.saturating_sub(1));
        while at > 0 && start[at] == 0 && row * shape[at] <= len {
            row *= shape[at];
            at -= 1;
        }
        count.slice_mut()[..at].fill(1);
        if let Some(count) = count.slice_mut().get_mut(at) {
            *count = (len / row).min(*count - start[at]);
        }
        let taken = count.size();
        f(&start, &count)?;
        (first, len) = (first + taken, len - taken);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use ndarray::{Array3, Dim, Ix0};

    use super::*;

    #[test]
    fn windows_cover_a_range_in_order() -> Result<()> {
        let (shape, numbers) = (Dim([3, 4, 5]), Array3::from_shape_vec([3, 4, 5], (0..60).collect()).unwrap());
        for first in 0..60 {
            for len in 0..=60 - first {
                let (mut seen, mut boxes) = (Vec::<usize>::new(), 0);
                windows(&shape, first, len, |start, count| {
                    let [i, j, k] = [0, 1, 2].map(|axis| start[axis]..start[axis] + count[axis]);
                    seen.extend(numbers.slice(ndarray::s![i, j, k]));
                    boxes += 1;
                    Ok(())
                })?;
                assert_eq!(seen, (first..first + len).collect::<Vec<_>>());
                assert!(boxes <= 5, "{boxes} boxes for {len} elements from {first}");
            }
        }
        let mut boxes = 0;
        windows(&Ix0(), 0, 1, |_, _| {
            boxes += 1;
            Ok(())
        })?;
        assert_eq!(boxes, 1);
        Ok(())
    }
}
