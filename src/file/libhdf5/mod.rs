//! The system's HDF5 library, which is loaded when it is first used.

mod calls;
mod ffi;
mod library;
mod types;
mod values;

pub(super) use calls::MOST_AXES;
pub(super) use ffi::{DEFAULT, Hdf5, Id};
pub(super) use library::{text, turn};
pub(super) use types::{COMPOUND, ENUM, FLOAT, INTEGER, STRING};

use std::path::Path;

use super::{kind::Kind, visit::Failure};

/// Reads a patch of a data set, as elements of a kind.
pub(super) fn read(
    path: &Path,
    dataset: &str,
    kind: Kind,
    start: &[usize],
    count: &[usize],
    bytes: &mut [u8],
) -> Result<(), Failure> {
    let hdf5 = turn()?;
    let file = hdf5.open(path, false)?;
    let dataset = hdf5.at(&file, dataset)?;
    let known = hdf5.known(&hdf5.H5Dget_type(dataset.raw)?)?.filter(|known| known.kind == kind);
    let Some(known) = known else { return Err(Failure::Format("has changed while it is read".into())) };
    let wide = |numbers: &[usize]| -> Vec<u64> { numbers.iter().map(|&number| number as u64).collect() };
    hdf5.read(&dataset, &known.memory, &wide(start), &wide(count), bytes)
}
