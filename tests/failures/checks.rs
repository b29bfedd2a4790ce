//! How each program must end.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

pub(crate) use crate::runner::leftovers::{gone, marked};
use crate::runner::{self, Case, case, launched::has as is_launched};

/// A job that fails must have ended by then.
pub(crate) const SOON: Duration = Duration::from_secs(5);
/// What a launcher takes on top, to start its ranks and to find that they have ended.
pub(crate) const LAUNCHER: Duration = Duration::from_secs(5);

pub(crate) const BOTH: &[&str] =
    &["shared_memory", "shared_memory:unmapped", "shared_memory:nodes_of_2", "threads", "threads:unmapped"];
/// A rank that dies alone is a process.
pub(crate) const PROCESSES: &[&str] = &[
    "shared_memory",
    "shared_memory:unmapped",
    "shared_memory:nodes_of_2",
    "ib:sockets:nodes_of_2",
    "ofi:tcp;ofi_rxm:nodes_of_2",
];

/// Where the long tier also runs what `BOTH` names.
const LONG: &[&str] = &["ib:sockets:nodes_of_2", "ofi:tcp;ofi_rxm:nodes_of_2"];

/// When a program of these must have ended. Where each rank that waits and each device has a thread that looks, cases that run together leave
/// few turns to others, and a start alone was seen to take four seconds.
fn limit(network: &str, networks: &[&str]) -> Duration {
    if networks.contains(&network) || is_launched(network) { SOON } else { 2 * SOON }
}

/// Program, networks, what it must say.
const FAIL: &[(&str, &[&str], &[&str])] = &[
    ("killed_in_sync", PROCESSES, &["rank 1", "SIGKILL"]),
    ("killed_in_lock", PROCESSES, &["rank 1", "SIGKILL"]),
    ("killed_holding_a_lock", PROCESSES, &["rank 1", "SIGKILL"]),
    ("killed_in_wait_on_a_channel", PROCESSES, &["rank 1", "SIGKILL"]),
    ("killed_in_signal", PROCESSES, &["rank 1", "SIGKILL"]),
    ("killed_computing", PROCESSES, &["rank 1", "SIGKILL"]),
    ("killed_while_others_transfer", PROCESSES, &["rank 1", "SIGKILL"]),
    ("killed_while_all_compute", PROCESSES, &["rank 1", "SIGKILL"]),
    ("killed_while_saving", PROCESSES, &["rank 0", "SIGKILL", "nothing unfinished is left"]),
    ("ended_by_sigterm", PROCESSES, &["rank 1", "was ended by SIGTERM"]),
    ("exits", PROCESSES, &["rank 1", "exit(3)"]),
    ("exits_after_traffic", PROCESSES, &["rank 1", "exit(3)"]),
    ("exits_as_if_well", PROCESSES, &["rank 1"]),
    ("panics", BOTH, &["Error: rank 1", "panicked", "the culprit's own words"]),
    ("panics_late", BOTH, &["Error: rank 1", "panicked", "the culprit's own words"]),
    ("returns_an_error", BOTH, &["Error: rank 1", "returned an error", "the culprit's own words"]),
    ("returns_while_others_sync", BOTH, &["do not agree", "the end of the job", "sync"]),
    ("returns_while_others_meet_in_a_group", BOTH, &["barrier", "has ended"]),
    (
        "wait_on_channels_in_a_ring",
        BOTH,
        &[
            "rank 0 waits for a message of channel 6 from rank 2",
            "rank 1 waits for a message of channel 6 from rank 0",
            "rank 2 waits for a message of channel 6 from rank 1",
        ],
    ),
    (
        "put_on_full_channels",
        BOTH,
        &["rank 0 waits for a free slot of channel 8 to rank 1", "rank 2 waits for a free slot of channel 8 to rank 0"],
    ),
    ("wait_for_any_of_several_channels", BOTH, &["rank 1 waits for a message of channel 0 from rank 0 or channel 0 from rank 2"]),
    ("returns_while_another_waits_on_a_channel", BOTH, &["channel 3 from rank 1", "rank 1 has ended"]),
    (
        "call_to_a_rank_in_a_collective",
        BOTH,
        &[
            "rank 0 waits for the reply of rank 1 to \"find\" at tests/failures/messages.rs:",
            "rank 1 waits for rank 0 in barrier of all ranks at tests/failures/messages.rs:",
        ],
    ),
    ("sync_of_messages_beside_a_collective", BOTH, &["rank 1 for sync of active messages", "rank 1 waits for rank 0 in barrier"]),
    (
        "receive_in_a_ring",
        BOTH,
        &["rank 0 waits for a message of tag 5 from rank 2", "rank 2 waits for a message of tag 5 from rank 1"],
    ),
    ("receive_from_anybody", BOTH, &["rank 0 waits for a message of any tag from any rank"]),
    ("returns_while_another_calls", BOTH, &["call of \"find\"", "rank 1 has ended"]),
    ("panics_in_a_handler", BOTH, &["rank 1", "panicked in handler \"find\" of a message of rank 0: the culprit's own words"]),
    ("killed_while_others_call", PROCESSES, &["rank 1", "SIGKILL"]),
    ("returns_while_another_waits_for_a_signal", BOTH, &["signal 0 (at 0, waiting for 1) forever: all other ranks have ended"]),
    (
        "returns_while_others_wait_for_a_signal",
        BOTH,
        &["rank 0 waits for signal 0 to reach 1", "rank 2 waits for signal 0 to reach 1"],
    ),
    (
        "waits_for_a_lock_whose_holder_waits",
        BOTH,
        &[
            "rank 0 waits for lock 0 of 1 (made at tests/failures/waits.rs:",
            "), which rank 1 holds",
            "rank 1 waits for rank 0 in barrier of all ranks",
        ],
    ),
    (
        "takes_locks_in_opposite_orders",
        BOTH,
        &[
            "rank 0 waits for lock 5 of 8 (made at tests/failures/waits.rs:",
            "), which rank 1 holds",
            "rank 1 waits for lock 3 of 8 (made at tests/failures/waits.rs:",
            "), which rank 0 holds",
        ],
    ),
    (
        "takes_locks_of_two_sets_in_opposite_orders",
        BOTH,
        &[
            "rank 0 waits for lock 2 of 3 (made at ",
            "), which rank 1 holds",
            "rank 1 waits for lock 1 of 2 (made at ",
            "), which rank 0 holds",
        ],
    ),
    ("takes_a_lock_twice", BOTH, &["rank 1 waits for lock 0 of 1 (made at ", "), which it holds itself", "the end of the job"]),
    (
        "returns_while_a_rank_with_threads_waits_for_a_signal",
        BOTH,
        &["rank 0 would wait in signal 0 (at 0, waiting for 1) forever: all other ranks have ended"],
    ),
    ("returns_with_a_lock_that_another_waits_for", BOTH, &["lock 0 of 1 (made at tests/failures/waits.rs:", "rank 1 has ended"]),
    ("returns_with_a_lock_that_others_wait_for", BOTH, &["lock", "rank 1 has ended"]),
    ("returns_while_others_make_a_group", BOTH, &["creation of a group", "has ended"]),
    ("different_collectives", BOTH, &["do not agree", "barrier", "broadcast"]),
    ("different_lengths", BOTH, &["do not agree", "all-reduce"]),
    ("different_roots", BOTH, &["do not agree", "broadcast"]),
    ("different_types", BOTH, &["do not agree", "all-gather"]),
    ("different_shapes", BOTH, &["do not agree", "creation of an array"]),
    ("different_epochs", BOTH, &["do not agree", "owner epoch", "read epoch"]),
    ("epochs_of_different_arrays", BOTH, &["do not agree", "owner epoch"]),
    ("failed_group_is_used_again", BOTH, &["cannot be used any more"]),
    ("epoch_unwinds", BOTH, &["rank 1 left an epoch by a panic"]),
    ("epoch_unwinds_and_the_rank_goes_on", BOTH, &["rank 1 left an epoch by a panic"]),
    ("epochs_differ_and_the_ranks_go_on", BOTH, &["left an epoch by an error", "do not agree"]),
    ("wait_in_different_groups", BOTH, DIFFERENT_GROUPS),
    (
        "wait_in_different_transfers",
        BOTH,
        &["rank 0 waits for rank 1 in creation of an array of all ranks", "rank 1 waits for rank 0 in broadcast of a group of 2"],
    ),
    (
        "wait_in_a_ring_of_groups",
        BOTH,
        &[
            "rank 0 waits for rank 1 in sync of a group of 2",
            "rank 1 waits for rank 2 in sync of a group of 2",
            "rank 2 waits for rank 0 in sync of a group of 2",
        ],
    ),
    ("wait_in_creations_of_groups", BOTH, CREATIONS),
    ("wait_in_groups_of_different_parents", BOTH, CREATIONS),
];

const CREATIONS: &[&str] =
    &["rank 0 waits for rank 1 in creation of a group of 2 ranks", "rank 1 waits for rank 0 in creation of a group of 2 ranks"];

const DIFFERENT_GROUPS: &[&str] =
    &["rank 0 waits for rank 1 in barrier of all ranks", "rank 1 waits for rank 0 in barrier of a group of 2"];

/// The rank that waits and the rank that is late, each with its call.
const LATE: &[&str] = &[
    "has waited 10 s in fill of \"H\" at tests/failures/programs.rs:",
    "missing: rank 1 in fill of \"H\" at tests/failures/programs.rs:",
];

/// What the standard tier runs under a launcher too: a rank alone goes wrong, or calls what the others do not.
const SOME: &[&str] = &[
    "killed_in_sync",
    "killed_computing",
    "killed_while_all_compute",
    "ended_by_sigterm",
    "exits",
    "exits_after_traffic",
    "exits_as_if_well",
    "panics",
    "panics_late",
    "returns_an_error",
    "returns_while_others_sync",
    "different_collectives",
];

/// What it also runs on two machines: an end of each kind.
const ENDS: &[&str] = &["killed_in_sync", "panics", "returns_while_others_sync", "different_collectives"];

/// Deadlocks, of which it runs some between machines.
const BETWEEN_MACHINES: &[&str] = &[
    "wait_in_a_ring_of_groups",
    "takes_locks_in_opposite_orders",
    "wait_on_channels_in_a_ring",
    "call_to_a_rank_in_a_collective",
    "returns_while_another_waits_for_a_signal",
    "waits_for_a_lock_whose_holder_waits",
];

/// The networks on which a case also runs under a launcher, where each start takes a second.
fn launched(name: &str) -> &'static [&'static str] {
    match runner::launched::network() {
        // A launcher may end the others before they have removed the file.
        _ if name == "killed_while_saving" => &[],
        // On a machine of its own nobody but the launcher sees the end of a rank.
        Some("mpi") if runner::long() && (name.starts_with("killed") || name == "ended_by_sigterm") => {
            &["mpi", "mpi:nodes_of_1", "mpi:nodes_of_2", "mpi:machines_of_2"]
        }
        Some("mpi") if runner::long() => &["mpi", "mpi:nodes_of_1", "mpi:nodes_of_2", "mpi:machines_of_1", "mpi:machines_of_2"],
        Some("mpi") if ENDS.contains(&name) => &["mpi", "mpi:nodes_of_2", "mpi:machines_of_2"],
        Some("mpi") if SOME.contains(&name) => &["mpi", "mpi:nodes_of_2"],
        Some("mpi") if BETWEEN_MACHINES.contains(&name) => &["mpi:machines_of_1"],
        Some("launched") if runner::long() => &["launched", "launched:nodes_of_2"],
        Some("launched") if SOME.contains(&name) => &["launched"],
        _ => &[],
    }
}

/// A launcher has a status of its own.
fn failed(network: &str, status: Option<i32>) -> bool {
    if is_launched(network) { status != Some(0) } else { status == Some(1) }
}

pub(crate) fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    for &(name, networks, words) in FAIL {
        let more = LONG.iter().filter(|network| runner::long() && !networks.contains(network));
        for &network in networks.iter().chain(more).chain(launched(name)) {
            cases.push(case(format!("{network}::{name}"), move || {
                let variables = [("GA_NETWORK", network), ("GA_RANKS", "3")];
                let text = heard(is_launched(network), words, || {
                    let (status, text) = run(name, &variables, limit(network, networks));
                    assert!(failed(network, status), "{status:?}\n{text}");
                    // A launcher that ends the others must not make one of them the culprit.
                    ["rank 0 ended", "rank 2 ended"].iter().for_each(|wrong| assert!(!text.contains(wrong), "{text}"));
                    text
                });
                says(&text, words);
                says_once(&text);
            }));
        }
    }
    for &network in BOTH.iter().chain(LONG.iter().filter(|_| runner::long())) {
        let well = move |name: &'static str, variables: &'static [(&str, &str)], words: &'static [&str]| {
            case(format!("{network}::{name}"), move || {
                let all: Vec<_> =
                    [("GA_NETWORK", network), ("GA_RANKS", "3")].into_iter().chain(variables.iter().copied()).collect();
                let (status, text) = run(name, &all, Duration::from_secs(if runner::long() { 60 } else { 20 }));
                assert_eq!(status, Some(0), "{text}");
                says(&text, words);
            })
        };
        cases.push(well("computes_long", &[], &[]));
        cases.push(well("computes_while_others_wait_in_groups", &[], &[]));
        cases.push(well("computes_while_others_call", &[], &[]));
        if runner::long() || network == "shared_memory" {
            cases.push(well(
                "a_channel_of_a_slow_rank",
                &[],
                &["has waited 10 s in channel 6 from rank 1 at tests/failures/waits.rs:"],
            ));
        }
        cases.push(well("a_second_thread_comes_late", &[], &[]));
        cases.push(well("another_thread_holds_the_lock", &[], &[]));
        // The table of statistics is no reason to wait for a rank that waits in vain.
        for (name, words) in [
            ("returns_while_others_sync", &["the end of the job", "sync"][..]),
            ("returns_while_a_rank_with_threads_waits_for_a_signal", &["forever: all other ranks have ended"]),
        ] {
            cases.push(case(format!("{network}::{name}_and_counts"), move || {
                let variables = [("GA_NETWORK", network), ("GA_RANKS", "3"), ("GA_STATS", "1")];
                // 2.6 s, most of them doubt. Its process was seen to start two seconds late where sixteen start at once.
                let (status, text) = run(name, &variables, 2 * SOON);
                assert_eq!(status, Some(1), "{text}");
                says(&text, words);
            }));
        }
        // A core for each rank: members do not meet by a counter.
        cases.push(case(format!("{network}::two_ranks_wait_in_different_groups"), move || {
            let variables = [("GA_NETWORK", network), ("GA_RANKS", "2")];
            let (status, text) = run("wait_in_different_groups", &variables, limit(network, BOTH));
            assert_eq!(status, Some(1), "{text}");
            says(&text, DIFFERENT_GROUPS);
        }));
        if PROCESSES.contains(&network) {
            cases.push(well("a_stopped_rank_is_late", &[], &[]));
        }
        cases.push(well("goes_on_after_a_timeout", &[("GA_TIMEOUT", "1")], &[]));
        cases.push(well("two_threads_create", &[], &[]));
        cases.push(well("two_threads_in_a_collective", &[], &[]));
        cases.push(well(
            "asks_for_too_much",
            &[("GA_MEMORY", "64M")],
            &["vast", "bytes on machine 0", "are available", "GA_MEMORY"],
        ));
        cases.push(well(
            "asks_for_too_much_in_a_group",
            &[("GA_MEMORY", "64M")],
            &["shared by two", "bytes on machine 0", "are available", "GA_MEMORY"],
        ));
        cases.push(well(
            "asks_for_a_group_too_much",
            &[("GA_MEMORY", "64M")],
            &["a group of 2 ranks", "are available", "GA_MEMORY"],
        ));
        cases.push(well("has_no_name_anywhere", &[], &[]));
        if runner::long() || network == "shared_memory" {
            cases.push(well("computes_very_long_after_a_fill", &[], LATE));
        }
        if runner::long() {
            cases.push(well("computes_very_long", &[], &["has waited 10 s in sync", "rank 1 in computation"]));
        }
        cases.push(case(format!("{network}::timeout"), move || {
            let variables = [("GA_NETWORK", network), ("GA_RANKS", "3"), ("GA_TIMEOUT", "0.5")];
            let (status, text) = run("timeout", &variables, limit(network, BOTH));
            assert_eq!(status, Some(1), "{text}");
            says(&text, &["GA_TIMEOUT", "sync", "missing: rank 1 in computation (no collective yet), at tests/failures/"]);
        }));
    }
    if runner::launched::network() == Some("mpi") {
        let networks = ["mpi:machines_of_1", "mpi:nodes_of_1"];
        for network in networks.into_iter().take(if runner::long() { 2 } else { 1 }) {
            cases.push(case(format!("{network}::computes_very_long_after_a_fill"), move || {
                let variables = [("GA_NETWORK", network), ("GA_RANKS", "3")];
                let (status, text) = run("computes_very_long_after_a_fill", &variables, Duration::from_secs(20));
                assert_eq!(status, Some(0), "{text}");
                says(&text, LATE);
            }));
        }
    }
    cases.push(case("array_beyond_its_job", || {
        let (status, text) = run("keeps_an_array", &[], SOON);
        assert_eq!(status, Some(0), "{text}");
    }));
    cases.push(case("lines_of_ranks_never_mix", || {
        let (status, text) = run("prints_lines", &[("GA_RANKS", "3")], SOON);
        assert_eq!(status, Some(0), "{text}");
        assert_eq!(text.lines().count(), 600);
        assert!(text.lines().all(|line| line.starts_with("<rank ") && line.ends_with('>') && line.matches('<').count() == 1));
    }));
    cases.push(case("what_ranks_print_does_not_fit", || {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("/dev/full");
        let status = runner::finish(&mut runner::start("prints_lines", &[("GA_RANKS", "3")], &full), SOON);
        // Which failure it is depends on who finds that the reason cannot be printed either.
        assert!(status.is_some_and(|status| !status.success()), "{status:?}");
    }));
    cases.push(case("run_refuses_other_threads", || {
        let (status, text) = run("run_with_threads", &[], SOON);
        assert_eq!(status, Some(1), "{text}");
        says(&text, &["2 other thread"]);
    }));
    cases.push(case("too_few_open_files", || {
        let (status, text) = run("few_open_files", &[], Duration::from_secs(20));
        assert_eq!(status, Some(0), "{text}");
    }));
    cases.push(case("children_die_with_the_parent", children_die));
    cases.push(case("a_cgroup_is_a_limit_of_memory", cgroup));
    cases
}

/// What a program says. MPICH's launcher loses, now and then, what a process writes right before it ends. And a launcher that buries
/// a killed rank at once takes its status with it, before its neighbor reads how it ended. Then once more.
pub(crate) fn heard(launched: bool, words: &[&str], run: impl Fn() -> String) -> String {
    const ATTEMPTS: usize = 6;
    let mut text = run();
    for _ in 1..if launched { ATTEMPTS } else { 1 } {
        if !words.iter().all(|word| text.contains(word)) {
            text = run();
        }
    }
    text
}

pub(crate) fn says(text: &str, words: &[&str]) {
    words.iter().for_each(|word| assert!(text.contains(word), "{word:?} is not in\n{text}"));
}

/// A rank that ended is named once, and was killed only if it was.
pub(crate) fn says_once(text: &str) {
    assert!(text.matches("global-arrays: rank ").count() <= 1, "{text}");
    assert_eq!(text.contains("kill -9"), text.contains("SIGKILL"), "{text}");
}

/// Runs a program, by a launcher if its network is MPI; it must end in time and leave no process behind. Its exit status and all that
/// it printed.
pub(crate) fn run(name: &str, variables: &[(&str, &str)], limit: Duration) -> (Option<i32>, String) {
    let value = |name: &str| variables.iter().find(|(key, _)| *key == name).map_or("", |(_, value)| value);
    let ranks = || value("GA_RANKS").parse().expect("a number of ranks");
    run_on(is_launched(value("GA_NETWORK")).then(ranks), name, variables, limit)
}

/// The same in so many processes that a launcher starts, or in one.
pub(crate) fn run_on(launched: Option<usize>, name: &str, variables: &[(&str, &str)], limit: Duration) -> (Option<i32>, String) {
    let mark = format!("{}-{name}", std::process::id());
    let mut all: Vec<_> = variables.iter().copied().chain([("GA_TEST_MARK", &*mark)]).collect();
    let network;
    if let Some(at) = all.iter().position(|(name, _)| *name == "GA_NETWORK") {
        let parts;
        (network, parts) = runner::network(all[at].1);
        all[at].1 = &network;
        all.extend(parts);
    }
    let (output, begin) = (runner::scratch(), Instant::now());
    let before = runner::leftovers::files();
    let status = if let Some(ranks) = launched {
        let mut launcher = runner::launched::start(ranks, name, &all, &output);
        let status = runner::finish_before(&mut launcher, limit + LAUNCHER);
        if status.is_none() {
            runner::launched::end(&mut launcher);
        }
        status
    } else {
        runner::finish(&mut runner::start(name, &all, &output), limit)
    };
    let text = runner::text(&output);
    let Some(status) = status else { panic!("still running after {:.1} s:\n{text}", begin.elapsed().as_secs_f64()) };
    gone(&mark);
    if all.iter().any(|(name, _)| *name == runner::machines::VARIABLE) {
        // Open MPI names its files by the host, and its launcher removes those of its own host.
        runner::leftovers::remove_but(&before, "machine-");
    }
    if launched.is_some() {
        runner::leftovers::none_but(&before);
    }
    (status.code(), text)
}

fn children_die() {
    let mark = format!("{}-parent", std::process::id());
    let output = runner::scratch();
    let mut parent = runner::start("prints_and_waits", &[("GA_RANKS", "3"), ("GA_TEST_MARK", &mark)], &output);
    let begin = Instant::now();
    while runner::text(&output).lines().count() < 3 {
        assert!(begin.elapsed() < SOON, "the ranks never came: {}", runner::text(&output));
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(marked(&mark).len(), 4);
    parent.kill().and_then(|()| parent.wait()).expect("killing the parent");
    gone(&mark);
}

/// In a memory cgroup of 256 MiB, where the system lets us make one.
fn cgroup() {
    let (version_1, version_2) = (Path::new("/sys/fs/cgroup/memory"), Path::new("/sys/fs/cgroup"));
    let (root, limit) = if version_1.join("memory.limit_in_bytes").exists() {
        (version_1, "memory.limit_in_bytes")
    } else {
        (version_2, "memory.max")
    };
    let own = root.join(format!("global-arrays-test-{}", std::process::id()));
    let end = |why: String| -> ! {
        let _ = fs::remove_dir(&own);
        runner::skip(&why)
    };
    if let Err(error) = fs::create_dir(&own) {
        runner::skip(&format!("cannot make a cgroup in {}: {error}", root.display()));
    }
    if let Err(error) = fs::write(own.join(limit), "268435456") {
        end(format!("cannot limit the memory of a cgroup: {error}"));
    }
    // This process and what it starts.
    if let Err(error) = fs::write(own.join("cgroup.procs"), std::process::id().to_string()) {
        end(format!("cannot enter a cgroup: {error}"));
    }
    let result = std::panic::catch_unwind(|| run("asks_for_too_much", &[("GA_RANKS", "2")], SOON));
    // Out again, so that it can be removed.
    let _ = fs::write(root.join("cgroup.procs"), std::process::id().to_string());
    let _ = fs::remove_dir(&own);
    let (status, text) = result.expect("the program ends");
    assert_eq!(status, Some(0), "{text}");
    says(&text, &["vast", "bytes on machine 0", "are available", "cgroup"]);
}
