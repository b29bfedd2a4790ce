//! Folders for frames: files of VTK by time, and the collection that lists them.

use std::path::Path;

/// The collection of a folder.
pub const COLLECTION: &str = "frames.pvd";

/// Checks, before a run, the folder that its frames shall go to. A run that goes on adds to those that the collection lists.
///
/// # Errors
/// One line: there is no such folder, or it has frames of another run.
pub fn check(folder: &Path, goes_on: bool) -> Result<(), String> {
    let entries = folder.read_dir().map_err(|error| format!("there is no folder {} for frames: {error}", folder.display()))?;
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    match names.filter(|name| name.starts_with("frames-") || name == COLLECTION).min() {
        Some(name) if !(goes_on && folder.join(COLLECTION).exists()) => {
            Err(format!("the folder {} has {name} of an earlier run: remove its frames or name another folder", folder.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{remove_dir_all, write};

    use super::*;
    use crate::file_names::tests::folder;

    #[test]
    fn frames_of_an_earlier_run_are_refused() {
        let folder = folder("frames");
        assert!(check(&folder.join("none"), false).unwrap_err().contains("no folder"));
        assert_eq!([check(&folder, false), check(&folder, true)], [const { Ok(()) }; 2]);
        write(folder.join("frames-0003.vtr"), "").unwrap();
        // A run that goes on has to know their times.
        for goes_on in [false, true] {
            assert!(check(&folder, goes_on).unwrap_err().contains("frames-0003.vtr of an earlier run"));
        }
        write(folder.join(COLLECTION), "").unwrap();
        assert!(check(&folder, false).is_err() && check(&folder, true).is_ok());
        remove_dir_all(&folder).unwrap();
    }
}
