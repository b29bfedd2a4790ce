//! A rank's share of an operand.
//!
//! *Pieces* lie in its part with fixed strides. *Runs* are the contiguous ranges of a piece. *Boxes* cut pieces so that each fits a
//! private buffer.

use std::ops::Range;

use ndarray::{ArrayView, ArrayViewMut, Dimension, IntoDimension, ShapeBuilder};

use super::{buffer_elements, operand::Operand};
use crate::{
    array::GlobalArray,
    distribution::{Order, Piece},
    element::Element,
    error::Result,
    index::Loops,
    memory::{
        buffer::{Source, Target},
        part::Part,
    },
};

impl<T: Element, D: Dimension, S: Dimension> Operand<'_, T, D, S> {
    /// Its pieces that this rank owns; it is not transposed. The whole array is walked by this rank's blocks, not by everybody's.
    pub(super) fn own_pieces(&self) -> impl Iterator<Item = Piece<D>> {
        let (me, patch, distribution) = (self.array.group.member(), &self.selection.patch, &self.array.distribution);
        let whole = self.is_whole();
        let blocks = whole.then(|| distribution.blocks(me)).into_iter().flatten().map(move |block| Piece {
            member: me,
            offset: block.offset,
            strides: block.strides,
            start: block.patch.start().clone(),
            count: block.patch.count().clone(),
        });
        let pieces = (!whole).then(|| distribution.pieces(patch)).into_iter().flatten();
        blocks.chain(pieces.filter(move |piece| piece.member == me)).map(|piece| self.without_removed(piece))
    }

    /// Calls `f` with each contiguous range of this rank's part that belongs to it; with one if that is the whole array, but
    /// where there are ghost cells. `f` passes through each element `passes` times, to read it or to write it. An array without contents is left
    /// alone; that takes as long.
    pub(super) fn own_runs(&self, passes: usize, mut f: impl FnMut(Range<usize>)) {
        let array = self.array;
        let skips = array.hollow && array.engine().conduit().skips();
        let mut f = |run| {
            if !skips {
                f(run);
            }
        };
        if array.is_dense() && self.is_whole() {
            let len = array.own_part().len();
            f(0..len);
            return array.streamed::<T>(passes * len);
        }
        let mut elements = 0;
        let width = size_of::<T>().max(1);
        for piece in self.own_pieces() {
            let strides = bytemuck::cast_slice(piece.strides.slice());
            let loops = Loops::new(piece.count.slice(), strides, strides, width);
            let len = loops.run() / width;
            loops.for_each_run(|at, _| {
                let start = piece.offset.wrapping_add_signed(at / width as isize);
                f(start..start + len);
                elements += len;
            });
        }
        array.streamed::<T>(passes * elements);
    }

    /// As [`own_runs`](Self::own_runs), in groups of ranges that have `most` elements together, the last one at most.
    pub(super) fn own_groups(&self, passes: usize, most: usize, mut f: impl FnMut(&[Range<usize>])) {
        let (mut ranges, mut room) = (Vec::new(), most);
        self.own_runs(passes, |mut run| {
            while !run.is_empty() {
                let len = room.min(run.len());
                ranges.push(run.start..run.start + len);
                (run.start, room) = (run.start + len, room - len);
                if room == 0 {
                    f(&ranges);
                    ranges.clear();
                    room = most;
                }
            }
        });
        if !ranges.is_empty() {
            f(&ranges);
        }
    }

    /// The same, where several threads may have some groups at once.
    pub(super) fn share_own_groups<R: Send>(
        &self,
        passes: usize,
        most: usize,
        f: impl Fn(&[Range<usize>]) -> R + Send + Sync,
    ) -> Vec<R> {
        let (job, mut results, mut groups) = (&self.array.group.inner.job, Vec::new(), Vec::new());
        if job.sharers() == 1 {
            // Without a list of them.
            self.own_groups(passes, most, |ranges| results.push(f(ranges)));
            return results;
        }
        self.own_groups(passes, most, |ranges| groups.push(ranges.to_vec()));
        job.share(groups.len(), |at| f(&groups[at]))
    }

    /// The same, where each range is by itself.
    pub(super) fn share_each_run(&self, passes: usize, most: usize, f: impl Fn(Range<usize>) + Send + Sync) {
        match self.array.group.inner.job.sharers() {
            1 => self.own_runs(passes, f),
            _ => drop(self.share_own_groups(passes, most, |runs| runs.iter().cloned().for_each(&f))),
        }
    }

    /// Calls `f` with this rank's pieces, cut so that no box has more elements than `edges` allow; returns the number of
    /// elements.
    pub(super) fn own_boxes(&self, edges: impl Fn(&D) -> D, mut f: impl FnMut(&Piece<D>) -> Result<()>) -> Result<usize> {
        let mut elements = 0;
        for piece in self.own_pieces() {
            boxes(&piece.count, &edges(&piece.count)).try_for_each(|(start, count)| {
                let mut offset = piece.offset;
                let mut position = piece.start.clone();
                for axis in 0..start.ndim() {
                    // Two's complement: strides are signed.
                    offset = offset.wrapping_add(start[axis].wrapping_mul(piece.strides[axis]));
                    position[axis] += start[axis];
                }
                elements += count.size();
                f(&Piece { member: piece.member, offset, strides: piece.strides.clone(), start: position, count })
            })?;
        }
        Ok(elements)
    }

    /// Edges of boxes of at most `most` elements, longest along the contiguous axis.
    pub(super) fn edges(&self, most: usize) -> impl Fn(&D) -> D + use<T, D, S> {
        let order = self.array.distribution.order();
        move |count: &D| {
            let axes = count.ndim();
            let (mut edges, mut room) = (count.clone(), most);
            for step in 0..axes {
                let axis = if order == Order::RowMajor { axes - 1 - step } else { step };
                edges[axis] = count[axis].min(room).max(1);
                room /= edges[axis];
            }
            edges
        }
    }

    /// The view of a private buffer that has a box's shape and lies as this array's parts do.
    pub(super) fn box_view<'b, U>(&self, count: &D, buffer: &'b mut [U]) -> ArrayViewMut<'b, U, D> {
        let shape = count.clone().set_f(self.array.distribution.order() == Order::ColumnMajor);
        ArrayViewMut::from_shape(shape, &mut buffer[..count.size()]).expect("a buffer with room for the box")
    }

    pub(super) fn read_box(&self, own: &Piece<D>, to: &mut ArrayViewMut<'_, T, D>) {
        self.array.own_part().read(own.offset, &own.strides, &Target::whole(to));
    }

    pub(super) fn write_box(&self, own: &Piece<D>, from: &ArrayView<'_, T, D>) {
        self.array.own_part().write(own.offset, &own.strides, &Source::whole(from));
    }

    /// Calls `f` with what this rank owns of it, box by box: the positions and a private copy.
    pub(super) fn read_boxes(&self, mut f: impl FnMut(&Piece<D>, ArrayView<'_, T, D>)) {
        let mut buffer = vec![T::zeroed(); buffer_elements::<T>().min(self.selection.patch.len())];
        let read = self.own_boxes(self.edges(buffer_elements::<T>()), |own| {
            let mut view = self.box_view(&own.count, &mut buffer);
            self.read_box(own, &mut view);
            self.conjugate_all(view.view_mut());
            f(own, view.view());
            Ok(())
        });
        debug_assert!(read.is_ok(), "no box fails");
        self.array.streamed::<T>(read.unwrap_or(0));
    }

    /// Changes what this rank owns of it, box by box: `f` gets the positions and a private copy that is written back.
    pub(super) fn update_boxes(&self, mut f: impl FnMut(&Piece<D>, ArrayViewMut<'_, T, D>)) {
        let mut buffer = vec![T::zeroed(); buffer_elements::<T>().min(self.selection.patch.len())];
        let updated = self.own_boxes(self.edges(buffer_elements::<T>()), |own| {
            let mut view = self.box_view(&own.count, &mut buffer);
            self.read_box(own, &mut view);
            f(own, view.view_mut());
            self.write_box(own, &view.view());
            Ok(())
        });
        debug_assert!(updated.is_ok(), "no box fails");
        self.array.streamed::<T>(2 * updated.unwrap_or(0));
    }

    /// Calls `f` with stretches of this rank's positions, and with the elements of one or two operands at these; without the second its
    /// elements are none. The operands have the shape of this one. `passes` says how often `f` passes through the stretch itself.
    pub(super) fn own_stretches<A: Element, B: Element, R: Dimension, Q: Dimension>(
        &self,
        a: &Operand<'_, A, D, R>,
        b: Option<&Operand<'_, B, D, Q>>,
        passes: usize,
        mut f: impl FnMut(&Stretch<'_, T, D, S>, &[A], &[B]),
    ) -> Result<()> {
        let most = buffer_elements::<T>().min(buffer_elements::<A>()).min(buffer_elements::<B>());
        let room = most.min(self.selection.patch.len());
        let mut xs = vec![A::zeroed(); room];
        let mut ys = vec![B::zeroed(); if b.is_some() { room } else { 0 }];
        let elements = if self.matches(a) && b.is_none_or(|b| self.matches(b)) {
            let (own, a, b) = (self.array.own_part(), a.array.own_part(), b.map(|b| b.array.own_part()));
            for at in (0..own.len()).step_by(most) {
                let len = most.min(own.len() - at);
                let ys = if b.is_some() { &mut ys[..len] } else { &mut [] };
                a.read_slice(at, &mut xs[..len]);
                if let Some(b) = &b {
                    b.read_slice(at, ys);
                }
                f(&Stretch::Run(&own, at..at + len), &xs[..len], ys);
            }
            own.len()
        } else {
            self.own_boxes(self.edges(most), |own| {
                let len = own.count.size();
                a.read(&own.start, &own.count, self.box_view(&own.count, &mut xs))?;
                if let Some(b) = b {
                    b.read(&own.start, &own.count, self.box_view(&own.count, &mut ys))?;
                }
                f(&Stretch::Box(self, own), &xs[..len], &ys[..if b.is_some() { len } else { 0 }]);
                Ok(())
            })?
        };
        self.array.streamed::<A>(elements);
        self.array.streamed::<B>(if b.is_some() { elements } else { 0 });
        self.array.streamed::<T>(passes * elements);
        Ok(())
    }
}

impl<T: Element, D: Dimension> GlobalArray<T, D> {
    /// Elements of the share of each thread of a large part. Kernels write long ranges past the caches, so there is one for each thread.
    pub(in crate::array) fn thread_share(&self) -> usize {
        self.own_part().len().div_ceil(self.group.inner.job.sharers()).max(piece_elements::<T>())
    }

    /// Fills this rank's part, with its ghost cells. Threads that will work on it put the pages of a large one near them.
    pub(in crate::array) fn fill_own(&self, value: T) {
        let (len, share) = (self.own_part().len(), self.thread_share());
        self.group.inner.job.share(len.div_ceil(share), |at| {
            self.own_part().slice(at * share..len.min((at + 1) * share)).fill(value);
        });
    }
}

/// Bytes of what a thread takes at a time: some tens of microseconds of work in memory, beside which handing it over costs nothing. Parts
/// of fewer bytes are the work of one thread. The bounds of these pieces are also those of partial sums.
const PIECE: usize = 256 << 10;

/// Elements of a piece.
pub(super) const fn piece_elements<T>() -> usize {
    let bytes = if size_of::<T>() == 0 { 1 } else { size_of::<T>() };
    if bytes > PIECE { 1 } else { PIECE / bytes }
}

/// A range in pieces of at most `most`.
pub(super) fn cut(range: Range<usize>, most: usize) -> impl Iterator<Item = Range<usize>> {
    range.clone().step_by(most).map(move |start| start..range.end.min(start + most))
}

/// Positions of an operand that this rank owns.
pub(super) enum Stretch<'s, T, D, S> {
    Run(&'s Part<'s, T>, Range<usize>),
    Box(&'s Operand<'s, T, D, S>, &'s Piece<D>),
}

impl<T: Element, D: Dimension, S: Dimension> Stretch<'_, T, D, S> {
    /// Reads the elements; there are as many.
    pub(super) fn read(&self, to: &mut [T]) {
        match self {
            Stretch::Run(part, run) => part.read_slice(run.start, to),
            Stretch::Box(operand, own) => operand.read_box(own, &mut operand.box_view(&own.count, to)),
        }
    }

    /// Writes the elements.
    pub(super) fn write(&self, from: &mut [T]) {
        match self {
            Stretch::Run(part, run) => part.write_slice(run.start, from),
            Stretch::Box(operand, own) => operand.write_box(own, &operand.box_view(&own.count, from).view()),
        }
    }
}

/// The index that a position within a box has in the operand.
pub(super) fn index_of<D: Dimension>(own: &Piece<D>, position: D::Pattern) -> D::Pattern {
    let mut index = position.into_dimension();
    index.slice_mut().iter_mut().zip(own.start.slice()).for_each(|(index, start)| *index += start);
    index.into_pattern()
}

/// First index and shape of each box of at most these edges, in row-major order. Nothing for an empty shape.
fn boxes<D: Dimension>(count: &D, edges: &D) -> impl Iterator<Item = (D, D)> {
    let first = (!count.slice().contains(&0)).then(|| D::zeros(count.ndim()));
    let starts = std::iter::successors(first, |start| {
        let mut next = start.clone();
        for axis in (0..next.ndim()).rev() {
            next[axis] += edges[axis];
            if next[axis] < count[axis] {
                return Some(next);
            }
            next[axis] = 0;
        }
        None
    });
    starts.map(|start| {
        let mut shape = edges.clone();
        (0..shape.ndim()).for_each(|axis| shape[axis] = edges[axis].min(count[axis] - start[axis]));
        (start, shape)
    })
}

#[cfg(test)]
mod tests {
    use ndarray::{Dim, Ix0};

    use super::*;

    #[test]
    fn boxes_cover_a_shape_once() {
        let (count, edges) = (Dim([5, 7]), Dim([2, 3]));
        let mut seen = ndarray::Array2::<u8>::zeros(count);
        for (start, shape) in boxes(&count, &edges) {
            seen.slice_mut(ndarray::s![start[0]..start[0] + shape[0], start[1]..start[1] + shape[1]]).mapv_inplace(|n| n + 1);
        }
        assert!(seen.iter().all(|&n| n == 1));
        assert_eq!(boxes(&Dim([3, 0]), &Dim([1, 1])).count(), 0);
        assert_eq!(boxes(&Ix0(), &Ix0()).count(), 1);
    }
}
