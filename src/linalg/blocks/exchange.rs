//! What members send each other while they factor: panels along process rows, rows of U along process columns. All by channels of two
//! slots. No barrier anywhere.

use ndarray::{Array2, ArrayView1, ArrayView2, ArrayViewMut2, CowArray, Ix2, ShapeBuilder};

use super::{axis::Axis, panel::Factored, place::Place, swaps::RowMoves};
use crate::{
    element::Element,
    error::Result,
    linalg::field::Field,
    message::channel::{Channels, Inlet, Outlet, from, to},
    sync::Group,
};

/// A panel as a member uses it: the block L₁₁ and U₁₁ with its pivots, and this member's rows of L₂₁, which stand in its part or came by message.
pub(super) struct Panel<'a, T> {
    pub(super) factored: Factored<T>,
    pub(super) lower: CowArray<'a, T, Ix2>,
}

impl<T: Field> Panel<'_, T> {
    /// The memory of an L₂₁ that came by message, for the next one.
    pub(super) fn into_storage(self) -> Option<Vec<T>> {
        self.lower.is_owned().then(|| self.lower.into_owned().into_raw_vec_and_offset().0)
    }
}

/// A panel, or the column at which the factorization stops.
pub(super) type Received<'a, T> = Result<Panel<'a, T>, usize>;

/// Panels, sent by process column q_k round the ring of each process row: each column passes them on to the next. So a member has two slots,
/// whatever the number of columns, and sends each panel once (the increasing ring of HPL).
///
/// A message is a head, a word of status (0, or 1 + the column without a pivot) and the pivots, and before it a body, the block L₁₁ and U₁₁ and
/// then the rows of L₂₁, both column by column. Where nothing is computed, bodies have no contents.
pub(super) struct PanelBuffers<T: Element> {
    place: Place,
    heads: Option<Ring<u64>>,
    bodies: Option<Ring<T>>,
    skips: bool,
}

/// To the next process column, and from the one before.
type Ring<T> = (Outlet<T>, Inlet<T>);

impl<T: Field> PanelBuffers<T> {
    /// Collective.
    pub(super) fn new(group: &Group, place: Place) -> Result<Self> {
        let (block, columns) = (place.rows.block, place.columns);
        let most = place.rows.of(0).local_extent();
        let member = |step: usize| place.member(place.rows.me, (columns.me + step) % columns.processes);
        let (next, last) = (member(1), member(columns.processes - 1));
        let (mut heads, mut bodies) = (None, None);
        if columns.processes > 1 {
            let ([out], [inlet]) = Channels::new(group).open([to(next, 0, 1 + block)], [from(last, 0)])?;
            heads = Some((out, inlet));
            let ([out], [inlet]) = Channels::new(group).hollow().open([to(next, 0, block * (block + most))], [from(last, 0)])?;
            bodies = Some((out, inlet));
        }
        Ok(PanelBuffers { place, heads, bodies, skips: group.skips() })
    }

    /// Sends the panel that has been `factored`, whose rows of L₂₁ are `lower` here.
    pub(super) fn send(&mut self, factored: &Factored<T>, lower: ArrayView2<'_, T>) -> Result<()> {
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
            slot[0] = 0;
            slot[1..].iter_mut().zip(&factored.pivots).for_each(|(to, &row)| *to = row as u64);
        })
    }

    /// Tells that the factorization stops at `column`.
    pub(super) fn send_failure(&mut self, column: usize) -> Result<()> {
        self.heads.as_mut().map_or(Ok(()), |(head, _)| head.put(&[1 + column as u64]))
    }

    /// Waits for the panel that starts at `first`; instead of it the column at which the factorization stops. L₂₁ goes into `storage`: fresh
    /// memory for each panel would cost its page faults each time.
    pub(super) fn receive<'a>(&mut self, first: usize, mut storage: Vec<T>) -> Result<Received<'a, T>> {
        let Place { rows, columns } = self.place;
        let width = rows.block.min(rows.extent - first);
        let goes_on = (columns.me + 1) % columns.processes != columns.owner(first);
        let (to_head, head) = self.heads.as_mut().expect("several process columns");
        let head = head.wait()?;
        if head[0] != 0 {
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
                    slot.copy_from_slice(&body);
                }
            })?;
            to_head.put(&*head)?;
        }
        let below = rows.local_extent() - rows.first_local(first + width);
        let (mut top, mut height) = (Vec::new(), 0);
        storage.clear();
        if !self.skips {
            top.extend_from_slice(&body[..width * width]);
            storage.extend_from_slice(&body[width * width..]);
            height = width;
        }
        let top = Array2::from_shape_vec((width, height).f(), top).expect("as long as its shape says");
        let lower = Array2::from_shape_vec((below, height).f(), storage).expect("as long as its shape says");
        let pivots = head[1..].iter().map(|&row| row as usize).collect();
        Ok(Ok(Panel { factored: Factored { top, pivots }, lower: lower.into() }))
    }
}

/// Copies a matrix, column by column.
fn copy_columns<T: Copy>(from: ArrayView2<'_, T>, to: &mut [T]) {
    for (to, column) in to.chunks_exact_mut(from.nrows().max(1)).zip(from.columns()) {
        to.copy_from_slice(column.as_slice().expect("columns are contiguous"));
    }
}

/// Rows that all members of a process column get, of U or of L₂₁, and rows that end with one of them.
///
/// A message goes 2^r places back, in rounds of falling r. A row that ends d places back moves in the rounds of the bits of d; one that goes to all
/// leaves a copy on its way. So P process rows take log2 P messages a step, each row for all arrives once, and the longest
/// messages go to neighbors. All know what a message has.
///
/// Nobody waits for a free slot: an exchange ends when something has come of every member, and that was sent after the member had ended the
/// exchange before.
pub(super) struct RowBuffers<T: Element> {
    rows: Axis,
    /// The places that the messages of each round go, and its ends.
    rounds: Vec<(usize, Outlet<T>, Inlet<T>)>,
    /// The rows of one step, one after the other: those for all, then those that are displaced.
    moving: Vec<T>,
    skips: bool,
}

impl<T: Field> RowBuffers<T> {
    /// Collective.
    pub(super) fn new(group: &Group, place: Place) -> Result<Self> {
        let Place { rows, columns } = place;
        let (size, most) = (rows.processes, 2 * rows.block * columns.of(0).local_extent().max(rows.block));
        let member = |row: usize| place.member(row % size, columns.me);
        let steps: Vec<usize> = (0..size.next_power_of_two().ilog2()).rev().map(|round| 1 << round).collect();
        let (outlets, inlets) = Channels::new(group).hollow().open(
            steps.iter().map(|&step| to(member(rows.me + size - step), step as u64, most)).collect::<Vec<_>>(),
            steps.iter().map(|&step| from(member(rows.me + step), step as u64)).collect::<Vec<_>>(),
        )?;
        let rounds = steps.into_iter().zip(outlets).zip(inlets).map(|((step, outlet), inlet)| (step, outlet, inlet)).collect();
        Ok(RowBuffers { rows, rounds, moving: Vec::new(), skips: group.skips() })
    }

    /// Moves the rows of one step of LU for the own `columns` right of the panel; returns the rows that end in the block row, unless nothing is
    /// computed.
    pub(super) fn exchange(&mut self, moves: &RowMoves, columns: &mut ArrayViewMut2<'_, T>) -> Result<Option<Array2<T>>> {
        let (rows, width) = (self.rows, moves.into_top.len());
        self.send_all(&moves.into_top, &moves.out_of_top, rows.owner(moves.first), columns.view(), 0)?;
        if self.skips {
            return Ok(None);
        }
        let mut upper = Array2::zeros((width, columns.ncols()).f());
        upper.rows_mut().into_iter().zip(self.moved(columns.ncols())).for_each(|(mut to, row)| to.assign(&row));
        for (&(_, end), row) in moves.out_of_top.iter().zip(self.moved(columns.ncols()).skip(width)) {
            if rows.mine(end) {
                columns.row_mut(rows.first_local(end)).assign(&row);
            }
        }
        Ok(Some(upper))
    }

    /// Some rows of a matrix, on all members, one after the other. Those that are here stand in `part`, which begins with local row `start`. No rows where
    /// nothing is computed.
    pub(super) fn gather(&mut self, list: &[usize], part: ArrayView2<'_, T>, start: usize) -> Result<ArrayView2<'_, T>> {
        let width = part.ncols();
        self.send_all(list, &[], 0, part, start)?;
        let height = if self.skips { 0 } else { list.len() };
        Ok(ArrayView2::from_shape((height, width), &self.moving[..height * width]).expect("as long as its shape says"))
    }

    /// The rows after [`send_all`](Self::send_all).
    fn moved(&self, count: usize) -> impl Iterator<Item = ArrayView1<'_, T>> {
        self.moving.chunks_exact(count.max(1)).map(ArrayView1::from)
    }

    /// Brings rows for all to all, and each of the `displaced`, which are on `owner`, to where it ends.
    fn send_all(
        &mut self,
        for_all: &[usize],
        displaced: &[(usize, usize)],
        owner: usize,
        part: ArrayView2<'_, T>,
        start: usize,
    ) -> Result<()> {
        let (rows, count, skips) = (self.rows, part.ncols(), self.skips);
        let (size, me, width) = (rows.processes, rows.me, for_all.len());
        // How many places back from one member another is.
        let back = |from: usize, to: usize| (from + size - to) % size;
        // The rows that a member sends `step` places back, as places in `moving`.
        let sent = |member: usize, step: usize| {
            let for_all = for_all.iter().enumerate().filter(move |(_, row)| {
                let come = back(rows.owner(**row), member);
                come.is_multiple_of(2 * step) && come + step < size
            });
            let displaced_ones = displaced.iter().enumerate().filter(move |(_, (_, end))| {
                let places = back(owner, rows.owner(*end));
                places & step != 0 && places - places % (2 * step) == back(owner, member)
            });
            for_all.map(|(i, _)| i).chain(displaced_ones.map(move |(i, _)| width + i))
        };
        let place = |i: usize| i * count..(i + 1) * count;
        if !skips {
            self.moving.resize(place(for_all.len() + displaced.len()).start, T::ZERO);
            for (i, row) in for_all.iter().chain(displaced.iter().map(|(row, _)| row)).enumerate() {
                if rows.mine(*row) {
                    let own = part.row(rows.first_local(*row) - start);
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
        Ok(())
    }
}
