//! A rank at half speed, for trying what a slow processor does to the others.
//!
//! Each piece of work (a task, the motion of own atoms, a plan, an order) is followed by idle spinning for as long as it took.
//! That is a processor of half the speed as the program meets it. Another program on the same core is not: the system
//! gives each the core for whole milliseconds, longer than a time step, and in a step every rank must move its atoms.

use std::hint::spin_loop;

use global_arrays::{prelude::*, simulation::Work};

/// How fast this rank works.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace<'j> {
    pub(crate) job: &'j Job,
    pub(crate) slow: bool,
}

impl Pace<'_> {
    /// Does a piece of work, which tells how much it was, at this rank's pace.
    #[inline(always)]
    pub(crate) fn keep<R>(self, work: impl FnOnce() -> (R, Work)) -> R {
        if !self.slow {
            let (result, work) = work();
            self.job.simulation().work(work);
            return result;
        }
        let start = self.job.now();
        let (result, work) = work();
        self.job.simulation().work(work);
        let now = self.job.now();
        while self.job.now() < now + (now - start) {
            spin_loop();
        }
        result
    }
}
