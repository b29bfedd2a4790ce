//! Figures 16 and 17: each rank writes 512 bytes to all. "These benchmarks are expected to provide Θ(p) time complexity. The observed trends
//! do not strictly follow this model. With scale, increased contention is observed on the links."
//!
//! So the time over p must grow on the machine with links, and must not where messages share none.
//!
//! The shift grows by the links along y, which carry half as much as the others. They lead round rings of 2, 3 and 4 switches on 512, 1024 and
//! 2048 ranks: a job of the model has a torus to itself, as near a cube as its nodes allow. On a ring of 3 no two ways are equally long, so
//! messages share links less evenly than on one of 4, and 1024 ranks take longest.
//!
//! The text does not say in which order a transpose goes through the ranks. If all went in the same order, all would write to the same few nodes
//! at a time, whose adapters would be busier than any link. So ours goes by pairs.

use super::machine::{GEMINI, without_links};
use super::program::{Job, Programs};
use super::row::Row;
use anyhow::Result;

const RANKS: [usize; 3] = [512, 1024, 2048];

/// Less than this is no growth.
const GROWTH: f64 = 1.05;

pub fn shift(programs: &Programs) -> Result<Vec<Row>> {
    pattern(programs, 16, "shift")
}

pub fn transpose(programs: &Programs) -> Result<Vec<Row>> {
    pattern(programs, 17, "transpose")
}

fn pattern(programs: &Programs, figure: u32, name: &str) -> Result<Vec<Row>> {
    let crossbar = without_links()?;
    let with = growth(programs, name, GEMINI)?;
    let without = growth(programs, name, &crossbar)?;
    let grows = Row::trend(
        figure,
        &format!("{name}, time over p, links in the model"),
        "grows: contention on links",
        with.shown,
        "last over first above 1.05",
        with.factor > GROWTH,
    );
    let constant = Row::trend(
        figure,
        &format!("{name}, time over p, no links in the model"),
        "constant: Θ(p) is expected",
        without.shown,
        "last over first from 0.95 to 1.05",
        (2.0 - GROWTH..=GROWTH).contains(&without.factor),
    );
    Ok(vec![grows, constant])
}

struct Growth {
    /// Of the most ranks over that of the fewest.
    factor: f64,
    shown: String,
}

fn growth(programs: &Programs, name: &str, network: &str) -> Result<Growth> {
    let mut over_p = Vec::new();
    for ranks in RANKS {
        let measured = programs.benchmark(name, Job { network, ranks, ranks_per_node: None, skips: false, variables: &[] })?;
        over_p.push(measured[0].1 / ranks as f64);
    }
    let shown: Vec<String> = RANKS.iter().zip(&over_p).map(|(ranks, micros)| format!("{ranks}: {micros:.2} µs")).collect();
    Ok(Growth { factor: over_p[over_p.len() - 1] / over_p[0], shown: shown.join(", ") })
}
