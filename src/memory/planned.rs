//! Strided copies that are planned once and run often.
//!
//! A plan (bounds, loops, levels) costs as much as copying some hundred bytes. A halo moves the same elements again and again, so its
//! copies are planned when the array is made. A plan holds offsets, no addresses: each run gets the parts, and compares them with those
//! of the plan.
#![allow(unsafe_code)]

use ndarray::Dimension;

use super::{
    kernels::{self, Stride},
    part::Part,
};
use crate::{element::Element, index::Loops};

/// A strided copy into one part, from the same part or from another one.
#[derive(Clone, Debug)]
pub(crate) struct PlannedCopy {
    /// Byte offsets of the first elements, and bytes of the parts up to which elements are touched.
    to: usize,
    from: usize,
    to_end: usize,
    from_end: usize,
    levels: Box<[Stride]>,
    run: usize,
    /// Both boxes lie in one part.
    within: bool,
}

impl PlannedCopy {
    /// Copies a box of one part into a box of another part. Each side: first element and strides, in elements.
    pub(crate) fn between<T: Element, D: Dimension>(to: (usize, &D), from: (usize, &D), counts: &D) -> Self {
        Self::new::<T, D>(to, from, counts, false)
    }

    /// Copies a box of a part into another box of it; `to` and `from` are indices of the part's axes.
    ///
    /// # Panics
    /// If the boxes overlap.
    pub(crate) fn within<T: Element, D: Dimension>(strides: &D, to: &D, from: &D, counts: &D) -> Self {
        let apart = |axis: usize| to[axis].abs_diff(from[axis]) >= counts[axis];
        assert!((0..to.ndim()).any(apart), "a box of a part copied onto itself");
        let at = |index: &D| (0..index.ndim()).map(|axis| index[axis] * strides[axis]).sum();
        Self::new::<T, D>((at(to), strides), (at(from), strides), counts, true)
    }

    fn new<T: Element, D: Dimension>(
        (to, to_strides): (usize, &D),
        (from, from_strides): (usize, &D),
        counts: &D,
        within: bool,
    ) -> Self {
        let width = size_of::<T>();
        let end = |at: usize, strides: &D| {
            let reach = |axis: usize| {
                assert!(counts[axis] > 0, "a planned copy moves something");
                (counts[axis] - 1) * strides[axis]
            };
            (at + (0..counts.ndim()).map(reach).sum::<usize>() + 1) * width
        };
        // Read in the order of the source, so that what is fetched of a line is used at once.
        let loops = Loops::new(
            counts.slice(),
            bytemuck::cast_slice(from_strides.slice()),
            bytemuck::cast_slice(to_strides.slice()),
            width,
        );
        let levels = loops.levels().iter().map(|level| Stride { count: level.count, dst: level.local, src: level.remote });
        PlannedCopy {
            to: to * width,
            from: from * width,
            to_end: end(to, to_strides),
            from_end: end(from, from_strides),
            levels: levels.collect(),
            run: loops.run(),
            within,
        }
    }

    /// Runs the copy.
    ///
    /// # Panics
    /// If a part is shorter than the plan reaches, or the parts are not one or two as the plan was made for.
    #[inline]
    pub(crate) fn run<T: Element>(&self, to: &Part<'_, T>, from: &Part<'_, T>) {
        let (to_bytes, from_bytes) = (to.bytes(), from.bytes());
        assert!(self.to_end <= to_bytes.len() && self.from_end <= from_bytes.len(), "a plan for longer parts");
        let apart = to_bytes.end <= from_bytes.start || from_bytes.end <= to_bytes.start;
        assert!(if self.within { to_bytes.start == from_bytes.start } else { apart }, "a plan for other parts");
        let (dst, src) = (to.start().wrapping_add(self.to), from.start().wrapping_add(self.from));
        // SAFETY: strides are not negative, so all bytes lie between the first elements and the ends, which lie inside the parts:
        // mapped, as long as the parts live. No reference to them is given out but by epochs, which exclude all else. What is
        // written and read is disjoint: two parts that do not overlap, or two boxes of one part, which `within` has compared.
        unsafe { kernels::copy_strided(dst, src, &self.levels, self.run) }
    }
}

#[cfg(test)]
mod tests {
    use ndarray::{Array2, Dim, s};

    use super::*;
    use crate::memory::segments::{Bases, Segments};
    use std::{ptr::NonNull, sync::atomic::AtomicU32};

    /// Two segments in private memory.
    fn segments<'m>(memory: &'m mut [Vec<u64>; 2], over: &'m AtomicU32) -> Segments {
        let len = memory[0].len() * 8;
        Segments::new(Bases::table(memory.iter_mut().map(|m| NonNull::new(m.as_mut_ptr().cast()))), len, over, false)
    }

    #[test]
    fn boxes_move_within_a_part_and_between_parts() {
        let over = AtomicU32::new(0);
        let mut memory = [(0..48).collect::<Vec<u64>>(), (100..148).collect()];
        let segments = segments(&mut memory, &over);
        let (first, second) = (segments.part::<u64>(0, 0, 48).unwrap(), segments.part::<u64>(1, 0, 48).unwrap());
        let strides = Dim([8, 1]);
        PlannedCopy::within::<u64, _>(&strides, &Dim([1, 0]), &Dim([1, 6]), &Dim([4, 2])).run(&first, &first);
        PlannedCopy::between::<u64, _>((2, &strides), (17, &Dim([6, 1])), &Dim([1, 4])).run(&first, &second);
        let mut expected = Array2::from_shape_vec((6, 8), (0..48).collect()).unwrap();
        let wrapped = expected.slice(s![1..5, 6..8]).to_owned();
        expected.slice_mut(s![1..5, 0..2]).assign(&wrapped);
        expected.slice_mut(s![0, 2..6]).assign(&ndarray::aview1(&[117, 118, 119, 120]));
        let got: Vec<u64> = (0..48).map(|at| first.load(at)).collect();
        assert_eq!(got, expected.into_raw_vec_and_offset().0);
    }

    #[test]
    #[should_panic(expected = "copied onto itself")]
    fn boxes_that_overlap_are_refused() {
        let _ = PlannedCopy::within::<u64, _>(&Dim([8, 1]), &Dim([1, 0]), &Dim([2, 1]), &Dim([4, 2]));
    }

    #[test]
    #[should_panic(expected = "longer parts")]
    fn a_part_must_be_as_long_as_the_plan_reaches() {
        let over = AtomicU32::new(0);
        let mut memory = [vec![0; 48], vec![0; 48]];
        let segments = segments(&mut memory, &over);
        let (first, second) = (segments.part::<u64>(0, 0, 48).unwrap(), segments.part::<u64>(1, 0, 40).unwrap());
        PlannedCopy::between::<u64, _>((0, &Dim([8, 1])), (0, &Dim([8, 1])), &Dim([6, 8])).run(&first, &second);
    }
}
