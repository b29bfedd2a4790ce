//! Where the elements of an array lie in files, and patches of them.
//!
//! Most formats are a header, then elements at an offset. Others cut an array into chunks, each with its elements one after the other: at
//! places of one file (HDF5), or each in a file of its own (Zarr). All patches are given in the order of the file, in which the last axis
//! changes fastest, and their bytes are one after the other in that order. No call here is collective.

use std::{
    fs::File,
    io::{self, Read, Write},
    num::NonZeroU64,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use rustix::fs::{Advice, fadvise};

#[cfg(feature = "zarr")]
use super::chunks::{Grid, OpenGrid};
use super::{
    kind::Kind,
    libhdf5,
    runs::{for_each_chunk, for_each_run},
    visit::Failure,
};
use crate::portable::{Portable, portable};

/// Why an array cannot be written.
const READ_ONLY: &str = "is compressed or otherwise not stored as plain elements, so it can only be read";

/// Where an array is. One member finds it out, and all know it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Placed {
    pub(super) kind: Kind,
    /// Extents in the order of the file.
    pub(super) shape: Vec<usize>,
    /// The axes of the array are those of the file in reverse: Fortran's order.
    pub(super) is_reversed: bool,
    /// The first byte of a number is the most significant one.
    pub(super) is_swapped: bool,
    pub(super) place: Place,
}

/// See the module's essay.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Place {
    /// All elements from this byte of a file on.
    Contiguous { file: PathBuf, begin: u64 },
    /// Whole chunks of this shape at these bytes of a file, in the order of the chunks; the last ones along an axis may reach beyond the array.
    Chunks { file: PathBuf, chunk: Vec<usize>, begins: Vec<u64> },
    /// Chunks in files of their own.
    #[cfg(feature = "zarr")]
    Zarr(Grid),
    /// In a data set of an HDF5 file that only the HDF5 library can read; with the shape of the parts that it reads best, if it has such.
    Library { file: PathBuf, dataset: String, chunk: Option<Vec<usize>> },
}

impl Placed {
    /// Bytes of a patch of this many elements along each axis.
    pub(super) fn bytes(&self, count: &[usize]) -> usize {
        count.iter().product::<usize>() * self.kind.size()
    }

    /// The file of all elements was renamed.
    pub(super) fn moved(&mut self, to: &Path) {
        if let Place::Contiguous { file, .. } = &mut self.place {
            to.clone_into(file);
        }
    }

    /// The shape of the chunks that the array is cut into.
    pub(super) fn chunk(&self) -> Option<&[usize]> {
        match &self.place {
            Place::Chunks { chunk, .. } => Some(chunk),
            #[cfg(feature = "zarr")]
            Place::Zarr(grid) => grid.chunk(),
            Place::Library { chunk, .. } => chunk.as_deref(),
            Place::Contiguous { .. } => None,
        }
    }

    /// A chunk is read and written as a whole, by one member at a time.
    pub(super) fn is_encoded(&self) -> bool {
        match &self.place {
            #[cfg(feature = "zarr")]
            Place::Zarr(grid) => grid.is_encoded(),
            Place::Library { chunk, .. } => chunk.is_some(),
            _ => false,
        }
    }

    /// The file, if there is one.
    pub(super) fn file(&self) -> Option<&Path> {
        match &self.place {
            Place::Contiguous { file, .. } | Place::Chunks { file, .. } => Some(file),
            _ => None,
        }
    }

    /// Opens what a member reads or writes.
    pub(super) fn open(&self, writes: bool) -> Result<Opened, Failure> {
        let open = |path: &PathBuf| File::options().read(true).write(writes).open(path);
        let files = match &self.place {
            Place::Contiguous { file, .. } | Place::Chunks { file, .. } => Files::One(open(file)?),
            #[cfg(feature = "zarr")]
            Place::Zarr(grid) => Files::Zarr(Box::new(grid.open(&self.shape, writes)?)),
            Place::Library { dataset, .. } if writes => {
                return Err(Failure::Format(format!("has an array {dataset:?} that {READ_ONLY}")));
            }
            Place::Library { file, dataset, .. } => Files::Library(file.clone(), dataset.clone()),
        };
        Ok(Opened { placed: self.clone(), files })
    }
}

/// An array in files that are open.
#[derive(Debug)]
pub(super) struct Opened {
    placed: Placed,
    files: Files,
}

#[derive(Debug)]
enum Files {
    One(File),
    #[cfg(feature = "zarr")]
    Zarr(Box<OpenGrid>),
    Library(PathBuf, String),
}

impl Opened {
    pub(super) fn placed(&self) -> &Placed {
        &self.placed
    }

    /// Tells the system how a patch is used. It is a hint: what fails is as if nothing was told.
    pub(super) fn advise(&self, start: &[usize], count: &[usize], advice: Advice) {
        if let Files::One(file) = &self.files {
            let _ = self.for_each_run(start, count, |at, _, len| Ok(fadvise(file, at, NonZeroU64::new(len as u64), advice)?));
        }
    }

    /// Reads a patch, with the bytes of numbers in the order of this machine.
    pub(super) fn read(&self, start: &[usize], count: &[usize], bytes: &mut [u8]) -> Result<(), Failure> {
        match &self.files {
            Files::One(file) => {
                self.for_each_run(start, count, |at, here, len| file.read_exact_at(&mut bytes[here..here + len], at))?;
            }
            #[cfg(feature = "zarr")]
            Files::Zarr(grid) => grid.read(start, count, bytes)?,
            Files::Library(file, dataset) => libhdf5::read(file, dataset, self.placed.kind, start, count, bytes)?,
        }
        if self.placed.is_swapped {
            bytes.chunks_exact_mut(self.placed.kind.number()).for_each(<[u8]>::reverse);
        }
        Ok(())
    }

    /// Writes a patch.
    pub(super) fn write(&self, start: &[usize], count: &[usize], bytes: &[u8]) -> Result<(), Failure> {
        match &self.files {
            Files::One(file) => self.for_each_run(start, count, |at, here, len| file.write_all_at(&bytes[here..here + len], at)),
            #[cfg(feature = "zarr")]
            Files::Zarr(grid) => grid.write(start, count, bytes),
            Files::Library(..) => Err(Failure::Format(READ_ONLY.into())),
        }
    }

    /// Waits until what this member wrote is on the disk.
    pub(super) fn sync(&self) -> Result<(), Failure> {
        match &self.files {
            Files::One(file) => Ok(file.sync_data()?),
            #[cfg(feature = "zarr")]
            Files::Zarr(grid) => grid.sync(),
            Files::Library(..) => Ok(()),
        }
    }

    /// Calls `f` with each run of a patch: its place in the file, its place in the bytes of the patch, and its length in bytes.
    fn for_each_run(
        &self,
        start: &[usize],
        count: &[usize],
        mut f: impl FnMut(u64, usize, usize) -> io::Result<()>,
    ) -> Result<(), Failure> {
        let Placed { shape, place, kind, .. } = &self.placed;
        let size = kind.size();
        match place {
            Place::Contiguous { begin, .. } => {
                for_each_run([shape, start], [count, &vec![0; count.len()]], count, |at, here, len| {
                    f(begin + (at * size) as u64, here * size, len * size)
                })?
            }
            Place::Chunks { chunk, begins, .. } => for_each_chunk(shape, chunk, start, count, |number, within, at, part| {
                for_each_run([chunk, within], [count, at], part, |there, here, len| {
                    f(begins[number] + (there * size) as u64, here * size, len * size)
                })
            })?,
            // Its chunks are files of their own.
            #[cfg(feature = "zarr")]
            Place::Zarr(_) => {}
            Place::Library { .. } => {}
        }
        Ok(())
    }
}

portable!(Placed { kind, shape, is_reversed, is_swapped, place });

impl Portable for Place {
    fn write(&self, to: &mut dyn Write) -> io::Result<()> {
        match self {
            Place::Contiguous { file, begin } => (0_u8, file.clone(), *begin).write(to),
            Place::Chunks { file, chunk, begins } => (1_u8, file.clone(), chunk.clone(), begins.clone()).write(to),
            #[cfg(feature = "zarr")]
            Place::Zarr(grid) => {
                2_u8.write(to)?;
                grid.write(to)
            }
            Place::Library { file, dataset, chunk } => (3_u8, file.clone(), dataset.clone(), chunk.clone()).write(to),
        }
    }

    fn read(from: &mut dyn Read) -> io::Result<Self> {
        Ok(match u8::read(from)? {
            0 => Place::Contiguous { file: Portable::read(from)?, begin: u64::read(from)? },
            #[cfg(feature = "zarr")]
            2 => Place::Zarr(Grid::read(from)?),
            3 => Place::Library { file: Portable::read(from)?, dataset: String::read(from)?, chunk: Option::read(from)? },
            _ => Place::Chunks { file: Portable::read(from)?, chunk: Vec::read(from)?, begins: Vec::read(from)? },
        })
    }
}
