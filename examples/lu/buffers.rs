//! What ranks send each other during the factorisation: panels along process rows, pivot rows along process columns.
//!
//! Each buffer array has one block for each rank, of two slots, and is written by puts with signals. A slot is given back by
//! another signal. Each signal is raised by one rank only, so it has an index for the sender's place; counts grow forever. No
//! barrier anywhere.

use global_arrays::prelude::*;
use ndarray::{ArrayView1, ArrayView2, ArrayViewMut2, ShapeBuilder};

use crate::axis::Axis;
use crate::panel::Factored;
use crate::swaps::RowMoves;

/// A panel as a rank uses it: the block L₁₁ and U₁₁ with its pivots, and this rank's rows of L₂₁.
pub(crate) struct Panel<'a> {
    pub(crate) factored: Factored,
    lower: Lower<'a>,
}

enum Lower<'a> {
    Own(ArrayView2<'a, f64>),
    Received(Array2<f64>),
}

impl<'a> Panel<'a> {
    /// A panel of the own process column: L₂₁ where it stands.
    pub(crate) fn own(factored: Factored, lower: ArrayView2<'a, f64>) -> Self {
        Panel { factored, lower: Lower::Own(lower) }
    }

    /// A panel that came by message.
    pub(crate) fn received((factored, lower): (Factored, Array2<f64>)) -> Self {
        Panel { factored, lower: Lower::Received(lower) }
    }

    /// The memory of a received L₂₁, for the next one.
    pub(crate) fn into_storage(self) -> Option<Vec<f64>> {
        match self.lower {
            Lower::Own(_) => None,
            Lower::Received(array) => Some(array.into_raw_vec_and_offset().0),
        }
    }

    pub(crate) fn lower(&self) -> ArrayView2<'_, f64> {
        match &self.lower {
            Lower::Own(view) => view.view(),
            Lower::Received(array) => array.view(),
        }
    }
}

/// A panel with the own rows of L₂₁, or the column in which it has no pivot.
pub(crate) type Received = Result<(Factored, Array2<f64>), usize>;

/// Panels, sent by process column q_k to the others of each process row.
///
/// A message is `top` and pivots behind a word of status (0, or 1 + the column without a pivot), then the rows of L₂₁ column by
/// column. Row and column numbers are exact in f64 up to 2⁵³.
pub(crate) struct PanelBuffers {
    rows: Axis,
    columns: Axis,
    slots: GlobalArray<f64, Ix2>,
    slot: usize,
    there: Signal,
    free: Signal,
    /// How often each process column's signals were waited for.
    seen: Vec<u32>,
    freed: Vec<u32>,
}

impl PanelBuffers {
    pub(crate) fn new(job: &Job, rows: Axis, columns: Axis) -> Result<Self, Error> {
        let (block, most) = (rows.block, Axis { me: 0, ..rows }.local_extent());
        let slot = head(block) + block * most;
        let ranks = job.size();
        let slots = GlobalArray::builder(job, [ranks, 2 * slot]).grid([ranks, 1]).name("panel buffers").create()?;
        let q = columns.processes;
        Ok(PanelBuffers {
            rows,
            columns,
            slots,
            slot,
            there: Signal::with_count(job, q)?,
            free: Signal::with_count(job, q)?,
            seen: vec![0; q],
            freed: vec![0; q],
        })
    }

    fn rank(&self, column: usize) -> usize {
        self.rows.me * self.columns.processes + column
    }

    fn start(&self, first: usize) -> usize {
        first / self.rows.block % 2 * self.slot
    }

    /// Sends the panel that starts at `first`, whose rows of L₂₁ are `lower` here.
    pub(crate) fn send(&mut self, first: usize, factored: &Factored, lower: ArrayView2<'_, f64>) -> Result<(), Error> {
        let mut message = vec![0.0];
        message.extend(factored.pivots.iter().map(|&row| row as f64));
        message.extend(factored.top.t().iter());
        self.tell_others(first, &message, Some(lower))
    }

    /// Tells that `column` has no pivot.
    pub(crate) fn send_failure(&mut self, first: usize, column: usize) -> Result<(), Error> {
        self.tell_others(first, &[1.0 + column as f64], None)
    }

    fn tell_others(&mut self, first: usize, message: &[f64], lower: Option<ArrayView2<'_, f64>>) -> Result<(), Error> {
        let (me, start) = (self.columns.me, self.start(first));
        for column in (0..self.columns.processes).filter(|&column| column != me) {
            if self.told_free(first, column) {
                self.freed[column] += 1;
                self.free.wait_at_least(column, self.freed[column])?;
            }
            let to = self.rank(column);
            let mut at = start + head(self.rows.block);
            for values in lower.iter().flat_map(|lower| lower.columns()) {
                self.slots.put(s![to, at..at + values.len()], values)?;
                at += values.len();
            }
            let patch = s![to, start..start + message.len()];
            self.slots.put_signal(patch, ArrayView1::from(message), self.there.at(to, me))?;
        }
        Ok(())
    }

    /// Whether process column `column` tells the sender of the panel at `first` that the slot is free: it received the panel two
    /// before by message.
    fn told_free(&self, first: usize, column: usize) -> bool {
        let before = first.checked_sub(2 * self.rows.block);
        before.is_some_and(|before| self.columns.owner(before) != column)
    }

    /// Waits for the panel that starts at `first`; instead of it the column without a pivot, if the matrix is singular. L₂₁ goes into `storage`: fresh
    /// memory for each panel would cost its page faults each time.
    pub(crate) fn receive(&mut self, first: usize, mut storage: Vec<f64>) -> Result<Received, Error> {
        let (block, n) = (self.rows.block, self.rows.extent);
        let width = block.min(n - first);
        let sender = self.columns.owner(first);
        self.seen[sender] += 1;
        self.there.wait_at_least(sender, self.seen[sender])?;
        let (me, start) = (self.rank(self.columns.me), self.start(first));
        let message = self.slots.get(s![me, start..start + 1 + width + width * width])?;
        let message = message.as_slice().expect("one row");
        if message[0] != 0.0 {
            return Ok(Err(message[0] as usize - 1));
        }
        let below = self.rows.local_extent() - self.rows.first_local(first + width);
        storage.resize(below * width, 0.0);
        let at = start + head(block);
        self.slots.get_into(s![me, at..at + below * width], ndarray::ArrayViewMut1::from(&mut storage[..]))?;
        let lower = Array2::from_shape_vec((below, width).f(), storage).expect("as long as its shape says");
        let next = first + 2 * block;
        if next < n && self.columns.owner(next) != self.columns.me {
            self.free.at(self.rank(self.columns.owner(next)), self.columns.me).notify()?;
        }
        let pivots = message[1..=width].iter().map(|&row| row as usize).collect();
        let top = Array2::from_shape_vec((width, width).f(), message[1 + width..].to_vec()).expect("a square block");
        Ok(Ok((Factored { top, pivots }, lower)))
    }
}

/// Words in front of L₂₁.
fn head(block: usize) -> usize {
    1 + block + block * block
}

/// Pivot rows, exchanged along each process column: all get the rows of U before their solve, each gets the rows that end with it.
pub(crate) struct RowBuffers {
    rows: Axis,
    columns: Axis,
    slots: Option<GlobalArray<f64, Ix2>>,
    slot: usize,
    there: Signal,
    free: Signal,
    uses: u32,
}

impl RowBuffers {
    pub(crate) fn new(job: &Job, rows: Axis, columns: Axis) -> Result<Self, Error> {
        let slot = 2 * rows.block * Axis { me: 0, ..columns }.local_extent();
        let ranks = job.size();
        let slots = (rows.processes > 1)
            .then(|| GlobalArray::builder(job, [ranks, 2 * slot]).grid([ranks, 1]).name("row buffers").create())
            .transpose()?;
        let (there, free) = (Signal::with_count(job, rows.processes)?, Signal::with_count(job, rows.processes)?);
        Ok(RowBuffers { rows, columns, slots, slot, there, free, uses: 0 })
    }

    fn rank(&self, row: usize) -> usize {
        row * self.columns.processes + self.columns.me
    }

    /// Moves the rows of one step for the own `columns` right of the panel; returns the rows that end in the block row.
    pub(crate) fn exchange(&mut self, moves: &RowMoves, columns: &mut ArrayViewMut2<'_, f64>) -> Result<Array2<f64>, Error> {
        let slots = self.slots.as_ref().expect("several process rows");
        let (me, rows, count) = (self.rows.me, self.rows, columns.ncols());
        let width = moves.into_top.len();
        let start = self.uses as usize % 2 * self.slot;
        let owner = rows.owner(moves.first);
        // The places in the block row that each process row fills, in their order.
        let fills: Vec<Vec<usize>> =
            (0..rows.processes).map(|p| (0..width).filter(|&i| rows.owner(moves.into_top[i]) == p).collect()).collect();
        let mut upper = Array2::zeros((width, count).f());
        for &i in &fills[me] {
            upper.row_mut(i).assign(&columns.row(rows.first_local(moves.into_top[i])));
        }
        let pack = |list: &[usize]| -> Vec<f64> { list.iter().flat_map(|&row| columns.row(row).to_vec()).collect() };
        let mine = pack(&fills[me].iter().map(|&i| rows.first_local(moves.into_top[i])).collect::<Vec<_>>());
        let before: usize = fills[..me].iter().map(Vec::len).sum();
        for other in (0..rows.processes).filter(|&p| p != me) {
            if self.uses >= 2 {
                self.free.wait_at_least(other, self.uses - 1)?;
            }
            let to = self.rank(other);
            if owner == me {
                let leaving: Vec<usize> = moves
                    .out_of_top
                    .iter()
                    .filter(|&&(_, end)| rows.owner(end) == other)
                    .map(|&(row, _)| rows.first_local(row))
                    .collect();
                let at = start + width * count;
                let displaced = pack(&leaving);
                slots.put(s![to, at..at + displaced.len()], ArrayView1::from(&displaced))?;
            }
            let at = start + before * count;
            slots.put_signal(s![to, at..at + mine.len()], ArrayView1::from(&mine), self.there.at(to, me))?;
        }
        // Own rows that end with this rank: from the own block row at once, else by message below.
        let ending: Vec<(usize, usize)> = moves.out_of_top.iter().copied().filter(|&(_, end)| rows.owner(end) == me).collect();
        if owner == me {
            for &(row, end) in &ending {
                let values = columns.row(rows.first_local(row)).to_owned();
                columns.row_mut(rows.first_local(end)).assign(&values);
            }
        }
        let rank = self.rank(me);
        let mut at = start;
        for (other, places) in fills.iter().enumerate() {
            if other != me {
                self.there.wait_at_least(other, self.uses + 1)?;
                let values = slots.get(s![rank, at..at + places.len() * count])?;
                for (&i, row) in places.iter().zip(values.as_slice().expect("one row").chunks_exact(count)) {
                    upper.row_mut(i).assign(&ArrayView1::from(row));
                }
            }
            at += places.len() * count;
        }
        if owner != me {
            let at = start + width * count;
            let values = slots.get(s![rank, at..at + ending.len() * count])?;
            for (&(_, end), row) in ending.iter().zip(values.as_slice().expect("one row").chunks_exact(count)) {
                columns.row_mut(rows.first_local(end)).assign(&ArrayView1::from(row));
            }
        }
        for other in (0..rows.processes).filter(|&p| p != me) {
            self.free.at(self.rank(other), me).notify()?;
        }
        self.uses += 1;
        Ok(upper)
    }
}
