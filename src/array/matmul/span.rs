//! Which rows and columns of a patch a member owns, and where in its part.

use std::ops::Range;

use ndarray::{ArrayViewMut2, Dim, Ix2, Slice, s};

use crate::{array::OwnedPartMut, distribution::Distribution, element::Element, index::Patch};

/// Positions of one axis of a patch whose local indices have equal steps: where a part is a dense array, they lie so in it.
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

    /// The local indices of some elements of the span, at least one, counted from `origin`.
    fn local(&self, part: &Range<usize>, origin: usize) -> Slice {
        let (step, reach) = (self.step, (part.len() as isize - 1) * self.step);
        let first = self.first as isize + part.start as isize * step - origin as isize;
        Slice::new(first + reach.min(0), Some(first + reach.max(0) + 1), step)
    }

    /// Which of some elements of the span have local indices in `local`.
    fn among(&self, part: &Range<usize>, local: &Range<usize>) -> Range<usize> {
        // Elements before the first local index that is `at` steps away, never beyond either end.
        let before = |distance: isize| (distance.max(0) as usize).div_ceil(self.step.unsigned_abs());
        let (first, low, high) = (self.first as isize, local.start as isize, local.end as isize);
        let (start, end) = if self.step > 0 { (low - first, high - first) } else { (first - (high - 1), first - (low - 1)) };
        let start = before(start).max(part.start);
        start..before(end).min(part.end).max(start)
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
    let corner = distribution.blocks(member).next()?.patch.start().to_owned();
    Some([0, 1].map(|axis| {
        let local = |position: usize| {
            let index = patch.start()[axis].wrapping_add_signed(position as isize * patch.step(axis));
            distribution.local_index(axis, index)
        };
        let (mut start, mut count, mut step) = (corner, Dim([1, 1]), Dim([1, 1]));
        (start[axis], count[axis], step[axis]) = (patch.start()[axis], patch.count()[axis], patch.step(axis) as usize);
        let line = Patch::new(start, count, step);
        let mut spans: Vec<Span> = Vec::new();
        for piece in distribution.pieces(&line).filter(|piece| piece.member == member) {
            let run = piece.start[axis]..piece.start[axis] + piece.count[axis];
            let first = local(run.start);
            let step = if run.len() > 1 { local(run.start + 1) as isize - first as isize } else { 1 };
            if !spans.last_mut().is_some_and(|span| span.join(&run, first, step)) {
                spans.push(Span { first, step, len: run.len(), runs: vec![run] });
            }
        }
        spans
    }))
}

/// Calls `f` with the dense matrices that make up some rows and columns of a part, given by elements of two spans, and with the rows
/// and columns of each, counted from the first. A part is one matrix, or one for each tile.
pub(super) fn for_each_matrix<T: Element>(
    part: &mut OwnedPartMut<'_, T, Ix2>,
    [rows, columns]: [&Span; 2],
    [i, j]: [Range<usize>; 2],
    mut f: impl FnMut(ArrayViewMut2<'_, T>, Range<usize>, Range<usize>),
) {
    if i.is_empty() || j.is_empty() {
        return;
    }
    if !part.distribution().is_tiled() {
        let place = s![rows.local(&i, 0), columns.local(&j, 0)];
        return f(part.view_mut().slice_mut(place), 0..i.len(), 0..j.len());
    }
    for tile in part.blocks() {
        let (start, count) = (tile.local_start, tile.patch.count());
        let among = |span: &Span, part: &Range<usize>, axis: usize| span.among(part, &(start[axis]..start[axis] + count[axis]));
        let (own_i, own_j) = (among(rows, &i, 0), among(columns, &j, 1));
        if !own_i.is_empty() && !own_j.is_empty() {
            let place = s![rows.local(&own_i, start[0]), columns.local(&own_j, start[1])];
            let from = |own: Range<usize>, first: usize| own.start - first..own.end - first;
            f(part.block_mut(&tile).slice_mut(place), from(own_i, i.start), from(own_j, j.start));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        distribution::{Boundary, Ghosts, Order},
        index::IntoPatch,
    };

    /// Every element of a patch is in the spans of its owner, at its place.
    fn check(distribution: &Distribution<Ix2>, patch: &Patch<Ix2>) {
        let mut seen = 0;
        for member in 0..distribution.members() {
            let shape = distribution.local_shape(member);
            // The block of the part with two local indices, and the place in it.
            let offset = |local: [usize; 2]| {
                let holds =
                    |axis: usize, start: Ix2, count: &Ix2| (start[axis]..start[axis] + count[axis]).contains(&local[axis]);
                let mut blocks = distribution.blocks(member);
                let block = blocks.find(|b| [0, 1].into_iter().all(|axis| holds(axis, b.local_start, b.patch.count()))).unwrap();
                (0..2).fold(block.offset, |at, axis| at + (local[axis] - block.local_start[axis]) * block.strides[axis])
            };
            let Some(spans) = owned(distribution, patch, member) else { continue };
            let places = [0, 1].map(|axis| {
                let mut places = Vec::new();
                for span in &spans[axis] {
                    let mut local: Vec<usize> = (0..shape[axis]).collect();
                    local = ndarray::aview1(&local).slice_axis(ndarray::Axis(0), span.local(&(0..span.len()), 0)).to_vec();
                    for low in 0..shape[axis] {
                        for high in low..=shape[axis] {
                            let expected = local.iter().enumerate().filter(|(_, at)| (low..high).contains(*at)).map(|(k, _)| k);
                            assert!(span.among(&(0..span.len()), &(low..high)).eq(expected), "{low}..{high} of {span:?}");
                        }
                    }
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
                    let place = (member, offset([local_row, local_column]));
                    assert_eq!((location.member, location.offset), place, "{distribution:?} {patch:?}");
                    seen += 1;
                }
            }
        }
        assert_eq!(seen, patch.len());
    }

    #[test]
    fn owners_find_what_they_own() {
        let extents = Dim([17, 23]);
        let ghosts = Ghosts { widths: Dim([2, 1]), boundaries: vec![Boundary::Open; 2], corners: true };
        for order in [Order::RowMajor, Order::ColumnMajor] {
            let all = [
                Distribution::block(&extents, 6, None, order).unwrap(),
                Distribution::block_cyclic(&extents, &[2, 3], 6, Some(&[2, 3]), order).unwrap(),
                Distribution::block_cyclic(&extents, &[1, 1], 5, Some(&[2, 2]), order).unwrap(),
                Distribution::irregular(&extents, &[vec![0, 4, 4, 9], vec![0, 20]], 8, order).unwrap(),
                Distribution::tiled(&extents, &[3, 4], 6, Some(&[2, 3]), order).unwrap(),
                Distribution::tiled_irregular(&extents, &[vec![0, 4, 4, 9], vec![0, 2, 20]], 4, None, order).unwrap(),
                Distribution::block(&extents, 6, None, order).unwrap().with_ghosts(ghosts.clone()).unwrap(),
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
