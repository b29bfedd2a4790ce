//! Suites and examples under MPI, once for each library: built with the feature `mpi` against it, and started by its launcher.
//!
//! | | standard tier | `--long` |
//! |---|---|---|
//! | suites and examples, built | without optimization | with it |
//! | unit tests of the conduit | | all |
//! | suites | each of 1, 2, 3, 4 and 7 ranks once, with nodes of one or two ranks or not | all of them with all |
//! | failures | a rank that dies or goes wrong alone | every program |
//! | what does not belong together (`strangers`) | all | all |
//! | programs without MPI under its launcher (`launched`) | 2, 4 and 7 ranks | all |
//! | programs that `srun` starts (`slurm`) | all | all |
//! | a program that is interrupted | once | once |
//! | examples | the first case of each, every rank a node | every case, and the first of each on 1, 2, 3, 4 and 7 ranks |
//! | separate hosts (`hosts`) | | `hello`, `put_get`, `lu` |
//! | a rank, a thread, a host, a cable is ended on separate hosts (`kills`) | once each, or up to 4 times where the launcher may lose the words | 25 times each |
//!
//! Suites set what their launcher needs themselves (`tests/runner/launched.rs`), with the same reasons as here.

use super::cases::{CASES, Case};
use super::counts::Report;
use super::examples::NewFolder;
use super::only::Part;
use super::slurm::{self, Comes};
use super::{Tier, environment, hosts, launched, strangers, suites};
use crate::cargo::{self, Program};
use crate::child::{self, End};
use crate::packages::{self, Need};
use anyhow::{Context, Result};
use signal_hook::consts::SIGPIPE;
use std::collections::BTreeSet;
use std::process::Command;
use std::time::Duration;

/// An MPI library of Debian.
#[derive(Debug)]
pub struct Library {
    pub name: &'static str,
    part: Part,
    /// Of its programs, below the target folder.
    folder: &'static str,
    pub launcher: &'static str,
    /// Names hosts to the launcher, `host:ranks,...`.
    pub hosts: &'static str,
    /// Hands a variable on to the ranks, where the launcher does not hand on all.
    pub export: Option<&'static str>,
    packages: [&'static str; 2],
    /// The loader's name for it.
    pub soname: &'static str,
    /// What a program that was built against it says of the other one in its place.
    pub says_of_another: &'static str,
    /// Options of `srun`, and what becomes of a program that it starts with them.
    pub under_srun: &'static [(&'static str, Comes)],
}

const LIBRARIES: [Library; 2] = [
    Library {
        name: "MPICH",
        part: Part::Mpich,
        folder: "mpich",
        launcher: "mpirun.mpich",
        hosts: "-hosts",
        export: None,
        packages: ["libmpich-dev", "mpich"],
        soname: "libmpich.so.12",
        says_of_another: "this program was built with MPICH, but the MPI library that it finds at run time is \"Open MPI",
        under_srun: &[
            ("--mpi=pmi2", Comes::Well("over mpi")),
            (
                "--mpi=none",
                Comes::Refused(&["Error: cannot start a job", "rank 0 of 2 that srun started", "--mpi=pmi2", "srun --mpi=list"]),
            ),
            ("--mpi=pmix", Comes::Refused(&["Error: cannot start a job", "--mpi=pmi2"])),
        ],
    },
    Library {
        name: "Open MPI",
        part: Part::Openmpi,
        folder: "openmpi",
        launcher: "mpirun.openmpi",
        hosts: "-host",
        export: Some("-x"),
        packages: ["libopenmpi-dev", "openmpi-bin"],
        soname: "libmpi.so.40",
        // The loader, before the program begins: handles of Open MPI are addresses.
        says_of_another: "undefined symbol: ompi_",
        under_srun: &[
            ("--mpi=pmix", Comes::Well("over mpi")),
            (
                "--mpi=none",
                Comes::Refused(&["global-arrays: srun started this program without PMIx", "--mpi=pmix", "srun --mpi=list"]),
            ),
            ("--mpi=pmi2", Comes::Refused(&["global-arrays: srun started this program without PMIx"])),
        ],
    },
];

const BINDGEN: &str = "libclang-dev";

const NEEDS: &[Need] = &[
    Need { package: "libmpich-dev", why: "builds the conduit mpi against MPICH" },
    Need { package: "mpich", why: "starts the tests of the conduit mpi under MPICH" },
    Need { package: "libopenmpi-dev", why: "builds the conduit mpi against Open MPI" },
    Need { package: "openmpi-bin", why: "starts the tests of the conduit mpi under Open MPI" },
    Need { package: BINDGEN, why: "reads MPI's header for the conduit mpi (bindgen)" },
];

/// The suites do without.
const SOLVERS: &[Need] = &[
    Need { package: "libscalapack-openmpi2.2", why: "works on parts of arrays" },
    Need { package: "libscalapack-mpich2.2", why: "works on parts of arrays over MPICH" },
    Need { package: "libelpa19", why: "works on parts of arrays" },
];

/// Suites that have cases under MPI.
const SUITES: [&str; 4] = ["conformance", "random_programs", "failures", "mpi"];
/// Modules of the library that the feature adds, or adds to.
const MODULES: [&str; 5] =
    ["comm::start::bootstrap::", "comm::start::launcher::", "comm::mpi::", "comm::start::table::", "comm::node::"];
/// All numbers of ranks that a program must work on.
const RANKS: [usize; 5] = [1, 2, 3, 4, 7];

/// Every library that is wanted, whatever becomes of each.
pub fn run(tier: Tier, install: bool, wanted: impl Fn(Part) -> bool) -> Vec<Report> {
    let libraries: Vec<&Library> = LIBRARIES.iter().filter(|library| wanted(library.part) || wanted(Part::Kills)).collect();
    if !libraries.is_empty() {
        packages::ensure(&[NEEDS, slurm::NEEDS].concat(), install);
        packages::ensure(SOLVERS, install);
    }
    let mut reports = Vec::new();
    if LIBRARIES.iter().any(|library| wanted(library.part)) {
        reports.extend(Report::of_part("without MPI: srun", launched::under_srun(tier)));
    }
    for library in libraries {
        let missing = library.missing();
        if !missing.is_empty() {
            let why = format!("no package {}", missing.join(", "));
            reports.push(Report::skipped(&format!("{}: all", library.name), &why).said());
            continue;
        }
        let run = if wanted(library.part) { library.run(tier) } else { library.kills(tier) };
        reports.extend(Report::of_part(&format!("{}: build", library.name), run));
    }
    reports
}

/// All programs with the feature `mpi`, built against MPICH; none where it is missing.
pub fn programs_of_mpich(tier: Tier) -> Option<Result<Vec<Program>>> {
    let mpich = LIBRARIES.iter().find(|library| library.part == Part::Mpich)?;
    mpich.missing().is_empty().then(|| mpich.programs(tier))
}

impl Library {
    /// Packages that are needed and not there.
    fn missing(&self) -> Vec<&'static str> {
        self.packages.iter().chain([&BINDGEN]).copied().filter(|package| !packages::installed(package)).collect()
    }

    /// With optimization in the long tier only: to build takes twice as long as without, and a case here waits more than it computes.
    fn programs(&self, tier: Tier) -> Result<Vec<Program>> {
        let mut arguments: Vec<&str> = cargo::EXAMPLES.iter().copied().filter(|&word| tier.long || word != "--release").collect();
        // Its tests are optimized (Cargo.toml), which takes long to build; here it runs for half a second.
        arguments.extend(["--config", "profile.dev.package.subsurface.opt-level=0"]);
        SUITES.iter().for_each(|suite| arguments.extend(["--test", suite]));
        cargo::build_for_mpi(self.folder, &arguments)
    }

    fn kills(&self, tier: Tier) -> Result<Vec<Report>> {
        let arguments = ["test", "--no-run", "--package", "global-arrays-tests", "--test", "failures"];
        hosts::kills(self, &cargo::build_for_mpi(self.folder, &arguments)?, tier)
    }

    fn run(&self, tier: Tier) -> Result<Vec<Report>> {
        let programs = self.programs(tier)?;
        // Open MPI's launcher writes files before it starts ranks. With a disk that is busy with what was just built, cases take too long.
        rustix::fs::sync();
        let mut reports = Vec::new();
        for suite in programs.iter().filter(|program| program.kind == "test") {
            // Plain, and with layers on the network, which the long tier has.
            let layered = tier.long && ["conformance", "random_programs"].contains(&suite.name.as_str());
            for filter in if layered { &["mpi:", "mpi+"][..] } else { &["mpi:"] } {
                let mut command = Command::new(&suite.path);
                environment(&mut command, tier);
                command.arg(filter).current_dir(&suite.folder).env("GA_TEST_LAUNCHER", self.launcher);
                reports.push(suites::finish_some(&format!("{}: tests/{} {filter}", self.name, suite.name), &mut command, tier)?);
            }
        }
        let examples: Vec<&Program> = programs.iter().filter(|program| program.is_example()).collect();
        if let Some(hello) = examples.iter().find(|program| program.name == "hello") {
            let other = LIBRARIES.iter().find(|other| other.part != self.part).context("there are two libraries")?;
            reports.push(strangers::run(self, other, hello, tier)?);
            reports.extend(slurm::run(self.name, self.under_srun, hello, tier)?);
        }
        if let Some(stencil) = examples.iter().find(|program| program.name == "stencil") {
            reports.push(self.interrupted(stencil, tier)?);
        }
        reports.extend(launched::run(self, tier)?);
        reports.extend(self.examples(&examples, tier)?);
        reports.extend(hosts::kills(self, &programs, tier)?);
        if tier.long {
            reports.extend(hosts::run(self, &examples, tier)?);
            reports.extend(self.unit_tests(tier)?);
        }
        Ok(reports)
    }

    fn unit_tests(&self, tier: Tier) -> Result<Vec<Report>> {
        let arguments = ["test", "--release", "--no-run", "--lib", "--package", cargo::LIBRARY];
        let mut reports = Vec::new();
        for suite in cargo::build_for_mpi(self.folder, &arguments)? {
            let mut command = Command::new(&suite.path);
            environment(&mut command, tier);
            command.args(MODULES).current_dir(&suite.folder);
            reports.push(suites::finish_some(&format!("{}: unit tests", self.name), &mut command, tier)?);
        }
        Ok(reports)
    }

    fn examples(&self, programs: &[&Program], tier: Tier) -> Result<Vec<Report>> {
        let mut reports = Vec::new();
        let mut known = BTreeSet::new();
        for case in CASES.iter().filter(|case| case.may_be_launched()) {
            let Some(program) = programs.iter().find(|program| program.name == case.example) else { continue };
            let first = case.succeeds && known.insert(case.example);
            let mut starts = Vec::new();
            if tier.long {
                starts.push((case.ranks(), None));
            }
            if first && tier.long {
                starts.extend(RANKS.iter().flat_map(|&ranks| [(ranks, None), (ranks, Some(1)), (ranks, Some(2))]));
            } else if first {
                starts.push((case.ranks(), Some(1)));
            }
            for (ranks, per_node) in starts {
                reports.push(self.example(case, program, ranks, per_node, tier)?.said());
            }
        }
        Ok(reports)
    }

    /// MPICH's launcher now and then loses what processes write right before they end: a refusal is asked for once more before it
    /// counts as missing.
    fn example(&self, case: &Case, program: &Program, ranks: usize, per_node: Option<usize>, tier: Tier) -> Result<Report> {
        const ATTEMPTS: usize = 6;
        let mut report = self.start(case, program, ranks, per_node, tier)?;
        for _ in 1..if case.succeeds { 1 } else { ATTEMPTS } {
            if report.failure.is_some() {
                report = self.start(case, program, ranks, per_node, tier)?;
            }
        }
        Ok(report)
    }

    fn start(&self, case: &Case, program: &Program, ranks: usize, per_node: Option<usize>, tier: Tier) -> Result<Report> {
        let folder = NewFolder::of(case.arguments)?;
        let arguments = folder.fill(case.arguments_on(ranks));
        let mut command = self.launch(ranks);
        command.arg(&program.path).args(&arguments).current_dir(cargo::root());
        environment(&mut command, tier);
        let mut name = format!("{}: example {} {} -n {ranks}", self.name, case.example, arguments.join(" "));
        if let Some(per_node) = per_node {
            command.env("GA_RANKS_PER_NODE", per_node.to_string());
            name = format!("{name}, nodes of {per_node}");
        }
        let mut outcome = child::run(&mut command, tier.limit)?;
        // Or it ends by SIGPIPE itself, when ranks are gone that it wanted to tell something.
        if !case.succeeds && outcome.end == End::Signal(SIGPIPE) {
            outcome.end = End::Exit(1);
        }
        Ok(Report::single(&name, case.judge(&outcome)).lasting(outcome.elapsed))
    }

    /// Ctrl-C at the launcher, which hands on a signal of its choice: all ranks end, and a line says so. If another rank ends first, the line is about
    /// that. Asked for again as [`Self::example`] is.
    fn interrupted(&self, stencil: &Program, tier: Tier) -> Result<Report> {
        const ATTEMPTS: usize = 3;
        let mut report = self.interrupt(stencil, tier)?;
        for _ in 1..ATTEMPTS {
            if report.failure.is_some() {
                report = self.interrupt(stencil, tier)?;
            }
        }
        Ok(report.said())
    }

    fn interrupt(&self, stencil: &Program, tier: Tier) -> Result<Report> {
        const AFTER: Duration = Duration::from_secs(2);
        let mut command = self.launch(3);
        command.arg(&stencil.path).args(["--n", "64", "--sweeps", "10000000"]);
        environment(&mut command, tier);
        let outcome = child::interrupt(&mut command, AFTER, tier.limit)?;
        let said = |line: &str| {
            let of_program = line.strip_prefix("stencil: ").and_then(|words| words.strip_suffix(" before its end"));
            let of_library = line.starts_with("global-arrays: rank") && line.contains("was ended by SIG");
            of_library || of_program.is_some_and(|how| ["interrupted", "ended by SIGTERM"].contains(&how))
        };
        let is_right = !outcome.success() && outcome.left_behind.is_empty() && outcome.stderr.lines().any(said);
        let verdict = if is_right {
            Ok(())
        } else {
            Err(format!("{}, left behind: {:?}\n{}", outcome.end, outcome.left_behind, outcome.tail(10)))
        };
        let name = format!("{}: example stencil, interrupted", self.name);
        Ok(Report::single(&name, verdict).lasting(outcome.elapsed))
    }

    /// The launcher, to be followed by a program.
    pub fn launch(&self, ranks: usize) -> Command {
        let mut command = Command::new(self.launcher);
        command.args(["-n", &ranks.to_string()]);
        variables(&mut command);
        command
    }
}

/// Lets Open MPI run as root, with more ranks than cores, and in containers that forbid reading another process.
pub fn variables(command: &mut Command) {
    command.envs([
        ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
        ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
        ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
        ("OMPI_MCA_hwloc_base_binding_policy", "none"),
        ("OMPI_MCA_btl_vader_single_copy_mechanism", "none"),
    ]);
}

impl Case {
    /// Neither about a network by name nor about a number of ranks that no launcher starts.
    fn may_be_launched(&self) -> bool {
        !self.arguments.contains(&"--network") && self.value("--ranks") != Some("0")
    }

    fn value(&self, flag: &str) -> Option<&'static str> {
        let at = self.arguments.iter().position(|argument| *argument == flag)?;
        self.arguments.get(at + 1).copied()
    }

    fn ranks(&self) -> usize {
        self.value("--ranks").and_then(|ranks| ranks.parse().ok()).unwrap_or(2)
    }

    /// The command line with another number of ranks, if it names one.
    fn arguments_on(&self, ranks: usize) -> Vec<String> {
        let named = self.arguments.iter().position(|argument| *argument == "--ranks");
        let own = |(at, argument): (usize, &&str)| match named {
            Some(flag) if at == flag + 1 => ranks.to_string(),
            _ => (*argument).to_owned(),
        };
        self.arguments.iter().enumerate().map(own).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_has_a_case_that_a_launcher_can_start_on_any_number_of_ranks() {
        let all: BTreeSet<&str> = CASES.iter().map(|case| case.example).collect();
        for example in all {
            let first = CASES.iter().find(|case| case.example == example && case.succeeds && case.may_be_launched());
            let first = first.unwrap_or_else(|| panic!("{example}: only cases for a network by name"));
            for flag in ["--grid", "--cube"] {
                assert_eq!(first.value(flag), None, "{example}: its first case fixes the number of ranks");
            }
            assert!(!first.long, "{example}");
            assert!(first.arguments_on(7).windows(2).all(|pair| pair[0] != "--ranks" || pair[1] == "7"));
        }
    }
}
