//! Figures 13 to 15: a counter of one rank to which all add, and integers that are added to a rank's, by the adapter or under a lock.

use global_arrays::{prelude::*, simulation::Work};

use crate::mean_micros;

/// Additions of each rank.
const TIMES: usize = 20;

/// What the modelled adapter takes for an operation, and what a rank of its machine computes in a second.
const GAP: f64 = 0.06e-6;
const FLOPS: f64 = 8.4e9;

/// Of the integers.
const MOST: usize = 4096;
const OTHER: usize = 1;

/// All ranks add again and again: the adapter of the counter is never idle.
pub(crate) fn saturated(job: &Job) -> Result<Vec<(usize, f64)>, Error> {
    counter(job, 0.0)
}

/// Ranks pause between their additions, so that all of them ask for half of what the adapter can do.
pub(crate) fn half_loaded(job: &Job) -> Result<Vec<(usize, f64)>, Error> {
    counter(job, 2.0 * GAP * job.size() as f64)
}

/// The number of ranks, and the microseconds of an addition: the mean of all ranks but the counter's own; rank 0 has them.
fn counter(job: &Job, pause: f64) -> Result<Vec<(usize, f64)>, Error> {
    let counter = Counter::with_owner(job, 0)?;
    // Each has met the counter's rank.
    counter.fetch_add(1)?;
    job.sync()?;
    let (mut random, mut spent) = (job.rank() as u64, 0.0);
    for _ in 0..TIMES {
        // Pauses of any length up to twice the mean, of a generator of Lehmer.
        random = (random + 1) * 48_271 % 0x7FFF_FFFF;
        let pause = 2.0 * pause * random as f64 / f64::from(0x7FFF_FFFF);
        job.simulation().work(Work::flops(pause * FLOPS));
        let start = job.now();
        counter.fetch_add(1)?;
        spent += 1e6 * (job.now() - start).as_secs_f64();
    }
    let own = if job.rank() == 0 { 0.0 } else { spent };
    let mean = job.all_reduce_one(own, ops::sum)? / (TIMES * (job.size() - 1).max(1)) as f64;
    Ok(if job.rank() == 0 { vec![(job.size(), mean)] } else { Vec::new() })
}

/// By additions of the adapter, of which many are under way.
pub(crate) fn by_adapter(job: &Job) -> Result<Vec<(usize, f64)>, Error> {
    each_size(job, |array, first, values| {
        let places: Vec<[usize; 1]> = (first..first + values.len()).map(|at| [at]).collect();
        array.scatter_op(&places, FetchOp::Add, values)
    })
}

/// By an accumulate, which takes the lock of the other rank.
pub(crate) fn by_lock(job: &Job) -> Result<Vec<(usize, f64)>, Error> {
    each_size(job, |array, first, values| {
        array.accumulate(first..first + values.len(), 1, ndarray::ArrayView1::from(values)).and_then(|()| job.fence(OTHER))
    })
}

/// Bytes, and the microseconds until they are added; rank 0 has them.
fn each_size(
    job: &Job,
    add: impl Fn(&GlobalArray<u64, Ix1>, usize, &[u64]) -> Result<(), Error>,
) -> Result<Vec<(usize, f64)>, Error> {
    let numbers = MOST / 8;
    let array = GlobalArray::<u64, Ix1>::builder(job, [2 * numbers]).zeros().create()?;
    let mut times = Vec::new();
    if job.rank() == 0 {
        for len in (0..).map(|power| 1 << power).take_while(|&len| len <= numbers) {
            let values = vec![1; len];
            add(&array, numbers, &values)?;
            times.push((8 * len, mean_micros(job, TIMES, || add(&array, numbers, &values))?));
        }
    }
    job.sync()?;
    Ok(times)
}
