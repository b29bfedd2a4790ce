//! Threads of a rank, with the feature `rayon`. Where ranks have one core each, a pool has one thread.

use global_arrays::{Builder, prelude::*};
use rayon::prelude::*;

type Layout = fn(Builder<'_, f64, Ix2>, [usize; 2]) -> Builder<'_, f64, Ix2>;

/// Parallel operations are the sequential ones, and the threads of a pool reach all members.
pub(crate) fn parallel(job: &Job) -> Result<(), Error> {
    for (shape, block) in [([1, 1], [1, 1]), ([0, 4], [2, 2]), ([37, 53], [4, 5]), ([400, 301], [64, 64])] {
        let layouts: [Layout; 3] = [|a, _| a, |a, block| a.block_cyclic(block), |a, block| a.tiled(block)];
        for layout in layouts {
            let make = || layout(GlobalArray2::<f64>::builder(job, shape), block).fill(1.25).create();
            let (mut a, mut b, plain) =
                (make()?, make()?, GlobalArray2::<f64>::from_fn(job, shape, |(i, j)| (i * 3 + j) as f64)?);
            a.map(|x| x.sqrt() + 1.0)?;
            a.zip_with(&plain, |x, y| x / (1.0 + y))?;
            b.par_map(|x| x.sqrt() + 1.0)?;
            b.par_zip_with(&plain, |x, y| x / (1.0 + y))?;
            let pool = job.pool()?;
            b.owner_epoch(|mut part| {
                pool.install(|| part.par_blocks().for_each(|(_, mut block)| block.mapv_inplace(|x| 2.0 * x)));
            })?;
            a.scale(2.0)?;
            b.zip_with(&a, |x, y| if x == y { 0.0 } else { 1.0 })?;
            assert_eq!(b.sum()?, 0.0, "{shape:?}");
        }
    }
    if job.network().starts_with("simulated:") {
        // Only the rank's own thread has a place in virtual time.
        return job.sync();
    }
    let (calls, a) = (60, GlobalArray1::<f64>::zeros(job, [10 * job.size()])?);
    job.pool()?.install(|| {
        (0..calls).into_par_iter().try_for_each(|i| {
            let at = (i * 7 + job.rank()) % a.len();
            a.accumulate(at..at + 1, 1.0, &arr1(&[1.0]))?;
            if a.get(at..at + 1)?[0] < 1.0 { Err(Error::other("a lost accumulate")) } else { Ok(()) }
        })
    })?;
    assert_eq!(a.sum()?, (calls * job.size()) as f64);
    job.sync()
}
