//! Rows of counters, barriers, creation and the job itself.

use std::{hint::black_box, time::Instant};

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
    if bench.job.size() == 2 { shared(bench) } else { Ok(()) }
}

/// Epochs of one array and of four, and ten operations that share a sync: arrays so small that only the calls cost.
fn shared(bench: &Bench<'_>) -> Result<(), Error> {
    let new = || GlobalArray1::<f64>::zeros(bench.job, [16]);
    let (mut a, mut b, mut c, mut d) = (new()?, new()?, new()?, new()?);
    let stat = bench.measure_together(|| bench.job.epoch(a.owned_mut(), |part| _ = black_box(&part)))?;
    bench.row("epoch", "1 array", "us", stat, 1.0);
    let four = || bench.job.epoch((a.owned_mut(), b.owned_mut(), c.owned_mut(), d.owned_mut()), |parts| _ = black_box(&parts));
    let stat = bench.measure_together(four)?;
    bench.row("epoch", "4 arrays", "us", stat, 1.0);
    let stat = bench.measure_together(|| (0..10).try_for_each(|_| a.scale(1.0)))?;
    bench.row("scale", "10 times", "us", stat, 1.0);
    let stat = bench.measure_together(|| bench.job.unsynced(|| (0..10).try_for_each(|_| a.scale(1.0))))?;
    bench.row("scale", "10 times unsynced", "us", stat, 1.0);
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
