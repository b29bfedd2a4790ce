//! The factorisation and the solves on a process grid; [`crate`] says how. One value of [`Rank`] on each rank.

use std::time::Duration;

use global_arrays::{prelude::*, simulation::Work};
use ndarray::{ArrayView2, ArrayViewMut1, ArrayViewMut2, Axis as Dimension};

use crate::axis::Axis;
use crate::buffers::{Panel, PanelBuffers, RowBuffers};
use crate::cli::Grid;
use crate::column::Column;
use crate::panel::{self, Factored, Stopped};
use crate::report::Phases;
use crate::solve::{
    interchange, interchange_back, solve_lower, solve_lower_transposed, solve_upper, solve_upper_transposed, subtract_product,
};
use crate::swaps::RowMoves;
use crate::trailing::{Trailing, beside};

/// Why the factorisation stopped.
pub(crate) type Stop = Stopped<Error>;

/// One rank's place in the grid and what it needs to talk to the others.
pub(crate) struct Rank<'j> {
    job: &'j Job,
    pub(crate) rows: Axis,
    pub(crate) columns: Axis,
    grid: Grid,
    look_ahead: LookAhead<'j>,
    exchange: RowBuffers,
    trailing: Trailing<'j>,
    /// Panels are factored while threads update, on all ranks.
    all_have_threads: bool,
    swap: Duration,
}

/// What factors and sends panels.
struct LookAhead<'j> {
    job: &'j Job,
    rows: Axis,
    column: Column,
    panels: PanelBuffers,
    phases: Phases,
}

impl LookAhead<'_> {
    /// Factors the panel that starts at `first` with the process column and sends it to the others of the process row, a failure
    /// too.
    fn factor(&mut self, mut rows: ArrayViewMut2<'_, f64>, first: usize) -> Result<Factored, Stop> {
        let axis = self.rows;
        let (height, width) = rows.dim();
        let factored = Phases::time(self.job, &mut self.phases.panel, || {
            // Each column is subtracted from those right of it.
            self.job.simulation().work(Work::flops(height as f64 * (width * width) as f64));
            match self.job.simulation().skips() {
                true => panel::skip(width, first, axis, &mut self.column),
                false => panel::factor(rows.view_mut(), first, axis, &mut self.column),
            }
        });
        match factored {
            Ok(factored) => {
                let end = first + factored.top.nrows();
                let below = self.rows.first_local(end) - self.rows.first_local(first);
                let lower = rows.slice(s![below.., ..]);
                let sent = Phases::time(self.job, &mut self.phases.swap, || self.panels.send(&factored, lower));
                sent.map_err(Stopped::Team)?;
                Ok(factored)
            }
            Err(Stopped::Singular { column }) => {
                self.panels.send_failure(column).map_err(Stopped::Team)?;
                Err(Stopped::Singular { column })
            }
            Err(stop) => Err(stop),
        }
    }
}

impl<'j> Rank<'j> {
    /// Collective: makes the buffers. `n` is the order, ranks are numbered row by row of the grid.
    pub(crate) fn new(job: &'j Job, n: usize, block: usize, grid: Grid) -> Result<Self, Error> {
        let (p, q) = (job.rank() / grid.columns, job.rank() % grid.columns);
        let rows = Axis { extent: n, block, processes: grid.rows, me: p };
        let columns = Axis { extent: n, block, processes: grid.columns, me: q };
        let trailing = Trailing::new(job, rows)?;
        // Members of a process column must exchange and factor in the same order.
        let all_have_threads = job.all_reduce_one(usize::from(trailing.threads.is_some()), ops::min)? == 1;
        Ok(Rank {
            job,
            rows,
            columns,
            grid,
            look_ahead: LookAhead {
                job,
                rows,
                column: Column::new(job, rows, columns)?,
                panels: PanelBuffers::new(job, rows, columns)?,
                phases: Phases::default(),
            },
            exchange: RowBuffers::new(job, rows, columns)?,
            trailing,
            all_have_threads,
            swap: Duration::ZERO,
        })
    }

    /// Where the time went. Panels are factored while the threads of the rank update, if it has any.
    pub(crate) fn phases(&self) -> Phases {
        self.look_ahead.phases + self.trailing.phases + Phases { swap: self.swap, ..Phases::default() }
    }

    /// Overwrites this rank's part with its part of the factors; returns the interchanges of all panels. `progress` is told the
    /// number of columns done.
    pub(crate) fn factor(&mut self, mut a: ArrayViewMut2<'_, f64>, mut progress: impl FnMut(usize)) -> Result<Vec<usize>, Stop> {
        let (n, block) = (self.rows.extent, self.rows.block);
        let mut pivots = Vec::with_capacity(n);
        let mut storage = Vec::new();
        let mut ahead = None;
        if self.columns.mine(0) {
            ahead = Some(
                self.look_ahead
                    .factor(a.slice_mut(s![self.rows.first_local(0).., ..self.columns.first_local(block.min(n))]), 0)?,
            );
        }
        for first in (0..n).step_by(block) {
            let end = (first + block).min(n);
            // Own columns: of the panel if it is ours, and right of it.
            let right = self.columns.first_local(end);
            let (left, trailing) = a.view_mut().split_at(Dimension(1), right);
            let below = self.rows.first_local(end);
            let panel = match ahead.take() {
                Some(factored) => Panel::own(factored, left.slice(s![below.., self.columns.first_local(first)..])),
                None => {
                    let received = self.look_ahead.panels.receive(first, std::mem::take(&mut storage)).map_err(Stopped::Team)?;
                    Panel::received(received.map_err(|column| Stopped::Singular { column })?)
                }
            };
            pivots.extend(&panel.factored.pivots);
            let moves = RowMoves::new(first, &panel.factored.pivots);
            let mut rest = trailing;
            let mut next = None;
            if end < n && self.columns.mine(end) {
                let width = (end + block).min(n) - end;
                let (mut columns, others) = rest.split_at(Dimension(1), width);
                // Only the rows of these columns: the next panel waits for no others.
                let mut upper = self.exchange_rows(&moves, &mut columns).map_err(Stopped::Team)?;
                self.trailing.update(&panel, &moves, columns.view_mut(), upper.as_mut().map(|upper| upper.view_mut()));
                rest = others;
                // The panel is factored where it stands: the columns of `next` from the diagonal down.
                next = Some(columns.slice_move(s![below.., ..]));
            }
            let threads = self.trailing.threads.clone().filter(|_| self.all_have_threads);
            if threads.is_none() {
                ahead = next.take().map(|next| self.look_ahead.factor(next, end)).transpose()?;
            }
            let mut upper = self.exchange_rows(&moves, &mut rest).map_err(Stopped::Team)?;
            let (trailing, look_ahead) = (&mut self.trailing, &mut self.look_ahead);
            let update = || trailing.update(&panel, &moves, rest, upper.as_mut().map(|upper| upper.view_mut()));
            match next.zip(threads) {
                None => update(),
                Some((next, threads)) => ahead = Some(beside(&threads, update, || look_ahead.factor(next, end))?),
            }
            storage = panel.into_storage().unwrap_or(storage);
            progress(end);
        }
        Ok(pivots)
    }

    /// With several process rows: moves the rows of one step for all own columns right of the panel, and returns the rows of U
    /// before their solve, unless nothing is computed. With one process row each strip moves its own.
    fn exchange_rows(&mut self, moves: &RowMoves, columns: &mut ArrayViewMut2<'_, f64>) -> Result<Option<Array2<f64>>, Error> {
        if self.grid.rows == 1 || columns.ncols() == 0 {
            return Ok(None);
        }
        let start = self.job.now();
        let upper = self.exchange.exchange(moves, columns)?;
        self.swap += self.job.now() - start;
        Ok(upper)
    }

    /// Solves A·x = b from the factors; every rank has b and returns x. Collective.
    ///
    /// `z` is partial: the sum over all ranks is meant. The interchanges are linear, so each rank carries them out on its own.
    pub(crate) fn solve(&self, job: &Job, a: ArrayView2<'_, f64>, pivots: &[usize], b: &[f64]) -> Result<Vec<f64>, Error> {
        let (n, block) = (self.rows.extent, self.rows.block);
        let mut z = if job.rank() == 0 { b.to_vec() } else { vec![0.0; n] };
        for first in (0..n).step_by(block) {
            let end = (first + block).min(n);
            interchange(&mut z, first, &pivots[first..end]);
            let y = self.block_of(job, a, first, &mut z[first..end], solve_lower)?;
            self.subtract(a, first, end..n, &y, &mut z);
            // What is meant stands on rank 0 from now on.
            if job.rank() == 0 {
                z[first..end].copy_from_slice(&y);
            }
        }
        let mut x = vec![0.0; n];
        for first in (0..n).step_by(block).rev() {
            let end = (first + block).min(n);
            let solved = self.block_of(job, a, first, &mut z[first..end], solve_upper)?;
            self.subtract(a, first, 0..first, &solved, &mut z);
            x[first..end].copy_from_slice(&solved);
        }
        Ok(x)
    }

    /// Solves Aᵀ·x = b in the same way. Here all ranks have all of z.
    pub(crate) fn solve_transposed(
        &self,
        job: &Job,
        a: ArrayView2<'_, f64>,
        pivots: &[usize],
        b: &[f64],
    ) -> Result<Vec<f64>, Error> {
        let (n, block) = (self.rows.extent, self.rows.block);
        let mut z = b.to_vec();
        for first in (0..n).step_by(block) {
            let solved = self.block_of_transposed(job, a, first, 0..first, &z, solve_upper_transposed)?;
            z[first..first + solved.len()].copy_from_slice(&solved);
        }
        for first in (0..n).step_by(block).rev() {
            let end = (first + block).min(n);
            let solved = self.block_of_transposed(job, a, first, end..n, &z, solve_lower_transposed)?;
            z[first..end].copy_from_slice(&solved);
            interchange_back(&mut z, first, &pivots[first..end]);
        }
        Ok(z)
    }

    /// One block of z, from which each rank subtracts what its part of some rows of the block's columns gives.
    fn block_of_transposed(
        &self,
        job: &Job,
        a: ArrayView2<'_, f64>,
        first: usize,
        rows: std::ops::Range<usize>,
        z: &[f64],
        solve: impl Fn(ArrayView2<'_, f64>, ArrayViewMut1<'_, f64>),
    ) -> Result<Vec<f64>, Error> {
        let end = (first + self.rows.block).min(z.len());
        let mut share = if job.rank() == 0 { z[first..end].to_vec() } else { vec![0.0; end - first] };
        if self.columns.mine(first) {
            let rows = self.rows.first_local(rows.start)..self.rows.first_local(rows.end);
            let own: Array1<f64> = rows.clone().map(|row| z[self.rows.global(row)]).collect();
            let column = self.columns.first_local(first);
            let part = a.slice(s![rows, column..column + share.len()]);
            self.job.simulation().work(Work::flops(2.0 * part.len() as f64) + Work::bytes(8.0 * part.len() as f64));
            share.iter_mut().zip(part.columns()).for_each(|(share, column)| *share -= column.dot(&own));
        }
        self.block_of(job, a, first, &mut share, solve)
    }

    /// Sums one block of z, which starts at `first`, lets the owner of the diagonal block solve it, and tells everyone.
    fn block_of(
        &self,
        job: &Job,
        a: ArrayView2<'_, f64>,
        first: usize,
        z: &mut [f64],
        solve: impl Fn(ArrayView2<'_, f64>, ArrayViewMut1<'_, f64>),
    ) -> Result<Vec<f64>, Error> {
        let size = z.len();
        let mut here = z.to_vec();
        z.fill(0.0);
        job.all_reduce(&mut here, ops::sum)?;
        let owner = self.rows.owner(first) * self.grid.columns + self.columns.owner(first);
        if job.rank() == owner {
            let (row, column) = (self.rows.first_local(first), self.columns.first_local(first));
            solve(a.slice(s![row..row + size, column..column + size]), ArrayViewMut1::from(&mut here[..]));
        }
        job.broadcast(owner, &mut here)?;
        Ok(here)
    }

    /// Subtracts from own rows of z in `range` what own columns of the block contribute.
    fn subtract(&self, a: ArrayView2<'_, f64>, first: usize, range: std::ops::Range<usize>, solved: &[f64], z: &mut [f64]) {
        if !self.columns.mine(first) {
            return;
        }
        let rows = self.rows.first_local(range.start)..self.rows.first_local(range.end);
        let column = self.columns.first_local(first);
        let mut own: Vec<f64> = rows.clone().map(|row| z[self.rows.global(row)]).collect();
        let block = a.slice(s![rows.clone(), column..column + solved.len()]);
        self.job.simulation().work(Work::flops(2.0 * block.len() as f64) + Work::bytes(8.0 * block.len() as f64));
        subtract_product(&mut own, block, solved);
        rows.zip(own).for_each(|(row, value)| z[self.rows.global(row)] = value);
    }
}
