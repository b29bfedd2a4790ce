//! The command line.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Parser;
use program::command_line::{Start, positive};
use program::file_names;

use global_arrays::{linalg::Blocking, prelude::*};

/// Solves a dense system by LU factorization with partial pivoting and checks the solution.
#[derive(Debug, Clone, Parser)]
#[command(name = "lu", group = clap::ArgGroup::new("system").required(true))]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) start: Start,
    /// Matrix Market file: square, real or of integers
    #[arg(long, value_name = "FILE", group = "system")]
    pub(crate) matrix: Option<PathBuf>,
    /// Order of a generated matrix
    #[arg(long, value_parser = positive, group = "system")]
    pub(crate) n: Option<usize>,
    /// Matrix Market file of the right-hand side: one column, real or of integers; by default it is generated
    #[arg(long, value_name = "FILE")]
    pub(crate) rhs: Option<PathBuf>,
    /// Write the solution to a Matrix Market file of one column
    #[arg(long, value_name = "FILE")]
    pub(crate) solution: Option<PathBuf>,
    /// Refine the solution, and print its componentwise backward error
    #[arg(long)]
    pub(crate) refine: bool,
    /// Estimate the condition number of the matrix in the 1-norm
    #[arg(long)]
    pub(crate) condition: bool,
    /// Rows and columns of a block; by default n / ranks in multiples of 32, from 32 to 192
    #[arg(long, value_parser = positive)]
    pub(crate) block: Option<usize>,
    /// Process rows and columns, as in 2x3; by default as square as possible
    #[arg(long, value_name = "PxQ")]
    pub(crate) grid: Option<Grid>,
    /// Seed of the generated matrix and of the right-hand side
    #[arg(long, default_value_t = 7)]
    pub(crate) seed: u64,
}

impl Arguments {
    /// How a matrix of order `n` is cut.
    ///
    /// # Errors
    /// When the chosen grid has not as many places as there are ranks.
    pub(crate) fn blocking(&self, n: usize, ranks: usize) -> Result<Blocking, String> {
        let Blocking { edge, grid } = Blocking::new(n, ranks);
        let edge = self.block.unwrap_or(edge).min(n);
        match self.grid {
            None => Ok(Blocking { edge, grid }),
            Some(Grid([rows, columns])) if rows * columns == ranks => Ok(Blocking { edge, grid: [rows, columns] }),
            Some(Grid([rows, columns])) => {
                Err(format!("a grid of {rows} x {columns} needs {} ranks, not {ranks}", rows * columns))
            }
        }
    }

    /// What can be known before anything is computed.
    pub(crate) fn check(&self, job: &Job) -> Result<(), String> {
        for (flag, is_given) in
            [("--solution", self.solution.is_some()), ("--refine", self.refine), ("--condition", self.condition)]
        {
            self.start.needs_computing(job, flag, is_given)?;
        }
        // Rank 0 writes.
        let solution = self.solution.as_deref().filter(|_| job.rank() == 0);
        file_names::check(&[("--solution", solution)], &[("--matrix", self.matrix.as_deref()), ("--rhs", self.rhs.as_deref())])
    }
}

/// Process rows and columns.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grid([usize; 2]);

impl FromStr for Grid {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once(['x', 'X']).ok_or("two numbers with an x between are expected, as in 2x3")?;
        let [rows, columns] = [positive(parts.0)?, positive(parts.1)?];
        rows.checked_mul(columns).ok_or("too many processes")?;
        Ok(Grid([rows, columns]))
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn mistakes_are_refused() {
        let parse = |line: &str| Arguments::try_parse_from(line.split(' ')).map_err(|e| e.to_string());
        assert!(parse("lu --n 0").unwrap_err().contains("at least 1"));
        assert!(parse("lu --n 10 --ranks 0").unwrap_err().contains("at least 1"));
        assert!(parse("lu --n 10 --block 0").unwrap_err().contains("at least 1"));
        assert!(parse("lu --n 10 --grid 2").unwrap_err().contains("2x3"));
        assert!(parse("lu --n 10 --matrix a.mtx").unwrap_err().contains("cannot be used with"));
        assert!(parse("lu --json").unwrap_err().contains("required"));
        assert!(parse("lu --n 10 --grid 2x3 --ranks 6 --seed 1 --json --network threads").is_ok());
    }

    #[test]
    fn a_grid_has_a_place_for_each_rank() {
        let arguments = Arguments::parse_from("lu --n 10 --grid 2x2".split(' '));
        assert_eq!(arguments.blocking(10, 4), Ok(Blocking { edge: 10, grid: [2, 2] }));
        assert!(arguments.blocking(10, 3).unwrap_err().contains("needs 4 ranks, not 3"));
    }
}
