//! Cases whose ranks a launcher starts, and not the case itself: over MPI or, in a suite that was built without it, over shared memory.
//!
//! A start takes a second with many ranks, so cases that want equally many run one after the other in the same processes. Each process
//! says when it has done one; if something goes wrong, the first case that not all have done is the one that failed, and those
//! behind it run in new processes.
//!
//! `GA_TEST_LAUNCHER` names the launcher, with arguments or without. For a suite that was built against an MPI library, it must be that
//! library's, `mpirun` if the variable is not there. Without the variable, a suite without MPI has no such cases.

use std::{
    env,
    fs::File,
    os::unix::process::ExitStatusExt,
    process::{Child, Command, ExitStatus},
    time::{Duration, Instant},
};

use super::{Case, SKIPPED, Verdict, scratch, text};

/// Names the cases to the processes that run them, with commas between.
pub(super) const CASES: &str = "GA_TEST_CASES";
/// Stands before the name of each that a process has done.
const DONE: &str = "case done: ";

/// What lets Open MPI do what MPICH does unasked: run as root, with more ranks than cores, on whatever core is free, and in
/// containers that forbid reading another process. As variables, since MPICH's launcher does not know the options.
const OPEN_MPI: [(&str, &str); 5] = [
    ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
    ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
    ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
    ("OMPI_MCA_hwloc_base_binding_policy", "none"),
    ("OMPI_MCA_btl_vader_single_copy_mechanism", "none"),
];

/// Between asking a launcher to end and killing it.
const GRACE: Duration = Duration::from_secs(5);

/// What stands for `shared_memory` in the names of cases whose ranks a launcher starts.
pub(super) const WITHOUT_MPI: &str = "launched";

/// The network of ranks that a launcher starts, if this run has such.
pub(crate) fn network() -> Option<&'static str> {
    let is_named = env::var_os("GA_TEST_LAUNCHER").is_some();
    if cfg!(feature = "mpi") { Some("mpi") } else { Some(WITHOUT_MPI).filter(|_| is_named) }
}

/// Whether a case's ranks are a launcher's.
pub(crate) fn has(network: &str) -> bool {
    ["mpi", WITHOUT_MPI].iter().any(|launched| network.starts_with(launched))
}

/// Networks and numbers of ranks: the standard tier has each number once.
pub(crate) fn starts() -> Vec<(&'static str, usize)> {
    match network() {
        Some("mpi") => starts_of_mpi(),
        Some(_) if super::long() => {
            let networks = ["launched", "launched:nodes_of_1", "launched:nodes_of_2", "launched:packets+hidden"];
            networks.iter().flat_map(|&network| [1, 2, 3, 4, 7, 24].map(|ranks| (network, ranks))).collect()
        }
        Some(_) => vec![("launched", 1), ("launched", 4), ("launched", 9), ("launched:nodes_of_2", 7)],
        None => Vec::new(),
    }
}

fn starts_of_mpi() -> Vec<(&'static str, usize)> {
    if !super::long() {
        return vec![
            ("mpi", 1),
            ("mpi", 3),
            ("mpi:nodes_of_1", 2),
            ("mpi:nodes_of_2", 4),
            ("mpi:machines_in_turn_2", 4),
            ("mpi:nodes_of_2", 7),
        ];
    }
    let layered = [("mpi+hidden", 3), ("mpi+hidden+delayed+scrambled", 2), ("mpi+delayed+scrambled:nodes_of_1", 3)];
    let networks = ["mpi", "mpi:nodes_of_1", "mpi:nodes_of_2", "mpi:machines_of_2", "mpi:machines_in_turn_2"];
    let plain = networks.iter().flat_map(|&network| [1, 2, 3, 4, 7].map(|ranks| (network, ranks)));
    plain.chain(layered).collect()
}

/// The launcher of this run.
pub(crate) fn launcher() -> String {
    env::var("GA_TEST_LAUNCHER").unwrap_or_else(|_| "mpirun".into())
}

/// Starts a program of the suite on so many ranks.
pub(crate) fn start(ranks: usize, name: &str, variables: &[(&str, &str)], output: &File) -> Child {
    start_by(&launcher(), ranks, name, variables, output)
}

/// The same by another launcher.
pub(crate) fn start_by(launcher: &str, ranks: usize, name: &str, variables: &[(&str, &str)], output: &File) -> Child {
    super::spawn(&mut command(launcher, ranks), super::CASE, name, variables, output)
}

/// This program under a launcher.
fn command(launcher: &str, ranks: usize) -> Command {
    let mut words = launcher.split_whitespace();
    let mut command = Command::new(words.next().expect("a launcher has a name"));
    command.args(words).args(["-n", &ranks.to_string()]).arg(env::current_exe().expect("the path of this program"));
    command.envs(OPEN_MPI);
    command
}

/// Waits for a launcher; after the limit, which begins anew when `progress` grows, it has to take its ranks down.
fn finish(child: &mut Child, limit: Duration, progress: impl Fn() -> usize) -> Option<ExitStatus> {
    let (mut begin, mut last) = (Instant::now(), 0);
    while begin.elapsed() < limit {
        if let Some(status) = child.try_wait().expect("waiting for the launcher") {
            return Some(status);
        }
        let now = progress();
        if now != last {
            (begin, last) = (Instant::now(), now);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    end(child);
    None
}

/// Ends a launcher and its ranks.
pub(crate) fn end(child: &mut Child) {
    if let Some(pid) = rustix::process::Pid::from_raw(child.id() as i32) {
        // It may have ended meanwhile.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
    if super::finish(child, GRACE).is_none() {
        eprintln!("the launcher had to be killed");
    }
}

/// Runs cases that want equally many ranks; `tell` hears of each once, in their order.
pub(super) fn sequence(cases: &[&Case], ranks: usize, mut tell: impl FnMut(&Case, Verdict)) {
    let mut rest = cases;
    while let Some(limit) = rest.iter().map(|case| case.limit).max() {
        let output = scratch();
        let names: Vec<&str> = rest.iter().map(|case| case.name.as_str()).collect();
        let mut child = super::spawn(&mut command(&launcher(), ranks), CASES, &names.join(","), &[], &output);
        let done = |said: &str| rest.iter().take_while(|case| marks(said, &case.name) >= ranks).count();
        let status = finish(&mut child, limit, || said_done(&output));
        let said = text(&output);
        let (done, well) = (done(&said), status.is_some_and(|status| status.success()));
        // A bad end after the last case is that of the last one.
        let passed = if well { done } else { done.min(rest.len() - 1) };
        rest[..passed].iter().for_each(|case| tell(case, Verdict::Passed(None)));
        let Some(failed) = rest.get(passed) else { return };
        let own = said.rsplit_once(&format!("{DONE}{}\n", names[..passed].last().unwrap_or(&""))).map_or(&*said, |(_, own)| own);
        tell(failed, verdict(own, status, limit));
        rest = &rest[passed + 1..];
    }
}

fn verdict(said: &str, status: Option<ExitStatus>, limit: Duration) -> Verdict {
    match status {
        Some(status) if status.code() == Some(SKIPPED) => Verdict::skipped(said),
        Some(status) if status.success() => Verdict::Failed(format!("{said}ended before its time\n")),
        Some(status) => {
            let signal = status.signal().map_or(String::new(), |signal| format!(", by signal {signal}"));
            Verdict::Failed(format!("{said}the launcher ended with {status}{signal}\n"))
        }
        None => Verdict::Failed(format!("{said}still running after {} s\n", limit.as_secs())),
    }
}

/// What each process of a sequence does.
pub(super) fn run(cases: &[Case], names: &str) {
    for name in names.split(',') {
        let case = cases.iter().find(|case| case.name == name).expect("a case of this name");
        (case.body)();
        println!("{DONE}{name}");
    }
}

fn marks(said: &str, name: &str) -> usize {
    // It may stand behind half a line of stderr.
    said.matches(&format!("{DONE}{name}\n")).count()
}

fn said_done(output: &File) -> usize {
    text(output).matches(DONE).count()
}
