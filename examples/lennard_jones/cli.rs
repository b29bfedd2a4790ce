//! The command line.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Parser;
use program::command_line::{self, positive};

use crate::potential::Ending;
use crate::species::Choices;
use crate::start::Composition;

/// Molecular dynamics of a Lennard-Jones fluid in a periodic box, in reduced units.
#[derive(Debug, Clone, Parser)]
#[command(name = "lennard_jones", group = clap::ArgGroup::new("from").required(true))]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) start: command_line::Start,

    /// NIST sample configuration: box, number of atoms, positions
    #[arg(long, value_name = "FILE", group = "from")]
    pub(crate) config: Option<PathBuf>,
    /// Face-centred cubic lattice of CELLS³ cubic cells, or as in 8x16x16, four atoms each
    #[arg(long, value_name = "CELLS", group = "from")]
    pub(crate) fcc: Option<Cells>,
    /// LAMMPS data file or dump, or extended XYZ, maybe compressed by gzip; of several frames the last
    #[arg(long = "start", id = "start_file", value_name = "FILE", group = "from")]
    pub(crate) start_file: Option<PathBuf>,
    /// Atoms for each unit of volume, on a lattice
    #[arg(long, default_value_t = 0.8442, conflicts_with_all = ["config", "start_file"], value_parser = above_zero)]
    pub(crate) density: f64,
    /// Edge of a box that is longer than the lattice: a droplet
    #[arg(long = "box", id = "box", value_name = "EDGE", conflicts_with_all = ["config", "start_file"], value_parser = above_zero)]
    pub(crate) room: Option<f64>,
    /// Parts of the atoms of a lattice that are of kind 1, 2 and so on, as in 0.8,0.2; which ones are drawn by --seed
    #[arg(long, value_name = "PART,PART", conflicts_with_all = ["config", "start_file"])]
    pub(crate) composition: Option<Composition>,
    #[command(flatten)]
    pub(crate) species: Choices,

    /// Distance at which the potential ends, of pairs of kinds that have no cut-off of their own; by default 2.5
    #[arg(long, value_parser = above_zero)]
    pub(crate) cutoff: Option<f64>,
    /// How it ends
    #[arg(long, value_enum, default_value_t = Ending::Truncated)]
    pub(crate) potential: Ending,
    /// Time step
    #[arg(long, default_value_t = 0.005, value_parser = above_zero)]
    pub(crate) dt: f64,
    /// Time steps; by default 100, and 0 with --config
    #[arg(long)]
    pub(crate) steps: Option<usize>,
    /// Temperature of velocities that are drawn, and of --equilibrate; by default that of the thermostat, else 1.44, or 0 with --config
    #[arg(long, value_parser = not_negative)]
    pub(crate) temperature: Option<f64>,
    /// Seed of what is drawn: velocities, kinds, the factors of the thermostat
    #[arg(long, default_value_t = 87287)]
    pub(crate) seed: u64,
    /// Time steps before the others in which velocities are scaled, ten steps apart, to --temperature or --energy
    #[arg(long, value_name = "STEPS", default_value_t = 0)]
    pub(crate) equilibrate: usize,
    /// Total energy for each atom, tail included, that --equilibrate scales to in place of a temperature
    #[arg(long, value_name = "E", allow_negative_numbers = true, requires = "equilibrate", value_parser = finite)]
    pub(crate) energy: Option<f64>,

    /// Keep this temperature by a thermostat that scales velocities at random: a canonical ensemble. The motion of the whole is stopped first
    #[arg(long, value_name = "TEMPERATURE", value_parser = not_negative)]
    pub(crate) thermostat: Option<f64>,
    /// Time after which the thermostat has forgotten a kinetic energy
    #[arg(long, value_name = "TIME", default_value_t = 0.5, requires = "thermostat", value_parser = above_zero)]
    pub(crate) relaxation: f64,

    /// Atoms of a block of the force matrix, a multiple of 64; by default an eighth of a rank's share, from 64 to 2048
    #[arg(long, value_name = "M", value_parser = block)]
    pub(crate) block: Option<usize>,
    /// How much farther than the cut-off neighbour lists reach
    #[arg(long, default_value_t = 0.45, value_parser = above_zero)]
    pub(crate) skin: f64,
    /// Make this rank work at half speed, to see the counters balance
    #[arg(long, value_name = "RANK")]
    pub(crate) slow: Option<usize>,

    /// Steps from one row of output to the next
    #[arg(long, default_value_t = 100, value_parser = positive)]
    pub(crate) every: usize,
    /// Write a row of thermodynamic quantities each --every steps, as CSV
    #[arg(long, value_name = "FILE")]
    pub(crate) thermo: Option<PathBuf>,
    /// Write all atoms each --every steps, as extended XYZ that --start reads
    #[arg(long, value_name = "FILE")]
    pub(crate) trajectory: Option<PathBuf>,
    /// Replace this file each --every steps by all atoms, as extended XYZ: --start goes on from it
    #[arg(long, value_name = "FILE")]
    pub(crate) restart: Option<PathBuf>,
    /// Radial distribution function of the configurations each --every steps: as CSV, or drawn as SVG or PNG; may be repeated
    #[arg(long, value_name = "FILE")]
    pub(crate) rdf: Vec<PathBuf>,
    /// How far it goes, at most half of the box's shortest edge, which is the default up to 6
    #[arg(long, value_name = "R", requires = "rdf", value_parser = above_zero)]
    pub(crate) rdf_range: Option<f64>,
    /// Mean square displacement of the atoms over time: as CSV, or drawn as SVG or PNG; may be repeated
    #[arg(long, value_name = "FILE")]
    pub(crate) msd: Vec<PathBuf>,
    /// Draw energies over time, as SVG or PNG
    #[arg(long, value_name = "FILE")]
    pub(crate) plot: Option<PathBuf>,

    /// Fail unless a key of --json has a value: relative tolerance after a colon, absolute after +-
    #[arg(long, value_name = "KEY=VALUE:TOLERANCE", allow_negative_numbers = true)]
    pub(crate) expect: Vec<Expectation>,
    /// Fail unless rows agree with this log or table of LAMMPS to 1e-9, or to its last digit
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// Fail unless the forces of step 0 agree to 1e-9 with this LAMMPS dump of id fx fy fz
    #[arg(long, value_name = "FILE")]
    pub(crate) forces: Option<PathBuf>,
}

/// Cells of a lattice along each axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cells(pub(crate) [usize; 3]);

impl FromStr for Cells {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let counts: Vec<usize> = text.split('x').map(positive).collect::<Result<_, _>>()?;
        match counts[..] {
            [all] => Ok(Cells([all; 3])),
            [x, y, z] => Ok(Cells([x, y, z])),
            _ => Err("one number or three are expected, as in 8x16x16".into()),
        }
    }
}

/// A value that one key of the report must have.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Expectation {
    pub(crate) key: String,
    pub(crate) value: f64,
    /// Absolute.
    pub(crate) tolerance: f64,
}

impl FromStr for Expectation {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (key, rest) = text.split_once('=').ok_or("KEY=VALUE:TOLERANCE or KEY=VALUE+-TOLERANCE is expected")?;
        let number = |text: &str| text.parse::<f64>().ok().filter(|x| x.is_finite()).ok_or(format!("`{text}` is no number"));
        let (value, tolerance) = if let Some((value, tolerance)) = rest.split_once("+-") {
            (number(value)?, number(tolerance)?)
        } else if let Some((value, tolerance)) = rest.split_once(':') {
            let value = number(value)?;
            (value, number(tolerance)? * value.abs())
        } else {
            return Err("a tolerance is missing: `:` for a relative one, `+-` for an absolute one".into());
        };
        Ok(Expectation { key: key.into(), value, tolerance })
    }
}

fn finite(text: &str) -> Result<f64, String> {
    text.parse::<f64>().ok().filter(|x| x.is_finite()).ok_or_else(|| "not a finite number".into())
}

fn above_zero(text: &str) -> Result<f64, String> {
    finite(text).ok().filter(|x| *x > 0.0).ok_or_else(|| "not a number above 0".into())
}

fn not_negative(text: &str) -> Result<f64, String> {
    finite(text).ok().filter(|x| *x >= 0.0).ok_or_else(|| "not a number of at least 0".into())
}

fn block(text: &str) -> Result<usize, String> {
    positive(text).ok().filter(|m| m.is_multiple_of(64)).ok_or_else(|| "not a multiple of 64".into())
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
        assert!(parse("lennard_jones --fcc 0").unwrap_err().contains("at least 1"));
        assert!(parse("lennard_jones --fcc 3x4").unwrap_err().contains("8x16x16"));
        assert!(parse("lennard_jones --config a --box 9").is_err());
        assert!(parse("lennard_jones --fcc 3x4x5 --box 30").is_ok());
        assert!(parse("lennard_jones --start a --composition 0.8,0.2").is_err());
        assert!(parse("lennard_jones --fcc 3 --composition 0.8,0.3").unwrap_err().contains("add up to 1"));
        assert!(parse("lennard_jones --fcc 3 --pair 1,1").is_err());
        assert!(parse("lennard_jones --fcc 3 --relaxation 1").unwrap_err().contains("--thermostat"));
        assert!(parse("lennard_jones --fcc 3 --rdf-range 1").unwrap_err().contains("--rdf"));
        assert!(parse("lennard_jones --fcc 3 --thermostat 1").is_ok());
        assert!(parse("lennard_jones --start a --density 1").is_err() && parse("lennard_jones --start a").is_ok());
        assert!(parse("lennard_jones --fcc 3 --cutoff -1").is_err());
        assert!(parse("lennard_jones --fcc 3 --dt nan").unwrap_err().contains("above 0"));
        assert!(parse("lennard_jones --fcc 3 --block 100").unwrap_err().contains("multiple of 64"));
        assert!(parse("lennard_jones --fcc 3 --config a").unwrap_err().contains("cannot be used with"));
        assert!(parse("lennard_jones --json").unwrap_err().contains("required"));
        assert!(parse("lennard_jones --fcc 3 --expect pressure=1").unwrap_err().contains("tolerance"));
        assert!(parse("lennard_jones --start a.gz --potential shifted-force --seed 1 --ranks 2 --network threads").is_ok());
    }

    #[test]
    fn tolerances_are_relative_or_absolute() {
        let of = |text: &str| text.parse::<Expectation>().map(|e| (e.value, e.tolerance));
        assert_eq!(of("a=-2:0.5"), Ok((-2.0, 1.0)));
        assert_eq!(of("a=-2+-0.5"), Ok((-2.0, 0.5)));
        assert_eq!(of("a=-2e-3:1e-1").map(|(value, _)| value), Ok(-2e-3));
        assert!(of("a=b:1").is_err() && of("a=1:b").is_err());
    }
}
