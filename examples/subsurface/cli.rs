//! The command line.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{ArgGroup, Parser, ValueEnum};
use program::command_line::{Start, positive};

/// The flow problems.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// A well in a confined aquifer, against Theis' curve
    Theis,
    /// Steady infiltration into sand below loam, against Amanzi
    Infiltration,
    /// Rain on a box of random conductivity, in three dimensions; only the water balance is compared
    Heterogeneous,
}

/// Groundwater flow on a structured grid: finite volumes, backward Euler, Newton and Krylov over global arrays.
#[derive(Debug, Clone, Parser)]
#[command(name = "subsurface", group = ArgGroup::new("what").required(true).args(["case", "problem"]))]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) start: Start,
    /// What to compute: a case with a reference
    #[arg(long, value_enum)]
    pub(crate) case: Option<Kind>,
    /// What to compute: a problem of your own, posed in a TOML file (see the README)
    #[arg(long, value_name = "FILE.toml")]
    pub(crate) problem: Option<PathBuf>,
    /// Cells: along each side (theis, an odd number), of the column (infiltration, a multiple of 4), or up x across x
    /// across (heterogeneous)
    #[arg(long, value_name = "N[xNxN]")]
    pub(crate) cells: Option<Cells>,
    /// Time to simulate [s], in place of that of the problem's file; theis ends with its reference
    #[arg(long, value_parser = positive_number, value_name = "SECONDS")]
    pub(crate) end_time: Option<f64>,
    /// Length of the first time step [s]
    #[arg(long, value_parser = positive_number, value_name = "SECONDS")]
    pub(crate) first_step: Option<f64>,
    /// Give up when a time step would have to be shorter than this [s]; by default 1e-6
    #[arg(long, value_parser = positive_number, value_name = "SECONDS")]
    pub(crate) shortest_step: Option<f64>,
    /// Largest error of one time step [m of head]; by default 0.004 for theis, what a problem's
    /// file says, and else unbounded
    #[arg(long, value_parser = positive_number, value_name = "METERS")]
    pub(crate) accuracy: Option<f64>,
    /// Largest relative error of the water balance in a time step: where Newton's method stops
    #[arg(long, value_parser = positive_number, default_value_t = 1e-8)]
    pub(crate) tolerance: f64,
    /// Data to compare with; by default those beside the program's source
    #[arg(long, value_name = "FILE")]
    pub(crate) reference: Option<PathBuf>,
    /// Seed of the conductivity; heterogeneous only, 7 by default
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Write the table of results as CSV: what a case compared, or the observations of a problem after each step
    #[arg(long, value_name = "FILE.csv")]
    pub(crate) output: Option<PathBuf>,
    /// Write the whole field at the times of output to this folder, for ParaView: frames-0000.vtr and so on, and frames.pvd
    #[arg(long, value_name = "FOLDER")]
    pub(crate) vtk: Option<PathBuf>,
    /// Write checkpoints to this folder, at the times of output; the last one stays
    #[arg(long, value_name = "FOLDER")]
    pub(crate) checkpoint: Option<PathBuf>,
    /// Write one after every so many steps too
    #[arg(long, value_name = "STEPS", value_parser = positive, requires = "checkpoint")]
    pub(crate) checkpoint_every: Option<usize>,
    /// Go on from the checkpoint in this folder, of the same case or problem, on any number of ranks, to a later end
    #[arg(long, value_name = "FOLDER")]
    pub(crate) resume: Option<PathBuf>,
    /// Draw the same results (.svg or .png)
    #[arg(long, value_name = "FILE")]
    pub(crate) plot: Option<PathBuf>,
}

impl Arguments {
    /// Shorter steps are a failure [s].
    pub(crate) fn shortest_step(&self) -> f64 {
        self.shortest_step.unwrap_or(1e-6)
    }

    /// Refuses flags that mean nothing to the case.
    ///
    /// # Errors
    /// The flag and the case.
    pub(crate) fn check(&self) -> Result<(), String> {
        let Arguments { case, end_time, seed, reference, cells, .. } = self;
        let refuse = |flag: &str, why: &str| Err(format!("{flag} means nothing to this case: {why}"));
        let Some(case) = case else {
            let flags = [("--cells", cells.is_some()), ("--seed", seed.is_some()), ("--reference", reference.is_some())];
            let given = flags.into_iter().find(|(_, given)| *given);
            return given.map_or(Ok(()), |(flag, _)| Err(format!("{flag} means nothing to a problem from a file")));
        };
        match case {
            Kind::Theis if end_time.is_some() => refuse("--end-time", "it ends at the last time of its reference"),
            Kind::Theis | Kind::Infiltration if seed.is_some() => refuse("--seed", "nothing in it is random"),
            Kind::Heterogeneous if reference.is_some() => refuse("--reference", "there is none"),
            _ => Ok(()),
        }
    }
}

/// Cells along one axis, or along three.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cells(pub(crate) Vec<usize>);

impl FromStr for Cells {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let cells: Vec<usize> = text.split(['x', 'X']).map(positive).collect::<Result<_, _>>()?;
        let total = cells.iter().try_fold(1_usize, |product, &n| product.checked_mul(n));
        match (cells.len(), total) {
            (1 | 3, Some(..=MOST_CELLS)) => Ok(Cells(cells)),
            (1 | 3, _) => Err(format!("more than {MOST_CELLS} cells")),
            _ => Err("one number, or three with an x between, as in 40x60x60".into()),
        }
    }
}

/// 10⁹: numbers of bytes can be counted. What the machine has room for is found out when the ranks have started.
pub(crate) const MOST_CELLS: usize = 1_000_000_000;

fn positive_number(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number > 0.0 && number.is_finite() => Ok(number),
        _ => Err("not a number above 0".into()),
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
        let parse = |line: &str| {
            let arguments = Arguments::try_parse_from(line.split(' ')).map_err(|e| e.to_string())?;
            arguments.check()
        };
        assert!(parse("subsurface --case lake").unwrap_err().contains("lake"));
        let missing = parse("subsurface").unwrap_err();
        assert!(missing.contains("--case") && missing.contains("--problem"), "{missing}");
        assert!(parse("subsurface --case theis --problem a.toml").unwrap_err().contains("cannot be used with"));
        assert!(parse("subsurface --problem a.toml --cells 4").unwrap_err().contains("--cells means nothing"));
        assert!(parse("subsurface --problem a.toml --checkpoint-every 4").unwrap_err().contains("--checkpoint"));
        assert!(parse("subsurface --case theis --cells 0").unwrap_err().contains("at least 1"));
        assert!(parse("subsurface --case theis --cells 3x4").unwrap_err().contains("one number"));
        assert!(parse("subsurface --case theis --cells 9999999999").unwrap_err().contains("more than"));
        assert!(parse("subsurface --case theis --end-time 5").unwrap_err().contains("--end-time"));
        assert!(parse("subsurface --case infiltration --end-time=-5").unwrap_err().contains("above 0"));
        assert!(parse("subsurface --case infiltration --first-step nan").unwrap_err().contains("above 0"));
        assert!(parse("subsurface --case infiltration --seed 3").unwrap_err().contains("random"));
        assert!(parse("subsurface --case heterogeneous --reference a.csv").unwrap_err().contains("none"));
        assert!(parse("subsurface --case infiltration --cells 8 --end-time 1e5 --ranks 3 --json").is_ok());
    }
}
