//! Private copies of what a product needs of its factors.

use std::{cell::Cell, ops::Range};

use ndarray::{ArrayView2, ArrayViewMut2, Dim, Dimension, Ix2, ShapeBuilder, s};

use super::{
    dense::Factor,
    scratch::{self, Line},
    span::Span,
};
use crate::{array::algebra::Operand, distribution::Order, element::Element, error::Result};

thread_local! {
    static MEMORY: Cell<Vec<Line>> = const { Cell::new(Vec::new()) };
}

/// Runs `body` with memory for the panels of some elements, of unspecified contents.
pub(super) fn with<T: Element, R>(elements: usize, body: impl FnOnce(&mut [T]) -> R) -> R {
    scratch::with(&MEMORY, elements, body)
}

/// Some rows or columns of op(A).
#[derive(Debug)]
pub(super) struct Panel<'m, T>(ArrayView2<'m, T>);

impl<'m, T: Element> Panel<'m, T> {
    /// `len` rows of a factor, by ranges of positions, and the range `k` of its columns.
    pub(super) fn rows<S: Dimension>(
        factor: &Operand<'_, T, Ix2, S>,
        rows: impl Iterator<Item = (usize, Range<usize>)>,
        len: usize,
        k: &Range<usize>,
        memory: &'m mut [T],
    ) -> Result<Self> {
        Self::fetch(factor, rows.map(|(at, rows)| ([at, 0], [rows, k.clone()])), [len, k.len()], memory)
    }

    /// The range `k` of the rows of a factor, and `len` columns, by ranges of positions.
    pub(super) fn columns<S: Dimension>(
        factor: &Operand<'_, T, Ix2, S>,
        columns: impl Iterator<Item = (usize, Range<usize>)>,
        len: usize,
        k: &Range<usize>,
        memory: &'m mut [T],
    ) -> Result<Self> {
        Self::fetch(factor, columns.map(|(at, columns)| ([0, at], [k.clone(), columns])), [k.len(), len], memory)
    }

    /// Fetches pieces of a factor to their places in a panel of some shape. The panel lies in memory as its source does, so that
    /// runs are as long as they can be; the kernel takes any strides.
    fn fetch<S: Dimension>(
        factor: &Operand<'_, T, Ix2, S>,
        pieces: impl Iterator<Item = ([usize; 2], [Range<usize>; 2])>,
        shape: [usize; 2],
        memory: &'m mut [T],
    ) -> Result<Self> {
        let [rows, columns] = turn(factor, shape);
        let by_columns = factor.array.distribution().order() == Order::ColumnMajor;
        let memory = &mut memory[..rows * columns];
        let mut panel =
            ArrayViewMut2::from_shape((rows, columns).set_f(by_columns), memory).expect("memory of the panel's length");
        for (at, positions) in pieces {
            let [row, column] = turn(factor, at);
            let [rows, columns] = turn(factor, positions);
            let place = panel.slice_mut(s![row..row + rows.len(), column..column + columns.len()]);
            let (start, count) = (Dim([rows.start, columns.start]), Dim([rows.len(), columns.len()]));
            factor.read_as_it_lies(&start, &count, place)?;
        }
        let panel =
            ArrayView2::from_shape((rows, columns).set_f(by_columns), panel.into_slice_memory_order().unwrap_or_default());
        let panel = panel.expect("memory of the panel's length");
        Ok(Panel(if factor.transposed { panel.reversed_axes() } else { panel }))
    }

    pub(super) fn view(&self) -> ArrayView2<'_, T> {
        self.0.view()
    }
}

/// A factor whose owners' memory is mapped. It copies a block when the block is packed.
///
/// A copy of a whole panel would pass through the caches once more.
pub(super) struct Mapped<'a, T, S> {
    pub(super) factor: &'a Operand<'a, T, Ix2, S>,
    /// Elements of a span: its rows, or its columns, that are multiplied; the others are all of the sum.
    pub(super) span: &'a Span,
    pub(super) part: Range<usize>,
    pub(super) side: Side,
    pub(super) depth: usize,
}

/// Which axis of a factor is that of C.
#[derive(Clone, Copy, Debug)]
pub(super) enum Side {
    Rows,
    Columns,
}

/// Bytes of a block that stay in the second cache, beside what they are packed into.
const COPIED_BYTES: usize = 64 << 10;

impl<T: Element, S: Dimension> Factor<T> for Mapped<'_, T, S> {
    fn shape(&self) -> [usize; 2] {
        match self.side {
            Side::Rows => [self.part.len(), self.depth],
            Side::Columns => [self.depth, self.part.len()],
        }
    }

    fn piece(&self) -> Option<usize> {
        Some(COPIED_BYTES / size_of::<T>().max(1))
    }

    fn block<'m>(&'m self, [rows, columns]: [Range<usize>; 2], memory: &'m mut [T]) -> Result<ArrayView2<'m, T>> {
        let part = |own: &Range<usize>| self.part.start + own.start..self.part.start + own.end;
        let panel = match self.side {
            Side::Rows => Panel::rows(self.factor, self.span.cut(&part(&rows)), rows.len(), &columns, memory),
            Side::Columns => Panel::columns(self.factor, self.span.cut(&part(&columns)), columns.len(), &rows, memory),
        };
        panel.map(|panel| panel.0)
    }
}

/// From axes of a factor to axes of its array, or back.
fn turn<T, S, V>(factor: &Operand<'_, T, Ix2, S>, [first, second]: [V; 2]) -> [V; 2] {
    if factor.transposed { [second, first] } else { [first, second] }
}
