//! A task farm: ranks take tasks from a shared counter, and `main` prints the table of their results after the job.
//!
//! Task k finds the number up to 2ᵏ with the longest Collatz sequence. Each task costs twice as much as the one before it, so the
//! ranks start with the last one.

use global_arrays::prelude::*;

const TASKS: usize = 21;

/// The number of steps from n to 1.
fn collatz(mut n: usize) -> usize {
    let mut steps = 0;
    while n != 1 {
        n = if n.is_multiple_of(2) { n / 2 } else { 3 * n + 1 };
        steps += 1;
    }
    steps
}

/// For each task the number of steps, and where the sequence starts.
fn farm(job: &Job) -> Result<Array1<[usize; 2]>, Error> {
    let results = GlobalArray1::<[usize; 2]>::zeros(job, TASKS)?;
    for task in Counter::new(job)?.below(TASKS) {
        let power = TASKS - 1 - task?;
        results.store(power, (1..=1 << power).map(|n| [collatz(n), n]).max().unwrap_or_default())?;
    }
    job.sync()?;
    results.get(..)
}

fn main() -> Result<(), Error> {
    let table = run(farm)?;
    for (power, [steps, n]) in table.indexed_iter() {
        println!("up to 2^{power:<2} the longest sequence starts at {n:6} and has {steps:3} steps");
    }
    // A known result.
    if table[20] == [524, 837_799] { Ok(()) } else { Err(Error::other("the last result is wrong")) }
}
