//! Files: which format for what.
//!
//! The end of a file's name chooses the format.
//!
//! | end | for | arrays in a file | axes, units, attributes | element types | needs |
//! |---|---|---|---|---|---|
//! | `.npy` | NumPy; one array, quickly | one | none | all; structs of your own as `V` | nothing |
//! | `.h5`, `.hdf5`, `.nc` | h5py, xarray, MATLAB, Julia; results that are kept | many, in groups, and time steps | all, as netCDF4 and xarray read them | all | libhdf5 when the program runs (`apt-get install libhdf5-103-1`; `GA_HDF5` names another) |
//! | `.zarr` | xarray, dask, object stores; compressed results | many, in groups, and time steps | all | all | the feature `zarr` |
//! | `.vti` | ParaView, PyVista; a field on a regular grid | many of one grid | spacing, origin; attributes of the file, not of arrays, for ParaView only | real numbers, vectors | nothing |
//! | `.vtr` | the same with coordinates along each axis | many of one grid | coordinates; as `.vti` | real numbers, vectors | nothing |
//! | `.vtp` | the same for particles: an array `points` of n × 3 | many of n | as `.vti` | real numbers, vectors | nothing |
//! | `.pvd` | time steps of these three | | | | nothing |
//! | `.xdmf` | ParaView and NumPy with one copy of the elements, in `.npy` files beside it | many of one grid | spacing, origin, attributes | real numbers | nothing |
//! | `.raw`, `.bin` | programs that know the shape | one | none | all | nothing |
//!
//! [`Checkpoint`](crate::file::Checkpoint) is for restarts: all bytes have checksums, the old state stays until the new one is on the disk, and its arrays are `.npy` files.
//! [`DiskArray`](crate::file::DiskArray) is for arrays larger than memory.
//!
//! Files of VTK have three axes; on reading, first axes of one element may be missing in the array.
//!
//! A complex number is `c8` or `c16` in NumPy, a compound `{r, i}` in HDF5 as h5py writes it, `complex64` or `complex128` in Zarr, two components in VTK.
//!
//! # Save, read
//!
//! ```
//! use global_arrays::prelude::*;
//! # fn main() -> Result<(), Error> {
//! # let folder = std::env::temp_dir().join(format!("ga-guide-files-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder).map_err(Error::other)?;
//! # let file = folder.join("u.npy");
//! Launch::new().ranks(2).network("threads").run(|job| {
//!     let u = GlobalArray2::<f64>::from_fn(job, [100, 80], |(i, j)| (i + j) as f64)?;
//!     u.at(s![10..20, ..]).save(&file)?; // a patch; `u.save(..)` saves all of it
//!     let mut v = GlobalArray2::<f64>::builder(job, [12, 80]).block_cyclic([4, 8]).zeros().create()?;
//!     v.at_mut(s![1..11, ..]).read(&file)?;
//!     let w = GlobalArray2::<f64>::from_file(job, &file)?; // an array of its own
//!     assert_eq!((v.load([1, 0])?, w.shape()), (10.0, &[10, 80][..]));
//!     job.sync()
//! })
//! # ?; std::fs::remove_dir_all(&folder).map_err(Error::other)
//! # }
//! ```
//!
//! # Time steps, for ParaView or xarray
//!
//! ```
//! use global_arrays::{file::FileWriter, prelude::*};
//! # fn main() -> Result<(), Error> {
//! # let folder = std::env::temp_dir().join(format!("ga-guide-steps-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder).map_err(Error::other)?;
//! # let file = folder.join("run.pvd");
//! Launch::new().ranks(2).network("threads").run(|job| {
//!     let mut u = GlobalArray2::<f64>::zeros(job, [20, 30])?;
//!     for step in 0..3 {
//!         u.add_constant(1.0)?;
//!         // `run.pvd` and a `.vti` file for each step; with `run.h5` or `run.zarr` one more axis, `time`.
//!         FileWriter::new(&file).at_time(0.1 * step as f64).array("u", &u).spacing(&[0.5, 0.5]).save()?;
//!     }
//!     job.sync()
//! })
//! # ?; std::fs::remove_dir_all(&folder).map_err(Error::other)
//! # }
//! ```
//!
//! Steps at the given time and later are dropped, so a run that was resumed replaces its own.
//!
//! # How fast
//!
//! Each member writes its own blocks where they make long runs of the file. Small blocks, such as those of a block-cyclic matrix, are collected first, so
//! that every write is a large piece. Chunks of a Zarr store are parts of blocks, unless the program chooses them (`chunks`). Everything is on the disk when `save` returns. `GA_STATS=1` prints bytes and rates of the calls.
//!
//! Files that are in the page cache are read at about 10 GB/s on two ranks: each byte is copied to a buffer of 1 MiB and from there to its owner. `dd` to
//! `/dev/null`, which stores nothing, is 1.2 to 1.8 times faster.
//!
//! # What stays after a failure
//!
//! A file or a Zarr store takes its name when it is whole and on the disk, so a failure leaves the old one or the new one. The text of `.pvd` and `.xdmf` comes after
//! the files that it names. A time step of `.h5` or `.zarr` counts when its time is entered, which comes last. But the HDF5 library changes its file in place: a rank that is
//! killed in that moment may leave one that cannot be read any more. Write steps that matter to a file of their own, or to `.zarr` or `.pvd`.
//!
//! # What is not read
//!
//! Compressed files of VTK, Blosc in Zarr stores (xarray's choice for version 2), structs and texts in HDF5 files. The library of HDF5 itself may crash on a damaged file.
