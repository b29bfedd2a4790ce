//! Rows of counters, barriers, creation and the job itself.

use std::time::Instant;

use global_arrays::prelude::*;

use crate::measure::{Bench, Report, row, summary};

pub(crate) fn counter(bench: &Bench<'_>) -> Result<(), Error> {
    let counter = Counter::with_owner(bench.job, 1)?;
    bench.alone(|| {
        let stat = bench.measure_alone(|| counter.fetch_add(1).map(|_| ()))?;
        bench.row("read_inc", "one rank", "ns", stat, 1.0);
        Ok(())
    })?;
    let stat = bench.measure_together(|| counter.fetch_add(1).map(|_| ()))?;
    bench.row("read_inc", "two ranks", "ns", stat, 1.0);
    Ok(())
}

pub(crate) fn sync(bench: &Bench<'_>) -> Result<(), Error> {
    let stat = bench.measure_together(|| bench.job.sync())?;
    bench.row("sync", &format!("{} ranks", bench.job.size()), "us", stat, 1.0);
    Ok(())
}

/// Create and destroy in memory that is committed already: the warm-up committed it.
pub(crate) fn create(bench: &Bench<'_>) -> Result<(), Error> {
    for n in [64, 4096] {
        let stat = bench.measure_together(|| GlobalArray::<f64, Ix2>::builder(bench.job, [n, n]).create()?.destroy())?;
        bench.row("create_destroy", &format!("{n}^2"), "us", stat, 1.0);
    }
    Ok(())
}

/// Start and end of a job of two ranks.
pub(crate) fn job(report: &Report) -> Result<(), Error> {
    let run = || -> Result<f64, Error> {
        let start = Instant::now();
        Launch::new().ranks(2).run(|job| job.sync())?;
        Ok(start.elapsed().as_secs_f64())
    };
    run()?;
    let stat = summary((0..11).map(|_| run()).collect::<Result<Vec<_>, Error>>()?, 1);
    report.line(&row("job", "2 ranks", "ms", stat, 1.0));
    Ok(())
}
