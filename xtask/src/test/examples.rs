//! Examples as tests: a command line, how it must end, what it must say.

use super::cases::{CASES, Case};
use super::counts::Report;
use super::{Tier, environment};
use crate::{cargo, child};
use anyhow::Result;
use std::process::Command;

pub fn run(tier: Tier) -> Result<Vec<Report>> {
    let mut reports: Vec<Report> = cargo::examples()?
        .iter()
        .filter(|(name, _)| !CASES.iter().any(|case| case.example == *name))
        .map(|(name, _)| Report::skipped(&format!("example {name}"), "no command line for it is in the table"))
        .inspect(|report| println!("{report}"))
        .collect();
    let built = cargo::build(cargo::EXAMPLES)?;
    for case in CASES.iter().filter(|case| tier.long || !case.long) {
        let name = format!("example {} {}", case.example, case.arguments.join(" "));
        let report = match built.iter().find(|program| program.is_example() && program.name == case.example) {
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
    pub(super) fn judge(&self, outcome: &child::Outcome) -> Result<(), String> {
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
