//! One-sided calls from the threads of a pool.

use std::{sync::mpsc, time::Duration};

use global_arrays::prelude::*;
use rayon::prelude::*;

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

#[test]
fn ranks_of_a_process_share_a_pool() {
    for network in ["threads", "threads:unmapped", "threads:packets+hidden", "ib:soft+hidden"] {
        for ranks in [1, 2, 3] {
            within_limit(network, ranks, one_sided_calls);
        }
    }
}
