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

use std::path::{Path, PathBuf};

use global_arrays::prelude::*;
use program::command_line;

use crate::checkpoint::{self, Checkpoints, Saved};
use crate::cli::Arguments;
use crate::comparison::Course;
use crate::gas::report::{Errors, Report};
use crate::gas::simulation::Simulation;
use crate::gas::tube::{Particle, Tube};
use crate::observation::fingerprint;
use crate::output::{Frames, gather};
use crate::particle::Moving;
use crate::{due, plan};

/// Finds mistakes in times before the ranks start.
pub(crate) fn check(arguments: &Arguments, tube: &Tube) -> Result<(), String> {
    // Those of a run that goes on depend on its checkpoint.
    arguments.resume.as_ref().map_or_else(|| plan_tube(arguments, tube, None).map(drop), |_| Ok(()))
}

/// How many steps of what length the run has.
fn plan_tube(arguments: &Arguments, tube: &Tube, saved: Option<&Saved>) -> Result<(usize, f64), String> {
    let (steps, time_step) = plan(arguments, tube::END, tube.time_step(), saved)?;
    let (end, latest) = (steps as f64 * time_step, tube.latest());
    if end > latest {
        let (particles, latest) = (tube.particles, (1e4 * latest).floor() * 1e-4);
        return Err(format!(
            "the end time {end:.4} is too late: with {particles} particles the shock reaches the end of the tube at {latest:.4}; \
             choose an earlier --end-time or more --particles"
        ));
    }
    Ok((steps, time_step))
}

/// What each rank does.
pub(crate) fn rank_main(job: &Job, arguments: &Arguments, tube: &Tube) -> Result<(), Error> {
    let restore = |folder: &PathBuf| checkpoint::restore(job, folder, (tube.flow(), tube.particles), &[]);
    let (saved, particles) = arguments.resume.as_ref().map(restore).transpose()?.unzip();
    let (steps, time_step) = plan_tube(arguments, tube, saved.as_ref()).map_err(Error::other)?;
    let mut simulation = match (&saved, particles) {
        (Some(saved), Some(particles)) => Simulation::resume(job, tube, saved, particles)?,
        _ => Simulation::new(job, tube, time_step)?,
    };
    let checkpoints = Checkpoints::new(job, arguments, tube.flow(), Vec::new())?;
    let mut frames = arguments.output.as_deref().map(|folder| Frames::new(folder, ["density", "pressure", "internal energy"]));
    let bar = command_line::progress_bar(job, steps, "steps");
    let (begun, mut seconds) = (simulation.steps, 0.0);
    loop {
        let step = simulation.steps;
        if let Some(frames) = &mut frames
            && due(step, steps, arguments.frames.min(steps))
        {
            let (measured, time) = (simulation.measured()?, simulation.time());
            let values = |p: &Particle| ([p.velocity], [p.density, p.pressure(), p.energy]);
            let picture = |file: &Path, all: &Array2<f64>| {
                report::draw(file, tube, all.rows().into_iter().map(|row| (row[0], row[6])).collect(), time)
            };
            frames.write(job, &measured, time, values, picture)?;
        }
        if let Some(checkpoints) = checkpoints.as_ref().filter(|_| step > begun) {
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
    let gathered = gather(job, &simulation.measured()?, Particle::WORDS, Particle::write)?;
    let mut failures = Vec::new();
    if job.rank() == 0 {
        let end_time = simulation.time();
        let all: Vec<Particle> = gathered.get(..)?.rows().into_iter().map(|row| Particle::read(&row.to_vec())).collect();
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
            let computed = all.iter().map(|particle| (particle.position[0], particle.density)).collect();
            report::draw(file, tube, computed, end_time).map_err(Error::other)?;
        }
    }
    // No rank frees the array before rank 0 has read it.
    job.barrier()?;
    if failures.is_empty() { Ok(()) } else { Err(Error::other(failures.join("; "))) }
}
