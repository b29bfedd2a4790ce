//! The library, loaded when it is needed, and files.
//!
//! It is usually built without locks, so one thread at a time has a turn with it. No id outlives the turn.

use std::{
    env,
    ffi::{CStr, CString, OsStr, OsString, c_uint},
    io,
    path::Path,
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
};

use super::ffi::{Hdf5, Hid, Id};
use crate::file::visit::Failure;

/// Names the library, by a path or a file name.
const VARIABLE: &str = "GA_HDF5";
/// `.so` versions of 2.0, 1.14, 1.12 and 1.10.
const KNOWN: [&str; 6] = [".320", ".310", ".200", ".103", ".101", ""];
const ADVICE: &str = "install it (Debian, Ubuntu: apt-get install libhdf5-103-1; a cluster: module load hdf5), or set GA_HDF5 to the path of \
                      libhdf5.so, version 1.10.5 or later";

/// This thread's turn with the library.
pub(in crate::file) fn turn() -> Result<MutexGuard<'static, Hdf5>, Failure> {
    static LIBRARY: OnceLock<Result<Mutex<Hdf5>, String>> = OnceLock::new();
    let library = LIBRARY.get_or_init(|| choose(env::var_os(VARIABLE)).map(Mutex::new));
    let library = library.as_ref().map_err(|what| Failure::System(io::Error::other(what.clone())))?;
    let hdf5 = library.lock().unwrap_or_else(PoisonError::into_inner);
    hdf5.silence()?;
    Ok(hdf5)
}

fn choose(chosen: Option<OsString>) -> Result<Hdf5, String> {
    if let Some(name) = chosen.filter(|name| !name.is_empty()) {
        return Hdf5::load(&name).map_err(|cause| format!("{VARIABLE}={name:?} cannot be used: {cause}; {ADVICE}"));
    }
    let mut refused = String::new();
    for version in KNOWN {
        for name in ["libhdf5_serial.so", "libhdf5.so"] {
            let name = format!("{name}{version}");
            match Hdf5::load(OsStr::new(&name)) {
                Ok(hdf5) => return Ok(hdf5),
                Err(cause) if cause.starts_with(&format!("{name}: cannot open shared object file")) => {}
                Err(cause) => refused = format!(" ({name}: {cause})"),
            }
        }
    }
    Err(format!("needs the HDF5 library, which was not found{refused}; {ADVICE}"))
}

/// A name without the character that ends strings in C.
pub(in crate::file) fn text(name: &str) -> Result<CString, Failure> {
    CString::new(name).map_err(|_| Failure::Format(format!("cannot hold {name:?}: HDF5 ends a text at \\0")))
}

impl Hdf5 {
    /// Opens or creates a file. Large arrays begin at pages. Nothing is locked: a run must not fail because a program that shows its file has it open,
    /// or because a file system has no locks.
    fn file<'h>(&'h self, path: &Path, open: impl Fn(&CStr, Hid) -> Result<Id<'h>, Failure>) -> Result<Id<'h>, Failure> {
        const LARGE: u64 = 1 << 16;
        const PAGE: u64 = 1 << 12;
        let access = self.H5Pcreate(self.global("H5P_CLS_FILE_ACCESS_ID_g")?)?;
        self.H5Pset_alignment(access.raw, LARGE, PAGE)?;
        if let Some(locking) = self.others.locking {
            self.checked(locking(access.raw, false, true))?;
        }
        let name = CString::new(path.as_os_str().as_encoded_bytes()).map_err(io::Error::other)?;
        open(&name, access.raw)
    }

    pub(in crate::file) fn open(&self, path: &Path, writes: bool) -> Result<Id<'_>, Failure> {
        self.file(path, |name, access| self.H5Fopen(name.into(), c_uint::from(writes), access))
    }

    /// Creates a file, or empties it.
    pub(in crate::file) fn create(&self, path: &Path, properties: &Id<'_>) -> Result<Id<'_>, Failure> {
        const TRUNCATE: c_uint = 2;
        self.file(path, |name, access| self.H5Fcreate(name.into(), TRUNCATE, properties.raw, access))
    }
}
