//! Examples as tests: a command line, how it must end, what it must say.

use super::counts::Report;
use super::{Tier, environment};
use crate::{cargo, child};
use anyhow::Result;
use std::process::Command;

/// One start of an example.
struct Case {
    example: &'static str,
    arguments: &'static [&'static str],
    succeeds: bool,
    /// Must stand in what it prints, on either stream.
    says: &'static str,
    long: bool,
}

const fn good(example: &'static str, arguments: &'static [&'static str], says: &'static str) -> Case {
    Case { example, arguments, succeeds: true, says, long: false }
}

const fn bad(example: &'static str, arguments: &'static [&'static str], says: &'static str) -> Case {
    Case { example, arguments, succeeds: false, says, long: false }
}

const fn long(example: &'static str, arguments: &'static [&'static str], says: &'static str) -> Case {
    Case { example, arguments, succeeds: true, says, long: true }
}

#[rustfmt::skip]
static CASES: &[Case] = &[
    good("hello", &[], "rank 0 of"),
    good("put_get", &[], "neighbours' blocks"),
    good("reversal", &[], "elements reversed"),
    good("matmul_tasks", &[], "largest error"),
    good("jacobi", &[], "largest error"),
    good("lu", &["--ranks", "2", "--matrix", "examples/lu/data/west0479.mtx", "--json"], "\"passed\":true"),
    good("lu", &["--ranks", "2", "--n", "512", "--block", "64", "--json"], "\"passed\":true"),
    good("lu", &["--ranks", "1", "--n", "200", "--block", "32", "--json"], "\"passed\":true"),
    good("lu", &["--ranks", "4", "--n", "300", "--block", "50", "--json"], "\"passed\":true"),
    good("lu", &["--ranks", "2", "--n", "512", "--network", "threads", "--json"], "\"passed\":true"),
    good("lu", &["--ranks", "4", "--n", "100", "--block", "100", "--json"], "\"passed\":true"),
    good("lu", &["--ranks", "2", "--n", "10", "--block", "64", "--json"], "\"passed\":true"),
    good("lu", &["--ranks", "7", "--n", "150", "--block", "16", "--json"], "\"passed\":true"),
    good("lu", &["--ranks", "3", "--n", "1", "--json"], "\"passed\":true"),
    good("lu", &["--ranks", "6", "--n", "210", "--block", "16", "--grid", "3x2", "--network", "threads", "--json"], "\"passed\":true"),
    good("lu", &["--ranks", "4", "--n", "96", "--block", "16", "--network", "shared_memory:unmapped", "--json"], "\"passed\":true"),
    bad("lu", &["--ranks", "0", "--n", "100"], "ranks"),
    bad("lu", &["--ranks", "2", "--matrix", "examples/lu/data/no-such-file.mtx"], "no-such-file.mtx"),
    good("subsurface", &["--case", "infiltration", "--ranks", "2", "--json"], "\"passed\":true"),
    good("subsurface", &["--case", "infiltration", "--cells", "4", "--ranks", "7", "--json"], "\"passed\":true"),
    good("subsurface", &["--case", "infiltration", "--cells", "40", "--ranks", "3", "--network", "shared_memory:unmapped", "--json"], "\"passed\":true"),
    good("subsurface", &["--case", "theis", "--cells", "65", "--accuracy", "0.02", "--ranks", "2", "--json"], "\"passed\":true"),
    good("subsurface", &["--case", "theis", "--cells", "63", "--accuracy", "0.1", "--ranks", "4", "--network", "threads", "--json"], "\"passed\":true"),
    good("subsurface", &["--case", "heterogeneous", "--cells", "6x9x10", "--ranks", "4", "--json"], "\"passed\":true"),
    good("subsurface", &["--case", "heterogeneous", "--cells", "5x6x7", "--ranks", "3", "--network", "threads:unmapped", "--json"], "\"passed\":true"),
    bad("subsurface", &["--case", "lake"], "lake"),
    bad("subsurface", &["--case", "theis", "--cells", "0"], "at least 1"),
    bad("subsurface", &["--case", "infiltration", "--end-time=-1"], "above 0"),
    bad("subsurface", &["--case", "theis", "--reference", "no-such-file.csv"], "no-such-file.csv"),
    bad("subsurface", &["--case", "infiltration", "--first-step", "1e9", "--shortest-step", "1e9"], "time step fell below"),
    bad("subsurface", &["--case", "infiltration", "--cells", "20", "--output", "/dev/full"], "/dev/full"),
    long("lu", &["--ranks", "2", "--n", "4096", "--block", "128", "--json"], "\"passed\":true"),
    long("subsurface", &["--case", "theis", "--cells", "257", "--accuracy", "0.001", "--ranks", "2", "--json"], "\"passed\":true"),
    long("subsurface", &["--case", "heterogeneous", "--cells", "15x64x64", "--end-time", "864000", "--ranks", "2", "--json"], "\"passed\":true"),
];

pub fn run(tier: Tier) -> Result<Vec<Report>> {
    let known = cargo::targets("example")?;
    let mut reports: Vec<Report> = known
        .iter()
        .filter(|name| !CASES.iter().any(|case| case.example == **name))
        .map(|name| Report::skipped(&format!("example {name}"), "no command line for it is in the table"))
        .inspect(|report| println!("{report}"))
        .collect();
    let built = if known.is_empty() { Vec::new() } else { cargo::build(&["build", "--release", "--examples"])? };
    for case in CASES.iter().filter(|case| tier.long || !case.long) {
        let name = format!("example {} {}", case.example, case.arguments.join(" "));
        let report = match built.iter().find(|program| program.kind == "example" && program.name == case.example) {
            None => Report::single(&name, Err("there is no such example".into())),
            Some(program) => {
                let mut command = Command::new(&program.path);
                command.args(case.arguments).current_dir(cargo::root());
                environment(&mut command, tier);
                let outcome = child::run(&mut command, tier.limit)?;
                let mut report = Report::single(&name, case.judge(&outcome));
                report.seconds = outcome.elapsed.as_secs_f64();
                report
            }
        };
        println!("{report}");
        reports.push(report);
    }
    Ok(reports)
}

impl Case {
    /// A refusal is an ordinary non-zero exit: neither a signal nor a panic nor a hang.
    fn judge(&self, outcome: &child::Outcome) -> Result<(), String> {
        let ended = match outcome.end {
            child::End::Exit(0) => self.succeeds,
            child::End::Exit(_) => !self.succeeds && !outcome.stderr.contains("panicked at"),
            child::End::Signal(_) | child::End::TimedOut(_) => false,
        };
        let said = |text: &str| text.replace("\": ", "\":").contains(self.says);
        if !ended {
            Err(format!("{}\n{}", outcome.end, outcome.tail(20)))
        } else if !outcome.left_behind.is_empty() {
            Err(format!("left behind: {}", outcome.left_behind.join("; ")))
        } else if !said(&outcome.stdout) && !said(&outcome.stderr) {
            Err(format!("does not say {:?}\n{}", self.says, outcome.tail(20)))
        } else {
            Ok(())
        }
    }
}
