//! The update of the matrix right of a panel of LU, on all threads of a rank.
//!
//! Swaps and triangular solves go column by column, so each thread has some strips of columns. For the product the trailing matrix is cut
//! into about square rectangles, one for each thread: then the threads pack least of L₂₁ and U. The next panel is factored by the rank's own
//! thread meanwhile, as the next process column does it on a machine with a rank for each core.

use std::time::Duration;

use ndarray::{ArrayView2, ArrayViewMut2, Axis as Dimension, ShapeBuilder, s};

use super::{
    axis::Axis,
    exchange::Panel,
    swaps::RowMoves,
    triangle::{multiply_subtract, solve_lower},
};
use crate::{array::rectangles, comm::kit::mutex::Mutex, linalg::field::Field, sync::Group};

/// Columns of U that are swapped, solved and copied back before the next ones: what one pass leaves in the cache the next
/// one finds there. Measured on one core of Zen 3, n = 4096: all at once takes a third longer than 512.
const STRIP: usize = 512;

/// Multiplications below which one thread has no use for others.
const SMALL: usize = 1 << 20;

/// Where the time of an LU factorization went, on one member. With several threads the parts overlap.
#[derive(Clone, Copy, Debug, Default)]
pub struct Phases {
    /// The whole of it, from the matrix in place to the factors.
    pub whole: Duration,
    /// Factoring panels.
    pub panel: Duration,
    /// Moving pivot rows, and sending panels.
    pub swap: Duration,
    /// Solving for the rows of U.
    pub triangle: Duration,
    /// Updating the trailing matrix.
    pub update: Duration,
}

/// Runs `work` and adds the time that it took to `phase`.
pub(super) fn timed<R>(group: &Group, phase: &mut Duration, work: impl FnOnce() -> R) -> R {
    let conduit = group.inner.engine().conduit();
    let start = conduit.now();
    let result = work();
    *phase += conduit.now() - start;
    result
}

/// The part of the matrix right of a panel, and what a member needs to update it.
pub(super) struct Trailing<'g, T> {
    group: &'g Group,
    rows: Axis,
    pub(super) threads: usize,
    /// Rows of U.
    upper: Vec<T>,
    pub(super) phases: Phases,
}

impl<'g, T: Field> Trailing<'g, T> {
    pub(super) fn new(group: &'g Group, rows: Axis) -> Self {
        Trailing { group, rows, threads: group.inner.job.sharers(), upper: Vec::new(), phases: Phases::default() }
    }

    /// U ← L₁₁⁻¹·U and C ← C − L₂₁·U for some columns. Where one thread does it, the product is one call, which packs L₂₁ once.
    pub(super) fn update(
        &mut self,
        panel: &Panel<'_, T>,
        moves: &RowMoves,
        mut c: ArrayViewMut2<'_, T>,
        upper: Option<ArrayViewMut2<'_, T>>,
    ) {
        if c.ncols() == 0 {
            return;
        }
        let (group, rows) = (self.group, self.rows);
        let width = panel.factored.top.nrows();
        let below = rows.first_local(moves.first + width);
        let triangle = T::FLOPS / 2.0 * (width * width * c.ncols()) as f64;
        let product = T::FLOPS * ((rows.local_extent() - below) * c.ncols() * width) as f64;
        if group.skips() {
            // What is computed below.
            timed(group, &mut self.phases.triangle, || group.work(triangle, 0.0));
            timed(group, &mut self.phases.update, || group.work(product, 0.0));
            return;
        }
        let mut own = std::mem::take(&mut self.upper);
        let is_moved = upper.is_some();
        let mut u = upper.unwrap_or_else(|| {
            let len = width * c.ncols();
            own.resize(len.max(own.len()), T::ZERO);
            ArrayViewMut2::from_shape((width, c.ncols()).f(), &mut own[..len]).expect("as long as its shape says")
        });
        let strip = |mut c: ArrayViewMut2<'_, T>, mut u: ArrayViewMut2<'_, T>| {
            let [mut swap, mut triangle] = [Duration::ZERO; 2];
            if !is_moved {
                timed(group, &mut swap, || moves.apply(c.view_mut(), u.view_mut(), |row| rows.first_local(row)));
            }
            timed(group, &mut triangle, || solve_lower(panel.factored.top.view(), u.view_mut(), true));
            if rows.mine(moves.first) {
                let top = rows.first_local(moves.first);
                timed(group, &mut swap, || c.slice_mut(s![top..top + width, ..]).assign(&u));
            }
            [swap, triangle]
        };
        let most = STRIP.min(c.ncols().div_ceil(self.threads));
        let strips = c.axis_chunks_iter_mut(Dimension(1), most).zip(u.axis_chunks_iter_mut(Dimension(1), most));
        let strips: Vec<_> = strips.map(|strip| Mutex::new(Some(strip))).collect();
        let times = group.inner.job.share(strips.len(), |at| {
            let (c, u) = strips[at].lock().take().expect("each strip is taken once");
            strip(c, u)
        });
        for [swap, triangle] in times {
            self.phases.swap += swap / self.threads as u32;
            self.phases.triangle += triangle / self.threads as u32;
        }
        group.work(triangle, 0.0);
        let trailing = c.slice_mut(s![below..rows.local_extent(), ..]);
        timed(group, &mut self.phases.update, || {
            group.work(product, 0.0);
            multiply_by(group, self.threads, trailing, panel.lower.view(), u.view());
        });
        self.upper = own;
    }
}

/// c ← c − a·b, in as many rectangles of c as there are threads.
pub(super) fn multiply_by<T: Field>(
    group: &Group,
    threads: usize,
    c: ArrayViewMut2<'_, T>,
    a: ArrayView2<'_, T>,
    b: ArrayView2<'_, T>,
) {
    let (m, n) = c.dim();
    if threads == 1 || m * n * a.ncols() < SMALL {
        return multiply_subtract(c, a, b);
    }
    let rectangles = rectangles(c, threads);
    group.inner.job.share(rectangles.len(), |at| {
        if let Some((c, [i, j])) = rectangles[at].lock().take() {
            multiply_subtract(c, a.slice(s![i, ..]), b.slice(s![.., j]));
        }
    });
}

/// Runs `update` on another thread, which shares it among those of the rank, and `own` meanwhile on the calling one; one after the other if the system
/// gives no thread.
pub(super) fn beside<R>(update: impl FnOnce() + Send, own: impl FnOnce() -> R) -> R {
    let update = Mutex::new(Some(update));
    let run = || {
        let update = update.lock().take();
        if let Some(update) = update {
            update();
        }
    };
    std::thread::scope(|scope| {
        if std::thread::Builder::new().spawn_scoped(scope, run).is_err() {
            run();
        }
        own()
    })
}
