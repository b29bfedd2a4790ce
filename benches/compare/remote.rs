//! Rows of what crosses from one node to another: small and large transfers, patches of short chunks, a counter, and operations
//! on a rank that computes and calls nothing.
//!
//! A put waits until the caller's memory is free; a fence at the end of a trial, inside its time, waits until all has arrived.
//! `put_flush` waits for arrival each time. So do the peers' programs.

use global_arrays::prelude::*;

use crate::{
    MIB,
    measure::{Bench, Pages},
    message,
    patch::size_name,
};

/// The rank that is written to.
const OTHER: usize = 1;
const CONTIGUOUS: [usize; 3] = [8, 4096, MIB];
const CHUNKS: [usize; 4] = [16, 64, 256, 1024];

pub(crate) fn remote(bench: &Bench<'_>) -> Result<(), Error> {
    contiguous(bench)?;
    for chunk in CHUNKS {
        strided(bench, chunk)?;
    }
    counter(bench)?;
    signal(bench)?;
    message::one_way(bench, 100, "us")?;
    busy(bench)
}

fn contiguous(bench: &Bench<'_>) -> Result<(), Error> {
    let n = MIB / 8;
    let a = GlobalArray::<f64, Ix1>::builder(bench.job, [2 * n]).fill(1.0).create()?;
    bench.alone(|| {
        let mut pages = Pages::new(n);
        for bytes in CONTIGUOUS {
            let (len, shape) = (bytes / 8, size_name(bytes));
            let mut local = ndarray::ArrayViewMut1::from(&mut pages.slice()[..len]);
            let patch = s![n..n + len];
            let fence = || bench.job.fence(OTHER);
            let stat = bench.measure_to_the_end(|| a.put(patch, local.view()), fence)?;
            bench.row("put", &shape, "us", stat, 1.0);
            let stat = bench.measure_alone(|| a.put(patch, local.view()).and_then(|()| fence()))?;
            bench.row("put_flush", &shape, "us", stat, 1.0);
            let stat = bench.measure_alone(|| a.get_into(patch, local.view_mut()))?;
            bench.row("get", &shape, "us", stat, 1.0);
            let stat = bench.measure_to_the_end(|| a.accumulate(patch, 1.0, local.view()), fence)?;
            bench.row("accumulate", &shape, "us", stat, 1.0);
        }
        Ok(())
    })?;
    a.destroy()
}

/// 1 MiB: the second quarter of each row of the other rank's block.
fn strided(bench: &Bench<'_>, chunk: usize) -> Result<(), Error> {
    let (rows, columns) = (MIB / chunk, 4 * chunk / 8);
    let a = GlobalArray::<f64, Ix2>::builder(bench.job, [2 * rows, columns]).grid([2, 1]).fill(1.0).create()?;
    bench.alone(|| {
        let shape = format!("1MiB/{chunk}B");
        let mut pages = Pages::new(MIB / 8);
        let mut local = ndarray::ArrayViewMut2::from_shape([rows, chunk / 8], pages.slice()).map_err(Error::other)?;
        let patch = s![rows..2 * rows, chunk / 8..chunk / 4];
        let fence = || bench.job.fence(OTHER);
        let stat = bench.measure_to_the_end(|| a.put(patch, local.view()), fence)?;
        bench.row("put_strided", &shape, "us", stat, 1.0);
        let stat = bench.measure_alone(|| a.get_into(patch, local.view_mut()))?;
        bench.row("get_strided", &shape, "us", stat, 1.0);
        let stat = bench.measure_to_the_end(|| a.accumulate(patch, 1.0, local.view()), fence)?;
        bench.row("accumulate_strided", &shape, "us", stat, 1.0);
        Ok(())
    })?;
    a.destroy()
}

fn counter(bench: &Bench<'_>) -> Result<(), Error> {
    let counter = Counter::with_owner(bench.job, OTHER)?;
    bench.alone(|| {
        let stat = bench.measure_alone(|| counter.fetch_add(1).map(|_| ()))?;
        bench.row("read_inc", "8B", "us", stat, 1.0);
        Ok(())
    })
}

/// One way: a put with a signal goes there and another comes back, and half of the time counts.
fn signal(bench: &Bench<'_>) -> Result<(), Error> {
    let (rank, a) = (bench.job.rank(), GlobalArray::<f64, Ix1>::builder(bench.job, [2]).fill(1.0).create()?);
    let (signal, local) = (Signal::new(bench.job)?, Array1::from_elem(1, 1.0));
    let (mut sent, other) = (0, 1 - rank);
    let stat = bench.measure_together(|| {
        sent += 1;
        if rank == OTHER {
            signal.wait_at_least(0, sent)?;
        }
        a.put_signal(s![other..other + 1], &local, signal.at(other, 0))?;
        if rank != OTHER { signal.wait_at_least(0, sent) } else { Ok(()) }
    })?;
    bench.row("put_signal", "8B", "us", stat, 2.0);
    a.destroy()
}

fn busy(bench: &Bench<'_>) -> Result<(), Error> {
    let a = GlobalArray::<f64, Ix1>::builder(bench.job, [2]).fill(1.0).create()?;
    let counter = Counter::with_owner(bench.job, OTHER)?;
    let mut local = Array1::from_elem(1, 1.0);
    let patch = s![1..2];
    let stat = bench.measure_busy(OTHER, || a.get_into(patch, &mut local))?;
    bench.row("busy_get", "8B", "us", stat, 1.0);
    let stat = bench.measure_busy(OTHER, || a.put(patch, &local).and_then(|()| bench.job.fence(OTHER)))?;
    bench.row("busy_put", "8B", "us", stat, 1.0);
    let stat = bench.measure_busy(OTHER, || a.accumulate(patch, 1.0, &local).and_then(|()| bench.job.fence(OTHER)))?;
    bench.row("busy_accumulate", "8B", "us", stat, 1.0);
    let stat = bench.measure_busy(OTHER, || counter.fetch_add(1).map(|_| ()))?;
    bench.row("busy_read_inc", "8B", "us", stat, 1.0);
    a.destroy()
}
