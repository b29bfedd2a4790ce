//! Files that are there whole or not at all.

use std::fs::{File, remove_file, rename};
use std::io::{BufWriter, Error, IntoInnerError, Write};
use std::os::fd::AsRawFd;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, open};

/// Writes a file without a name, and names it when all of it is on the disk; what stood under that name stays whole until then. So nothing is
/// left of it if this process is ended meanwhile. On a file system that has no files without names, it is called `NAME.partial` until then, and
/// may be left under that name. What is no ordinary file, a device say, is written in place.
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
    if file.exists() && !file.is_file() {
        return File::options().write(true).open(file).and_then(fill).map(drop).map_err(failed);
    }
    let mut name = file.file_name().ok_or_else(|| format!("{} is not the name of a file", file.display()))?.to_owned();
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let path_of = |out: &File| format!("/proc/self/fd/{}", out.as_raw_fd());
    let unnamed = open(folder, OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC, Mode::from_raw_mode(0o666));
    let unnamed = unnamed.ok().map(File::from).filter(|out| Path::new(&path_of(out)).exists());
    let is_unnamed = unnamed.is_some();
    // Two runs may write the same file at the same time. It has this name for a moment, or all the time: then the next run writes over it.
    name.push(if is_unnamed { format!(".{}.partial", std::process::id()) } else { ".partial".to_owned() });
    let partial = file.with_file_name(name);
    let written = unnamed.map_or_else(|| File::create(&partial), Ok).and_then(fill).and_then(|out| {
        out.sync_all()?;
        if is_unnamed {
            linkat(CWD, path_of(&out), CWD, &partial, AtFlags::SYMLINK_FOLLOW)?;
        }
        rename(&partial, file)
    });
    written.map_err(|error| {
        let _ = remove_file(&partial);
        failed(error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_leaves_what_was_there() {
        let folder = std::env::temp_dir().join(format!("whole-file-{}-{}", env!("CARGO_CRATE_NAME"), std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("a");
        write(&file, b"first").unwrap();
        write(&file, b"second").unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), b"second");
        // While it is written nothing stands there but what was there before.
        let can_be_unnamed = open(&folder, OFlags::TMPFILE | OFlags::WRONLY, Mode::empty()).is_ok();
        let check = |out: &mut BufWriter<File>| {
            out.write_all(b"third")?;
            assert_eq!(std::fs::read_dir(&folder)?.count(), if can_be_unnamed { 1 } else { 2 });
            assert_eq!(std::fs::read(&file)?, b"second");
            Ok(())
        };
        write_with(&file, check).unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), b"third");
        assert!(write(&folder.join("none/a"), b"x").unwrap_err().contains("none/a"));
        // A full disk: the message comes at once, and the device is still one.
        assert!(write(Path::new("/dev/full"), b"x").unwrap_err().contains("/dev/full"));
        assert!(!Path::new("/dev/full").is_file());
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
