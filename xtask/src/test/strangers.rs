//! Programs, libraries and launchers that do not belong together: one clear error each, and no job.
//!
//! | program | started by | library at run time |
//! |---|---|---|
//! | of each library | its own launcher | the other one under its name, as a wrong `LD_LIBRARY_PATH` or module gives it |
//!
//! The other library's launcher is asked by `tests/mpi`.

use super::counts::Report;
use super::mpi::Library;
use super::{Tier, environment};
use crate::cargo::{self, Program};
use crate::child::{self, End, Outcome};
use anyhow::{Context, Result};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const RANKS: usize = 2;
/// Asking the loader for its list.
const LIMIT: Duration = Duration::from_secs(10);

/// `hello` was built against the library.
pub fn run(library: &Library, other: &Library, hello: &Program, tier: Tier) -> Result<Report> {
    let name = "a program of this library with the other one";
    let Some(file) = installed(other.soname)? else {
        return Ok(Report::skipped(&format!("{}: {name}", library.name), &format!("no {}", other.soname)).said());
    };
    let folder = cargo::target()?.join(format!("strangers-{}", std::process::id()));
    fs::create_dir_all(&folder).context("making a folder for a library")?;
    let done = symlink(file, folder.join(library.soname))
        .context("naming a library")
        .and_then(|()| start(library, hello, &[("LD_LIBRARY_PATH", &folder)], tier));
    let _ = fs::remove_dir_all(&folder);
    let outcome = done?;
    let verdict = refused(&outcome, library.says_of_another);
    Ok(Report::single(&format!("{}: {name}", library.name), verdict).lasting(outcome.elapsed).said())
}

fn start(library: &Library, program: &Program, variables: &[(&str, &Path)], tier: Tier) -> Result<Outcome> {
    // The launcher has libraries of its own: only the program gets the variables.
    let mut command = library.launch(RANKS);
    command.arg("env").args(variables.iter().map(|(name, value)| format!("{name}={}", value.display())));
    command.arg(&program.path).current_dir(cargo::root());
    environment(&mut command, tier);
    child::run(&mut command, tier.limit)
}

fn refused(outcome: &Outcome, says: &str) -> Result<(), String> {
    if !matches!(outcome.end, End::Exit(1..)) {
        return Err(format!("{}\n{}", outcome.end, outcome.tail(20)));
    }
    if !outcome.left_behind.is_empty() {
        return Err(format!("left behind: {}", outcome.left_behind.join("; ")));
    }
    if !outcome.stderr.contains(says) || outcome.stderr.contains("panicked") || outcome.stdout.contains("rank 0 of") {
        return Err(format!("does not say {says:?}, or more than that\n{}", outcome.tail(20)));
    }
    Ok(())
}

/// Where the loader finds a library.
fn installed(soname: &str) -> Result<Option<PathBuf>> {
    let listed = child::run(Command::new("/sbin/ldconfig").arg("-p"), LIMIT)?;
    let line = listed.stdout.lines().find(|line| line.trim_start().starts_with(soname));
    Ok(line.and_then(|line| line.split_once("=> ")).map(|(_, path)| PathBuf::from(path.trim())))
}
