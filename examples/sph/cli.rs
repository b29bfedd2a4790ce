//! The command line.

use std::path::PathBuf;

use clap::Parser;
use program::command_line::{Start, positive};

use crate::case::{Case, Column, Kind, Water, damping};
use crate::experiments::{self, Gate};
use crate::gas::tube::Tube;
use crate::instruments::{Instruments, Probe};
use crate::tank::Block;

/// Smoothed-particle hydrodynamics: a dam break in two or three dimensions, flows with known solutions, and Sod's shock tube.
#[derive(Debug, Clone, Parser)]
#[command(name = "sph")]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) start: Start,
    /// The flow
    #[arg(long, value_enum, default_value_t = Name::DamBreak)]
    pub(crate) case: Name,
    /// A dam break that was measured: sets the column, the tank, the gate and how long to compute. Column and tank cannot be given then, and the
    /// gate only if its speed is not published
    #[arg(long, value_enum, conflicts_with_all = ["column_width", "column_height", "tank_length", "obstacle"])]
    pub(crate) experiment: Option<experiments::Name>,
    /// 2 or 3; only columns of water can have 3; by default 2
    #[arg(long, value_parser = clap::value_parser!(u8).range(2..=3))]
    pub(crate) dimensions: Option<u8>,
    /// Distance between particles, in meters; by default an 80th of the dam's height, else a 40th (in three dimensions half as many)
    #[arg(long, value_name = "DX", value_parser = length)]
    pub(crate) spacing: Option<f64>,
    /// Number of particles of the shock tube, which have equal masses; by default 400
    #[arg(long, value_name = "N", value_parser = positive)]
    pub(crate) particles: Option<usize>,
    /// Width of the column, side of the vortices' square, or period along the plates, in meters
    #[arg(long, value_name = "A", value_parser = length)]
    pub(crate) column_width: Option<f64>,
    /// Height of the column, by default twice its width, or distance of the plates, in meters
    #[arg(long, value_name = "H", value_parser = length)]
    pub(crate) column_height: Option<f64>,
    /// Depth of the tank in three dimensions, in meters; by default as deep as the column is wide
    #[arg(long, value_name = "B", value_parser = length)]
    pub(crate) column_depth: Option<f64>,
    /// Length of the tank that the dam breaks in, in meters; by default eight times the width of the column
    #[arg(long, value_name = "L", value_parser = length)]
    pub(crate) tank_length: Option<f64>,
    /// Time to compute, in seconds (the shock tube's has no unit); by default as long as the experiment was recorded, else what shows the flow
    #[arg(long, value_name = "T", value_parser = length)]
    pub(crate) end_time: Option<f64>,
    /// Time step, in seconds; by default what is stable
    #[arg(long, value_name = "DT", value_parser = length)]
    pub(crate) time_step: Option<f64>,
    /// Speed at which a gate in front of the column rises, in m/s; by default there is none
    #[arg(long, value_name = "V", value_parser = length)]
    pub(crate) gate: Option<f64>,
    /// A box in the tank, three spacings thick or more, in meters: X0,Y0,X1,Y1, in three dimensions X0,Y0,Z0,X1,Y1,Z1; may be given again
    #[arg(long, value_name = "BOX", value_parser = numbers)]
    pub(crate) obstacle: Vec<Numbers>,
    /// Skin friction coefficient of bed and walls of a tank, 2τ/(ρu²); by default 0.005; 0 is free slip
    #[arg(long, value_name = "CF", value_parser = friction)]
    pub(crate) friction: Option<f64>,
    /// Water sticks to bed and walls of a tank
    #[arg(long, conflicts_with = "friction")]
    pub(crate) no_slip: bool,
    /// Speed of sound in columns of water, over that of free fall from their height, at least 5; by default 10
    #[arg(long, value_name = "C", value_parser = sound)]
    pub(crate) sound: Option<f64>,
    /// Kinematic viscosity of columns, in m²/s; by default that of the method's own damping, which is the least
    #[arg(long, value_name = "NU", value_parser = length)]
    pub(crate) viscosity: Option<f64>,
    /// Reynolds number of the vortices; by default 100
    #[arg(long, value_name = "RE", value_parser = length)]
    pub(crate) reynolds: Option<f64>,
    /// File for the front of the dam break, as CSV: T = t √(2g/A), Z = x/A
    #[arg(long, value_name = "FILE")]
    pub(crate) front: Option<PathBuf>,
    /// Measure the height of the water at this distance from the back wall, in meters; may be given again
    #[arg(long, value_name = "X", value_parser = distance)]
    pub(crate) gauge: Vec<f64>,
    /// Measure the pressure of the water at this point, in meters: X,Y, in three dimensions X,Y,Z; may be given again
    #[arg(long, value_name = "POINT", value_parser = numbers)]
    pub(crate) probe: Vec<Numbers>,
    /// File for what was measured of a column, as CSV: time, front, energies, gauges, probes
    #[arg(long, value_name = "FILE")]
    pub(crate) records: Option<PathBuf>,
    /// File for a picture of what is checked, .svg or .png
    #[arg(long, value_name = "FILE")]
    pub(crate) plot: Option<PathBuf>,
    /// Folder for frames, as VTK files and pictures
    #[arg(long, value_name = "FOLDER")]
    pub(crate) output: Option<PathBuf>,
    /// Folder for checkpoints, at the end of the run and with --checkpoint-every; the last one stays
    #[arg(long, value_name = "FOLDER")]
    pub(crate) checkpoint: Option<PathBuf>,
    /// Steps from one checkpoint to the next
    #[arg(long, value_name = "STEPS", value_parser = positive, requires = "checkpoint")]
    pub(crate) checkpoint_every: Option<usize>,
    /// Go on with the run of the checkpoint in this folder, on any number of ranks, up to its end or to --end-time
    #[arg(long, value_name = "FOLDER", conflicts_with = "time_step")]
    pub(crate) resume: Option<PathBuf>,
    /// Frames between start and end
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = positive)]
    pub(crate) frames: usize,
}

/// Numbers with commas between.
pub(crate) type Numbers = Box<[f64]>;

/// The flow that was asked for.
#[derive(Debug, Clone)]
pub(crate) enum Flow {
    Plane(Case<2>),
    Space(Case<3>),
    Tube(Tube),
}

/// What `--case` names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum Name {
    /// A column of water collapses into a tank
    DamBreak,
    /// Water at rest in a tank
    Hydrostatic,
    /// Decaying vortices in a periodic square
    TaylorGreen,
    /// Flow between plates starts up
    Poiseuille,
    /// Sod's shock tube: gas in one dimension
    Sod,
}

impl Name {
    /// The weakly compressible flow of this name, if it is one.
    fn kind(self) -> Option<Kind> {
        match self {
            Name::DamBreak => Some(Kind::DamBreak),
            Name::Hydrostatic => Some(Kind::Hydrostatic),
            Name::TaylorGreen => Some(Kind::TaylorGreen),
            Name::Poiseuille => Some(Kind::Poiseuille),
            Name::Sod => None,
        }
    }
}

/// Particles that a wall must be thick: as many as the kernel reaches.
const THICK: f64 = 3.0;

/// Most particles of a run, walls included: they are numbered by 32 bits.
const MOST: f64 = 1e9;

impl Arguments {
    /// The flow, or what is wrong with it.
    pub(crate) fn flow(&self) -> Result<Flow, String> {
        let Some(kind) = self.case.kind() else { return self.tube().map(Flow::Tube) };
        let experiment = self.experiment.map(experiments::Name::experiment);
        let width = self.column_width.or(experiment.map(|known| known.column[0])).unwrap_or(match kind {
            Kind::DamBreak | Kind::Hydrostatic => 0.146,
            Kind::TaylorGreen => 1.0,
            Kind::Poiseuille => 4e-4,
        });
        let height = self.column_height.or(experiment.map(|known| known.column[1])).unwrap_or(match kind {
            Kind::DamBreak => 2.0 * width,
            Kind::Hydrostatic | Kind::TaylorGreen => width,
            Kind::Poiseuille => 1e-3,
        });
        let across = if kind == Kind::DamBreak { 80.0 } else { 40.0 } / if self.dimensions() == 3 { 2.0 } else { 1.0 };
        let spacing = self.spacing.unwrap_or(width.max(height) / across);
        // An experiment is of its shape whatever the spacing: its column is whole particles high.
        let whole = (height / spacing).round().max(1.0);
        let spacing = if experiment.is_some() { height / whole } else { spacing };
        let depth = self.column_depth.or(experiment.and_then(|known| known.depth)).unwrap_or(width);
        self.check_flags(kind)?;
        let water = self.water(spacing, height)?;
        let mut extents = vec![("wide", width), ("high", height)];
        if self.dimensions() == 3 {
            extents.push(("deep", depth));
        }
        for (what, length) in extents {
            if (length / spacing).round() < 1.0 {
                return Err(format!("no particle fits: they are {spacing} m apart and the fluid is {length} m {what}"));
            }
        }
        let tank_length = self.tank_length.or(experiment.map(|known| known.tank)).unwrap_or(8.0 * width);
        if tank_length < width {
            return Err(format!("a column {width} m wide does not fit into a tank of {tank_length} m"));
        }
        // High enough for the water that runs up the far wall.
        let tank_height = 3.0 * height;
        let column = is_column(kind);
        let volume = if column { tank_length * tank_height } else { width * height };
        let cells = volume / spacing.powi(2) * if self.dimensions() == 3 { depth / spacing } else { 1.0 };
        if cells > MOST {
            return Err(format!("the tank has room for {cells:.1e} particles; up to {MOST:.0e} are possible"));
        }
        if kind == Kind::TaylorGreen && height != width {
            return Err("the vortices' square has one side: give --column-width alone".into());
        }
        Ok(match (kind, self.dimensions()) {
            (Kind::TaylorGreen, _) => {
                Flow::Plane(Case::taylor_green(spacing, width, self.reynolds.unwrap_or(100.0)).wide_enough()?)
            }
            (Kind::Poiseuille, _) => Flow::Plane(Case::poiseuille(spacing, width, height).wide_enough()?),
            (kind, 2) => {
                let column = self.column([width, height], [tank_length, tank_height], spacing)?;
                Flow::Plane(Case::column(kind, spacing, column, water))
            }
            (kind, _) => {
                let column = self.column([width, height, depth], [tank_length, tank_height, depth], spacing)?;
                Flow::Space(Case::column(kind, spacing, column, water))
            }
        })
    }

    /// Dimensions of a weakly compressible flow.
    fn dimensions(&self) -> u8 {
        self.dimensions.unwrap_or(2)
    }

    /// The shock tube, or what is wrong with it.
    fn tube(&self) -> Result<Tube, String> {
        let foreign = [
            ("--dimensions", self.dimensions.is_some()),
            ("--spacing", self.spacing.is_some()),
            ("--column-width", self.column_width.is_some()),
            ("--column-height", self.column_height.is_some()),
            ("--column-depth", self.column_depth.is_some()),
            ("--reynolds", self.reynolds.is_some()),
        ];
        let foreign = foreign.into_iter().chain(self.of_the_dam()).chain(self.of_columns());
        if let Some((flag, _)) = foreign.into_iter().find(|flag| flag.1) {
            return Err(format!("{flag} cannot be used with --case sod"));
        }
        let particles = self.particles.unwrap_or(400);
        if particles as f64 > MOST {
            return Err(format!("{particles} particles are too many; up to {MOST:.0e} are possible"));
        }
        Ok(Tube::new(particles as u64))
    }

    /// Flags that this flow does not know.
    fn check_flags(&self, kind: Kind) -> Result<(), String> {
        let column = is_column(kind);
        if self.dimensions() == 3 && !column {
            return Err("only the columns of water have three dimensions".into());
        }
        if self.dimensions() == 2 && self.column_depth.is_some() {
            return Err("--column-depth is for --dimensions 3".into());
        }
        if let Some((flag, _)) = self.of_the_dam().into_iter().find(|flag| flag.1 && kind != Kind::DamBreak) {
            return Err(format!("{flag} is for the dam break"));
        }
        if let Some((flag, _)) = self.of_columns().into_iter().find(|flag| flag.1 && !column) {
            return Err(format!("{flag} is for columns of water"));
        }
        if kind != Kind::TaylorGreen && self.reynolds.is_some() {
            return Err("--reynolds is for the vortices".into());
        }
        if self.particles.is_some() {
            return Err("--particles is for --case sod; other flows have --spacing".into());
        }
        Ok(())
    }

    /// Flags of the dam break, and whether each is given.
    fn of_the_dam(&self) -> [(&'static str, bool); 5] {
        [
            ("--front", self.front.is_some()),
            ("--tank-length", self.tank_length.is_some()),
            ("--experiment", self.experiment.is_some()),
            ("--gate", self.gate.is_some()),
            ("--obstacle", !self.obstacle.is_empty()),
        ]
    }

    /// Flags of columns of water, and whether each is given.
    fn of_columns(&self) -> [(&'static str, bool); 7] {
        [
            ("--friction", self.friction.is_some()),
            ("--no-slip", self.no_slip),
            ("--sound", self.sound.is_some()),
            ("--viscosity", self.viscosity.is_some()),
            ("--gauge", !self.gauge.is_empty()),
            ("--probe", !self.probe.is_empty()),
            ("--records", self.records.is_some()),
        ]
    }

    fn water(&self, spacing: f64, height: f64) -> Result<Water, String> {
        let usual = Water::default();
        let friction = if self.no_slip { None } else { self.friction.or(usual.friction) };
        let water = Water { friction, sound: self.sound.unwrap_or(usual.sound), viscosity: self.viscosity };
        let least = damping(self.dimensions() as usize, spacing, height, water.sound);
        match self.viscosity.filter(|viscosity| *viscosity < least) {
            None => Ok(water),
            Some(viscosity) => {
                Err(format!("--viscosity {viscosity} is below {least:.2e} m²/s, with which the method damps at this spacing"))
            }
        }
    }

    /// The column in its tank, with gate and obstacles.
    fn column<const D: usize>(&self, extent: [f64; D], tank: [f64; D], spacing: f64) -> Result<Column<D>, String> {
        let of_experiment = self.experiment.map(|name| name.experiment().gate);
        if self.gate.is_some() && of_experiment.is_some_and(|gate| !matches!(gate, Gate::Assumed(_))) {
            return Err("--gate cannot be used with this --experiment, which sets how the column is released".to_owned());
        }
        let gate = self.gate.or(of_experiment.and_then(Gate::speed));
        let ends = |block: &Block<D>| format!("{:?} to {:?} m", block.low, block.high);
        let whole = |x: f64| (x / spacing).round();
        let mut taken = Block { low: [0.0; D], high: extent };
        if gate.is_some() {
            // The gate, and all that is above it.
            taken.high[0] += THICK * spacing;
            taken.high[1] = f64::INFINITY;
            if whole(tank[0]) < whole(taken.high[0]) {
                return Err(format!(
                    "the tank of {} m has no room for a gate of {THICK} particles in front of the column",
                    tank[0]
                ));
            }
        }
        let mut obstacles = Vec::new();
        for numbers in &self.obstacle {
            let (low, high) = numbers.split_at(D.min(numbers.len()));
            let (Ok(low), Ok(high)) = (<[f64; D]>::try_from(low), <[f64; D]>::try_from(high)) else {
                return Err(format!("--obstacle needs {} numbers in {D} dimensions, got {}", 2 * D, numbers.len()));
            };
            let block = Block { low, high };
            if (0..D).any(|axis| whole(high[axis]) - whole(low[axis]) < THICK) {
                return Err(format!("the obstacle from {} is thinner than {THICK} spacings of {spacing} m", ends(&block)));
            }
            if (0..D).any(|axis| low[axis] < 0.0 || whole(high[axis]) > whole(tank[axis])) {
                return Err(format!("the obstacle from {} is not inside the tank of {tank:?} m", ends(&block)));
            }
            if block.meets(&taken) {
                let what = if gate.is_some() { "the column and its gate fill" } else { "the column fills" };
                return Err(format!("the obstacle from {} stands where {what} {:?} m", ends(&block), taken.high));
            }
            if let Some(other) = obstacles.iter().find(|other| block.meets(other)) {
                return Err(format!("the obstacles from {} and from {} overlap", ends(other), ends(&block)));
            }
            obstacles.push(block);
        }
        Ok(Column { extent, tank, gate, obstacles })
    }

    /// Gauges and probes that were asked for.
    pub(crate) fn instruments<const D: usize>(&self, case: &Case<D>) -> Result<Instruments<D>, String> {
        let length = case.length(0);
        if let Some(gauge) = self.gauge.iter().find(|gauge| **gauge > length + 0.5 * case.fluid.spacing) {
            return Err(format!("--gauge {gauge} is beyond the tank, which is {length} m long"));
        }
        let probe = |numbers: &Numbers| {
            let center = <[f64; D]>::try_from(&numbers[..])
                .map_err(|_| format!("--probe needs {D} numbers in {D} dimensions, got {}", numbers.len()))?;
            let half = 0.5 * case.fluid.spacing;
            match (0..D).find(|&axis| !(-half..=case.length(axis) + half).contains(&center[axis])) {
                None => Ok(Probe { center, diameter: 0.0 }),
                Some(axis) => {
                    let [name, extent] = [["x", "y", "z"][axis].to_owned(), format!("{} m", case.length(axis))];
                    Err(format!("--probe {center:?} is outside of the tank, whose {name} goes from 0 to {extent}"))
                }
            }
        };
        Ok(Instruments {
            gauges: self.gauge.iter().map(|gauge| gauge.min(length)).collect(),
            probes: self.probe.iter().map(probe).collect::<Result<_, _>>()?,
        })
    }
}

fn is_column(kind: Kind) -> bool {
    matches!(kind, Kind::DamBreak | Kind::Hydrostatic)
}

/// A speed of sound in which the fluid is nearly incompressible.
fn sound(text: &str) -> Result<f64, String> {
    length(text).ok().filter(|sound| *sound >= 5.0).ok_or_else(|| "not a number of at least 5".into())
}

/// A skin friction coefficient.
fn friction(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().map_err(|_| "not a number")?;
    if (0.0..=1.0).contains(&number) { Ok(number) } else { Err("a number from 0 to 1 is needed".into()) }
}

/// A number that is not below zero.
fn distance(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().map_err(|_| "not a number")?;
    if number >= 0.0 && number.is_finite() { Ok(number) } else { Err("a number of zero or more is needed".into()) }
}

/// Numbers with commas between.
fn numbers(text: &str) -> Result<Numbers, String> {
    let number = |word: &str| word.trim().parse::<f64>().ok().filter(|x| x.is_finite());
    text.split(',').map(number).collect::<Option<_>>().ok_or_else(|| "numbers with commas between are needed".into())
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
        for case in ["dam_break", "hydrostatic", "taylor_green", "poiseuille", "sod"] {
            assert!(flow(&format!("sph --case {case}")).is_ok());
        }
        assert!(matches!(flow("sph --dimensions 3 --spacing 0.0365"), Ok(Flow::Space(_))));
        // A spacing that the column is no multiple of.
        let Ok(Flow::Plane(case)) = flow("sph --experiment lobovsky --spacing 0.0315") else { panic!() };
        assert!(crate::experiments::Experiment::of(&case).is_some(), "{:?}", case.counts);
        let Ok(Flow::Plane(case)) = flow("sph --experiment lobovsky --spacing 0.01") else { panic!() };
        assert_eq!((case.counts, case.inside[0], case.gate), ([60, 30], 161, Some(3.46)));
        let Ok(Flow::Plane(case)) = flow("sph --obstacle 0.5,0,0.6,0.1") else { panic!() };
        assert_eq!(case.obstacles.len(), 1);
    }

    #[test]
    fn instruments_are_inside_the_tank() {
        let instruments = |line: &str| {
            let arguments = Arguments::try_parse_from(line.split(' ')).map_err(|error| error.to_string())?;
            match arguments.flow()? {
                Flow::Plane(case) => arguments.instruments(&case).map(|instruments| instruments.names()),
                Flow::Space(case) => arguments.instruments(&case).map(|instruments| instruments.names()),
                Flow::Tube(_) => Ok(Vec::new()),
            }
        };
        assert_eq!(instruments("sph --gauge 0.5 --probe 1.168,0.01").unwrap(), ["level_0.5", "pressure_1.168_0.01"]);
        assert!(instruments("sph --gauge 2").unwrap_err().contains("1.168 m long"));
        assert!(instruments("sph --probe 0.1,0.1,0.1").unwrap_err().contains("needs 2 numbers"));
        assert!(instruments("sph --probe 0.1,0.1 --dimensions 3").unwrap_err().contains("needs 3 numbers"));
        assert!(instruments("sph --probe 0.1,5").unwrap_err().contains("whose y goes from 0"));
    }

    #[test]
    fn mistakes_are_refused() {
        assert!(flow("sph --spacing 1").unwrap_err().contains("no particle fits"));
        assert!(flow("sph --spacing 0").unwrap_err().contains("above zero"));
        assert!(flow("sph --spacing nan").unwrap_err().contains("above zero"));
        assert!(flow("sph --spacing 1e-9").unwrap_err().contains("possible"));
        assert!(flow("sph --case taylor_green --dimensions 3").unwrap_err().contains("three"));
        assert!(flow("sph --case taylor_green --front x.csv").unwrap_err().contains("--front"));
        assert!(flow("sph --case poiseuille --column-width 3.5e-4 --spacing 5e-5").unwrap_err().contains("period of 0.00035 m"));
        // One particle from plate to plate, so they are farther apart than was asked for.
        let coarse = "sph --case poiseuille --column-height 1.4e-4 --column-width 8e-4 --spacing 1e-4";
        assert!(flow(coarse).unwrap_err().contains("6 particles, 0.00014 m apart"));
        assert!(flow("sph --case taylor_green --spacing 0.14").unwrap_err().contains("at least 8 are needed"));
        assert!(flow("sph --case taylor_green --spacing 0.125").is_ok() && flow("sph --case poiseuille --spacing 5e-5").is_ok());
        assert!(flow("sph --case taylor_green --no-slip").unwrap_err().contains("--no-slip"));
        assert!(flow("sph --case hydrostatic --gate 3").unwrap_err().contains("--gate is for the dam break"));
        assert!(flow("sph --friction 2").unwrap_err().contains("from 0 to 1"));
        assert!(flow("sph --friction 0.01 --no-slip").unwrap_err().contains("cannot be used"));
        assert!(flow("sph --experiment buchner --tank-length 3").unwrap_err().contains("cannot be used"));
        assert!(flow("sph --experiment nobody").unwrap_err().contains("martin_moyce_square"));
        assert!(flow("sph --obstacle 0.5,0,0.6").unwrap_err().contains("needs 4 numbers"));
        assert!(flow("sph --obstacle 0.5,0,0.6,0.1 --dimensions 3").unwrap_err().contains("needs 6 numbers"));
        assert!(flow("sph --obstacle 0.5,0,0.5,0.1").unwrap_err().contains("thinner than 3 spacings"));
        assert!(flow("sph --obstacle 0.5,0,0.6,0.1 --obstacle 0.55,0,0.7,0.1").unwrap_err().contains("overlap"));
        assert!(flow("sph --gate 1 --obstacle 0.15,0.5,0.2,0.6").unwrap_err().contains("its gate"));
        assert!(flow("sph --gate 1 --tank-length 0.15").unwrap_err().contains("no room for a gate"));
        assert!(flow("sph --obstacle 1.1,0,1.3,0.1").unwrap_err().contains("not inside the tank"));
        assert!(flow("sph --obstacle 0.1,0,0.3,0.1").unwrap_err().contains("the column fills"));
        assert!(flow("sph --obstacle 0.5,x").unwrap_err().contains("commas"));
        assert!(flow("sph --case poiseuille --viscosity 1e-6").unwrap_err().contains("--viscosity"));
        assert!(flow("sph --viscosity 1e-6").unwrap_err().contains("the method damps"));
        assert!(flow("sph --viscosity 0.01").is_ok());
        assert!(flow("sph --reynolds 10").unwrap_err().contains("--reynolds"));
        assert!(flow("sph --sound 1").unwrap_err().contains("at least 5"));
        assert!(flow("sph --case sod --spacing 0.1").unwrap_err().contains("--spacing cannot be used with --case sod"));
        assert!(flow("sph --case sod --gauge 0.1").unwrap_err().contains("--gauge cannot be used with --case sod"));
        assert!(flow("sph --case sod --particles 0").unwrap_err().contains("at least 1"));
        assert!(flow("sph --case sod --particles 2000000000").unwrap_err().contains("too many"));
        assert!(flow("sph --particles 100").unwrap_err().contains("--particles is for --case sod"));
        assert!(flow("sph --case sod --dimensions 2").unwrap_err().contains("--dimensions cannot be used with --case sod"));
        assert!(flow("sph --tank-length 0.1").unwrap_err().contains("does not fit"));
    }
}
