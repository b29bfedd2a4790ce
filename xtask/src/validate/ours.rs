//! Our side: the program `patterns` over a machine in a file.

use super::RUN_LIMIT;
use super::cases::Case;
use super::machine::{MACHINE, Network, file};
use crate::{cargo, child};
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds the program, as a user's release build would.
pub fn build() -> Result<PathBuf> {
    cargo::path(&cargo::build(&cargo::released(&["patterns"], &[]))?, "patterns")
}

/// Seconds of each case.
pub fn times(program: &Path, folder: &Path, network: Network, ranks: usize, cases: &[Case]) -> Result<Vec<f64>> {
    let machine = file(folder, network, ranks, "toml");
    fs::write(&machine, MACHINE.toml(network)).with_context(|| format!("cannot write {}", machine.display()))?;
    let mut command = Command::new(program);
    command
        .env("GA_NETWORK", format!("simulated:{}", machine.display()))
        .env("GA_RANKS", ranks.to_string())
        .env("GA_COROUTINES", "1");
    command.args(cases.iter().map(Case::to_string));
    let outcome = child::run(&mut command, RUN_LIMIT)?.succeeded(format_args!("patterns on {ranks} ranks"))?;
    read(&outcome.stdout, cases)
}

/// What either program prints: a line for each case, with its name and its seconds.
pub fn read(output: &str, cases: &[Case]) -> Result<Vec<f64>> {
    let mut lines = output.lines();
    let mut seconds = |case: &Case| {
        let (name, seconds) = lines.next()?.split_once(' ')?;
        seconds.parse::<f64>().ok().filter(|seconds| name == case.to_string() && *seconds > 0.0)
    };
    cases.iter().map(|case| seconds(case).with_context(|| format!("no time of {case} in:\n{output}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_case_has_its_line() {
        let cases = [Case::Shift { distance: 2, bytes: 8 }, Case::AllToAll { bytes: 8 }];
        assert_eq!(read("shift:2:8 0.5\nall_to_all:8 1e-6\n", &cases).unwrap(), [0.5, 1e-6]);
        for wrong in ["shift:2:8 0.5\n", "shift:1:8 0.5\nall_to_all:8 1\n", "shift:2:8 0\nall_to_all:8 1\n", ""] {
            assert!(read(wrong, &cases).is_err(), "{wrong}");
        }
    }
}
