//! C = A·B on a cube of ranks, beside the library's `matmul`.
//!
//! # The algorithm
//!
//! The ranks make a cube of p × q × r, and rank (x, y, z) is responsible for the products
//!
//! ```text
//!   C(x, y)  +=  A(x, z) · B(z, y)          A in p × r blocks, B in r × q, C in p × q
//! ```
//!
//! so that A is needed by all ranks of a line along y, B by those along x, and C is summed along z. Each block is owned in
//! equal slices by the very ranks of its line ([`layout`]): a rank holds 1/q of the block of A that it needs, 1/p of its block
//! of B, and 1/r of its block of C.
//!
//! 1. Fetch a strip of A(x, z) and one of B(z, y), [`DEPTH`] along k, by one-sided gets to where they are multiplied.
//! 2. While they are multiplied, the next two strips are on their way.
//! 3. After the last strip, add the product to C(x, y): by accumulates, slice by slice, beginning with the own one so that not
//!    all of a line meet at one owner; by a put where r = 1.
//!
//! No rank waits for another between the sync at the begin and that at the end.
//!
//! Where the job skips what is computed ([`simulation::Simulation::skips`]) the matrices are hollow, and this product alone is made, without multiplying.
//!
//! # Source
//!
//! E. Bohm, S. Chakravorty, P. Jetley, A. Bhatele, L. V. Kale: *CkDirect: unsynchronized one-sided communication in a
//! message-driven paradigm*, P2S2 2009, §4.2; the decomposition is that of R. C. Agarwal, S. M. Balle, F. G. Gustavson, M. Joshi,
//! P. Palkar: *A three-dimensional approach to parallel matrix multiplication*, IBM J. Res. Dev. 39 (5), 1995.

mod cli;
mod cube;
mod entries;
mod layout;
mod report;

use std::mem;
use std::ops::Range;
use std::process::ExitCode;

use clap::Parser;
use global_arrays::{algebra::Matmul, prelude::*, simulation::Work};
use program::command_line;

use crate::cli::Arguments;
use crate::cube::Cube;
use crate::entries::Entries;
use crate::layout::Blocks;
use crate::report::{Compared, Report};

/// Elements along k of a strip: enough that the multiplication takes longer than fetching the next strip.
const DEPTH: usize = 512;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    command_line::main("matmul", || run(&arguments))
}

/// Finds mistakes here, where one is told once, then starts the ranks.
fn run(arguments: &Arguments) -> Result<(), String> {
    if let Some(ranks) = arguments.start.ranks {
        Cube::choose(arguments.cube, ranks, arguments.sizes())?;
    }
    match &arguments.save {
        Some(folder) if !folder.is_dir() => return Err(format!("no folder {} for the matrices", folder.display())),
        _ => {}
    }
    arguments.start.launch().run(|job| rank_main(job, arguments)).map_err(|error: Error| error.to_string())
}

/// What each rank does.
fn rank_main(job: &Job, arguments: &Arguments) -> Result<(), Error> {
    arguments.start.needs_computing(job, "--save", arguments.save.is_some()).map_err(Error::other)?;
    let sizes = arguments.sizes();
    let cube = Cube::choose(arguments.cube, job.size(), sizes).map_err(Error::other)?;
    let blocks = Blocks { sizes, cube };
    let (mut a, mut b) = (blocks.a(job)?, blocks.b(job)?);
    let mut c = blocks.c(job)?;
    let mut worker = Worker::new(blocks, job);
    let report = |seconds, library| Report { sizes, cube, network: job.network().to_owned(), seconds, library };
    if job.simulation().skips() {
        // The library's product knows nothing of skipping, and would multiply what is not there.
        let mut seconds = f64::INFINITY;
        for _ in 0..arguments.rounds {
            seconds = seconds.min(timed(job, "cube", || worker.multiply(job, &a, &b, &mut c))?);
        }
        let report = report(seconds, None);
        return arguments.start.report(job, &report, &report.json());
    }
    let mut by_library = GlobalArray::<f64, Ix2>::builder(job, [sizes.m, sizes.n]).name("C by the library").create()?;
    // Not before the arrays: whoever asks for too large a matrix is told so by them.
    let entries = Entries::new(sizes, arguments.seed);
    a.map_indexed(|(i, j), _| entries.a(i, j))?;
    b.map_indexed(|(i, j), _| entries.b(i, j))?;

    // The products take turns, so that a machine that slows down or speeds up does so for both.
    let bar = command_line::progress_bar(job, 2 * arguments.rounds, "products");
    let (mut seconds, mut library_seconds) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..arguments.rounds {
        seconds = seconds.min(timed(job, "cube", || worker.multiply(job, &a, &b, &mut c))?);
        bar.inc(1);
        library_seconds = library_seconds.min(timed(job, "library", || by_library.matmul(1.0, &a, &b, 0.0))?);
        bar.inc(1);
    }
    bar.finish_and_clear();

    let errors = [largest_error(job, &mut c, &entries)?, largest_error(job, &mut by_library, &entries)?];
    by_library.scaled_add(-1.0, &c)?;
    let difference = by_library.max_abs()?;
    let report = report(seconds, Some(Compared { seconds: library_seconds, errors, difference }));
    arguments.start.report(job, &report, &report.json())?;
    if !report.passed() {
        let (found, allowed) = (report.max_error(), report.allowed());
        return Err(Error::other(format!("an element of the product is wrong by {found:.3e}; rounding explains {allowed:.3e}")));
    }
    if let Some(folder) = &arguments.save {
        for (name, matrix) in [("A", &a), ("B", &b), ("C", &c)] {
            matrix.save(folder.join(format!("{name}.npy")))?;
        }
    }
    Ok(())
}

/// The time until the slowest rank is through, in seconds. Collective.
fn timed(job: &Job, phase: &'static str, work: impl FnOnce() -> Result<(), Error>) -> Result<f64, Error> {
    job.sync()?;
    let start = job.now();
    job.phase(phase, work)?;
    job.all_reduce_one((job.now() - start).as_secs_f64(), ops::max)
}

/// One rank's buffers, which stay from one product to the next.
struct Worker {
    blocks: Blocks,
    /// Place in the cube.
    place: [usize; 3],
    /// Two strips of each: one is multiplied, one is on its way.
    strips: [Strip; 2],
    product: Array2<f64>,
    /// Nothing is multiplied, and no buffer is ever touched.
    skips: bool,
}

/// A strip of A(x, z), by columns, and the strip of B(z, y) that it is multiplied with.
struct Strip {
    a: Array2<f64>,
    b: Array2<f64>,
    depth: usize,
}

impl Worker {
    fn new(blocks: Blocks, job: &Job) -> Self {
        let place = blocks.cube.place(job.rank());
        let [m, n] = [blocks.rows(place), blocks.columns(place)].map(|range| range.len());
        let depth = DEPTH.min(blocks.depth(place).len());
        let strip = || Strip { a: Array2::zeros((depth, m)).reversed_axes(), b: Array2::zeros((depth, n)), depth: 0 };
        Worker { blocks, place, strips: [strip(), strip()], product: Array2::zeros((m, n)), skips: job.simulation().skips() }
    }

    /// `c = a * b`. Collective; complete everywhere on return.
    fn multiply(
        &mut self,
        job: &Job,
        a: &GlobalArray<f64, Ix2>,
        b: &GlobalArray<f64, Ix2>,
        c: &mut GlobalArray<f64, Ix2>,
    ) -> Result<(), Error> {
        let (summed, skips) = (self.blocks.cube.r > 1, self.skips);
        if summed {
            c.zero()?;
        }
        let (rows, columns, k) = (self.blocks.rows(self.place), self.blocks.columns(self.place), self.blocks.depth(self.place));
        let mut strips = k.clone().step_by(DEPTH).map(|start| start..k.end.min(start + DEPTH)).peekable();
        let [current, next] = &mut self.strips;
        if !skips {
            self.product.fill(0.0);
        }
        if let Some(first) = strips.peek() {
            job.scope(|scope| current.fetch(scope, a, b, (&rows, &columns), first))?;
        }
        while strips.next().is_some() {
            let (product, ready) = (&mut self.product, &*current);
            job.scope(|scope| {
                if let Some(following) = strips.peek() {
                    next.fetch(scope, a, b, (&rows, &columns), following)?;
                }
                let depth = ready.depth;
                job.simulation().work(Work::flops(2.0 * product.len() as f64 * depth as f64));
                if !skips {
                    f64::multiply(product.view_mut(), 1.0, ready.a.slice(s![.., ..depth]), ready.b.slice(s![..depth, ..]), 1.0);
                }
                Ok::<(), Error>(())
            })?;
            mem::swap(current, next);
        }
        for slice in self.blocks.slices(self.place) {
            let part = self.product.slice(s![slice.start - rows.start..slice.end - rows.start, ..]);
            let patch = s![slice, columns.clone()];
            if summed { c.accumulate(patch, 1.0, part)? } else { c.put(patch, part)? }
        }
        job.sync()
    }
}

impl Strip {
    /// Sets a range along k on its way, to be there when the scope ends.
    fn fetch<'env>(
        &'env mut self,
        scope: &global_arrays::transfer::Scope<'env>,
        a: &GlobalArray<f64, Ix2>,
        b: &GlobalArray<f64, Ix2>,
        (rows, columns): (&Range<usize>, &Range<usize>),
        k: &Range<usize>,
    ) -> Result<(), Error> {
        self.depth = k.len();
        scope.get_into(a, s![rows.clone(), k.clone()], self.a.slice_mut(s![.., ..k.len()]))?;
        scope.get_into(b, s![k.clone(), columns.clone()], self.b.slice_mut(s![..k.len(), ..]))
    }
}

/// The largest difference between an element and what it is by the closed form; NaN if any is. Collective.
fn largest_error(job: &Job, c: &mut GlobalArray<f64, Ix2>, entries: &Entries) -> Result<f64, Error> {
    let larger = |a: f64, b: f64| if b > a || b.is_nan() { b } else { a };
    let own = c.read_epoch(|part, _| {
        let mut largest = 0.0;
        for block in part.blocks() {
            let start = block.patch.start();
            for ((i, j), value) in part.block(&block).indexed_iter() {
                largest = larger(largest, (value - entries.product(start[0] + i, start[1] + j)).abs());
            }
        }
        largest
    })?;
    job.all_reduce_one(own, larger)
}
