//! The rule for measuring one operation, the same as in `benches/peers/bench.c`.

use std::{
    fs::{File, OpenOptions},
    hint::black_box,
    io::Write,
    time::Instant,
};

use global_arrays::prelude::*;

/// Where rows go.
#[derive(Debug)]
pub(crate) struct Report(Option<File>);

impl Report {
    pub(crate) fn open(path: Option<&str>) -> Result<Self, Error> {
        let header = b"op,shape,value,unit,best,trials,iters\n";
        let Some(path) = path else { return Ok(Report(None)) };
        std::fs::write(path, header).map_err(Error::other)?;
        // Each job's rank 0 is a new process: all append to one file.
        Ok(Report(Some(OpenOptions::new().append(true).open(path).map_err(Error::other)?)))
    }

    #[allow(clippy::print_stdout, reason = "a program's output")]
    pub(crate) fn line(&self, line: &str) {
        match &self.0 {
            Some(file) => (&*file).write_all(line.as_bytes()).expect("writing a row"),
            None => print!("{line}"),
        }
    }
}

/// Seconds for one iteration.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stat {
    pub(crate) median: f64,
    pub(crate) best: f64,
    pub(crate) trials: usize,
    pub(crate) iterations: u64,
}

pub(crate) fn summary(mut seconds: Vec<f64>, iterations: u64) -> Stat {
    seconds.sort_by(f64::total_cmp);
    let n = seconds.len();
    let median = if n % 2 == 1 { seconds[n / 2] } else { 0.5 * (seconds[n / 2 - 1] + seconds[n / 2]) };
    Stat { median, best: seconds[0], trials: n, iterations }
}

fn compute(seconds: f64) {
    let start = Instant::now();
    let mut x = 1.0;
    while start.elapsed().as_secs_f64() < seconds {
        for _ in 0..1000 {
            x = black_box(x * 1.000_000_1 + 1e-9);
        }
    }
}

/// One rank that measures.
pub(crate) struct Bench<'j> {
    pub(crate) job: &'j Job,
    report: &'j Report,
    trials: usize,
    target: f64,
    budget: f64,
}

impl<'j> Bench<'j> {
    pub(crate) fn new(job: &'j Job, report: &'j Report) -> Self {
        let number = |name: &str, otherwise: f64| std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(otherwise);
        Bench {
            job,
            report,
            trials: number("BENCH_TRIALS", 11.0) as usize,
            target: number("BENCH_TARGET_MS", 5.0) * 1e-3,
            budget: number("BENCH_BUDGET_S", 1.0),
        }
    }

    /// Rank 0 measures, the others wait in a sync.
    pub(crate) fn alone(&self, rows: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
        if self.job.rank() == 0 {
            rows()?;
        }
        self.job.sync()
    }

    pub(crate) fn measure_alone(&self, op: impl FnMut() -> Result<(), Error>) -> Result<Stat, Error> {
        self.measure_to_the_end(op, || Ok(()))
    }

    /// `finish` completes what is still under way and is run once, inside the timed region, after the last iteration.
    pub(crate) fn measure_to_the_end(
        &self,
        mut op: impl FnMut() -> Result<(), Error>,
        finish: impl Fn() -> Result<(), Error>,
    ) -> Result<Stat, Error> {
        self.measure(|iterations| {
            let start = Instant::now();
            for _ in 0..iterations {
                op()?;
            }
            finish()?;
            Ok(start.elapsed().as_secs_f64())
        })
    }

    /// Rank 0 times one `op` 2 ms after rank `target` has begun to compute for 100 ms and call nothing. Collective.
    pub(crate) fn measure_busy(&self, target: usize, mut op: impl FnMut() -> Result<(), Error>) -> Result<Stat, Error> {
        const TRIALS: usize = 5;
        let mut seconds = Vec::new();
        for _ in 0..TRIALS {
            self.job.sync()?;
            if self.job.rank() == target {
                compute(0.1);
            }
            if self.job.rank() == 0 {
                compute(0.002);
                let start = Instant::now();
                op()?;
                seconds.push(start.elapsed().as_secs_f64());
            } else {
                seconds.push(0.0);
            }
            self.job.sync()?;
        }
        Ok(summary(seconds, 1))
    }

    /// All ranks do the same number of iterations; the slowest counts.
    pub(crate) fn measure_together(&self, mut op: impl FnMut() -> Result<(), Error>) -> Result<Stat, Error> {
        self.measure(|iterations| {
            self.job.barrier()?;
            let start = Instant::now();
            for _ in 0..iterations {
                op()?;
            }
            self.job.all_reduce_one(start.elapsed().as_secs_f64(), ops::max)
        })
    }

    fn measure(&self, mut timed: impl FnMut(u64) -> Result<f64, Error>) -> Result<Stat, Error> {
        let first = timed(1)?;
        if first > self.budget / 2.0 {
            return Ok(summary(vec![first], 1));
        }
        let mut iterations = 1_u64;
        let sample = loop {
            let sample = timed(iterations)?.min(timed(iterations)?);
            if sample >= self.target / 4.0 || iterations >= 1_000_000 {
                break sample;
            }
            iterations *= 4;
        };
        let each = sample / iterations as f64;
        let iterations = ((self.target / each) as u64).max(1);
        let mut trials = self.trials;
        while trials > 3 && trials as f64 * iterations as f64 * each > self.budget {
            trials -= 1;
        }
        let seconds = (0..trials).map(|_| Ok(timed(iterations)? / iterations as f64)).collect::<Result<Vec<_>, Error>>()?;
        Ok(black_box(summary(seconds, iterations)))
    }

    pub(crate) fn row(&self, op: &str, shape: &str, unit: &str, stat: Stat, amount: f64) {
        if self.job.rank() == 0 {
            self.report.line(&row(op, shape, unit, stat, amount));
        }
    }
}

/// Ones in private memory that begins at a page, as the buffers of the peers' programs do: vectors that cross cache lines cost every
/// program the same, and are not what is compared.
#[derive(Debug)]
pub(crate) struct Pages {
    memory: Vec<f64>,
    first: usize,
    len: usize,
}

impl Pages {
    pub(crate) fn new(len: usize) -> Self {
        const PAGE: usize = 4096;
        let memory = vec![1.0; len + PAGE / size_of::<f64>()];
        let first = memory.as_ptr().align_offset(PAGE);
        Pages { memory, first, len }
    }

    pub(crate) fn slice(&mut self) -> &mut [f64] {
        &mut self.memory[self.first..][..self.len]
    }
}

/// One line of the result file; `amount` is what one iteration did.
pub(crate) fn row(op: &str, shape: &str, unit: &str, stat: Stat, amount: f64) -> String {
    let value = |seconds: f64| match unit {
        "ns" => seconds / amount * 1e9,
        "us" => seconds / amount * 1e6,
        "ms" => seconds / amount * 1e3,
        "M/s" => amount / seconds * 1e-6,
        _ => amount / seconds * 1e-9,
    };
    format!("{op},{shape},{:.6},{unit},{:.6},{},{}\n", value(stat.median), value(stat.best), stat.trials, stat.iterations)
}

/// 100,000 random subscripts of a block of powers of two; each pass visits the same ones.
pub(crate) struct Subscripts {
    state: u64,
    row_bits: u32,
    column_bits: u32,
}

impl Subscripts {
    pub(crate) const COUNT: usize = 100_000;

    pub(crate) fn new(row_bits: u32, column_bits: u32) -> Self {
        Subscripts { state: 1, row_bits, column_bits }
    }

    #[inline]
    pub(crate) fn next(&mut self) -> (usize, usize) {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let i = self.state >> (64 - self.row_bits);
        let j = self.state >> (64 - self.row_bits - self.column_bits) & ((1 << self.column_bits) - 1);
        (i as usize, j as usize)
    }
}
