//! How fast the virtual cluster runs: transfers in a second of real time, and what thousands of ranks cost.
//!
//! `cargo bench -p global-arrays-benches --bench virtual_cluster` prints a line for each pattern; `-- gemini 1024 puts` or fewer words choose. Every rank does the same at once:
//!
//! | pattern | a transfer |
//! |---|---|
//! | `puts` | a put of 64 bytes to the next rank, 16 in flight |
//! | `gets` | a blocking get of 64 bytes of the rank half the job away |
//! | `atomics` | a blocking fetch-and-add on a rank that a hash chooses |
//!
//! `-- start` (or `start 8192`) prints how long jobs of many ranks take to start, create an array, write to it, agree, and end; and how much memory the
//! process then had at most, for each rank.

use std::time::Instant;

use global_arrays::{FetchOp, prelude::*, simulation::Machine};

/// Words of a transfer, and of each rank's part.
const WORDS: usize = 8;
/// Transfers of all ranks together.
const TRANSFERS: usize = 1 << 19;
const BURST: usize = 16;

type Pattern = fn(&Job, &GlobalArray<i64, Ix1>, usize) -> Result<(), Error>;

const PATTERNS: &[(&str, Pattern)] = &[("puts", puts), ("gets", gets), ("atomics", atomics)];

fn main() -> Result<(), Error> {
    if std::env::var_os("GA_COROUTINES").is_none() {
        // SAFETY: the process has one thread so far.
        unsafe { std::env::set_var("GA_COROUTINES", "1") };
    }
    println!("{:<12}{:>8}  {:<8}{:>12}{:>12}{:>16}", "network", "ranks", "pattern", "transfers", "real s", "transfers/s");
    // Words after `--` choose the lines that contain them all.
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let is_chosen = |line: &str| words.iter().all(|word| line.split(' ').any(|part| part == word));
    for network in ["simulated:infiniband", "simulated:gemini-ports"] {
        for ranks in [64, 1024] {
            for &(name, pattern) in PATTERNS {
                let machine = network.rsplit(':').next().unwrap_or(network);
                if !is_chosen(&format!("{machine} {ranks} {name}")) {
                    continue;
                }
                let each = TRANSFERS / ranks;
                let seconds = |each: usize| {
                    let begin = Instant::now();
                    Launch::new().network(network).ranks(ranks).heap(1 << 24).run(|job| {
                        let array = GlobalArray::builder(job, [WORDS * job.size()]).zeros().create()?;
                        job.sync()?;
                        pattern(job, &array, each)?;
                        job.sync()
                    })?;
                    Ok::<f64, Error>(begin.elapsed().as_secs_f64())
                };
                // The start and the end are not counted.
                let idle = seconds(0)?;
                let taken = (seconds(each)? - idle).max(1e-9);
                let rate = (each * ranks) as f64 / taken;
                println!("{machine:<12}{ranks:>8}  {name:<8}{:>12}{taken:>12.3}{rate:>16.0}", each * ranks);
            }
        }
    }
    for ranks in [1024, 8192, 65_536] {
        if !is_chosen(&format!("start {ranks}")) {
            continue;
        }
        forget_peak();
        let begin = Instant::now();
        Launch::simulated(Machine::new("gemini-ports")).ranks(ranks).heap(1 << 20).run(|job| {
            let array = GlobalArray::<f64, Ix1>::builder(job, [job.size()]).zeros().create()?;
            array.store([job.rank()], 1.0)?;
            job.sync()
        })?;
        let (seconds, peak) = (begin.elapsed().as_secs_f64(), peak().unwrap_or(f64::NAN));
        println!("start, array, sync, end of {ranks} ranks: {seconds:.1} s, {:.1} KiB a rank", peak / ranks as f64);
    }
    Ok(())
}

/// From now on the peak of this process counts anew.
fn forget_peak() {
    // Where the kernel refuses, the peak is that of all runs so far.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// The most memory that this process had, in KiB.
fn peak() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?.trim().strip_suffix("kB")?.trim().parse().ok()
}

fn part(rank: usize) -> std::ops::Range<usize> {
    WORDS * rank..WORDS * (rank + 1)
}

fn puts(job: &Job, array: &GlobalArray<i64, Ix1>, count: usize) -> Result<(), Error> {
    let next = part((job.rank() + 1) % job.size());
    let words = Array1::from_elem(WORDS, 1);
    for first in (0..count).step_by(BURST) {
        job.scope(|scope| (first..count.min(first + BURST)).try_for_each(|_| scope.put(array, next.clone(), &words)))?;
    }
    Ok(())
}

fn gets(job: &Job, array: &GlobalArray<i64, Ix1>, count: usize) -> Result<(), Error> {
    let other = part((job.rank() + job.size() / 2) % job.size());
    let mut words = Array1::zeros(WORDS);
    (0..count).try_for_each(|_| array.get_into(other.clone(), &mut words))
}

fn atomics(job: &Job, array: &GlobalArray<i64, Ix1>, count: usize) -> Result<(), Error> {
    (0..count).try_for_each(|at| {
        let drawn = ((job.rank() * count + at) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        array.fetch_op([WORDS * (drawn as usize % job.size())], FetchOp::Add, 1).map(|_| ())
    })
}
