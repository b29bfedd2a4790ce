//! Private copies of what a product needs of its factors.

use std::{cell::Cell, ops::Range};

use ndarray::{ArrayView2, ArrayViewMut2, ShapeBuilder, s};

use super::{
    Factor,
    scratch::{self, Line},
};
use crate::{distribution::Order, element::Element, error::Result};

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
    pub(super) fn rows(
        factor: &Factor<'_, T>,
        rows: impl Iterator<Item = (usize, Range<usize>)>,
        len: usize,
        k: &Range<usize>,
        memory: &'m mut [T],
    ) -> Result<Self> {
        Self::fetch(factor, rows.map(|(at, rows)| ([at, 0], [rows, k.clone()])), [len, k.len()], memory)
    }

    /// The range `k` of the rows of a factor, and `len` columns, by ranges of positions.
    pub(super) fn columns(
        factor: &Factor<'_, T>,
        columns: impl Iterator<Item = (usize, Range<usize>)>,
        len: usize,
        k: &Range<usize>,
        memory: &'m mut [T],
    ) -> Result<Self> {
        Self::fetch(factor, columns.map(|(at, columns)| ([0, at], [k.clone(), columns])), [k.len(), len], memory)
    }

    /// Fetches pieces of a factor to their places in a panel of some shape. The panel lies in memory as its source does, so that
    /// runs are as long as they can be; the kernel takes any strides.
    fn fetch(
        factor: &Factor<'_, T>,
        pieces: impl Iterator<Item = ([usize; 2], [Range<usize>; 2])>,
        shape: [usize; 2],
        memory: &'m mut [T],
    ) -> Result<Self> {
        let [rows, columns] = factor.turn(shape);
        let by_columns = factor.array.distribution().order() == Order::ColumnMajor;
        let memory = &mut memory[..rows * columns];
        let mut panel =
            ArrayViewMut2::from_shape((rows, columns).set_f(by_columns), memory).expect("memory of the panel's length");
        for (at, positions) in pieces {
            let [row, column] = factor.turn(at);
            let [rows, columns] = factor.turn(positions);
            let place = panel.slice_mut(s![row..row + rows.len(), column..column + columns.len()]);
            factor.array.get_into(factor.window([rows.start, columns.start], [rows.len(), columns.len()]), place)?;
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
