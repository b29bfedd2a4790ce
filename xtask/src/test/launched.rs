//! Programs without the feature `mpi` that a launcher starts: their ranks meet by what the launcher speaks, PMI or PMIx, and are one job over
//! shared memory. The suites, under each library's launcher and under `ga-run`, and `hello` and a job that is a value under
//! Slurm's.

use super::counts::Report;
use super::mpi::{self, Library};
use super::slurm::{self, Comes};
use super::{Tier, environment, suites};
use crate::cargo::{self, Program};
use anyhow::{Context, Result};
use std::process::Command;

/// Suites that have cases whose ranks a launcher starts.
const SUITES: [&str; 3] = ["conformance", "random_programs", "failures"];

const UNDER_SRUN: &[(&str, Comes)] = &[
    ("--mpi=pmi2", Comes::Well("over shared_memory")),
    ("--mpi=none", Comes::Refused(&["Error: cannot start a job", "rank 0 of 2 that srun started", "--mpi=pmi2"])),
];

/// By the launcher of a library.
pub fn run(library: &Library, tier: Tier) -> Result<Vec<Report>> {
    // As the suites are built for themselves.
    let built = suites::build(tier)?;
    launch(library.launcher, library.launcher, &built, &SUITES, tier)
}

/// By `ga-run`, which the suite of that name is too. What goes wrong is all that depends on the launcher.
pub fn under_ga_run(tier: Tier) -> Result<Vec<Report>> {
    let built = suites::build(tier)?;
    let suite = built.iter().find(|suite| suite.kind == "test" && suite.name == "ga_run").context("no suite ga_run")?;
    launch("ga-run", &format!("{} ga-run", suite.path.display()), &built, &["failures"], tier)
}

/// The cases of suites whose ranks a launcher starts.
fn launch(launcher: &str, command_line: &str, built: &[Program], names: &[&str], tier: Tier) -> Result<Vec<Report>> {
    let mut reports = Vec::new();
    for suite in built.iter().filter(|suite| suite.kind == "test" && names.contains(&suite.name.as_str())) {
        let mut command = Command::new(&suite.path);
        environment(&mut command, tier);
        mpi::variables(&mut command);
        command.arg("launched").current_dir(&suite.folder).env("GA_TEST_LAUNCHER", command_line);
        let name = format!("{launcher} launches tests/{} without MPI", suite.name);
        reports.push(suites::finish_some(&name, &mut command, tier)?);
    }
    Ok(reports)
}

/// By Slurm.
pub fn under_srun(tier: Tier) -> Result<Vec<Report>> {
    // The command that builds all examples: its results are there.
    let built = cargo::build(cargo::EXAMPLES)?;
    let hello = built.iter().find(|program| program.name == "hello").context("no example hello")?;
    let mut reports = slurm::run("without MPI", UNDER_SRUN, hello, tier)?;
    let built = suites::build(tier)?;
    let failures = built.iter().find(|suite| suite.kind == "test" && suite.name == "failures").context("no suite failures")?;
    reports.extend(slurm::run("a job that is a value, without MPI", UNDER_SRUN, failures, tier)?);
    Ok(reports)
}
