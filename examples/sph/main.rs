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
mod comparison;
mod domain;
mod exchange;
mod experiments;
mod forces;
mod graph;
mod instruments;
mod integrator;
mod observation;
mod output;
mod particle;
mod picture;
#[path = "../plot/mod.rs"]
mod plot;
mod report;
mod simulation;
mod tank;
mod vtk;
mod walls;
mod wendland;
#[path = "../whole_file/mod.rs"]
mod whole_file;

use std::process::ExitCode;

use clap::Parser;
use global_arrays::prelude::*;

use crate::case::Case;
use crate::cli::{Arguments, Flow};
use crate::comparison::Course;
use crate::experiments::Experiment;
use crate::instruments::Instruments;
use crate::observation::Observation;
use crate::output::{Frames, Table, reduced};
use crate::report::Report;
use crate::simulation::Simulation;

/// How often a run is looked at, beside its frames: impacts are short, so more often where pressures are measured.
const LOOKS: usize = 200;
const MANY_LOOKS: usize = 1000;

fn main() -> ExitCode {
    command_line::exit("sph", run(&Arguments::parse()))
}

/// Finds mistakes here, where they are told once, then starts the ranks.
fn run(arguments: &Arguments) -> Result<(), String> {
    let flow = arguments.flow()?;
    arguments.output.as_deref().map_or(Ok(()), output::check)?;
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
    // Instruments outside of the tank are told before ranks start.
    match &flow {
        Flow::Plane(case) => arguments.instruments(case).map(drop)?,
        Flow::Space(case) => arguments.instruments(case).map(drop)?,
    }
    arguments.start.launch().run(body).map_err(|error: Error| error.to_string())
}

/// What is measured of a column while it falls, and the files for it.
struct Tables<const D: usize> {
    /// Those of the experiment that the case repeats, and those that were asked for.
    instruments: Vec<Instruments<D>>,
    front: Option<Table>,
    records: Option<Table>,
}

impl<const D: usize> Tables<D> {
    fn create(job: &Job, arguments: &Arguments, case: &Case<D>) -> Result<Self, Error> {
        let known = Experiment::of(case).map(|experiment| experiment.instruments(case));
        let instruments: Vec<_> = known.into_iter().chain([arguments.instruments(case).map_err(Error::other)?]).collect();
        let table = |file: &Option<std::path::PathBuf>, columns: &[String]| match file {
            Some(file) if job.rank() == 0 => Table::create(file, columns).map(Some).map_err(Error::other),
            _ => Ok(None),
        };
        let mut columns = ["time", "front", "kinetic", "potential", "compression"].map(String::from).to_vec();
        columns.extend(instruments.iter().flat_map(Instruments::names));
        let front = table(&arguments.front, &["T", "Z"].map(String::from))?;
        Ok(Tables { front, records: table(&arguments.records, &columns)?, instruments })
    }

    /// Reads all instruments and writes a row of each file. Collective.
    fn add(&mut self, job: &Job, simulation: &Simulation<'_, D>, seen: &Observation) -> Result<Vec<f64>, Error> {
        let mut read = Vec::new();
        for instruments in &self.instruments {
            read.extend(instruments.read(job, simulation.case, simulation.own())?);
        }
        if let Some(front) = &mut self.front {
            let (time, front_at) = reduced(simulation.case, seen.time, seen.front);
            front.row(&[time, front_at]).map_err(Error::other)?;
        }
        if let Some(records) = &mut self.records {
            let row: Vec<f64> = [seen.time, seen.front].into_iter().chain(seen.energy).chain(read.iter().copied()).collect();
            records.row(&row).map_err(Error::other)?;
        }
        Ok(read)
    }
}

/// Most steps of a run: years of them.
const MOST_STEPS: f64 = 1e12;

/// What each rank does.
fn rank_main<const D: usize>(job: &Job, arguments: &Arguments, case: &Case<D>) -> Result<(), Error> {
    let recorded = arguments.experiment.map(|name| name.experiment().end);
    let end = arguments.end_time.or(recorded).unwrap_or_else(|| case.end_time());
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
    let mut tables = Tables::create(job, arguments, case)?;
    let bar = command_line::progress_bar(job, steps, "steps");
    let looks = if tables.instruments.iter().all(|some| some.probes.is_empty()) { LOOKS } else { MANY_LOOKS };
    let (mut history, mut course) = (Vec::new(), Course::default());
    let mut seconds = 0.0;
    // Looks and frames are due at even distances, the last after the last step.
    let due = |step: usize, times: usize| step == 0 || step * times / steps != (step - 1) * times / steps;
    loop {
        let step = simulation.steps;
        if due(step, looks) {
            let seen = observation::observe(job, &simulation)?;
            let read = tables.add(job, &simulation, &seen)?;
            course.add(seen.time, seen.front, read);
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

    let mut report = Report::new(case, history, &course);
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
        graph::draw(file, &report, case, &course).map_err(Error::other)?;
    }
    arguments.start.report(job, &report, &report.json())?;
    // One rank tells; where all do, one may end the job before the report is out.
    let failures = if job.rank() == 0 { report.failures() } else { Vec::new() };
    if failures.is_empty() { Ok(()) } else { Err(Error::other(failures.join("; "))) }
}
