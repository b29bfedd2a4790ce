//! Runs named cases, each in a process of its own, and counts them as libtest does.
//!
//! The shared-memory conduit forks and so refuses a process with other threads, which libtest's is. Here the program starts
//! itself again for each case: a crash, a hang or an exit is one failed case. A case fails by a panic or a non-zero exit.
#![allow(dead_code, reason = "each suite uses what it needs")]

pub(crate) mod launched;
pub(crate) mod leftovers;
pub(crate) mod machines;
pub(crate) mod meeting;
pub(crate) mod strict;

use global_arrays::Launch;
use std::{
    env,
    fs::File,
    io::{Read, Seek},
    process::{Child, Command, ExitCode, ExitStatus},
    time::{Duration, Instant},
};

/// Names the case to the process that runs it.
pub(crate) const CASE: &str = "GA_TEST_CASE";
/// How a case that could not be run ends.
const SKIPPED: i32 = 77;
/// Stands before the reason.
const WHY: &str = "cannot be run: ";

/// A test, or a program that tests start.
pub(crate) struct Case {
    name: String,
    limit: Duration,
    listed: bool,
    /// Started by a launcher, this often.
    ranks: Option<usize>,
    body: Box<dyn Fn()>,
}

/// How a case ended.
enum Verdict {
    /// After so long; not known where one launcher starts many.
    Passed(Option<Duration>),
    Skipped(String),
    Failed(String),
}

impl Verdict {
    fn skipped(said: &str) -> Self {
        Verdict::Skipped(said.lines().find_map(|line| line.strip_prefix(WHY)).unwrap_or("no reason given").to_owned())
    }
}

/// A test that may take a minute.
pub(crate) fn case(name: impl Into<String>, body: impl Fn() + 'static) -> Case {
    Case { name: name.into(), limit: Duration::from_secs(60), listed: true, ranks: None, body: Box::new(body) }
}

/// Not a test: what a test starts by [`start`].
pub(crate) fn program(name: impl Into<String>, body: impl Fn() + 'static) -> Case {
    Case { listed: false, ..case(name, body) }
}

impl Case {
    /// The same test with another time limit.
    pub(crate) fn within(self, seconds: u64) -> Self {
        Case { limit: Duration::from_secs(seconds), ..self }
    }

    /// The same test in so many processes that a launcher starts.
    pub(crate) fn ranks(self, ranks: usize) -> Self {
        Case { ranks: Some(ranks), ..self }
    }
}

/// The variable that names the networks to test.
const NETWORKS: &str = "GA_TEST_NETWORKS";

/// The variable that names the numbers of ranks.
const NUMBERS: &str = "GA_TEST_RANKS";

/// The variable for [`Launch::silence`].
const SILENCE: &str = "GA_TEST_SILENCE";

/// Whether the long tier was asked for.
pub(crate) fn long() -> bool {
    env::var("GA_TEST_LONG").is_ok_and(|value| value == "1")
}

/// Whether `GA_TEST_NETWORKS` names the networks.
pub(crate) fn are_named() -> bool {
    env::var_os(NETWORKS).is_some()
}

/// All networks that the binary has, and those of one machine split into nodes of so many ranks; or those that `GA_TEST_NETWORKS` names,
/// with commas between them.
pub(crate) fn networks() -> Vec<&'static str> {
    if let Ok(names) = env::var(NETWORKS) {
        return names.leak().split(',').collect();
    }
    let mut all = vec!["shared_memory", "threads", "shared_memory:unmapped", "threads:unmapped"];
    all.extend(["shared_memory:nodes_of_2", "threads:nodes_of_3", "simulated:infiniband:nodes_of_2", "ib:soft:nodes_of_2"]);
    if long() {
        all.extend(["threads+hidden", "threads+hidden+scrambled", "shared_memory+hidden+delayed+scrambled"]);
        all.extend(["threads:packets+hidden", "shared_memory:packets+hidden+scrambled"]);
        all.extend(["ib:soft+hidden", "ib:soft+hidden+scrambled", "ib:soft:nodes_of_3"]);
        all.extend([
            "simulated:gemini:nodes_of_1",
            "simulated:extoll:nodes_of_3",
            "simulated:gemini-ports:nodes_of_1",
            "simulated:extoll-ports:nodes_of_3",
            "simulated:bluegene:nodes_of_2",
            "simulated:loopback:nodes_of_1",
        ]);
        all.extend(["threads:nodes_of_1", "threads:nodes_of_2", "shared_memory:nodes_of_1", "shared_memory:nodes_of_3"]);
    }
    if long() {
        all.extend(["ib:sockets:nodes_of_2", "ib:sockets+hidden"]);
        all.extend(["simulated:ib:nodes_of_1", "simulated:ib:nodes_of_2", "simulated:ib+scrambled:nodes_of_3"]);
        all.extend([
            "ofi:tcp;ofi_rxm:nodes_of_2",
            "ofi:net+hidden",
            "ofi:sockets:nodes_of_2",
            "ofi:shm+hidden",
            "ofi:strict+hidden",
        ]);
        all.extend(["gemini:soft+hidden", "gemini:soft:nodes_of_2", "gemini:relaxed:nodes_of_3", "extoll:soft:nodes_of_2"]);
    } else {
        all.extend([OVER_SOCKETS, OVER_LIBFABRIC]);
        all.extend(IN_VIRTUAL_TIME);
    }
    all.extend([OVER_GEMINI, OVER_EXTOLL]);
    all
}

/// Processes with software devices of InfiniBand. Each message is a turn of another process, so the standard tier has few ranks.
pub(crate) const OVER_SOCKETS: &str = "ib:sockets:nodes_of_2";

/// The protocols of networks in virtual time: each message is some turns and events.
pub(crate) const IN_VIRTUAL_TIME: [&str; 3] =
    ["simulated:ib:nodes_of_2", "simulated:gemini:nodes_of_2", "simulated:extoll:nodes_of_2"];

/// libfabric over TCP, whose ranks make progress by looking.
pub(crate) const OVER_LIBFABRIC: &str = "ofi:tcp;ofi_rxm+hidden";

/// The protocols of Gemini, on a device whose writes land late and in any order.
pub(crate) const OVER_GEMINI: &str = "gemini:relaxed+hidden";

/// The protocols of EXTOLL, on engines whose packets are late and whose mailboxes are full.
pub(crate) const OVER_EXTOLL: &str = "extoll:soft+hidden";

/// Numbers of ranks of the topics of conformance: its own, or those that `GA_TEST_RANKS` names, with commas between them.
pub(crate) fn ranks(network: &str, own: &[usize]) -> Vec<usize> {
    let named = |names: String| names.split(',').map(|name| name.parse().expect("a number of ranks")).collect();
    let usual = || match network {
        _ if long() || are_named() => own.to_vec(),
        OVER_LIBFABRIC | OVER_GEMINI | OVER_EXTOLL => vec![2],
        OVER_SOCKETS => vec![3],
        network if IN_VIRTUAL_TIME.contains(&network) => vec![3],
        _ => own.to_vec(),
    };
    env::var(NUMBERS).map_or_else(|_| usual(), named)
}

/// A job over one of them.
pub(crate) fn launch(name: &str) -> Launch {
    let (network, parts) = network(name);
    if network.starts_with(strict::NETWORK) && !strict::is_there() {
        skip("the strict libfabric needs cc and libfabric-dev");
    }
    if network.starts_with("ofi") && !has_libfabric() {
        skip("there is no libfabric.so.1: apt-get install libfabric1");
    }
    let mut launch = Launch::new().network(network);
    if let Ok(seconds) = env::var(SILENCE) {
        launch = launch.silence(seconds.parse().expect("a number of seconds"));
    }
    let how = |of: &str| parts.filter(|(variable, _)| *variable == of).map(|(_, how)| how);
    machines::enter(how(machines::VARIABLE));
    match how(PER_NODE) {
        Some(ranks) => launch.ranks_per_node(ranks.parse().expect("a number of ranks")),
        None => launch,
    }
}

/// Returns true if libfabric can be loaded. It is unloaded: the ranks of a job load it after their fork.
fn has_libfabric() -> bool {
    // SAFETY: a text that ends by zero, and a library that was just loaded.
    unsafe {
        let library = libc::dlopen(c"libfabric.so.1".as_ptr(), libc::RTLD_LAZY);
        !library.is_null() && libc::dlclose(library) == 0
    }
}

/// Ranks of a node.
const PER_NODE: &str = "GA_RANKS_PER_NODE";

/// The network as the crate names it, and the variable that cuts its ranks into nodes or machines.
pub(crate) fn network(name: &str) -> (String, Option<(&'static str, &str)>) {
    let parts = [(":nodes_of_", PER_NODE), (":machines_of_", machines::VARIABLE), (":machines_", machines::VARIABLE)];
    let cut =
        parts.iter().find_map(|(word, variable)| name.split_once(word).map(|(network, ranks)| (network, (*variable, ranks))));
    let (network, parts) = cut.map_or((name, None), |(network, parts)| (network, Some(parts)));
    (network.replace(launched::WITHOUT_MPI, "shared_memory"), parts)
}

/// Ends the case: it cannot be run here.
pub(crate) fn skip(reason: &str) -> ! {
    println!("{WHY}{reason}");
    std::process::exit(SKIPPED)
}

/// Starts a case in a new process, its output going to `output`; of our variables it sees those given here, and
/// those of the tests.
pub(crate) fn start(name: &str, variables: &[(&str, &str)], output: &File) -> Child {
    assert_ne!(env::var(CASE).as_deref(), Ok(name), "a case that starts itself never ends");
    spawn(&mut Command::new(env::current_exe().expect("the path of this program")), CASE, name, variables, output)
}

/// The same with another command, `name` going to `case`.
fn spawn(command: &mut Command, case: &str, name: &str, variables: &[(&str, &str)], output: &File) -> Child {
    env::vars()
        .filter(|(key, _)| {
            key.starts_with("GA_")
                && !["GA_TEST_LONG", "GA_TEST_LAUNCHER", "GA_IB_DEVICE", NETWORKS, NUMBERS, SILENCE].contains(&&**key)
        })
        .for_each(|(key, _)| {
            command.env_remove(key);
        });
    if name.starts_with(strict::NETWORK) {
        strict::prepare(command);
    }
    let both = || output.try_clone().expect("a second handle of the file");
    command.env(case, name).envs(variables.iter().copied()).stdout(both()).stderr(both()).spawn().expect("starting a case")
}

/// Waits for a process; after the limit it is killed and there is no status.
pub(crate) fn finish(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let status = finish_before(child, limit);
    if status.is_none() {
        child.kill().and_then(|()| child.wait()).expect("ending a case");
    }
    status
}

/// Waits for a process until the limit.
pub(crate) fn finish_before(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let start = Instant::now();
    loop {
        let status = child.try_wait().expect("waiting for a case");
        if status.is_some() || start.elapsed() > limit {
            return status;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A file without a name, for what a case prints. Its name of a moment is none that `leftovers` looks for.
pub(crate) fn scratch() -> File {
    let path = env::temp_dir().join(format!("case-{}.out", std::process::id()));
    let file = File::options().read(true).append(true).create_new(true).open(&path).expect("a temporary file");
    std::fs::remove_file(path).expect("taking the name away");
    file
}

/// What is in such a file.
pub(crate) fn text(mut file: &File) -> String {
    let mut bytes = Vec::new();
    file.rewind().and_then(|()| file.read_to_end(&mut bytes)).expect("reading what a case printed");
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The `main` of a suite: `[--list] [--exact] [filter ...]`.
pub(crate) fn main(cases: Vec<Case>) -> ExitCode {
    run(cases, 1)
}

/// The same for cases that mostly wait: so many are run at a time, and two where a launcher starts ranks.
pub(crate) fn main_together(cases: Vec<Case>, together: usize) -> ExitCode {
    const LAUNCHED: usize = 2;
    run(cases, if env::var_os("GA_TEST_LAUNCHER").is_some() { LAUNCHED } else { together })
}

fn run(cases: Vec<Case>, together: usize) -> ExitCode {
    if let Ok(names) = env::var(launched::CASES) {
        launched::run(&cases, &names);
        return ExitCode::SUCCESS;
    }
    if let Ok(name) = env::var(CASE) {
        machines::enter_by_variable();
        let case = cases.iter().find(|case| case.name == name).expect("a case of this name");
        (case.body)();
        return ExitCode::SUCCESS;
    }
    let arguments: Vec<String> = env::args().skip(1).collect();
    let option = |name: &str| arguments.iter().any(|argument| argument == name);
    let filters: Vec<&String> = arguments.iter().filter(|argument| !argument.starts_with('-')).collect();
    let matches = |name: &str| {
        filters.is_empty() || filters.iter().any(|&f| if option("--exact") { name == f } else { name.contains(f.as_str()) })
    };
    let (chosen, rest): (Vec<_>, Vec<_>) = cases.iter().filter(|case| case.listed).partition(|case| matches(&case.name));
    if option("--list") {
        chosen.iter().for_each(|case| println!("{}: test", case.name));
        return ExitCode::SUCCESS;
    }
    println!("\nrunning {} tests", chosen.len());
    let (begin, mut passed, mut ignored, mut failures) = (Instant::now(), 0, 0, Vec::new());
    let mut tell = |case: &Case, verdict: Verdict| match verdict {
        Verdict::Passed(took) => {
            passed += 1;
            // As libtest says it with `--report-time`.
            let took = took.map_or(String::new(), |took| format!(" <{:.3}s>", took.as_secs_f64()));
            println!("test {} ... ok{took}", case.name);
        }
        Verdict::Skipped(why) => {
            ignored += 1;
            println!("test {} ... ignored, {why}", case.name);
        }
        Verdict::Failed(said) => {
            println!("test {} ... FAILED", case.name);
            failures.push(format!("---- {} ----\n{said}", case.name));
        }
    };
    for same in chosen.chunk_by(|a, b| a.ranks == b.ranks) {
        match same[0].ranks {
            Some(ranks) => launched::sequence(same, ranks, &mut tell),
            None => apart(same, together, &mut tell),
        }
    }
    failures.iter().for_each(|failure| println!("\n{failure}"));
    println!(
        "\ntest result: {}. {passed} passed; {} failed; {ignored} ignored; 0 measured; {} filtered out; finished in {:.2}s\n",
        if failures.is_empty() { "ok" } else { "FAILED" },
        failures.len(),
        rest.len(),
        begin.elapsed().as_secs_f64()
    );
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(101) }
}

/// Runs each case in a process of its own, so many at a time.
fn apart(cases: &[&Case], together: usize, tell: &mut impl FnMut(&Case, Verdict)) {
    let mut waiting = cases.iter();
    let mut running: Vec<(&Case, Child, File, Instant)> = Vec::new();
    loop {
        while running.len() < together
            && let Some(case) = waiting.next()
        {
            let output = scratch();
            running.push((case, start(&case.name, &[], &output), output, Instant::now()));
        }
        if running.is_empty() {
            return;
        }
        running.retain_mut(|(case, child, output, begin)| {
            let rest = case.limit.saturating_sub(begin.elapsed());
            if !rest.is_zero() && child.try_wait().expect("waiting for a case").is_none() {
                return true;
            }
            let status = finish(child, rest);
            tell(case, verdict(case, status, begin.elapsed(), &text(output)));
            false
        });
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// What is to be said of a case that ended, or did not.
fn verdict(case: &Case, status: Option<ExitStatus>, took: Duration, said: &str) -> Verdict {
    said.lines().filter(|line| line.starts_with("skipped: ")).for_each(|line| println!("{line}"));
    match status {
        Some(status) if status.success() => Verdict::Passed(Some(took)),
        Some(status) if status.code() == Some(SKIPPED) => Verdict::skipped(said),
        status => {
            let end = status.map_or(format!("still running after {} s", case.limit.as_secs()), |status| status.to_string());
            Verdict::Failed(format!("{said}{end}\n"))
        }
    }
}
