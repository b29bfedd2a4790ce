//! What ranks send each other during the factorisation: panels along process rows, pivot rows along process columns. All by channels of two
//! slots. No barrier anywhere.

use global_arrays::{
    channel::{Channels, Inlet, Outlet, from, to},
    prelude::*,
};
use ndarray::{ArrayView2, ArrayViewMut2, ShapeBuilder};

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

/// Panels, sent by process column q_k round the ring of each process row: each column passes them on to the next. So a rank has two slots,
/// whatever the number of columns, and sends each panel once (the increasing ring of HPL).
///
/// A message is a head, a word of status (0, or 1 + the column without a pivot) and the pivots, and before it a body, the block L₁₁ and U₁₁ and
/// then the rows of L₂₁, both column by column. Row and column numbers are exact in f64 up to 2⁵³. Where nothing is computed, bodies have no
/// contents.
pub(crate) struct PanelBuffers {
    rows: Axis,
    columns: Axis,
    heads: Option<Ring>,
    bodies: Option<Ring>,
    skips: bool,
}

/// To the next process column, and from the one before.
type Ring = (Outlet<f64>, Inlet<f64>);

impl PanelBuffers {
    pub(crate) fn new(job: &Job, rows: Axis, columns: Axis) -> Result<Self, Error> {
        let (block, most) = (rows.block, Axis { me: 0, ..rows }.local_extent());
        let rank = |step: usize| rows.me * columns.processes + (columns.me + step) % columns.processes;
        let ring = |channels: Channels<'_>, most| {
            if columns.processes == 1 {
                return Ok(None);
            }
            channels
                .open([to(rank(1), 0, most)], [from(rank(columns.processes - 1), 0)])
                .map(|([out], [inlet])| Some((out, inlet)))
        };
        let heads = ring(Channels::new(job), 1 + block)?;
        let bodies = ring(Channels::new(job).hollow(), block * block + block * most)?;
        Ok(PanelBuffers { rows, columns, heads, bodies, skips: job.simulation().skips() })
    }

    /// Sends the panel that has been `factored`, whose rows of L₂₁ are `lower` here.
    pub(crate) fn send(&mut self, factored: &Factored, lower: ArrayView2<'_, f64>) -> Result<(), Error> {
        let (Some((head, _)), Some((body, _))) = (&mut self.heads, &mut self.bodies) else { return Ok(()) };
        let top = factored.top.nrows().pow(2);
        body.fill(top + lower.len(), |slot| {
            if !self.skips {
                let (to_top, to_lower) = slot.split_at_mut(top);
                copy_columns(factored.top.view(), to_top);
                copy_columns(lower, to_lower);
            }
        })?;
        head.fill(1 + factored.pivots.len(), |slot| {
            slot[0] = 0.0;
            slot[1..].iter_mut().zip(&factored.pivots).for_each(|(to, &row)| *to = row as f64);
        })
    }

    /// Tells that `column` has no pivot.
    pub(crate) fn send_failure(&mut self, column: usize) -> Result<(), Error> {
        self.heads.as_mut().map_or(Ok(()), |(head, _)| head.put(&[1.0 + column as f64]))
    }

    /// Waits for the panel that starts at `first`; instead of it the column without a pivot, if the matrix is singular. L₂₁ goes into `storage`: fresh
    /// memory for each panel would cost its page faults each time.
    pub(crate) fn receive(&mut self, first: usize, mut storage: Vec<f64>) -> Result<Received, Error> {
        let width = self.rows.block.min(self.rows.extent - first);
        let goes_on = (self.columns.me + 1) % self.columns.processes != self.columns.owner(first);
        let (to_head, head) = self.heads.as_mut().expect("several process columns");
        let head = head.wait()?;
        if head[0] != 0.0 {
            if goes_on {
                to_head.put(&*head)?;
            }
            return Ok(Err(head[0] as usize - 1));
        }
        let (to_body, body) = self.bodies.as_mut().expect("several process columns");
        let body = body.wait()?;
        if goes_on {
            to_body.fill(body.len(), |slot| {
                if !self.skips {
                    slot.copy_from_slice(&body)
                }
            })?;
            to_head.put(&*head)?;
        }
        let below = self.rows.local_extent() - self.rows.first_local(first + width);
        let (mut top, mut rows) = (Vec::new(), 0);
        storage.clear();
        if !self.skips {
            top.extend_from_slice(&body[..width * width]);
            storage.extend_from_slice(&body[width * width..]);
            rows = width;
        }
        let top = Array2::from_shape_vec((width, rows).f(), top).expect("as long as its shape says");
        let lower = Array2::from_shape_vec((below, rows).f(), storage).expect("as long as its shape says");
        let pivots = head[1..].iter().map(|&row| row as usize).collect();
        Ok(Ok((Factored { top, pivots }, lower)))
    }
}

/// Copies a matrix, column by column.
fn copy_columns(from: ArrayView2<'_, f64>, to: &mut [f64]) {
    for (to, column) in to.chunks_exact_mut(from.nrows().max(1)).zip(from.columns()) {
        to.copy_from_slice(column.as_slice().expect("columns are contiguous"));
    }
}

/// Pivot rows, exchanged along each process column: all get the rows of U before their solve, each gets the rows that end with it.
///
/// A message goes 2^r places back, in rounds of falling r. A row that ends d places back moves in the rounds of the bits of d; one of U
/// goes to all and leaves a copy on its way. So P process rows take log2 P messages a step, each row of U arrives once, and the longest
/// messages go to neighbors. All know from the pivots what a message has.
///
/// Nobody waits for a free slot: an exchange ends when something has come of every member, and that was sent after the member had ended the
/// exchange before.
pub(crate) struct RowBuffers {
    rows: Axis,
    /// The places that the messages of each round go, and its ends.
    rounds: Vec<(usize, Outlet<f64>, Inlet<f64>)>,
    /// The rows of one step: those of U from the top, then those that are displaced.
    moving: Vec<f64>,
    skips: bool,
}

impl RowBuffers {
    pub(crate) fn new(job: &Job, rows: Axis, columns: Axis) -> Result<Self, Error> {
        let (size, most) = (rows.processes, 2 * rows.block * Axis { me: 0, ..columns }.local_extent());
        let rank = |member: usize| member % size * columns.processes + columns.me;
        let steps: Vec<usize> = (0..size.next_power_of_two().ilog2()).rev().map(|round| 1 << round).collect();
        let (outlets, inlets) = Channels::new(job).hollow().open(
            steps.iter().map(|&step| to(rank(rows.me + size - step), step as u64, most)).collect::<Vec<_>>(),
            steps.iter().map(|&step| from(rank(rows.me + step), step as u64)).collect::<Vec<_>>(),
        )?;
        let rounds = steps.into_iter().zip(outlets).zip(inlets).map(|((step, outlet), inlet)| (step, outlet, inlet)).collect();
        Ok(RowBuffers { rows, rounds, moving: Vec::new(), skips: job.simulation().skips() })
    }

    /// Moves the rows of one step for the own `columns` right of the panel; returns the rows that end in the block row, unless nothing is
    /// computed.
    pub(crate) fn exchange(
        &mut self,
        moves: &RowMoves,
        columns: &mut ArrayViewMut2<'_, f64>,
    ) -> Result<Option<Array2<f64>>, Error> {
        let (rows, count, skips) = (self.rows, columns.ncols(), self.skips);
        let (size, me, owner, width) = (rows.processes, rows.me, rows.owner(moves.first), moves.into_top.len());
        // How many places back from one member another is.
        let back = |from: usize, to: usize| (from + size - to) % size;
        // The rows that a member sends `step` places back, as places in `moving`.
        let sent = |member: usize, step: usize| {
            let of_u = moves.into_top.iter().enumerate().filter(move |(_, row)| {
                let come = back(rows.owner(**row), member);
                come.is_multiple_of(2 * step) && come + step < size
            });
            let displaced = moves.out_of_top.iter().enumerate().filter(move |(_, (_, end))| {
                let places = back(owner, rows.owner(*end));
                places & step != 0 && places - places % (2 * step) == back(owner, member)
            });
            of_u.map(|(i, _)| i).chain(displaced.map(move |(i, _)| width + i))
        };
        let place = |i: usize| i * count..(i + 1) * count;
        if !skips {
            self.moving.resize(place(width + moves.out_of_top.len()).start, 0.0);
            for (i, row) in moves.into_top.iter().chain(moves.out_of_top.iter().map(|(row, _)| row)).enumerate() {
                if rows.mine(*row) {
                    let own = columns.row(rows.first_local(*row));
                    self.moving[place(i)].iter_mut().zip(own).for_each(|(to, &from)| *to = from);
                }
            }
        }
        for (step, out, inlet) in &mut self.rounds {
            let moving = &mut self.moving;
            out.fill(sent(me, *step).count() * count, |slot| {
                if !skips && count > 0 {
                    slot.chunks_exact_mut(count).zip(sent(me, *step)).for_each(|(to, i)| to.copy_from_slice(&moving[place(i)]));
                }
            })?;
            let arrived = inlet.wait()?;
            if !skips && count > 0 {
                let sent = sent((me + *step) % size, *step);
                arrived.chunks_exact(count).zip(sent).for_each(|(from, i)| moving[place(i)].copy_from_slice(from));
            }
        }
        if skips {
            return Ok(None);
        }
        let row = |i: usize| ndarray::ArrayView1::from(&self.moving[place(i)]);
        let mut upper = Array2::zeros((width, count).f());
        upper.rows_mut().into_iter().enumerate().for_each(|(i, mut to)| to.assign(&row(i)));
        for (i, &(_, end)) in moves.out_of_top.iter().enumerate().filter(|(_, (_, end))| rows.mine(*end)) {
            columns.row_mut(rows.first_local(end)).assign(&row(width + i));
        }
        Ok(Some(upper))
    }
}
