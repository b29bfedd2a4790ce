//! Examples as tests: a command line, how it must end, what it must say.

use super::cases::{CASES, Case, NEW_FOLDER};
use super::counts::Report;
use super::{Tier, environment};
use crate::cargo::{self, Program};
use crate::child::{self, End};
use anyhow::{Context, Result};
use signal_hook::consts::SIGINT;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

pub fn run(tier: Tier) -> Result<Vec<Report>> {
    let mut reports: Vec<Report> = cargo::examples()?
        .iter()
        .filter(|(name, _)| !CASES.iter().any(|case| case.example == *name))
        .map(|(name, _)| Report::skipped(&format!("example {name}"), "no command line for it is in the table").said())
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
                Report::single(&name, case.judge(&outcome)).lasting(outcome.elapsed)
            }
        };
        reports.push(report.said());
    }
    let the = |name: &str| {
        let found = built.iter().find(|program| program.name == name && program.is_example());
        found.with_context(|| format!("no example {name}"))
    };
    let (checkpoint, stencil) = (the("checkpoint")?, the("stencil")?);
    let more = [resumed(checkpoint, tier)?, interrupted(stencil, "shared_memory", tier)?, interrupted(stencil, "threads", tier)?];
    reports.extend(more.into_iter().chain([not_interrupted(stencil, tier)?]).map(Report::said));
    Ok(reports)
}

/// In the background of a script SIGINT is ignored, and stays so.
fn not_interrupted(program: &Program, tier: Tier) -> Result<Report> {
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' INT; exec \"$0\" --ranks 2 --n 64 --sweeps 2000"]).arg(&program.path);
    environment(&mut command, tier);
    let outcome = child::interrupt(&mut command, Duration::from_millis(300), tier.limit)?;
    let is_right = outcome.success() && outcome.stderr.is_empty() && outcome.stdout.contains("passed");
    let verdict = if is_right { Ok(()) } else { Err(format!("{}\n{}", outcome.end, outcome.tail(10))) };
    Ok(Report::single("example stencil, which ignores SIGINT", verdict).lasting(outcome.elapsed))
}

/// Ctrl-C ends all ranks by SIGINT, with one line.
fn interrupted(program: &Program, network: &str, tier: Tier) -> Result<Report> {
    const AFTER: Duration = Duration::from_secs(1);
    let mut command = Command::new(&program.path);
    command.args(["--ranks", "3", "--network", network, "--n", "64", "--sweeps", "1000000"]);
    environment(&mut command, tier);
    let outcome = child::interrupt(&mut command, AFTER, tier.limit)?;
    let is_right = outcome.end == End::Signal(SIGINT)
        && outcome.left_behind.is_empty()
        && outcome.stdout.is_empty()
        && outcome.stderr == "stencil: interrupted before its end\n";
    let verdict = if is_right {
        Ok(())
    } else {
        Err(format!("{}, left behind: {:?}\n{}", outcome.end, outcome.left_behind, outcome.tail(10)))
    };
    Ok(Report::single(&format!("example stencil over {network}, interrupted"), verdict).lasting(outcome.elapsed))
}

/// A second start goes on where the first one stopped, with more ranks and over another network, and removes what a killed one has left.
fn resumed(program: &Program, tier: Tier) -> Result<Report> {
    let folder = NewFolder::of(&[NEW_FOLDER])?;
    let mut outcomes = Vec::new();
    for (ranks, network) in [("2", "shared_memory"), ("3", "threads")] {
        fs::create_dir(folder.path().join(".checkpoint-0.part"))?;
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
        && left == ["checkpoint-6"];
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
            End::Exit(0) => self.succeeds,
            End::Exit(_) => !self.succeeds && !outcome.stderr.contains("panicked at"),
            End::Signal(_) | End::TimedOut(_) => false,
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
