//! Files that are there whole or not at all.

use std::fs::{File, remove_file, rename};
use std::hash::{BuildHasher, RandomState};
use std::io::{BufWriter, Error, ErrorKind, IntoInnerError, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, open};
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};

use crate::command_line::writes_wait;
use crate::file_names::{behind_links, folder_of, is_ordinary};

/// Writes a file without a name, and names it when all of it is on the disk; what stood under that name stays whole until then. So nothing is
/// left of it if this process is ended meanwhile. On a file system that has no files without names, it has a temporary name, `NAME.….partial`,
/// until then, and may be left under that name. A file that is replaced leaves its mode to the new one; one that may not be written is not replaced.
///
/// A symbolic link stays one: the file behind it is written, and is new if there was none. What is no ordinary file, a device or a pipe say, is
/// written in place, and so is a descriptor, `/dev/stdout` or `/dev/fd/N`, whatever it leads to.
///
/// # Errors
/// One line that names the file. What stood there is left as it was, except where it is written in place.
pub fn write(file: &Path, contents: &[u8]) -> Result<(), String> {
    write_with(file, |out| out.write_all(contents))
}

/// The same for contents that `fill` writes piece by piece.
///
/// # Errors
/// Those of [`write()`], and what `fill` returns.
fn write_with(file: &Path, fill: impl FnOnce(&mut BufWriter<File>) -> Result<(), Error>) -> Result<(), String> {
    let failed = |error: Error| format!("cannot write {}: {error}", file.display());
    let fill = |out: File| {
        let mut out = BufWriter::new(out);
        fill(&mut out)?;
        out.into_inner().map_err(IntoInnerError::into_error)
    };
    let (target, in_place) = in_place(file).map_err(failed)?;
    if let Some(out) = in_place {
        return fill(out).map(drop).map_err(failed);
    }
    let name = target.file_name().ok_or_else(|| format!("{} is not the name of a file", file.display()))?;
    let path_of = |out: &File| format!("/proc/self/fd/{}", out.as_raw_fd());
    let unnamed = open(folder_of(&target), OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC, Mode::from_raw_mode(0o666));
    let unnamed = unnamed.ok().map(File::from).filter(|out| Path::new(&path_of(out)).exists());
    let is_unnamed = unnamed.is_some();
    // An error if the file may not be written: its folder would let another take its place.
    let mode = match File::options().write(true).open(&target).and_then(|there| there.metadata()) {
        Ok(there) => Some(there.permissions()),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(failed(error)),
    };
    // Short, whatever the name is, and another one for each file and each run, also of two machines.
    let number = RandomState::new().hash_one((name, process::id()));
    let start: String = name.to_string_lossy().chars().take(20).collect();
    let partial = target.with_file_name(format!("{start}.{number:x}.partial"));
    let written = unnamed.map_or_else(|| File::create(&partial), Ok).and_then(fill).and_then(|out| {
        mode.map_or(Ok(()), |mode| out.set_permissions(mode))?;
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

/// What links lead to from a name; opened if it is no ordinary file and is written in place: a descriptor, a device, a pipe.
///
/// # Errors
/// It cannot be opened.
pub(crate) fn in_place(file: &Path) -> Result<(PathBuf, Option<File>), Error> {
    let target = behind_links(file)?;
    if is_ordinary(&target) {
        return Ok((target, None));
    }
    let out = own_descriptor(&target).unwrap_or_else(|| File::options().write(true).append(target.is_file()).open(&target))?;
    writes_wait(&out);
    Ok((target, Some(out)))
}

/// A descriptor of this process, if that is the name of one. It is used itself: a socket cannot be opened by its name, and a file would be written from
/// its beginning.
fn own_descriptor(target: &Path) -> Option<Result<File, Error>> {
    let folder = folder_of(target).canonicalize().ok()?;
    folder.strip_prefix(format!("/proc/{}", process::id())).ok().filter(|folder| folder.ends_with("fd"))?;
    let number: i32 = target.file_name()?.to_str()?.parse().ok()?;
    let any = || {
        let own = pidfd_open(getpid(), PidfdFlags::empty())?;
        pidfd_getfd(own, number, PidfdGetfdFlags::empty())
    };
    Some(match number {
        1 => rustix::stdio::stdout().try_clone_to_owned().map(File::from),
        2 => rustix::stdio::stderr().try_clone_to_owned().map(File::from),
        _ => any().map(File::from).map_err(|error| {
            let error = Error::from(error);
            Error::other(format!("descriptor {number}: {error}; give the name of a file, or /dev/stdout"))
        }),
    })
}

#[cfg(test)]
mod tests {
    use std::fs::{Permissions, create_dir_all, read, read_dir, remove_dir_all, set_permissions};
    use std::io::Read;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::os::unix::net::UnixStream;

    use rustix::fs::{FileType, mknodat};
    use rustix::process::geteuid;

    use super::*;
    use crate::file_names::tests::folder;

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
        let half = |out: &mut BufWriter<File>| {
            out.write_all(&[b'x'; 1 << 20])?;
            Err(Error::other("no more"))
        };
        assert!(write_with(&file, half).unwrap_err().ends_with("a: no more"));
        assert_eq!(read(&file).unwrap(), b"third");
        assert!(write(&folder.join("none/a"), b"x").unwrap_err().contains("none/a"));
        // A full disk: the message comes at once, and the device is still one.
        assert!(write(Path::new("/dev/full"), b"x").unwrap_err().contains("/dev/full"));
        assert!(!Path::new("/dev/full").is_file());
        assert_eq!(read_dir(&folder).unwrap().count(), 1);
        remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_new_file_has_the_mode_of_the_old_one() {
        let folder = folder("mode");
        let file = folder.join("a");
        let mode = || file.metadata().unwrap().permissions().mode() & 0o7777;
        write(&file, b"first").unwrap();
        for chosen in [0o600, 0o640, 0o777] {
            set_permissions(&file, Permissions::from_mode(chosen)).unwrap();
            write(&file, b"second").unwrap();
            assert_eq!(mode(), chosen);
        }
        set_permissions(&file, Permissions::from_mode(0o444)).unwrap();
        let written = write(&file, b"third");
        if geteuid().is_root() {
            eprintln!("skipped: root may write what is protected");
        } else {
            assert!(written.unwrap_err().contains("Permission denied"));
            assert_eq!(read(&file).unwrap(), b"second");
        }
        assert_eq!((mode(), read_dir(&folder).unwrap().count()), (0o444, 1));
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
        // A descriptor whose writes fail where they would wait: another program may have asked for that.
        near.set_nonblocking(true).unwrap();
        write(&name(&near), b"sock").unwrap();
        far.read_exact(&mut text).unwrap();
        assert_eq!(text, *b"sock");
        let many = vec![b'x'; 1 << 22];
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| far.read_exact(&mut vec![0; many.len()]));
            write(&name(&near), &many).unwrap();
            reader.join().unwrap().unwrap();
        });
        assert!(write(Path::new("/proc/self/fd/1000000"), b"x").unwrap_err().contains("descriptor 1000000: Bad file"));

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
