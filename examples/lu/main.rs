//! Dense LU factorisation with partial pivoting, A = Pᵀ·L·U, and the solution of A·x = b with it, checked as HPL checks it.
//!
//! **State.** The kernels, the reader and the check are complete; [`factor`] drives them on one process. What follows is the
//! distributed algorithm that replaces that driver; everything else stays as it is.
//!
//! # The distributed algorithm
//!
//! The method is HPL's (A. Petitet, R. C. Whaley, J. Dongarra, A. Cleary, *HPL — a portable implementation of the
//! High-Performance Linpack benchmark*, netlib.org/benchmark/hpl) with one-sided transfers in place of messages.
//!
//! **Data.** A is block-cyclic in nb × nb blocks on P × Q processes, column-major. Rank (p, q) sees its part as a slice in
//! *one* owner epoch around factorisation and solves. Two more arrays, with one block for each rank and outside the epoch, are
//! what others put into: `panels` and `rows`, two slots each. Panels are numbered k = 0..K, K = ⌈n/nb⌉; p_k = k mod P and
//! q_k = k mod Q own the diagonal block of panel k; w is its width.
//!
//! **Step k**, on rank (p, q):
//!
//! 1. *Panel k.* In process column q_k it is at hand since step k − 1 (panel 0: factored before the first step). Elsewhere:
//!    wait for it, copy it out of slot k mod 2, give the slot back.
//! 2. *Row moves.* [`swaps::RowMoves`] from the pivots. With P = 1, `apply` does it strip by strip in 4. With P > 1, for all own
//!    columns right of the panel at once: each (p, q) packs the rows of `into_top` that it owns and puts them to every (p′, q);
//!    (p_k, q) also puts to each (p′, q) the rows of `out_of_top` that end there. Every rank of the process column then has
//!    all of U₁₂ before its solve, so the solve is done by all and nothing is sent after it.
//! 3. *Look-ahead.* If q = q_{k+1}: solve and update the columns of panel k + 1 only, factor it with the process column
//!    ([`panel::factor`]), put it to the ranks of the own process row.
//! 4. *Update.* The other own columns right of panel k, [`factor`]'s strips: U ← L₁₁⁻¹·U (`top` of the panel), p_k copies U
//!    into its block row, C ← C − L₂₁·U.
//!
//! While process column q_{k+1} is in 3, the others are in 4: that is the overlap. No barrier in the whole loop.
//!
//! **What is sent.** Panel message, (p, q_k) → (p, q) for q ≠ q_k: a word of status (0, or 1 + the column without a pivot),
//! w pivots, `top` (w × w), then the sender's rows of L₂₁ (the receiver knows their number). Row message, (p, q) → (p′, q):
//! the sender's rows of `into_top` in that order (w × columns in all, in the order of process rows), from p_k also the
//! displaced rows. Row and column numbers are exact in f64 up to 2⁵³.
//!
//! **Signals.** A signal is raised by one rank only, so each has an index for the sender's place; counts grow for ever.
//!
//! | signal | raised by | at | index | waited for |
//! |---|---|---|---|---|
//! | panel there | (p, q_k) with the put | (p, q) | q_k | ⌊k/Q⌋ + 1 |
//! | panel slot free | (p, q), panel k − 2 copied out | (p, q_k), the *next* sender | q | number of k′ with 2 ≤ k′ ≤ k, k′ ≡ k mod Q, whose k′ − 2 came to (p, q) by message |
//! | rows there | (p′, q) with the put, or alone if it has no row | (p, q) | p′ | k + 1 |
//! | rows slot free | (p, q), rows of step k copied out | each (p′, q) | p | k − 1, before the puts of step k |
//!
//! Panels 0 and 1 and steps 0 and 1 need no free slot; steps without own columns right of the panel come last, for all ranks
//! of a process column alike, and send no rows. A rank of q_{k−2} did not receive panel k − 2 by message and says nothing
//! about it; what its slot held before, panel k − 4, it copied out before it sent panel k − 2, which the sender of panel k has
//! received. A rank that is itself the next sender tells nobody.
//!
//! **A singular matrix** is found by process column q_k alike on all its ranks; the status word tells the others. Every rank
//! leaves the loop at step k with the same error, before anyone waits for rows of that step, and ends the epoch in order.
//!
//! **L is stored in the order of rows of its own step**: columns left of a panel are never swapped (so LINPACK, unlike LAPACK).
//! It saves a pass over half the matrix, and L₂₁ in place is what was sent.
//!
//! **Solves.** Each rank keeps a *partial* z of n entries, of which the sum over all ranks is meant: at first b on rank 0 and
//! zeros elsewhere. Interchanges are linear, so each rank carries out those of panel k on its own partial z (so all pivots
//! must reach all ranks: they do, with the panels). Forward, for each k: sum z over the block (all-reduce of w entries, set to
//! zero afterwards), (p_k, q_k) solves it and broadcasts y, the ranks of q_k subtract their rows of L₂₁·y. Backward the same
//! with U, no interchanges, subtracting above. x is then known to all, and each rank adds its share of A·x and of the row sums
//! ([`matrix::Matrix::multiply`]) into an all-reduce.
//!
//! **Leading dimension.** 4096 rows of f64 are 8 pages exactly: rows of neighbouring columns fall into the same few sets of
//! every cache. Measured without padding: panels 59 ms instead of 32, row moves 144 instead of 65, the whole 20 % slower at
//! n = 4096, 40 % at 2048. [`padded`] is the remedy here. The library's part has no padding,
//! so there the array needs a few rows more than the matrix; the kernels take any leading dimension.
//!
//! **Not done, perhaps 4 % (an estimate):** when panel k + 1 is known before the update of step k ends, its row moves can follow each strip's
//! product while the strip is in cache. They are the largest cost beside the product, and most of it is probably waiting for memory: a column of 4096 rows is
//! read from memory for 192 entries scattered over it.

mod axis;
mod cli;
mod factor;
mod kernels;
mod market;
mod matrix;
mod panel;
mod report;
mod solve;
mod swaps;

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use ndarray::{ArrayViewMut2, ShapeBuilder, s};

use crate::axis::Axis;
use crate::cli::{Arguments, Grid};
use crate::matrix::Matrix;
use crate::panel::Stopped;
use crate::report::{Phases, Report};

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments) {
        Ok(report) => {
            let text = if arguments.json { report.json() } else { report.to_string() };
            // A reader that has gone away, as in `lu | head -1`, is no reason to panic.
            let written = writeln!(io::stdout(), "{text}").is_ok();
            if written && report.passed() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(message) => {
            eprintln!("lu: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Rows between the starts of two columns of `rows` rows: not a multiple of a page, so that a row's entries spread over the
/// caches.
fn padded(rows: usize) -> usize {
    /// Elements of a page and of a cache line.
    const PAGE: usize = 4096 / size_of::<f64>();
    const LINE: usize = 64 / size_of::<f64>();
    if rows.is_multiple_of(PAGE) { rows + LINE } else { rows }
}

fn run(arguments: &Arguments) -> Result<Report, String> {
    let ranks = arguments.ranks.unwrap_or(1);
    let grid = Grid::choose(arguments.grid, ranks)?;
    if ranks != 1 || arguments.network.is_some() {
        return Err("only one rank without a network is supported so far: give --ranks 1 and no --network".into());
    }
    let seed = arguments.seed;
    let (matrix, name) = match (&arguments.matrix, arguments.n) {
        (Some(file), _) => {
            let sparse = market::read(file).map_err(|rejected| rejected.to_string())?;
            (Matrix::Read { sparse, seed }, file.display().to_string())
        }
        (None, Some(order)) => (Matrix::Generated { order, seed }, format!("generated, seed {seed}")),
        (None, None) => return Err("give --n or --matrix".into()),
    };
    let n = matrix.order();
    let block = arguments.block.min(n);
    let all = Axis { extent: n, block, processes: 1, me: 0 };

    let mut store: Vec<f64> = Vec::new();
    let elements = n.checked_add(8).and_then(|rows| rows.checked_mul(n)).map(|_| padded(n) * n);
    let elements = elements.filter(|&e| store.try_reserve_exact(e).is_ok());
    let elements = elements.ok_or_else(|| format!("there is not enough memory for a dense matrix of order {n}"))?;
    store.resize(elements, 0.0);
    let a = ArrayViewMut2::from_shape((padded(n), n).f(), &mut store).expect("the store has this size");
    let mut a = a.slice_move(s![..n, ..]);
    matrix.fill(all, all, a.view_mut());
    let b: Vec<f64> = (0..n).map(|row| matrix.right_hand_side(row)).collect();
    let mut x = b.clone();

    let mut phases = Phases::default();
    let start = Instant::now();
    let pivots = factor::factor(a.view_mut(), block, &mut phases).map_err(|stopped| match stopped {
        Stopped::Singular { column } => format!("the matrix is singular: no row is left with a pivot for column {}", column + 1),
        Stopped::Team(never) => match never {},
    })?;
    let factor = start.elapsed();
    let start = Instant::now();
    factor::solve(a.view(), &pivots, block, &mut x);
    let solve = start.elapsed();

    let (mut product, mut magnitudes) = (vec![0.0; n], vec![0.0; n]);
    matrix.multiply(all, all, &x, &mut product, &mut magnitudes);
    let residual = report::residual(&product, &magnitudes, &x, &b);
    let (grid, network) = ((grid.rows, grid.columns), "none".to_owned());
    Ok(Report { n, matrix: name, ranks, grid, block, network, factor, solve, phases, residual })
}
