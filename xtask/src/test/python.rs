//! Files of ours in NumPy, h5py, xarray, zarr-python and PyVista, and theirs in ours: `tests/exchange`, with a Python of its own under `target`.

use super::counts::Report;
use super::{Tier, environment, suites};
use crate::packages::{self, Need};
use crate::{cargo, child};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const NEED: Need = Need { package: "python3-venv", why: "compares files with those of Python's libraries" };
const MODULES: [&str; 6] = ["numpy", "h5py", "h5netcdf", "xarray", "zarr", "pyvista"];
/// They have 300 MB.
const LIMIT: Duration = Duration::from_secs(600);

pub fn run(tier: Tier, install: bool) -> Vec<Report> {
    packages::ensure(&[NEED], install);
    match python(install) {
        Ok(python) => Report::of_part("Python: build", exchange(&python, tier)),
        Err(why) => vec![Report::skipped("Python: files", &format!("{why:#}").replace('\n', " ")).said()],
    }
}

/// A Python with the modules; it is made once.
fn python(install: bool) -> Result<PathBuf> {
    let folder = cargo::target()?.join("python");
    let python = folder.join("bin/python3");
    let imports = format!("import {}", MODULES.join(", "));
    let has_all = |python: &Path| done(Command::new(python).args(["-c", &imports]));
    if has_all(&python).is_ok() {
        return Ok(python);
    }
    if !install {
        bail!("{} has not all of {} (--no-install)", python.display(), MODULES.join(", "));
    }
    done(Command::new("python3").args(["-m", "venv"]).arg(&folder)).context("making an environment of Python")?;
    done(Command::new(folder.join("bin/pip")).args(["install", "-q"]).args(MODULES)).context("pip install")?;
    has_all(&python)?;
    Ok(python)
}

fn done(command: &mut Command) -> Result<()> {
    let outcome = child::run(command, LIMIT)?;
    if outcome.success() { Ok(()) } else { bail!("{}: {}", outcome.end, outcome.tail(2)) }
}

fn exchange(python: &Path, tier: Tier) -> Result<Vec<Report>> {
    let mut reports = Vec::new();
    for suite in
        cargo::build(&["test", "--no-run", "--package", cargo::LIBRARY, "--package", cargo::SUITES, "--test", "exchange"])?
    {
        let mut command = Command::new(&suite.path);
        environment(&mut command, tier);
        command.env("GA_TEST_PYTHON", python).current_dir(&suite.folder);
        reports.push(suites::finish_some("Python: files of both", &mut command, tier)?);
    }
    Ok(reports)
}
