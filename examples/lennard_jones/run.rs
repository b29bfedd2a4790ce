//! A run from its start to its report, on one rank.

use std::time::Duration;

use global_arrays::prelude::*;
use program::command_line::progress_bar;

use crate::checks;
use crate::cli::Arguments;
use crate::observers::Observers;
use crate::potential::Potential;
use crate::report::{Averages, Report};
use crate::simulation::{Method, Simulation};
use crate::start::Start;
use crate::thermo::Row;
use crate::thermostat::{self, Thermostat};
use crate::trace::{self, Traced};

/// Steps from one scaling of velocities to the next, about the time in which kinetic and potential energy come to terms.
const SCALE_EVERY: usize = 10;

/// What is to be done, read and checked.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) arguments: Arguments,
    /// With velocities.
    pub(crate) start: Start,
    /// What the start is called.
    pub(crate) name: String,
    pub(crate) potential: Potential,
    /// Of each kind.
    pub(crate) masses: Vec<f64>,
    pub(crate) temperature: f64,
    pub(crate) thermostat: Option<Thermostat>,
    /// How far the radial distribution function goes.
    pub(crate) range: f64,
    pub(crate) steps: usize,
    pub(crate) trace: Vec<Traced>,
    pub(crate) forces: Option<Vec<[f64; 3]>>,
}

/// Runs `task` and returns its report, the same on all ranks but for the rows and who did what, which rank 0 has. Collective.
pub(crate) fn run(job: &Job, task: &Task) -> Result<Report, Error> {
    let Task { arguments, start, steps, .. } = task;
    let method = Method {
        potential: task.potential.clone(),
        masses: task.masses.clone(),
        step: arguments.dt,
        block: arguments.block.unwrap_or_else(|| (start.positions.len() / (8 * job.size())).next_multiple_of(64).clamp(64, 2048)),
        skin: arguments.skin,
        slow: arguments.slow,
        ways: !(arguments.msd.is_empty() && start.ways.is_empty()),
    };
    let counts = start.counts();
    let mut observers = Observers::create(job, task)?;
    let mut simulation = Simulation::new(job, start, method)?;
    let bar = progress_bar(job, arguments.equilibrate + steps, "steps");
    let first = simulation.measure()?;
    if !(first.potential_energy.is_finite() && first.virial.is_finite()) {
        return Err(Error::other("two atoms lie at the same place"));
    }
    for done in 1..=arguments.equilibrate {
        let scale = done.is_multiple_of(SCALE_EVERY) || done == arguments.equilibrate;
        simulation.step(scale)?;
        if scale {
            equilibrate(&mut simulation, task)?;
        }
        bar.inc(1);
    }
    if arguments.equilibrate > 0 {
        simulation.begin_ways()?;
    }
    let volume = start.lengths.iter().product();
    let began = start.time.unwrap_or(start.step as f64 * arguments.dt);
    let row = |step: usize, heat: f64, simulation: &mut Simulation<'_>| {
        let measured = simulation.measure()?;
        let (step, time) = (start.step + step as u64, began + step as f64 * arguments.dt);
        Ok::<_, Error>((measured, Row::new((step, time), &measured, heat, &counts, volume, &task.potential)))
    };
    let (reference, mut last) = row(0, start.heat, &mut simulation)?;
    let first_row = last;
    if !(first_row.total_energy.is_finite() && first_row.pressure.is_finite()) {
        let cutoff = task.potential.cutoff();
        return Err(Error::other(format!("energy or pressure is too large to be a number: look at the cut-off {cutoff:e}")));
    }
    let mut averages = Averages::default();
    let mut failure = match &task.forces {
        None => None,
        Some(other) => checks::same_forces(&simulation.snapshot()?.forces, other).err(),
    };
    let heaviest = task.masses.iter().fold(0.0, |heaviest: f64, mass| heaviest.max(*mass));
    let mut tell = |row: &Row, measured: &_, simulation: &mut Simulation<'_>| {
        let checked = checks::momentum((&reference, measured), (row.atoms, heaviest), row.step - start.step);
        // A log of several runs has the step between two of them twice.
        let mut traced = task.trace.iter().filter(|other| other.step == row.step);
        let checked = checked.and_then(|()| traced.try_for_each(|other| trace::traced(row, other)));
        failure = failure.take().or(checked.err());
        averages.add(*row);
        observers.observe(row, simulation)
    };
    tell(&last, &reference, &mut simulation)?;
    // The clock runs while atoms move, not while files are written.
    let mut elapsed = Duration::ZERO;
    let before = simulation.pairs.times;
    let mut since = job.now();
    let mut heat = start.heat;
    for step in 1..=*steps {
        let asked = step.is_multiple_of(arguments.every) || step == *steps;
        let asked = asked || task.trace.iter().any(|other| other.step == start.step + step as u64);
        job.phase("steps", || simulation.step(asked))?;
        if let Some(thermostat) = &task.thermostat {
            heat += keep_warm(&mut simulation, thermostat, start.step + step as u64)?;
        }
        if asked {
            let (measured, row) = row(step, heat, &mut simulation)?;
            elapsed += job.now() - since;
            // Before a file that a run could go on from is replaced.
            checks::sane(&first_row, &row).map_err(Error::other)?;
            tell(&row, &measured, &mut simulation)?;
            last = row;
            bar.set_position((arguments.equilibrate + step) as u64);
            since = job.now();
        }
    }
    bar.finish_and_clear();
    let ways = observers.finish(job)?;
    if let Some(other) = task.trace.iter().find(|other| !(start.step..=start.step + *steps as u64).contains(&other.step)) {
        let end = start.step + *steps as u64;
        failure = failure.or(Some(format!("the trace has step {}, the run those from {} to {end}", other.step, start.step)));
    }
    let times = simulation.pairs.times;
    let mut most = [times.computing - before.computing, times.accumulate - before.accumulate].map(|time| time.as_secs_f64());
    job.all_reduce(&mut most, ops::max)?;
    // One rank tells. Among thousands, tables of all ranks on each would be most of what ranks hold.
    let done = job.gather(0, &[simulation.pairs.tasks, simulation.pairs.lists_made])?.unwrap_or_default();
    let mut report = Report {
        start: task.name.clone(),
        network: job.network().to_owned(),
        ranks: job.size(),
        steps: *steps,
        seconds: elapsed.as_secs_f64(),
        computing_seconds: most[0],
        accumulate_seconds: most[1],
        last,
        averages,
        ways,
        tasks_by_rank: done.iter().step_by(2).copied().collect(),
        lists_by_rank: done.iter().skip(1).step_by(2).copied().collect(),
        failure,
    };
    let json = report.json();
    let unexpected = arguments.expect.iter().find_map(|expectation| checks::expected(&json, expectation).err());
    report.failure = report.failure.take().or(unexpected).or(checks::finite(&json).err());
    Ok(report)
}

/// Lets the thermostat scale velocities where its time has come; the energy that it adds. Collective.
fn keep_warm(simulation: &mut Simulation<'_>, thermostat: &Thermostat, step: u64) -> Result<f64, Error> {
    if !step.is_multiple_of(thermostat::EVERY as u64) {
        return Ok(0.0);
    }
    let kinetic = simulation.measure()?.kinetic_energy;
    let time = thermostat::EVERY as f64 * simulation.method.step;
    let new = thermostat.next(kinetic, 3 * simulation.atoms - 3, time, step);
    if kinetic > 0.0 {
        simulation.scale_velocities((new / kinetic).sqrt())?;
    }
    Ok(new - kinetic)
}

/// Scales velocities to the temperature or the total energy that is asked for. Collective.
fn equilibrate(simulation: &mut Simulation<'_>, task: &Task) -> Result<(), Error> {
    let measured = simulation.measure()?;
    let atoms = simulation.atoms;
    let wanted = match task.arguments.energy {
        None => 0.5 * task.temperature * (3 * atoms - 3) as f64,
        Some(energy) => {
            let (tail, _) = task.potential.tail(&task.start.counts(), simulation.lengths.iter().product());
            energy * atoms as f64 - measured.potential_energy - tail
        }
    };
    if wanted < 0.0 {
        return Err(Error::other(format!("the total energy asked for is below the potential energy by {:.3e}", -wanted)));
    }
    simulation.scale_velocities(if measured.kinetic_energy > 0.0 { (wanted / measured.kinetic_energy).sqrt() } else { 1.0 })
}
