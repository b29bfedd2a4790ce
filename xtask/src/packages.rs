//! Debian packages that make more possible. Nothing here is needed to build or use the crate.

use crate::child;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const INSTALL_LIMIT: Duration = Duration::from_secs(900);

/// A package, and what is missing without it.
#[derive(Clone, Copy, Debug)]
pub struct Need {
    pub package: &'static str,
    pub why: &'static str,
}

/// Whether the package is there now.
pub fn installed(package: &str) -> bool {
    let query = Command::new("dpkg-query").args(["-W", "-f", "${db:Status-Status}", package]).output();
    query.is_ok_and(|answer| answer.status.success() && answer.stdout == b"installed")
}

/// Install what is missing if that is allowed and possible; says what it does, or would do.
pub fn ensure(needs: &[Need], allowed: bool) {
    let missing: Vec<&Need> = needs.iter().filter(|need| !installed(need.package)).collect();
    if missing.is_empty() {
        return;
    }
    for need in &missing {
        eprintln!("missing package {}: {}", need.package, need.why);
    }
    let names: Vec<&str> = missing.iter().map(|need| need.package).collect();
    if !allowed {
        eprintln!("not installed (--no-install): apt-get install {}", names.join(" "));
    } else if !rustix::process::geteuid().is_root() || !Path::new("/usr/bin/apt-get").exists() {
        eprintln!("not installed (needs root and apt-get): apt-get install {}", names.join(" "));
    } else {
        install(&names);
    }
}

fn install(names: &[&str]) {
    eprintln!("installing: apt-get install {}", names.join(" "));
    let apt = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
        child::run(&mut command, INSTALL_LIMIT)
    };
    let update = apt(&["update", "-q"]);
    let install = apt(&[&["install", "-y", "-q", "--no-install-recommends"], names].concat());
    for outcome in [update, install] {
        match outcome {
            Ok(outcome) if outcome.success() => {}
            Ok(outcome) => eprintln!("apt-get: {}\n{}", outcome.end, outcome.tail(3)),
            Err(error) => eprintln!("apt-get: {error:#}"),
        }
    }
}
