//! What cargo knows and builds.

use crate::child;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const BUILD_LIMIT: Duration = Duration::from_secs(1800);

/// A program that cargo has built.
#[derive(Clone, Debug)]
pub struct Program {
    pub package: String,
    /// Name of the target: of the program, the test file or the library.
    pub name: String,
    /// `lib`, `test`, `example`, `bin` or `bench`.
    pub kind: String,
    /// Its tests, not itself.
    pub test: bool,
    pub path: PathBuf,
    /// Where cargo would run it.
    pub folder: PathBuf,
}

impl Program {
    /// A program below `examples`: a package of its own, or one of the crate's short examples.
    pub fn is_example(&self) -> bool {
        !self.test && (self.kind == "example" || self.kind == "bin")
    }
}

/// The crate and its suites.
pub const LIBRARY: &str = "global-arrays";
pub const SUITES: &str = "global-arrays-tests";

/// Optimizes the library under the suites: that saves more time in the tests than it costs in the build. Debug assertions and overflow checks
/// stay on.
pub const OPTIMIZED: [&str; 2] = ["--config", "profile.dev.package.global-arrays.opt-level=1"];

/// Folders of what is built against MPI libraries. `.ci/run` counts them in the same order.
const MPI_LIBRARIES: [&str; 2] = ["mpich", "openmpi"];

/// The beginning of a release build, of all packages whatever it then names: cargo compiles the library again for each set of features that its
/// dependencies have, and they have those that the packages of a call ask for. So all calls share one library, and each MPI library has one.
pub const RELEASE: &[&str] = &["build", "--release", "--workspace", "--exclude", "xtask"];

/// What builds every program below `examples`.
pub const EXAMPLES: &[&str] = &["build", "--release", "--workspace", "--exclude", "xtask", "--bins", "--examples"];

/// A command of the cargo that started us.
pub fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(root());
    command
}

/// The folder of the workspace.
pub fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own).to_owned()
}

/// The folder that cargo builds into.
pub fn target() -> Result<PathBuf> {
    Ok(PathBuf::from(metadata()?["target_directory"].as_str().context("cargo metadata names no target directory")?))
}

/// A folder below that one, which is made if it is not there.
pub fn folder(name: &str) -> Result<PathBuf> {
    let folder = target()?.join(name);
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    Ok(folder)
}

/// Every program below `examples`, with its kind: `example` or `bin`.
pub fn examples() -> Result<Vec<(String, String)>> {
    let metadata = metadata()?;
    let packages = metadata["packages"].as_array().context("cargo metadata lists no packages")?;
    let mut examples = Vec::new();
    for package in packages.iter().filter(|package| !["xtask", "ga-run"].iter().any(|tool| package["name"] == *tool)) {
        let targets = package["targets"].as_array().into_iter().flatten();
        let all =
            targets.filter_map(|target| Some((target["name"].as_str()?.to_owned(), target["kind"][0].as_str()?.to_owned())));
        examples.extend(all.filter(|(_, kind)| kind == "example" || kind == "bin"));
    }
    Ok(examples)
}

fn metadata() -> Result<Value> {
    let outcome = child::run(&mut command(&["metadata", "--no-deps", "--format-version", "1"]), BUILD_LIMIT)?;
    let outcome = outcome.succeeded("cargo metadata")?;
    serde_json::from_str(&outcome.stdout).context("cargo metadata is no JSON")
}

/// What builds benches and programs as a user's release build would.
pub fn released<'a>(benches: &[&'a str], programs: &[&'a str]) -> Vec<&'a str> {
    let benches = benches.iter().flat_map(|bench| ["--bench", bench]);
    let programs = programs.iter().flat_map(|program| ["--bin", program]);
    RELEASE.iter().copied().chain(benches).chain(programs).collect()
}

/// Where a program is that was built.
pub fn path(built: &[Program], name: &str) -> Result<PathBuf> {
    let path = built.iter().find(|program| program.name == name).map(|program| program.path.clone());
    path.with_context(|| format!("cargo has not built {name}"))
}

/// Build, showing the compiler's messages, and list the programs that came out.
pub fn build(arguments: &[&str]) -> Result<Vec<Program>> {
    finish_build(command(arguments), arguments)
}

/// The same with flags for the compiler in place of the caller's.
pub fn build_with_flags(flags: &str, arguments: &[&str]) -> Result<Vec<Program>> {
    flagged_build(command(arguments), flags, arguments)
}

/// The same with the feature `mpi`, against one of Debian's libraries. Programs are put into a folder of that library below the target folder: the
/// next build, with another library or with none, writes over those in cargo's folder.
///
/// The build script of `mpi-sys` looks for the library, and cargo runs it again only if its profile changes. So each library has a level of
/// optimization for `mpi-sys` that no other build has. All crates that know nothing of MPI are built once.
pub fn build_for_mpi(library: &str, arguments: &[&str]) -> Result<Vec<Program>> {
    let level = 1 + MPI_LIBRARIES.iter().position(|name| *name == library).with_context(|| format!("no level for {library}"))?;
    let mut command = command(arguments);
    command.env("MPICC", format!("mpicc.{library}")).args(["--features", "mpi"]);
    for profile in ["dev", "release"] {
        command.arg("--config").arg(format!("profile.{profile}.package.mpi-sys.opt-level={level}"));
    }
    let mut programs = finish_build(command, arguments)?;
    let own = target()?.join(library);
    for program in programs.iter_mut().filter(|program| program.is_example()) {
        program.path = put_into(&own, &program.path)?;
    }
    Ok(programs)
}

/// Puts a program into a folder, below which it has a folder for its profile.
fn put_into(folder: &Path, program: &Path) -> Result<PathBuf> {
    let (Some(profile), Some(name)) = (program.parent().and_then(Path::file_name), program.file_name()) else {
        bail!("{} is in no folder", program.display());
    };
    let folder = folder.join(profile);
    let path = folder.join(name);
    let put = fs::create_dir_all(&folder).and_then(|()| fs::copy(program, &path));
    put.with_context(|| format!("cannot copy {} to {}", program.display(), path.display()))?;
    Ok(path)
}

/// The same by the nightly toolchain.
pub fn build_nightly(flags: &str, arguments: &[&str]) -> Result<Vec<Program>> {
    let mut command = nightly("cargo", arguments);
    command.current_dir(root());
    flagged_build(command, flags, arguments)
}

/// The target that the nightly toolchain builds for, or why it cannot build the standard library.
pub fn nightly_host() -> Result<String, String> {
    let answer = nightly("rustc", &["--print", "host-tuple", "--print", "sysroot"]).output();
    let answer = answer.ok().filter(|answer| answer.status.success()).ok_or("no nightly toolchain (rustup)")?;
    let answer = String::from_utf8_lossy(&answer.stdout).into_owned();
    let (host, sysroot) = answer.trim().split_once('\n').ok_or("a nightly toolchain that does not name its host")?;
    if !Path::new(sysroot).join("lib/rustlib/src/rust/library").is_dir() {
        return Err("the nightly toolchain has no rust-src".to_owned());
    }
    Ok(host.to_owned())
}

fn nightly(tool: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", "nightly", tool]).args(arguments);
    command
}

fn flagged_build(mut command: Command, flags: &str, arguments: &[&str]) -> Result<Vec<Program>> {
    command.env("RUSTFLAGS", flags).env_remove("CARGO_ENCODED_RUSTFLAGS");
    finish_build(command, arguments)
}

fn finish_build(mut command: Command, arguments: &[&str]) -> Result<Vec<Program>> {
    command.arg("--message-format=json-render-diagnostics");
    let outcome = child::run_showing_errors(&mut command, BUILD_LIMIT)?;
    if !outcome.success() {
        bail!("cargo {}: {}", arguments.join(" "), outcome.end);
    }
    Ok(outcome.stdout.lines().filter_map(|line| program(&serde_json::from_str(line).ok()?)).collect())
}

fn program(message: &Value) -> Option<Program> {
    let manifest = Path::new(message["manifest_path"].as_str()?);
    let folder = manifest.parent()?.to_owned();
    let package = message["package_id"].as_str()?;
    // path+file:///folder/name#version, or ...folder#name@version where they differ
    let package = match package.rsplit_once('#') {
        Some((_, tail)) if tail.contains('@') => tail.split('@').next()?.to_owned(),
        Some((path, _)) => path.rsplit('/').next()?.to_owned(),
        None => package.to_owned(),
    };
    Some(Program {
        package,
        name: message["target"]["name"].as_str()?.to_owned(),
        kind: message["target"]["kind"][0].as_str()?.to_owned(),
        test: message["profile"]["test"] == true,
        path: PathBuf::from(message["executable"].as_str()?),
        folder,
    })
}
