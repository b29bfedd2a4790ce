//! Checkpoints: a text that tells all of a run but its arrays, and the arrays in files beside it.
//!
//! The arrays of a checkpoint have names of their own, and the text, which has them, gets its name last. So an interrupted run leaves the
//! checkpoint before. All parts stand in one folder, also where a link leads to the text.

use std::fs;
use std::path::{Path, PathBuf};

use global_arrays::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::file_names::{behind_links, is_ordinary};
use crate::whole_file;

/// Reads the text of a checkpoint.
///
/// # Errors
/// One line that names the file: it cannot be read, or it is no checkpoint.
pub fn read<T: DeserializeOwned>(file: &Path) -> Result<T, String> {
    let no_checkpoint = |why: &str| format!("{}: no checkpoint: {why}", file.display());
    let unread = |error| format!("cannot read {}: {error}", file.display());
    // A pipe may have no writer, a device no end, and there is no place for arrays beside a descriptor.
    if !is_ordinary(&behind_links(file).map_err(unread)?) {
        return Err(no_checkpoint("it is no regular file"));
    }
    let text = fs::read_to_string(file).map_err(unread)?;
    toml::from_str(&text).map_err(|error| no_checkpoint(&error.message().replace('\n', ", ")))
}

/// Checks, before a run, the file that its checkpoints shall go to.
///
/// # Errors
/// One line: a file of that name that is no checkpoint.
pub fn check<T: DeserializeOwned>(file: &Path) -> Result<(), String> {
    if !file.exists() {
        return Ok(());
    }
    read::<T>(file).map_or_else(|what| Err(format!("--checkpoint would overwrite {what}")), |_| Ok(()))
}

/// The files of checkpoints under one name.
#[derive(Debug)]
pub struct Files {
    text: PathBuf,
    /// Names of the arrays of the last checkpoint, of an earlier run or this one.
    arrays: Vec<String>,
}

impl Files {
    /// Of a text under this name, and of the arrays of the checkpoint that stands there.
    ///
    /// # Errors
    /// Links that lead nowhere.
    pub fn new(file: &Path, arrays: Vec<String>) -> Result<Self, Error> {
        Ok(Files { text: behind_links(file).map_err(Error::other)?, arrays })
    }

    /// Where an array of this name stands.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.text.with_file_name(name)
    }

    /// A name with this ending that no array of the checkpoint before has.
    pub fn name(&self, steps: usize, ending: &str) -> String {
        let name = format!("{}{steps}{ending}", self.beginning());
        if self.arrays.contains(&name) { format!("{}{steps}-again{ending}", self.beginning()) } else { name }
    }

    /// Puts a checkpoint, whose `arrays` are written, in the place of the one before. Every rank calls it; one has the text and writes it, then
    /// removes the arrays of the checkpoint before.
    ///
    /// # Errors
    /// One line that names the file; the checkpoint before stays.
    pub fn replace(&mut self, arrays: Vec<String>, text: Option<&impl Serialize>) -> Result<(), Error> {
        let old = std::mem::replace(&mut self.arrays, arrays);
        let Some(text) = text else { return Ok(()) };
        let text = toml::to_string(text);
        let text = text.map_err(|error| Error::other(format!("cannot write {}: {error}", self.text.display())))?;
        whole_file::write(&self.text, text.as_bytes()).map_err(Error::other)?;
        let beginning = self.beginning();
        let is_own = |name: &&String| name.starts_with(&beginning) && name.ends_with(".npy") && !name.contains('/');
        for name in old.iter().filter(is_own) {
            // A file that stays does no harm.
            let _ = fs::remove_file(self.beside(name));
        }
        Ok(())
    }

    fn beginning(&self) -> String {
        format!("{}.", self.text.file_name().unwrap_or_default().to_string_lossy())
    }
}
