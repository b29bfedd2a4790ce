//! Patterns of communication on a virtual cluster, timed in virtual time.
//!
//! `patterns CASE...` prints one line for each case: the case and its seconds. `cargo xtask validate` starts it, and
//! `benches/simgrid/patterns.c` does the same over another simulator.
//!
//! | case | what each rank does |
//! |---|---|
//! | `shift:DISTANCE:BYTES` | puts one block to the rank at a distance |
//! | `all_to_all:BYTES` | puts a block to each other rank, the next one first |
//!
//! All ranks begin at one time, and a case is over when the last rank knows that all its blocks have arrived. Clocks of a virtual cluster are
//! one clock, so ranks agree on a time to begin and compute until then; a barrier would let some go before others.

use std::time::Duration;

use global_arrays::{prelude::*, simulation::Work};

/// One line of the table.
#[derive(Clone, Debug)]
struct Case {
    name: String,
    pattern: Pattern,
    bytes: usize,
}

#[derive(Clone, Copy, Debug)]
enum Pattern {
    Shift(usize),
    AllToAll,
}

/// From the agreement on a time to that time: longer than the agreement takes.
const AHEAD: Duration = Duration::from_millis(10);

/// Of the machine's processor, in operations for each nanosecond.
const FLOPS: f64 = 1.0;

/// How late a rank may begin: it reads the clock once more, which takes 20 ns.
const LATE: Duration = Duration::from_nanos(50);

fn main() -> Result<(), Error> {
    // `cargo bench` adds a flag.
    let arguments = std::env::args().skip(1).filter(|argument| !argument.starts_with("--"));
    let cases = arguments.map(|name| case(&name)).collect::<Result<Vec<Case>, Error>>()?;
    Launch::new().run(|job| run(job, &cases))
}

/// Reads the name of a case.
fn case(name: &str) -> Result<Case, Error> {
    let wrong = || Error::other(format!("{name:?} is not shift:DISTANCE:BYTES or all_to_all:BYTES"));
    let number = |text: &str| text.parse::<usize>().map_err(|_| wrong());
    let (pattern, bytes) = match name.split(':').collect::<Vec<_>>()[..] {
        ["shift", distance, bytes] => (Pattern::Shift(number(distance)?), number(bytes)?),
        ["all_to_all", bytes] => (Pattern::AllToAll, number(bytes)?),
        _ => return Err(wrong()),
    };
    Ok(Case { name: name.to_owned(), pattern, bytes })
}

fn run(job: &Job, cases: &[Case]) -> Result<(), Error> {
    let largest = cases.iter().map(|case| case.bytes).max().unwrap_or(0);
    let source = vec![1_u8; largest];
    // One block at each rank: who puts there later overwrites it.
    let blocks = GlobalArray::<u8, Ix1>::builder(job, [job.size() * largest]).zeros().create()?;
    for case in cases {
        let targets = match case.pattern {
            Pattern::Shift(distance) => distance..distance + 1,
            Pattern::AllToAll => 1..job.size(),
        };
        let begin = begin_together(job)?;
        job.scope(|scope| {
            for distance in targets {
                let first = (job.rank() + distance) % job.size() * largest;
                scope.put(&blocks, s![first..first + case.bytes], &source[..case.bytes])?;
            }
            Ok(())
        })?;
        let seconds = (job.now() - begin).as_secs_f64();
        let slowest = job.all_reduce_one(seconds, f64::max)?;
        if job.rank() == 0 {
            println!("{} {slowest:.9}", case.name);
        }
    }
    blocks.destroy()
}

/// Returns at the same time on all ranks: that time.
fn begin_together(job: &Job) -> Result<Duration, Error> {
    job.sync()?;
    let latest = job.all_reduce_one(job.now().as_nanos() as u64, u64::max)?;
    let begin = Duration::from_nanos(latest) + AHEAD;
    let left = begin.saturating_sub(job.now());
    job.simulation().work(Work::flops(FLOPS * left.as_nanos() as f64));
    let now = job.now();
    if now < begin || now > begin + LATE {
        return Err(Error::other(format!(
            "rank {} begins at {now:?}, not at {begin:?}: is a processor of 1 GFLOP/s simulated?",
            job.rank()
        )));
    }
    Ok(now)
}
