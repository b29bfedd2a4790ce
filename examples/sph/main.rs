//! Weakly compressible smoothed-particle hydrodynamics on global arrays.
//!
//! Particles of fluid belong to the rank in whose part of space they are. In each step ranks send those that leave, and copies of
//! those near their edges (ghosts), to their neighbors' mailboxes. Nobody waits but for neighbors. `README.md` has the equations, their
//! sources, and what is checked.

mod case;
mod cells;
mod checkpoint;
mod cli;
mod closed_forms;
mod comparison;
mod domain;
mod exchange;
mod experiments;
mod filled;
mod forces;
mod gas;
mod graph;
mod instruments;
mod integrator;
mod log;
mod observation;
mod output;
mod pair;
mod particle;
mod picture;
mod report;
mod simulation;
mod tank;
mod walls;
mod wendland;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use global_arrays::prelude::*;
use program::{checkpoints, command_line, file_names, frames, plot, whole_file};

use crate::case::Case;
use crate::checkpoint::{Checkpoints, Saved, flow};
use crate::cli::{Arguments, Flow};
use crate::log::Log;
use crate::output::Frames;
use crate::particle::Particle;
use crate::report::Report;
use crate::simulation::Simulation;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    command_line::main("sph", || run(&arguments))
}

/// Finds mistakes here, where they are reported once, then starts the ranks.
fn run(arguments: &Arguments) -> Result<(), String> {
    let flow = arguments.flow()?;
    arguments.output.as_deref().map_or(Ok(()), |folder| frames::check(folder, false))?;
    arguments.plot.as_deref().map_or(Ok(()), plot::check)?;
    let Arguments { plot, front, records, checkpoint, .. } = arguments;
    let [plot, front, records, saved] =
        [("--plot", plot), ("--front", front), ("--records", records), ("--checkpoint", checkpoint)]
            .map(|(flag, file)| (flag, file.as_deref()));
    file_names::check(&[plot], &[front, records, saved])?;
    let body = |job: &Job| match &flow {
        Flow::Plane(case) => rank_main(job, arguments, case),
        Flow::Space(case) => rank_main(job, arguments, case),
        Flow::Tube(tube) => gas::rank_main(job, arguments, tube),
    };
    match &flow {
        Flow::Plane(case) => check(arguments, case)?,
        Flow::Space(case) => check(arguments, case)?,
        Flow::Tube(tube) => gas::check(arguments, tube)?,
    }
    checkpoint.as_deref().map_or(Ok(()), checkpoints::check)?;
    arguments.start.launch().run(body).map_err(|error: Error| error.to_string())
}

/// Finds mistakes in instruments and times before the ranks start.
fn check<const D: usize>(arguments: &Arguments, case: &Case<D>) -> Result<(), String> {
    log::instruments(arguments, case)?;
    // The times of a run that goes on depend on its checkpoint.
    arguments.resume.as_ref().map_or_else(|| plan_flow(arguments, case, None).map(drop), |_| Ok(()))
}

/// How many steps of what length a run of a flow has.
fn plan_flow<const D: usize>(arguments: &Arguments, case: &Case<D>, saved: Option<&Saved>) -> Result<(usize, f64), String> {
    let recorded = arguments.experiment.map(|name| name.experiment().end);
    plan(arguments, recorded.unwrap_or_else(|| case.end_time()), case.fluid.time_step(), saved)
}

/// How many steps of what length a run has: by default up to `end` with steps of at most `stable`, both in seconds.
fn plan(arguments: &Arguments, end: f64, stable: f64, saved: Option<&Saved>) -> Result<(usize, f64), String> {
    if let Some(saved) = saved {
        let steps = arguments.end_time.map_or(saved.planned as f64, |end| (end / saved.time_step).round());
        if steps <= saved.steps as f64 {
            let [reached, end] = [saved.steps as f64, steps].map(|steps| steps * saved.time_step);
            return Err(format!(
                "the checkpoint is of t = {reached:.6} and the run ends at {end:.6}: a later --end-time is needed"
            ));
        }
        return check_steps(steps, saved.time_step).map(|steps| (steps, saved.time_step));
    }
    let end = arguments.end_time.unwrap_or(end);
    let longest = arguments.time_step.unwrap_or(stable);
    let steps = (end / longest).ceil();
    check_steps(steps, longest).map(|count| (count, end / steps))
}

/// A number of steps that a run can make.
fn check_steps(steps: f64, length: f64) -> Result<usize, String> {
    let end = steps * length;
    if steps > MOST_STEPS {
        return Err(format!("a time of {end} in steps of {length:e} is {steps:.1e} steps; up to {MOST_STEPS:.0e} are possible"));
    }
    Ok(steps as usize)
}

/// Most steps of a run: years of them.
const MOST_STEPS: f64 = 1e12;

/// Looks and frames are due at even distances, so many times in a run, the last after the last step.
fn due(step: usize, steps: usize, times: usize) -> bool {
    step == 0 || step * times / steps != (step - 1) * times / steps
}

/// What each rank does.
fn rank_main<const D: usize>(job: &Job, arguments: &Arguments, case: &Case<D>) -> Result<(), Error> {
    let names = log::names(&log::instruments(arguments, case).map_err(Error::other)?);
    let restore = |folder: &PathBuf| checkpoint::restore(job, folder, (flow(case), case.particles()), &names);
    let (saved, particles) = arguments.resume.as_ref().map(restore).transpose()?.unzip();
    let (steps, time_step) = plan_flow(arguments, case, saved.as_ref()).map_err(Error::other)?;
    let mut simulation = match (&saved, particles) {
        (Some(saved), Some(particles)) => Simulation::resume(job, case, saved, particles)?,
        _ => Simulation::new(job, case, time_step)?,
    };
    let checkpoints = Checkpoints::new(job, arguments, flow(case), names)?;
    let mut frames = arguments.output.as_deref().map(|folder| Frames::new(folder, ["pressure", "density"]));
    let mut log = Log::create(job, arguments, case, saved.as_ref())?;
    let bar = command_line::progress_bar(job, steps, "steps");
    let mut seconds = 0.0;
    let begun = simulation.steps;
    loop {
        let step = simulation.steps;
        // A checkpoint has what was seen up to its step.
        if due(step, steps, log.looks()) && (step == 0 || step > begun) {
            log.look(job, &simulation)?;
            bar.set_position(step as u64);
        }
        if let Some(frames) = &mut frames
            && due(step, steps, arguments.frames.min(steps))
        {
            let time = simulation.time();
            let values = |p: &Particle<D>| (p.velocity, [case.fluid.pressure(p.density), p.density]);
            let picture = |file: &Path, all: &_| whole_file::write(file, &picture::draw(case, all, time)?);
            frames.write(job, simulation.own(), time, values, picture)?;
        }
        if let Some(checkpoints) = checkpoints.as_ref().filter(|_| step > begun) {
            checkpoints.write(job, simulation.state(), steps, &log.history, &log.course)?;
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
    report.fingerprint = observation::fingerprint(job, simulation.own())?;
    report.refilled = simulation.refilled;
    (report.ranks, report.network) = (job.size(), job.network().to_owned());
    (report.steps, report.time_step) = (steps - begun, simulation.time_step);
    report.seconds = job.all_reduce_one(seconds, ops::max)?;
    let mut most = [simulation.exchanging, simulation.computing].map(|time| time.as_secs_f64());
    job.all_reduce(&mut most, ops::max)?;
    [report.exchange_seconds, report.computing_seconds] = most;
    arguments.start.report(job, &report, &report.json())?;
    if let Some(file) = &arguments.plot
        && job.rank() == 0
    {
        graph::draw(file, &report, case, &course).map_err(Error::other)?;
    }
    // One rank alone: else another may end the job before the report is out.
    let failures = if job.rank() == 0 { report.failures() } else { Vec::new() };
    if failures.is_empty() { Ok(()) } else { Err(Error::other(failures.join("; "))) }
}
