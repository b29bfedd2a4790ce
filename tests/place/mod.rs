//! Folders of tests, and jobs on several networks.

use std::{fs, path::PathBuf};

use global_arrays::prelude::*;

/// A folder of its own that goes with the test.
pub(crate) struct Place(pub(crate) PathBuf);

impl Place {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("global-arrays-files-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Place(path)
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// What is there, in order.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs a body on one to three ranks, with memory that is mapped and with memory that is not.
pub(crate) fn everywhere(body: impl Fn(&Job) -> Result<(), Error> + Sync) {
    for network in ["threads", "threads:unmapped"] {
        for ranks in 1..=3 {
            let run = Launch::new().ranks(ranks).network(network).run(&body);
            run.unwrap_or_else(|error| panic!("{ranks} ranks over {network}: {error}"));
        }
    }
}
