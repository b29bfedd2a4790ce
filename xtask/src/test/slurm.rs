//! Programs that Slurm's `srun` starts by itself, without a library's launcher: on a Slurm of this machine alone, which lives as long as the
//! test (`slurm.sh`). It takes some seconds.
//!
//! `srun` speaks one of several protocols to what it starts (`--mpi`), and each library understands its own. With the right one the ranks
//! are one job. With another one MPICH takes each process for a program of its own, which we refuse, and Open MPI ends the process,
//! before which we say what to do.

use super::counts::Report;
use super::{Tier, environment};
use crate::cargo::{self, Program};
use crate::child;
use crate::packages::Need;
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

pub const NEEDS: &[Need] = &[
    Need { package: "slurm-wlm", why: "starts programs of the conduit mpi by srun" },
    Need { package: "munge", why: "without it Slurm does not start" },
];

const SCRIPT: &str = include_str!("slurm.sh");
/// Of the script, which waits for its daemons itself.
const LIMIT: Duration = Duration::from_secs(120);

/// What `srun` says when Slurm's own plugin for a protocol fails, now and then, before a program runs.
const NOT_LAUNCHED: &str = "launch failed: Unspecified error";

/// What a start by `srun` must come to.
#[derive(Clone, Copy, Debug)]
pub enum Comes {
    /// The ranks are one job, and say over which network.
    Well(&'static str),
    /// It does not start, and each of these words is said.
    Refused(&'static [&'static str]),
}

/// Starts `hello` or the suite `failures` by `srun` with each of some options; one skipped report where there is no Slurm.
pub fn run(name: &str, starts: &[(&str, Comes)], program: &Program, tier: Tier) -> Result<Vec<Report>> {
    let skipped = |why: &str| Ok(vec![Report::skipped(&format!("{name}: srun"), why).said()]);
    if let Some(why) = missing() {
        return skipped(&why);
    }
    let folder = std::env::temp_dir().join(format!("global-arrays-slurm-{}", std::process::id()));
    fs::create_dir(&folder).context("making a folder for Slurm")?;
    let said = start(&folder, starts, program, tier);
    let _ = fs::remove_dir_all(&folder);
    let outcome = said?;
    if let Some((_, why)) = outcome.stdout.split_once("== no Slurm: ") {
        return skipped(&format!("Slurm does not start here: {}", why.trim().replace('\n', "; ")));
    }
    let mut reports = Vec::new();
    for (option, comes) in starts {
        let name = format!("{name}: srun {option}");
        let report = match said_with(&outcome.stdout, option) {
            Some((said, _)) if said.contains(NOT_LAUNCHED) => Report::skipped(&name, "Slurm did not launch the tasks"),
            Some((said, status)) => Report::single(&name, judge(said, status, *comes)),
            None => Report::single(&name, Err(format!("never started: {}\n{}", outcome.end, outcome.tail(30)))),
        };
        reports.push(report.said());
    }
    if let Some(last) = reports.last_mut() {
        last.seconds = outcome.elapsed.as_secs_f64();
    }
    Ok(reports)
}

/// Why there can be no Slurm here.
fn missing() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("needs root".to_owned());
    }
    let there =
        |program: &str| ["/usr/sbin", "/usr/bin", "/sbin", "/bin"].iter().any(|folder| Path::new(folder).join(program).exists());
    let programs = ["slurmctld", "slurmd", "srun", "munged", "ip", "unshare"];
    programs.into_iter().find(|program| !there(program)).map(|program| format!("no {program}"))
}

fn start(folder: &Path, starts: &[(&str, Comes)], program: &Program, tier: Tier) -> Result<child::Outcome> {
    let script = folder.join("slurm.sh");
    fs::write(&script, SCRIPT).context("writing the script that starts Slurm")?;
    let mut command = Command::new("unshare");
    command.args(["--net", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc", "sh"]);
    command.args([&script, folder, &program.path]).args(starts.iter().map(|(option, _)| option));
    command.current_dir(cargo::root());
    environment(&mut command, tier);
    super::mpi::variables(&mut command);
    // What the suite does; `hello` reads no such variable.
    command.env("GA_TEST_CASE", "start_and_finish");
    child::run(&mut command, LIMIT)
}

/// What a start printed, and its status.
fn said_with<'a>(all: &'a str, option: &str) -> Option<(&'a str, i32)> {
    let (_, from) = all.split_once(&format!("== {option}\n"))?;
    let (said, rest) = from.split_once("== status ")?;
    Some((said, rest.lines().next()?.trim().parse().ok()?))
}

fn judge(said: &str, status: i32, comes: Comes) -> Result<(), String> {
    let (well, words): (bool, &[&str]) = match comes {
        Comes::Well(network) => (true, &["rank 0 of 2", "rank 1 of 2", network]),
        Comes::Refused(words) => (false, words),
    };
    if (status == 0) != well {
        return Err(format!("status {status}\n{said}"));
    }
    match words.iter().find(|word| !said.contains(*word)) {
        Some(word) => Err(format!("does not say {word:?}\n{said}")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str =
        "== --mpi=a\nrank 0 of 2, over mpi\nrank 1 of 2, over mpi\n== status 0\n== --mpi=b\nuse --mpi=a\n== status 1\n";

    #[test]
    fn each_start_is_judged_by_what_it_said() {
        let judged = |option, comes| said_with(SAID, option).map(|(said, status)| judge(said, status, comes).is_ok());
        assert_eq!(judged("--mpi=a", Comes::Well("over mpi")), Some(true));
        assert_eq!(judged("--mpi=a", Comes::Refused(&[])), Some(false));
        assert_eq!(judged("--mpi=b", Comes::Well("over mpi")), Some(false));
        assert_eq!(judged("--mpi=b", Comes::Refused(&["--mpi=a"])), Some(true));
        assert_eq!(judged("--mpi=b", Comes::Refused(&["--mpi=c"])), Some(false));
        assert_eq!(judged("--mpi=c", Comes::Well("over mpi")), None);
    }
}
