//! Layers that show what goes over a network: every rank says it once, however its body ends, and the numbers are right.

use std::time::Duration;

use global_arrays::prelude::*;

use crate::{
    checks, forks,
    programs::{self, Body, CULPRIT},
    runner::{Case, case, program},
};

const RANKS: usize = 2;

const BODIES: &[(&str, Body)] = &[
    ("moves_a_little", moves_a_little),
    ("moves_a_little_and_panics", |job| {
        moves_a_little(job)?;
        assert!(job.rank() != CULPRIT, "the culprit's own words");
        job.sync()
    }),
    ("moves_a_little_and_forks", |job| {
        moves_a_little(job)?;
        if let Some(child) = forks::fork() {
            forks::end_of(child);
        }
        // The child comes out of the body as the rank does.
        job.sync()
    }),
];

/// Rank 0 asks the network for some operations on memory of rank 1, and rank 1 for none.
fn moves_a_little(job: &Job) -> Result<(), Error> {
    let a = GlobalArray::<i64, Ix1>::builder(job, [8]).zeros().create()?;
    assert_eq!(a.owner([4])?, 1);
    job.sync()?;
    if job.rank() == 0 {
        (0..3).try_for_each(|turn| a.put(s![5..7], &Array1::from_elem(2, turn)))?;
        job.fence(1)?;
        (0..2).try_for_each(|_| a.get(s![4..8]).map(|all| assert_eq!(all.to_vec(), [0, 2, 2, 0])))?;
        (0..4).try_for_each(|turn| a.fetch_add([7], 10).map(|old| assert_eq!(old, 10 * turn)))?;
    }
    job.sync()
}

/// What a program prints of its layers, by rank.
fn said(name: &str, network: &str, ends_well: bool) -> [Vec<String>; RANKS] {
    let variables = [("GA_NETWORK", network), ("GA_RANKS", "2")];
    let (ended, text) = checks::run(name, &variables, Duration::from_secs(20));
    assert_eq!(ended == Some(0), ends_well, "{text}");
    [0, 1].map(|rank| {
        let start = format!("global-arrays: rank {rank}");
        // Under a launcher, half a line of another rank may stand before it.
        text.lines().filter_map(|line| line.split_once(&*start)).map(|(_, said)| said.to_owned()).collect()
    })
}

/// One line of each rank.
fn counts(name: &str, network: &str) {
    let panics = name.ends_with("panics");
    // Where a process fails, MPICH's launcher sometimes drops what it wrote last.
    let tries = if panics && network.starts_with("mpi") { 5 } else { 1 };
    let mut all = (0..tries).map(|_| said(name, network, !panics));
    let said = all.find(|said| said.iter().all(|lines| !lines.is_empty())).unwrap_or_default();
    let line = |rank: usize| {
        let lines: Vec<_> = said[rank].iter().filter_map(|line| line.strip_prefix(" asked its network for ")).collect();
        let [line] = lines[..] else { panic!("{said:?}") };
        line.split(", ").collect::<Vec<_>>()
    };
    let (busy, idle) = (line(0), line(1));
    for word in ["put 3 (48 bytes)", "get 2 (64 bytes)", "atomic 4 (32 bytes)"] {
        assert!(busy.contains(&word), "{word} is not in {busy:?}");
    }
    let of_body = |word: &&str| ["put ", "get ", "atomic ", "flush "].iter().any(|kind| word.starts_with(kind));
    assert!(!idle.is_empty() && !idle.iter().any(of_body), "{idle:?}");
}

/// A line of each operation, and of each event.
fn traces(network: &str) {
    let [busy, idle] = said("moves_a_little", network, true);
    let of = |lines: &[String], words: &[&str]| lines.iter().filter(|line| words.iter().all(|word| line.contains(word))).count();
    for (words, times) in [
        (&["µs: put rank 1 at ", ", 16 bytes, Token("][..], 3),
        (&["µs: get rank 1 at ", ", 32 bytes, Token("], 2),
        (&["µs: atomic rank 1 at ", ", 8 bytes, Token(", "Atomic {", "operand: 10", "Pending"], 4),
        (&["µs: Value(Token(", ", 30)"], 1),
    ] {
        assert_eq!(of(&busy, words), times, "{words:?} in {busy:#?}");
    }
    // What is not complete at once has an event.
    let [pending, complete] = ["Pending", "Complete"].map(|issued| of(&busy, &["µs: get rank 1 at ", issued]));
    assert!(pending + complete == 2 && of(&busy, &["LocalDone("]) >= pending, "{busy:#?}");
    assert!(!idle.is_empty() && of(&idle, &["put rank"]) == 0, "{idle:#?}");
}

/// Nothing goes over the network where all memory is mapped.
fn is_refused(network: &str) {
    let variables = [("GA_NETWORK", network), ("GA_RANKS", "2")];
    let (ended, text) = checks::run("moves_a_little", &variables, Duration::from_secs(20));
    assert_ne!(ended, Some(0), "{text}");
    assert!(text.contains("would do nothing") && text.contains("add +hidden"), "{text}");
}

pub(crate) fn programs() -> Vec<Case> {
    BODIES.iter().map(|&(name, body)| program(name, move || programs::end(global_arrays::run(body)))).collect()
}

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let launched = crate::runner::launched::network();
    for &network in ["threads", "shared_memory", "threads:packets"].iter().chain(&launched) {
        for &(name, _) in BODIES {
            // The child would wait in `run` for ranks that it does not have.
            if network.starts_with("threads") && name.ends_with("forks") {
                continue;
            }
            cases.push(case(format!("{network}::counted::{name}"), move || counts(name, &format!("{network}+hidden+counted"))));
        }
        cases.push(case(format!("{network}::traced"), move || traces(&format!("{network}+hidden+traced"))));
        cases.push(case(format!("{network}::counted_in_vain"), move || is_refused(&format!("{network}+counted"))));
    }
    cases
}
