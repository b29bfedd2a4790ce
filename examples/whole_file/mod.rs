//! Files that are there whole or not at all.

use std::fs::{File, read_link, remove_file, rename};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufWriter, Error, IntoInnerError, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, open};
use rustix::io::Errno;
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};

/// Writes a file without a name, and names it when all of it is on the disk; what stood under that name stays whole until then. So nothing is
/// left of it if this process is ended meanwhile. On a file system that has no files without names, it has a temporary name, `NAME.….partial`,
/// until then, and may be left under that name.
///
/// A symbolic link stays one: the file behind it is written, and is new if there was none. What is no ordinary file, a device or a pipe say, is
/// written in place, and so is a descriptor, `/dev/stdout` or `/dev/fd/N`, whatever it leads to.
///
/// # Errors
/// One line that names the file; nothing is left behind.
pub(crate) fn write(file: &Path, contents: &[u8]) -> Result<(), String> {
    write_with(file, |out| out.write_all(contents))
}

/// The same for contents that `fill` writes piece by piece.
///
/// # Errors
/// Those of [`write()`], and what `fill` returns.
pub(crate) fn write_with(file: &Path, fill: impl FnOnce(&mut BufWriter<File>) -> Result<(), Error>) -> Result<(), String> {
    let failed = |error: Error| format!("cannot write {}: {error}", file.display());
    let fill = |out: File| {
        let mut out = BufWriter::new(out);
        fill(&mut out)?;
        out.into_inner().map_err(IntoInnerError::into_error)
    };
    let target = behind_links(file).map_err(failed)?;
    if is_descriptor(&target) || target.exists() && !target.is_file() {
        return open_in_place(&target).and_then(fill).map(drop).map_err(failed);
    }
    let name = target.file_name().ok_or_else(|| format!("{} is not the name of a file", file.display()))?;
    let path_of = |out: &File| format!("/proc/self/fd/{}", out.as_raw_fd());
    let unnamed = open(folder_of(&target), OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC, Mode::from_raw_mode(0o666));
    let unnamed = unnamed.ok().map(File::from).filter(|out| Path::new(&path_of(out)).exists());
    let is_unnamed = unnamed.is_some();
    // Short, whatever the name is, and another one for each. The file has it for a moment, when two runs may write it, or all the time: then
    // the next run writes over it.
    let mut hasher = DefaultHasher::new();
    (name, is_unnamed.then(std::process::id)).hash(&mut hasher);
    let start: String = name.to_string_lossy().chars().take(20).collect();
    let partial = target.with_file_name(format!("{start}.{:x}.partial", hasher.finish()));
    let written = unnamed.map_or_else(|| File::create(&partial), Ok).and_then(fill).and_then(|out| {
        out.sync_all()?;
        if is_unnamed {
            linkat(CWD, path_of(&out), CWD, &partial, AtFlags::SYMLINK_FOLLOW)?;
        }
        rename(&partial, &target)
    });
    written.map_err(|error| {
        let _ = remove_file(&partial);
        failed(error)
    })
}

/// The name that symbolic links lead to, of a file or of none. A descriptor is a link to what may have no name: it is not followed.
fn behind_links(file: &Path) -> Result<PathBuf, Error> {
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
fn is_descriptor(target: &Path) -> bool {
    folder_of(target).canonicalize().is_ok_and(|folder| folder.starts_with("/proc"))
}

/// A descriptor of this process is used itself: a socket cannot be opened by its name, and a file would be written from its beginning.
fn open_in_place(target: &Path) -> Result<File, Error> {
    let held = || {
        let folder = folder_of(target).canonicalize().ok()?;
        folder.ends_with("fd").then_some(())?;
        folder.strip_prefix(format!("/proc/{}", std::process::id())).ok()?;
        let number = target.file_name()?.to_str()?.parse().ok()?;
        pidfd_getfd(pidfd_open(getpid(), PidfdFlags::empty()).ok()?, number, PidfdGetfdFlags::empty()).ok()
    };
    held().map_or_else(|| File::options().write(true).append(target.is_file()).open(target), |held| Ok(held.into()))
}

fn folder_of(target: &Path) -> &Path {
    target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use std::fs::{create_dir_all, read, read_dir, remove_dir_all};
    use std::io::Read;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixStream;

    use rustix::fs::{FileType, mknodat};

    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("whole-file-{name}-{}-{}", env!("CARGO_CRATE_NAME"), std::process::id()));
        create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn a_failure_leaves_what_was_there() {
        let folder = folder("failure");
        let file = folder.join("a");
        write(&file, b"first").unwrap();
        write(&file, b"second").unwrap();
        assert_eq!(read(&file).unwrap(), b"second");
        // While it is written nothing stands there but what was there before.
        let can_be_unnamed = open(&folder, OFlags::TMPFILE | OFlags::WRONLY, Mode::empty()).is_ok();
        let check = |out: &mut BufWriter<File>| {
            out.write_all(b"third")?;
            assert_eq!(read_dir(&folder)?.count(), if can_be_unnamed { 1 } else { 2 });
            assert_eq!(read(&file)?, b"second");
            Ok(())
        };
        write_with(&file, check).unwrap();
        assert_eq!(read(&file).unwrap(), b"third");
        assert!(write(&folder.join("none/a"), b"x").unwrap_err().contains("none/a"));
        // A full disk: the message comes at once, and the device is still one.
        assert!(write(Path::new("/dev/full"), b"x").unwrap_err().contains("/dev/full"));
        assert!(!Path::new("/dev/full").is_file());
        assert_eq!(read_dir(&folder).unwrap().count(), 1);
        remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn links_stay_and_names_may_be_long() {
        let folder = folder("links");
        create_dir_all(folder.join("far")).unwrap();
        let [link, second, missing, round] = ["link", "second", "missing", "round"].map(|name| folder.join(name));
        symlink("far/there", &link).unwrap();
        symlink(&link, &second).unwrap();
        symlink("far/new", &missing).unwrap();
        symlink("round", &round).unwrap();
        write(&folder.join("far/there"), b"old").unwrap();
        for (name, target) in [(&link, "far/there"), (&second, "far/there"), (&missing, "far/new")] {
            write(name, target.as_bytes()).unwrap();
            assert!(name.is_symlink() && !folder.join(target).is_symlink(), "{}", name.display());
            assert_eq!(read(folder.join(target)).unwrap(), target.as_bytes());
        }
        assert!(write(&round, b"x").unwrap_err().contains("round: Too many levels"));
        // Two that begin in the same way, one with letters of two bytes.
        for name in ["n".repeat(255), "n".repeat(249), "é".repeat(127)].map(|name| folder.join(name)) {
            write(&name, b"long").unwrap();
            assert_eq!(read(&name).unwrap(), b"long");
        }
        assert_eq!(read_dir(&folder).unwrap().count(), 5 + 3);
        assert_eq!(read_dir(folder.join("far")).unwrap().count(), 2);
        remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn pipes_sockets_and_descriptors_are_written_in_place() {
        let folder = folder("in-place");
        let name = |held: &dyn AsRawFd| PathBuf::from(format!("/proc/self/fd/{}", held.as_raw_fd()));
        let mut text = [0; 4];

        let pipe = folder.join("pipe");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        // Open at both ends, so that nobody waits.
        let mut ends = File::options().read(true).write(true).open(&pipe).unwrap();
        symlink("pipe", folder.join("to-pipe")).unwrap();
        for way in [pipe.clone(), folder.join("to-pipe"), name(&ends)] {
            write(&way, b"pipe").unwrap();
            ends.read_exact(&mut text).unwrap();
            assert!(text == *b"pipe" && !pipe.is_file() && !folder.join("to-pipe").is_file());
        }

        let (near, mut far) = UnixStream::pair().unwrap();
        write(&name(&near), b"sock").unwrap();
        far.read_exact(&mut text).unwrap();
        assert_eq!(text, *b"sock");

        // As with a shell's `> file`, what was written before stays; the link that stands for it, like `/dev/stdout`, does too.
        let mut file = File::create(folder.join("file")).unwrap();
        let stdout = folder.join("stdout");
        symlink(name(&file), &stdout).unwrap();
        file.write_all(b"one").unwrap();
        write(&stdout, b"two").unwrap();
        file.write_all(b"three").unwrap();
        assert!(stdout.is_symlink());
        assert_eq!(read(folder.join("file")).unwrap(), b"onetwothree");
        assert_eq!(read_dir(&folder).unwrap().count(), 4);
        remove_dir_all(&folder).unwrap();
    }
}
