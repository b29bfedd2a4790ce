//! Examples as tests: a command line, how it must end, what it must say.

use super::cases::{CASES, Case, NEW_FOLDER};
use super::counts::Report;
use super::{Tier, environment};
use crate::cargo::{self, Program};
use crate::child;
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

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
                let folder = NewFolder::of(case.arguments)?;
                let mut command = Command::new(&program.path);
                command.args(folder.fill(case.arguments.iter().map(|&word| word.to_owned()))).current_dir(cargo::root());
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
    if let Some(program) = built.iter().find(|program| program.name == "checkpoint" && program.is_example()) {
        let report = resumed(program, tier)?;
        println!("{report}");
        reports.push(report);
    }
    Ok(reports)
}

/// A second start goes on where the first one stopped, with more ranks and over another network, and removes what a killed one has left.
fn resumed(program: &Program, tier: Tier) -> Result<Report> {
    let folder = NewFolder::of(&[NEW_FOLDER])?;
    let mut outcomes = Vec::new();
    for (ranks, network) in [("2", "shared_memory"), ("3", "threads")] {
        fs::write(folder.path().join("generation-0.npy"), "of a run that was killed")?;
        let mut command = Command::new(&program.path);
        command.args(folder.fill([NEW_FOLDER.to_owned()])).envs([("GA_RANKS", ranks), ("GA_NETWORK", network)]);
        environment(&mut command, tier);
        outcomes.push(child::run(&mut command, tier.limit)?);
    }
    let left: Vec<_> = fs::read_dir(folder.path())?.map(|entry| Ok(entry?.file_name())).collect::<Result<_>>()?;
    let said = outcomes.iter().map(|outcome| outcome.stdout.as_str()).collect::<String>();
    let is_right = outcomes.iter().all(child::Outcome::success)
        && said.contains("generations 1 to 100 by 2 ranks")
        && said.contains("generations 101 to 200 by 3 ranks")
        && left == ["generation-200.npy"];
    let verdict = if is_right { Ok(()) } else { Err(format!("{said}\nleft: {left:?}\n{}", outcomes[1].tail(10))) };
    Ok(Report::single("example checkpoint, resumed", verdict))
}

/// See [`NEW_FOLDER`].
pub(super) struct NewFolder(Option<PathBuf>);

impl NewFolder {
    /// A new folder, if an argument asks for it.
    pub(super) fn of(arguments: &[&str]) -> Result<Self> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        if !arguments.contains(&NEW_FOLDER) {
            return Ok(NewFolder(None));
        }
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("example-{}-{number}", std::process::id()));
        fs::create_dir(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        Ok(NewFolder(Some(folder)))
    }

    fn path(&self) -> &Path {
        self.0.as_deref().unwrap_or(Path::new(""))
    }

    /// The arguments with its name.
    pub(super) fn fill(&self, arguments: impl IntoIterator<Item = String>) -> Vec<String> {
        let own = |word: String| if word == NEW_FOLDER { self.path().display().to_string() } else { word };
        arguments.into_iter().map(own).collect()
    }
}

impl Drop for NewFolder {
    fn drop(&mut self) {
        if let Some(folder) = &self.0 {
            let _ = fs::remove_dir_all(folder);
        }
    }
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
