//! Weakly compressible smoothed-particle hydrodynamics on global arrays.
//!
//! Particles of fluid belong to the rank in whose part of space they are. In each step ranks put those that leave, and copies of
//! those near their edges (ghosts), into their neighbors' inboxes: rows of a global array in which a range is reserved by
//! read-and-increment. Nobody waits but for neighbors. `README.md` tells the equations, their sources, and what is checked.

mod case;
mod cells;
mod checkpoint;
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
use crate::checkpoint::{Checkpoints, Saved};
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
    arguments.plot.as_deref().map_or(Ok(()), plot::check)?;
    if let (Some(front), Some(records)) = (&arguments.front, &arguments.records)
        && front == records
    {
        return Err(format!("--front and --records name one file, {}", front.display()));
    }
    let body = |job: &Job| match &flow {
        Flow::Plane(case) => rank_main(job, arguments, case),
        Flow::Space(case) => rank_main(job, arguments, case),
    };
    // What is wrong with instruments and checkpoints is told before ranks start.
    match &flow {
        Flow::Plane(case) => look(arguments, case)?,
        Flow::Space(case) => look(arguments, case)?,
    }
    arguments.start.launch().run(body).map_err(|error: Error| error.to_string())
}

/// Finds mistakes in what is measured and in the checkpoint that a run goes on with.
fn look<const D: usize>(arguments: &Arguments, case: &Case<D>) -> Result<(), String> {
    let names = names(&instruments(arguments, case)?);
    arguments.resume.as_ref().map_or(Ok(()), |file| Saved::read(file, case, &names).map(drop))
}

/// The instruments of the experiment that the case repeats, and those that were asked for.
fn instruments<const D: usize>(arguments: &Arguments, case: &Case<D>) -> Result<Vec<Instruments<D>>, String> {
    let known = Experiment::of(case).map(|experiment| experiment.instruments(case));
    Ok(known.into_iter().chain([arguments.instruments(case)?]).collect())
}

fn names<const D: usize>(instruments: &[Instruments<D>]) -> Vec<String> {
    instruments.iter().flat_map(Instruments::names).collect()
}

/// What was seen of a run at its looks, and the files for it.
struct Log<const D: usize> {
    instruments: Vec<Instruments<D>>,
    history: Vec<Observation>,
    course: Course,
    front: Option<Table>,
    records: Option<Table>,
}

impl<const D: usize> Log<D> {
    /// Begins the files, with the rows of a run that goes on.
    fn create(job: &Job, arguments: &Arguments, case: &Case<D>, saved: Option<&Saved>) -> Result<Self, Error> {
        let instruments = instruments(arguments, case).map_err(Error::other)?;
        let table = |file: &Option<std::path::PathBuf>, columns: &[String]| match file {
            Some(file) if job.rank() == 0 => Table::create(file, columns).map(Some).map_err(Error::other),
            _ => Ok(None),
        };
        let mut columns = ["time", "front", "kinetic", "potential", "compression"].map(String::from).to_vec();
        columns.extend(names(&instruments));
        let front = table(&arguments.front, &["T", "Z"].map(String::from))?;
        let records = table(&arguments.records, &columns)?;
        let mut log = Log { instruments, history: Vec::new(), course: Course::default(), front, records };
        for (seen, read) in saved.iter().flat_map(|saved| saved.history.iter().zip(&saved.course.readings)) {
            log.add(case, *seen, read.clone())?;
        }
        Ok(log)
    }

    /// How often a run is looked at.
    fn looks(&self) -> usize {
        if self.instruments.iter().all(|some| some.probes.is_empty()) { LOOKS } else { MANY_LOOKS }
    }

    /// Looks at the run. Collective.
    fn look(&mut self, job: &Job, simulation: &Simulation<'_, D>) -> Result<(), Error> {
        let seen = observation::observe(job, simulation)?;
        let mut read = Vec::new();
        for instruments in &self.instruments {
            read.extend(instruments.read(job, simulation.case, simulation.own())?);
        }
        self.add(simulation.case, seen, read)
    }

    /// Adds what was seen, a row of each file.
    fn add(&mut self, case: &Case<D>, seen: Observation, read: Vec<f64>) -> Result<(), Error> {
        if let Some(front) = &mut self.front {
            let (time, place) = reduced(case, seen.time, seen.front);
            front.row(&[time, place]).map_err(Error::other)?;
        }
        if let Some(records) = &mut self.records {
            let row: Vec<f64> = [seen.time, seen.front].into_iter().chain(seen.energy).chain(read.iter().copied()).collect();
            records.row(&row).map_err(Error::other)?;
        }
        self.course.add(seen.time, seen.front, read);
        self.history.push(seen);
        Ok(())
    }
}

/// How many steps of what length a run has.
fn plan<const D: usize>(arguments: &Arguments, case: &Case<D>, saved: Option<&Saved>) -> Result<(usize, f64), Error> {
    let recorded = arguments.experiment.map(|name| name.experiment().end);
    let asked = arguments.end_time.or(recorded);
    if let Some(saved) = saved {
        let steps = arguments.end_time.map_or(saved.planned as f64, |end| (end / saved.time_step).round());
        return match steps as usize {
            steps if steps < saved.steps => {
                Err(Error::other(format!("the checkpoint is of {:.6} s, after the end", saved.steps as f64 * saved.time_step)))
            }
            steps => Ok((steps, saved.time_step)),
        };
    }
    let end = asked.unwrap_or_else(|| case.end_time());
    let longest = arguments.time_step.unwrap_or_else(|| case.fluid.time_step());
    let steps = (end / longest).ceil();
    if steps > MOST_STEPS {
        return Err(Error::other(format!(
            "{end} s in steps of {longest:e} s are {steps:.1e} steps; up to {MOST_STEPS:.0e} are possible"
        )));
    }
    Ok((steps as usize, end / steps))
}

/// Most steps of a run: years of them.
const MOST_STEPS: f64 = 1e12;

/// What each rank does.
fn rank_main<const D: usize>(job: &Job, arguments: &Arguments, case: &Case<D>) -> Result<(), Error> {
    let names = names(&instruments(arguments, case).map_err(Error::other)?);
    let read = |file: &std::path::PathBuf| Saved::read(file, case, &names).map_err(Error::other);
    let saved = arguments.resume.as_ref().map(read).transpose()?;
    let (steps, time_step) = plan(arguments, case, saved.as_ref())?;
    let mut simulation = match (&saved, &arguments.resume) {
        (Some(saved), Some(file)) => Simulation::resume(job, case, saved, saved.particles(job, case, file)?)?,
        _ => Simulation::new(job, case, time_step)?,
    };
    let mut checkpoints = match &arguments.checkpoint {
        Some(file) => Some(Checkpoints::new(job, file, arguments.checkpoint_every, case, names)?),
        None => None,
    };
    let mut frames = match &arguments.output {
        Some(folder) => Some(Frames::new(job, folder, case)?),
        None => None,
    };
    let mut log = Log::create(job, arguments, case, saved.as_ref())?;
    let bar = command_line::progress_bar(job, steps, "steps");
    let mut seconds = 0.0;
    let begun = simulation.steps;
    // Looks and frames are due at even distances, the last after the last step.
    let due = |step: usize, times: usize| step == 0 || step * times / steps != (step - 1) * times / steps;
    loop {
        let step = simulation.steps;
        // What a checkpoint was written after, it knows.
        if due(step, log.looks()) && (step == 0 || step > begun) {
            log.look(job, &simulation)?;
            bar.set_position(step as u64);
        }
        if let Some(frames) = &mut frames
            && due(step, arguments.frames.min(steps))
        {
            frames.write(job, case, simulation.own(), simulation.time())?;
        }
        if let Some(checkpoints) = checkpoints.as_mut().filter(|_| step > begun) {
            checkpoints.write(job, &simulation, steps, &log.history, &log.course)?;
        }
        if step == steps {
            break;
        }
        let start = job.now();
        // The first sends all particles where they belong.
        job.phase(if step == begun { "first step" } else { "steps" }, || simulation.step())?;
        seconds += (job.now() - start).as_secs_f64();
    }
    bar.finish_and_clear();

    let Log { history, course, .. } = log;
    let mut report = Report::new(case, history, &course);
    report.fingerprint = observation::fingerprint(job, &simulation)?;
    report.refilled = simulation.refilled;
    (report.ranks, report.network) = (job.size(), job.network().to_owned());
    (report.steps, report.time_step) = (steps - begun, simulation.time_step);
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
