//! How long it takes to connect with a rank that computes: ARMCI-ODCM, figure 12.

use global_arrays::{prelude::*, simulation::Work};

/// Microseconds that rank 0 needs to reach a rank that it has no connection with yet, as the mean of all of them. The others compute.
pub(crate) fn connect(job: &Job) -> Result<Vec<(usize, f64)>, Error> {
    let array = GlobalArray::<u64, Ix1>::builder(job, [job.size()]).zeros().create()?;
    let opened = || job.stats().and_then(|stats| stats.connections()).map_or(0, |counts| counts.opened);
    job.sync()?;
    let mut times = Vec::new();
    if job.rank() == 0 {
        let (before, begin) = (opened(), job.now());
        let mut rest = 0.0;
        for other in 1..job.size() {
            let (known, start) = (opened(), job.now());
            array.fetch_add([other], 1)?;
            // Agreements have connected it with some.
            if opened() == known {
                rest += (job.now() - start).as_secs_f64();
            }
        }
        let (new, all) = (opened() - before, (job.now() - begin).as_secs_f64());
        assert!(new > 0, "a network that connects, and ranks that were not reached before");
        times.push((8, 1e6 * (all - rest) / new as f64));
    } else {
        // As long as it may take.
        job.simulation().work(Work::flops(1e9 * job.size() as f64));
    }
    job.sync()?;
    Ok(times)
}
