//! The feature `blas`: the unit tests of the matrix product, its suite, and what becomes of a wrong `GA_BLAS`, by Debian's OpenBLAS.

use super::counts::Report;
use super::{Tier, environment, suites};
use crate::cargo;
use crate::packages::{self, Need};
use anyhow::Result;
use std::process::Command;

const NEED: Need = Need { package: "libopenblas-dev", why: "tests the feature blas" };

/// The library by name: tests skip what they cannot find, but not what was chosen.
const LIBRARY: &str = "libopenblas.so.0";

/// Programs of tests, and which of their tests.
const SUITES: [(&str, &str, &str); 3] =
    [("lib", "global_arrays", "matmul"), ("test", "matmul", ""), ("test", "failures", "blas")];

pub fn run(tier: Tier, install: bool) -> Vec<Report> {
    packages::ensure(&[NEED], install);
    if !packages::installed(NEED.package) {
        return vec![Report::skipped("BLAS: all", &format!("no package {}", NEED.package)).said()];
    }
    Report::of_part("BLAS: build", suites(tier))
}

fn suites(tier: Tier) -> Result<Vec<Report>> {
    // Of the whole workspace, as all other tests: the dependencies have the same features then, and are there.
    let targets = ["--workspace", "--lib", "--test", "matmul", "--test", "failures"];
    let programs = cargo::build(&[&["test", "--no-run", "--features", "blas"][..], &targets].concat())?;
    let mut reports = Vec::new();
    for (kind, name, some) in SUITES {
        for suite in programs.iter().filter(|suite| suite.test && suite.kind == kind && suite.name == name) {
            let mut command = Command::new(&suite.path);
            environment(&mut command, tier);
            command
                .env("CARGO_MANIFEST_DIR", &suite.folder)
                .env("GA_BLAS", LIBRARY)
                .args(Some(some).filter(|some| !some.is_empty()));
            command.current_dir(&suite.folder);
            reports.push(suites::finish_some(&format!("BLAS: {kind} {name}"), &mut command, tier)?);
        }
    }
    Ok(reports)
}
