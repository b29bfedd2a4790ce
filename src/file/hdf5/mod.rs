//! HDF5 files, by the system's library.
//!
//! The library is loaded when the first such file is used, so that the crate builds without it. One member uses it: it makes the data sets of a file
//! and finds where in the file their elements lie. Then all members write and read the elements themselves, without the library. Only what is
//! compressed or not allocated is read through the library, by whoever needs it.
//!
//! A process that is killed while the library writes may leave a file that cannot be read any more; the elements are not written by it.

mod attributes;
mod read;
mod scales;
mod steps;
#[cfg(test)]
mod tests;
mod write;

pub(super) use read::open;
pub(super) use steps::{begin_step, end_step};
pub(super) use write::create;
