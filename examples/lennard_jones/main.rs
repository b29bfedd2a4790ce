//! Molecular dynamics of a Lennard-Jones fluid by force decomposition over global arrays.
//!
//! # The method
//!
//! Positions, velocities and forces of all atoms lie in global arrays, sorted in space ([`order`]). The N × N matrix of pair
//! forces is cut in m × m blocks; those that join regions within reach of each other are tasks ([`plan`]), handed out by atomic
//! counters ([`queues`]); each brings forces back by accumulate ([`forces`]). A task is a list of near pairs ([`list`]), good until an atom
//! has moved by half a skin, and a kernel that runs down the list, one atom against a vector of eight ([`kernel`]). Atoms are
//! moved by velocity Verlet, each rank its own ([`simulation`]).
//!
//! What each rank holds besides its share of the arrays: positions and forces of the blocks that its tasks touch ([`held`]), and the box
//! around each block of the system. While atoms are ordered, every rank that owns some holds the positions and velocities of all.
//!
//! # Source
//! A. Vishnu, J. Daily, B. Palmer, *Designing scalable PGAS communication subsystems on Cray Gemini interconnect*, HiPC 2012,
//! §IV-C; S. Plimpton, *Fast parallel algorithms for short-range molecular dynamics*, J. Comput. Phys. 117 (1995), whose force
//! decomposition it is.

// Loops over lanes and axes index several arrays at once.
#![allow(clippy::needless_range_loop)]

mod boxes;
mod checks;
mod cli;
mod cluster;
mod comment;
mod data_file;
mod dump;
mod forces;
mod held;
mod kernel;
mod list;
mod nist;
mod observers;
mod order;
mod pace;
mod plan;
mod potential;
mod queues;
mod radial;
mod read;
mod report;
mod run;
mod simulation;
mod species;
mod start;
mod tag;
mod thermo;
mod thermostat;
mod trace;
mod xyz;

use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use global_arrays::prelude::*;
use program::file_names::{self, Named};
use program::{command_line, plot};

use cli::{Arguments, Cells};
use potential::{Law, Potential};
use report::Report;
use run::Task;
use species::Coefficients;
use start::Start;
use thermostat::Thermostat;

/// A lattice of 32 million atoms, some 15 GiB.
const MOST_CELLS: usize = 200;

/// Coordinates in a longer box have no digits left for distances between atoms.
const LONGEST_EDGE: f64 = 1e9;

/// Edges of the box that the cut-off and the skin may reach over.
const MOST_IMAGES: f64 = 4.0;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    command_line::main("lennard_jones", || launch(&prepare(arguments)?).map_err(|error| error.to_string()))
}

/// Reads what the run starts from and is compared with.
fn prepare(arguments: Arguments) -> Result<Task, String> {
    let told = |file: &Path| file.display().to_string();
    let usual = arguments.thermostat.unwrap_or(1.44);
    let (mut start, name, steps, temperature) = if let Some(file) = &arguments.config {
        (read::configuration(file).map_err(|e| e.to_string())?, told(file), 0, arguments.thermostat.unwrap_or(0.0))
    } else if let Some(file) = &arguments.start_file {
        (read::start(file).map_err(|e| e.to_string())?, told(file), 100, usual)
    } else {
        let Cells(cells) = arguments.fcc.unwrap_or(Cells([1; 3]));
        let [x, y, z] = cells;
        if let Some(cells) = cells.iter().find(|&&cells| cells > MOST_CELLS) {
            return Err(format!("{cells} cells along an edge are too many: at most {MOST_CELLS}"));
        }
        let mut start = start::fcc(cells, arguments.density, arguments.room.unwrap_or(0.0));
        if let Some(composition) = &arguments.composition {
            composition.apply(&mut start, arguments.seed);
        }
        (start, format!("fcc lattice of {x} x {y} x {z} cells"), 100, usual)
    };
    let temperature = arguments.temperature.unwrap_or(temperature);
    let masses = arguments.species.masses(&start.kinds)?;
    let potential = arguments.species.potential(&start.kinds, &start.coefficients, arguments.potential, arguments.cutoff)?;
    if start.velocities.is_empty() {
        let of_atoms: Vec<f64> = start.kind_of.iter().map(|&kind| masses[usize::from(kind)]).collect();
        start.velocities = start::maxwell(&of_atoms, temperature, arguments.seed);
    } else if arguments.temperature.is_some() && arguments.equilibrate == 0 {
        return Err(format!("--temperature means nothing here: {name} has velocities, and only --equilibrate scales them"));
    }
    if start.lengths.iter().any(|edge| *edge > LONGEST_EDGE) {
        return Err(format!("the box {:?} is too large: at most {LONGEST_EDGE:e} along each edge", start.lengths));
    }
    // Beyond this a task has more images of the box than it counts, and the sum over pairs is a matter of lattices, not of lists.
    let shortest = start.lengths.into_iter().fold(f64::INFINITY, f64::min);
    let (cutoff, skin) = (potential.cutoff(), arguments.skin);
    if cutoff + skin > MOST_IMAGES * shortest {
        return Err(format!(
            "the cut-off {cutoff} and the skin {skin} reach over {:.1} edges of the box {:?}: pairs are summed over up to {MOST_IMAGES} \
             images along each axis; give a wider box, or a shorter cut-off or skin",
            (cutoff + skin) / shortest,
            start.lengths
        ));
    }
    name_potentials(&mut start, &masses, &potential);
    let thermostat = arguments.thermostat.map(|temperature| Thermostat {
        temperature,
        relaxation: arguments.relaxation,
        seed: arguments.seed,
    });
    if thermostat.is_some() {
        start.stop_drifting(&masses);
        if start.positions.len() > 1 && start.velocities.iter().flatten().all(|v| *v == 0.0) {
            return Err("a thermostat scales velocities, and all of them are 0: --temperature gives atoms others".into());
        }
    }
    let range = arguments.rdf_range.unwrap_or((0.5 * shortest).min(6.0));
    if range > 0.5 * shortest {
        return Err(format!(
            "--rdf-range {range} is longer than half of the box's shortest edge, {shortest}: beyond, atoms meet their images"
        ));
    }
    // Told now and not after a long run.
    check_files(&arguments)?;
    arguments.plot.as_deref().map_or(Ok(()), plot::check)?;
    arguments.rdf.iter().chain(&arguments.msd).try_for_each(|file| observers::check(file))?;
    let trace = arguments.trace.as_deref().map(trace::trace).transpose().map_err(|e| e.to_string())?.unwrap_or_default();
    let forces = arguments.forces.as_deref().map(checks::forces).transpose().map_err(|e| e.to_string())?;
    let steps = arguments.steps.unwrap_or(steps);
    Ok(Task { start, name, potential, masses, temperature, thermostat, range, steps, trace, forces, arguments })
}

/// Refuses files that cannot be written or that two flags name.
fn check_files(arguments: &Arguments) -> Result<(), String> {
    let Arguments { config, start_file, trace, forces, thermo, trajectory, restart, plot, rdf, msd, .. } = arguments;
    let named = [("--thermo", thermo), ("--trajectory", trajectory), ("--config", config), ("--start", start_file)];
    let named = named.into_iter().chain([("--trace", trace), ("--forces", forces)]).map(|(flag, file)| (flag, file.as_deref()));
    let named: Vec<Named<'_>> = named.collect();
    let tables = rdf.iter().map(|file| ("--rdf", Some(&**file))).chain(msd.iter().map(|file| ("--msd", Some(&**file))));
    let whole: Vec<Named<'_>> = tables.chain([("--plot", plot.as_deref())]).collect();
    file_names::check(&whole, &named)?;
    // A run may go on from such a file and replace it.
    let others = whole.into_iter().chain(named).filter(|(flag, _)| !["--config", "--start"].contains(flag));
    file_names::check(&[("--restart", restart.as_deref())], &others.collect::<Vec<_>>())
}

/// Lets frames say which masses and potentials the run had, so that a run that goes on from one has the same.
fn name_potentials(start: &mut Start, masses: &[f64], potential: &Potential) {
    let kinds = start.kinds.len();
    if masses.iter().any(|mass| *mass != 1.0) {
        start.kinds.iter_mut().zip(masses).for_each(|(kind, mass)| kind.mass = Some(*mass));
    }
    let pairs = (0..kinds).flat_map(|a| (a..kinds).map(move |b| [a, b]));
    let coefficients = pairs.map(|kinds| {
        let Law { epsilon, sigma, cutoff, .. } = potential.laws(kinds[0])[kinds[1]];
        Coefficients { kinds, epsilon, sigma, cutoff: Some(cutoff) }
    });
    start.coefficients = coefficients.collect();
}

fn launch(task: &Task) -> Result<(), Error> {
    task.arguments.start.launch().run(|job| {
        if let Some(rank) = task.arguments.slow.filter(|&rank| rank >= job.size()) {
            return Err(Error::other(format!("there is no rank {rank} to be slow: there are {}", job.size())));
        }
        let report = run::run(job, task)?;
        if let Some(file) = task.arguments.plot.as_deref().filter(|_| job.rank() == 0) {
            draw(file, &report).map_err(Error::other)?;
        }
        task.arguments.start.report(job, &report, &report.json())?;
        // One rank tells; where all do, one may end the job before the report is out.
        report.failure.filter(|_| job.rank() == 0).map_or(Ok(()), |failure| Err(Error::other(failure)))
    })
}

/// Energies for each atom over time, measured from their first values.
fn draw(file: &Path, report: &Report) -> Result<(), String> {
    let rows = report.averages.rows();
    let Some(first) = rows.first() else { return Ok(()) };
    let series = |name, of: fn(&thermo::Row) -> f64| plot::Series {
        name,
        points: rows.iter().map(|row| (row.time, (of(row) - of(first)) / row.atoms as f64)).collect(),
        dots: false,
    };
    let series = [
        series("potential", |row| row.configurational_energy()),
        series("kinetic", |row| row.kinetic_energy),
        series("total", |row| row.total_energy),
    ];
    let title = format!("Change of the energies, {} atoms", first.atoms);
    plot::draw(file, &title, ("time", "energy for each atom"), &series)
}

/// What is read by unit tests only.
#[cfg(test)]
mod tests;
