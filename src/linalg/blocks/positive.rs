//! Cholesky factors of a symmetric or Hermitian positive definite matrix, of which the lower triangle is used and overwritten.

use std::ops::Range;

use ndarray::{Array2, ArrayView2, ArrayViewMut2, Axis as Dimension, ShapeBuilder, s};

use super::{
    exchange::{Panel, PanelBuffers, RowBuffers},
    general::Stop,
    panel::{Factored, Stopped},
    place::Place,
    trailing::{beside, multiply_by},
    triangle::{cholesky, solve_right},
};
use crate::{
    error::{Error, Result},
    linalg::field::{Field, real_of, wide},
    sync::{Group, ops},
};

/// What a member needs to factor with the others.
pub(in crate::linalg) struct Positive<'g, T: Field> {
    group: &'g Group,
    place: Place,
    skips: bool,
    panels: PanelBuffers<T>,
    exchange: RowBuffers<T>,
    /// What rows for the own columns were kept in, for the next ones: fresh memory would cost its page faults each time.
    memory: Vec<T>,
}

impl<'g, T: Field> Positive<'g, T> {
    /// Collective: makes the buffers.
    pub(in crate::linalg) fn new(group: &'g Group, place: Place) -> Result<Self> {
        let (panels, exchange) = (PanelBuffers::new(group, place)?, RowBuffers::new(group, place)?);
        Ok(Positive { group, place, skips: group.skips(), panels, exchange, memory: Vec::new() })
    }

    /// Overwrites the lower triangle of this member's part with its part of L.
    pub(in crate::linalg) fn factor(&mut self, mut a: ArrayViewMut2<'_, T>) -> Result<(), Stop> {
        let Place { rows, columns } = self.place;
        let (group, n) = (self.group, self.place.order());
        let threads = group.inner.job.sharers();
        // Members of a process column must exchange and factor in the same order.
        let all_have_threads = group.all_reduce_one(threads as u64, ops::min).map_err(Stopped::Team)? > 1;
        let update = Update { group, place: self.place, threads };
        let mut storage = Vec::new();
        let mut ahead = None;
        for Range { start: first, end } in self.place.panels() {
            if first == 0 && columns.mine(0) {
                ahead = Some(self.panel(a.slice_mut(s![.., ..columns.first_local(end)]), 0)?);
            }
            let right = columns.first_local(end);
            let (left, mut rest) = a.view_mut().split_at(Dimension(1), right);
            let below = rows.first_local(end);
            let panel = match ahead.take() {
                Some(factored) => Panel { factored, lower: left.slice(s![below.., columns.first_local(first)..]).into() },
                None => {
                    let received = self.panels.receive(first, std::mem::take(&mut storage)).map_err(Stopped::Team)?;
                    received.map_err(|column| Stopped::At { column })?
                }
            };
            let across = self.across(&panel, end).map_err(Stopped::Team)?;
            let mut next = None;
            let mut done = 0;
            if end < n && columns.mine(end) {
                done = (end + rows.block).min(n) - end;
                let (mut own, others) = rest.split_at(Dimension(1), done);
                update.columns(own.view_mut(), &panel, across.slice(s![.., ..done.min(across.ncols())]), right..right + done);
                rest = others;
                next = Some(own.slice_move(s![below.., ..]));
            }
            if !all_have_threads {
                ahead = next.take().map(|next| self.panel(next, end)).transpose()?;
            }
            let rest_of_update = || {
                update.columns(
                    rest,
                    &panel,
                    across.slice(s![.., done.min(across.ncols())..]),
                    right + done..columns.local_extent(),
                )
            };
            match next {
                None => rest_of_update(),
                Some(next) => ahead = Some(beside(rest_of_update, || self.panel(next, end))?),
            }
            storage = panel.into_storage().unwrap_or(storage);
            self.memory = across.into_raw_vec_and_offset().0;
        }
        Ok(())
    }

    /// The rows of L₂₁ of the own columns from `end` on, as the columns of their adjoint.
    fn across(&mut self, panel: &Panel<'_, T>, end: usize) -> Result<Array2<T>> {
        let Place { rows, columns } = self.place;
        let (right, below) = (columns.first_local(end), rows.first_local(end));
        let lines = if rows.processes == 1 && !self.skips {
            let shape = (columns.local_extent() - right, panel.lower.ncols());
            let mut memory = std::mem::take(&mut self.memory);
            memory.resize(shape.0 * shape.1, T::ZERO);
            let mut lines = Array2::from_shape_vec(shape.f(), memory).map_err(Error::other)?;
            for (block, at) in columns.blocks().filter(|(block, _)| block.start >= end) {
                let to = s![at - right..at - right + block.len(), ..];
                lines.slice_mut(to).assign(&panel.lower.slice(s![block.start - below..block.end - below, ..]));
            }
            lines
        } else {
            let list: Vec<usize> = (right..columns.local_extent()).map(|column| columns.global(column)).collect();
            self.exchange.gather(&list, panel.lower.view(), below)?.to_owned()
        };
        Ok(if T::IS_REAL { lines } else { lines.mapv_into(T::conj) }.reversed_axes())
    }

    /// Factors the panel that starts at `first`, of which `columns` are the own rows from there down, with the process column, and sends it to the others.
    fn panel(&mut self, mut columns: ArrayViewMut2<'_, T>, first: usize) -> Result<Factored<T>, Stop> {
        let rows = self.place.rows;
        let (height, width) = columns.dim();
        let is_mine = rows.mine(first);
        self.group.work(T::FLOPS / 2.0 * height as f64 * (width * width) as f64, 0.0);
        if is_mine && !self.skips {
            let mut block = columns.slice_mut(s![..width, ..]);
            if let Err(at) = cholesky(block.view_mut()) {
                // A diagonal of L is positive: this tells the others.
                block[[0, 0]] = T::of_real(real_of::<T>(-1.0 - at as f64));
            }
        }
        let list: Vec<usize> = (first..first + width).collect();
        let lines = self.exchange.gather(&list, columns.view(), rows.first_local(first)).map_err(Stopped::Team)?;
        let mut top = Array2::zeros((width, lines.nrows()).f());
        if !self.skips {
            top.assign(&lines);
            let corner = wide::<T>(top[[0, 0]].real());
            if corner < 0.0 {
                let column = first + (-corner) as usize - 1;
                self.panels.send_failure(column).map_err(Stopped::Team)?;
                return Err(Stopped::At { column });
            }
        }
        let below = if is_mine { width } else { 0 };
        let mut lower = columns.slice_mut(s![below.., ..]);
        if !self.skips {
            solve_right(top.view(), lower.view_mut());
        }
        let factored = Factored { top, pivots: Vec::new() };
        self.panels.send(&factored, lower.view()).map_err(Stopped::Team)?;
        Ok(factored)
    }
}

/// The update of some own columns right of a panel.
#[derive(Clone, Copy)]
struct Update<'g> {
    group: &'g Group,
    place: Place,
    threads: usize,
}

impl Update<'_> {
    /// C ← C − L₂₁·`across`, from the diagonal down. `c` are the columns with these local numbers.
    fn columns<T: Field>(&self, c: ArrayViewMut2<'_, T>, panel: &Panel<'_, T>, across: ArrayView2<'_, T>, columns: Range<usize>) {
        if columns.is_empty() {
            return;
        }
        let height = self.place.rows.local_extent();
        let below = height - panel.lower.nrows();
        if self.group.skips() {
            let start = |column: usize| self.place.rows.first_local(self.place.columns.global(column));
            let elements: usize = columns.map(|column| height - start(column)).sum();
            return self.group.work(T::FLOPS * (elements * panel.factored.top.nrows()) as f64, 0.0);
        }
        self.triangle(c, panel.lower.view(), across, columns, below..height);
    }

    /// The same in the rows below `rows.end`; `below` is the first row of `lower`. Halves of the columns in turn: the rectangle below the first half is one
    /// product.
    fn triangle<T: Field>(
        &self,
        mut c: ArrayViewMut2<'_, T>,
        lower: ArrayView2<'_, T>,
        across: ArrayView2<'_, T>,
        columns: Range<usize>,
        rows: Range<usize>,
    ) {
        let Place { rows: axis, columns: across_axis } = self.place;
        let start = |column: usize| axis.first_local(across_axis.global(column)).min(rows.end);
        let multiply = |c: ArrayViewMut2<'_, T>, rows_of_c: Range<usize>, across: ArrayView2<'_, T>| {
            self.group.work(T::FLOPS * (rows_of_c.len() * across.ncols() * across.nrows()) as f64, 0.0);
            let lower = lower.slice(s![rows_of_c.start - rows.start..rows_of_c.end - rows.start, ..]);
            multiply_by(self.group, self.threads, c, lower, across);
        };
        let block = axis.block;
        let (from, to) = (columns.start / block, columns.end.div_ceil(block));
        if to - from <= 1 {
            let own = start(columns.start).max(rows.start)..rows.end;
            return multiply(c.slice_mut(s![own.clone(), ..]), own, across);
        }
        let middle = from.midpoint(to).max(from + 1) * block;
        let at = middle - columns.start;
        let (mut first, second) = c.split_at(Dimension(1), at);
        let (across_first, across_second) = across.split_at(Dimension(1), at);
        let under = start(middle)..rows.end;
        multiply(first.slice_mut(s![under.clone(), ..]), under, across_first);
        self.triangle(first, lower, across_first, columns.start..middle, rows.start..start(middle));
        self.triangle(second, lower, across_second, middle..columns.end, rows);
    }
}
