//! Ranks that nobody but a script started: they meet at rank 0.

use std::{
    fs::File,
    net::TcpListener,
    process::Child,
    time::{Duration, Instant},
};

use crate::{
    checks::{SOON, says},
    programs::STARTS,
    runner::{self, Case, case},
};

const RANKS: usize = 3;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        case("root::ranks_meet", || ranks_meet(&[SECRET])),
        case("root::a_rank_that_is_killed", || a_rank_that_is_killed(&[SECRET])),
        case("root::ranks_that_start_meet", || ranks_meet(&[SECRET, (STARTS, "1")])),
        case("root::a_rank_that_starts_and_is_killed", || a_rank_that_is_killed(&[SECRET, (STARTS, "1")])),
        // Rank 2 is the agent of its machine.
        case("root::a_rank_of_two_machines_that_is_killed", || one_of_two_machines_is_killed(3)),
        case("root::an_agent_of_two_machines_that_is_killed", || one_of_two_machines_is_killed(2)),
        case("root::a_rank_of_two_machines_that_panics", one_of_two_machines_panics),
        case("root::what_is_missing_is_said", what_is_missing_is_said),
    ]
}

/// Starts all ranks, the first one last; each with what it says.
fn start(name: &str, network: &str, ranks: usize, more: &[(&str, &str)]) -> Vec<(Child, File)> {
    let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port").port();
    let (root, size) = (format!("127.0.0.1:{port}"), ranks.to_string());
    let start = |rank: usize| {
        let (rank, output) = (rank.to_string(), runner::scratch());
        let own = [("GA_ROOT", &*root), ("GA_RANK", &*rank), ("GA_RANKS", &*size), ("GA_NETWORK", network)];
        let child = runner::start(name, &[&own[..], more].concat(), &output);
        (child, output)
    };
    let mut all: Vec<_> = (0..ranks).rev().map(start).collect();
    all.reverse();
    all
}

/// How each rank ended, and what it said.
fn run(name: &str, more: &[(&str, &str)]) -> Vec<(Option<i32>, String)> {
    run_over(name, "shared_memory", more)
}

/// The same over a network.
pub(crate) fn run_over(name: &str, network: &str, more: &[(&str, &str)]) -> Vec<(Option<i32>, String)> {
    let mut all = start(name, network, RANKS, more);
    let end = |(child, output): &mut (_, _)| {
        let status = runner::finish(child, SOON).and_then(|status| status.code());
        (status, runner::text(output))
    };
    all.iter_mut().map(end).collect()
}

pub(crate) const SECRET: (&str, &str) = ("GA_TOKEN", "a secret of the tests");

fn ranks_meet(more: &[(&str, &str)]) {
    let ended = run("says_its_size", more);
    assert!(ended.iter().all(|(status, _)| *status == Some(0)), "{ended:?}");
    let said: String = ended.into_iter().map(|(_, text)| text).collect();
    assert_eq!(said.trim(), format!("{RANKS} ranks"));
}

fn a_rank_that_is_killed(more: &[(&str, &str)]) {
    let start = std::time::Instant::now();
    let ended = run("killed_in_sync", more);
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    assert!(ended.iter().all(|(status, _)| *status != Some(0)), "{ended:?}");
    let others = [&*ended[0].1, &*ended[2].1].concat();
    says(&others, &["rank 1 was killed by SIGKILL"]);
}

/// Every other rank names it, within five seconds, and none is left. No parent sees the ends of these processes, and the machines share no memory.
fn one_of_two_machines_is_killed(victim: usize) {
    let before = runner::leftovers::files();
    let mut all = start("works_for_ever", "ib:sockets", 4, &[SECRET, ("GA_TEST_MACHINES", "2")]);
    let begin = Instant::now();
    while !all.iter().all(|(_, output)| runner::text(output).contains(" works")) {
        if let Some(text) = all.iter().map(|(_, output)| runner::text(output)).find(|text| text.contains("cannot be run")) {
            all.iter_mut().for_each(|(child, _)| drop(child.kill().and_then(|()| child.wait())));
            runner::skip(text.trim().trim_start_matches("cannot be run: "));
        }
        let said = || all.iter().map(|(_, output)| runner::text(output)).collect::<Vec<_>>();
        assert!(begin.elapsed() < 4 * SOON, "the ranks never worked: {:?}", said());
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(300));
    all[victim].0.kill().expect("killing a rank");
    let end = |(child, output): &mut (Child, File)| (runner::finish(child, SOON), runner::text(output));
    let killed = Instant::now();
    let ended: Vec<_> = all.iter_mut().map(end).collect();
    assert!(killed.elapsed() < SOON, "{:?}: {ended:?}", killed.elapsed());
    for (_, (status, text)) in ended.iter().enumerate().filter(|(rank, _)| *rank != victim) {
        assert!(status.is_some_and(|status| !status.success()), "{ended:?}");
        let names = [" was killed by SIGKILL", " has closed its connection"].map(|end| format!("rank {victim}{end}"));
        assert!(names.iter().any(|name| text.contains(name)), "{ended:?}");
        // Its program has the error: the library does not end the process.
        assert!(!text.contains("is ended: "), "{ended:?}");
    }
    let left = runner::leftovers::remove_all_but(&before);
    assert!(left.is_empty(), "the ranks left {left:?}");
}

/// All ranks name it with its words, its own and those of the other machine.
fn one_of_two_machines_panics() {
    let mut all = start("panics", "ib:sockets", 4, &[SECRET, ("GA_TEST_MACHINES", "2")]);
    let end = |(child, output): &mut (Child, File)| (runner::finish(child, 4 * SOON), runner::text(output));
    let ended: Vec<_> = all.iter_mut().map(end).collect();
    if let Some((_, text)) = ended.iter().find(|(_, text)| text.contains("cannot be run")) {
        runner::skip(text.trim().trim_start_matches("cannot be run: "));
    }
    for (status, text) in &ended {
        assert!(status.is_some_and(|status| !status.success()), "{ended:?}");
        assert!(text.contains("Error: rank 1 panicked: the culprit's own words"), "{ended:#?}");
    }
}

fn what_is_missing_is_said() {
    for (status, text) in run("says_its_size", &[]) {
        assert_eq!(status, Some(1), "{text}");
        says(&text, &["Error: cannot start a job", "GA_TOKEN", "GA_TOKEN_FILE"]);
    }
    let output = runner::scratch();
    let mut child = runner::start("says_its_size", &[("GA_ROOT", "127.0.0.1:1"), ("GA_NETWORK", "shared_memory")], &output);
    assert_eq!(runner::finish(&mut child, SOON).and_then(|status| status.code()), Some(1));
    says(&runner::text(&output), &["Error: cannot start a job", "GA_RANK", "GA_RANKS"]);
}
