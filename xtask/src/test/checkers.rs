//! The suites under tools that see what a passing test does not: the long tier.
//!
//! | tool | sees | does not |
//! |---|---|---|
//! | valgrind's memcheck | memory used before it is written, beyond its end, after its life; the assembly too | races |
//! | ThreadSanitizer | races among the ranks of the conduit `threads`, with the portable kernels: it follows atomics, not assembly, and the standard library is built with it | other conduits, fences, bugs of an order that the run did not take |
//! | loom | every interleaving, weak memory included, of the parts that have no lock, as models | anything else |
//!
//! A tool that is not there is a skipped test; one that cannot be built or that ran nothing is a failure.

use super::counts::Report;
use super::{Tier, environment, suites};
use crate::{cargo, packages};
use anyhow::Result;
use std::process::Command;

/// Relaxed atomics in place of assembly.
const PORTABLE: &str = "--cfg global_arrays_portable";
/// Optimised, as checkers are slow.
const LIBRARY: &[&str] = &["test", "--release", "--lib", "--no-run", "--package", cargo::LIBRARY];

/// All of them, whatever becomes of each.
pub fn run(tier: Tier) -> Vec<Report> {
    type Checker = fn(Tier) -> Result<Vec<Report>>;
    let checkers: [(&str, Checker); 3] =
        [("memcheck", memory), ("ThreadSanitizer", races), ("models in every interleaving", interleavings)];
    checkers.into_iter().flat_map(|(name, checker)| Report::of_part(name, checker(tier))).collect()
}

/// The library's unit tests under valgrind's memory checker, with either version of the kernels.
fn memory(tier: Tier) -> Result<Vec<Report>> {
    if !packages::installed("valgrind") {
        return Ok(vec![Report::skipped("memcheck: unit tests", "no valgrind").said()]);
    }
    let builds = [("memcheck: unit tests", ""), ("memcheck: unit tests, portable kernels", PORTABLE)];
    let mut reports = Vec::new();
    for (name, flags) in builds {
        for suite in cargo::build_with_flags(flags, LIBRARY)? {
            let mut command = Command::new("valgrind");
            // A search for leaks would read the address space that is reserved for segments, which fills the machine's memory.
            // It lets one thread run at a time: without turns in their order, one that looks at a word starves the one that writes it.
            command.args(["--quiet", "--leak-check=no", "--fair-sched=try", "--error-exitcode=99"]).arg(&suite.path);
            // Two threads that never run at the same time lose no addition, which is what the first one waits for. The second one cuts a cable after a
            // second, in which ranks are too slow here to hear of each other.
            command.args([
                "--skip",
                "adapters_exclude_each_other_and_no_processor",
                "--skip",
                "a_machine_that_is_cut_off_ends_the_job",
            ]);
            reports.push(finish(name, command, tier)?);
        }
    }
    Ok(reports)
}

/// What runs over `threads`, mapped and not, under ThreadSanitizer.
fn races(tier: Tier) -> Result<Vec<Report>> {
    const FLAGS: &str = "-Zsanitizer=thread --cfg global_arrays_portable";
    /// Suites of libtest; their jobs run over `threads` because libtest has threads itself.
    const ALL: &[&str] = &["algebra", "matmul", "nonblocking", "files", "checkpoints", "disk", "places"];
    /// Suites of every conduit, whose cases begin with its name.
    const BY_CONDUIT: &[&str] = &["conformance", "random_programs"];

    let host = match cargo::nightly_host() {
        Ok(host) => host,
        Err(why) => return Ok(vec![Report::skipped("ThreadSanitizer", &why).said()]),
    };
    let mut arguments = LIBRARY.to_vec();
    arguments.extend(["--package", cargo::SUITES, "-Zbuild-std", "--target", &host]);
    ALL.iter().chain(BY_CONDUIT).for_each(|suite| arguments.extend(["--test", suite]));
    let mut reports = Vec::new();
    for suite in cargo::build_nightly(FLAGS, &arguments)? {
        let filters: &[&str] =
            if BY_CONDUIT.contains(&suite.name.as_str()) { &["threads::", "threads:unmapped::"] } else { &[""] };
        for filter in filters {
            let name = if suite.kind == "test" { format!("tests/{}", suite.name) } else { "unit tests".to_owned() };
            let mut command = Command::new(&suite.path);
            command.args(Some(filter).filter(|filter| !filter.is_empty())).current_dir(&suite.folder);
            // It does not know that the kernel passes on the robust locks of a thread that ends. There are no other locks of pthread's.
            command.env("TSAN_OPTIONS", "report_mutex_bugs=0");
            reports.push(finish(format!("ThreadSanitizer: {name} {filter}").trim_end(), command, tier)?);
        }
    }
    Ok(reports)
}

/// The models of what has no lock, in every interleaving with at most so many preemptions.
fn interleavings(tier: Tier) -> Result<Vec<Report>> {
    const PREEMPTIONS: &str = "3";
    let mut reports = Vec::new();
    for suite in cargo::build_with_flags("--cfg loom", LIBRARY)? {
        let mut command = Command::new(&suite.path);
        command.args(["loom_models", "--test-threads=1"]).env("LOOM_MAX_PREEMPTIONS", PREEMPTIONS);
        reports.push(finish("models in every interleaving", command, tier)?);
    }
    Ok(reports)
}

/// At ordinary sizes, since every checker costs a factor of ten to a hundred; a filter that matched nothing is a failure.
fn finish(name: &str, mut command: Command, tier: Tier) -> Result<Report> {
    environment(&mut command, Tier { long: false, ..tier });
    suites::finish_some(name, &mut command, tier)
}
