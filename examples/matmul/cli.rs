//! The command line.

use clap::Parser;

use crate::command_line::{Start, positive};
use crate::cube::Cube;

/// Multiplies two dense matrices on a cube of ranks, beside the library's own product, and checks both.
#[derive(Debug, Clone, Parser)]
#[command(name = "matmul")]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) start: Start,
    /// Order of the matrices
    #[arg(long, value_parser = positive)]
    pub(crate) n: usize,
    /// Ranks along the rows, the columns and the sum, as in 2x2x1; by default what moves least
    #[arg(long, value_name = "PxQxR")]
    pub(crate) cube: Option<Cube>,
    /// Products of each kind; the fastest counts
    #[arg(long, value_parser = positive, default_value_t = 3)]
    pub(crate) rounds: usize,
    /// Seed of the matrices
    #[arg(long, default_value_t = 7)]
    pub(crate) seed: u64,
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
