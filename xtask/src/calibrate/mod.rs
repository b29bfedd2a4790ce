//! A model of this machine's own MPI, fitted to a few figures, and how well it predicts programs.
//!
//! Two ranks on two nodes, of which each has a core, send messages of MPICH over TCP inside this machine. `benches/loggp` says what its
//! figures are there. The same program then runs over a model, whose parameters change until it has the same figures. Four programs run
//! over both: what they compute is measured ([`GA_COMPUTING=measured`]), and how long they communicate is predicted. The same on four ranks is
//! printed, not judged: they share two cores, which the model does not know.
//!
//! | file | what it knows |
//! |---|---|
//! | `machine` | the model: its parameters, which figure each is fitted to |
//! | `programs` | what runs, here and over the model |
//!
//! [`GA_COMPUTING=measured`]: global_arrays::guide::virtual_cluster

mod machine;
mod programs;

use crate::cargo;
use crate::packages;
use anyhow::{Context, Result, ensure};
use machine::{FITS, Figures, Model};
use programs::{PROGRAMS, Place, Programs};
use std::fs;

#[derive(clap::Args, Debug)]
pub struct Options {
    /// Write the model, to be used as `GA_NETWORK=simulated:FILE`
    #[arg(long, value_name = "FILE")]
    out: Option<std::path::PathBuf>,
}

/// Debian's packages that the programs are built with and started by.
const NEEDS: [&str; 3] = ["libmpich-dev", "mpich", "libclang-dev"];
/// How far a prediction may be from what was measured.
const NEAR: f64 = 0.2;
/// How far a figure may be from the one that a parameter is fitted to.
const FITTED: f64 = 0.1;
/// Runs of the figures, and of each program on either side: medians are compared.
const RUNS: usize = 5;
/// Corrections of the parameters.
const ROUNDS: usize = 6;

/// `Ok(true)` when each program on two ranks is as near as it must be.
pub fn run(options: &Options) -> Result<bool> {
    let missing: Vec<&str> = NEEDS.iter().copied().filter(|package| !packages::installed(package)).collect();
    ensure!(missing.is_empty(), "calibrate needs MPICH: apt-get install {}", missing.join(" "));
    let programs = Programs::build()?;
    let file = cargo::folder("calibrate")?.join("machine.toml");

    let measured = Figures::medians(|| programs.figures(Place::Here), RUNS)?;
    let mut model = Model::default();
    let mut modelled = Figures::default();
    for round in 0..=ROUNDS {
        fs::write(&file, model.toml()).with_context(|| format!("cannot write {}", file.display()))?;
        modelled = Figures::medians(|| programs.figures(Place::Modelled(&file)), 3)?;
        if round < ROUNDS {
            model.correct(&measured, &modelled)?;
        }
    }
    println!("{:<12}{:>12}{:>12}  fitted", "figure", "measured", "model");
    for (name, here) in measured.iter() {
        let there = modelled.of(name)?;
        let fitted = FITS.iter().find(|fit| fit.figure == name).map_or("", |fit| fit.parameter);
        println!("{name:<12}{here:>12.3}{there:>12.3}  {fitted}");
    }
    for fit in FITS {
        let [here, there] = [measured.of(fit.figure)?, modelled.of(fit.figure)?];
        ensure!((there / here - 1.0).abs() <= FITTED, "no {} gives the figure {} of this machine", fit.parameter, fit.figure);
    }
    if let Some(out) = &options.out {
        fs::copy(&file, out).with_context(|| format!("cannot write {}", out.display()))?;
    }

    println!("\n{:<16}{:>6}{:>14}{:>14}{:>8}", "program", "ranks", "measured, s", "predicted, s", "ratio");
    let mut are_near = true;
    for ranks in [2, 4] {
        for program in PROGRAMS {
            let (mut here, mut there) = (Vec::new(), Vec::new());
            // In turns: the machine is not equally fast at all times.
            for _ in 0..RUNS {
                here.push(programs.seconds(program, ranks, Place::Here)?);
                there.push(programs.seconds(program, ranks, Place::Modelled(&file))?);
            }
            let [here, there] = [here, there].map(machine::median);
            let ratio = there / here;
            let verdict = match ((ratio - 1.0).abs() <= NEAR, ranks) {
                (true, 2) => "",
                (false, 2) => "  off",
                _ => "  not judged",
            };
            are_near &= verdict != "  off";
            println!("{:<16}{ranks:>6}{here:>14.4}{there:>14.4}{ratio:>8.2}{verdict}", program.name);
        }
    }
    Ok(are_near)
}
