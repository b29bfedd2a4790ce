//! SimGrid's side: `benches/simgrid/patterns.c`, compiled by `smpicc` and run by `smpirun`.

use super::RUN_LIMIT;
use super::cases::Case;
use super::machine::{MACHINE, Machine, Network, file};
use super::ours::read;
use crate::{cargo, child};
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Debian's, with `smpicc` and `smpirun`.
pub const PACKAGE: &str = "libsimgrid-dev";

const BUILD_LIMIT: Duration = Duration::from_secs(300);

pub fn is_installed() -> bool {
    let answers = |name: &str| Command::new(name).arg("-version").output().is_ok_and(|answer| answer.status.success());
    answers("smpicc") && answers("smpirun")
}

pub fn build(folder: &Path) -> Result<PathBuf> {
    let program = folder.join("patterns");
    let mut compiler = Command::new("smpicc");
    compiler.args(["-O2", "-Wall", "-Wextra", "-o"]).arg(&program).arg(cargo::root().join("benches/simgrid/patterns.c"));
    child::run(&mut compiler, BUILD_LIMIT)?.succeeded("smpicc")?;
    Ok(program)
}

/// Seconds of each case.
pub fn times(program: &Path, folder: &Path, network: Network, ranks: usize, cases: &[Case]) -> Result<Vec<f64>> {
    let (platform, hosts) = (file(folder, network, ranks, "xml"), file(folder, network, ranks, "hosts"));
    for (path, text) in [(&platform, MACHINE.platform(network, ranks)), (&hosts, Machine::hosts(ranks))] {
        fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    let mut command = Command::new("smpirun");
    command.arg("-platform").arg(platform).arg("-hostfile").arg(hosts).args(["-np", &ranks.to_string()]);
    // Its programs and temporary files are found from there.
    command.current_dir(folder).arg("--log=root.thres:warning").args(MACHINE.smpi()).arg(program);
    command.arg(MACHINE.window.to_string()).arg(format!("{:e}", MACHINE.answer(network))).args(cases.iter().map(Case::to_string));
    let outcome = child::run(&mut command, RUN_LIMIT)?.succeeded(format_args!("smpirun on {ranks} ranks"))?;
    read(&outcome.stdout, cases)
}
