//! Figures 13 to 15: a counter to which all ranks add, and integers that are added by the adapter or under a lock.
//!
//! The text says 5 µs at 8192 processes, and steps at 64 and 1024. A saturated adapter cannot give that: at 60 ns an operation 8192 ranks that wait take
//! 490 µs. So the rank of the counter is asked for half of what its adapter can do, and the saturated time is printed beside. Its ranks lie in a
//! torus of this machine's size, and where a step is depends on that.

use super::machine::GEMINI;
use super::program::{Job, Programs};
use super::row::{Kind, Row};
use super::transfers::{OWN_CODE, TWO_NODES};
use anyhow::{Context, Result};

/// Published, and what it may differ by.
const MICROS: f64 = 5.0;
const TOLERANCE: f64 = 0.3;

/// Where a job takes two nodes or more for the first time, one below the second step, and those of the two steps and the most.
const RANKS: [usize; 5] = [16, 64, 512, 1024, 8192];

/// More than this much more is a step.
const STEP: f64 = 1.15;

/// The crossover of integers, published and at most by a factor of two away.
const CROSSOVER: usize = 512;

pub fn counter(programs: &Programs) -> Result<Vec<Row>> {
    let measure = |name: &str, ranks: usize| -> Result<f64> {
        let job = Job { network: GEMINI, ranks, ranks_per_node: None, skips: false, variables: &[] };
        Ok(programs.benchmark(name, job)?[0].1)
    };
    let times = RANKS.map(|ranks| measure("counter", ranks));
    let times = times.into_iter().collect::<Result<Vec<f64>>>()?;
    let saturated = measure("saturated_counter", RANKS[4])?;
    let shown: Vec<String> = RANKS.iter().zip(&times).map(|(ranks, micros)| format!("{ranks}: {micros:.2} µs")).collect();
    let has_steps = times[1] > STEP * times[0] && times[3] > STEP * times[2];
    let half = "counter, 8192 ranks at half load";
    let steps = Row::trend(13, "counter, steps at 64 and 1024", "steps", shown.join(", "), "15 % more", has_steps);
    Ok(vec![
        Row::near(13, half, Kind::Predicted, "µs", MICROS, times[4], TOLERANCE),
        steps,
        Row::near(13, "counter, 8192 ranks, saturated", Kind::Predicted, "µs", MICROS, saturated, TOLERANCE)
            .shown("the adapter's time for an operation, by 8192"),
    ])
}

/// Additions of the adapter against lock, get, add, put. The adapter's time for an operation is from elsewhere.
pub fn crossover(programs: &Programs) -> Result<Vec<Row>> {
    let [adapter, lock] =
        ["add_by_adapter", "add_by_lock"].map(|name| programs.benchmark(name, Job { network: OWN_CODE, ..TWO_NODES }));
    let (adapter, lock) = (adapter?, lock?);
    let mut faster = adapter.iter().zip(&lock).filter(|((_, adapter), (_, lock))| adapter < lock);
    let (&(last, _), _) = faster.next_back().context("additions of the adapter are never faster")?;
    // Sizes double, so it is between this one and the next.
    let ours = format!("between {last} and {} B", 2 * last);
    let holds = (CROSSOVER / 2..=CROSSOVER).contains(&last);
    Ok(vec![Row::trend(14, "integers by the adapter or under a lock", "512 B", ours, "from 256 to 1024 B", holds)])
}
