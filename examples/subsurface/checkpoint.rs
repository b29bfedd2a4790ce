//! Checkpoints: all that a run needs to go on, on any number of ranks.
//!
//! Two arrays are the heads at a time and those before the last step. The time, the planned step, sums and observations so far are a text.
//!
//! On as many ranks a resumed run ends with the same bits as one that was not interrupted, if that one has a step that ends at
//! the time of the checkpoint. On others the last bits differ, so steps may differ, and heads by the error of the time steps.

use std::path::Path;

use global_arrays::file::Checkpoint;
use global_arrays::prelude::*;
use program::checkpoints;
use serde::{Deserialize, Serialize};

use crate::cases::Case;
use crate::cli::Arguments;
use crate::field::{Layout, Team, get, put};
use crate::identity::Identity;
use crate::march::{Marched, Progress};
use crate::newton::Work;

/// Observations by time.
pub(crate) type History = Vec<(f64, Vec<f64>)>;

const HEADS: &str = "heads";
const HEADS_BEFORE: &str = "heads_before";

/// The text of a checkpoint.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Saved {
    time: f64,
    next_step: f64,
    last_step: f64,
    pub(crate) history: History,
    of: Identity,
    marched: Marched,
    pub(crate) work: Work,
}

/// Where the run of the checkpoint in a folder stood, if it is one of this case. Collective.
///
/// # Errors
/// One line that names the folder: no checkpoint can be read there, or it is one of something else, or one of the end.
pub(crate) fn restore(job: &Job, team: &Team<'_>, folder: &Path, case: &dyn Case) -> Result<(Progress, Saved), Error> {
    let failed = |what: String| Err(Error::other(format!("{}: {what}", folder.display())));
    let (saved, restored) = checkpoints::restore::<Saved>(job, folder)?;
    if let Some(difference) = Identity::of(case).difference(&saved.of) {
        return failed(difference);
    }
    let end = case.schedule().times.last().copied().unwrap_or_default();
    if saved.time >= end {
        return failed(format!("a checkpoint of t = {} s, and the run ends at t = {end} s", saved.time));
    }
    let mut array = team.array("restored")?;
    let mut read = |name: &str| {
        restored.read(name, array.at_mut(..))?;
        let field = get(&array, &team.layout)?;
        // The array is read into again.
        team.sync()?;
        Ok::<_, Error>(field)
    };
    let (earlier, head) = (Some((read(HEADS_BEFORE)?, saved.last_step)), read(HEADS)?);
    Ok((Progress { time: saved.time, head, earlier, next_step: saved.next_step, marched: saved.marched }, saved))
}

/// Writes checkpoints to one folder, at the times of output and after every so many steps.
pub(crate) struct Checkpoints<'a> {
    folder: &'a Path,
    times: Vec<f64>,
    every: usize,
    /// Of rank 0.
    of: Option<Identity>,
    array: GlobalArray<f64, Ix3>,
    layout: Layout,
}

impl<'a> Checkpoints<'a> {
    /// Those that the command line asks for. Collective.
    ///
    /// # Errors
    /// A checkpoint of another program in the folder.
    pub(crate) fn new(job: &Job, team: &Team<'_>, arguments: &'a Arguments, case: &dyn Case) -> Result<Option<Self>, Error> {
        let Some(folder) = arguments.checkpoint.as_deref() else { return Ok(None) };
        checkpoints::find::<Saved>(job, folder)?;
        let (array, layout, times) = (team.array("checkpoint")?, team.layout.clone(), case.frames());
        let of = (team.rank() == 0).then(|| Identity::of(case));
        let every = arguments.checkpoint_every.unwrap_or(usize::MAX);
        Ok(Some(Checkpoints { folder, times, every, of, array, layout }))
    }

    /// Writes a checkpoint if one is due. `heads` are those of all cells, `history` is that of rank 0. Collective.
    ///
    /// # Errors
    /// One line that names the folder; the checkpoint before stays.
    pub(crate) fn write(
        &self,
        progress: &Progress,
        work: Work,
        heads: &GlobalArray<f64, Ix3>,
        history: &History,
    ) -> Result<(), Error> {
        let &Progress { time, next_step, marched, .. } = progress;
        let due = self.times.contains(&time) || marched.steps.is_multiple_of(self.every);
        let Some((before, last_step)) = progress.earlier.as_ref().filter(|_| due) else { return Ok(()) };
        put(&self.array, &self.layout, before)?;
        let text = self.of.as_ref().map(|of| Saved {
            time,
            next_step,
            last_step: *last_step,
            history: history.clone(),
            of: of.clone(),
            marched,
            work,
        });
        let arrays = Checkpoint::new(self.folder).array(HEADS, heads).array(HEADS_BEFORE, &self.array);
        checkpoints::with_run(arrays, text.as_ref())?.save()
    }
}
