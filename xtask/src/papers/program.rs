//! The programs, built as a user's release build would be, and run over a modelled machine.

use crate::{cargo, child};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// Of one run.
const LIMIT: Duration = Duration::from_secs(3600);

const APPLICATIONS: [&str; 5] = ["lu", "lennard_jones", "sph", "random_access", "subsurface"];

#[derive(Debug)]
pub struct Programs {
    /// `benches/papers`.
    benchmarks: PathBuf,
    applications: Vec<(&'static str, PathBuf)>,
}

/// Where a program runs.
#[derive(Clone, Copy, Debug)]
pub struct Job<'n> {
    pub network: &'n str,
    pub ranks: usize,
    /// If not the machine's own.
    pub ranks_per_node: Option<usize>,
    /// Nothing is computed, only declared: for a problem that is too large.
    pub skips: bool,
    /// More of the environment.
    pub variables: &'n [(&'n str, &'n str)],
}

impl Programs {
    pub fn build() -> Result<Self> {
        let built = cargo::build(&cargo::released(&["papers"], &APPLICATIONS))?;
        let applications = APPLICATIONS.iter().map(|&name| Ok((name, cargo::path(&built, name)?))).collect::<Result<_>>()?;
        Ok(Programs { benchmarks: cargo::path(&built, "papers")?, applications })
    }

    /// Sizes and microseconds of one of the benchmarks.
    pub fn benchmark(&self, name: &str, job: Job<'_>) -> Result<Vec<(usize, f64)>> {
        let mut command = Command::new(&self.benchmarks);
        let lines = run(command.arg(name), job)?;
        let measured: Vec<_> = lines.lines().filter_map(|line| measurement(line, name)).collect();
        ensure!(!measured.is_empty(), "{name} has measured nothing");
        Ok(measured)
    }

    /// The line of JSON of an application whose own checks hold.
    pub fn application(&self, name: &str, arguments: &[&str], job: Job<'_>) -> Result<Value> {
        let (_, path) = self.applications.iter().find(|(known, _)| *known == name).context("a known application")?;
        let lines = run(Command::new(path).args(arguments).arg("--json"), job)?;
        let report = lines.lines().find_map(|line| serde_json::from_str::<Value>(line).ok().filter(Value::is_object));
        let report = report.with_context(|| format!("{name} has printed no JSON"))?;
        // What is not computed cannot be checked.
        ensure!(report["passed"] == true || job.skips, "{name}: its own check failed");
        Ok(report)
    }
}

/// A number of a report.
pub fn number(report: &Value, key: &str) -> Result<f64> {
    report[key].as_f64().with_context(|| format!("a report has no number {key}"))
}

fn measurement(line: &str, name: &str) -> Option<(usize, f64)> {
    let (bytes, micros) = line.strip_prefix(name)?.strip_prefix(',')?.split_once(',')?;
    Some((bytes.parse().ok()?, micros.parse().ok()?))
}

fn run(command: &mut Command, job: Job<'_>) -> Result<String> {
    command.env("GA_NETWORK", job.network).env("GA_RANKS", job.ranks.to_string());
    command.env("GA_COROUTINES", "1").env("GA_COMPUTING", if job.skips { "skip" } else { "declared" });
    for name in ["GA_CONNECT", "GA_CONNECTIONS", "GA_FAULTS", "GA_RANKS_PER_NODE", "GA_SEED", "GA_STATS", "GA_TRACE"] {
        command.env_remove(name);
    }
    command.envs(job.variables.iter().copied());
    command.envs(job.ranks_per_node.map(|count| ("GA_RANKS_PER_NODE", count.to_string())));
    let outcome = child::run(command, LIMIT)?;
    eprintln!("{:.0} s: {:?} on {} ranks", outcome.elapsed.as_secs_f64(), command.get_program(), job.ranks);
    Ok(outcome.succeeded(format_args!("{command:?} on {} ranks", job.ranks))?.stdout)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_benchmarks() {
        assert_eq!(measurement("get,16,1.3034", "get"), Some((16, 1.3034)));
        assert_eq!(measurement("get,16,1.3034", "put"), None);
        assert_eq!(measurement("get,16", "get"), None);
    }
}
