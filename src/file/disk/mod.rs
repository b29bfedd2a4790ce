//! Arrays that stay in files and may be larger than memory (GA's disk-resident arrays).
//!
//! Each member holds the files open and reads and writes at positions. So operations on patches are one-sided, as those of arrays in memory
//! are. The only cache is the page cache of the kernel, which the limit of the cgroup bounds and which the kernel reclaims. Besides it a
//! member holds one stage of 1 MiB while it moves elements, and tiles of a transposition. Nothing else grows with the array, but
//! the list of its chunks if it has chunks.
//!
//! Accumulates read, add and write. The array is cut into tiles, and a lock of the group guards each tile meanwhile; several tiles
//! share a lock. A member holds one lock at a time, so no two members wait for each other.

mod create;
mod section;
mod space;
mod transfer;
mod transpose;

use std::{
    fmt, io,
    marker::PhantomData,
    path::{Path, PathBuf},
};

use ndarray::Dimension;

use super::{placed::Opened, visit::Visit};
use crate::{
    calls::located,
    error::Result,
    sync::{Group, Locks},
};

/// A dense array in a file, which may be larger than memory. Any member of its group can read, write and add to any patch of it at any
/// time.
///
/// Patches are named as those of a [`GlobalArray`](crate::GlobalArray). The end of the file's name chooses the format, as for
/// [`FileWriter`](super::FileWriter); `.npy` suits most programs.
///
/// | | methods |
/// |---|---|
/// | collective | [`create`](Self::create), [`scratch`](Self::scratch), [`open`](Self::open), [`open_read_only`](Self::open_read_only), [`sync`](Self::sync), [`close`](Self::close) |
/// | one-sided | [`get`](Self::get), [`get_into`](Self::get_into), [`put`](Self::put), [`accumulate`](Self::accumulate) |
/// | collective copies | [`read`](Self::read), [`write`](Self::write), [`transpose_into`](Self::transpose_into) |
///
/// # When a write is visible
/// On a local disk, Lustre or GPFS, as soon as the call that writes returns. On NFS, members of other machines may see old elements until the
/// client asks the server again, some seconds after a [`sync`](Self::sync) (`acregmax` of the mount; the option `noac` avoids it). There
/// accumulates of several machines are not atomic. Files of NFS are best opened again after members of other machines have written.
///
/// Elements are on the disk after a [`sync`](Self::sync). Dropping the handle is local, and leaves that to the kernel.
///
/// # Examples
/// ```
/// use global_arrays::{file::DiskArray, prelude::*};
/// # fn main() -> Result<(), Error> {
/// # let folder = std::env::temp_dir().join(format!("ga-doc-disk-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder).map_err(Error::other)?;
/// # let path = folder.join("integrals.npy");
/// Launch::new().ranks(2).network("threads").run(|job| {
///     let disk = DiskArray::<f64, Ix2>::create(job, &path, [1000, 400])?;
///     disk.accumulate(s![10..20, 5], 0.5, &Array1::ones(10))?;
///     let a = GlobalArray2::<f64>::from_fn(job, [100, 400], |(i, j)| (i + j) as f64)?;
///     disk.write(s![100..200, ..], &a)?;
///     disk.sync()?;
///     assert_eq!((disk.get(s![15, 5])?[[]], disk.get(s![101, 2])?[[]]), (1.0, 3.0));
///     disk.close()
/// })
/// # ?; std::fs::remove_dir_all(&folder).map_err(Error::other)
/// # }
/// ```
pub struct DiskArray<T, D> {
    group: Group,
    path: PathBuf,
    extents: D,
    opened: Opened,
    /// The boxes that locks guard, in the order of the file.
    tile: Vec<usize>,
    /// None if the array is open for reading only.
    locks: Option<Locks>,
    memory: usize,
    element: PhantomData<fn() -> T>,
}

/// # Completion
impl<T, D> DiskArray<T, D> {
    /// Waits until everything that all members wrote is on the disk. Collective. On NFS this also brings it to the server.
    ///
    /// # Errors
    /// A system error on any member, reported on all; members in different collectives; the end of the job.
    #[track_caller]
    pub fn sync(&self) -> Result<()> {
        located(|| {
            self.group.sync()?;
            self.visit("sync").agree(self.opened.sync())
        })
    }

    /// Syncs, then closes the file on all members. Collective. Without it, dropping the handle closes the file on this member, and the kernel
    /// writes the rest later.
    ///
    /// # Errors
    /// Those of [`sync`](Self::sync).
    #[doc(alias = "DRA_Close")]
    #[track_caller]
    pub fn close(self) -> Result<()> {
        located(|| self.sync())
    }

    fn visit(&self, operation: &'static str) -> Visit<'_> {
        Visit { group: &self.group, operation, path: &self.path }
    }

    /// The name in errors.
    fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// The locks, if the array may be written.
    fn writable(&self, operation: &'static str) -> Result<&Locks> {
        let refused = || io::Error::new(io::ErrorKind::PermissionDenied, "the array is open for reading only");
        self.locks.as_ref().ok_or_else(|| self.visit(operation).system(refused()))
    }
}

/// # Queries
impl<T, D: Dimension> DiskArray<T, D> {
    /// Elements along each axis.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        self.extents.slice()
    }

    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.extents.size()
    }

    /// Returns true if the array has no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The name of the file; of a scratch array that of its folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The group whose members use the array.
    #[must_use]
    pub fn group(&self) -> &Group {
        &self.group
    }
}

impl<T, D: Dimension> fmt::Debug for DiskArray<T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shape = self.extents.slice();
        f.debug_struct("DiskArray").field("path", &self.path).field("shape", &shape).finish_non_exhaustive()
    }
}
