//! Arrays in files: NumPy, HDF5, Zarr, ParaView; checkpoints.
//!
//! [`GlobalArray::save`](crate::GlobalArray::save), [`GlobalArray::read`](crate::GlobalArray::read) and
//! [`GlobalArray::from_file`](crate::GlobalArray::from_file) move one array; patches, `a.at(..)` and `a.at_mut(..)`, have the first two. A
//! [`FileWriter`] writes several arrays with what describes them, a [`FileReader`] reads them. A [`Checkpoint`] saves the state of a run. The end of
//! a file's name chooses its format; [the guide](crate::guide::files) says which one is for what.
//!
//! All members of the group call, and each moves a part. On reading, the number of ranks and the distribution may be others than on writing.

// From programs to files; a module uses those below it.
//
// | module | contents |
// |---|---|
// | `writer`, `reader`, `checkpoint`, `disk` | what programs call |
// | `road` | which member moves what, in pieces |
// | `format` | formats by the ends of names |
// | `npy`, `raw`, `vtk`, `xdmf`, `hdf5`, `zarr` | what one format says of its arrays; one member calls them |
// | `contents`, `placed` | what a file holds; where the elements of an array lie in files, and patches of them |
// | `chunks`, `libhdf5` | chunks in files of their own; the HDF5 library |
// | `erased` | arrays and patches without their types: positions as bytes |
// | `whole`, `visit` | files that are there completely or not at all; agreement of members on what they do |
// | `kind`, `variable`, `runs` | element types; names, axes, units, attributes; runs of bytes of a patch |

mod checkpoint;
#[cfg(feature = "zarr")]
mod chunks;
mod contents;
mod disk;
mod erased;
mod format;
mod hdf5;
mod kind;
mod libhdf5;
mod npy;
mod placed;
mod raw;
mod reader;
mod road;
mod runs;
mod variable;
mod visit;
mod vtk;
mod whole;
mod writer;
mod xdmf;
#[cfg(feature = "zarr")]
mod zarr;

use std::path::Path;

use crate::error::{Error, Result};

/// Looks before a long run if a name's ending is that of a format that can be used here. No file is touched. Local.
///
/// # Errors
/// An ending of no format; one of a format that this build does not have; no HDF5 library for one of HDF5.
#[track_caller]
pub fn check_name(path: impl AsRef<Path>) -> Result<()> {
    let path = path.as_ref();
    let usable = |format| if format == format::Format::Hdf5 { libhdf5::turn().map(drop) } else { Ok(()) };
    crate::calls::located(|| match format::Format::of(path).and_then(usable) {
        Ok(()) => Ok(()),
        Err(visit::Failure::System(source)) => Err(Error::File { operation: "save".into(), path: path.into(), source }),
        Err(visit::Failure::Format(what)) => Err(Error::Format { operation: "save".into(), path: path.into(), what }),
    })
}

pub use checkpoint::{Checkpoint, Restored};
pub use disk::DiskArray;
pub use kind::FileElement;
pub use reader::FileReader;
pub use road::Progress;
pub use variable::{Attribute, Compression, Variable};
pub use writer::FileWriter;
