//! Orthonormalisation of electronic states by pair calculators: the communication of OpenAtom (CkDirect §5.1) with one-sided
//! transfers.
//!
//! # The problem
//!
//! Each of S states is a vector of complex coefficients, decomposed in P planes of G points. Car-Parrinello steps leave the
//! states a little less than orthonormal; their overlap S_ij = Σ_planes Σ_g ψ_i(g)·ψ_j(g)* tells by how much, and ψ ← S^(-½)·ψ
//! is the nearest orthonormal set (Löwdin, J. Chem. Phys. 18, 1950). An iteration does one step of Newton and Schulz towards it,
//!
//! > ψ ← ½·(3 − S)·ψ,
//!
//! which converges quadratically where the eigenvalues λ of S lie between 0 and 3: λ becomes ¼·λ·(3 − λ)², so 1 − λ becomes
//! ¾·(1 − λ)² + ¼·(1 − λ)³.
//!
//! # How it is done
//!
//! The coefficients are an array of planes × states × points, cut along planes and states: OpenAtom's GS(s, p). States are taken
//! in blocks of `--grain`. A *pair calculator* (p, I, J), J ≤ I, is where block I and block J of plane p meet; they are dealt
//! round the ranks, so most blocks come from elsewhere, and go where they went before in every iteration. An iteration:
//!
//! 1. Every rank gets the blocks that its calculators need, all at once, into the same buffers each time.
//! 2. Each calculator multiplies A·B† and accumulates the product into S_IJ, its adjoint into S_JI. A sync.
//! 3. Each calculator gets S_IJ, makes T = ½·(3 − S) of it and adds T_IJ·B to the rank's sum for block I, T_IJ†·A to that for
//!    block J. The sums are accumulated into the next states, one accumulate for each block. A sync.
//!
//! # The check
//!
//! All the iterates are polynomials of the first overlap: ψ_k = Y_k·ψ_0 with Y_(k+1) = ½·(3 − Y_k·S_0·Y_k)·Y_k. So the final states
//! are computed again from the first ones, which are a formula, by S × S matrices alone: without pair calculators, without
//! blocks, with another matrix product. See [`reference`].

mod calculator;
mod pairs;
mod reference;
mod report;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use global_arrays::prelude::*;
use program::command_line::{self, positive};
use program::plot;

use crate::calculator::Calculators;
use crate::pairs::Shape;
use crate::report::Report;

/// Makes states orthonormal by pair calculators, as OpenAtom does.
#[derive(Debug, Clone, Parser)]
#[command(name = "pair_calculator")]
struct Arguments {
    #[command(flatten)]
    start: command_line::Start,
    /// Electronic states
    #[arg(long, default_value_t = 128, value_parser = positive)]
    states: usize,
    /// Planes that each state is cut in
    #[arg(long, default_value_t = 16, value_parser = positive)]
    planes: usize,
    /// Coefficients of a state in each plane
    #[arg(long, default_value_t = 256, value_parser = positive)]
    points: usize,
    /// Iterations
    #[arg(long, default_value_t = 8, value_parser = positive)]
    iterations: usize,
    /// States of a block
    #[arg(long, default_value_t = 32, value_parser = positive)]
    grain: usize,
    /// Seed of the first states
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Draw the deviation from orthonormality by iteration: an SVG or PNG file
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    command_line::main("pair_calculator", || run(&arguments))
}

fn run(arguments: &Arguments) -> Result<(), String> {
    let &Arguments { states, planes, points, grain, seed, .. } = arguments;
    let shape = Shape { states, planes, points, grain: grain.min(states), seed };
    shape.check()?;
    arguments.plot.as_deref().map_or(Ok(()), plot::check)?;
    arguments.start.launch().run(|job| rank_main(job, arguments, shape)).map_err(|error: Error| error.to_string())
}

/// What each rank does.
fn rank_main(job: &Job, arguments: &Arguments, shape: Shape) -> Result<(), Error> {
    let mut calculators = Calculators::new(job, shape)?;
    let bar = command_line::progress_bar(job, arguments.iterations, "iterations");
    let before = job.stats();
    job.sync()?;
    let start = job.now();
    let mut deviations = Vec::with_capacity(arguments.iterations + 1);
    for _ in 0..arguments.iterations {
        calculators.overlap()?;
        deviations.push(calculators.correct()?);
        bar.inc(1);
    }
    let seconds = job.all_reduce_one((job.now() - start).as_secs_f64(), ops::max)? / arguments.iterations as f64;
    bar.finish_and_clear();
    let reached = match (job.stats(), before) {
        (Some(now), Some(before)) => {
            let phase = now.since(&before);
            let mut most = [phase.distinct_peers() as u64, phase.distinct_nodes() as u64];
            job.all_reduce(&mut most, ops::max)?;
            Some(most)
        }
        _ => None,
    };
    calculators.overlap()?;
    deviations.push(calculators.deviation()?);
    job.all_reduce(&mut deviations, ops::max_nan)?;
    let max_error = reference::compare(job, shape, arguments.iterations, &mut calculators)?;
    let report = Report { shape, ranks: job.size(), network: job.network().to_owned(), seconds, deviations, max_error, reached };
    arguments.start.report(job, &report, &report.json())?;
    if let Some(file) = arguments.plot.as_deref().filter(|_| job.rank() == 0) {
        report.draw(file).map_err(Error::other)?;
    }
    if report.passed() {
        Ok(())
    } else {
        Err(Error::other(format!("an error of {max_error:.3e} is above {:.0e}", report::THRESHOLD)))
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }
}
