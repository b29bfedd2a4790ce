//! Ground-water flow on a structured grid, the way STOMP solves it (ARMCI-ODCM §IV-D).
//!
//! # The equation
//!
//! Richards' equation for the pressure head ψ, with the confined aquifer as its linear case:
//!
//! ```text
//! ∂θ(ψ)/∂t = ∇·[K·k_r(ψ)·∇(ψ + z)] + w
//! ```
//!
//! [`medium`] has θ and k_r, [`system`] the finite volumes and backward Euler, [`newton`] the solution of a step, [`krylov`] that of its
//! linear equations, [`march`] the lengths of the steps.
//!
//! # Who talks to whom
//!
//! The cells are spread in blocks. A rank needs the cells next to its block, which belong to a few neighbours, and nothing else
//! of anybody: a clique of at most six ranks (more where blocks do not meet face to face), whatever the size of the job. It gets them one-sided from global
//! arrays ([`field`]); beyond that there are only all-reduces of a few numbers. Rank 0 alone reads what a case wants to see, while
//! the others go on.

mod cases;
mod cli;
mod coarse;
#[path = "../command_line/mod.rs"]
mod command_line;
mod field;
mod forcing;
mod frames;
mod grid;
mod incomplete;
mod input;
mod krylov;
mod march;
mod matrix;
mod medium;
mod newton;
#[path = "../plot/mod.rs"]
mod plot;
mod problem;
mod report;
mod system;
#[path = "../whole_file/mod.rs"]
mod whole_file;

use std::process::ExitCode;

use clap::Parser;
use global_arrays::prelude::*;

use crate::cases::Case;
use crate::cases::heterogeneous::Heterogeneous;
use crate::cases::infiltration::Infiltration;
use crate::cases::theis::Theis;
use crate::cli::{Arguments, Kind};
use crate::field::Team;
use crate::frames::Frames;
use crate::input::Posed;
use crate::march::Progress;
use crate::newton::Newton;
use crate::report::Report;

fn main() -> ExitCode {
    command_line::exit("subsurface", run(&Arguments::parse()))
}

/// Reads the input here, where a mistake is told once, then starts the ranks.
fn run(arguments: &Arguments) -> Result<(), String> {
    arguments.check()?;
    arguments.plot.as_deref().map_or(Ok(()), plot::check)?;
    arguments.vtk.as_deref().map_or(Ok(()), |folder| frames::check(folder, false))?;
    arguments.output.as_deref().map_or(Ok(()), command_line::folder_exists)?;
    let case = prepare(arguments)?;
    arguments.start.launch().run(|job| rank_main(job, arguments, &*case)).map_err(|error: Error| error.to_string())
}

/// The case with its reference.
fn prepare(arguments: &Arguments) -> Result<Box<dyn Case>, String> {
    Ok(match (arguments.case, &arguments.problem) {
        (Some(Kind::Theis), _) => Box::new(Theis::new(arguments)?),
        (Some(Kind::Infiltration), _) => Box::new(Infiltration::new(arguments)?),
        (Some(Kind::Heterogeneous), _) => Box::new(Heterogeneous::new(arguments)?),
        (None, Some(file)) => Box::new(Posed::read(file, arguments)?),
        (None, None) => return Err("--case or --problem is needed".into()),
    })
}

/// What each rank does.
fn rank_main(job: &Job, arguments: &Arguments, case: &dyn Case) -> Result<(), Error> {
    let report = simulate(job, arguments, case)?;
    let Some(report) = report else { return Ok(()) };
    if let Some(file) = &arguments.output {
        report.write(file)?;
    }
    if let Some(file) = &arguments.plot {
        let cases::Verdict { title, axes, curves, .. } = &report.verdict;
        let series: Vec<_> = curves
            .iter()
            .map(|curve| plot::Series { name: &curve.name, points: curve.points.clone(), dots: curve.dots })
            .collect();
        plot::draw(file, title, *axes, &series).map_err(Error::other)?;
    }
    arguments.start.report(job, &report, &report.json())?;
    report.failure().map_or(Ok(()), |failure| Err(Error::other(failure)))
}

/// Marches through the case; rank 0 gets the report. Collective.
fn simulate(job: &Job, arguments: &Arguments, case: &dyn Case) -> Result<Option<Report>, Error> {
    let cells = case.grid().extents();
    let mut team = Team::new(job, cells)?;
    let mut newton = Newton::new(&team, case, arguments.tolerance);
    let schedule = case.schedule();
    // Times from the first step to the end, on a scale of decades.
    let end = schedule.times.last().copied().unwrap_or(schedule.first_step);
    let decades = |time: f64| (1000.0 * (1.0 + time / schedule.first_step).ln()) as u64;
    let bar = command_line::progress_bar(job, decades(end) as usize, "parts of the logarithm of time");
    let mut history = Vec::new();
    let start = job.now();
    let frames = arguments.vtk.as_deref().map(|folder| Frames::new(folder, case));
    let write_frame = |time: f64, heads: &_| frames.as_ref().map_or(Ok(()), |frames| frames.write(time, heads));
    let mut progress = Progress::start(&team, case, &schedule)?;
    let heads = team.publish(&progress.head)?;
    if job.rank() == 0 {
        write_frame(0.0, heads)?;
    }
    march::march(&mut team, &mut newton, case, &schedule, &mut progress, &mut |progress, heads| {
        if job.rank() == 0 {
            history.push((progress.time, case.observe(progress.time, heads)?));
            write_frame(progress.time, heads)?;
            bar.set_position(decades(progress.time));
        }
        Ok(())
    })?;
    let marched = progress.marched;
    let [seconds, peers] = [(job.now() - start).as_secs_f64(), team.peers()? as f64];
    let (seconds, peers) = (team.largest(seconds)?, team.largest(peers)? as usize);
    bar.finish_and_clear();
    // Rank 0 has read what it needs.
    job.sync()?;
    if job.rank() != 0 {
        return Ok(None);
    }
    Ok(Some(Report {
        name: case.name(),
        cells,
        ranks: job.size(),
        network: job.network().to_owned(),
        verdict: case.judge(&history, &marched),
        marched,
        work: newton.work,
        tolerance: arguments.tolerance,
        peers,
        seconds,
    }))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// What rank 0 reports of a command line, over threads.
    fn report(line: &str, ranks: usize) -> Report {
        let arguments = Arguments::try_parse_from(line.split(' ')).unwrap();
        let case = prepare(&arguments).unwrap();
        let outcome = Mutex::new(None);
        let body = |job: &Job| {
            if let Some(report) = simulate(job, &arguments, &*case)? {
                *outcome.lock().unwrap() = Some(report);
            }
            Ok::<(), Error>(())
        };
        Launch::new().ranks(ranks).network("threads").run(body).unwrap();
        outcome.into_inner().unwrap().unwrap()
    }

    fn error(report: &Report, key: &str) -> f64 {
        report.json()[key].as_f64().unwrap()
    }

    /// Doubling the cells halves the error of upstream weighting.
    #[test]
    fn infiltration_is_of_first_order() {
        let errors = [48, 96, 192].map(|cells| {
            let line = format!("subsurface --case infiltration --cells {cells}");
            cells as f64 * error(&report(&line, 1), "profile_error")
        });
        assert!(errors.windows(2).all(|pair| (pair[1] / pair[0] - 1.0).abs() < 0.05), "cells times error: {errors:?}");
    }

    /// The error of the grid falls with the square of the spacing; steps are short enough to leave little beside it.
    #[test]
    fn theis_is_of_second_order_in_space() {
        let [coarse, fine] = [65, 97].map(|cells| {
            let line = format!("subsurface --case theis --cells {cells} --accuracy 0.001");
            error(&report(&line, 1), "max_error")
        });
        let order = (coarse / fine).ln() / (97_f64 / 65.0).ln();
        assert!((1.8..2.6).contains(&order), "{order}: {coarse} {fine}");
    }

    /// The heads do not depend on the number of ranks, but for what the solvers leave.
    #[test]
    fn any_number_of_ranks_finds_the_same() {
        for (line, apart) in [
            ("subsurface --case infiltration --cells 24 --tolerance 1e-11", 1e-4),
            ("subsurface --case heterogeneous --cells 5x6x7 --tolerance 1e-11", 1e-7),
            ("subsurface --case theis --cells 63 --accuracy 0.1 --tolerance 1e-10", 1e-6),
        ] {
            let alone = report(line, 1);
            for ranks in [2, 3, 4, 7] {
                let together = report(line, ranks);
                assert!(together.failure().is_none(), "{line}, {ranks} ranks: {:?}", together.failure());
                for (a, b) in alone.verdict.rows.iter().flatten().zip(together.verdict.rows.iter().flatten()) {
                    assert!((a - b).abs() <= apart, "{line}, {ranks} ranks: {a} and {b}");
                }
            }
        }
    }
}
