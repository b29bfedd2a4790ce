//! Patches with steps, cut into boxes that files can serve.

use ndarray::{ArrayBase, Axis, Dimension, IxDyn, RawData};

use crate::{
    file::erased::{Area, axes_of},
    index::{Patch, Selection},
};

/// A patch in the order of a file, with ascending indices.
#[derive(Clone, Debug)]
pub(super) struct Section {
    start: Vec<usize>,
    count: Vec<usize>,
    step: Vec<usize>,
}

impl Section {
    pub(super) fn of<D: Dimension>(patch: &Patch<D>, is_reversed: bool) -> Section {
        let lowest = |axis: usize| {
            let (start, count, step) = (patch.start()[axis], patch.count()[axis], patch.step(axis));
            if step < 0 { start - (count - 1) * step.unsigned_abs() } else { start }
        };
        let start: Vec<usize> = (0..patch.ndim()).map(lowest).collect();
        let step: Vec<usize> = (0..patch.ndim()).map(|axis| patch.step(axis).unsigned_abs()).collect();
        Section {
            start: axes_of(&start, is_reversed),
            count: axes_of(patch.count().slice(), is_reversed),
            step: axes_of(&step, is_reversed),
        }
    }

    /// The section with all elements between its own along the last axis, and the step to its own. It is left as it is if these are more than `most`.
    pub(super) fn filled_up(mut self, most: usize) -> (Section, usize) {
        let (Some(step), Some(count)) = (self.step.last_mut(), self.count.last_mut()) else { return (self, 1) };
        let filled = count.saturating_sub(1).saturating_mul(*step).saturating_add(1);
        if *step == 1 || filled > most {
            return (self, 1);
        }
        *count = filled;
        let every = std::mem::replace(step, 1);
        (self, every)
    }

    /// Calls `f` with boxes of at most `most` elements that cover the section, in the order of the file: the positions in the section, and where
    /// they are in the file.
    pub(super) fn for_each_box<E>(&self, most: usize, f: &mut impl FnMut(&Area, &Area) -> Result<(), E>) -> Result<(), E> {
        let whole = Area { start: vec![0; self.count.len()], count: self.count.clone() };
        self.cut(&whole, most.max(1), f)
    }

    fn cut<E>(&self, part: &Area, most: usize, f: &mut impl FnMut(&Area, &Area) -> Result<(), E>) -> Result<(), E> {
        let len: usize = part.count.iter().product();
        if len == 0 {
            return Ok(());
        }
        let has_steps = part.count.iter().zip(&self.step).any(|(&count, &step)| count > 1 && step > 1);
        let axis = part.count.iter().position(|&count| count > 1);
        let Some(axis) = axis.filter(|_| has_steps || len > most) else {
            let start = (0..part.start.len()).map(|k| self.start[k] + part.start[k] * self.step[k]).collect();
            return f(part, &Area { start, count: part.count.clone() });
        };
        let rows = if has_steps { 1 } else { (most / (len / part.count[axis])).max(1) };
        let end = part.start[axis] + part.count[axis];
        let mut piece = part.clone();
        while piece.start[axis] < end {
            piece.count[axis] = rows.min(end - piece.start[axis]);
            self.cut(&piece, most, f)?;
            piece.start[axis] += rows;
        }
        Ok(())
    }
}

/// A buffer over all axes of a patch, in the order of the file and with ascending indices.
pub(super) fn in_file<S: RawData, Out: Dimension, D: Dimension>(
    view: ArrayBase<S, Out>,
    selection: &Selection<D>,
    is_reversed: bool,
) -> ArrayBase<S, IxDyn> {
    let mut view = view.into_dyn();
    for axis in 0..selection.patch.ndim() {
        if !selection.kept.contains(axis) {
            view = view.insert_axis(Axis(axis));
        }
        if selection.patch.step(axis) < 0 {
            view.invert_axis(Axis(axis));
        }
    }
    if is_reversed { view.reversed_axes() } else { view }
}

#[cfg(test)]
mod tests {
    use ndarray::{ArrayD, Ix3, s};
    use proptest::prelude::*;

    use super::*;
    use crate::index::IntoPatch;

    proptest! {
        #[test]
        fn boxes_cover_a_section_once(
            starts in prop::collection::vec(0_usize..5, 3),
            ends in prop::collection::vec(0_usize..6, 3),
            steps in prop::collection::vec(prop::sample::select(vec![-3_isize, -1, 1, 2]), 3),
            most in 1_usize..40,
            is_reversed: bool
        ) {
            let shape = if is_reversed { [7, 6, 5] } else { [5, 6, 7] };
            let whole = ArrayD::from_shape_fn(IxDyn(&shape), |i| 100 * i[0] + 10 * i[1] + i[2]);
            let slice = |k: usize| ndarray::Slice::new(starts[k] as isize, Some(ends[k].clamp(starts[k], 5) as isize), steps[k]);
            let patch = s![slice(0), slice(1), slice(2)];
            let array = if is_reversed { whole.view().reversed_axes() } else { whole.view() };
            let array = array.into_dimensionality::<Ix3>().unwrap();
            let expected = array.slice(patch);
            let selection = patch.into_patch(&array.raw_dim()).unwrap();
            let mut found = ndarray::Array3::from_elem(expected.dim(), usize::MAX);
            let mut view = in_file(found.view_mut(), &selection, is_reversed);
            let result: Result<(), ()> = Section::of(&selection.patch, is_reversed).for_each_box(most, &mut |at, there| {
                assert!(there.count.iter().product::<usize>() <= most);
                let range = |Axis(axis)| ndarray::Slice::from(at.start[axis]..at.start[axis] + at.count[axis]);
                for (index, to) in view.slice_each_axis_mut(|axis| range(axis.axis)).indexed_iter_mut() {
                    assert_eq!(*to, usize::MAX);
                    *to = (0..3).fold(0, |sum, k| 10 * sum + there.start[k] + index[k]);
                }
                Ok(())
            });
            result.unwrap();
            prop_assert_eq!(found.view(), expected);
        }
    }
}
