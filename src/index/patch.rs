//! A patch: an arithmetic progression of indices on each axis.

use std::ops::Range;

use ndarray::Dimension;

/// On axis `k` the indices `start[k] + i * step[k]` for `0 <= i < count[k]`.
///
/// The elements are in patch order: position `p` of the patch is the index `start + p * step`. A patch does not refer to an
/// array; [`IntoPatch`](super::IntoPatch) compares it with extents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patch<D> {
    start: D,
    count: D,
    /// `isize as usize`, and 1 where `count <= 1`: there a step has no meaning, and equal patches shall compare equal.
    step: D,
}

impl<D: Dimension> Patch<D> {
    /// All elements of an array of these extents.
    #[inline(always)]
    #[must_use]
    pub fn whole(extents: &D) -> Self {
        Self::block(D::zeros(extents.ndim()), extents.clone())
    }

    /// `count[k]` consecutive indices from `start[k]`.
    ///
    /// # Panics
    /// If the two have different numbers of axes (possible for `IxDyn` only).
    #[inline(always)]
    #[must_use]
    pub fn block(start: D, count: D) -> Self {
        assert_eq!(start.ndim(), count.ndim(), "start and count of a patch have different numbers of axes");
        let mut step = D::zeros(start.ndim());
        step.slice_mut().fill(1);
        Self { start, count, step }
    }

    /// `count[k]` indices from `start[k]`, `step[k] as isize` apart.
    ///
    /// # Panics
    /// If the three have different numbers of axes (possible for `IxDyn` only).
    #[inline(always)]
    #[must_use]
    pub fn new(start: D, count: D, mut step: D) -> Self {
        assert_eq!(start.ndim(), count.ndim(), "start and count of a patch have different numbers of axes");
        assert_eq!(start.ndim(), step.ndim(), "start and step of a patch have different numbers of axes");
        for (step, &count) in step.slice_mut().iter_mut().zip(count.slice()) {
            if count <= 1 {
                *step = 1;
            }
        }
        Self { start, count, step }
    }

    /// The first index on each axis; on an axis of step −1 that is the largest one.
    #[inline(always)]
    #[must_use]
    pub fn start(&self) -> &D {
        &self.start
    }

    /// The number of indices on each axis: the shape of the patch.
    #[inline(always)]
    #[must_use]
    pub fn count(&self) -> &D {
        &self.count
    }

    /// The step from one index to the next on an axis; 1 if there is no next index.
    ///
    /// # Panics
    /// If there is no such axis.
    #[inline(always)]
    #[must_use]
    pub fn step(&self, axis: usize) -> isize {
        self.step.slice()[axis] as isize
    }

    /// The indices on an axis of a patch without steps, such as that of a block: `start..start + count`.
    ///
    /// # Panics
    /// If there is no such axis, or its step is not 1.
    #[inline]
    #[must_use]
    #[track_caller]
    pub fn range(&self, axis: usize) -> Range<usize> {
        assert_eq!(self.step(axis), 1, "axis {axis} of the patch has a step");
        let start = self.start.slice()[axis];
        start..start + self.count.slice()[axis]
    }

    /// [`range`](Self::range) of each axis.
    ///
    /// # Panics
    /// If the step of an axis is not 1.
    pub fn ranges(&self) -> impl Iterator<Item = Range<usize>> {
        (0..self.ndim()).map(|axis| self.range(axis))
    }

    /// Number of elements. Returns `usize::MAX` for a patch with more elements, which fits no array.
    #[inline(always)]
    #[must_use]
    pub fn len(&self) -> usize {
        if self.is_empty() {
            return 0;
        }
        self.count.slice().iter().fold(1, |len, &count| usize::saturating_mul(len, count))
    }

    /// Whether the patch has no elements.
    #[inline(always)]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count.slice().contains(&0)
    }

    /// Whether some element is in both patches of an array. On each axis it takes no longer than the smaller of the steps.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        // The smallest and the largest index, and what lies between neighbors.
        let span = |patch: &Self, axis: usize| {
            let (start, step) = (patch.start[axis], patch.step(axis).unsigned_abs());
            let length = (patch.count[axis] - 1) * step;
            let low = if patch.step(axis) < 0 { start - length } else { start };
            (low, low + length, step)
        };
        let common = |axis: usize| {
            let (fine, coarse) = (span(self, axis), span(other, axis));
            let ((low, high, step), (first, last, stride)) = if fine.2 <= coarse.2 { (fine, coarse) } else { (coarse, fine) };
            let (from, to) = (low.max(first), high.min(last));
            // What the longer steps leave of the shorter repeats after as many as these are long.
            let start = first + from.saturating_sub(first).div_ceil(stride) * stride;
            let mut indices = (0..step).map(|at| start + at * stride).take_while(|&index| index <= to);
            from <= to && indices.any(|index| (index - low) % step == 0)
        };
        !self.is_empty() && !other.is_empty() && self.ndim() == other.ndim() && (0..self.ndim()).all(common)
    }

    /// Whether all indices lie inside the extents.
    #[must_use]
    pub fn lies_inside(&self, extents: &D) -> bool {
        let axis = |k: usize| {
            let (start, count, extent) = (self.start.slice()[k], self.count.slice()[k], extents.slice()[k]);
            let reach = isize::try_from(count).ok().and_then(|count| (count - 1).checked_mul(self.step(k)));
            let last = reach.and_then(|reach| start.checked_add_signed(reach));
            count == 0 || start < extent && last.is_some_and(|last| last < extent)
        };
        self.ndim() == extents.ndim() && (self.is_empty() || (0..self.ndim()).all(axis))
    }

    /// Whether the patch has exactly one element.
    #[inline(always)]
    #[must_use]
    pub fn is_one(&self) -> bool {
        self.count.slice().iter().all(|&count| count == 1)
    }

    /// Whether the indices on every axis are consecutive and ascending.
    #[inline(always)]
    #[must_use]
    pub fn is_unit_step(&self) -> bool {
        self.step.slice().iter().all(|&step| step == 1)
    }

    /// Number of axes.
    #[inline(always)]
    #[must_use]
    pub fn ndim(&self) -> usize {
        self.start.ndim()
    }
}

#[cfg(test)]
mod tests {
    use ndarray::{Dim, Ix0, Ix2, IxDyn};

    use super::*;

    #[test]
    fn len_is_the_product_of_counts() {
        assert_eq!(Patch::whole(&Dim([3, 4])).len(), 12);
        assert_eq!(Patch::whole(&Ix0()).len(), 1);
        assert_eq!(Patch::whole(&Dim([3, 0])).len(), 0);
        assert!(Patch::whole(&Dim([3, 0])).is_empty());
        assert_eq!(Patch::whole(&Dim([usize::MAX, 2])).len(), usize::MAX);
        assert_eq!(Patch::whole(&Dim([usize::MAX, usize::MAX, 0])).len(), 0);
    }

    #[test]
    fn one_element_is_one() {
        assert!(Patch::block(Dim([3, 4]), Dim([1, 1])).is_one() && Patch::whole(&Ix0()).is_one());
        assert!([[1, 2], [2, 1], [2, 2], [0, 1]].iter().all(|&count| !Patch::block(Dim([3, 4]), Dim(count)).is_one()));
    }

    #[test]
    fn a_patch_lies_inside_if_all_its_indices_do() {
        let small = || {
            (0..5_usize)
                .flat_map(|start| (0..4_usize).flat_map(move |count| (-3..=3_isize).map(move |step| (start, count, step))))
        };
        let inside = |(start, count, step): (usize, usize, isize), extent: isize| {
            (0..count as isize).all(|k| (0..extent).contains(&(start as isize + k * step)))
        };
        for (a, extent) in small().flat_map(|a| (0..6).map(move |extent| (a, extent))) {
            let axis = Patch::new(Dim([a.0]), Dim([a.1]), Dim([a.2 as usize]));
            assert_eq!(axis.lies_inside(&Dim([extent as usize])), inside(a, extent), "{axis:?} in {extent}");
            // Without an element on one axis there is none on the other.
            let b = (2, a.1 % 3, 1);
            let plane = Patch::new(Dim([a.0, b.0]), Dim([a.1, b.1]), Dim([a.2 as usize, 1]));
            let expected = a.1 == 0 || b.1 == 0 || inside(a, extent) && inside(b, 3);
            assert_eq!(plane.lies_inside(&Dim([extent as usize, 3])), expected, "{plane:?} in {extent} times 3");
        }
        for start in [1, 10] {
            let far = Patch::new(Dim([start]), Dim([usize::MAX]), Dim([2]));
            assert!(!far.lies_inside(&Dim([20])) && !far.lies_inside(&Dim([isize::MAX as usize])));
        }
        assert!(!Patch::block(IxDyn(&[0]), IxDyn(&[1])).lies_inside(&IxDyn(&[3, 3])));
    }

    #[test]
    fn a_step_without_a_second_index_is_one() {
        let down = -2_isize as usize;
        let patch: Patch<Ix2> = Patch::new(Dim([5, 7]), Dim([1, 3]), Dim([down, down]));
        assert_eq!((patch.step(0), patch.step(1)), (1, -2));
        assert!(!patch.is_unit_step());
        assert!(Patch::new(Dim([5]), Dim([1]), Dim([down])).is_unit_step());
    }

    #[test]
    fn patches_overlap_where_they_share_an_index() {
        let all = || {
            let axes =
                (0..7).flat_map(|start| (0..4).flat_map(move |count| [1, 2, 3, -1, -2].map(move |step| (start, count, step))));
            axes.filter(|&(start, count, step): &(usize, usize, isize)| start as isize + step * (count as isize - 1).max(0) >= 0)
        };
        let indices = |(start, count, step): (usize, usize, isize)| (0..count as isize).map(move |at| start as isize + at * step);
        let patch = |(start, count, step): (usize, usize, isize)| Patch::new(Dim([start]), Dim([count]), Dim([step as usize]));
        for a in all() {
            for b in all() {
                let share = indices(a).any(|index| indices(b).any(|other| other == index));
                assert_eq!(patch(a).overlaps(&patch(b)), share, "{a:?} {b:?}");
            }
        }
    }
}
