//! LU factors of a general matrix, with partial pivoting.

use std::time::Duration;

use ndarray::{Array2, ArrayViewMut2, Axis as Dimension, s};

use super::{
    column::Column,
    exchange::{Panel, PanelBuffers, RowBuffers},
    panel::{self, Factored, Stopped},
    place::Place,
    swaps::RowMoves,
    trailing::{Phases, Trailing, beside, timed},
};
use crate::{
    error::{Error, Result},
    linalg::field::Field,
    sync::{Group, ops},
};

/// Why the factorization stopped.
pub(super) type Stop = Stopped<Error>;

/// One member's place in the grid and what it needs to talk to the others.
pub(in crate::linalg) struct Pivoted<'g, T: Field> {
    group: &'g Group,
    place: Place,
    look_ahead: LookAhead<'g, T>,
    exchange: RowBuffers<T>,
    trailing: Trailing<'g, T>,
    /// Panels are factored while threads update, on all members.
    all_have_threads: bool,
    swap: Duration,
    whole: Duration,
}

/// What factors and sends panels.
struct LookAhead<'g, T: Field> {
    group: &'g Group,
    place: Place,
    column: Column<T>,
    panels: PanelBuffers<T>,
    phases: Phases,
}

impl<T: Field> LookAhead<'_, T> {
    /// Factors the panel that starts at `first` with the process column and sends it to the others of the process row, a failure
    /// too.
    fn factor(&mut self, mut rows: ArrayViewMut2<'_, T>, first: usize) -> Result<Factored<T>, Stop> {
        let axis = self.place.rows;
        let (height, width) = rows.dim();
        let factored = timed(self.group, &mut self.phases.panel, || {
            // Each column is subtracted from those right of it.
            self.group.work(T::FLOPS / 2.0 * height as f64 * (width * width) as f64, 0.0);
            match self.group.skips() {
                true => panel::skip(width, first, axis, &mut self.column),
                false => panel::factor(rows.view_mut(), first, axis, &mut self.column),
            }
        });
        match factored {
            Ok(factored) => {
                let end = first + factored.top.nrows();
                let below = axis.first_local(end) - axis.first_local(first);
                let lower = rows.slice(s![below.., ..]);
                let sent = timed(self.group, &mut self.phases.swap, || self.panels.send(&factored, lower));
                sent.map_err(Stopped::Team)?;
                Ok(factored)
            }
            Err(Stopped::At { column }) => {
                self.panels.send_failure(column).map_err(Stopped::Team)?;
                Err(Stopped::At { column })
            }
            Err(stop) => Err(stop),
        }
    }
}

impl<'g, T: Field> Pivoted<'g, T> {
    /// Collective: makes the buffers.
    pub(in crate::linalg) fn new(group: &'g Group, place: Place) -> Result<Self> {
        let trailing = Trailing::new(group, place.rows);
        // Members of a process column must exchange and factor in the same order.
        let all_have_threads = group.all_reduce_one(trailing.threads as u64, ops::min)? > 1;
        let (column, panels) = (Column::new(group, place)?, PanelBuffers::new(group, place)?);
        Ok(Pivoted {
            group,
            place,
            look_ahead: LookAhead { group, place, column, panels, phases: Phases::default() },
            exchange: RowBuffers::new(group, place)?,
            trailing,
            all_have_threads,
            swap: Duration::ZERO,
            whole: Duration::ZERO,
        })
    }

    /// Where the time went.
    pub(in crate::linalg) fn phases(&self) -> Phases {
        let (ahead, trailing) = (self.look_ahead.phases, self.trailing.phases);
        Phases { whole: self.whole, panel: ahead.panel, swap: self.swap + ahead.swap + trailing.swap, ..trailing }
    }

    /// Overwrites this member's part with its part of the factors; returns the interchanges of all panels.
    pub(in crate::linalg) fn factor(&mut self, a: ArrayViewMut2<'_, T>) -> Result<Vec<usize>, Stop> {
        let (group, mut whole) = (self.group, Duration::ZERO);
        group.barrier().map_err(Stopped::Team)?;
        let pivots = timed(group, &mut whole, || {
            let pivots = self.steps(a)?;
            group.barrier().map_err(Stopped::Team).map(|()| pivots)
        });
        self.whole = whole;
        pivots
    }

    fn steps(&mut self, mut a: ArrayViewMut2<'_, T>) -> Result<Vec<usize>, Stop> {
        let Place { rows, columns } = self.place;
        let n = self.place.order();
        let mut pivots = Vec::with_capacity(n);
        let mut storage = Vec::new();
        let mut ahead = None;
        for std::ops::Range { start: first, end } in self.place.panels() {
            if first == 0 && columns.mine(0) {
                ahead = Some(self.look_ahead.factor(a.slice_mut(s![.., ..columns.first_local(end)]), 0)?);
            }
            // Own columns: of the panel if it is ours, and right of it.
            let (left, mut rest) = a.view_mut().split_at(Dimension(1), columns.first_local(end));
            let below = rows.first_local(end);
            let panel = match ahead.take() {
                Some(factored) => Panel { factored, lower: left.slice(s![below.., columns.first_local(first)..]).into() },
                None => {
                    let received = self.look_ahead.panels.receive(first, std::mem::take(&mut storage)).map_err(Stopped::Team)?;
                    received.map_err(|column| Stopped::At { column })?
                }
            };
            pivots.extend(&panel.factored.pivots);
            let moves = RowMoves::new(first, &panel.factored.pivots);
            let mut next = None;
            if end < n && columns.mine(end) {
                let (mut own, others) = rest.split_at(Dimension(1), (end + rows.block).min(n) - end);
                // Only the rows of these columns: the next panel waits for no others.
                let mut upper = self.exchange_rows(&moves, &mut own).map_err(Stopped::Team)?;
                self.trailing.update(&panel, &moves, own.view_mut(), upper.as_mut().map(|upper| upper.view_mut()));
                rest = others;
                // The panel is factored where it stands: the columns of `next` from the diagonal down.
                next = Some(own.slice_move(s![below.., ..]));
            }
            if !self.all_have_threads {
                ahead = next.take().map(|next| self.look_ahead.factor(next, end)).transpose()?;
            }
            let mut upper = self.exchange_rows(&moves, &mut rest).map_err(Stopped::Team)?;
            let (trailing, look_ahead) = (&mut self.trailing, &mut self.look_ahead);
            let update = || trailing.update(&panel, &moves, rest, upper.as_mut().map(|upper| upper.view_mut()));
            match next {
                None => update(),
                Some(next) => ahead = Some(beside(update, || look_ahead.factor(next, end))?),
            }
            storage = panel.into_storage().unwrap_or(storage);
        }
        Ok(pivots)
    }

    /// With several process rows: moves the rows of one step for some own columns right of the panel, and returns the rows of U
    /// before their solve, unless nothing is computed. With one process row each strip moves its own.
    fn exchange_rows(&mut self, moves: &RowMoves, columns: &mut ArrayViewMut2<'_, T>) -> Result<Option<Array2<T>>> {
        if self.place.rows.processes == 1 || columns.ncols() == 0 {
            return Ok(None);
        }
        timed(self.group, &mut self.swap, || self.exchange.exchange(moves, columns))
    }
}
