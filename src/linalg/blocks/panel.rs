//! Partial-pivoting factorization of one panel: w columns and all rows from the diagonal down, spread over the processes
//! of one process column.
//!
//! Recursive in the columns (F. G. Gustavson, *Recursion leads to automatic variable blocking for dense linear-algebra
//! algorithms*, IBM J. Res. Dev. 41(6), 1997; so too HPL's `pdrpan`): the left half is factored, U₁₂ = L₁₁⁻¹A₁₂ and
//! A₂₂ − L₂₁U₁₂ update the right half, which is factored in turn. Leaves of a few columns eliminate column by column.
//!
//! The rows that have become pivots live in `top`, a w × w block that *every* process of the process column keeps: in the
//! end it holds L₁₁ (unit lower) and U₁₁, and all solve with it without asking anyone. One message for each column serves
//! everything (as in HPL): each process offers its best candidate with the whole row of the panel, the owner of the
//! diagonal adds the row that must make room. Offers are combined until all have the same: the candidate of largest magnitude,
//! of equal ones that of the smallest row, so that the choice does not depend on the number of processes. All copy its row to
//! `top`, and the pivot's owner puts the displaced row in its place. [`Team`] is all that a panel knows of the others.

use ndarray::{Array2, ArrayViewMut2, Axis as Dimension, ShapeBuilder, s};
use num_traits::{Float, One, Zero};

use super::{
    axis::Axis,
    triangle::{multiply_subtract, solve_lower},
};
use crate::{
    error::Error,
    linalg::field::{Field, real_of, wide},
    memory::vectorized::vectorized,
};

/// Columns of a leaf of the recursion.
///
/// Measured on one core of Zen 5, n = 4096, blocks of 192: 4, 8 and 16 alike (31–33 ms in all panels), 32 slower (40 ms).
const LEAF: usize = 8;

/// The processes of one process column.
pub(super) trait Team<T> {
    /// What goes wrong when the others cannot be reached.
    type Error;

    /// How many they are.
    fn size(&self) -> usize;

    /// Every member gives a message, and has those of all members [combined](combine) afterwards. All call it equally often, with messages
    /// of the same length.
    fn combine_all(&mut self, message: &mut [T]) -> Result<(), Self::Error>;
}

/// What the factorization of a panel leaves on every process of the process column, besides L₂₁ in its rows.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Factored<T> {
    /// L₁₁ below the diagonal (ones on it not stored), U₁₁ on and above it; column-major.
    pub(super) top: Array2<T>,
    /// `pivots[i]` is the global row that row `first + i` was interchanged with, in this order.
    pub(super) pivots: Vec<usize>,
}

/// Why a panel could not be factored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::linalg) enum Stopped<E> {
    /// No row has a pivot for this column of the matrix (counted from 0): zeros, or not numbers, only.
    At { column: usize },
    /// The team failed.
    Team(E),
}

impl Stopped<Error> {
    /// As an error, which `at` makes of a column.
    pub(in crate::linalg) fn into_error(self, at: impl FnOnce(usize) -> Error) -> Error {
        match self {
            Stopped::At { column } => at(column),
            Stopped::Team(error) => error,
        }
    }
}

/// Factors the panel whose diagonal starts at global row (and column) `first`.
///
/// `rows` are this process's rows from `first` down (m × w; m may be 0), columns contiguous; `axis` is the distribution of
/// the matrix's rows. On return they hold L₂₁, and on the owner of `first` the block `top` as their first w rows.
///
/// Collective over `team`; every member returns the same [`Factored`], or the same [`Stopped::At`].
///
/// # Errors
///
/// [`Stopped`]; the contents of `rows` are then meaningless.
pub(super) fn factor<T: Field, G: Team<T>>(
    rows: ArrayViewMut2<'_, T>,
    first: usize,
    axis: Axis,
    team: &mut G,
) -> Result<Factored<T>, Stopped<G::Error>> {
    let width = rows.ncols();
    let diagonal = axis.mine(first);
    let message = vec![T::ZERO; if team.size() > 1 { message_len(width) } else { 0 }];
    let top = Array2::zeros((width, width).f());
    let mut panel = Panel { rows, top, first, diagonal, axis, team, pivots: Vec::with_capacity(width), message };
    panel.recurse(0, width)?;
    let Panel { mut rows, top, pivots, .. } = panel;
    if diagonal {
        rows.slice_mut(s![..width, ..]).assign(&top);
    }
    Ok(Factored { top, pivots })
}

/// What [`factor`] sends for a panel of w columns, and pivots that might come of it, without any of its numbers: each of the rows that are
/// left is as likely as the others.
///
/// # Errors
///
/// The team failed.
pub(super) fn skip<T: Field, G: Team<T>>(
    width: usize,
    first: usize,
    axis: Axis,
    team: &mut G,
) -> Result<Factored<T>, Stopped<G::Error>> {
    let mut message = vec![T::ZERO; message_len(width)];
    let mut pivots = Vec::with_capacity(width);
    for row in first..first + width {
        if team.size() > 1 {
            team.combine_all(&mut message).map_err(Stopped::Team)?;
        }
        // Knuth's multiplicative hash: the same on all processes.
        let drawn = (row as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        pivots.push(row + drawn as usize % (axis.extent - row));
    }
    Ok(Factored { top: Array2::zeros((width, 0).f()), pivots })
}

/// Elements at the start of a message: the size of the candidate (negative: none), the two halves of its global row, which are exact also in single
/// precision, and 1 with the row that makes room, else 0. Then follow the row of the candidate and that one.
const HEAD: usize = 4;

/// What the first half of a row counts.
const HALF: usize = 1 << 20;

/// The head of a message.
pub(super) fn head<T: Field>(size: T::Real, row: usize, makes_room: bool) -> [T; HEAD] {
    let number = |x: usize| T::of_real(real_of::<T>(x as f64));
    [T::of_real(size), number(row / HALF), number(row % HALF), number(usize::from(makes_room))]
}

/// The candidate's row in a message.
fn row_of<T: Field>(message: &[T]) -> usize {
    let number = |x: T| wide::<T>(x.real()) as usize;
    number(message[1]) * HALF + number(message[2])
}

/// Elements of a message about a panel of this width.
pub(super) fn message_len(width: usize) -> usize {
    HEAD + 2 * width
}

/// What two messages say together. It does not matter in which order messages are combined, nor how often one is.
pub(super) fn combine<T: Field>(message: &mut [T], other: &[T]) {
    let width = (message.len() - HEAD) / 2;
    let [own, others] = [message[0].real(), other[0].real()];
    if others > own || others == own && row_of(other) < row_of(message) {
        message[..3].copy_from_slice(&other[..3]);
        message[HEAD..HEAD + width].copy_from_slice(&other[HEAD..HEAD + width]);
    }
    if other[3].real() > message[3].real() {
        message[3] = other[3];
        message[HEAD + width..].copy_from_slice(&other[HEAD + width..]);
    }
}

/// The largest magnitude in a column, and the row of `rows` where it stands.
#[derive(Debug, Clone, Copy)]
struct Candidate<R> {
    size: R,
    row: usize,
}

struct Panel<'a, T, G> {
    rows: ArrayViewMut2<'a, T>,
    top: Array2<T>,
    first: usize,
    diagonal: bool,
    axis: Axis,
    team: &'a mut G,
    pivots: Vec<usize>,
    message: Vec<T>,
}

impl<T: Field, G: Team<T>> Panel<'_, T, G> {
    /// The first own row that is not yet a pivot's place when columns below `column` are eliminated.
    fn active(&self, column: usize) -> usize {
        if self.diagonal { column } else { 0 }
    }

    fn recurse(&mut self, from: usize, to: usize) -> Result<(), Stopped<G::Error>> {
        if to - from <= LEAF {
            return self.leaf(from, to);
        }
        let middle = from + ((to - from) / 2).next_multiple_of(LEAF);
        self.recurse(from, middle)?;
        let (left, mut right) = self.top.multi_slice_mut((s![from..middle, from..middle], s![from..middle, middle..to]));
        solve_lower(left.view(), right.view_mut(), true);
        let active = self.active(middle);
        let (left, right) = self.rows.multi_slice_mut((s![active.., from..middle], s![active.., middle..to]));
        multiply_subtract(right, left.view(), self.top.slice(s![from..middle, middle..to]));
        self.recurse(middle, to)
    }

    fn leaf(&mut self, from: usize, to: usize) -> Result<(), Stopped<G::Error>> {
        if from == to {
            return Ok(());
        }
        let active = self.active(from);
        let first_column = self.rows.slice(s![active.., from]);
        let mut candidate = vectorized(
            #[inline(always)]
            || largest(first_column.as_slice().expect("contiguous columns")),
        );
        for column in from..to {
            if let Some(found) = &mut candidate {
                found.row += self.active(column);
            }
            self.interchange(column, candidate)?;
            let active = self.active(column + 1);
            let pivots = self.top.slice(s![column, column..to]);
            let mut columns = self.rows.slice_mut(s![active.., column..to]);
            let mut columns = columns.columns_mut().into_iter().map(|c| c.into_slice().expect("contiguous columns"));
            let multipliers = columns.next().expect("the column itself");
            candidate = vectorized(
                #[inline(always)]
                || {
                    divide(multipliers, pivots[0]);
                    let mut next = None;
                    for (i, target) in columns.enumerate() {
                        subtract_multiple(target, pivots[i + 1], multipliers);
                        if i == 0 {
                            next = largest(target);
                        }
                    }
                    next
                },
            );
        }
        Ok(())
    }

    /// Chooses the pivot of `column` with the team, brings its row to `top` and the displaced row to its place.
    fn interchange(&mut self, column: usize, candidate: Option<Candidate<T::Real>>) -> Result<(), Stopped<G::Error>> {
        let target = self.first + column;
        let singular = Stopped::At { column: target };
        let first_local = self.axis.first_local(self.first);
        if self.team.size() == 1 {
            let row = candidate.filter(|c| c.size > T::Real::zero()).ok_or(singular)?.row;
            self.pivots.push(self.axis.global(first_local + row));
            for (j, mut values) in self.rows.columns_mut().into_iter().enumerate() {
                self.top[[column, j]] = values[row];
                values[row] = values[column];
            }
            return Ok(());
        }
        let width = self.rows.ncols();
        let none = Candidate { size: -T::Real::one(), row: 0 };
        let Candidate { size, row } =
            candidate.map_or(none, |found| Candidate { row: self.axis.global(first_local + found.row), ..found });
        self.message[..HEAD].copy_from_slice(&head(size, row, self.diagonal));
        if let Some(found) = candidate {
            let row = self.rows.row(found.row);
            self.message[HEAD..HEAD + width].iter_mut().zip(row).for_each(|(to, from)| *to = *from);
        }
        if self.diagonal {
            self.message[HEAD + width..].iter_mut().zip(self.rows.row(column)).for_each(|(to, from)| *to = *from);
        }
        self.team.combine_all(&mut self.message).map_err(Stopped::Team)?;
        let (chosen, displaced) = self.message[HEAD..].split_at(width);
        if self.message[0].real() <= T::Real::zero() {
            return Err(singular);
        }
        let pivot = row_of(&self.message);
        self.pivots.push(pivot);
        self.top.row_mut(column).iter_mut().zip(chosen).for_each(|(to, from)| *to = *from);
        if self.axis.mine(pivot) && pivot != target {
            let place = self.axis.first_local(pivot) - first_local;
            self.rows.index_axis_mut(Dimension(0), place).iter_mut().zip(displaced).for_each(|(to, from)| *to = *from);
        }
        Ok(())
    }
}

/// The first entry of largest magnitude; none if there is no entry. Entries that are not numbers lose.
#[inline(always)]
fn largest<T: Field>(column: &[T]) -> Option<Candidate<T::Real>> {
    const LANES: usize = 32;
    let none = -T::Real::one();
    let mut lanes = [none; LANES];
    let (chunks, rest) = column.as_chunks::<LANES>();
    for chunk in chunks {
        for (best, value) in lanes.iter_mut().zip(chunk) {
            let size = value.size();
            *best = if size > *best { size } else { *best };
        }
    }
    for (best, value) in lanes.iter_mut().zip(rest) {
        let size = value.size();
        *best = if size > *best { size } else { *best };
    }
    let size = lanes.into_iter().fold(none, |best, size| if size > best { size } else { best });
    let row = chunks
        .iter()
        .position(|chunk| chunk.iter().fold(false, |hit, value| hit | (value.size() == size)))
        .map_or(chunks.len() * LANES, |chunk| chunk * LANES);
    let row = row + column[row..].iter().position(|value| value.size() == size)?;
    Some(Candidate { size, row })
}

/// Divides by `pivot`: by its reciprocal unless that overflows (LAPACK's `dgetf2`).
#[inline(always)]
fn divide<T: Field>(column: &mut [T], pivot: T) {
    if pivot.size() >= T::Real::min_positive_value() {
        let reciprocal = T::ONE.quotient(pivot);
        column.iter_mut().for_each(|value| *value *= reciprocal);
    } else {
        column.iter_mut().for_each(|value| *value = value.quotient(pivot));
    }
}

#[inline(always)]
fn subtract_multiple<T: Field>(target: &mut [T], factor: T, multipliers: &[T]) {
    for (value, multiplier) in target.iter_mut().zip(multipliers) {
        *value -= factor * *multiplier;
    }
}

#[cfg(test)]
mod tests {
    /// What one process is left with.
    type Outcome = (Result<Factored<f64>, Stopped<std::convert::Infallible>>, Array2<f64>);

    use std::sync::{Barrier, Mutex};

    use super::*;

    /// Threads that exchange messages through one table.
    struct Threads<'a> {
        me: usize,
        size: usize,
        table: &'a Mutex<Vec<Vec<f64>>>,
        barrier: &'a Barrier,
    }

    impl Team<f64> for Threads<'_> {
        type Error = std::convert::Infallible;

        fn size(&self) -> usize {
            self.size
        }

        fn combine_all(&mut self, message: &mut [f64]) -> Result<(), Self::Error> {
            self.table.lock().unwrap()[self.me] = message.to_vec();
            self.barrier.wait();
            self.table.lock().unwrap().iter().for_each(|other| combine(message, other));
            self.barrier.wait();
            Ok(())
        }
    }

    /// Factors columns `first..first + width` of `a` from row `first` down on `processes` process rows.
    fn spread(a: &Array2<f64>, first: usize, width: usize, block: usize, processes: usize) -> Vec<Outcome> {
        let (table, barrier) = (Mutex::new(vec![Vec::new(); processes]), Barrier::new(processes));
        let work = |me| {
            let axis = Axis { extent: a.nrows(), block, processes, me };
            let own: Vec<usize> = (axis.first_local(first)..axis.local_extent()).map(|local| axis.global(local)).collect();
            let mut rows = Array2::zeros((own.len(), width).f());
            rows.assign(&Array2::from_shape_fn((own.len(), width), |(i, j)| a[[own[i], first + j]]));
            let mut team = Threads { me, size: processes, table: &table, barrier: &barrier };
            (factor(rows.view_mut(), first, axis, &mut team), rows)
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..processes).map(|me| scope.spawn(move || work(me))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        })
    }

    fn random(n: usize, columns: usize, mut state: u64) -> Array2<f64> {
        Array2::from_shape_simple_fn((n, columns), || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 11) as f64 / (1u64 << 53) as f64 - 0.5
        })
    }

    /// P·A = L·U, no multiplier exceeds 1, and any number of process rows chooses the same pivots.
    #[test]
    fn the_factors_multiply_to_the_interchanged_panel() {
        for (n, first, width, block) in
            [(1, 0, 1, 1), (5, 0, 3, 3), (40, 8, 8, 8), (100, 32, 32, 32), (70, 60, 10, 20), (300, 0, 100, 100)]
        {
            let a = random(n, first + width, n as u64);
            let alone = spread(&a, first, width, block, 1).remove(0).0.unwrap();
            for processes in [1, 2, 3, 4, 7] {
                let axis = |me| Axis { extent: n, block, processes, me };
                let mut factors = Array2::zeros((n - first, width));
                for (me, (result, rows)) in spread(&a, first, width, block, processes).into_iter().enumerate() {
                    let factored = result.unwrap();
                    assert_eq!(factored.pivots, alone.pivots, "{n} {first} {width} {processes}");
                    let start = axis(me).first_local(first);
                    for (i, row) in rows.rows().into_iter().enumerate() {
                        factors.row_mut(axis(me).global(start + i) - first).assign(&row);
                    }
                    if me == axis(0).owner(first) {
                        assert_eq!(rows.slice(s![..width, ..]), factored.top);
                    }
                }
                let l = Array2::from_shape_fn(
                    (n - first, width),
                    |(i, j)| if i > j { factors[[i, j]] } else { (i == j) as u8 as f64 },
                );
                let u = Array2::from_shape_fn((width, width), |(i, j)| if i <= j { factors[[i, j]] } else { 0.0 });
                let mut expected = a.slice(s![first.., first..]).to_owned();
                for (i, &pivot) in alone.pivots.iter().enumerate() {
                    for j in 0..width {
                        expected.swap([i, j], [pivot - first, j]);
                    }
                }
                assert!(l.iter().all(|v| v.abs() <= 1.0));
                for (x, y) in l.dot(&u).iter().zip(&expected) {
                    assert!((x - y).abs() < 1e-12, "{n} {first} {width} {processes}: {x} {y}");
                }
            }
        }
    }

    /// All members find out alike, at the first column that has no pivot.
    #[test]
    fn a_singular_panel_stops_everywhere() {
        let mut a = random(20, 6, 1);
        a.column_mut(4).fill(0.0);
        for processes in [1, 2, 3] {
            for (result, _) in spread(&a, 0, 6, 6, processes) {
                assert_eq!(result, Err(Stopped::At { column: 4 }));
            }
        }
        a.column_mut(2).fill(f64::NAN);
        assert_eq!(spread(&a, 0, 6, 6, 2)[0].0, Err(Stopped::At { column: 2 }));
    }

    /// Of equal magnitudes the first row is taken, wherever it lives.
    #[test]
    fn ties_go_to_the_first_row() {
        let a = Array2::from_shape_fn((9, 1), |(i, _)| if i % 2 == 1 { -2.0 } else { 1.0 });
        for processes in [1, 2, 3] {
            assert_eq!(spread(&a, 0, 1, 2, processes)[0].0.as_ref().unwrap().pivots, [1]);
        }
    }

    #[test]
    fn the_largest_entry_of_any_length() {
        for length in 0..100 {
            let column: Vec<f64> = (0..length).map(|i| f64::from((i * 37) % 101) * if i % 3 == 0 { -1.0 } else { 1.0 }).collect();
            let expected = column.iter().enumerate().max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()));
            assert_eq!(largest(&column).map(|c| c.row), expected.map(|(row, _)| row));
        }
        assert_eq!(largest(&[f64::NAN, 1.0, -3.0, 3.0]).map(|c| c.row), Some(2));
        assert!(largest(&[f64::NAN]).is_none_or(|c| c.size <= 0.0));
    }
}
