//! The test programs that cargo builds, the documentation's examples.

use super::counts::Report;
use super::{Tier, environment};
use crate::cargo::{self, LIBRARY, OPTIMIZED, Program};
use crate::child;
use anyhow::Result;
use std::process::Command;
use std::{env, thread};

/// Unit tests of the crate that run at a time, at least: some wait for half a minute.
const TOGETHER: usize = 4;

/// Libtest's variable for the number of threads.
const THREADS: &str = "RUST_TEST_THREADS";

/// Unit and integration tests of every package, each program under its own time limit.
pub fn run(tier: Tier) -> Result<Vec<Report>> {
    let mut reports = Vec::new();
    for suite in build(tier)?.into_iter().filter(|program| program.test) {
        let name = match suite.kind.as_str() {
            "test" => format!("tests/{}", suite.name),
            "bin" if suite.package != "xtask" => format!("example {} (unit tests)", suite.name),
            kind => format!("{} ({kind} unit tests)", suite.package),
        };
        let mut command = Command::new(&suite.path);
        environment(&mut command, tier);
        command.current_dir(&suite.folder).env("CARGO_MANIFEST_DIR", &suite.folder);
        if suite.package == LIBRARY && env::var_os(THREADS).is_none() {
            command.env(THREADS, thread::available_parallelism().map_or(1, Into::into).max(TOGETHER).to_string());
        }
        reports.push(finish(&name, &mut command, tier)?);
    }
    Ok(reports)
}

/// All tests of the workspace. Those of the suites and programs are built against an optimized library. The library's own unit tests are
/// optimized in the long tier only, where they run for long: to build them so takes minutes.
pub fn build(tier: Tier) -> Result<Vec<Program>> {
    let suites = [&["test", "--workspace", "--exclude", LIBRARY, "--no-run"][..], &OPTIMIZED].concat();
    let mut programs = cargo::build(&suites)?;
    // Of the whole workspace too, so that the dependencies have the same features.
    let own = [&["test", "--workspace", "--lib", "--no-run"][..], if tier.long { &OPTIMIZED } else { &[] }].concat();
    programs.extend(cargo::build(&own)?.into_iter().filter(|program| program.package == LIBRARY));
    Ok(programs)
}

/// The programs inside the documentation.
pub fn documentation(tier: Tier) -> Result<Vec<Report>> {
    // Of the whole workspace, as above. Its other packages have none.
    let mut command = cargo::command(&[&["test", "--workspace", "--doc"][..], &OPTIMIZED].concat());
    environment(&mut command, tier);
    Ok(vec![finish("documentation", &mut command, tier)?])
}

fn finish(name: &str, command: &mut Command, tier: Tier) -> Result<Report> {
    Ok(Report::of(name, &child::run(command, tier.limit)?).said())
}

/// The same for one that was asked for some of its tests: none at all is a failure.
pub fn finish_some(name: &str, command: &mut Command, tier: Tier) -> Result<Report> {
    Ok(Report::of(name, &child::run(command, tier.limit)?).not_empty().said())
}
