//! Which rows and columns of a patch a member owns, and where in its part.

use std::ops::Range;

use ndarray::{Dim, Ix2, Slice};

use crate::{distribution::Distribution, index::Patch};

/// Positions of one axis of a patch that lie one after another in the member's part, by equal steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Span {
    /// Local index of the first.
    first: usize,
    step: isize,
    /// Ranges of positions in the patch; blocks of a block-cyclic axis are runs of one span.
    runs: Vec<Range<usize>>,
    len: usize,
}

impl Span {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The local indices.
    pub(super) fn local(&self) -> Slice {
        let (step, reach) = (self.step, (self.len as isize - 1) * self.step);
        let (low, high) = (self.first as isize + reach.min(0), self.first as isize + reach.max(0));
        Slice::new(low, Some(high + 1), step)
    }

    /// The positions in the patch of elements `part` of the span: ranges of positions, each with its place in `part`.
    pub(super) fn cut(&self, part: &Range<usize>) -> impl Iterator<Item = (usize, Range<usize>)> {
        let part = part.clone();
        let mut before = 0;
        self.runs.iter().filter_map(move |run| {
            let (start, end) = (before.max(part.start), (before + run.len()).min(part.end));
            let positions = start.wrapping_sub(before).wrapping_add(run.start)..end.wrapping_sub(before).wrapping_add(run.start);
            before += run.len();
            (start < end).then(|| (start - part.start, positions))
        })
    }

    /// Appends a run, if it continues the span in memory.
    fn join(&mut self, run: &Range<usize>, first: usize, step: isize) -> bool {
        let next = |step: isize| self.first.checked_add_signed(self.len as isize * step) == Some(first);
        let joined = match (self.len, run.len()) {
            (1, 1) => first as isize - self.first as isize,
            (1, _) => step,
            _ => self.step,
        };
        let continues = joined != 0 && next(joined) && (run.len() == 1 || step == joined);
        if continues {
            self.step = joined;
            self.len += run.len();
            match self.runs.last_mut() {
                Some(last) if last.end == run.start => last.end = run.end,
                _ => self.runs.push(run.clone()),
            }
        }
        continues
    }
}

/// Rows and columns of a patch that a member owns; it owns the product of both. `None` if it owns nothing at all.
pub(super) fn owned(distribution: &Distribution<Ix2>, patch: &Patch<Ix2>, member: usize) -> Option<[Vec<Span>; 2]> {
    // One index of each axis that is the member's, with local index 0.
    let corner = distribution.blocks(member).next()?.region.start().to_owned();
    let strides = distribution.local_strides(member);
    // Ghost cells stand before it.
    let origin = distribution.locate(&corner).offset;
    Some([0, 1].map(|axis| {
        let (mut start, mut count, mut step) = (corner, Dim([1, 1]), Dim([1, 1]));
        (start[axis], count[axis], step[axis]) = (patch.start()[axis], patch.count()[axis], patch.step(axis) as usize);
        let line = Patch::new(start, count, step);
        let mut spans: Vec<Span> = Vec::new();
        for piece in distribution.pieces(&line).filter(|piece| piece.member == member) {
            let run = piece.start[axis]..piece.start[axis] + piece.count[axis];
            let (first, step) = ((piece.offset - origin) / strides[axis], piece.strides[axis] as isize / strides[axis] as isize);
            if !spans.last_mut().is_some_and(|span| span.join(&run, first, step)) {
                spans.push(Span { first, step, len: run.len(), runs: vec![run] });
            }
        }
        spans
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{distribution::Order, index::IntoPatch};
    use ndarray::s;

    /// Every element of a patch is in the spans of its owner, at its place.
    fn check(distribution: &Distribution<Ix2>, patch: &Patch<Ix2>) {
        let mut seen = 0;
        for member in 0..distribution.members() {
            let strides = distribution.local_strides(member);
            let shape = distribution.local_shape(member);
            let Some(spans) = owned(distribution, patch, member) else { continue };
            let places = [0, 1].map(|axis| {
                let mut places = Vec::new();
                for span in &spans[axis] {
                    let mut local: Vec<usize> = (0..shape[axis]).collect();
                    local = ndarray::aview1(&local).slice_axis(ndarray::Axis(0), span.local()).to_vec();
                    let positions: Vec<usize> = span.cut(&(0..span.len())).flat_map(|(_, run)| run).collect();
                    assert_eq!(local.len(), positions.len());
                    let half = span.len() / 2..span.len();
                    for (at, run) in span.cut(&half) {
                        assert_eq!(positions[half.start + at..][..run.len()], run.collect::<Vec<_>>());
                    }
                    places.extend(positions.into_iter().zip(local));
                }
                places
            });
            for &(row, local_row) in &places[0] {
                for &(column, local_column) in &places[1] {
                    let index = |axis: usize, at: usize| (patch.start()[axis] as isize + at as isize * patch.step(axis)) as usize;
                    let location = distribution.locate(&Dim([index(0, row), index(1, column)]));
                    let offset = local_row * strides[0] + local_column * strides[1];
                    assert_eq!((location.member, location.offset), (member, offset), "{distribution:?} {patch:?}");
                    seen += 1;
                }
            }
        }
        assert_eq!(seen, patch.len());
    }

    #[test]
    fn owners_find_what_they_own() {
        let extents = Dim([17, 23]);
        for order in [Order::RowMajor, Order::ColumnMajor] {
            let all = [
                Distribution::block(&extents, 6, None, order).unwrap(),
                Distribution::block_cyclic(&extents, &[2, 3], 6, Some(&[2, 3]), order).unwrap(),
                Distribution::block_cyclic(&extents, &[1, 1], 5, Some(&[2, 2]), order).unwrap(),
                Distribution::irregular(&extents, &[vec![0, 4, 4, 9], vec![0, 20]], 8, order).unwrap(),
            ];
            for distribution in &all {
                check(distribution, &Patch::whole(&extents));
                for slice in
                    [s![3..15, 1..22], s![..;-1, ..;2], s![1..;4, ..;-3], s![2..3, ..;6], s![5..5, ..], s![..;-5, 7..;12]]
                {
                    check(distribution, &slice.into_patch(&extents).unwrap().patch);
                }
            }
        }
    }

    #[test]
    fn blocks_dealt_round_are_one_span() {
        let distribution = Distribution::block_cyclic(&Dim([64, 64]), &[4, 4], 4, Some(&[2, 2]), Order::RowMajor).unwrap();
        for member in 0..4 {
            let spans = owned(&distribution, &Patch::whole(&Dim([64, 64])), member).unwrap();
            assert_eq!(spans.map(|spans| spans.len()), [1, 1]);
        }
    }
}
