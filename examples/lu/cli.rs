//! The command line.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Parser;
use program::command_line::{Start, positive};
use program::file_names;

use global_arrays::prelude::*;

/// Solves a dense system by LU factorisation with partial pivoting and checks the solution.
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
    /// Rows and columns of a block of a matrix of order `n`. On a modelled machine a large block leaves ranks idle: all process rows
    /// solve for its rows of U, and most ranks wait for its panel.
    pub(crate) fn block(&self, n: usize, ranks: usize) -> usize {
        self.block.unwrap_or((n / ranks).next_multiple_of(32).clamp(32, 192)).min(n)
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Grid {
    /// Process rows.
    pub(crate) rows: usize,
    /// Process columns.
    pub(crate) columns: usize,
}

impl Grid {
    /// The grid for `ranks` processes, which must be its size if the user chose one.
    ///
    /// Left to itself it is as square as `ranks` allows with no more rows than columns: with few process rows the search
    /// for pivots stays cheap, and 1, 2 and 3 ranks (and every prime) keep it local.
    ///
    /// # Errors
    ///
    /// When the chosen grid has another size.
    pub(crate) fn choose(chosen: Option<Grid>, ranks: usize) -> Result<Grid, String> {
        if let Some(grid) = chosen {
            return if grid.rows * grid.columns == ranks {
                Ok(grid)
            } else {
                Err(format!("a grid of {} x {} needs {} ranks, not {ranks}", grid.rows, grid.columns, grid.rows * grid.columns))
            };
        }
        let rows =
            (1..=ranks).take_while(|rows| rows * rows <= ranks).filter(|rows| ranks.is_multiple_of(*rows)).last().unwrap_or(1);
        Ok(Grid { rows, columns: ranks / rows })
    }
}

impl FromStr for Grid {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once(['x', 'X']).ok_or("two numbers with an x between are expected, as in 2x3")?;
        let grid = Grid { rows: positive(parts.0)?, columns: positive(parts.1)? };
        grid.rows.checked_mul(grid.columns).ok_or("too many processes")?;
        Ok(grid)
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
    fn grids_for_any_number_of_ranks() {
        let grid = |ranks| Grid::choose(None, ranks).map(|g| (g.rows, g.columns)).unwrap();
        assert_eq!([1, 2, 3, 4, 6, 7, 8, 12].map(grid), [(1, 1), (1, 2), (1, 3), (2, 2), (2, 3), (1, 7), (2, 4), (3, 4)]);
        assert!(Grid::choose(Some(Grid { rows: 2, columns: 2 }), 3).unwrap_err().contains("needs 4 ranks, not 3"));
    }
}
