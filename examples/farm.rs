//! A task farm: ranks take tasks from a shared counter, and `main` prints the table of their results after the job.
//!
//! Task k finds the number up to 2ᵏ with the longest Collatz sequence. Each task costs twice as much as the one before it, so the
//! ranks start with the last one.

use std::io::{Read, Write};

use global_arrays::prelude::*;

const TASKS: usize = 21;

/// The number of steps from n to 1.
fn collatz(mut n: u64) -> u64 {
    let mut steps = 0;
    while n != 1 {
        n = if n.is_multiple_of(2) { n / 2 } else { 3 * n + 1 };
        steps += 1;
    }
    steps
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Ranks may be processes of their own, so the results come back through a pipe.
    let (mut reader, writer) = std::io::pipe()?;
    run(|job| {
        // The number of steps, and where the sequence starts.
        let results = GlobalArray1::<[u64; 2]>::builder(job, TASKS).name("results").create()?;
        let tasks = Counter::new(job)?;
        while let Some(task) = tasks.next_below(TASKS as u64)? {
            let power = TASKS - 1 - task as usize;
            let longest = (1..=1 << power).map(|n| [collatz(n), n]).max().expect("a number up to 1");
            results.store(power, longest)?;
        }
        job.sync()?;
        // Each rank writes the table, because each may have a `main` of its own.
        let table = results.get(..)?.to_vec();
        (&writer).write_all(bytemuck::cast_slice(&table)).map_err(Error::other)
    })?;

    let mut table = [[0_u64; 2]; TASKS];
    reader.read_exact(bytemuck::cast_slice_mut(&mut table))?;
    for (power, [steps, n]) in table.iter().enumerate() {
        println!("up to 2^{power:<2} the longest sequence starts at {n:6} and has {steps:3} steps");
    }
    // A known result.
    if table[20] == [524, 837_799] { Ok(()) } else { Err("the last result is wrong".into()) }
}
