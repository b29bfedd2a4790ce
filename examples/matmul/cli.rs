//! The command line.

use std::path::PathBuf;

use clap::Parser;
use program::command_line::{Start, positive};

use crate::cube::{Cube, Sizes};

/// Multiplies two dense matrices, A of m × k and B of k × n, on a cube of ranks and by the library, and checks both products.
#[derive(Debug, Clone, Parser)]
#[command(name = "matmul")]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) start: Start,
    /// Columns of B and C
    #[arg(long, value_parser = positive)]
    pub(crate) n: usize,
    /// Rows of A and C; by default as many as --n
    #[arg(long, value_parser = positive)]
    pub(crate) m: Option<usize>,
    /// Columns of A and rows of B; by default as many as --n
    #[arg(long, value_parser = positive)]
    pub(crate) k: Option<usize>,
    /// Ranks along the rows, the columns and the sum, as in 2x2x1; by default what moves least
    #[arg(long, value_name = "PxQxR")]
    pub(crate) cube: Option<Cube>,
    /// Products of each kind; the fastest counts
    #[arg(long, value_parser = positive, default_value_t = 3)]
    pub(crate) rounds: usize,
    /// Seed of the matrices
    #[arg(long, default_value_t = 7)]
    pub(crate) seed: u64,
    /// Write A, B and C into this folder, as A.npy, B.npy and C.npy
    #[arg(long, value_name = "FOLDER")]
    pub(crate) save: Option<PathBuf>,
}

impl Arguments {
    pub(crate) fn sizes(&self) -> Sizes {
        let Arguments { n, m, k, .. } = *self;
        Sizes { m: m.unwrap_or(n), n, k: k.unwrap_or(n) }
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
        assert!(parse("matmul --n 0").unwrap_err().contains("at least 1"));
        assert!(parse("matmul --n 8 --rounds 0").unwrap_err().contains("at least 1"));
        assert!(parse("matmul --n 8 --cube 2x2").unwrap_err().contains("2x2x1"));
        assert!(parse("matmul --ranks 2").unwrap_err().contains("--n"));
        assert!(parse("matmul --n 8 --cube 2x1x3 --ranks 6 --seed 1 --rounds 1 --json --network threads").is_ok());
    }
}
