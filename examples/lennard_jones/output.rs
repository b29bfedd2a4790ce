//! Files that grow record by record and hold only whole ones: a disk that is full ends the run, not the file's use.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use global_arrays::Error;

/// A file that records are appended to.
#[derive(Debug)]
pub(crate) struct Records {
    name: PathBuf,
    file: File,
    /// Bytes of whole records.
    length: u64,
}

impl Records {
    /// A new file, or an old one emptied.
    pub(crate) fn create(name: &Path) -> Result<Self, Error> {
        let file = File::create(name).map_err(|e| failed(name, &e))?;
        Ok(Records { name: name.to_owned(), file, length: 0 })
    }

    /// True if there is no record yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Appends a record. If that fails the file ends with the record before.
    pub(crate) fn append(&mut self, record: &[u8]) -> Result<(), Error> {
        let written: io::Result<()> = self.file.write_all(record);
        if let Err(error) = written {
            // A device cannot be shortened, and has no records to lose.
            let _ = self.file.set_len(self.length);
            return Err(failed(&self.name, &error));
        }
        self.length += record.len() as u64;
        Ok(())
    }
}

fn failed(name: &Path, error: &io::Error) -> Error {
    Error::other(format!("cannot write {}: {error}", name.display()))
}
