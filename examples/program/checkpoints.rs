//! Checkpoints of a program: its arrays, and all else of a run as one text.

use std::fs;
use std::path::Path;

use global_arrays::file::{Checkpoint, Restored};
use global_arrays::prelude::*;
use rustix::fs::{Access, access};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// What the text is called in a checkpoint.
const RUN: &str = "run";

/// Checks, before a run, the folder that its checkpoints shall go to, and makes it if it is not there.
///
/// # Errors
/// One line that names the folder: it cannot be made, or nothing may be written to it.
pub fn check(folder: &Path) -> Result<(), String> {
    let refuse = |why: String| format!("cannot write checkpoints to {}: {why}", folder.display());
    if folder.exists() && !folder.is_dir() {
        return Err(refuse("it is no folder".into()));
    }
    fs::create_dir_all(folder).map_err(|error| refuse(error.to_string()))?;
    access(folder, Access::WRITE_OK | Access::EXEC_OK).map_err(|error| refuse(error.to_string()))
}

/// Adds the text to a checkpoint; that of rank 0 is saved.
///
/// # Errors
/// The text cannot be made.
pub fn with_run<'a>(checkpoint: Checkpoint<'a>, run: Option<&impl Serialize>) -> Result<Checkpoint<'a>, Error> {
    let text = run.map_or_else(|| Ok(String::new()), toml::to_string).map_err(Error::other)?;
    Ok(checkpoint.value(RUN, &text))
}

/// The newest checkpoint in a folder, if there is one, with its text. Collective.
///
/// # Errors
/// One line that names the folder: what is there cannot be read, is damaged, or is of another program.
pub fn find<T: DeserializeOwned>(job: &Job, folder: &Path) -> Result<Option<(T, Restored)>, Error> {
    let Some(saved) = Checkpoint::restore(job, folder)? else { return Ok(None) };
    let other = |error: toml::de::Error| {
        let why = error.message().replace('\n', ", ");
        Error::other(format!("{}: a checkpoint of another program: {why}", folder.display()))
    };
    let run = toml::from_str(&saved.value::<String>(RUN)?).map_err(other)?;
    Ok(Some((run, saved)))
}

/// The checkpoint that a run goes on from, with its text. Collective.
///
/// # Errors
/// Those of [`find`]; there is none.
pub fn restore<T: DeserializeOwned>(job: &Job, folder: &Path) -> Result<(T, Restored), Error> {
    find(job, folder)?.ok_or_else(|| Error::other(format!("there is no checkpoint in {}", folder.display())))
}
