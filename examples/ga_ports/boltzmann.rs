//! Lattice Boltzmann: the flow in a square cavity whose lid moves, on a lattice with nine velocities.
//!
//! A step takes the populations of a cell from its neighbors, each along its velocity, and relaxes them towards the equilibrium of their
//! density and momentum. The sides, halfway between two cells, send a population back where it came from; the lid adds its own momentum.
//! All populations of a cell are one element of a global array with ghost cells.
//!
//! At the Reynolds number 100 the speeds on the two lines through the center are compared with those of Ghia, Ghia and Shin.
//!
//! # Source
//! The method: Y. H. Qian, D. d'Humières, P. Lallemand, *Lattice BGK models for Navier-Stokes equation*, Europhys. Lett. 17, 1992. The sides:
//! A. J. C. Ladd, *Numerical simulations of particulate suspensions via a discretized Boltzmann equation*, J. Fluid Mech. 271, 1994. The
//! table: U. Ghia, K. N. Ghia, C. T. Shin, *High-Re solutions for incompressible flow using the Navier-Stokes equations and a multigrid
//! method*, J. Comput. Phys. 48, 1982.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use global_arrays::{
    file::{FileWriter, check_name},
    prelude::*,
};
use program::command_line::{self, Start, positive};
use serde_json::json;

/// Cells in a step along the two axes, and weights.
const VELOCITIES: [([isize; 2], f64); 9] = [
    ([0, 0], 4.0 / 9.0),
    ([1, 0], 1.0 / 9.0),
    ([-1, 0], 1.0 / 9.0),
    ([0, 1], 1.0 / 9.0),
    ([0, -1], 1.0 / 9.0),
    ([1, 1], 1.0 / 36.0),
    ([-1, -1], 1.0 / 36.0),
    ([1, -1], 1.0 / 36.0),
    ([-1, 1], 1.0 / 36.0),
];
const OPPOSITE: [usize; 9] = [0, 2, 1, 4, 3, 6, 5, 8, 7];

/// Speed of the lid, in cells for each step: small against that of sound, 0.58.
const LID: f64 = 0.1;

/// Until the flow is steady, in times that the lid needs from one side to the other.
const TURNS: usize = 25;

/// The Reynolds number of the table, and the largest difference allowed.
const TABLE_REYNOLDS: f64 = 100.0;
const TOLERANCE: f64 = 0.01;
/// Places on a line from 0 to 1, and speeds divided by the lid's: along it on the line upwards through the center, across it on the other.
const ALONG: [(f64, f64); 5] = [(0.9531, 0.68717), (0.7344, 0.00332), (0.5, -0.20581), (0.2813, -0.15662), (0.1016, -0.06434)];
const ACROSS: [(f64, f64); 5] = [(0.9063, -0.16914), (0.8047, -0.24533), (0.5, 0.05454), (0.2344, 0.17527), (0.0938, 0.12317)];

/// Computes the flow in a square cavity whose lid moves.
#[derive(Debug, Clone, Parser)]
#[command(name = "boltzmann")]
struct Arguments {
    #[command(flatten)]
    start: Start,
    /// Cells along each side
    #[arg(long, value_parser = positive, default_value_t = 64)]
    n: usize,
    /// Speed of the lid times the length of a side, divided by the viscosity
    #[arg(long, default_value_t = TABLE_REYNOLDS)]
    reynolds: f64,
    /// Steps in time; by default until the flow is steady
    #[arg(long)]
    steps: Option<usize>,
    /// Write density, velocity and vorticity to this file, as flow.vti for ParaView or flow.h5
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
}

/// The populations of a cell.
type Cell = [f64; 9];

/// Density and velocity.
fn moments(cell: &Cell) -> (f64, [f64; 2]) {
    let density = cell.iter().sum::<f64>();
    let momentum = |axis: usize| cell.iter().zip(VELOCITIES).map(|(f, (e, _))| e[axis] as f64 * f).sum::<f64>();
    (density, [0, 1].map(|axis| momentum(axis) / density))
}

/// The population of velocity `k` in equilibrium.
fn equilibrium(k: usize, density: f64, u: [f64; 2]) -> f64 {
    let (e, weight) = VELOCITIES[k];
    let along = e[0] as f64 * u[0] + e[1] as f64 * u[1];
    weight * density * (1.0 + 3.0 * along + 4.5 * along * along - 1.5 * (u[0] * u[0] + u[1] * u[1]))
}

/// The next populations of a cell of n × n, given those at an offset from it.
fn step(n: usize, rate: f64, (i, j): (usize, usize), near: impl Fn([isize; 2]) -> Cell) -> Cell {
    let here = near([0, 0]);
    let came: Cell = std::array::from_fn(|k| {
        let ([x, y], weight) = VELOCITIES[k];
        let is_inside = |at: usize, e: isize| at.checked_add_signed(-e).is_some_and(|from| from < n);
        if is_inside(i, x) && is_inside(j, y) {
            near([-x, -y])[k]
        } else if is_inside(j, y) || y > 0 {
            here[OPPOSITE[k]]
        } else {
            here[OPPOSITE[k]] + 6.0 * weight * x as f64 * LID
        }
    });
    let (density, u) = moments(&came);
    std::array::from_fn(|k| came[k] + rate * (equilibrium(k, density, u) - came[k]))
}

/// A speed in a row of cells at a place from 0 to 1, by linear interpolation between their centers.
fn at(place: f64, speeds: &[f64]) -> f64 {
    let cells = place * speeds.len() as f64 - 0.5;
    let first = (cells.max(0.0) as usize).min(speeds.len().saturating_sub(2));
    let weight = cells - first as f64;
    (1.0 - weight) * speeds[first] + weight * speeds[(first + 1).min(speeds.len() - 1)]
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    command_line::main("boltzmann", || {
        if let Some(file) = &arguments.save {
            check_name(file)?;
        }
        arguments.start.launch().run(|job| rank_main(job, &arguments))
    })
}

/// What each rank does.
fn rank_main(job: &Job, arguments: &Arguments) -> Result<(), Error> {
    arguments.start.needs_computing(job, "boltzmann", true).map_err(Error::other)?;
    let n = arguments.n;
    let viscosity = LID * n as f64 / arguments.reynolds;
    let rate = 1.0 / (3.0 * viscosity + 0.5);
    let steps = arguments.steps.unwrap_or(((TURNS * n) as f64 / LID) as usize);
    let at_rest: Cell = std::array::from_fn(|k| equilibrium(k, 1.0, [0.0; 2]));
    let cells = |name| {
        let cells = GlobalArray2::<Cell>::builder(job, [n, n]).name(name).ghosts([1, 1]);
        cells.boundaries([Boundary::Open; 2]).fill(at_rest).create()
    };
    let (mut old, mut new) = (cells("old")?, cells("new")?);
    for _ in 0..steps {
        job.epoch((old.ghosts(), new.owned_mut()), |(old, mut new)| {
            let cells = old.cells();
            new.indexed_iter_mut().for_each(|(at, next)| *next = step(n, rate, at, |offset| cells.near(at, offset)));
        })?;
        std::mem::swap(&mut old, &mut new);
    }

    let field = |name| GlobalArray2::<f64>::builder(job, [n, n]).name(name).ghosts([1, 1]).create();
    let (mut density, mut u, mut v) = (field("density")?, field("u")?, field("v")?);
    density.assign_map(&old, |cell| moments(&cell).0)?;
    u.assign_map(&old, |cell| moments(&cell).1[0] / LID)?;
    v.assign_map(&old, |cell| moments(&cell).1[1] / LID)?;
    if let Some(file) = &arguments.save {
        let mut vorticity = field("vorticity")?;
        job.epoch((u.ghosts(), v.ghosts(), vorticity.owned_mut()), |(u, v, mut vorticity)| {
            let (u, v) = (u.cells(), v.cells());
            for (at, w) in vorticity.indexed_iter_mut() {
                *w = 0.5 * n as f64 * (v.near(at, [1, 0]) - v.near(at, [-1, 0]) - u.near(at, [0, 1]) + u.near(at, [0, -1]));
            }
        })?;
        let file = FileWriter::new(file).array("density", &density).array("u", &u).array("v", &v);
        file.array("vorticity", &vorticity).spacing(&[1.0 / n as f64; 2]).save()?;
    }

    // Lines through the center, which is a corner of four cells if n is even.
    let middle = [(n - 1) / 2, n / 2];
    let upwards: Vec<f64> = u.get(s![middle[0]..=middle[1], ..])?.mean_axis(Axis(0)).expect("a line").to_vec();
    let sideways: Vec<f64> = v.get(s![.., middle[0]..=middle[1]])?.mean_axis(Axis(1)).expect("a line").to_vec();
    let differences = ALONG.iter().map(|&(place, speed)| at(place, &upwards) - speed);
    let differences = differences.chain(ACROSS.iter().map(|&(place, speed)| at(place, &sideways) - speed));
    let difference = differences.fold(0.0, |largest: f64, difference| largest.max(difference.abs()));
    let lost = (density.sum()? / (n * n) as f64 - 1.0).abs();
    let is_compared = arguments.reynolds == TABLE_REYNOLDS && arguments.steps.is_none();
    let passed = lost < 1e-10 && !(is_compared && difference > TOLERANCE);
    let center = [at(0.5, &upwards), at(0.5, &sideways)];
    let people = format!(
        "{steps} steps of {n} x {n} cells: the speed in the center is {center:.6?}, mass changed by {lost:.1e}; \
         largest difference to the table {difference:.4}"
    );
    let report = json!({ "steps": steps, "center": center, "mass_change": lost, "difference": difference, "passed": passed });
    arguments.start.report(job, people, &report)?;
    if passed { Ok(()) } else { Err(Error::other(format!("mass changed by {lost:e}, speeds differ by {difference}"))) }
}
