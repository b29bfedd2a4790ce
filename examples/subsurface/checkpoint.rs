//! Checkpoints: all that a run needs to go on, on any number of ranks.
//!
//! The text has the time, the planned step, sums and observations so far. Two arrays are beside it, each written by all ranks
//! together: the heads at that time and those before the last step.
//!
//! On as many ranks a resumed run ends with the same bits as one that was not interrupted, if that one has a step that ends at
//! the time of the checkpoint. On others the last bits differ, so steps may differ, and heads by the error of the time steps.

use std::path::Path;

use global_arrays::prelude::*;
use program::checkpoints::{self, Files};
use serde::{Deserialize, Serialize};

use crate::cases::Case;
use crate::field::{Layout, Team, get, put};
use crate::identity::Identity;
use crate::march::{Marched, Progress};
use crate::newton::Work;

/// Observations by time.
pub(crate) type History = Vec<(f64, Vec<f64>)>;

/// The text of a checkpoint.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Saved {
    /// Names of files beside the text: the heads, and those before the last step.
    heads: String,
    heads_before: String,
    pub(crate) time: f64,
    next_step: f64,
    last_step: f64,
    pub(crate) history: History,
    of: Identity,
    marched: Marched,
    pub(crate) work: Work,
}

impl Saved {
    /// Reads the text of a checkpoint of a case.
    ///
    /// # Errors
    /// One line that names the file: it cannot be read, it is no checkpoint, one of something else, or one of the end.
    pub(crate) fn read(file: &Path, case: &dyn Case) -> Result<Saved, String> {
        let failed = |what: String| format!("{}: {what}", file.display());
        let saved: Saved = checkpoints::read(file)?;
        if let Some(difference) = Identity::of(case).difference(&saved.of) {
            return Err(failed(difference));
        }
        let observed = case.observed().len();
        if let Some((time, row)) = saved.history.iter().find(|(_, row)| observed > 0 && row.len() != observed) {
            return Err(failed(format!("no checkpoint: {} values at t = {time} s, {observed} are needed", row.len())));
        }
        if ![saved.time, saved.next_step, saved.last_step].iter().all(|time| *time > 0.0 && time.is_finite()) {
            return Err(failed("no checkpoint: its times are not above 0".into()));
        }
        let end = case.schedule().times.last().copied().unwrap_or_default();
        if saved.time >= end {
            return Err(failed(format!("a checkpoint of t = {} s, and the run ends at t = {end} s", saved.time)));
        }
        Ok(saved)
    }

    /// Where the run stood; `file` is that of the text. Collective.
    ///
    /// # Errors
    /// A file of heads that cannot be read or is of another shape.
    pub(crate) fn progress(&self, team: &Team<'_>, file: &Path) -> Result<Progress, Error> {
        let files = Files::new(file, Vec::new())?;
        let mut array = team.array("restored")?;
        let mut read = |name: &str| {
            array.read(files.beside(name))?;
            let field = get(&array, &team.layout)?;
            // The array is read into again.
            team.sync()?;
            Ok::<_, Error>(field)
        };
        let earlier = Some((read(&self.heads_before)?, self.last_step));
        let head = read(&self.heads)?;
        Ok(Progress { time: self.time, head, earlier, next_step: self.next_step, marched: self.marched })
    }
}

/// Writes checkpoints under one name.
pub(crate) struct Checkpoints {
    files: Files,
    times: Vec<f64>,
    every: usize,
    /// Of rank 0.
    of: Option<Identity>,
    array: GlobalArray<f64, Ix3>,
    layout: Layout,
}

impl Checkpoints {
    /// Checkpoints at the times of output, and after every so many steps. Collective.
    pub(crate) fn new(team: &Team<'_>, file: &Path, every: Option<usize>, case: &dyn Case) -> Result<Self, Error> {
        let (array, layout) = (team.array("checkpoint")?, team.layout.clone());
        let every = every.unwrap_or(usize::MAX);
        let of = (team.rank() == 0).then(|| Identity::of(case));
        // All ranks look before any writes.
        let there = checkpoints::read(file).map_or_else(|_| Vec::new(), |saved: Saved| vec![saved.heads, saved.heads_before]);
        let files = Files::new(file, there)?;
        team.sync()?;
        Ok(Checkpoints { files, times: case.frames(), every, of, array, layout })
    }

    /// Writes a checkpoint if one is due. `heads` are those of all cells, `history` is that of rank 0. Collective.
    ///
    /// # Errors
    /// One line that names the file; the checkpoint before stays.
    pub(crate) fn write(
        &mut self,
        progress: &Progress,
        work: Work,
        heads: &GlobalArray<f64, Ix3>,
        history: &History,
    ) -> Result<(), Error> {
        let due = self.times.contains(&progress.time) || progress.marched.steps.is_multiple_of(self.every);
        let Some((before, last_step)) = progress.earlier.as_ref().filter(|_| due) else { return Ok(()) };
        put(&self.array, &self.layout, before)?;
        let names = [".heads.npy", ".before.npy"].map(|ending| self.files.name(progress.marched.steps, ending));
        heads.save(self.files.beside(&names[0]))?;
        self.array.save(self.files.beside(&names[1]))?;
        let text = self.of.as_ref().map(|of| Saved {
            heads: names[0].clone(),
            heads_before: names[1].clone(),
            time: progress.time,
            next_step: progress.next_step,
            last_step: *last_step,
            history: history.clone(),
            of: of.clone(),
            marched: progress.marched,
            work,
        });
        self.files.replace(names.to_vec(), text.as_ref())
    }
}
