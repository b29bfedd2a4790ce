//! Files that grow record by record and hold only whole ones: a disk that is full ends the run, not the file's use.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::whole_file;

/// A file that records are appended to.
#[derive(Debug)]
pub struct Records {
    name: PathBuf,
    file: File,
    /// Bytes of whole records. None in a descriptor, a device or a pipe, which may have contents of others and is not shortened.
    length: Option<u64>,
}

impl Records {
    /// A new file, or an old one emptied. A descriptor, a device or a pipe is written in place.
    ///
    /// # Errors
    /// One line that names the file.
    pub fn create(name: &Path) -> Result<Self, String> {
        let open = || match whole_file::in_place(name)? {
            (_, Some(file)) => Ok((file, None)),
            (target, None) => File::create(target).map(|file| (file, Some(0))),
        };
        let (file, length) = open().map_err(|error| format!("cannot write {}: {error}", name.display()))?;
        Ok(Records { name: name.to_owned(), file, length })
    }

    /// Appends a record. If that fails the file ends with the record before.
    ///
    /// # Errors
    /// One line that names the file.
    pub fn append(&mut self, record: &[u8]) -> Result<(), String> {
        if let Err(error) = self.file.write_all(record) {
            // Failing that, the file ends with a part of a record.
            let _ = self.length.map(|length| self.file.set_len(length));
            return Err(format!("cannot write {}: {error}", self.name.display()));
        }
        self.length = self.length.map(|length| length + record.len() as u64);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{read, remove_dir_all};
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::file_names::tests::folder;

    #[test]
    fn records_follow_what_a_descriptor_has() {
        let folder = folder("records");
        let path = folder.join("file");
        let mut file = File::create(&path).unwrap();
        let link = folder.join("stdout");
        symlink(format!("/proc/self/fd/{}", file.as_raw_fd()), &link).unwrap();
        file.write_all(b"one\n").unwrap();
        let mut records = Records::create(&link).unwrap();
        records.append(b"two\n").unwrap();
        file.write_all(b"three\n").unwrap();
        records.append(b"four\n").unwrap();
        assert_eq!(read(&path).unwrap(), b"one\ntwo\nthree\nfour\n");
        // By its own name it is emptied.
        Records::create(&path).unwrap().append(b"new\n").unwrap();
        assert_eq!(read(&path).unwrap(), b"new\n");
        assert!(Records::create(Path::new("/dev/full")).unwrap().append(b"x").unwrap_err().contains("cannot write /dev/full"));
        assert!(Records::create(&folder.join("none/a")).unwrap_err().contains("none/a"));
        remove_dir_all(&folder).unwrap();
    }
}
