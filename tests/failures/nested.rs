//! Jobs inside jobs: a rank starts none, whatever the conduits.

use std::{sync::Barrier, time::Duration};

use global_arrays::prelude::*;

use crate::{
    checks::{self, BOTH, PROCESSES},
    programs::{self, Body},
    runner::{Case, case, program},
};

const BODIES: &[(&str, Body)] = &[
    ("a_rank_starts_a_job", |job| {
        starts_none();
        job.sync()
    }),
    ("a_thread_of_a_rank_starts_a_job", |job| {
        std::thread::scope(|scope| scope.spawn(starts_none).join()).expect("a refusal");
        job.sync()
    }),
];

/// Neither this process nor this thread may start a job.
fn starts_none() {
    for network in ["shared_memory", "threads", "threads:unmapped"] {
        let refusal = Launch::new().network(network).ranks(2).run(|job| job.sync()).expect_err("a rank starts a job");
        assert!(refusal.to_string().contains("is a rank of a running job"), "{refusal}");
    }
}

/// Jobs of threads fork nothing: two may run at once, and others after them.
fn two_jobs_at_once() {
    let all = Barrier::new(4);
    let run = || {
        let body = |job: &Job| {
            let a = GlobalArray::<u64, Ix1>::builder(job, [30]).fill(1).create()?;
            all.wait();
            assert_eq!(a.get(..)?.sum(), 30);
            starts_none();
            all.wait();
            job.sync()
        };
        Launch::new().network("threads").ranks(2).run(body).expect("a job of threads");
    };
    for _ in 0..2 {
        std::thread::scope(|scope| [(); 2].map(|()| scope.spawn(run)).map(|job| job.join().expect("no panic")));
    }
    for network in ["threads", "shared_memory"] {
        Launch::new().network(network).ranks(2).run(|job| job.sync()).expect("one more");
    }
}

pub(crate) fn programs() -> Vec<Case> {
    BODIES.iter().map(|&(name, body)| program(name, move || programs::end(global_arrays::run(body)))).collect()
}

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = vec![case("two_jobs_of_threads_at_once", two_jobs_at_once)];
    let launched = crate::runner::launched::network();
    for &(name, _) in BODIES {
        // A thread that a rank starts is not known as one of the rank's where the process is no rank.
        let local = if name == "a_rank_starts_a_job" { BOTH } else { PROCESSES };
        for &network in local.iter().chain(&launched) {
            cases.push(case(format!("{network}::{name}"), move || {
                let (status, text) = checks::run(name, &[("GA_NETWORK", network), ("GA_RANKS", "3")], Duration::from_secs(20));
                assert_eq!(status, Some(0), "{text}");
            }));
        }
    }
    cases
}
