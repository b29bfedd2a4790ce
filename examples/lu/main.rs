//! Dense LU factorisation with partial pivoting, A = Pᵀ·L·U, and the solution of A·x = b with it, checked as HPL checks it.
//!
//! # The distributed algorithm
//!
//! The method is HPL's (A. Petitet, R. C. Whaley, J. Dongarra, A. Cleary, *HPL — a portable implementation of the
//! High-Performance Linpack benchmark*, netlib.org/benchmark/hpl) with one-sided transfers in place of messages.
//!
//! **Data.** A is block-cyclic in nb × nb blocks on P × Q processes, column-major. Rank (p, q) sees its part as a slice in
//! *one* owner epoch around factorisation and solves. Three more arrays, with one block for each rank and outside the epoch, are
//! what others put into: panels with their heads, and rows, two slots each. Panels are numbered k = 0..K, K = ⌈n/nb⌉; p_k = k mod P and
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
//! 4. *Update.* The other own columns right of panel k, strip by strip: U ← L₁₁⁻¹·U (`top` of the panel), p_k copies U
//!    into its block row, C ← C − L₂₁·U.
//!
//! A rank of several cores factors panel k + 1 in 3 by its own thread while its pool is in 4 ([`trailing`]).
//!
//! While process column q_{k+1} is in 3, the others are in 4: that is the overlap. No barrier in the whole loop.
//!
//! **What is sent.** Panel message, (p, q_k) → (p, q) for q ≠ q_k: `top` (w × w), the sender's rows of L₂₁ (the receiver knows their
//! number), then with the signal a word of status (0, or 1 + the column without a pivot) and w pivots. Row message, (p, q) → (p′, q):
//! the sender's rows of `into_top` in that order (w × columns in all, in the order of process rows), from p_k also the
//! displaced rows. Row and column numbers are exact in f64 up to 2⁵³.
//!
//! **Signals.** A signal is raised by one rank only, so each has an index for the sender's place; counts grow forever.
//!
//! | signal | raised by | at | index | waited for |
//! |---|---|---|---|---|
//! | panel there | (p, q_k) with the put | (p, q) | q_k | ⌊k/Q⌋ + 1 |
//! | panel slot free | (p, q), panel k − 2 copied out | (p, q_k), the *next* sender | q | number of k′ with 2 ≤ k′ ≤ k, k′ ≡ k mod Q, whose k′ − 2 came to (p, q) by message |
//! | rows there | (p′, q) with the put, or alone if it has no row | (p, q) | p′ | k + 1 − steps without columns |
//! | rows slot free | (p, q), rows of step k copied out | each (p′, q) | p | the same count, two steps back |
//!
//! Panel 0 and 1 and steps 0 and 1 need no free slot. A rank in q_k never received panel k, so it says nothing about it: the
//! sender of panel k + 2 leaves it out of its count by the third condition.
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
//! With Aᵀ, for the estimate of the condition number, all ranks have all of z, and sum what their columns of a block give.
//!
//! **Leading dimension.** 4096 rows of f64 are 8 pages exactly: rows of neighbouring columns fall into the same few sets of
//! every cache, and the whole factorisation is 20 % slower. [`padded`] is the remedy here. The library's part has no padding,
//! so there the array needs a few rows more than the matrix; the kernels take any leading dimension.
//!
//! **Not done, worth 4 %:** when panel k + 1 is known before the update of step k ends, its row moves can follow each strip's
//! product while the strip is in cache. They are the largest cost beside the product, and all of it is waiting for memory.

mod accuracy;
mod axis;
mod buffers;
mod cli;
mod column;
mod distributed;
mod kernels;
mod market;
mod matrix;
mod panel;
mod report;
mod solve;
mod solver;
mod swaps;
mod trailing;

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use global_arrays::prelude::*;
use program::{command_line, whole_file};

use crate::accuracy::{FactoredSystem, Refined};
use crate::axis::Axis;
use crate::cli::{Arguments, Grid};
use crate::distributed::Rank;
use crate::matrix::Matrix;
use crate::panel::Stopped;
use crate::report::Report;
use crate::solver::{Solver, sums};

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    command_line::main("lu", || run(&arguments))
}

/// Reads the input here, where a mistake is told once, then starts the ranks.
fn run(arguments: &Arguments) -> Result<(), String> {
    let seed = arguments.seed;
    let (matrix, name) = match (&arguments.matrix, arguments.n) {
        (Some(file), _) => {
            let sparse = market::read(file)?;
            (Matrix::Read { sparse, seed }, file.display().to_string())
        }
        (None, Some(order)) => (Matrix::Generated { order, seed }, format!("generated, seed {seed}")),
        (None, None) => return Err("give --n or --matrix".into()),
    };
    let given = arguments.rhs.as_ref().map(|file| market::read_column(file, matrix.order())).transpose()?;
    if let Some(ranks) = arguments.start.ranks {
        Grid::choose(arguments.grid, ranks)?;
    }
    let system = System { matrix, name, given };
    arguments.start.launch().run(|job| rank_main(job, arguments, &system)).map_err(|error: Error| error.to_string())
}

/// What is to be solved.
struct System {
    matrix: Matrix,
    /// Of the matrix.
    name: String,
    /// The right-hand side, if it came from a file.
    given: Option<Vec<f64>>,
}

/// A solution, and what is known of it.
struct Solution {
    x: Vec<f64>,
    solve: Duration,
    refined: Option<Refined>,
    condition: Option<f64>,
}

/// What each rank does.
fn rank_main(job: &Job, arguments: &Arguments, system: &System) -> Result<(), Error> {
    arguments.check(job).map_err(Error::other)?;
    let matrix = &system.matrix;
    let n = matrix.order();
    let block = arguments.block(n, job.size());
    let grid = Grid::choose(arguments.grid, job.size()).map_err(Error::other)?;
    let mut rank = Rank::new(job, n, block, grid)?;
    let mut a = GlobalArray::<f64, Ix2>::builder(job, [padded(rank.rows), n])
        .block_cyclic([block, block])
        .grid([grid.rows, grid.columns])
        .order(Order::ColumnMajor)
        .name("A")
        .hollow()
        .create()?;
    let skips = job.simulation().skips();
    let b: Vec<f64> = match &system.given {
        _ if skips => Vec::new(),
        Some(given) => given.clone(),
        None => (0..n).map(|row| matrix.right_hand_side(row)).collect(),
    };
    let bar = command_line::progress_bar(job, n, "columns");

    let outcome = a.owner_epoch(|mut part| {
        let rows = rank.rows.local_extent();
        let mut local = part.view_mut();
        if !skips {
            matrix.fill(rank.rows, rank.columns, local.slice_mut(s![..rows, ..]));
        }
        job.barrier().map_err(Stopped::Team)?;
        let start = job.now();
        let pivots = job.phase("factor", || {
            let pivots = rank.factor(local.slice_mut(s![..rows, ..]), |columns| bar.set_position(columns as u64))?;
            job.barrier().map_err(Stopped::Team).map(|()| pivots)
        })?;
        let factored = job.now() - start;
        let start = job.now();
        if skips {
            return Ok((Solution { x: Vec::new(), solve: Duration::ZERO, refined: None, condition: None }, factored));
        }
        let solver = Solver { job, rank: &rank, part: local.slice(s![..rows, ..]), pivots: &pivots, matrix };
        let mut x = job.phase("solve", || solver.solve(&b)).map_err(Stopped::Team)?;
        let solve = job.now() - start;
        let refines = arguments.refine.then(|| job.phase("refine", || accuracy::refine(&solver, &b, &mut x)));
        let refined = refines.transpose().map_err(Stopped::Team)?;
        let estimates = arguments.condition.then(|| job.phase("condition", || accuracy::condition(&solver, n)));
        let condition = estimates.transpose().map_err(Stopped::Team)?;
        Ok((Solution { x, solve, refined, condition }, factored))
    })?;
    bar.finish_and_clear();
    let (Solution { x, solve, refined, condition }, factor) = outcome.map_err(|stopped| match stopped {
        Stopped::Singular { column } => Error::other(format!(
            "the matrix is singular: column {} of {n} has no pivot left that is a number other than zero",
            column + 1
        )),
        Stopped::Team(error) => error,
    })?;

    let checked = if skips { Ok(None) } else { check(job, &rank, matrix, &x, &b)?.map(Some) };
    let residual = checked.clone().unwrap_or(Some(f64::NAN));
    let phases = rank.phases().slowest(job)?;
    let (grid, network) = ((grid.rows, grid.columns), job.network().to_owned());
    let (matrix, ranks) = (system.name.clone(), job.size());
    let report = Report { n, matrix, ranks, grid, block, network, factor, solve, phases, residual, refined, condition };
    arguments.start.report(job, &report, &report.json())?;
    checked.map_err(Error::other)?;
    if !report.passed() {
        return Err(Error::other(format!("the residual {:.3e} is above {}", residual.unwrap_or_default(), report::THRESHOLD)));
    }
    match &arguments.solution {
        Some(file) if job.rank() == 0 => whole_file::write(file, market::column(&x).as_bytes()).map_err(Error::other),
        _ => Ok(()),
    }
}

/// The scaled residual of a solution, or why there is none. Collective.
fn check(job: &Job, rank: &Rank<'_>, matrix: &Matrix, x: &[f64], b: &[f64]) -> Result<Result<f64, String>, Error> {
    let [product, magnitudes] = sums(job, rank, matrix, |[product, magnitudes], row, column, value| {
        product[row] += value * x[column];
        magnitudes[row] += value.abs();
    })?;
    Ok(report::residual(&product, &magnitudes, x, b))
}

/// Rows of the array: a few more than the matrix has where a rank's part would otherwise have columns of whole pages, whose
/// entries of one row fall into the same few sets of every cache. They are never touched. None where blocks are whole pages: the parts
/// of all ranks but one are then too, however many rows are added.
fn padded(rows: Axis) -> usize {
    /// Elements of a page and of a cache line.
    const PAGE: usize = 4096 / size_of::<f64>();
    const LINE: usize = 64 / size_of::<f64>();
    let whole = |extent: usize| {
        (0..rows.processes).any(|me| {
            let local = Axis { extent, me, ..rows }.local_extent();
            local > 0 && local.is_multiple_of(PAGE)
        })
    };
    // After a round of blocks over all processes, everything repeats.
    let round = (rows.block * rows.processes).max(PAGE) / LINE;
    (0..=round).map(|lines| rows.extent + lines * LINE).find(|&extent| !whole(extent)).unwrap_or(rows.extent)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the whole program says of a matrix, given by its columns, on some ranks.
    fn told(name: &str, columns: &[Vec<f64>], ranks: usize, block: usize) -> Result<(), String> {
        let n = columns.len();
        let mut text = format!("%%MatrixMarket matrix array real general\n{n} {n}\n");
        columns.iter().flatten().for_each(|value| text += &format!("{value:e}\n"));
        let file = std::env::temp_dir().join(format!("lu-{}-{name}-{ranks}.mtx", std::process::id()));
        std::fs::write(&file, text).expect("a temporary file");
        let line = format!("lu --network threads --ranks {ranks} --block {block} --matrix {}", file.display());
        let outcome = run(&Arguments::parse_from(line.split(' ')));
        std::fs::remove_file(&file).expect("the temporary file");
        outcome
    }

    /// With b from a file and x to one. A bad b, and a file that cannot be written, are one line.
    #[test]
    fn systems_of_other_people_are_solved() {
        let file = |name: &str| std::env::temp_dir().join(format!("lu-{}-{name}.mtx", std::process::id()));
        let [matrix, rhs, solution] = ["matrix", "rhs", "solution"].map(file);
        std::fs::write(&matrix, "%%MatrixMarket matrix coordinate real general\n3 3 4\n1 2 2\n2 1 4\n3 3 0.5\n1 3 1\n").unwrap();
        let solve = |more: &str| {
            let line = format!("lu --network threads --refine --condition --matrix {} {more}", matrix.display());
            run(&Arguments::parse_from(line.split(' ')))
        };
        for ranks in [1, 2, 4] {
            std::fs::write(&rhs, market::column(&[7.0, 4.0, 1.5])).unwrap();
            let files = format!("--ranks {ranks} --block 1 --rhs {} --solution {}", rhs.display(), solution.display());
            solve(&files).unwrap();
            assert_eq!(market::read_column(&solution, 3).unwrap(), [1.0, 2.0, 3.0]);
            std::fs::remove_file(&solution).unwrap();
            std::fs::write(&rhs, market::column(&[7.0, 4.0])).unwrap();
            assert!(solve(&files).unwrap_err().contains("must be 3 x 1, not 2 x 1"));
            assert!(!solution.exists());
        }
        assert!(solve("--ranks 2 --solution /dev/full").unwrap_err().contains("cannot write /dev/full"));
        std::os::unix::fs::symlink("no/such/x.mtx", &solution).unwrap();
        let [link, own] = [&solution, &matrix].map(|file| format!("--ranks 2 --solution {}", file.display()));
        assert!(solve(&link).unwrap_err().contains("there is no folder"));
        assert!(solve(&own).unwrap_err().contains("--matrix name the same file"), "{own}");
        std::fs::remove_file(&solution).unwrap();
        assert!(solve("--ranks 2 --solution no/such/x.mtx").unwrap_err().contains("no folder no/such"));
        [matrix, rhs].iter().try_for_each(std::fs::remove_file).unwrap();
    }

    #[test]
    fn a_norm_that_overflows_is_no_success() {
        for ranks in [1, 2] {
            let why = told("huge", &[vec![1e308, -1e308], vec![1e308, 1e308]], ranks, 1).unwrap_err();
            assert!(why.contains("‖A‖∞ is inf"), "{why}");
            told("large", &[vec![1e300, -1e300], vec![1e300, 1e300]], ranks, 1).unwrap();
        }
    }

    #[test]
    fn blocks_of_whole_pages_are_not_padded() {
        let rows = |extent, block, processes| Axis { extent, block, processes, me: 0 };
        assert_eq!(padded(rows(4096, 1024, 2)), 4096);
        assert_eq!(padded(rows(1024, 1024, 1)), 1032);
        assert_eq!(padded(rows(1000, 192, 2)), 1000);
    }

    #[test]
    fn the_singular_column_is_named() {
        // Without row interchanges on the way: a diagonal, and a column of zeros inside a block.
        let columns: Vec<Vec<f64>> =
            (0..8).map(|column| (0..8).map(|row| f64::from(u8::from(row == column && column != 5))).collect()).collect();
        for ranks in [1, 2, 3, 4] {
            let why = told("singular", &columns, ranks, 4).unwrap_err();
            assert!(why.contains("the matrix is singular: column 6 of 8"), "{ranks} ranks: {why}");
        }
    }
}
