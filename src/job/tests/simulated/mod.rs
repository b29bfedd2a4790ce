//! Jobs in virtual time: they repeat exactly, take the time of the model, and end as on real networks.

mod ends;
mod locals;
mod times;
mod wired;

use std::{fs, path::PathBuf, sync::Mutex, time::Duration};

use crate::{
    Connect, FetchOp,
    job::launch::Report,
    prelude::*,
    simulation::{Computing, Machine, Work},
};

/// A machine in a file, of which a test knows every number.
struct MachineFile(PathBuf);

impl MachineFile {
    /// One rank on each node, an adapter of 1 GB/s, no links to share.
    fn new(test: &str) -> Self {
        MachineFile::but(test, &[])
    }

    /// The same with other lines.
    fn but(test: &str, lines: &[(&str, &str)]) -> Self {
        let path = std::env::temp_dir().join(format!("global-arrays-{test}-{}.toml", std::process::id()));
        let mut text = String::from(
            "
            [processor]
            gigaflops = 1
            memory_gb_per_s = 1
            [node]
            ranks = 1
            latency_us = 1
            bandwidth_gb_per_s = 1
            [adapter]
            overhead_us = 2
            gap_us = 3
            bandwidth_gb_per_s = 1.0
            latency_us = 20
            read_us = 0
            copied_bytes = 1000000
            window = 1000
            ordered = true
            signals = true
            [network]
            topology = \"crossbar\"
            switch_us = 1
            link_gb_per_s = 1",
        );
        for (line, other) in lines {
            assert!(text.contains(line), "{line}");
            text = text.replacen(line, other, 1);
        }
        fs::write(&path, text).unwrap();
        MachineFile(path)
    }

    fn model(&self) -> Machine {
        Machine::new(self.0.to_string_lossy())
    }

    fn launch(&self, ranks: usize) -> Launch {
        over(self.model(), ranks)
    }
}

fn over(machine: Machine, ranks: usize) -> Launch {
    Launch::simulated(machine).ranks(ranks).heap(1 << 24)
}

impl Drop for MachineFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Overhead, latency and a switch of the machine, in microseconds.
const MESSAGE: f64 = 2.0 + 20.0 + 1.0;

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

#[track_caller]
fn assert_close(measured: f64, expected: f64) {
    assert!((measured - expected).abs() <= 0.01 * expected, "{measured} where {expected} was expected");
}

/// What some rank measured.
fn measured(launch: &Launch, body: impl Fn(&Job) -> Result<Option<Duration>, Error> + Sync) -> f64 {
    let last = Mutex::new(Duration::ZERO);
    let all = |job: &Job| {
        job.sync()?;
        if let Some(time) = body(job)? {
            let mut last = last.lock().unwrap();
            *last = time.max(*last);
        }
        job.sync()
    };
    launch.simulate(all).unwrap();
    micros(last.into_inner().unwrap())
}

/// All kinds of messages, in an order that depends on which rank is first: gets, puts, accumulates, counters, locks, signals, groups.
fn busy(sums: &Mutex<Vec<f64>>) -> impl Fn(&Job) -> Result<(), Error> + Sync {
    move |job| {
        let (me, size) = (job.rank(), job.size());
        let mut a = GlobalArray::<f64, Ix2>::builder(job, [40, 30]).fill(1.0).create()?;
        let (tasks, locks, signal) = (Counter::new(job)?, Locks::with_count(job, 2)?, Signal::new(job)?);
        while let Some(task) = tasks.next_below(40)? {
            let row = task;
            let part = a.get(s![row..row + 1, ..])?;
            job.simulation().work(Work::flops(1e4 * (row % 7) as f64));
            a.accumulate(s![row..row + 1, 3..9], 1.0, part.slice(s![.., 3..9]))?;
            let _held = locks.lock(row % 2)?;
            a.put(s![row..row + 1, 0..1], part.slice(s![.., 0..1]))?;
        }
        signal.at((me + 1) % size, 0).notify()?;
        signal.wait_at_least(0, 1)?;
        let half = job.split(me % 2)?;
        let sums_of_half = half.all_reduce_one(me as f64, ops::sum)?;
        job.sync()?;
        let sum = a.sum()? + sums_of_half;
        a.fill(0.0)?;
        if me == 0 {
            sums.lock().unwrap().push(sum);
        }
        job.sync()
    }
}

/// All of them.
const MACHINES: [&str; 8] = ["gemini", "extoll", "ib", "infiniband", "bluegene", "loopback", "gemini-ports", "extoll-ports"];

fn run_busy(machine: &str, seed: u64, coroutines: bool) -> (Report, f64) {
    let sums = Mutex::default();
    let launch =
        Launch::simulated(Machine::new(machine).seed(seed)).ranks(6).ranks_per_node(2).heap(1 << 24).coroutines(coroutines);
    let report = launch.simulate(busy(&sums)).unwrap();
    (report, sums.into_inner().unwrap()[0])
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for machine in MACHINES {
        let (first, sum) = run_busy(machine, 0, true);
        assert!(first.digest != 0);
        // Threads are slow.
        for run in 0..if machine == "gemini-ports" { 20 } else { 3 } {
            assert_eq!(run_busy(machine, 0, run % 3 > 0).0, first, "run {run} on {machine}");
        }
        // Another order, the same results.
        let mut digests: Vec<u64> = (0..5)
            .map(|seed| run_busy(machine, seed, true))
            .map(|(report, other)| {
                assert_eq!(other, sum, "{machine}");
                report.digest
            })
            .collect();
        digests.sort_unstable();
        digests.dedup();
        assert_eq!(digests.len(), 5, "{machine}");
    }
}

/// All ranks begin at this time.
const BEGIN: Duration = Duration::from_secs(1);

fn begin(job: &Job) {
    let left = BEGIN - job.now();
    // The machine's ranks do one operation in a nanosecond.
    job.simulation().work(Work::flops(left.as_nanos() as f64));
    assert_close(micros(job.now()), micros(BEGIN));
}

#[test]
fn what_cannot_be_simulated_says_why() {
    for (network, words) in [
        (
            "simulated",
            "name a machine (infiniband, gemini, extoll, bluegene, loopback, ib, gemini-ports, extoll-ports) or a file",
        ),
        ("simulated:nowhere", "no such file"),
        ("simulated:gemini+delayed", "no layer +delayed"),
    ] {
        let text = Launch::new().network(network).ranks(1).simulate(|_| Ok(())).unwrap_err().to_string();
        assert!(text.contains(words), "{text}");
    }
    let skips =
        Launch::simulated(Machine::new("ib").computing(Computing::Skip)).ranks(2).simulate(|_| Ok(())).unwrap_err().to_string();
    assert!(skips.contains("GA_COMPUTING=skip"), "{skips}");
    let text = Launch::simulated(Machine::new("gemini")).ranks(65_537).simulate(|_| Ok(())).unwrap_err().to_string();
    assert!(text.contains("from 1 to 65536"), "{text}");
}

#[test]
fn layers_show_what_a_simulated_network_is_asked_for() {
    for network in ["simulated:gemini+counted", "simulated:infiniband+scrambled"] {
        let sums = Mutex::default();
        Launch::new().network(network).ranks(3).heap(1 << 24).simulate(busy(&sums)).unwrap();
        assert!(sums.into_inner().unwrap()[0] > 1200.0);
    }
}

/// A rank that sleeps while something is left to be done wakes up half a second later. First contacts of all with one show that, for they
/// make room for messages that found none.
#[test]
fn no_rank_sleeps_on_what_is_left_to_be_done() {
    const RANKS: usize = 13;
    for (machine, seed) in ["gemini", "extoll", "ib"].into_iter().flat_map(|machine| (100..250).map(move |seed| (machine, seed)))
    {
        let root = seed as usize % RANKS;
        let body = |job: &Job| {
            let signal = Signal::new(job)?;
            if job.rank() == root {
                (0..RANKS).filter(|&to| to != root).try_for_each(|to| signal.at(to, 0).notify())?;
                signal.wait_at_least(0, RANKS - 1)?;
                assert!(job.now() < Duration::from_millis(100), "GA_SEED={seed} on {machine}: {:?}", job.now());
            } else {
                signal.wait_at_least(0, 1)?;
                signal.at(root, 0).notify()?;
            }
            job.sync()
        };
        let launch = Launch::simulated(Machine::new(machine).seed(seed)).ranks(RANKS).ranks_per_node(1).heap(1 << 22);
        launch.coroutines(true).run(body).unwrap();
    }
}

/// Small jobs in which one message must not overtake another, in as many orders as the network allows: data before its signal, puts before
/// the counter that says so, what a lock guards before the lock, a put before what its rank does there next.
#[test]
fn any_order_gives_the_same_results() {
    const RANKS: usize = 3;
    let body = |job: &Job| {
        let (me, next) = (job.rank(), (job.rank() + 1) % RANKS);
        let a = GlobalArray::<u64, Ix2>::builder(job, [RANKS, 16]).grid([RANKS, 1]).zeros().create()?;
        let own = GlobalArray::<u64, Ix2>::builder(job, [RANKS, 16]).grid([RANKS, 1]).zeros().create()?;
        let (there, free, told) = (Signal::new(job)?, Signal::new(job)?, Counter::new(job)?);
        let (locks, guarded) = (Locks::with_count(job, 1)?, GlobalArray::<u64, Ix1>::builder(job, [2]).zeros().create()?);
        for round in 1..=3_u64 {
            let words = ndarray::Array1::from_elem(16, round);
            a.put_signal(s![next, ..], &words, there.at(next, 0))?;
            there.wait_at_least(0, round as usize)?;
            assert_eq!(a.get(s![me, ..])?, words, "a signal before its data");
            free.at((me + RANKS - 1) % RANKS, 0).notify()?;
            free.wait_at_least(0, round as usize)?;
            // A rank's own operations on one place, which it owns or not.
            let mine = ndarray::Array1::from_elem(16, round << 8 | me as u64);
            own.put(s![next, ..], &mine)?;
            assert_eq!(own.fetch_op([next, 15], FetchOp::Add, 1)?, mine[15], "an atomic operation before a put");
            own.put(s![next, ..], &(&mine + 1))?;
            assert_eq!(own.get(s![next, ..])?, mine + 1, "a get before a put");
            let _held = locks.lock(0)?;
            let pair = guarded.get(..)?;
            assert_eq!(pair[0], pair[1], "a lock before what it guards");
            guarded.put(.., &(pair + 1))?;
        }
        job.sync()?;
        a.put(s![next, ..], &ndarray::Array1::from_elem(16, 7))?;
        a.fence()?;
        told.fetch_add(1)?;
        while told.get()? < RANKS {}
        assert!(a.get(s![me, ..])?.iter().all(|&word| word == 7), "a counter before what was fenced");
        assert_eq!(guarded.get(..)?.to_vec(), [3 * RANKS as u64; 2]);
        job.sync()
    };
    let seeds = if std::env::var("GA_TEST_LONG").is_ok_and(|value| value == "1") { 100_000 } else { 300 };
    for seed in 0..seeds {
        let machine = MACHINES[seed as usize % MACHINES.len()];
        let launch = Launch::simulated(Machine::new(machine).seed(seed)).ranks(RANKS).heap(1 << 22);
        let run = launch.ranks_per_node(1 + seed as usize % 2).coroutines(true).run(body);
        run.unwrap_or_else(|error| panic!("GA_SEED={seed} on {machine}: {error}"));
    }
}
