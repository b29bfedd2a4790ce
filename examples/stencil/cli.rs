//! The command line.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use program::command_line::{Start, positive};

/// How ghost cells are filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Way {
    /// An epoch for each exchange: all ranks meet, and each gets its ghost cells
    Epochs,
    /// One epoch in all: each rank sends cells to the ranks beside it
    Channels,
}

impl Way {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Way::Epochs => "epochs",
            Way::Channels => "channels",
        }
    }
}

/// Relaxes a cube of cells by Jacobi's method with ghost cells, and compares it with an exact solution.
#[derive(Debug, Clone, Parser)]
#[command(name = "stencil")]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) start: Start,
    /// Cells along each edge of the cube
    #[arg(long, value_parser = positive)]
    pub(crate) n: usize,
    /// Sweeps over all cells
    #[arg(long, value_parser = positive)]
    pub(crate) sweeps: usize,
    /// Join the ends of each axis; otherwise u is zero beyond them
    #[arg(long)]
    pub(crate) periodic: bool,
    /// Sweeps from one exchange to the next, which is also the width of the ghost cells
    #[arg(long, value_parser = positive, default_value_t = 8)]
    pub(crate) depth: usize,
    /// How the ghost cells are filled
    #[arg(long, value_enum, default_value_t = Way::Epochs)]
    pub(crate) way: Way,
    /// Rows of a tile
    #[arg(long, value_parser = positive, default_value_t = 64)]
    pub(crate) tile: usize,
    /// Also measure the order of convergence to the heat equation, on four grids
    #[arg(long)]
    pub(crate) convergence: bool,
    /// Draw the convergence, as SVG or PNG by the name
    #[arg(long, value_name = "FILE", requires = "convergence")]
    pub(crate) plot: Option<PathBuf>,
    /// Write the cells after the last sweep to a file for NumPy
    #[arg(long, value_name = "FILE.npy")]
    pub(crate) save: Option<PathBuf>,
}

impl Arguments {
    /// What single arguments cannot show.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.n.checked_pow(3).is_none_or(|cells| cells > isize::MAX as usize / 16) {
            return Err(format!("a cube of {} cells along each edge has too many of them", self.n));
        }
        if self.depth > 64 {
            return Err(format!("--depth {}: more than 64 sweeps in one epoch compute more twice than once", self.depth));
        }
        Ok(())
    }
}
