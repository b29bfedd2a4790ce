//! Weakly compressible smoothed-particle hydrodynamics on global arrays.
//!
//! Particles of fluid belong to the rank in whose part of space they are. In each step ranks put those that leave, and copies of
//! those near their edges (ghosts), into their neighbours' inboxes: rows of a global array in which a range is reserved by
//! read-and-increment. Nobody waits but for neighbours. `README.md` tells the equations, their sources, and what is checked.

mod case;
mod cells;
mod cli;
mod closed_forms;
#[path = "../command_line/mod.rs"]
mod command_line;
mod domain;
mod exchange;
mod experiments;
mod forces;
mod integrator;
mod observation;
mod output;
mod particle;
mod picture;
#[path = "../plot/mod.rs"]
mod plot;
mod report;
mod simulation;
mod vtk;
mod walls;
mod wendland;
#[path = "../whole_file/mod.rs"]
mod whole_file;

use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use global_arrays::prelude::*;

use crate::case::{Case, Kind};
use crate::cli::{Arguments, Flow};
use crate::output::{Frames, FrontFile, reduced};
use crate::plot::Series;
use crate::report::Report;
use crate::simulation::Simulation;

/// How often a run is looked at, beside its frames.
const LOOKS: usize = 200;

fn main() -> ExitCode {
    command_line::exit("sph", run(&Arguments::parse()))
}

/// Finds mistakes here, where they are told once, then starts the ranks.
fn run(arguments: &Arguments) -> Result<(), String> {
    let flow = arguments.flow()?;
    if let Some(folder) = &arguments.output
        && !folder.is_dir()
    {
        return Err(format!("there is no folder {}", folder.display()));
    }
    if let Some(file) = &arguments.plot {
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
        if !file.extension().is_some_and(|end| end == "svg" || end == "png") {
            return Err(format!("the name of the picture {} must end in .svg or .png", file.display()));
        }
        if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
            return Err(format!("there is no folder {}", folder.display()));
        }
    }
    let body = |job: &Job| match &flow {
        Flow::Plane(case) => rank_main(job, arguments, case),
        Flow::Space(case) => rank_main(job, arguments, case),
    };
    arguments.start.launch().run(body).map_err(|error: Error| error.to_string())
}

/// Most steps of a run: years of them.
const MOST_STEPS: f64 = 1e12;

/// What each rank does.
fn rank_main<const D: usize>(job: &Job, arguments: &Arguments, case: &Case<D>) -> Result<(), Error> {
    let end = arguments.end_time.unwrap_or_else(|| case.end_time());
    let longest = arguments.time_step.unwrap_or_else(|| case.fluid.time_step());
    let steps = (end / longest).ceil();
    if steps > MOST_STEPS {
        return Err(Error::other(format!(
            "{end} s in steps of {longest:e} s are {steps:.1e} steps; up to {MOST_STEPS:.0e} are possible"
        )));
    }
    let steps = steps as usize;
    let mut simulation = Simulation::new(job, case, end / steps as f64)?;
    let mut frames = match &arguments.output {
        Some(folder) => Some(Frames::new(job, folder, case)?),
        None => None,
    };
    let mut front = match &arguments.front {
        Some(file) if job.rank() == 0 => Some(FrontFile::create(file).map_err(Error::other)?),
        _ => None,
    };
    let bar = command_line::progress_bar(job, steps, "steps");
    let mut history = Vec::new();
    let mut seconds = 0.0;
    // Looks and frames are due at even distances, the last after the last step.
    let due = |step: usize, times: usize| step == 0 || step * times / steps != (step - 1) * times / steps;
    loop {
        let step = simulation.steps;
        if due(step, LOOKS) {
            let seen = observation::observe(job, &simulation)?;
            if let Some(front) = &mut front {
                front.row(reduced(case, seen.time, seen.front)).map_err(Error::other)?;
            }
            history.push(seen);
            bar.set_position(step as u64);
        }
        if let Some(frames) = &mut frames
            && due(step, arguments.frames.min(steps))
        {
            frames.write(job, case, simulation.own(), simulation.time())?;
        }
        if step == steps {
            break;
        }
        let start = job.now();
        // The first sends all particles where they belong.
        job.phase(if step == 0 { "first step" } else { "steps" }, || simulation.step())?;
        seconds += (job.now() - start).as_secs_f64();
    }
    bar.finish_and_clear();

    let mut report = Report::new(case, history);
    report.fingerprint = observation::fingerprint(job, &simulation)?;
    report.refilled = simulation.refilled;
    (report.ranks, report.network) = (job.size(), job.network().to_owned());
    (report.steps, report.time_step) = (steps, simulation.time_step);
    report.seconds = job.all_reduce_one(seconds, ops::max)?;
    let mut most = [simulation.exchanging, simulation.computing].map(|time| time.as_secs_f64());
    job.all_reduce(&mut most, ops::max)?;
    [report.exchange_seconds, report.computing_seconds] = most;
    if let Some(file) = &arguments.plot
        && job.rank() == 0
    {
        draw(file, &report, case).map_err(Error::other)?;
    }
    arguments.start.report(job, &report, &report.json())?;
    // One rank tells; where all do, one may end the job before the report is out.
    let failures = if job.rank() == 0 { report.failures() } else { Vec::new() };
    if failures.is_empty() { Ok(()) } else { Err(Error::other(failures.join("; "))) }
}

/// The picture of what is checked.
fn draw<const D: usize>(file: &Path, report: &Report, case: &Case<D>) -> Result<(), String> {
    let over_time =
        |value: fn(&observation::Observation) -> f64| report.history.iter().map(|seen| (seen.time, value(seen))).collect();
    let line = |name, points| Series { name, points, dots: false };
    let dots = |name, points| Series { name, points, dots: true };
    let (title, axes, series) = match case.kind {
        Kind::DamBreak => {
            let mut measured = vec![dots("Martin & Moyce 1952", experiments::martin_moyce())];
            measured.push(dots("Koshizuka & Oka 1996", experiments::koshizuka_oka()));
            measured.push(line("SPH", report.front.clone()));
            ("Front of the dam break", ("T = t √(2g/a)", "Z = x/a"), measured)
        }
        Kind::TaylorGreen => {
            let nu = case.laminar();
            let exact =
                report.history.iter().map(|seen| (seen.time, closed_forms::vortex_decay(nu, case.column_width(), seen.time)));
            let computed = report.history.iter().map(|seen| (seen.time, (2.0 * seen.square_speed).sqrt())).collect();
            ("Decay of the vortices", ("t / s", "speed / m/s"), vec![dots("exact", exact.collect()), line("SPH", computed)])
        }
        Kind::Hydrostatic => {
            ("Column at rest", ("t / s", "relative error of the pressure"), vec![line("largest", over_time(|seen| seen.error))])
        }
        Kind::Poiseuille => {
            let computed = line("SPH", over_time(|seen| seen.fastest));
            let exact = report.history.iter().map(|seen| {
                let gap = case.column_height();
                (seen.time, closed_forms::plates_speed(case::PLATES_FORCE, case::PLATES_VISCOSITY, gap, 0.5 * gap, seen.time))
            });
            ("Speed between the plates", ("t / s", "highest speed / m/s"), vec![dots("exact", exact.collect()), computed])
        }
    };
    plot::draw(file, title, axes, &series)
}
