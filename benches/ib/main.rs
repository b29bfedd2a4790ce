//! What the layers add to the software device of InfiniBand: transfers of a `GlobalArray` over `ib:soft`, beside the same works on the device alone.
//!
//! ```text
//! cargo bench --package global-arrays-benches --features device --bench ib
//! ```
//!
//! The software device has done a work when it is posted, so no fence waits here; with an adapter a fence lasts until its answer has come.
//! Rank 1 sleeps meanwhile, so nobody else asks the device for anything: the difference is the processor time of the layers. The two are
//! measured in turns, and each figure is the median. `fenced` is one transfer, and the wait until it has landed; `in a row` is many, and one wait.

use std::{
    hint::black_box,
    sync::Barrier,
    time::{Duration, Instant},
};

use global_arrays::{bench::Bare, prelude::*};

const LONGEST: usize = 1 << 20;

/// Measurements of each figure, and what one takes about.
const REPEATS: usize = 41;
const TIME: Duration = Duration::from_millis(4);

/// A transfer of so many bytes, so many in a row.
#[derive(Clone, Copy)]
enum Transfer {
    Put,
    Get,
}

const ROWS: &[(Transfer, usize, usize)] = &[
    (Transfer::Put, 8, 1),
    (Transfer::Put, 8, 1000),
    (Transfer::Put, 4096, 1),
    (Transfer::Put, LONGEST, 1),
    (Transfer::Put, LONGEST, 32),
    (Transfer::Get, 8, 1),
    (Transfer::Get, 4096, 1),
    (Transfer::Get, LONGEST, 1),
];

fn main() -> Result<(), Error> {
    // Cargo's own flags.
    let (wanted, done) = (std::env::args().skip(1).find(|word| !word.starts_with('-')), Barrier::new(2));
    Launch::new().network("ib:soft").ranks(2).ranks_per_node(1).run(|job| {
        let words = LONGEST / size_of::<f64>();
        let array = GlobalArray::builder(job, [2, words]).grid([2, 1]).fill(1.0).create()?;
        if job.rank() == 0 {
            println!("{:24} {:>12} {:>12} {:>12} {:>8}", "", "the device", "ours", "more", "of its");
            println!("{:24} {:>12} {:>12} {:>12} {:>8}", "", "µs", "µs", "ns", "rate");
            let ours = Ours { array: &array, values: Array1::ones(words) };
            for &(transfer, bytes, count) in ROWS {
                let name = name(transfer, bytes, count);
                if wanted.as_ref().is_none_or(|wanted| name.contains(wanted)) {
                    row(&name, &ours, transfer, bytes, count)?;
                }
            }
        }
        done.wait();
        job.barrier()
    })
}

fn name(transfer: Transfer, bytes: usize, count: usize) -> String {
    let transfer = match transfer {
        Transfer::Put => "put",
        Transfer::Get => "get",
    };
    let size = if bytes < LONGEST { format!("{bytes} B") } else { format!("{} MiB", bytes / LONGEST) };
    format!("{transfer} of {size}, {}", if count == 1 { "fenced".into() } else { format!("{count} in a row") })
}

struct Ours<'a> {
    array: &'a GlobalArray<f64, Ix2>,
    values: Array1<f64>,
}

impl Ours<'_> {
    fn run(&mut self, transfer: Transfer, bytes: usize, count: usize) -> Result<(), Error> {
        let words = bytes / size_of::<f64>();
        match transfer {
            Transfer::Put => {
                let values = self.values.slice(s![..words]);
                (0..count).try_for_each(|_| self.array.put(s![1, ..words], values))?;
                self.array.fence()
            }
            Transfer::Get => (0..count).try_for_each(|_| self.array.get_into(s![1, ..words], self.values.slice_mut(s![..words]))),
        }
    }
}

fn row(name: &str, ours: &Ours<'_>, transfer: Transfer, bytes: usize, count: usize) -> Result<(), Error> {
    let mut bare = Bare::new(LONGEST);
    let mut ours = Ours { array: ours.array, values: ours.values.clone() };
    let mut alone = || -> Result<(), Error> {
        match transfer {
            Transfer::Put => bare.write(bytes, count),
            Transfer::Get => (0..count).for_each(|_| bare.read(bytes, 1)),
        }
        black_box(&mut bare);
        Ok(())
    };
    let mut layers = || ours.run(transfer, bytes, count);
    let runs = [runs(&mut alone)?, runs(&mut layers)?];
    let mut taken = [const { Vec::new() }; 2];
    for _ in 0..REPEATS {
        taken[0].push(time(runs[0], &mut alone)?);
        taken[1].push(time(runs[1], &mut layers)?);
    }
    let [device, whole] = taken.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[REPEATS / 2] / count as f64
    });
    println!("{name:24} {:12.3} {:12.3} {:12.0} {:8.3}", 1e6 * device, 1e6 * whole, 1e9 * (whole - device), device / whole);
    Ok(())
}

/// How often something is run in a measurement.
fn runs(run: &mut impl FnMut() -> Result<(), Error>) -> Result<u32, Error> {
    let (start, mut runs) = (Instant::now(), 0);
    while start.elapsed() < TIME {
        run()?;
        runs += 1;
    }
    Ok(runs)
}

/// Seconds of one run.
fn time(runs: u32, run: &mut impl FnMut() -> Result<(), Error>) -> Result<f64, Error> {
    let start = Instant::now();
    (0..runs).try_for_each(|_| run())?;
    Ok(start.elapsed().as_secs_f64() / f64::from(runs))
}
