//! The test programs that cargo builds, the documentation's examples.

use super::counts::Report;
use super::{Tier, environment};
use crate::{cargo, child};
use anyhow::Result;
use std::process::Command;

/// Unit and integration tests of every package, each program under its own time limit.
pub fn run(tier: Tier) -> Result<Vec<Report>> {
    let mut reports = Vec::new();
    for suite in cargo::build(&["test", "--workspace", "--no-run"])? {
        if !suite.test {
            continue; // a program, run by its own table
        }
        let name = match suite.kind.as_str() {
            "test" => format!("tests/{}", suite.name),
            "bin" if suite.package != "xtask" => format!("example {} (unit tests)", suite.name),
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
    let mut command = cargo::command(&["test", "--doc", "--package", cargo::LIBRARY]);
    environment(&mut command, tier);
    Ok(vec![finish("documentation", &mut command, tier)?])
}

fn finish(name: &str, command: &mut Command, tier: Tier) -> Result<Report> {
    let report = Report::of(name, &child::run(command, tier.limit)?);
    println!("{report}");
    Ok(report)
}

/// The same for one that was asked for some of its tests: none at all is a failure.
pub fn finish_some(name: &str, command: &mut Command, tier: Tier) -> Result<Report> {
    let report = Report::of(name, &child::run(command, tier.limit)?).not_empty();
    println!("{report}");
    Ok(report)
}
