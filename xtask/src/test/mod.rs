//! Every suite, example and documentation test, with counts, and one line of totals at the end.
//!
//! Each result is printed when it is there, failures once more at the end, with the times of the slowest. `cargo xtask test` is
//! the standard tier; `--long` sets `GA_TEST_LONG=1` for the suites, adds the examples at full size, the checkers and the
//! comparison.

mod blas;
mod cases;
mod checkers;
mod counts;
mod examples;
mod hosts;
mod kills;
mod launched;
mod mpi;
mod only;
mod python;
mod slurm;
mod strangers;
mod suites;
mod vm;

use crate::packages::{self, Need};
use crate::{cargo, compare};
use anyhow::Result;
use clap::Parser;
use counts::{Counts, Report};
use only::Part;
use std::time::{Duration, Instant};

#[derive(clap::Args, Debug)]
pub struct Options {
    /// Full sizes, the checkers of memory, races and interleavings, and the comparison too: takes much longer
    #[arg(long)]
    long: bool,
    /// Only these parts
    #[arg(long, num_args = 1.., value_name = "PART")]
    only: Vec<Part>,
    /// Do not install Debian packages, skip what is missing
    #[arg(long)]
    no_install: bool,
}

const OPTIONAL: &[Need] = &[Need { package: "valgrind", why: "checks the unit tests for memory errors (--long)" }];

/// What the suites use if it is there.
const FOR_SUITES: &[Need] = &[
    Need { package: "libfabric1", why: "runs the suites over libfabric" },
    Need { package: "libhdf5-103-1", why: "runs the tests of HDF5 files" },
    Need { package: "libfabric-dev", why: "compares the declarations of libfabric with its header" },
];

/// Suites and examples that are named with their times at the end.
const SLOWEST: usize = 10;

/// What every part of the run obeys.
#[derive(Clone, Copy, Debug)]
struct Tier {
    long: bool,
    /// One suite or example may take this long.
    limit: Duration,
}

/// `Ok(true)` when nothing failed.
pub fn run(options: &Options) -> Result<bool> {
    let start = Instant::now();
    let tier = Tier { long: options.long, limit: Duration::from_secs(if options.long { 3600 } else { 600 }) };
    let wanted = |part: Part| part.wanted(&options.only, tier.long);
    let mut reports = Vec::new();
    if wanted(Part::Suites) {
        packages::ensure(FOR_SUITES, !options.no_install);
        reports.extend(suites::run(tier)?);
        reports.extend(launched::under_ga_run(tier)?);
    }
    if wanted(Part::Documentation) {
        reports.extend(suites::documentation(tier)?);
    }
    if wanted(Part::Examples) {
        reports.extend(examples::run(tier)?);
    }
    if wanted(Part::Blas) {
        reports.extend(blas::run(tier, !options.no_install));
    }
    if wanted(Part::Python) {
        reports.extend(python::run(tier, !options.no_install));
    }
    if wanted(Part::Vm) {
        reports.extend(vm::run(tier, !options.no_install));
    }
    reports.extend(mpi::run(tier, !options.no_install, wanted));
    if wanted(Part::Checkers) {
        packages::ensure(OPTIONAL, !options.no_install);
        reports.extend(checkers::run(tier));
    }
    if wanted(Part::Comparison) {
        reports.push(comparison(options.no_install));
    }
    let mut total = Counts::default();
    println!();
    for report in &reports {
        total += report.counts;
        if report.failure.is_some() {
            println!("{report}");
        }
    }
    println!("the slowest:");
    for report in counts::slowest(&reports, SLOWEST) {
        println!("{:8.1} s  {}", report.seconds, report.name);
    }
    println!("{:.0} s in all", start.elapsed().as_secs_f64());
    println!("{total}");
    Ok(total.failed == 0 && total.passed > 0)
}

/// The full comparison; that it can be measured is the test, its figures are for the reader.
fn comparison(no_install: bool) -> Report {
    #[derive(Parser)]
    struct Defaults {
        #[command(flatten)]
        options: compare::Options,
    }
    let mut arguments = vec!["compare", "--keep-docs"];
    if no_install {
        arguments.push("--no-install");
    }
    let measured = Defaults::try_parse_from(arguments).map_err(Into::into).and_then(|d| compare::run(&d.options));
    match measured {
        Ok(true) => Report::single("comparison", Ok(())),
        Ok(false) => Report::single("comparison", Err("nothing was measured".to_owned())),
        Err(error) => Report::single("comparison", Err(format!("{error:#}"))),
    }
}

/// The crate under test as cargo runs it.
fn environment(command: &mut std::process::Command, tier: Tier) {
    command.env("CARGO_MANIFEST_DIR", cargo::root());
    if tier.long {
        command.env("GA_TEST_LONG", "1");
    } else {
        command.env_remove("GA_TEST_LONG");
    }
}
