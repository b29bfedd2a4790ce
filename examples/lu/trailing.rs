//! The update of the matrix right of a panel, on all threads of a rank.
//!
//! Swaps and triangular solves go column by column, so each thread has some strips of columns. For the product the trailing matrix is cut
//! into about square rectangles, one for each thread: then the threads pack least of L₂₁ and U. The next panel is factored by the rank's own
//! thread meanwhile, as the next process column does it on a machine with a rank for each core.

use global_arrays::{Pool, prelude::*, simulation::Work};
use ndarray::{ArrayView2, ArrayViewMut2, Axis as Dimension, ShapeBuilder};
use rayon::prelude::*;

use crate::axis::Axis;
use crate::buffers::Panel;
use crate::kernels::{multiply_subtract, solve_unit_lower};
use crate::report::Phases;
use crate::swaps::RowMoves;

/// Columns of U that are swapped, solved and copied back before the next ones: what one pass leaves in the cache the next
/// one finds there. Measured on one core of Zen 3, n = 4096: all at once takes a third longer than 512.
const STRIP: usize = 512;

/// Multiplications below which one thread has no use for others.
const SMALL: usize = 1 << 20;

/// The part of the matrix right of a panel, and what a rank needs to update it.
pub(crate) struct Trailing<'j> {
    job: &'j Job,
    rows: Axis,
    /// None with one core, and where nothing is computed.
    pub(crate) threads: Option<Pool>,
    /// Rows of U.
    upper: Vec<f64>,
    pub(crate) phases: Phases,
}

impl<'j> Trailing<'j> {
    pub(crate) fn new(job: &'j Job, rows: Axis) -> Result<Self, Error> {
        // A rank of one core makes no thread.
        let pool = if job.threads().get() > 1 { Some(job.pool()?) } else { None };
        let threads = pool.filter(|pool| pool.current_num_threads() > 1);
        Ok(Trailing { job, rows, threads, upper: Vec::new(), phases: Phases::default() })
    }

    /// U ← L₁₁⁻¹·U and C ← C − L₂₁·U for some columns. Where one thread does it, the product is one call, which packs L₂₁ once.
    pub(crate) fn update(
        &mut self,
        panel: &Panel<'_>,
        moves: &RowMoves,
        mut c: ArrayViewMut2<'_, f64>,
        upper: Option<ArrayViewMut2<'_, f64>>,
    ) {
        if c.ncols() == 0 {
            return;
        }
        let (job, rows) = (self.job, self.rows);
        let width = panel.factored.top.nrows();
        let below = rows.first_local(moves.first + width);
        let triangle = Work::flops((width * width * c.ncols()) as f64);
        let product = Work::flops(2.0 * ((rows.local_extent() - below) * c.ncols() * width) as f64);
        if job.simulation().skips() {
            // What is computed below.
            Phases::time(job, &mut self.phases.triangle, || job.simulation().work(triangle));
            Phases::time(job, &mut self.phases.update, || job.simulation().work(product));
            return;
        }
        let mut own = std::mem::take(&mut self.upper);
        let is_moved = upper.is_some();
        let mut u = upper.unwrap_or_else(|| {
            let len = width * c.ncols();
            own.resize(len.max(own.len()), 0.0);
            ArrayViewMut2::from_shape((width, c.ncols()).f(), &mut own[..len]).expect("as long as its shape says")
        });
        let strip = |mut c: ArrayViewMut2<'_, f64>, mut u: ArrayViewMut2<'_, f64>| {
            let mut phases = Phases::default();
            if !is_moved {
                Phases::time(job, &mut phases.swap, || moves.apply(c.view_mut(), u.view_mut(), |row| rows.first_local(row)));
            }
            Phases::time(job, &mut phases.triangle, || solve_unit_lower(panel.factored.top.view(), u.view_mut()));
            if rows.mine(moves.first) {
                let top = rows.first_local(moves.first);
                Phases::time(job, &mut phases.swap, || c.slice_mut(s![top..top + width, ..]).assign(&u));
            }
            phases
        };
        let threads = self.threads.as_ref().map_or(1, |pool| pool.current_num_threads());
        let most = STRIP.min(c.ncols().div_ceil(threads));
        let strips = c.axis_chunks_iter_mut(Dimension(1), most).zip(u.axis_chunks_iter_mut(Dimension(1), most));
        let phases = match &self.threads {
            None => strips.map(|(c, u)| strip(c, u)).fold(Phases::default(), |sum, own| sum + own),
            Some(pool) => {
                let strips: Vec<_> = strips.collect();
                let phases = || strips.into_par_iter().map(|(c, u)| strip(c, u)).reduce(Phases::default, |sum, own| sum + own);
                pool.install(phases).shared_by(threads)
            }
        };
        self.phases = self.phases + phases;
        job.simulation().work(triangle);
        let trailing = c.slice_mut(s![below..rows.local_extent(), ..]);
        Phases::time(job, &mut self.phases.update, || {
            job.simulation().work(product);
            match &self.threads {
                None => multiply_subtract(trailing, panel.lower(), u.view()),
                Some(pool) => pool.install(|| multiply_by(threads, trailing, panel.lower(), u.view())),
            }
        });
        self.upper = own;
    }
}

/// c ← c − a·b, in as many rectangles of c as there are threads.
fn multiply_by(threads: usize, c: ArrayViewMut2<'_, f64>, a: ArrayView2<'_, f64>, b: ArrayView2<'_, f64>) {
    let (m, n) = c.dim();
    if m * n * a.ncols() < SMALL {
        return multiply_subtract(c, a, b);
    }
    let edges = |down: usize| m.div_ceil(down) + n.div_ceil(threads / down);
    let down = (1..=threads).filter(|down| threads.is_multiple_of(*down)).min_by_key(|down| edges(*down)).unwrap_or(1);
    let [rows, columns] = [m.div_ceil(down).next_multiple_of(8), n.div_ceil(threads / down)];
    let mut c = c;
    let bands = c.axis_chunks_iter_mut(Dimension(0), rows).zip(a.axis_chunks_iter(Dimension(0), rows)).collect::<Vec<_>>();
    bands.into_par_iter().for_each(|(mut c, a)| {
        let rectangles = c.axis_chunks_iter_mut(Dimension(1), columns).zip(b.axis_chunks_iter(Dimension(1), columns));
        rectangles.collect::<Vec<_>>().into_par_iter().for_each(|(c, b)| multiply_subtract(c, a, b));
    });
}

/// Runs `update` on the threads, and `own` meanwhile on the calling one.
pub(crate) fn beside<R>(threads: &rayon::ThreadPool, update: impl FnOnce() + Send, own: impl FnOnce() -> R) -> R {
    threads.in_place_scope(|scope| {
        scope.spawn(|_| update());
        own()
    })
}
