//! Files that are there whole or not at all.

use std::fs::{File, remove_file, rename};
use std::io::{BufWriter, Error, IntoInnerError, Write};
use std::path::Path;

/// Writes a file under another name beside it and gives it its name when all of it is on the disk; what stood under that name
/// stays whole until then. What is no ordinary file, a device say, is written in place.
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
    name.push(".partial");
    let partial = file.with_file_name(name);
    let written = File::create(&partial).and_then(fill).and_then(|out| out.sync_all()).and_then(|()| rename(&partial, file));
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
        assert!(write(&folder.join("none/a"), b"x").unwrap_err().contains("none/a"));
        // A full disk: the message comes at once, and the device is still one.
        assert!(write(Path::new("/dev/full"), b"x").unwrap_err().contains("/dev/full"));
        assert!(!Path::new("/dev/full").is_file());
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
