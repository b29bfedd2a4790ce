//! Figures 16 and 17: every rank writes to the memory that every rank exposes.
//!
//! Each exposes 512 bytes. In step k of a *shift*, a rank writes to the one k places on. A *transpose* exchanges blocks in pairs, as transposes
//! of matrices and of Fourier transforms do: in step k with the rank whose number differs in the bits of k. No two write to one rank at a time.
//! Both take p puts of each rank, and end when all have arrived. Where messages share no links, their time grows like p.

use global_arrays::prelude::*;
use ndarray::ArrayView1;

/// Of a put.
const BYTES: usize = 512;

pub(crate) fn shift(job: &Job) -> Result<Vec<(usize, f64)>, Error> {
    to_all(job, |step| (job.rank() + step) % job.size())
}

pub(crate) fn transpose(job: &Job) -> Result<Vec<(usize, f64)>, Error> {
    if !job.size().is_power_of_two() {
        return Err(Error::other(format!("pairs need a power of two of ranks, and there are {}", job.size())));
    }
    to_all(job, |step| job.rank() ^ step)
}

/// The bytes of a put and the microseconds until the last rank is through; rank 0 has them. `target` is the rank of each step.
fn to_all(job: &Job, target: impl Fn(usize) -> usize) -> Result<Vec<(usize, f64)>, Error> {
    let len = BYTES / 8;
    let array = GlobalArray::<f64, Ix2>::builder(job, [job.size(), len]).grid([job.size(), 1]).zeros().create()?;
    let local = vec![1.0; len];
    job.sync()?;
    let start = job.now();
    for rank in (0..job.size()).map(target) {
        array.put(s![rank, ..], ArrayView1::from(&local))?;
    }
    job.sync()?;
    let micros = job.all_reduce_one(1e6 * (job.now() - start).as_secs_f64(), ops::max)?;
    Ok(if job.rank() == 0 { vec![(BYTES, micros)] } else { Vec::new() })
}
