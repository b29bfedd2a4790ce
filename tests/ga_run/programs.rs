//! What the cases start on ranks.

use std::{env, time::Duration};

use global_arrays::{Error, GlobalArray, Job, ndarray::Array1, run};

use crate::runner::{Case, program};

pub(crate) fn all() -> Vec<Case> {
    let job = |name: &'static str, body: fn(&Job) -> Result<(), Error>| program(name, move || ends(run(body)));
    vec![
        program("three_jobs", || {
            for _ in 0..3 {
                ends(run(adds));
            }
        }),
        program("one_never_comes", || {
            if env::var("GA_RANK").as_deref() != Ok("1") {
                ends(run(|job| job.sync()));
            }
        }),
        job("works", |job| {
            println!("rank {} is process {}", job.rank(), std::process::id());
            loop {
                job.sync()?;
                std::thread::sleep(Duration::from_millis(1));
            }
        }),
        job("panics", |job| {
            assert!(job.rank() != 1, "the culprit's own words");
            loop {
                job.sync()?;
            }
        }),
        job("exits", |job| if job.rank() == 1 { std::process::exit(7) } else { job.sync() }),
        job("nothing", |job| job.sync()),
    ]
}

/// As the `main` of a program that returns the error of its job.
fn ends(result: Result<(), Error>) {
    if let Err(error) = result {
        eprintln!("Error: {error}");
        std::process::exit(1);
    }
}

/// Every rank adds to all elements, and finds what all have added.
fn adds(job: &Job) -> Result<(), Error> {
    let (rank, ranks) = (job.rank(), job.size());
    let a = GlobalArray::<f64, _>::builder(job, [5 * ranks]).zeros().create()?;
    a.accumulate(.., 1.0, &Array1::from_elem(5 * ranks, (rank + 1) as f64))?;
    job.sync()?;
    let sum = (ranks * (ranks + 1) / 2) as f64;
    let all = a.get(..)?;
    assert!(all.iter().all(|&element| element == sum), "{all} on rank {rank}");
    println!("rank {rank} of {ranks} reads {sum}");
    Ok(())
}
