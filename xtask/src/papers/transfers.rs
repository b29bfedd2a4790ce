//! Figures 7 to 12: contiguous transfers one at a time, and strided ones whose chunks go in a pipeline. "Each of these tests uses two
//! processes scheduled on two different nodes within a Cray Gemini ASIC": two nodes of one rank, on one switch. The parameters were fitted where the model
//! carries out each operation; our protocols for Gemini, on the same adapter, are predicted.

use super::machine::GEMINI;
use super::program::{Job, Programs};
use super::row::{Kind, Row};
use anyhow::{Context, Result};

/// The same machine, with the code of the network between nodes.
pub(super) const OWN_CODE: &str = "simulated:gemini";

pub(super) const TWO_NODES: Job<'static> =
    Job { network: GEMINI, ranks: 2, ranks_per_node: Some(1), skips: false, variables: &[] };

/// M of the strided transfers.
pub(super) const PATCH: usize = 1 << 20;

/// The longest transfer of the other engine's predecessor, and one just longer.
const SWITCH: [usize; 2] = [4096, 4096 + 16];

pub(super) const PEAK: f64 = 0.02;
pub(super) const FITTED: f64 = 0.05;

/// Of our protocols, to which no parameter was fitted.
const PREDICTED: f64 = 0.1;

/// Megabytes in a second.
pub(super) fn bandwidth(bytes: usize, micros: f64) -> f64 {
    bytes as f64 / micros
}

pub(super) fn at(measured: &[(usize, f64)], bytes: usize) -> Result<f64> {
    let found = measured.iter().find(|(size, _)| *size == bytes);
    found.map(|(_, micros)| *micros).with_context(|| format!("{bytes} bytes were not measured"))
}

pub(super) fn peak(measured: &[(usize, f64)]) -> f64 {
    measured.iter().map(|&(bytes, micros)| bandwidth(bytes, micros)).fold(0.0, f64::max)
}

pub fn get(programs: &Programs) -> Result<Vec<Row>> {
    let measured = programs.benchmark("get", TWO_NODES)?;
    let by_code = programs.benchmark("get", Job { network: OWN_CODE, ..TWO_NODES })?;
    Ok(vec![
        Row::near(7, "get of 16 bytes", Kind::Fitted, "µs", 1.3, at(&measured, 16)?, FITTED),
        Row::near(7, "get of 16 bytes, by our protocols", Kind::Predicted, "µs", 1.3, at(&by_code, 16)?, PREDICTED),
        Row::near(8, "get, peak", Kind::Fitted, "MB/s", 6611.0, peak(&measured), PEAK),
        Row::near(8, "get, peak, by our protocols", Kind::Predicted, "MB/s", 6611.0, peak(&by_code), PEAK),
    ])
}

pub fn put(programs: &Programs) -> Result<Vec<Row>> {
    let measured = programs.benchmark("put", TWO_NODES)?;
    let by_code = programs.benchmark("put", Job { network: OWN_CODE, ..TWO_NODES })?;
    let [below, above] = SWITCH.map(|bytes| at(&measured, bytes).map(|micros| bandwidth(bytes, micros)));
    let (below, above) = (below?, above?);
    Ok(vec![
        Row::near(10, "put of 16 bytes, complete", Kind::Fitted, "µs", 1.0, at(&measured, 16)?, FITTED),
        Row::near(10, "put of 16 bytes, complete, by our protocols", Kind::Predicted, "µs", 1.0, at(&by_code, 16)?, PREDICTED),
        Row::near(11, "put, peak", Kind::Fitted, "MB/s", 6600.0, peak(&measured), PEAK),
        Row::near(11, "put, peak, by our protocols", Kind::Predicted, "MB/s", 6600.0, peak(&by_code), PEAK),
        Row::trend(
            11,
            "put, where the engine changes",
            "drops at 4 KB",
            format!("{below:.0} MB/s at {} B, {above:.0} at {}", SWITCH[0], SWITCH[1]),
            "lower",
            above < below,
        ),
    ])
}

pub fn strided_get(programs: &Programs) -> Result<Vec<Row>> {
    strided(programs, 9, "strided_get", 6611.0)
}

pub fn strided_put(programs: &Programs) -> Result<Vec<Row>> {
    strided(programs, 12, "strided_put", 6600.0)
}

/// How far a longer chunk may be slower than a shorter one: the block transfer engine starts once.
const SLACK: f64 = 0.02;

fn strided(programs: &Programs, figure: u32, name: &str, contiguous: f64) -> Result<Vec<Row>> {
    let measured = programs.benchmark(name, TWO_NODES)?;
    let by_chunk: Vec<f64> = measured.iter().map(|(_, micros)| bandwidth(PATCH, *micros)).collect();
    let rises = by_chunk.windows(2).all(|pair| pair[1] >= (1.0 - SLACK) * pair[0]);
    let shown: Vec<String> = measured.iter().zip(&by_chunk).map(|((chunk, _), rate)| format!("{chunk}: {rate:.0}")).collect();
    let whole = bandwidth(PATCH, at(&measured, PATCH)?);
    Ok(vec![
        Row::trend(
            figure,
            &format!("{name}, MB/s by bytes of a chunk"),
            "falls with the chunk",
            shown.join(", "),
            "monotone but for 2 %",
            rises && by_chunk.first() < by_chunk.last(),
        ),
        Row::near(figure, &format!("{name} in one chunk"), Kind::Predicted, "MB/s", contiguous, whole, FITTED),
    ])
}
