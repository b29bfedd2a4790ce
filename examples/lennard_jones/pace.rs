//! A rank at half speed, for trying what a slow processor does to the others.
//!
//! Each piece of work (a task, the motion of own atoms, a plan, an order) is followed by idle spinning for as long as it took.
//! That is a processor of half the speed as the program meets it. Another program on the same core is not: the system
//! gives each the core for whole milliseconds, longer than a time step, and in a step every rank must move its atoms.

use std::hint::spin_loop;
use std::time::Instant;

/// How fast this rank works.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    pub(crate) slow: bool,
}

impl Pace {
    /// Does a piece of work at this rank's pace.
    #[inline(always)]
    pub(crate) fn keep<R>(self, work: impl FnOnce() -> R) -> R {
        if !self.slow {
            return work();
        }
        let start = Instant::now();
        let result = work();
        let end = start.elapsed() * 2;
        while start.elapsed() < end {
            spin_loop();
        }
        result
    }
}
