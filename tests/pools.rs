//! One-sided calls from the threads of a pool.

use std::{sync::mpsc, time::Duration};

use global_arrays::prelude::*;
use rayon::prelude::*;
use rustix::thread::sched_getaffinity;

/// The longest that a job may take, which takes some seconds.
const LIMIT: Duration = Duration::from_secs(60);

/// Runs a body on ranks that are threads of this process, and fails where they hang.
fn within_limit(network: &str, ranks: usize, body: impl Fn(&Job) -> Result<(), Error> + Send + Sync + 'static) {
    let (told, outcome) = mpsc::channel();
    let launch = Launch::new().ranks(ranks).network(network);
    std::thread::spawn(move || told.send(launch.run(body)));
    let outcome = outcome.recv_timeout(LIMIT).unwrap_or_else(|_| panic!("{network}: {ranks} ranks hang"));
    outcome.unwrap_or_else(|error| panic!("{network}, {ranks} ranks: {error}"));
}

/// Each rank accumulates to all ranks, and reads them, from rayon's global pool, which the ranks of the process share.
fn one_sided_calls(job: &Job) -> Result<(), Error> {
    const CALLS: usize = 1000;
    let a = GlobalArray1::<f64>::zeros(job, [64 * job.size()])?;
    job.sync()?;
    (0..CALLS).into_par_iter().try_for_each(|i| {
        let at = (i * 7 + job.rank()) % (a.len() - 8);
        a.accumulate(at..at + 8, 1.0, &Array1::ones(8))?;
        let read = a.get(at..at + 8)?;
        if read.iter().any(|x| *x < 1.0) { Err(Error::other(format!("{read}"))) } else { Ok(()) }
    })?;
    job.sync()?;
    assert_eq!(a.sum()?, (8 * CALLS * job.size()) as f64);
    job.sync()
}

/// Each thread of a pool has one core of its rank, and no two have the same; without pins they have all of the process.
#[test]
fn threads_of_a_pool_have_cores_of_their_own() {
    let cores = || {
        let own = sched_getaffinity(None).expect("the cores of a thread");
        (0..1024).filter(|&core| own.is_set(core)).collect::<Vec<_>>()
    };
    let all = cores();
    for (pin, ranks) in [(true, 1), (true, all.len()), (false, 1)] {
        let body = |job: &Job| {
            let mut of_threads = job.pool()?.broadcast(|_| cores());
            of_threads.sort();
            let own = if pin { cores() } else { all.clone() };
            let expected = if pin { own.iter().map(|&core| vec![core]).collect() } else { vec![own; job.threads().get()] };
            assert_eq!(of_threads, expected, "{ranks} ranks, pinned: {pin}");
            job.sync()
        };
        Launch::new().ranks(ranks).network("threads").pin(pin).run(body).expect("a job");
    }
}

#[test]
fn ranks_of_a_process_share_a_pool() {
    for network in ["threads", "threads:unmapped", "threads:packets+hidden", "ib:soft+hidden"] {
        for ranks in [1, 2, 3] {
            within_limit(network, ranks, one_sided_calls);
        }
    }
}
