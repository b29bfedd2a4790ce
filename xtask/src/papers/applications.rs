//! Figures 18 to 20: the applications, by the workspace's own programs.
//!
//! **LU**, order 32768, of which nothing is computed, only declared. Two numbers are fitted, for LU alone, because the paper does not have its
//! program. The paper's 130 s on 512 ranks are fifteen times what the processors' peak and our communication take, so its program computed
//! far below the peak: the speed of the processor is fitted to that row. From 1024 to 2048 ranks it gained nothing. Ours, with its own blocks of
//! 192, takes 40 % less; with blocks of 1024, of which 1024 ranks have one each, it gains nothing either: the edge of a block is fitted to that.
//!
//! **Lennard-Jones**, 8192 atoms. "The entire force matrix (N·N) is divided into multiple blocks": all pairs interact, so ours are a droplet
//! in a wide box, with a cut-off longer than the droplet, in blocks of 64 atoms. Computing is the time in tasks, and what the paper calls
//! put the time in which forces go back, both of the slowest rank. The text does not say on how many ranks.
//!
//! **SPH**, 16 million particles in a square, all of which are computed. Computing is the time of the slowest rank in 18 steps.

use super::machine::{GEMINI, of_speed};
use super::program::{Job, Programs, number};
use super::row::{Kind, Row};
use anyhow::Result;

/// How far from a published number a predicted one may be, and a fitted one.
const NEAR: f64 = 0.1;
const FITTED: f64 = 0.05;

const fn gemini(ranks: usize) -> Job<'static> {
    Job { network: GEMINI, ranks, ranks_per_node: None, skips: false, variables: &[] }
}

/// At which a rank of the paper's LU computed, and the edge of its blocks: fitted.
const LU_GIGAFLOPS: f64 = 1.466;
const LU_BLOCK: &str = "1024";

/// Why the time in which forces go back shrinks.
const FEWER_BLOCKS: &str = "forces of those blocks go back that a rank's tasks have touched, fewer on more ranks";

pub fn lu(programs: &Programs) -> Result<Vec<Row>> {
    let network = of_speed(LU_GIGAFLOPS)?;
    let seconds = |ranks: usize| {
        let job = Job { network: &network, ranks, ranks_per_node: None, skips: true, variables: &[] };
        number(&programs.application("lu", &["--n", "32768", "--block", LU_BLOCK], job)?, "factor_seconds")
    };
    let [fewest, fewer, most] = [seconds(512)?, seconds(1024)?, seconds(2048)?];
    let ratio = most / fewer;
    Ok(vec![
        Row::near(18, "LU, 512 ranks", Kind::Fitted, "s", 130.0, fewest, FITTED),
        Row::near(18, "LU, 1024 ranks", Kind::Predicted, "s", 90.0, fewer, NEAR),
        Row::trend(18, "LU, 2048 over 1024 ranks", "flat", format!("{ratio:.2}"), "≥ 0.85", ratio >= 0.85).fitted(),
    ])
}

pub fn lennard_jones(programs: &Programs) -> Result<Vec<Row>> {
    const RANKS: [usize; 2] = [256, 512];
    let droplet = ["--fcc", "8x16x16", "--box", "75", "--cutoff", "45", "--temperature", "0.5"];
    let arguments = [&droplet[..], &["--block", "64", "--steps", "1"]].concat();
    let mut computing = Vec::new();
    let mut put = Vec::new();
    for ranks in RANKS {
        let report = programs.application("lennard_jones", &arguments, gemini(ranks))?;
        computing.push(number(&report, "computing_seconds")?);
        put.push(number(&report, "accumulate_seconds")?);
    }
    let (linear, constant) = (computing[0] / computing[1], put[1] / put[0]);
    Ok(vec![
        Row::near(19, &scaling("Lennard-Jones, computing", RANKS, &computing), Kind::Predicted, "times", 2.0, linear, NEAR),
        Row::near(19, &scaling("Lennard-Jones, put", RANKS, &put), Kind::Predicted, "times", 1.0, constant, NEAR)
            .unless(FEWER_BLOCKS),
    ])
}

pub fn sph(programs: &Programs) -> Result<Vec<Row>> {
    const RANKS: [usize; 2] = [128, 256];
    let arguments = ["--case", "taylor_green", "--spacing", "0.00025", "--end-time", "5.6e-5"];
    let mut computing = Vec::new();
    for ranks in RANKS {
        let report = programs.application("sph", &arguments, gemini(ranks))?;
        computing.push(number(&report, "computing_seconds")?);
    }
    let inverse = computing[0] / computing[1];
    Ok(vec![Row::near(20, &scaling("SPH, computing", RANKS, &computing), Kind::Predicted, "times", 2.0, inverse, NEAR)])
}

fn scaling(what: &str, ranks: [usize; 2], seconds: &[f64]) -> String {
    let each = ranks.iter().zip(seconds).map(|(ranks, seconds)| format!("{ranks}: {:.2} ms", 1e3 * seconds));
    format!("{what}, {}", each.collect::<Vec<_>>().join(", "))
}
