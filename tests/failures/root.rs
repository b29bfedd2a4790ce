//! Ranks that nobody but a script started: they meet at rank 0.

use std::{net::TcpListener, time::Duration};

use crate::{
    checks::{SOON, says},
    runner::{self, Case, case},
};

const RANKS: usize = 3;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        case("root::ranks_meet", ranks_meet),
        case("root::a_rank_that_is_killed", a_rank_that_is_killed),
        case("root::what_is_missing_is_said", what_is_missing_is_said),
    ]
}

/// Starts all ranks, the first one last; how each ended, and what it said.
fn run(name: &str, more: &[(&str, &str)]) -> Vec<(Option<i32>, String)> {
    let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port").port();
    let (root, ranks) = (format!("127.0.0.1:{port}"), RANKS.to_string());
    let start = |rank: usize| {
        let (rank, output) = (rank.to_string(), runner::scratch());
        let own = [("GA_ROOT", &*root), ("GA_RANK", &*rank), ("GA_RANKS", &*ranks), ("GA_NETWORK", "shared_memory")];
        let child = runner::start(name, &[&own[..], more].concat(), &output);
        (child, output)
    };
    let mut all: Vec<_> = (0..RANKS).rev().map(start).collect();
    all.reverse();
    let end = |(child, output): &mut (_, _)| {
        let status = runner::finish(child, SOON).and_then(|status| status.code());
        (status, runner::text(output))
    };
    all.iter_mut().map(end).collect()
}

const SECRET: (&str, &str) = ("GA_TOKEN", "a secret of the tests");

fn ranks_meet() {
    let ended = run("says_its_size", &[SECRET]);
    assert!(ended.iter().all(|(status, _)| *status == Some(0)), "{ended:?}");
    let said: String = ended.into_iter().map(|(_, text)| text).collect();
    assert_eq!(said.trim(), format!("{RANKS} ranks"));
}

fn a_rank_that_is_killed() {
    let start = std::time::Instant::now();
    let ended = run("killed_in_sync", &[SECRET]);
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    assert!(ended.iter().all(|(status, _)| *status != Some(0)), "{ended:?}");
    let others = [&*ended[0].1, &*ended[2].1].concat();
    says(&others, &["rank 1 was killed by SIGKILL"]);
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
