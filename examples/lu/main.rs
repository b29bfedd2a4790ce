//! Dense LU factorization with partial pivoting, A = Pᵀ·L·U, and the solution of A·x = b with it, checked as HPL checks it.
//!
//! The factors and the solves are the library's (`linalg::Lu`, which has the distributed algorithm). What is here: the matrix, from a file or generated, the check, and
//! the report.

mod cli;
mod market;
mod matrix;
mod report;

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use global_arrays::{
    linalg::{Lu, MatrixError, Refined},
    prelude::*,
    simulation::Work,
};
use program::{command_line, whole_file};

use crate::cli::Arguments;
use crate::matrix::Matrix;
use crate::report::{Report, slowest};

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    command_line::main("lu", || run(&arguments))
}

/// Reads the input here, where a mistake is one message, then starts the ranks.
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
        arguments.blocking(matrix.order(), ranks)?;
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
    let blocking = arguments.blocking(n, job.size()).map_err(Error::other)?;
    let skips = job.simulation().skips();
    let lu = job.phase("factor", || Lu::from_fn(job, n, blocking, |(row, column)| matrix.element(row, column)));
    let lu = lu.map_err(|error| match error {
        Error::Matrix { source: MatrixError::Singular { at }, .. } => Error::other(format!(
            "the matrix is singular: column {} of {n} has no pivot left that is a number other than zero",
            at + 1
        )),
        error => error,
    })?;
    // Behind the factors, whose memory is checked.
    let b: Vec<f64> = match &system.given {
        _ if skips => Vec::new(),
        Some(given) => given.clone(),
        None => (0..n).map(|row| matrix.right_hand_side(row)).collect(),
    };
    let Solution { x, solve, refined, condition } = match skips {
        true => Solution { x: Vec::new(), solve: Duration::ZERO, refined: None, condition: None },
        false => Solution::find(job, arguments, matrix, &lu, &b)?,
    };

    let checked = if skips { Ok(None) } else { check(job, matrix, &x, &b)?.map(Some) };
    let residual = checked.clone().unwrap_or(Some(f64::NAN));
    let phases = slowest(job, lu.phases())?;
    let (matrix, ranks, network) = (system.name.clone(), job.size(), job.network().to_owned());
    let report = Report { n, matrix, ranks, blocking, network, solve, phases, residual, refined, condition };
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

impl Solution {
    fn find(job: &Job, arguments: &Arguments, matrix: &Matrix, lu: &Lu<f64>, b: &[f64]) -> Result<Self, Error> {
        let n = matrix.order();
        let b = GlobalArray1::from_fn(job, [n], |row| b[row])?;
        job.barrier()?;
        let start = job.now();
        let mut x = job.phase("solve", || lu.solve(&b))?;
        let solve = job.now() - start;
        let refine = || {
            let a = GlobalArray2::from_fn(job, [n, n], |(row, column)| matrix.element(row, column))?;
            lu.refine(&a, &b, &mut x)
        };
        let refined = if arguments.refine { Some(job.phase("refine", refine)?) } else { None };
        let condition = if arguments.condition { Some(job.phase("condition", || lu.condition())?) } else { None };
        Ok(Solution { x: x.get(..)?.to_vec(), solve, refined, condition })
    }
}

/// The scaled residual of a solution, or why there is none. Collective: each rank adds what some columns of the matrix give.
fn check(job: &Job, matrix: &Matrix, x: &[f64], b: &[f64]) -> Result<Result<f64, String>, Error> {
    let n = matrix.order();
    let [mut product, mut magnitudes] = [vec![0.0; n], vec![0.0; n]];
    let entries = matrix.entries(n * job.rank() / job.size()..n * (job.rank() + 1) / job.size(), |row, column, value| {
        product[row] += value * x[column];
        magnitudes[row] += value.abs();
    });
    job.simulation().work(Work::flops(4.0 * entries as f64));
    job.all_reduce(&mut product, ops::sum)?;
    job.all_reduce(&mut magnitudes, ops::sum)?;
    Ok(report::residual(&product, &magnitudes, x, b))
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
