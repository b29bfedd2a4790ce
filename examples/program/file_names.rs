//! The names of files that a user gives: what they lead to, and what can be told of them before a run.

use std::fs::{metadata, read_link};
use std::io::{Error, ErrorKind};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use rustix::io::Errno;

/// A flag and the file that it names, if it is given.
pub type Named<'a> = (&'a str, Option<&'a Path>);

/// Checks the files of a run before it begins. Those in `whole` are written late, from a temporary file beside them; `others` are read, or opened at the
/// start.
///
/// # Errors
/// One line: a file of `whole` that cannot be written, or two flags that name one file.
pub fn check(whole: &[Named<'_>], others: &[Named<'_>]) -> Result<(), String> {
    let given = |(flag, file): &Named<'_>| Some((flag.to_string(), file.as_ref()?.to_path_buf()));
    let files: Vec<(String, PathBuf)> = whole.iter().chain(others).filter_map(given).collect();
    whole.iter().filter_map(|(_, file)| *file).try_for_each(can_be_written)?;
    for (at, (flag, file)) in files.iter().enumerate() {
        if let Some((other, _)) = files[..at].iter().find(|(_, other)| is_same(file, other)) {
            return Err(format!("{other} and {flag} name the same file, {}: give each its own", file.display()));
        }
    }
    Ok(())
}

fn can_be_written(file: &Path) -> Result<(), String> {
    let refuse = |why: String| format!("cannot write {}: {why}", file.display());
    let target = behind_links(file).map_err(|error| refuse(error.to_string()))?;
    let folder = folder_of(&target);
    let may_write = |path: &Path, access_needed: Access| {
        access(path, access_needed).map_err(|error| refuse(format!("{}: {}", path.display(), Error::from(error))))
    };
    if is_descriptor(&target) {
        return Ok(());
    }
    if !folder.is_dir() {
        return Err(refuse(format!("there is no folder {}", folder.display())));
    }
    if target.is_dir() {
        return Err(refuse("it is a folder".into()));
    }
    if target.exists() {
        may_write(&target, Access::WRITE_OK)?;
    }
    // What is no ordinary file is written in place.
    if is_ordinary(&target) { may_write(folder, Access::WRITE_OK | Access::EXEC_OK) } else { Ok(()) }
}

/// Whether two names lead to one file. Several may write to one device.
fn is_same(one: &Path, other: &Path) -> bool {
    let full = |file: &Path| -> Option<PathBuf> {
        let target = behind_links(file).ok()?;
        Some(folder_of(&target).canonicalize().ok()?.join(target.file_name()?))
    };
    match (metadata(one), metadata(other)) {
        (Ok(one), Ok(other)) => (one.dev(), one.ino()) == (other.dev(), other.ino()) && !one.file_type().is_char_device(),
        (Err(_), Err(_)) => full(one).is_some_and(|one| full(other) == Some(one)),
        _ => false,
    }
}

/// The name that symbolic links lead to, of a file or of none. A descriptor is a link to what may have no name: it is not followed.
///
/// # Errors
/// Links that lead in a circle, or that the kernel does not follow.
pub(crate) fn behind_links(file: &Path) -> Result<PathBuf, Error> {
    /// As the system's own.
    const LINKS: usize = 40;
    // The kernel refuses some links of others in folders that all may write to (`protected_symlinks`).
    if let Err(error) = metadata(file)
        && error.kind() == ErrorKind::PermissionDenied
    {
        return Err(error);
    }
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
fn is_descriptor(target: &Path) -> bool {
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

#[cfg(test)]
pub(crate) mod tests {
    use std::fs::{Permissions, create_dir_all, hard_link, remove_dir_all, set_permissions, write};
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    /// A new folder of a test's own.
    pub(crate) fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("program-{name}-{}", std::process::id()));
        create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn a_file_that_could_not_be_written_is_refused() {
        let folder = folder("refused");
        let told = |name: &str| check(&[("--a", Some(&folder.join(name)))], &[]);
        create_dir_all(folder.join("locked")).unwrap();
        for (link, target) in
            [("far", "none/a"), ("near", "a"), ("in", "locked/a"), ("out", "/proc/self/fd/1"), ("round", "round")]
        {
            symlink(target, folder.join(link)).unwrap();
        }
        assert_eq!([told("a"), told("near"), told("in"), told("out")], [const { Ok(()) }; 4]);
        assert_eq!(check(&[("--a", Some(Path::new("/dev/full"))), ("--b", None)], &[]), Ok(()));
        assert!(told("none/a").unwrap_err().contains("there is no folder"));
        assert!(told("far").unwrap_err().contains("far: there is no folder"));
        assert!(told("locked").unwrap_err().contains("locked: it is a folder"));
        assert!(told("round").unwrap_err().contains("Too many levels"));
        write(folder.join("protected"), "").unwrap();
        for (name, mode) in [("protected", 0o444), ("locked", 0o555)] {
            set_permissions(folder.join(name), Permissions::from_mode(mode)).unwrap();
        }
        if rustix::process::geteuid().is_root() {
            eprintln!("skipped: root may write to what is protected");
        } else {
            assert!(["protected", "in", "locked/a"].iter().all(|name| told(name).unwrap_err().contains("Permission denied")));
        }
        remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn two_flags_with_one_file_are_refused() {
        let folder = folder("same");
        let [a, b, link, hard, other] = ["a", "b", "link", "hard", "./a"].map(|name| folder.join(name));
        symlink("a", &link).unwrap();
        let told = |one: &Path, two: &Path| check(&[("--one", Some(one))], &[("--none", None), ("--two", Some(two))]);
        // Before there is such a file, and then.
        for _ in 0..2 {
            assert_eq!(told(&a, &b), Ok(()));
            for (one, two) in [(&a, &link), (&link, &other), (&a, &a)] {
                let why = told(one, two).unwrap_err();
                assert!(why.starts_with("--one and --two name the same file"), "{why}");
            }
            write(&a, "").unwrap();
        }
        hard_link(&a, &hard).unwrap();
        assert!(told(&hard, &link).is_err());
        assert_eq!(told(Path::new("/dev/null"), Path::new("/dev/null")), Ok(()));
        remove_dir_all(&folder).unwrap();
    }
}
