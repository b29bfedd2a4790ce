//! The names of files that a program gives: what they lead to.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use rustix::io::Errno;

/// The name that symbolic links lead to, of a file or of none. A descriptor is a link to what may have no name: it is not followed.
pub(crate) fn behind_links(path: &Path) -> io::Result<PathBuf> {
    /// As the system's own.
    const LINKS: usize = 40;
    // The kernel refuses some links of others in folders that all may write to (`protected_symlinks`).
    if let Err(error) = fs::metadata(path)
        && error.kind() == io::ErrorKind::PermissionDenied
    {
        return Err(error);
    }
    let mut target = path.to_owned();
    for _ in 0..=LINKS {
        match fs::read_link(&target) {
            Ok(link) if !is_descriptor(&target) => target = directory(&target).join(link),
            _ => return Ok(target),
        }
    }
    Err(Errno::LOOP.into())
}

/// Returns true if this is the name of a descriptor, such as `/dev/stdout`.
pub(crate) fn is_descriptor(target: &Path) -> bool {
    directory(target).canonicalize().is_ok_and(|folder| folder.starts_with("/proc"))
}

/// Where a file's name stands; a bare name stands in the current directory.
pub(crate) fn directory(target: &Path) -> &Path {
    target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
