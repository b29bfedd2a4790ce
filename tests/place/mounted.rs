//! Small disks of tests.

use std::ops::Deref;

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use crate::place::Place;

/// A folder that is a disk of 2 MiB, until this is dropped.
pub(crate) struct Mounted(Place);

impl Mounted {
    /// None where none can be mounted.
    pub(crate) fn new(name: &str) -> Option<Self> {
        let place = Place::new(name);
        match mount("none", &place.0, "tmpfs", MountFlags::empty(), Some(c"size=2m")) {
            Ok(()) => Some(Mounted(place)),
            Err(error) => {
                eprintln!("skipped: no tmpfs can be mounted here: {error}");
                None
            }
        }
    }
}

impl Deref for Mounted {
    type Target = Place;

    fn deref(&self) -> &Place {
        &self.0
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // The folder below it goes next.
        let _ = unmount(&self.0.0, UnmountFlags::DETACH);
    }
}
