//! What runs, here and over the model.

use super::machine::Figures;
use crate::compare::{self, Library};
use crate::{cargo, child};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Both libraries would do: a model is fitted to one.
const LIBRARY: Library = Library::Mpich;
/// Of one run.
const LIMIT: Duration = Duration::from_secs(120);

/// A program whose time is predicted.
#[derive(Debug)]
pub struct Program {
    pub name: &'static str,
    arguments: &'static [&'static str],
}

pub const PROGRAMS: &[Program] = &[
    Program { name: "stencil", arguments: &["--n", "256", "--sweeps", "64"] },
    Program { name: "lu", arguments: &["--n", "3072"] },
    Program { name: "random_access", arguments: &["--log2-size", "22", "--way", "buckets"] },
    Program { name: "lennard_jones", arguments: &["--fcc", "16", "--steps", "200"] },
];

/// Where a program runs.
#[derive(Clone, Copy, Debug)]
pub enum Place<'f> {
    /// On this machine, over [`LIBRARY`].
    Here,
    /// Over the machine in a file.
    Modelled(&'f Path),
}

#[derive(Debug)]
pub struct Programs {
    figures: PathBuf,
    /// As [`PROGRAMS`].
    applications: Vec<PathBuf>,
}

impl Programs {
    /// Builds them with MPI, as a user's release build would.
    pub fn build() -> Result<Self> {
        let names: Vec<&str> = PROGRAMS.iter().map(|program| program.name).collect();
        let built = cargo::build_for_mpi(LIBRARY.name(), &cargo::released(&["loggp"], &names))?;
        let applications = names.iter().map(|name| cargo::path(&built, name)).collect::<Result<_>>()?;
        Ok(Programs { figures: cargo::path(&built, "loggp")?, applications })
    }

    pub fn figures(&self, place: Place<'_>) -> Result<Figures> {
        Figures::read(&run(&self.figures, &[], 2, place)?)
    }

    /// What a program says of its time, whose own checks hold.
    pub fn seconds(&self, program: &Program, ranks: usize, place: Place<'_>) -> Result<f64> {
        let known = PROGRAMS.iter().zip(&self.applications).find(|(known, _)| known.name == program.name);
        let (_, path) = known.context("a known program")?;
        let lines = run(path, &[program.arguments, &["--json"]].concat(), ranks, place)?;
        let report = lines.lines().find_map(|line| serde_json::from_str::<Value>(line).ok().filter(Value::is_object));
        let report = report.with_context(|| format!("{} has printed no JSON", program.name))?;
        ensure!(report["passed"] != false, "{}: its own check failed", program.name);
        report["seconds"].as_f64().with_context(|| format!("the report of {} has no seconds", program.name))
    }
}

fn run(program: &Path, arguments: &[&str], ranks: usize, place: Place<'_>) -> Result<String> {
    let mut command = match place {
        Place::Here => {
            let mut command = LIBRARY.mpirun(&ranks.to_string(), compare::Place::Between(LIBRARY));
            if ranks == 2 {
                command.args(["-bind-to", "core"]);
            }
            command.arg(program);
            command
        }
        Place::Modelled(file) => {
            let mut command = Command::new(program);
            command.env("GA_NETWORK", format!("simulated:{}", file.display())).env("GA_RANKS", ranks.to_string());
            // One thread, which stays on a core as ranks do here.
            command.env("GA_COMPUTING", "measured").env("GA_COROUTINES", "1").env_remove("GA_RANKS_PER_NODE");
            command
        }
    };
    let outcome = child::run(command.args(arguments).env_remove("GA_SEED"), LIMIT)?;
    Ok(outcome.succeeded(format_args!("{command:?}"))?.stdout)
}
