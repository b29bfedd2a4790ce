//! Figures of ARMCI-ODCM: transfers between two nodes of its machine, and connections. The protocols are our own, as they are, over modelled
//! adapters.

use super::program::{Job, Programs};
use super::row::{Kind, Paper, Row};
use super::transfers::{FITTED, PATCH, PEAK, at, bandwidth, peak};
use anyhow::Result;

const MACHINE: &str = "simulated:ib";
const TWO_NODES: Job<'static> = Job { network: MACHINE, ranks: 2, ranks_per_node: Some(1), skips: false, variables: &[] };

/// Of what no parameter was fitted to.
const PREDICTED: f64 = 0.1;

pub fn get(programs: &Programs) -> Result<Vec<Row>> {
    let measured = programs.benchmark("get", TWO_NODES)?;
    Ok(vec![Row::near(Paper::OdcmFigures.at(5), "get, peak", Kind::Fitted, "MB/s", 1473.0, peak(&measured), PEAK)])
}

pub fn put(programs: &Programs) -> Result<Vec<Row>> {
    let measured = programs.benchmark("put", TWO_NODES)?;
    Ok(vec![
        Row::near(Paper::OdcmFigures.at(6), "put, peak", Kind::Fitted, "MB/s", 1473.0, peak(&measured), PEAK),
        Row::near(Paper::OdcmFigures.at(11), "put of 8 bytes, complete", Kind::Fitted, "µs", 3.74, at(&measured, 8)?, FITTED),
    ])
}

pub fn accumulate(programs: &Programs) -> Result<Vec<Row>> {
    let measured = programs.benchmark("accumulate", TWO_NODES)?;
    let row = Row::near(Paper::OdcmFigures.at(7), "accumulate, peak", Kind::Fitted, "MB/s", 1327.0, peak(&measured), PEAK);
    Ok(vec![row])
}

pub fn strided(programs: &Programs) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (figure, name, published) in [(8, "strided_get", 1358.0), (9, "strided_put", 1434.0), (10, "strided_accumulate", 1339.0)]
    {
        let measured = programs.benchmark(name, TWO_NODES)?;
        // In one chunk it would be contiguous.
        let strided = measured.iter().filter(|(chunk, _)| *chunk < PATCH);
        let best = strided.map(|&(_, micros)| bandwidth(PATCH, micros)).fold(0.0, f64::max);
        let what = format!("{name}, peak");
        rows.push(Row::near(Paper::OdcmFigures.at(figure), &what, Kind::Predicted, "MB/s", published, best, PREDICTED));
    }
    Ok(rows)
}

/// "For connecting two processes, the Original implementation takes 820 us, while it takes only 500 us". The machine has the times of the steps
/// (section III-B2), not their sum.
pub fn connect(programs: &Programs) -> Result<Vec<Row>> {
    const RANKS: usize = 32;
    let mut rows = Vec::new();
    for (way, published) in [("overlapped", 500.0), ("serial", 820.0)] {
        let variables = &[("GA_CONNECT", way), ("GA_STATS", "1")];
        let measured = programs.benchmark("connect", Job { ranks: RANKS, variables, ..TWO_NODES })?;
        let what = format!("a connection, {way}");
        rows.push(Row::near(Paper::OdcmFigures.at(12), &what, Kind::Predicted, "µs", published, at(&measured, 8)?, PREDICTED));
    }
    Ok(rows)
}
