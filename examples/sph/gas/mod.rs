//! Gas in one dimension: Sod's shock tube.
//!
//! Variable smoothing lengths and internal energy need a state and a force pass of their own. Boxes of space, exchange, checkpoints and
//! frames are those of weakly compressible fluid.

mod forces;
mod kernel;
mod report;
mod riemann;
mod simulation;
pub(crate) mod tube;

use std::path::Path;

use global_arrays::prelude::*;
use program::{checkpoints, command_line};

use crate::checkpoint::{Checkpoints, Saved};
use crate::cli::Arguments;
use crate::comparison::Course;
use crate::gas::report::{Errors, Report};
use crate::gas::simulation::Simulation;
use crate::gas::tube::{Particle, Tube};
use crate::observation::fingerprint;
use crate::output::{Frames, Gathered};
use crate::{due, plan, vtk};

/// Finds mistakes in times and checkpoints before the ranks start.
pub(crate) fn check(arguments: &Arguments, tube: &Tube) -> Result<(), String> {
    arguments.checkpoint.as_deref().map_or(Ok(()), checkpoints::check::<Saved>)?;
    begin(arguments, tube).map(drop)
}

/// The checkpoint that the run goes on from, if there is one, and how many steps of what length the run has.
fn begin(arguments: &Arguments, tube: &Tube) -> Result<(Option<Saved>, usize, f64), String> {
    let saved = arguments.resume.as_ref().map(|file| Saved::read(file, &tube.flow(), &[])).transpose()?;
    let (steps, time_step) = plan(arguments, tube::END, tube.time_step(), saved.as_ref())?;
    let (end, latest) = (steps as f64 * time_step, tube.latest());
    if end > latest {
        let (particles, latest) = (tube.particles, (1e4 * latest).floor() * 1e-4);
        return Err(format!(
            "the end time {end:.4} is too late: with {particles} particles the shock reaches the end of the tube at {latest:.4}; \
             choose an earlier --end-time or more --particles"
        ));
    }
    Ok((saved, steps, time_step))
}

/// What each rank does.
pub(crate) fn rank_main(job: &Job, arguments: &Arguments, tube: &Tube) -> Result<(), Error> {
    let (saved, steps, time_step) = begin(arguments, tube).map_err(Error::other)?;
    let mut simulation = match (&saved, &arguments.resume) {
        (Some(saved), Some(file)) => Simulation::resume(job, tube, saved, saved.particles(job, tube.particles, file)?)?,
        _ => Simulation::new(job, tube, time_step)?,
    };
    let flow = (tube.flow(), tube.particles);
    let mut checkpoints = match &arguments.checkpoint {
        Some(file) => Some(Checkpoints::new(job, file, arguments.checkpoint_every, flow, Vec::new())?),
        None => None,
    };
    let mut frames = match &arguments.output {
        Some(folder) => Some(Frames::new(job, folder, tube.particles)?),
        None => None,
    };
    let gathered = Gathered::new(job, tube.particles, "gas at the end")?;
    let bar = command_line::progress_bar(job, steps, "steps");
    let (begun, mut seconds) = (simulation.steps, 0.0);
    loop {
        let step = simulation.steps;
        if let Some(frames) = &mut frames
            && due(step, steps, arguments.frames.min(steps))
        {
            let (measured, time) = (simulation.measured()?, simulation.time());
            let picture = |file: &Path, all: &[Particle]| report::draw(file, tube, all, time);
            frames.write(job, &measured, time, vtk, picture)?;
        }
        if let Some(checkpoints) = checkpoints.as_mut().filter(|_| step > begun) {
            checkpoints.write(job, simulation.state(), steps, &[], &Course::default())?;
        }
        if step == steps {
            break;
        }
        let start = job.now();
        job.phase(if step == begun { "first step" } else { "steps" }, || simulation.step())?;
        seconds += (job.now() - start).as_secs_f64();
        bar.set_position(simulation.steps as u64);
    }
    bar.finish_and_clear();

    let mut most = [seconds, simulation.exchanging.as_secs_f64(), simulation.computing.as_secs_f64()];
    job.all_reduce(&mut most, ops::max)?;
    let fingerprint = fingerprint(job, simulation.own())?;
    gathered.fill(job, &simulation.measured()?)?;
    let mut failures = Vec::new();
    if job.rank() == 0 {
        let (all, end_time) = (gathered.read()?, simulation.time());
        let report = Report {
            particles: tube.particles,
            ranks: job.size(),
            network: job.network().to_owned(),
            steps: steps - begun,
            time_step: simulation.time_step,
            end_time,
            seconds: most[0],
            exchange_seconds: most[1],
            computing_seconds: most[2],
            fingerprint,
            errors: Errors::of(tube, &all, end_time),
        };
        arguments.start.report(job, &report, &report.json())?;
        failures = report.failures();
        if let Some(file) = &arguments.plot {
            report::draw(file, tube, &all, end_time).map_err(Error::other)?;
        }
    }
    // No rank frees the array before rank 0 has read it.
    job.barrier()?;
    if failures.is_empty() { Ok(()) } else { Err(Error::other(failures.join("; "))) }
}

/// A frame for ParaView.
fn vtk(all: &[Particle]) -> Vec<u8> {
    let density: vtk::Scalar<'_, Particle> = ("density", &|p| p.density);
    vtk::file(all, &[density, ("pressure", &|p| p.pressure()), ("internal energy", &|p| p.energy)], |p| [p.velocity])
}
