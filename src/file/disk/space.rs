//! Space on the disk for a new file.

use std::{
    fs::{self, File},
    io,
    path::Path,
};

use rustix::{
    fs::{FallocateFlags, fallocate, fstatvfs},
    io::{Errno, retry_on_intr},
};

use crate::file::{placed::Placed, visit::Failure};

/// Makes a file where there is none, with space for its elements. If that fails there is none again.
pub(super) fn new_file(path: &Path, create: impl FnOnce() -> Result<Placed, Failure>) -> Result<Placed, Failure> {
    if path.symlink_metadata().is_ok() {
        let what = "the file exists, and is not replaced: remove it first, or open it";
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, what).into());
    }
    create().and_then(|placed| placed.file().map_or(Ok(()), reserve).map(|()| placed)).inspect_err(|_| {
        // It has failed already, with a better reason.
        let _ = fs::remove_file(path).or_else(|_| fs::remove_dir_all(path));
    })
}

/// Takes blocks of the disk for all of a file. Where the file system cannot, it has enough of them now at least.
///
/// Blocks in one piece also make writes in any order as fast as those from the beginning to the end.
fn reserve(path: &Path) -> Result<(), Failure> {
    let file = File::options().write(true).open(path)?;
    let len = file.metadata()?.len();
    if len == 0 {
        return Ok(());
    }
    let free = || fstatvfs(&file).map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize));
    let full = |free: u64| {
        let what = format!("No space left on device: the file needs {len} bytes, {free} are free");
        Err(io::Error::new(io::ErrorKind::StorageFull, what).into())
    };
    match retry_on_intr(|| fallocate(&file, FallocateFlags::empty(), 0, len)) {
        Ok(()) => Ok(()),
        Err(Errno::NOSPC) => {
            // What it took already counts as used until then.
            file.set_len(0)?;
            full(free().unwrap_or(0))
        }
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => match free() {
            Ok(free) if free < len => full(free),
            _ => Ok(()),
        },
        Err(error) => Err(io::Error::from(error).into()),
    }
}
