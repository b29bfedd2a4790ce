//! What the user chose, and where the files are.

use crate::cargo;
use anyhow::Result;
use std::path::PathBuf;

/// What holds for the whole run.
#[derive(Debug)]
pub struct Settings {
    target: PathBuf,
    pub quick: bool,
    /// Packages may be installed.
    pub install: bool,
}

impl Settings {
    pub fn new(quick: bool, install: bool) -> Result<Self> {
        Ok(Self { target: cargo::target()?, quick, install })
    }

    pub fn peers(&self) -> PathBuf {
        self.target.join("peers")
    }

    pub fn scratch(&self) -> PathBuf {
        self.target.join("compare")
    }
}
