//! Jacobi's method on a cube with ghost cells: the seven-point stencil, every cell the mean of its six neighbours.
//!
//! # The method
//!
//! u is a function on n³ cells with spacing h, periodic (h = 1/n) or zero on the boundary (h = 1/(n + 1)). A sweep replaces it by
//! the mean over each cell's neighbours. That is Jacobi's iteration for Δu = 0, and one explicit Euler step of ∂u/∂t = Δu with the
//! time step h²/6, which is what gives the program an exact solution ([`mode`]).
//!
//! # The distribution
//!
//! Two global arrays, x and y, one block of each for every rank, with ghost cells `depth` wide. One epoch is `depth` sweeps:
//!
//! 1. the epoch begins: all ranks' writes into x are complete, and each rank fills its ghost cells of x from their owners;
//! 2. each rank computes `depth` sweeps on its block ([`sweep`]), the first ones also on the ghost cells that the later ones need,
//!    and writes the result into its block of y;
//! 3. the epoch ends; x and y change names.
//!
//! Along the rows the ghost cells are whole cache lines, so that the first cell of each row begins one.
//!
//! Where the job skips what is computed ([`simulation::Simulation::skips`]) the arrays are hollow: the ghost cells are filled as else, and the sweeps are declared.
//!
//! With `--way channels` there is one long epoch, and ghost cells are sent by the ranks beside ([`halo`]).
//!
//! So ranks meet once in `depth` sweeps, and the cells go through memory once in `depth` sweeps. What is computed twice, at the
//! edges of blocks, costs some percent.

mod cli;
mod halo;
mod mode;
mod report;
mod sweep;

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use global_arrays::{
    file::{FileWriter, Progress},
    prelude::*,
};
use program::{command_line, file_names, plot};

use crate::cli::{Arguments, Way};
use crate::halo::Halo;
use crate::mode::{Mode, WAVES};
use crate::report::{Order, Report};
use crate::sweep::{LINE, Sweeper};

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    command_line::main("stencil", || run(&arguments))
}

fn run(arguments: &Arguments) -> Result<(), String> {
    arguments.check()?;
    arguments.plot.as_deref().map_or(Ok(()), plot::check)?;
    if let Some(file) = &arguments.save {
        global_arrays::file::check_name(file).map_err(|error| error.to_string())?;
    }
    file_names::check(&[("--save", arguments.save.as_deref()), ("--plot", arguments.plot.as_deref())], &[])?;
    arguments.start.launch().run(|job| rank_main(job, arguments)).map_err(|error: Error| error.to_string())
}

/// What each rank does.
fn rank_main(job: &Job, arguments: &Arguments) -> Result<(), Error> {
    arguments.start.needs_computing(job, "--save", arguments.save.is_some()).map_err(Error::other)?;
    let mode = Mode::new(arguments.n, arguments.periodic, WAVES);
    let bar = command_line::progress_bar(job, arguments.sweeps, "sweeps");
    let (run, cells) = relax(job, &mode, arguments.sweeps, arguments, |done| bar.set_position(done as u64))?;
    bar.finish_and_clear();
    if let Some(file) = &arguments.save {
        let bar = command_line::progress_bar(job, 0, "bytes");
        let show = |progress: Progress| {
            bar.set_length(progress.total);
            bar.set_position(progress.done);
        };
        FileWriter::new(file).array("cells", &cells).progress(show).save()?;
        bar.finish_and_clear();
    }
    drop(cells);
    let order = if arguments.convergence { Some(converge(job, arguments)?) } else { None };
    if let (Some(file), Some(order), 0) = (&arguments.plot, &order, job.rank()) {
        order.draw(file).map_err(Error::other)?;
    }
    let (ranks, network) = (job.size(), job.network().to_owned());
    let report =
        Report { mode, sweeps: arguments.sweeps, depth: arguments.depth, way: arguments.way, ranks, network, run, order };
    arguments.start.report(job, &report, &report.json())?;
    match report.failure() {
        None => Ok(()),
        Some(failure) => Err(Error::other(failure)),
    }
}

/// Time of the sweeps, and how far the cells are from the truth, if anything was computed.
#[derive(Debug, Clone, Copy)]
struct Run {
    elapsed: Duration,
    errors: Option<Errors>,
}

/// How far the cells are from the truth.
#[derive(Debug, Clone, Copy)]
struct Errors {
    /// From the exact solution of the iteration.
    iteration: f64,
    /// From the exact solution of the heat equation.
    heat: f64,
}

/// Sweeps that begin with the mode, and the cells after them. Collective.
fn relax(
    job: &Job,
    mode: &Mode,
    sweeps: usize,
    arguments: &Arguments,
    mut done: impl FnMut(usize),
) -> Result<(Run, GlobalArray<f64, Ix3>), Error> {
    let n = mode.cells();
    let depth = arguments.depth.min(sweeps);
    let array = |name: &str| {
        let builder = GlobalArray::<f64, Ix3>::builder(job, [n; 3]).name(name).min_block([1, 1, n]).ghosts([
            depth,
            depth,
            depth.next_multiple_of(LINE),
        ]);
        builder.boundaries([mode.boundary(); 3]).hollow().zeros().create()
    };
    let (mut x, mut y) = (array("x")?, array("y")?);
    let skips = job.simulation().skips();
    if !skips {
        x.map_indexed(|cell, _| mode.first(cell))?;
    }
    let mut sweeper = Sweeper::new(&x, arguments.tile);
    let mut halo = (arguments.way == Way::Channels).then(|| Halo::new(job, &x, depth)).transpose()?;

    job.barrier()?;
    let start = job.now();
    job.phase("sweeps", || {
        let together = (0..sweeps).step_by(depth).map(|before| (before, depth.min(sweeps - before)));
        if let Some(halo) = &mut halo {
            job.epoch((x.ghosts_mut(), y.ghosts_mut()), |(mut x, mut y)| {
                let (mut from, mut to) = (&mut x, &mut y);
                for (before, together) in together.clone() {
                    halo.exchange(from)?;
                    if !skips {
                        sweeper.run(&from.view(), &mut to.view_mut(), together);
                    }
                    job.simulation().work(sweeper.work(together));
                    std::mem::swap(&mut from, &mut to);
                    done(before + together);
                }
                Ok::<_, Error>(())
            })??;
            if together.len() % 2 == 1 {
                std::mem::swap(&mut x, &mut y);
            }
        } else {
            for (before, together) in together {
                job.epoch((x.ghosts(), y.ghosts_mut()), |(from, mut to)| {
                    if !skips {
                        sweeper.run(&from.view(), &mut to.view_mut(), together);
                    }
                    job.simulation().work(sweeper.work(together));
                })?;
                std::mem::swap(&mut x, &mut y);
                done(before + together);
            }
        }
        job.barrier()
    })?;
    let elapsed = Duration::from_secs_f64(job.all_reduce_one((job.now() - start).as_secs_f64(), ops::max)?);

    if skips {
        return Ok((Run { elapsed, errors: None }, x));
    }
    let errors = x.read_epoch(|part, _| {
        let mut errors = [0.0_f64; 2];
        for block in part.blocks() {
            let start = block.patch.start();
            for ((i, j, k), &u) in part.view().indexed_iter() {
                let first = mode.first((start[0] + i, start[1] + j, start[2] + k));
                for (error, factor) in errors.iter_mut().zip([mode.decay(sweeps), mode.heat(sweeps)]) {
                    *error = ops::max_nan(*error, (u - factor * first).abs());
                }
            }
        }
        errors
    })?;
    let (iteration, heat) = (job.all_reduce_one(errors[0], ops::max_nan)?, job.all_reduce_one(errors[1], ops::max_nan)?);
    Ok((Run { elapsed, errors: Some(Errors { iteration, heat }) }, x))
}

/// The distance from the heat equation at one time on grids of which each has half the spacing of the one before. Collective.
fn converge(job: &Job, arguments: &Arguments) -> Result<Order, Error> {
    /// Cells along an edge and sweeps of the first grid, and the number of grids.
    const FIRST: (usize, usize) = (8, 8);
    const GRIDS: usize = 4;
    let (mut n, mut sweeps) = FIRST;
    let mut order = Order::default();
    if job.simulation().skips() {
        return Err(Error::other("--convergence has nothing to look at where nothing is computed"));
    }
    for _ in 0..GRIDS {
        // The slowest waves: the coarsest grid shall know them well.
        let mode = Mode::new(n, arguments.periodic, [1; 3]);
        let (run, _) = relax(job, &mode, sweeps, arguments, |_| {})?;
        order.push(mode.spacing(), run.errors.map_or(f64::NAN, |errors| errors.heat));
        // The spacing is halved exactly, and with four times the sweeps the time is the same.
        (n, sweeps) = (if arguments.periodic { 2 * n } else { 2 * n + 1 }, 4 * sweeps);
    }
    Ok(order)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_a_number_is_not_lost() {
        assert!([f64::NAN, 1.0].into_iter().fold(0.0, ops::max_nan).is_nan());
        assert!([1.0, f64::NAN, 0.5, 2.0].into_iter().fold(0.0, ops::max_nan).is_nan());
        assert_eq!([1.0, 2.0, 0.5].into_iter().fold(0.0, ops::max_nan), 2.0);
    }
}
