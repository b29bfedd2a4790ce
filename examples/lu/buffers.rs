//! What ranks send each other during the factorisation: panels along process rows, pivot rows along process columns.
//!
//! Each buffer array has one block for each rank, of two slots, and is written by puts with signals. A slot of a panel is given back by
//! another signal. Each signal is raised by one rank only, so it has an index for the sender's place; counts grow forever. No
//! barrier anywhere.

use global_arrays::prelude::*;
use ndarray::{ArrayView1, ArrayView2, ArrayViewMut1, ArrayViewMut2, ShapeBuilder};

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

/// What stands for data where nothing is computed: none of it is ever read or written, so it takes no memory. New zeros for each message would
/// be most of the time of such a run.
struct Blank(Option<Vec<f64>>);

impl Blank {
    /// For up to so many words.
    fn new(job: &Job, most: usize) -> Self {
        Blank(job.simulation().skips().then(|| vec![0.0; most]))
    }

    /// If nothing is computed, a message of so many words.
    fn of(&mut self, len: usize) -> Option<&mut [f64]> {
        self.0.as_mut().map(|words| &mut words[..len])
    }
}

/// A panel with the own rows of L₂₁, or the column in which it has no pivot.
pub(crate) type Received = Result<(Factored, Array2<f64>), usize>;

/// Panels, sent by process column q_k to the others of each process row.
///
/// A message is a head, a word of status (0, or 1 + the column without a pivot) and the pivots, and a body, `top` and then the rows of L₂₁
/// column by column. Row and column numbers are exact in f64 up to 2⁵³. Where nothing is computed, bodies have no contents.
pub(crate) struct PanelBuffers {
    rows: Axis,
    columns: Axis,
    heads: GlobalArray<f64, Ix2>,
    bodies: GlobalArray<f64, Ix2>,
    /// Words of a body.
    body: usize,
    blank: Blank,
    there: Signal,
    free: Signal,
    /// How often each process column's signals were waited for.
    seen: Vec<usize>,
    freed: Vec<usize>,
}

impl PanelBuffers {
    pub(crate) fn new(job: &Job, rows: Axis, columns: Axis) -> Result<Self, Error> {
        let (block, most) = (rows.block, Axis { me: 0, ..rows }.local_extent());
        let body = block * block + block * most;
        let ranks = job.size();
        let heads = GlobalArray::builder(job, [ranks, 2 * (1 + block)]).grid([ranks, 1]).name("panel heads").create()?;
        let bodies = GlobalArray::builder(job, [ranks, 2 * body]).grid([ranks, 1]).name("panels").hollow().create()?;
        let q = columns.processes;
        Ok(PanelBuffers {
            rows,
            columns,
            heads,
            bodies,
            body,
            blank: Blank::new(job, body),
            there: Signal::with_count(job, q)?,
            free: Signal::with_count(job, q)?,
            seen: vec![0; q],
            freed: vec![0; q],
        })
    }

    fn rank(&self, column: usize) -> usize {
        self.rows.me * self.columns.processes + column
    }

    /// The first words of the head and of the body.
    fn start(&self, first: usize) -> (usize, usize) {
        let slot = first / self.rows.block % 2;
        (slot * (1 + self.rows.block), slot * self.body)
    }

    /// Sends the panel that starts at `first`, whose rows of L₂₁ are `lower` here.
    pub(crate) fn send(&mut self, first: usize, factored: &Factored, lower: ArrayView2<'_, f64>) -> Result<(), Error> {
        let mut head = vec![0.0];
        head.extend(factored.pivots.iter().map(|&row| row as f64));
        // For several, one message for each instead of one for each column.
        let packs = self.columns.processes > 2;
        let len = factored.top.nrows().pow(2) + if packs { lower.len() } else { 0 };
        let mut blank = std::mem::replace(&mut self.blank, Blank(None));
        let told = match blank.of(len) {
            Some(body) => self.tell_others(first, &head, body, (!packs).then_some(lower)),
            None => {
                let mut body = Vec::with_capacity(len);
                body.extend(factored.top.t().iter());
                if packs {
                    body.extend(lower.t().iter());
                }
                self.tell_others(first, &head, &body, (!packs).then_some(lower))
            }
        };
        self.blank = blank;
        told
    }

    /// Tells that `column` has no pivot.
    pub(crate) fn send_failure(&mut self, first: usize, column: usize) -> Result<(), Error> {
        self.tell_others(first, &[1.0 + column as f64], &[], None)
    }

    /// Sends a head and a body, and behind that the columns of a matrix.
    fn tell_others(
        &mut self,
        first: usize,
        head: &[f64],
        body: &[f64],
        columns: Option<ArrayView2<'_, f64>>,
    ) -> Result<(), Error> {
        let (me, (head_at, body_at)) = (self.columns.me, self.start(first));
        for column in (0..self.columns.processes).filter(|&column| column != me) {
            if self.told_free(first, column) {
                self.freed[column] += 1;
                self.free.wait_at_least(column, self.freed[column])?;
            }
            let to = self.rank(column);
            let mut at = body_at + body.len();
            self.bodies.put(s![to, body_at..at], ArrayView1::from(body))?;
            for values in columns.iter().flat_map(|columns| columns.columns()) {
                self.bodies.put(s![to, at..at + values.len()], values)?;
                at += values.len();
            }
            let patch = s![to, head_at..head_at + head.len()];
            self.heads.put_signal(patch, ArrayView1::from(head), self.there.at(to, me))?;
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
        let (me, (head_at, body_at)) = (self.rank(self.columns.me), self.start(first));
        let head = self.heads.get(s![me, head_at..=head_at + width])?.to_vec();
        if head[0] != 0.0 {
            return Ok(Err(head[0] as usize - 1));
        }
        let below = self.rows.local_extent() - self.rows.first_local(first + width);
        let (middle, end) = (body_at + width * width, body_at + (width + below) * width);
        let (top, lower) = if self.blank.of(0).is_some() {
            for part in [body_at..middle, middle..end] {
                let words = self.blank.of(part.len()).expect("nothing is computed");
                self.bodies.get_into(s![me, part], ArrayViewMut1::from(words))?;
            }
            (Array2::zeros((width, 0).f()), Array2::zeros((below, 0).f()))
        } else {
            let mut top = Array2::zeros((width, width).f());
            let words = top.as_slice_memory_order_mut().expect("columns behind each other");
            self.bodies.get_into(s![me, body_at..middle], ArrayViewMut1::from(words))?;
            storage.resize(below * width, 0.0);
            self.bodies.get_into(s![me, middle..end], ArrayViewMut1::from(&mut storage[..]))?;
            (top, Array2::from_shape_vec((below, width).f(), storage).expect("as long as its shape says"))
        };
        let next = first + 2 * block;
        if next < n && self.columns.owner(next) != self.columns.me {
            self.free.at(self.rank(self.columns.owner(next)), self.columns.me).notify()?;
        }
        let pivots = head[1..].iter().map(|&row| row as usize).collect();
        Ok(Ok((Factored { top, pivots }, lower)))
    }
}

/// Pivot rows, exchanged along each process column: all get the rows of U before their solve, each gets the rows that end with it.
///
/// Nobody has to say that a slot is free. It is used again two exchanges on. In between this rank has got something from each other one, which
/// that one sent after it had read the slot.
pub(crate) struct RowBuffers {
    rows: Axis,
    columns: Axis,
    slots: Option<GlobalArray<f64, Ix2>>,
    slot: usize,
    blank: Blank,
    there: Signal,
    uses: usize,
}

impl RowBuffers {
    pub(crate) fn new(job: &Job, rows: Axis, columns: Axis) -> Result<Self, Error> {
        let slot = 2 * rows.block * Axis { me: 0, ..columns }.local_extent();
        let ranks = job.size();
        let slots = (rows.processes > 1)
            .then(|| GlobalArray::builder(job, [ranks, 2 * slot]).grid([ranks, 1]).name("row buffers").hollow().create())
            .transpose()?;
        let there = Signal::with_count(job, rows.processes)?;
        Ok(RowBuffers { rows, columns, slots, slot, blank: Blank::new(job, slot), there, uses: 0 })
    }

    /// Moves the rows of one step for the own `columns` right of the panel; returns the rows that end in the block row, unless nothing is
    /// computed.
    pub(crate) fn exchange(
        &mut self,
        moves: &RowMoves,
        columns: &mut ArrayViewMut2<'_, f64>,
    ) -> Result<Option<Array2<f64>>, Error> {
        let Axis { processes, me: column, .. } = self.columns;
        let rank = |row: usize| row * processes + column;
        let slots = self.slots.as_ref().expect("several process rows");
        let (me, rows, count) = (self.rows.me, self.rows, columns.ncols());
        let width = moves.into_top.len();
        let start = self.uses % 2 * self.slot;
        let owner = rows.owner(moves.first);
        // The places in the block row that each process row fills, in their order.
        let mut fills = vec![Vec::new(); rows.processes];
        moves.into_top.iter().enumerate().for_each(|(i, &row)| fills[rows.owner(row)].push(i));
        let blank = &mut self.blank;
        let skips = blank.of(0).is_some();
        let mut upper = Array2::zeros((width, if skips { 0 } else { count }).f());
        if !skips {
            for &i in &fills[me] {
                upper.row_mut(i).assign(&columns.row(rows.first_local(moves.into_top[i])));
            }
        }
        let pack = |list: &[usize]| -> Vec<f64> {
            if skips { Vec::new() } else { list.iter().flat_map(|&row| columns.row(row).to_vec()).collect() }
        };
        let mine = pack(&fills[me].iter().map(|&i| rows.first_local(moves.into_top[i])).collect::<Vec<_>>());
        let before: usize = fills[..me].iter().map(Vec::len).sum();
        for other in (0..rows.processes).filter(|&p| p != me) {
            let to = rank(other);
            if owner == me {
                let leaving: Vec<usize> = moves
                    .out_of_top
                    .iter()
                    .filter(|&&(_, end)| rows.owner(end) == other)
                    .map(|&(row, _)| rows.first_local(row))
                    .collect();
                let (at, len, packed) = (start + width * count, leaving.len() * count, pack(&leaving));
                let displaced = blank.of(len).map_or(&packed[..], |blank| blank);
                slots.put(s![to, at..at + len], ArrayView1::from(displaced))?;
            }
            let (at, len) = (start + before * count, fills[me].len() * count);
            let rows = blank.of(len).map_or(&mine[..], |blank| blank);
            slots.put_signal(s![to, at..at + len], ArrayView1::from(rows), self.there.at(to, me))?;
        }
        // Own rows that end with this rank: from the own block row at once, else by message below.
        let ending: Vec<(usize, usize)> = moves.out_of_top.iter().copied().filter(|&(_, end)| rows.owner(end) == me).collect();
        if owner == me && !skips {
            for &(row, end) in &ending {
                let values = columns.row(rows.first_local(row)).to_owned();
                columns.row_mut(rows.first_local(end)).assign(&values);
            }
        }
        for other in (0..rows.processes).filter(|&p| p != me) {
            self.there.wait_at_least(other, self.uses + 1)?;
        }
        // The rows of U in the order of who sent them, and what the own block row displaced: all in one.
        let displaced = if owner == me { 0 } else { ending.len() };
        let all = s![rank(me), start..start + (width + displaced) * count];
        if let Some(blank) = blank.of((width + displaced) * count) {
            slots.get_into(all, ArrayViewMut1::from(blank))?;
        } else if count > 0 {
            let values = slots.get(all)?;
            let mut sent = values.as_slice().expect("one row").chunks_exact(count).map(ArrayView1::from);
            for (other, places) in fills.iter().enumerate() {
                for (&i, row) in places.iter().zip(sent.by_ref()) {
                    if other != me {
                        upper.row_mut(i).assign(&row);
                    }
                }
            }
            for (&(_, end), row) in ending.iter().zip(sent) {
                columns.row_mut(rows.first_local(end)).assign(&row);
            }
        }
        self.uses += 1;
        Ok((!skips).then_some(upper))
    }
}
