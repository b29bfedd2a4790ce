//! One rank with a thread for each core, against a rank for each core: the same machine, in turns. Prints medians, and how fast the threads
//! are beside the ranks.
//!
//! ```sh
//! cargo bench -p global-arrays-benches --features rayon --bench threads -- [ROUNDS]
//! ```

use std::hint::black_box;

use global_arrays::prelude::*;

/// Elements of a vector, and rows of a matrix.
const ELEMENTS: usize = 30_000_000;
const ORDER: usize = 2048;

/// Runs of one job. The first one is not counted.
const RUNS: usize = 4;

/// What is measured, by its name.
const OPERATIONS: [(&str, Operation); 6] = [
    ("par_map", |a, _, _| a.par_map(|x| (x * x + 1.0).sqrt() / (1.0 + 0.5 * x))),
    ("par_zip_with", |a, b, _| a.par_zip_with(&*b, |x, y| (x + y).sqrt())),
    ("fill", |a, _, _| a.fill(1.5)),
    ("axpby", |a, b, _| a.axpby(0.5, &*b, 0.5)),
    ("sum", |a, _, _| a.sum().map(|sum| assert!(black_box(sum) > 0.0))),
    ("matmul", |_, _, [a, b, c]| c.matmul(1.0, &*a, &*b, 0.0)),
];

type Vector = GlobalArray1<f64>;
type Operation = fn(&mut Vector, &mut Vector, &mut [GlobalArray2<f64>; 3]) -> Result<(), Error>;

fn main() -> Result<(), Error> {
    let rounds = std::env::args().find_map(|word| word.parse().ok()).unwrap_or(5);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut seconds = vec![[Vec::new(), Vec::new()]; OPERATIONS.len()];
    for _ in 0..rounds {
        for (way, ranks) in [1, cores].into_iter().enumerate() {
            let of_job = Launch::new().ranks(ranks).run(measure)?;
            seconds.iter_mut().zip(of_job).for_each(|(seconds, own)| seconds[way].extend(own));
        }
    }
    println!("{:<14}{:>20}{:>20}{:>10}", "milliseconds", format!("1 rank x {cores}"), format!("{cores} ranks x 1"), "ratio");
    for ((name, _), [threads, ranks]) in OPERATIONS.iter().zip(seconds) {
        let (threads, ranks) = (1e3 * median(threads), 1e3 * median(ranks));
        println!("{name:<14}{threads:>20.2}{ranks:>20.2}{:>10.3}", ranks / threads);
    }
    Ok(())
}

/// The seconds of the runs of each operation, as the slowest rank sees them.
fn measure(job: &Job) -> Result<Vec<Vec<f64>>, Error> {
    let vector = || Vector::builder(job, [ELEMENTS]).fill(0.7).create();
    let matrix = || GlobalArray2::<f64>::from_fn(job, [ORDER, ORDER], |(i, j)| ((i * 7 + j * 5) % 11) as f64);
    let (mut a, mut b, mut matrices) = (vector()?, vector()?, [matrix()?, matrix()?, matrix()?]);
    let mut run = |operation: Operation| {
        let mut seconds = Vec::new();
        for run in 0..RUNS {
            job.sync()?;
            let start = job.now();
            operation(&mut a, &mut b, &mut matrices)?;
            let took = job.all_reduce_one((job.now() - start).as_secs_f64(), ops::max)?;
            seconds.extend((run > 0).then_some(took));
        }
        Ok(seconds)
    };
    OPERATIONS.iter().map(|(_, operation)| run(*operation)).collect()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
