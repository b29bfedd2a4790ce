//! What the command lines of the programs share: `--ranks`, `--network`, `--stats`, `--json`, a bar on the terminal, and one line for an
//! error.

use std::fmt::Display;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use global_arrays::prelude::*;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How to start the job and how to report.
#[derive(Debug, Clone, Args)]
pub(crate) struct Start {
    /// Ranks to start; by default one for each core
    #[arg(long, value_parser = positive)]
    pub(crate) ranks: Option<usize>,
    /// Network between them, by name
    #[arg(long)]
    pub(crate) network: Option<String>,
    /// Count who moves what to whom, and print it as a table at the end
    #[arg(long)]
    pub(crate) stats: bool,
    /// Print one line of JSON instead of a report
    #[arg(long)]
    pub(crate) json: bool,
}

impl Start {
    /// What was asked for; the rest comes from the environment, else from the machine.
    pub(crate) fn launch(&self) -> Launch {
        let mut launch = Launch::new();
        if let Some(ranks) = self.ranks {
            launch = launch.ranks(ranks);
        }
        if let Some(network) = &self.network {
            launch = launch.network(network);
        }
        if self.stats {
            launch = launch.stats(true);
        }
        launch
    }

    /// Refuses a flag that needs numbers where none are computed.
    #[allow(dead_code, reason = "not every program has such a flag")]
    pub(crate) fn needs_computing(&self, job: &Job, flag: &str, is_given: bool) -> Result<(), String> {
        if is_given && job.skips() {
            return Err(format!("{flag} cannot be used with GA_COMPUTING=skip: nothing is computed"));
        }
        Ok(())
    }

    /// Rank 0 prints the report: lines for people, or one of JSON.
    pub(crate) fn report(&self, job: &Job, people: impl Display, json: &serde_json::Value) -> Result<(), Error> {
        if job.rank() != 0 {
            return Ok(());
        }
        let mut out = std::io::stdout();
        if self.json { writeln!(out, "{json}") } else { writeln!(out, "{people}") }.map_err(Error::other)
    }
}

/// Whether there is a folder for a file that is to be written.
#[allow(dead_code, reason = "not every program writes files")]
pub(crate) fn folder_exists(file: &Path) -> Result<(), String> {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() && !folder.is_dir() => {
            Err(format!("no folder {} for {}", folder.display(), file.display()))
        }
        _ => Ok(()),
    }
}

/// A whole number of at least 1.
pub(crate) fn positive(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("at least 1 is needed".into()),
        Ok(number) => Ok(number),
        Err(_) => Err("not a whole number of at least 1".into()),
    }
}

/// A bar on rank 0's terminal, if it has one; `unit` is what is counted, in the plural.
pub(crate) fn progress_bar(job: &Job, length: usize, unit: &str) -> ProgressBar {
    let shown = job.rank() == 0 && std::io::stderr().is_terminal();
    let target = if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let style = ProgressStyle::with_template(&format!("{{bar:40}} {{pos}}/{{len}} {unit}, {{eta}} left"))
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::with_draw_target(Some(length as u64), target).with_style(style)
}

/// The end of `main`: one line for an error.
pub(crate) fn exit(program: &str, outcome: Result<(), impl Display>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{program}: {message}");
            ExitCode::FAILURE
        }
    }
}
