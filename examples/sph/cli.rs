//! The command line.

use std::path::PathBuf;

use clap::Parser;

use crate::case::{Case, Kind, Water, damping};
use crate::command_line::{Start, positive};

/// Weakly compressible smoothed-particle hydrodynamics: a dam break in two or three dimensions, and flows with known solutions.
#[derive(Debug, Clone, Parser)]
#[command(name = "sph")]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) start: Start,
    /// The flow
    #[arg(long, value_enum, default_value_t = Kind::DamBreak)]
    pub(crate) case: Kind,
    /// 2 or 3; columns of water alone know 3
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(2..=3))]
    pub(crate) dimensions: u8,
    /// Distance between particles, in metres; by default an 80th of the dam's height, else a 40th (in three dimensions half as many)
    #[arg(long, value_name = "DX", value_parser = length)]
    pub(crate) spacing: Option<f64>,
    /// Width of the column, side of the vortices' square, or period along the plates, in metres
    #[arg(long, value_name = "A", value_parser = length)]
    pub(crate) column_width: Option<f64>,
    /// Height of the column, by default twice its width, or distance of the plates, in metres
    #[arg(long, value_name = "H", value_parser = length)]
    pub(crate) column_height: Option<f64>,
    /// Depth of the tank in three dimensions, in metres; by default as deep as the column is wide
    #[arg(long, value_name = "B", value_parser = length)]
    pub(crate) column_depth: Option<f64>,
    /// Length of the tank that the dam breaks in, in metres; by default eight times the width of the column
    #[arg(long, value_name = "L", value_parser = length)]
    pub(crate) tank_length: Option<f64>,
    /// Seconds to compute
    #[arg(long, value_name = "T", value_parser = length)]
    pub(crate) end_time: Option<f64>,
    /// Seconds of a step; by default what is stable
    #[arg(long, value_name = "DT", value_parser = length)]
    pub(crate) time_step: Option<f64>,
    /// What moves past the bed and the end walls of a tank
    #[arg(long, value_enum)]
    pub(crate) slip: Option<Slip>,
    /// Speed of sound in columns of water, over that of free fall from their height, at least 5; by default 10
    #[arg(long, value_name = "C", value_parser = sound)]
    pub(crate) sound: Option<f64>,
    /// Kinematic viscosity of columns, in m²/s, not below the damping of the method, which is the default
    #[arg(long, value_name = "NU", value_parser = length)]
    pub(crate) viscosity: Option<f64>,
    /// Reynolds number of the vortices; by default 100
    #[arg(long, value_name = "RE", value_parser = length)]
    pub(crate) reynolds: Option<f64>,
    /// File for the front of the dam break, as CSV: T = t √(2g/A), Z = x/A
    #[arg(long, value_name = "FILE")]
    pub(crate) front: Option<PathBuf>,
    /// File for a picture of what is checked, .svg or .png
    #[arg(long, value_name = "FILE")]
    pub(crate) plot: Option<PathBuf>,
    /// Folder for frames, as VTK files and pictures
    #[arg(long, value_name = "FOLDER")]
    pub(crate) output: Option<PathBuf>,
    /// Frames between start and end
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = positive)]
    pub(crate) frames: usize,
}

/// What walls do to water that moves past them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Slip {
    /// Is not resisted
    Free,
    /// Is resisted by the viscosity (the default)
    No,
}

/// The flow that was asked for.
#[derive(Debug, Clone)]
pub(crate) enum Flow {
    Plane(Case<2>),
    Space(Case<3>),
}

/// Most particles of a run, walls included: they are numbered by 32 bits.
const MOST: f64 = 1e9;

impl Arguments {
    /// The flow, or what is wrong with it.
    pub(crate) fn flow(&self) -> Result<Flow, String> {
        let width = self.column_width.unwrap_or(match self.case {
            Kind::DamBreak | Kind::Hydrostatic => 0.146,
            Kind::TaylorGreen => 1.0,
            Kind::Poiseuille => 4e-4,
        });
        let height = self.column_height.unwrap_or(match self.case {
            Kind::DamBreak => 2.0 * width,
            Kind::Hydrostatic | Kind::TaylorGreen => width,
            Kind::Poiseuille => 1e-3,
        });
        let across = if self.case == Kind::DamBreak { 80.0 } else { 40.0 } / if self.dimensions == 3 { 2.0 } else { 1.0 };
        let spacing = self.spacing.unwrap_or(width.max(height) / across);
        let depth = self.column_depth.unwrap_or(width);
        let column = matches!(self.case, Kind::DamBreak | Kind::Hydrostatic);
        if self.dimensions == 3 && !column {
            return Err("only the columns of water have three dimensions".into());
        }
        if self.dimensions == 2 && self.column_depth.is_some() {
            return Err("--column-depth is for --dimensions 3".into());
        }
        if self.case != Kind::DamBreak && (self.front.is_some() || self.tank_length.is_some()) {
            return Err("--front and --tank-length are for the dam break".into());
        }
        if !column && (self.slip.is_some() || self.sound.is_some() || self.viscosity.is_some()) {
            return Err("--slip, --sound and --viscosity are for columns of water".into());
        }
        let water = Water {
            free_slip: self.slip == Some(Slip::Free),
            sound: self.sound.unwrap_or(Water::default().sound),
            viscosity: self.viscosity,
        };
        let least = damping(self.dimensions as usize, spacing, height, water.sound);
        if let Some(viscosity) = self.viscosity.filter(|viscosity| *viscosity < least) {
            return Err(format!(
                "--viscosity {viscosity} is below {least:.2e} m²/s, with which the method damps at this spacing"
            ));
        }
        if self.case != Kind::TaylorGreen && self.reynolds.is_some() {
            return Err("--reynolds is for the vortices".into());
        }
        let mut extents = vec![("wide", width), ("high", height)];
        if self.dimensions == 3 {
            extents.push(("deep", depth));
        }
        for (what, length) in extents {
            if (length / spacing).round() < 1.0 {
                return Err(format!("no particle fits: they are {spacing} m apart and the fluid is {length} m {what}"));
            }
        }
        let tank_length = self.tank_length.unwrap_or(8.0 * width);
        if tank_length < width {
            return Err(format!("a column {width} m wide does not fit into a tank of {tank_length} m"));
        }
        // High enough for the water that runs up the far wall.
        let tank_height = 3.0 * height;
        let volume = if column { tank_length * tank_height } else { width * height };
        let cells = volume / spacing.powi(2) * if self.dimensions == 3 { depth / spacing } else { 1.0 };
        if cells > MOST {
            return Err(format!("the tank has room for {cells:.1e} particles; up to {MOST:.0e} are possible"));
        }
        if self.case == Kind::TaylorGreen && height != width {
            return Err("the vortices' square has one side: give --column-width alone".into());
        }
        let periodic = !column;
        if periodic && width < 6.0 * spacing {
            return Err(format!("the period of {width} m must be at least six times the spacing of {spacing} m"));
        }
        Ok(match (self.case, self.dimensions) {
            (Kind::TaylorGreen, _) => Flow::Plane(Case::taylor_green(spacing, width, self.reynolds.unwrap_or(100.0))),
            (Kind::Poiseuille, _) => Flow::Plane(Case::poiseuille(spacing, width, height)),
            (kind, 2) => Flow::Plane(Case::column(kind, spacing, [width, height], [tank_length, tank_height], water)),
            (kind, _) => {
                Flow::Space(Case::column(kind, spacing, [width, height, depth], [tank_length, tank_height, depth], water))
            }
        })
    }
}

/// A speed of sound in which the fluid is nearly incompressible.
fn sound(text: &str) -> Result<f64, String> {
    length(text).ok().filter(|sound| *sound >= 5.0).ok_or_else(|| "not a number of at least 5".into())
}

/// A number above zero.
fn length(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number > 0.0 && number.is_finite() => Ok(number),
        Ok(_) => Err("a number above zero is needed".into()),
        Err(_) => Err("not a number".into()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn flow(line: &str) -> Result<Flow, String> {
        Arguments::try_parse_from(line.split(' ')).map_err(|error| error.to_string())?.flow()
    }

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
        for case in ["dam_break", "hydrostatic", "taylor_green", "poiseuille"] {
            assert!(flow(&format!("sph --case {case}")).is_ok());
        }
        assert!(matches!(flow("sph --dimensions 3 --spacing 0.0365"), Ok(Flow::Space(_))));
    }

    #[test]
    fn mistakes_are_refused() {
        assert!(flow("sph --spacing 1").unwrap_err().contains("no particle fits"));
        assert!(flow("sph --spacing 0").unwrap_err().contains("above zero"));
        assert!(flow("sph --spacing nan").unwrap_err().contains("above zero"));
        assert!(flow("sph --spacing 1e-9").unwrap_err().contains("possible"));
        assert!(flow("sph --case taylor_green --dimensions 3").unwrap_err().contains("three"));
        assert!(flow("sph --case taylor_green --front x.csv").unwrap_err().contains("--front"));
        assert!(flow("sph --case poiseuille --column-width 1e-4 --spacing 5e-5").unwrap_err().contains("period"));
        assert!(flow("sph --case taylor_green --slip free").unwrap_err().contains("--slip"));
        assert!(flow("sph --case poiseuille --viscosity 1e-6").unwrap_err().contains("--viscosity"));
        assert!(flow("sph --viscosity 1e-6").unwrap_err().contains("the method damps"));
        assert!(flow("sph --viscosity 0.01").is_ok());
        assert!(flow("sph --reynolds 10").unwrap_err().contains("--reynolds"));
        assert!(flow("sph --sound 1").unwrap_err().contains("at least 5"));
        assert!(flow("sph --tank-length 0.1").unwrap_err().contains("does not fit"));
    }
}
