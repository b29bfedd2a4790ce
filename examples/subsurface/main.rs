//! Groundwater flow on a structured grid, the way STOMP solves it (ARMCI-ODCM §IV-D).
//!
//! # The equation
//!
//! Richards' equation for the pressure head ψ, with the confined aquifer as its linear case:
//!
//! ```text
//! ∂θ(ψ)/∂t = ∇·[K·k_r(ψ)·∇(ψ + z)] + w
//! ```
//!
//! [`medium`] has θ and k_r, [`system`] the finite volumes and backward Euler, [`newton`] the solution of a step, [`krylov`] that
//! of its linear equations, [`march`] the lengths of the steps. What is solved is one of the [`cases`], or a problem that a file
//! poses ([`input`]).
//!
//! # Who talks to whom
//!
//! The cells are spread in blocks. A rank needs the cells next to its block, which belong to a few neighbors, and nothing else
//! of anybody: a clique of at most six ranks (more where blocks do not meet face to face), whatever the size of the job. It gets
//! them one-sided from global arrays ([`field`]); beyond that there are only all-reduces of a few numbers. Rank 0 alone reads
//! what a case wants to see, while the others go on.

mod cases;
mod checkpoint;
mod cli;
mod coarse;
mod field;
mod forcing;
mod frames;
mod grid;
mod identity;
mod incomplete;
mod input;
mod krylov;
mod march;
mod matrix;
mod medium;
mod newton;
mod observers;
mod problem;
mod report;
mod system;

use std::process::ExitCode;

use clap::Parser;
use global_arrays::prelude::*;
use program::{checkpoints, command_line, file_names, plot};

use crate::cases::Case;
use crate::cases::heterogeneous::Heterogeneous;
use crate::cases::infiltration::Infiltration;
use crate::cases::theis::Theis;
use crate::cli::{Arguments, Kind};
use crate::field::Team;
use crate::input::Posed;
use crate::march::Progress;
use crate::newton::Newton;
use crate::observers::Observers;
use crate::report::Report;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    command_line::main("subsurface", || run(&arguments))
}

/// Reads the input here, where a mistake is told once, then starts the ranks.
fn run(arguments: &Arguments) -> Result<(), String> {
    arguments.check()?;
    arguments.plot.as_deref().map_or(Ok(()), plot::check)?;
    let Arguments { problem, reference, output, plot, checkpoint, resume, vtk, .. } = arguments;
    let [output, plot, problem, reference, saved] = [
        ("--output", output),
        ("--plot", plot),
        ("--problem", problem),
        ("--reference", reference),
        ("--checkpoint", checkpoint),
    ]
    .map(|(flag, file)| (flag, file.as_deref()));
    file_names::check(&[output, plot], &[problem, reference, saved])?;
    let case = prepare(arguments)?;
    vtk.as_deref().map_or(Ok(()), |folder| program::frames::check(folder, resume.is_some()))?;
    checkpoint.as_deref().map_or(Ok(()), checkpoints::check)?;
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

/// Marches through the case, from a checkpoint if there is one; rank 0 gets the report. Collective.
fn simulate(job: &Job, arguments: &Arguments, case: &dyn Case) -> Result<Option<Report>, Error> {
    let cells = case.grid().extents();
    let mut team = Team::new(job, cells)?;
    let mut newton = Newton::new(&team, case, arguments.tolerance);
    let schedule = case.schedule();
    let mut observers = Observers::new(job, &team, arguments, case)?;
    let mut progress = match &arguments.resume {
        Some(folder) => {
            let (progress, saved) = checkpoint::restore(job, &team, folder, case)?;
            (newton.work, observers.history) = (saved.work, saved.history);
            progress
        }
        None => {
            let progress = Progress::start(&team, case, &schedule)?;
            observers.see_start(team.publish(&progress.head)?)?;
            progress
        }
    };
    let start = job.now();
    let seen = &mut |progress: &Progress, work, heads: &_| observers.see(progress, work, heads);
    march::march(&mut team, &mut newton, case, &schedule, &mut progress, seen)?;
    let marched = progress.marched;
    let [seconds, peers] = [(job.now() - start).as_secs_f64(), team.peers()? as f64];
    let (seconds, peers) = (team.largest(seconds)?, team.largest(peers)? as usize);
    observers.finish();
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
        verdict: case.judge(&observers.history, &marched),
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

    /// A run that goes on from a checkpoint ends as one that was not interrupted: with the same bits on as many ranks, else
    /// but for what the solvers leave.
    #[test]
    fn a_run_goes_on_from_its_checkpoint() {
        let folder = std::env::temp_dir().join(format!("subsurface-checkpoint-{}", std::process::id()));
        let line = format!("subsurface --problem {}/problems/tracy.toml --tolerance 1e-10", env!("CARGO_MANIFEST_DIR"));
        let whole = report(&format!("{line} --end-time 20000"), 2);
        // It has a time of output at 5000 s.
        report(&format!("{line} --end-time 5000 --checkpoint {} --checkpoint-every 7", folder.display()), 2);
        // Earlier checkpoints are gone.
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
        let again = |ranks| report(&format!("{line} --end-time 20000 --resume {}", folder.display()), ranks);
        let (same, other) = (again(2), again(3));
        let seen = |report: &Report| report.verdict.rows.iter().flatten().map(|x| x.to_bits()).collect::<Vec<_>>();
        assert_eq!(seen(&same), seen(&whole));
        assert_eq!((same.marched, same.work), (whole.marched, whole.work));
        for (a, b) in whole.verdict.rows.iter().flatten().zip(other.verdict.rows.iter().flatten()) {
            assert!((a - b).abs() <= 1e-7 * (1.0 + a.abs()), "{a} and {b}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }

    /// A checkpoint of another problem, one of the end, and what is none are refused.
    #[test]
    fn checkpoints_that_do_not_fit_are_refused() {
        let folder = std::env::temp_dir().join(format!("subsurface-refused-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let tracy = std::fs::read_to_string(format!("{}/problems/tracy.toml", env!("CARGO_MANIFEST_DIR"))).unwrap();
        let tracy = tracy.replace("cells = 20", "cells = 4");
        let [problem, state] = ["tracy.toml", "state"].map(|name| folder.join(name));
        let line = format!("subsurface --problem {}", problem.display());
        std::fs::write(&problem, &tracy).unwrap();
        report(&format!("{line} --end-time 5000 --checkpoint {}", state.display()), 2);
        let refused = |rest: &str| {
            let arguments = format!("{line} --network threads --ranks 2 {rest}");
            let arguments = Arguments::try_parse_from(arguments.split(' ')).unwrap();
            let error = run(&arguments).unwrap_err();
            assert!(!error.contains('\n'), "{error}");
            error
        };
        let resume = format!("--resume {}", state.display());
        let at_the_end = refused(&format!("{resume} --end-time 5000"));
        assert!(at_the_end.contains("of t = 5000 s, and the run ends at t = 5000 s"), "{at_the_end}");
        for (from, to, part) in [
            ("length = 10.0 }", "length = 11.0 }", "other faces of the grid"),
            ("conductivity = 1.0e-5", "conductivity = 1.1e-5", "other materials"),
            ("face_permeability = \"mean\"", "gravity = false", "other gravity, face_permeability"),
            ("name = \"aside\"", "name = \"beside\"", "other observations"),
        ] {
            std::fs::write(&problem, tracy.replace(from, to)).unwrap();
            let error = refused(&resume);
            assert!(error.contains(part), "{error}");
        }
        std::fs::write(&problem, &tracy).unwrap();
        assert!(
            refused(&format!("--checkpoint {}", problem.display())).contains("--problem and --checkpoint name the same file")
        );
        assert!(refused("--checkpoint /dev/zero").contains("it is no folder"));
        assert!(refused("--resume /dev/zero").contains("/dev/zero: Not a directory"));
        assert!(refused(&format!("--resume {}", folder.join("none").display())).contains("there is no checkpoint"));
        let both = format!("--checkpoint {0} --output {0}", folder.join("table.csv").display());
        assert!(refused(&both).contains("--output and --checkpoint name the same file"));
        let other = format!("subsurface --case heterogeneous --cells 5x6x7 --network threads {resume}");
        let arguments = Arguments::try_parse_from(other.split(' ')).unwrap();
        assert!(run(&arguments).unwrap_err().contains("a checkpoint of tracy with [4, 4, 4] cells"));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    /// A run that goes on with another end keeps the frames that are there, and gives new ones the next numbers.
    #[test]
    fn frames_of_a_resumed_run_follow_those_before() {
        let folder = std::env::temp_dir().join(format!("subsurface-resumed-frames-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (state, frames) = (std::env::temp_dir().join(format!("subsurface-state-{}", std::process::id())), folder.display());
        let line = format!("subsurface --case heterogeneous --cells 3x4x4 --vtk {frames}");
        report(&format!("{line} --end-time 4000 --checkpoint {}", state.display()), 2);
        let first = std::fs::read(folder.join("frames-0001.vtr")).unwrap();
        report(&format!("{line} --end-time 9000 --resume {}", state.display()), 2);
        let text = std::fs::read_to_string(folder.join("frames.pvd")).unwrap();
        let listed: Vec<&str> = text.lines().filter(|line| line.starts_with("<DataSet")).collect();
        let entry = |(number, time)| format!("<DataSet timestep=\"{time}\" file=\"frames-000{number}.vtr\"/>");
        assert_eq!(listed, [(0, 0), (1, 4000), (2, 9000)].map(entry));
        assert_eq!(std::fs::read(folder.join("frames-0001.vtr")).unwrap(), first);
        std::fs::remove_dir_all(&folder).unwrap();
        std::fs::remove_dir_all(&state).unwrap();
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
