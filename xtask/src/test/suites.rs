//! The test programs that cargo builds, the documentation's examples, the memory checker, the interleavings.

use super::counts::Report;
use super::{Tier, environment};
use crate::packages;
use crate::{cargo, child};
use anyhow::Result;
use std::process::Command;

/// Unit and integration tests of every package, each program under its own time limit.
pub fn run(tier: Tier) -> Result<Vec<Report>> {
    let mut reports = Vec::new();
    for suite in cargo::build(&["test", "--workspace", "--no-run"])? {
        if suite.kind == "example" {
            continue; // run by its own table
        }
        let name = match suite.kind.as_str() {
            "test" => format!("tests/{}", suite.name),
            kind => format!("{} ({kind} unit tests)", suite.package),
        };
        let mut command = Command::new(&suite.path);
        environment(&mut command, tier);
        command.current_dir(&suite.folder).env("CARGO_MANIFEST_DIR", &suite.folder);
        reports.push(finish(&name, &mut command, tier)?);
    }
    Ok(reports)
}

/// The programs inside the documentation.
pub fn documentation(tier: Tier) -> Result<Vec<Report>> {
    let mut command = cargo::command(&["test", "--doc", "--package", "global-arrays"]);
    environment(&mut command, tier);
    Ok(vec![finish("documentation", &mut command, tier)?])
}

/// The library's unit tests under valgrind's memory checker.
pub fn memory_check(tier: Tier) -> Result<Vec<Report>> {
    const NAME: &str = "unit tests under valgrind";
    if !packages::installed("valgrind") {
        return Ok(vec![Report::skipped(NAME, "no valgrind")]);
    }
    let mut reports = Vec::new();
    for suite in cargo::build(&["test", "--lib", "--no-run", "--package", "global-arrays"])? {
        let mut command = Command::new("valgrind");
        command.args(["--quiet", "--error-exitcode=99"]).arg(&suite.path);
        environment(&mut command, tier);
        command.env_remove("GA_TEST_LONG");
        reports.push(finish(NAME, &mut command, tier)?);
    }
    Ok(reports)
}

/// The models of what has no lock, in every interleaving with at most so many preemptions.
pub fn interleavings(tier: Tier) -> Result<Vec<Report>> {
    const PREEMPTIONS: &str = "3";
    let mut reports = Vec::new();
    let arguments = ["test", "--release", "--lib", "--no-run", "--package", "global-arrays"];
    for suite in cargo::build_with_flags("--cfg loom", &arguments)? {
        let mut command = Command::new(&suite.path);
        command.args(["loom_models", "--test-threads=1"]).env("LOOM_MAX_PREEMPTIONS", PREEMPTIONS);
        environment(&mut command, tier);
        reports.push(finish("models in every interleaving", &mut command, tier)?);
    }
    Ok(reports)
}

fn finish(name: &str, command: &mut Command, tier: Tier) -> Result<Report> {
    let report = Report::of(name, &child::run(command, tier.limit)?);
    println!("{report}");
    Ok(report)
}
