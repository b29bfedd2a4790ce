//! Checkpoints: all that a run needs to go on, on any number of ranks.
//!
//! A checkpoint is a text with the time, the planned step, sums and observations so far, and two arrays beside it: the
//! heads at that time and those before the last step, each written by all ranks together. The arrays of a checkpoint have
//! names of their own, and the text gets its name last. So an interrupted run leaves the checkpoint before.
//!
//! On as many ranks a resumed run ends with the same bits as one that was not interrupted, if that one has a step that ends at
//! the time of the checkpoint. On others the last bits differ, so steps may differ, and heads by the error of the time steps.

use std::path::{Path, PathBuf};

use global_arrays::prelude::*;
use program::file_names::{behind_links, is_ordinary};
use program::whole_file;
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
        let saved = Saved::parse(file)?;
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

    fn parse(file: &Path) -> Result<Saved, String> {
        let no_checkpoint = |why: &str| format!("{}: no checkpoint: {why}", file.display());
        let unread = |error| format!("cannot read {}: {error}", file.display());
        // A pipe may have no writer, a device no end, and there is no place for arrays beside a descriptor.
        if !is_ordinary(&behind_links(file).map_err(unread)?) {
            return Err(no_checkpoint("it is no regular file"));
        }
        let text = std::fs::read_to_string(file).map_err(unread)?;
        toml::from_str(&text).map_err(|error| no_checkpoint(&error.message().replace('\n', ", ")))
    }

    /// Where the run stood; `file` is that of the text. Collective.
    ///
    /// # Errors
    /// A file of heads that cannot be read or is of another shape.
    pub(crate) fn progress(&self, team: &Team<'_>, file: &Path) -> Result<Progress, Error> {
        let file = behind_links(file).map_err(Error::other)?;
        let array = team.array("restored")?;
        let read = |name: &str| {
            array.read_npy(file.with_file_name(name))?;
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

/// Whether checkpoints may be written under a name.
///
/// # Errors
/// One line: a file of that name that is no checkpoint.
pub(crate) fn check(file: &Path) -> Result<(), String> {
    if !file.exists() {
        return Ok(());
    }
    Saved::parse(file).map_or_else(|what| Err(format!("--checkpoint would overwrite {what}")), |_| Ok(()))
}

/// Writes checkpoints under one name.
pub(crate) struct Checkpoints {
    file: PathBuf,
    times: Vec<f64>,
    every: usize,
    /// Of rank 0.
    of: Option<Identity>,
    array: GlobalArray<f64, Ix3>,
    layout: Layout,
    /// Names of the arrays of the last checkpoint under this name, of an earlier run or this one.
    written: Vec<String>,
}

impl Checkpoints {
    /// Checkpoints at the times of output, and after every so many steps. Collective.
    pub(crate) fn new(team: &Team<'_>, file: &Path, every: Option<usize>, case: &dyn Case) -> Result<Self, Error> {
        let (array, layout) = (team.array("checkpoint")?, team.layout.clone());
        let every = every.unwrap_or(usize::MAX);
        let of = (team.rank() == 0).then(|| Identity::of(case));
        // All ranks look before any writes.
        let written = Saved::parse(file).map_or_else(|_| Vec::new(), |saved| vec![saved.heads, saved.heads_before]);
        // The arrays stand beside the text, also where a link leads to it.
        let file = behind_links(file).map_err(Error::other)?;
        team.sync()?;
        Ok(Checkpoints { file, times: case.frames(), every, of, array, layout, written })
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
        let names = ["heads", "before"].map(|what| self.name_of_array(progress.marched.steps, what));
        heads.save_npy(self.file.with_file_name(&names[0]))?;
        self.array.save_npy(self.file.with_file_name(&names[1]))?;
        let old = std::mem::replace(&mut self.written, names.to_vec());
        if let Some(of) = &self.of {
            let [heads, heads_before] = names;
            let saved = Saved {
                heads,
                heads_before,
                time: progress.time,
                next_step: progress.next_step,
                last_step: *last_step,
                history: history.clone(),
                of: of.clone(),
                marched: progress.marched,
                work,
            };
            self.replace(&saved, &old).map_err(Error::other)?;
        }
        Ok(())
    }

    /// A name that no array of the checkpoint before has.
    fn name_of_array(&self, steps: usize, what: &str) -> String {
        let file = self.file.file_name().unwrap_or_default().to_string_lossy();
        let name = format!("{file}.{steps}.{what}.npy");
        if self.written.contains(&name) { format!("{file}.{steps}-again.{what}.npy") } else { name }
    }

    /// Writes the text, then removes the arrays of the checkpoint before.
    fn replace(&self, saved: &Saved, old: &[String]) -> Result<(), String> {
        let text = toml::to_string(saved).map_err(|error| format!("cannot write {}: {error}", self.file.display()))?;
        whole_file::write(&self.file, text.as_bytes())?;
        let beginning = format!("{}.", self.file.file_name().unwrap_or_default().to_string_lossy());
        let is_own = |name: &&String| name.starts_with(&beginning) && name.ends_with(".npy") && !name.contains('/');
        for name in old.iter().filter(is_own) {
            // A file that stays does no harm.
            let _ = std::fs::remove_file(self.file.with_file_name(name));
        }
        Ok(())
    }
}
