//! An operand: a patch that lies inside its array, as operations see it.
//!
//! An axis that a single index removes is no axis of the operand. So operands have two kinds of axes: `S` are those of the array, `D`
//! those that operations see. An operand turns one into the other, and everything else works with `D`.

use std::fmt;

use ndarray::{ArrayView, ArrayViewMut, Dimension, IntoDimension};

use super::{Elements, patch_fingerprint};
use crate::{
    array::GlobalArray,
    distribution::Piece,
    element::Element,
    error::Result,
    index::{KeptAxes, Patch, Selection},
    memory::buffer::{Source, Target},
    sync::fingerprint,
};

/// An operand whose patch lies inside its array.
pub(crate) struct Operand<'a, T, D, S = D> {
    pub(crate) array: &'a GlobalArray<T, S>,
    pub(super) selection: Selection<S>,
    /// The axes are reversed when others are removed.
    pub(in crate::array) transposed: bool,
    /// What makes of each element the one that operations see.
    pub(super) conjugate: Option<fn(T) -> T>,
    /// The array with the type that shows that no axis is missing, if the program named all of it.
    pub(super) whole: Option<&'a GlobalArray<T, D>>,
}

impl<T: Element, D: Dimension> GlobalArray<T, D> {
    /// All of it, for operations that cannot fail to name it.
    pub(super) fn all(&self) -> Operand<'_, T, D> {
        let kept = KeptAxes::all(self.extents.ndim()).expect("creation limits the number of axes");
        Operand {
            array: self,
            selection: Selection { patch: self.whole(), kept },
            transposed: false,
            conjugate: None,
            whole: Some(self),
        }
    }
}

impl<T: Element, D: Dimension, S: Dimension> Operand<'_, T, D, S> {
    /// Elements along each axis, after the transposition.
    pub(crate) fn shape(&self) -> D {
        let shape = self.selection.kept.shape::<D, S>(&self.selection.patch);
        if self.transposed { reversed(&shape) } else { shape }
    }

    /// What members must share of it.
    pub(crate) fn fingerprint(&self) -> u64 {
        let turned = u64::from(self.transposed) | u64::from(self.conjugate.is_some()) << 1;
        let axes = self.selection.kept.len() as u64;
        fingerprint(&[self.array.id, patch_fingerprint(&self.selection.patch), axes << 2 | turned])
    }

    /// Whether it is all of its array, as it lies.
    pub(crate) fn is_whole(&self) -> bool {
        let patch = &self.selection.patch;
        let has_all = patch.is_unit_step() && patch.count() == self.array.distribution.extents();
        has_all && !self.transposed && self.conjugate.is_none() && self.selection.kept.len() == patch.ndim()
    }

    /// Whether this rank's parts of both hold the same elements in the same places, and nothing else.
    pub(super) fn matches<U: Element, R: Dimension>(&self, other: &Operand<'_, U, D, R>) -> bool {
        match (self.whole, other.whole) {
            (Some(own), Some(theirs)) => {
                !other.transposed
                    && self.conjugate.is_none()
                    && other.conjugate.is_none()
                    && own.is_dense()
                    && own.distribution == theirs.distribution
            }
            _ => false,
        }
    }

    /// Whether an operation on both needs elements of other members.
    pub(super) fn uses<U: Element, R: Dimension>(&self, other: &Operand<'_, U, D, R>) -> Elements {
        if self.matches(other) { Elements::Own } else { Elements::All }
    }

    /// The index in the operand of an index as it lies.
    pub(super) fn turned(&self, index: D::Pattern) -> D::Pattern {
        if self.transposed { reversed(&index.into_dimension()).into_pattern() } else { index }
    }

    /// Reads `count` positions from position `start` on.
    pub(crate) fn read(&self, start: &D, count: &D, to: ArrayViewMut<'_, T, D>) -> Result<()> {
        if self.transposed {
            return self.read_as_it_lies(&reversed(start), &reversed(count), to.reversed_axes());
        }
        self.read_as_it_lies(start, count, to)
    }

    /// The same, without the transposition.
    pub(in crate::array) fn read_as_it_lies(&self, start: &D, count: &D, mut to: ArrayViewMut<'_, T, D>) -> Result<()> {
        const OPERATION: &str = "get_into";
        let patch = self.window(start, count);
        let target = Target::of(&mut to, &patch, &self.selection.kept).expect("a view of as many positions");
        self.array.check_job(OPERATION)?;
        self.array.get_block(OPERATION, &patch, &target)?;
        self.conjugate_all(to);
        Ok(())
    }

    /// Writes `count` positions from position `start` on, of an operand that is neither transposed nor conjugated.
    pub(crate) fn write(&self, start: &D, count: &D, from: &ArrayView<'_, T, D>) -> Result<()> {
        const OPERATION: &str = "put";
        let patch = self.window(start, count);
        let source = Source::of(from, &patch, &self.selection.kept).expect("a view of as many positions");
        self.array.check_job(OPERATION)?;
        self.array.put_block(OPERATION, &patch, &source)
    }

    /// Makes of elements those that operations see.
    pub(super) fn conjugate_all(&self, mut elements: ArrayViewMut<'_, T, D>) {
        if let Some(conjugate) = self.conjugate {
            elements.mapv_inplace(conjugate);
        }
    }

    /// The pieces of some positions, without the transposition.
    pub(super) fn pieces_as_it_lies(&self, start: &D, count: &D, mut f: impl FnMut(Piece<D>)) {
        let window = self.window(start, count);
        self.array.distribution.pieces(&window).for_each(|piece| f(self.without_removed(piece)));
    }

    /// `count` positions from position `start` on, in the array.
    fn window(&self, start: &D, count: &D) -> Patch<S> {
        let Selection { patch, kept } = &self.selection;
        let (mut from, mut counts) = (S::zeros(patch.ndim()), patch.count().clone());
        let axes = (0..patch.ndim()).filter(|&axis| kept.contains(axis));
        for (axis, (&start, &count)) in axes.zip(start.slice().iter().zip(count.slice())) {
            (from[axis], counts[axis]) = (start, count);
        }
        sub_patch(patch, &from, &counts)
    }

    /// A piece of the array without the axes that are none of the operand.
    pub(super) fn without_removed(&self, piece: Piece<S>) -> Piece<D> {
        let kept = &self.selection.kept;
        let some = |of: &S| {
            let mut some = D::zeros(kept.len());
            let axes = (0..of.ndim()).filter(|&axis| kept.contains(axis));
            some.slice_mut().iter_mut().zip(axes).for_each(|(some, axis)| *some = of[axis]);
            some
        };
        Piece {
            member: piece.member,
            offset: piece.offset,
            strides: some(&piece.strides),
            start: some(&piece.start),
            count: some(&piece.count),
        }
    }
}

/// The axes in reverse order.
pub(crate) fn reversed<D: Dimension>(axes: &D) -> D {
    let mut reversed = axes.clone();
    reversed.slice_mut().reverse();
    reversed
}

/// `count` positions of a patch from position `start` on.
pub(in crate::array) fn sub_patch<D: Dimension>(patch: &Patch<D>, start: &D, count: &D) -> Patch<D> {
    let (mut first, mut step) = (patch.start().clone(), start.clone());
    for axis in 0..first.ndim() {
        step[axis] = patch.step(axis) as usize;
        // Two's complement: steps are signed.
        first[axis] = first[axis].wrapping_add(start[axis].wrapping_mul(step[axis]));
    }
    Patch::new(first, count.clone(), step)
}

/// Name and indices, as a program writes them.
impl<T, D, S: Dimension> fmt::Display for Operand<'_, T, D, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Selection { patch, kept } = &self.selection;
        let axis = |axis: usize| {
            let (first, count, step) = (patch.start()[axis], patch.count()[axis], patch.step(axis));
            if !kept.contains(axis) {
                return first.to_string();
            }
            // Of a negative step, `start` is the largest index.
            let low = if step < 0 { first.wrapping_add_signed(step * (count as isize - 1)) } else { first };
            let end = low + if count == 0 { 0 } else { (count - 1) * step.unsigned_abs() + 1 };
            if step == 1 { format!("{low}..{end}") } else { format!("{low}..{end};{step}") }
        };
        let indices = (0..patch.ndim()).map(axis).collect::<Vec<_>>().join(", ");
        let turned = match (self.transposed, self.conjugate) {
            (true, None) => ".t()",
            (_, Some(_)) => ".h()",
            (false, None) => "",
        };
        write!(f, "{}[{indices}]{turned}", self.array.name)
    }
}

impl<T, D, S: Dimension> fmt::Debug for Operand<'_, T, D, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use ndarray::Dim;

    use super::*;

    #[test]
    fn a_part_of_a_patch_follows_its_steps() {
        let patch = Patch::new(Dim([9, 1]), Dim([4, 3]), Dim([-2_isize as usize, 3]));
        let part = sub_patch(&patch, &Dim([1, 1]), &Dim([3, 2]));
        assert_eq!(part, Patch::new(Dim([7, 4]), Dim([3, 2]), Dim([-2_isize as usize, 3])));
    }
}
