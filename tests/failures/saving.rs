//! The rank that makes the file of a save is killed meanwhile: the others leave nothing unfinished.

use std::path::Path;

use global_arrays::prelude::*;

use crate::programs::{CULPRIT, send_own};

pub(crate) fn killed_while_saving(job: &Job) -> Result<(), Error> {
    let name = format!("killed-while-saving-{}", std::os::unix::process::parent_id());
    let folder = std::env::temp_dir().join(name);
    if job.rank() == 0 {
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder).map_err(Error::other)?;
    }
    job.barrier()?;
    // The rank that makes the file.
    if job.rank() == 0 {
        let folder = folder.clone();
        std::thread::spawn(move || {
            while !has_unfinished(&folder) {}
            send_own(libc::SIGKILL);
        });
    }
    let a = GlobalArray::<f64, Ix1>::builder(job, [1 << 20]).zeros().create()?;
    let saved = (0..1000).try_for_each(|_| a.save(folder.join("a.npy")));
    // One of the others, so that the folder is looked at once.
    if job.rank() == CULPRIT {
        println!("{}", if has_unfinished(&folder) { "an unfinished file is left" } else { "nothing unfinished is left" });
        let _ = std::fs::remove_dir_all(&folder);
    }
    saved
}

/// Whether a folder has a file that a save has not finished.
fn has_unfinished(folder: &Path) -> bool {
    std::fs::read_dir(folder).into_iter().flatten().flatten().any(|entry| entry.path().extension().is_some_and(|of| of == "part"))
}
