//! What a network costs between two ranks, in the terms of LogGP (A. Alexandrov, M. Ionescu, K. Schauser, C. Scheiman: *LogGP: Incorporating
//! Long Messages into the LogP Model*, SPAA 1995), and what it takes from a rank that computes.
//!
//! `loggp` takes two ranks, on two nodes. It writes one line for each figure: `figure,value`. Time is [`Group::now`], so over a simulated network
//! it is virtual. `cargo xtask calibrate` runs it over a real network, and over a model until that gives the same figures.
//!
//! | figure | of rank 0, and what rank 1 does meanwhile | unit |
//! |---|---|---|
//! | `issue` | the call that issues a put of a word with a signal; waits | µs |
//! | `get` | a get of a word; waits | µs |
//! | `exchange` | a put of a word with a signal, when the other's has come; the same | µs |
//! | `stream` | a put of 2 KiB with a signal, of many behind each other; waits for them | µs |
//! | `both` | the same while it receives as many; the same | µs |
//! | `fetch` | a get of 4 MiB; waits | GB/s |
//! | `swap` | a get of 4 MiB; the same | GB/s |
//! | `asks` | a get of a word; computes | µs |
//! | `busy_fetch` | gets of 4 MiB; computes | GB/s |
//! | `busy_put` | puts of 16 KiB, in flight together; computes | GB/s |

use global_arrays::prelude::*;
use ndarray::ArrayViewMut1;

const WORDS: usize = 1 << 19;
const MIB4: f64 = (8 * WORDS) as f64;
const BUCKET: usize = 256;
const PANEL: usize = 2048;

fn main() -> Result<(), Error> {
    Launch::new().run(|job| {
        if job.size() != 2 {
            if job.rank() == 0 {
                eprintln!("loggp: takes 2 ranks, not {}", job.size());
            }
            return Ok(());
        }
        let bench = Bench::new(job)?;
        for (name, figure) in FIGURES {
            let mut values = (0..REPEATS).map(|_| figure(&bench)).collect::<Result<Vec<f64>, Error>>()?;
            values.retain(|value| value.is_finite());
            assert!(values.len() > REPEATS / 2, "{name}: rank 1 computed for less time than the calls of rank 0 took");
            values.sort_by(f64::total_cmp);
            if job.rank() == 0 {
                println!("{name},{:.4}", values[values.len() / 2]);
            }
        }
        Ok(())
    })
}

const REPEATS: usize = 7;

type Figure = fn(&Bench) -> Result<f64, Error>;

const FIGURES: &[(&str, Figure)] = &[
    ("issue", issue),
    ("get", get),
    ("exchange", exchange),
    ("stream", stream),
    ("both", both),
    ("fetch", fetch),
    ("swap", swap),
    ("asks", asks),
    ("busy_fetch", busy_fetch),
    ("busy_put", busy_put),
];

struct Bench<'j> {
    job: &'j Job,
    array: GlobalArray<f64, Ix2>,
    signal: Signal,
    seen: std::cell::Cell<usize>,
    /// Steps of [`compute`] in a millisecond.
    steps: f64,
}

/// So many steps that depend on each other, without a call.
fn compute(steps: f64) {
    let mut x = 0.5_f64;
    for _ in 0..steps as u64 {
        x = 3.7 * x * (1.0 - x);
    }
    std::hint::black_box(x);
}

impl<'j> Bench<'j> {
    fn new(job: &'j Job) -> Result<Self, Error> {
        let array = GlobalArray::builder(job, [2, WORDS]).grid([2, 1]).zeros().create()?;
        let mut bench = Bench { job, array, signal: Signal::with_count(job, 1)?, seen: std::cell::Cell::new(0), steps: 1e5 };
        bench.micros(|_| compute(1e7))?;
        bench.steps = 1e7 / bench.micros(|_| compute(1e7))? * 1e3;
        Ok(bench)
    }

    fn me(&self) -> usize {
        self.job.rank()
    }

    /// Microseconds of something on this rank.
    fn micros(&self, body: impl FnOnce(&Self)) -> Result<f64, Error> {
        self.time(|bench| {
            body(bench);
            Ok(())
        })
    }

    fn time(&self, body: impl FnOnce(&Self) -> Result<(), Error>) -> Result<f64, Error> {
        let start = self.job.now();
        body(self)?;
        Ok(1e6 * (self.job.now() - start).as_secs_f64())
    }

    /// Microseconds of one of `times` calls of rank 0, between two barriers.
    fn each(&self, times: usize, mut call: impl FnMut(&Self) -> Result<(), Error>) -> Result<f64, Error> {
        self.job.barrier()?;
        let mut taken = 0.0;
        if self.me() == 0 {
            taken = self.time(|bench| (0..times).try_for_each(|_| call(bench)))?;
        }
        self.job.barrier()?;
        Ok(taken / times as f64)
    }

    /// The same while rank 1 computes for `millis`; not a number if rank 1 was done first.
    fn against(&self, millis: f64, times: usize, mut call: impl FnMut(&Self) -> Result<(), Error>) -> Result<f64, Error> {
        self.job.barrier()?;
        let mut taken = [0.0, 0.0];
        if self.me() == 0 {
            compute(self.steps);
            taken[0] = self.time(|bench| (0..times).try_for_each(|_| call(bench)))?;
        } else {
            taken[1] = self.micros(|bench| compute(millis * bench.steps))?;
        }
        self.job.all_reduce(&mut taken, ops::sum)?;
        let [calls, computing] = taken;
        Ok(if computing > calls + 1e3 { calls / times as f64 } else { f64::NAN })
    }

    fn read(&self, words: &mut [f64]) -> Result<(), Error> {
        self.array.get_into(s![1 - self.me(), ..words.len()], ArrayViewMut1::from(words))
    }

    /// A put with a signal of so many words.
    fn tell(&self, words: &[f64]) -> Result<(), Error> {
        self.array.put_signal(s![1 - self.me(), ..words.len()], ArrayView1::from(words), self.signal.at(1 - self.me(), 0))
    }

    /// Waits for so many signals more.
    fn hear(&self, count: u32) -> Result<(), Error> {
        self.seen.set(self.seen.get() + count as usize);
        self.signal.wait_at_least(0, self.seen.get()).map(|_| ())
    }
}

fn issue(bench: &Bench) -> Result<f64, Error> {
    const TIMES: u32 = 64;
    let mut total = 0.0;
    for _ in 0..TIMES {
        bench.job.barrier()?;
        if bench.me() == 0 {
            total += bench.time(|bench| bench.tell(&[1.0]))?;
        } else {
            bench.hear(1)?;
        }
    }
    Ok(total / f64::from(TIMES))
}

fn get(bench: &Bench) -> Result<f64, Error> {
    bench.each(400, |bench| bench.read(&mut [0.0]))
}

fn exchange(bench: &Bench) -> Result<f64, Error> {
    const TIMES: u32 = 400;
    bench.job.barrier()?;
    let taken = bench.time(|bench| {
        (0..TIMES).try_for_each(|_| {
            bench.tell(&[1.0])?;
            bench.hear(1)
        })
    })?;
    Ok(taken / f64::from(TIMES))
}

const BURST: u32 = 256;

fn stream(bench: &Bench) -> Result<f64, Error> {
    let words = vec![1.0; BUCKET];
    bench.job.barrier()?;
    let taken = bench.time(|bench| match bench.me() {
        // The last word is how rank 0 knows that all have come.
        0 => {
            (0..BURST).try_for_each(|_| bench.tell(&words))?;
            bench.hear(1)
        }
        _ => {
            bench.hear(BURST)?;
            bench.tell(&[1.0])
        }
    })?;
    Ok(taken / f64::from(BURST))
}

fn both(bench: &Bench) -> Result<f64, Error> {
    let words = vec![1.0; BUCKET];
    bench.job.barrier()?;
    let taken = bench.time(|bench| {
        (0..BURST).try_for_each(|_| bench.tell(&words))?;
        bench.hear(BURST)
    })?;
    Ok(taken / f64::from(BURST))
}

fn fetch(bench: &Bench) -> Result<f64, Error> {
    let mut words = vec![0.0; WORDS];
    Ok(MIB4 / 1e3 / bench.each(4, |bench| bench.read(&mut words))?)
}

fn swap(bench: &Bench) -> Result<f64, Error> {
    let mut words = vec![0.0; WORDS];
    bench.job.barrier()?;
    let taken = bench.time(|bench| {
        (0..4).try_for_each(|_| {
            bench.read(&mut words)?;
            bench.job.barrier()
        })
    })?;
    Ok(4.0 * MIB4 / 1e3 / taken)
}

fn asks(bench: &Bench) -> Result<f64, Error> {
    // With pauses, as programs ask.
    let mut total = 0.0;
    const TIMES: usize = 20;
    let taken = bench.against(60.0, TIMES, |bench| {
        compute(0.3 * bench.steps);
        total += bench.time(|bench| bench.read(&mut [0.0]))?;
        Ok(())
    })?;
    Ok(if taken.is_finite() { total / TIMES as f64 } else { taken })
}

fn busy_fetch(bench: &Bench) -> Result<f64, Error> {
    let mut words = vec![0.0; WORDS];
    let taken = bench.against(80.0, 4, |bench| bench.read(&mut words))?;
    Ok(MIB4 / 1e3 / taken)
}

fn busy_put(bench: &Bench) -> Result<f64, Error> {
    let words = vec![1.0; PANEL];
    let taken = bench.against(80.0, 1, |bench| {
        bench.job.scope(|scope| {
            (0..128).try_for_each(|at| scope.put(&bench.array, s![1, at * PANEL..(at + 1) * PANEL], ArrayView1::from(&words)))
        })
    })?;
    Ok((128 * 8 * PANEL) as f64 / 1e3 / taken)
}
