//! A rank's share of a patch.
//!
//! *Pieces* lie in its part with fixed strides. *Runs* are the contiguous ranges of a piece. *Boxes* cut pieces so that each fits a
//! private buffer.

use std::ops::Range;

use ndarray::{ArrayView, ArrayViewMut, Dimension, ShapeBuilder};

use super::{buffer_elements, patch::Operand};
use crate::{
    array::GlobalArray,
    distribution::{Order, Piece},
    element::Element,
    error::Result,
    index::{Loops, Patch},
    memory::buffer::{Source, Target},
};

impl<T: Element, D: Dimension> GlobalArray<T, D> {
    /// The pieces of a patch that this rank owns. The whole array is walked by this rank's blocks, not by everybody's.
    pub(super) fn own_pieces<'a>(&'a self, patch: &'a Patch<D>) -> impl Iterator<Item = Piece<D>> + 'a {
        let me = self.group.member();
        let whole = self.is_whole(patch);
        let blocks = whole.then(|| self.distribution.blocks(me)).into_iter().flatten().map(move |block| Piece {
            member: me,
            offset: block.offset,
            strides: block.strides,
            start: block.patch.start().clone(),
            count: block.patch.count().clone(),
        });
        let pieces = (!whole).then(|| self.distribution.pieces(patch)).into_iter().flatten();
        blocks.chain(pieces.filter(move |piece| piece.member == me))
    }

    pub(super) fn is_whole(&self, patch: &Patch<D>) -> bool {
        patch.is_unit_step() && patch.count() == self.distribution.extents()
    }

    /// Calls `f` with each contiguous range of this rank's part that belongs to a patch; with one if that is the whole array, but
    /// where there are ghost cells. `f` passes through each element `passes` times, to read it or to write it. An array without contents is left
    /// alone; that takes as long.
    pub(super) fn own_runs(&self, patch: &Patch<D>, passes: usize, mut f: impl FnMut(Range<usize>)) {
        let skips = self.hollow && self.engine().conduit().skips();
        let mut f = |run| {
            if !skips {
                f(run);
            }
        };
        if self.is_dense() && self.is_whole(patch) {
            let len = self.own_part().len();
            f(0..len);
            return self.streamed::<T>(passes * len);
        }
        let mut elements = 0;
        let width = size_of::<T>().max(1);
        for piece in self.own_pieces(patch) {
            let strides = bytemuck::cast_slice(piece.strides.slice());
            let loops = Loops::new(piece.count.slice(), strides, strides, width);
            let len = loops.run() / width;
            loops.for_each_run(|at, _| {
                let start = piece.offset.wrapping_add_signed(at / width as isize);
                f(start..start + len);
                elements += len;
            });
        }
        self.streamed::<T>(passes * elements);
    }

    /// Calls `f` with this rank's pieces of a patch, cut so that no box has more elements than `edges` allow; returns the number of
    /// elements.
    pub(super) fn own_boxes(
        &self,
        patch: &Patch<D>,
        edges: impl Fn(&D) -> D,
        mut f: impl FnMut(&Piece<D>) -> Result<()>,
    ) -> Result<usize> {
        let mut elements = 0;
        for piece in self.own_pieces(patch) {
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
    pub(super) fn edges(&self, most: usize) -> impl Fn(&D) -> D + use<T, D> {
        let order = self.distribution.order();
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
        let shape = count.clone().set_f(self.distribution.order() == Order::ColumnMajor);
        ArrayViewMut::from_shape(shape, &mut buffer[..count.size()]).expect("a buffer with room for the box")
    }

    pub(super) fn read_box(&self, own: &Piece<D>, to: &mut ArrayViewMut<'_, T, D>) {
        self.own_part().read(own.offset, &own.strides, &Target::whole(to));
    }

    pub(super) fn write_box(&self, own: &Piece<D>, from: &ArrayView<'_, T, D>) {
        self.own_part().write(own.offset, &own.strides, &Source::whole(from));
    }

    /// Changes what this rank owns of a patch, box by box: `f` gets the positions and a private copy that is written back.
    pub(super) fn update_boxes(&self, patch: &Patch<D>, mut f: impl FnMut(&Piece<D>, ArrayViewMut<'_, T, D>)) {
        let mut buffer = vec![T::zeroed(); buffer_elements::<T>().min(patch.len())];
        let updated = self.own_boxes(patch, self.edges(buffer_elements::<T>()), |own| {
            let mut view = self.box_view(&own.count, &mut buffer);
            self.read_box(own, &mut view);
            f(own, view.view_mut());
            self.write_box(own, &view.view());
            Ok(())
        });
        debug_assert!(updated.is_ok(), "no box fails");
        self.streamed::<T>(2 * updated.unwrap_or(0));
    }

    /// Calls `f` with equal stretches of two patches' elements, for the positions that this rank owns of `patch`, and with what
    /// writes as many elements there, which `f` calls if it `writes`. Both operands have its shape.
    pub(super) fn own_pairs<A: Element, B: Element>(
        &self,
        patch: &Patch<D>,
        a: &Operand<'_, A, D>,
        b: &Operand<'_, B, D>,
        writes: bool,
        mut f: impl FnMut(&[A], &[B], &dyn Fn(&[T])),
    ) -> Result<()> {
        let most = buffer_elements::<T>().min(buffer_elements::<A>()).min(buffer_elements::<B>());
        let (mut xs, mut ys) = (vec![A::zeroed(); most.min(patch.len())], vec![B::zeroed(); most.min(patch.len())]);
        if self.matches(patch, a) && self.matches(patch, b) {
            let (part, a, b) = (self.own_part(), a.array.own_part(), b.array.own_part());
            for at in (0..part.len()).step_by(most) {
                let len = most.min(part.len() - at);
                let (xs, ys) = (&mut xs[..len], &mut ys[..len]);
                a.read_slice(at, xs);
                b.read_slice(at, ys);
                f(xs, ys, &|values| part.write_slice(at, values));
            }
            self.streamed_pairs::<A, B>(part.len(), writes);
            return Ok(());
        }
        let elements = self.own_boxes(patch, self.edges(most), |own| {
            let len = own.count.size();
            a.read(&own.start, &own.count, self.box_view(&own.count, &mut xs))?;
            b.read(&own.start, &own.count, self.box_view(&own.count, &mut ys))?;
            f(&xs[..len], &ys[..len], &|values| {
                let shape = own.count.clone().set_f(self.distribution.order() == Order::ColumnMajor);
                self.write_box(own, &ArrayView::from_shape(shape, values).expect("as many as the box has"));
            });
            Ok(())
        })?;
        self.streamed_pairs::<A, B>(elements, writes);
        Ok(())
    }

    fn streamed_pairs<A, B>(&self, elements: usize, writes: bool) {
        self.streamed::<A>(elements);
        self.streamed::<B>(elements);
        self.streamed::<T>(if writes { elements } else { 0 });
    }
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
