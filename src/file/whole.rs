//! Files that are there completely or not at all: written under another name, put on the disk, then renamed.
//!
//! Each member syncs what it wrote, then the file is synced, then renamed, then its directory is synced. So a crash leaves the old file or
//! the new one.

use std::{
    fs::{self, File, Permissions},
    io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{CWD, RenameFlags, renameat_with},
    io::Errno,
    rand::{GetRandomFlags, getrandom},
};

use super::visit::Failure;
use crate::{
    file_names::{behind_links, directory, is_descriptor},
    portable::portable,
};

/// What a file, or a folder of files, is called while it is written, and then.
#[derive(Debug, Default)]
pub(super) struct Names {
    pub(super) temporary: PathBuf,
    pub(super) target: PathBuf,
    /// Of a file that is replaced.
    mode: Option<u32>,
}

impl Names {
    /// What is no regular file is not to be replaced by one, and what is no folder not by a folder.
    pub(super) fn of(path: &Path, is_folder: bool) -> Result<Names, Failure> {
        let target = behind_links(path)?;
        let found = fs::metadata(&target);
        let other = |found: &fs::Metadata| if is_folder { !found.is_dir() } else { !found.is_file() };
        if is_descriptor(&target) || found.as_ref().is_ok_and(other) {
            let needed = if is_folder { "folder" } else { "regular file" };
            let what = format!("each member writes at its own position, which needs a {needed}; choose another path");
            return Err(Failure::System(io::Error::other(what)));
        }
        if let Ok(entries) = fs::read_dir(&target) {
            let names: Vec<_> = entries.map(|entry| Ok(entry?.file_name())).collect::<io::Result<_>>()?;
            let is_store = ["zarr.json", ".zgroup", ".zarray"].iter().any(|of| names.iter().any(|name| name == of));
            if !names.is_empty() && !is_store {
                return Err(Failure::Format("is a folder with other files, which are not replaced; choose another name".into()));
            }
        }
        // An error if the file may not be written: its folder would let another take its place.
        let mode = match found {
            Ok(found) if is_folder => Some(found.permissions().mode()),
            _ => match File::options().write(true).open(&target).and_then(|there| there.metadata()) {
                Ok(there) => Some(there.permissions().mode()),
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                Err(error) => return Err(error.into()),
            },
        };
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        Ok(Names { temporary: unfinished(directory(&target), &name)?, target, mode })
    }

    /// Everything is on the disk before the name is, and the name is there afterwards.
    pub(super) fn rename(&self) -> Result<(), Failure> {
        let written = File::open(&self.temporary)?;
        self.mode.map_or(Ok(()), |mode| written.set_permissions(Permissions::from_mode(mode)))?;
        written.sync_all()?;
        if !self.target.is_dir() {
            fs::rename(&self.temporary, &self.target)?;
            return sync_folder(directory(&self.target));
        }
        // One takes the place of the other, so that there is always one.
        match renameat_with(CWD, &self.temporary, CWD, &self.target, RenameFlags::EXCHANGE) {
            // A file system that cannot do that, such as NFS.
            Err(Errno::INVAL | Errno::NOSYS) => {
                let old = unfinished(directory(&self.target), "replaced")?;
                fs::rename(&self.target, &old)?;
                fs::rename(&self.temporary, &self.target)?;
                sync_folder(directory(&self.target))?;
                Ok(fs::remove_dir_all(old)?)
            }
            exchanged => {
                exchanged.map_err(io::Error::from)?;
                sync_folder(directory(&self.target))?;
                remove_unfinished(&self.temporary);
                Ok(())
            }
        }
    }
}

/// A name beside a file's own, while it is written. Short, whatever the name is: file systems allow 255 bytes.
pub(super) fn unfinished(folder: &Path, name: &str) -> Result<PathBuf, Failure> {
    let mut number = [0];
    getrandom(bytemuck::cast_slice_mut::<u64, u8>(&mut number), GetRandomFlags::empty()).map_err(io::Error::from)?;
    let start: String = name.chars().take(20).collect();
    Ok(folder.join(format!(".{start}.{:x}.part", number[0])))
}

/// Removes what was not renamed. First the name goes: another member may be about to rename it, and one of the two does.
pub(super) fn remove_unfinished(path: &Path) {
    let gone = path.with_extension("gone.part");
    // It has failed already, with a better reason.
    if fs::rename(path, &gone).is_ok() {
        let _ = fs::remove_file(&gone).or_else(|_| fs::remove_dir_all(&gone));
    }
}

/// What is removed unless it was kept, also when a rank panics.
pub(super) struct Unfinished(Option<PathBuf>);

impl Unfinished {
    pub(super) fn new(path: &Path) -> Self {
        Unfinished(Some(path.to_owned()))
    }

    pub(super) fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            remove_unfinished(path);
        }
    }
}

portable!(Names { temporary, target, mode });

/// The names in a folder are on the disk.
pub(super) fn sync_folder(folder: &Path) -> Result<(), Failure> {
    match File::open(folder)?.sync_all() {
        // A file system that cannot do that to a directory.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        synced => Ok(synced?),
    }
}
