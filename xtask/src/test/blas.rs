//! The features `rayon`, `faer` and `blas`: threads of a rank; eigenvalues without a library; the unit tests of the matrix product, its suite, that of
//! factors and eigenvalues, and what becomes of a wrong `GA_BLAS`, by Debian's OpenBLAS.

use super::counts::Report;
use super::{Tier, environment, suites};
use crate::cargo;
use crate::packages::{self, Need};
use anyhow::Result;
use std::process::Command;

const NEED: Need = Need { package: "libopenblas-dev", why: "tests the feature blas" };

/// The library by name: tests skip what they cannot find, but not what was chosen.
const LIBRARY: &str = "libopenblas.so.0";

/// Programs of tests, and which of their tests. Those of threads need no library.
const SUITES: [(&str, &str, &[&str]); 4] =
    [("lib", "global_arrays", &["matmul"]), ("test", "matmul", &[]), ("test", "linalg", &[]), ("test", "failures", &["blas"])];
const OF_THREADS: [(&str, &str, &[&str]); 3] = [
    ("lib", "global_arrays", &["sync::pool", "algebra", "matmul"]),
    ("test", "pools", &[]),
    ("test", "conformance", &["threads_of_a_rank"]),
];

/// What faer computes, and finds that there is no library.
const OF_FAER: [(&str, &str, &[&str]); 2] = [("lib", "global_arrays", &["linalg"]), ("test", "linalg", &[])];

/// One build for all.
const FEATURES: &str = "blas,faer,rayon";

pub fn run(tier: Tier, install: bool) -> Vec<Report> {
    packages::ensure(&[NEED], install);
    let mut reports = Report::of_part("threads: build", suites("threads", &OF_THREADS, "none", tier));
    reports.extend(Report::of_part("faer: build", suites("faer", &OF_FAER, "none", tier)));
    reports.extend(match packages::installed(NEED.package) {
        true => {
            let mut with = Report::of_part("BLAS: build", suites("BLAS", &SUITES, LIBRARY, tier));
            with.extend(Report::of_part("BLAS: documentation", documentation(tier)));
            with
        }
        false => vec![Report::skipped("BLAS: all", &format!("no package {}", NEED.package)).said()],
    });
    reports
}

fn suites(part: &str, all: &[(&str, &str, &[&str])], library: &str, tier: Tier) -> Result<Vec<Report>> {
    // Of the whole workspace, as all other tests: the dependencies have the same features then, and are there.
    let targets = [
        "--workspace",
        "--lib",
        "--test",
        "matmul",
        "--test",
        "linalg",
        "--test",
        "failures",
        "--test",
        "pools",
        "--test",
        "conformance",
    ];
    let programs = cargo::build(&[&["test", "--no-run", "--features", FEATURES][..], &targets].concat())?;
    let mut reports = Vec::new();
    for (kind, name, some) in all {
        for suite in programs.iter().filter(|suite| suite.test && suite.kind == *kind && suite.name == *name) {
            let mut command = Command::new(&suite.path);
            environment(&mut command, tier);
            command.env("CARGO_MANIFEST_DIR", &suite.folder).env("GA_BLAS", library).args(*some);
            command.current_dir(&suite.folder);
            reports.push(suites::finish_some(&format!("{part}: {kind} {name}"), &mut command, tier)?);
        }
    }
    Ok(reports)
}

/// The examples of the solvers, which need the feature and a library.
fn documentation(tier: Tier) -> Result<Vec<Report>> {
    let mut command = cargo::command(&["test", "--workspace", "--doc", "--features", FEATURES, "linalg"]);
    environment(&mut command, tier);
    command.env("GA_BLAS", LIBRARY);
    Ok(vec![suites::finish_some("BLAS: documentation", &mut command, tier)?])
}
