//! The names of files that a user gives: what they lead to.

use std::fs::read_link;
use std::io::Error;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

/// The name that symbolic links lead to, of a file or of none. A descriptor is a link to what may have no name: it is not followed.
///
/// # Errors
/// Links that lead in a circle.
pub(crate) fn behind_links(file: &Path) -> Result<PathBuf, Error> {
    /// As the system's own.
    const LINKS: usize = 40;
    let mut target = file.to_owned();
    for _ in 0..=LINKS {
        match read_link(&target) {
            Ok(link) if !is_descriptor(&target) => target = folder_of(&target).join(link),
            _ => return Ok(target),
        }
    }
    Err(Errno::LOOP.into())
}

/// Whether this is the name of a descriptor, such as `/dev/stdout`.
pub(crate) fn is_descriptor(target: &Path) -> bool {
    folder_of(target).canonicalize().is_ok_and(|folder| folder.starts_with("/proc"))
}

/// Whether this is the name of an ordinary file or of none: not of a device, a pipe, a folder or a descriptor.
pub(crate) fn is_ordinary(target: &Path) -> bool {
    !is_descriptor(target) && (target.is_file() || !target.exists())
}

/// The folder in which a name stands.
pub(crate) fn folder_of(target: &Path) -> &Path {
    target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
