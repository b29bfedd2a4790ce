//! What looks at a run while it goes: observations, frames, checkpoints, the bar on the terminal.

use global_arrays::prelude::*;
use indicatif::ProgressBar;
use program::command_line;

use crate::cases::Case;
use crate::checkpoint::{Checkpoints, History};
use crate::cli::Arguments;
use crate::field::Team;
use crate::frames::Frames;
use crate::march::{Progress, Schedule};
use crate::newton::Work;

/// All observers of a run.
pub(crate) struct Observers<'a> {
    case: &'a dyn Case,
    is_first: bool,
    /// Of rank 0.
    pub(crate) history: History,
    frames: Option<Frames<'a>>,
    checkpoints: Option<Checkpoints<'a>>,
    bar: ProgressBar,
    first_step: f64,
}

impl<'a> Observers<'a> {
    /// Those that the command line asks for. Collective.
    pub(crate) fn new(job: &Job, team: &Team<'_>, arguments: &'a Arguments, case: &'a dyn Case) -> Result<Self, Error> {
        let Schedule { times, first_step, .. } = case.schedule();
        let end = times.last().copied().unwrap_or(first_step);
        let bar = command_line::progress_bar(job, decades(end, first_step), "parts of the logarithm of time");
        let checkpoints = Checkpoints::new(job, team, arguments, case)?;
        let frames = arguments.vtk.as_deref().map(|folder| Frames::new(job, folder, case)).transpose()?;
        Ok(Observers { case, is_first: job.rank() == 0, history: History::new(), frames, checkpoints, bar, first_step })
    }

    /// Looks at the heads at time zero. Collective.
    pub(crate) fn see_start(&self, heads: &GlobalArray<f64, Ix3>) -> Result<(), Error> {
        self.frames.as_ref().map_or(Ok(()), |frames| frames.write(0.0, heads))
    }

    /// Looks at the heads after a step. Collective.
    pub(crate) fn see(&mut self, progress: &Progress, work: Work, heads: &GlobalArray<f64, Ix3>) -> Result<(), Error> {
        if self.is_first {
            self.history.push((progress.time, self.case.observe(progress.time, heads)?));
            self.bar.set_position(decades(progress.time, self.first_step) as u64);
        }
        self.frames.as_ref().map_or(Ok(()), |frames| frames.write(progress.time, heads))?;
        self.checkpoints.as_ref().map_or(Ok(()), |checkpoints| checkpoints.write(progress, work, heads, &self.history))
    }

    /// Takes the bar away.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// Times from the first step to the end, on a scale of decades.
fn decades(time: f64, first_step: f64) -> usize {
    (1000.0 * (1.0 + time / first_step).ln()) as usize
}
