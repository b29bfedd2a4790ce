//! Page 2: patches.
//!
//! A *patch* is a box of indices of an array, optionally with steps. You write it as in ndarray. It may lie in one rank's memory or
//! be spread over many.
//!
//! ```
//! use global_arrays::prelude::*;
//! # fn main() -> Result<(), Error> {
//! # Launch::new().ranks(4).network("threads").run(|job| {
//! let a = GlobalArray2::<i64>::builder(job, [6, 8]).zeros().create()?;
//! if job.rank() == 0 {
//!     a.put(.., &Array2::from_shape_fn((6, 8), |(i, j)| (10 * i + j) as i64))?;
//! }
//! job.sync()?;
//!
//! let block = a.get(s![1..3, 2..5])?; // rows 1 and 2, columns 2, 3 and 4
//! assert_eq!(block, array![[12, 13, 14], [22, 23, 24]]);
//!
//! let row = a.get(s![2, ..])?; // an index instead of a range removes the axis
//! assert_eq!(row, array![20, 21, 22, 23, 24, 25, 26, 27]);
//!
//! let every_third = a.get(s![-1, ..;3])?; // the last row, each third element
//! assert_eq!(every_third, array![50, 53, 56]);
//! # job.sync()
//! # })
//! # }
//! ```
//!
//! Ranges are half open and start at 0. Negative indices count from the end, and negative steps go backwards. The last axis is
//! contiguous, as in C. `..` is the whole array. A patch outside the array is an [`Error::Patch`](crate::Error::Patch) that names the
//! axis.
//!
//! # The operations
//!
//! | call | does | returns when |
//! |---|---|---|
//! | [`a.get(patch)`](crate::GlobalArray::get) | reads into a new array | the data have arrived |
//! | [`a.get_into(patch, &mut view)`](crate::GlobalArray::get_into) | reads into your memory | the data have arrived |
//! | [`a.put(patch, &view)`](crate::GlobalArray::put) | writes | you may reuse the view |
//! | [`a.accumulate(patch, alpha, &view)`](crate::GlobalArray::accumulate) | `a[patch] += alpha * view`, each element atomically | you may reuse the view |
//! | [`a.load([i, j])`](crate::GlobalArray::load), [`a.store([i, j], x)`](crate::GlobalArray::store) | one element | like `get` and `put` |
//! | [`a.gather`](crate::GlobalArray::gather), [`scatter`](crate::GlobalArray::scatter), [`scatter_accumulate`](crate::GlobalArray::scatter_accumulate) | a list of elements | like `get`, `put` and `accumulate` |
//!
//! A view is any ndarray view of the same shape as the patch, contiguous or not. You can put a transposed matrix, or get into a slice
//! of a larger array:
//!
//! ```
//! use global_arrays::prelude::*;
//! # fn main() -> Result<(), Error> {
//! # Launch::new().ranks(4).network("threads").run(|job| {
//! let a = GlobalArray2::<f64>::builder(job, [4, 4]).zeros().create()?;
//! let x = Array2::from_shape_fn((2, 3), |(i, j)| (3 * i + j) as f64);
//!
//! // Four ranks add to the same six elements. Nothing is lost.
//! a.accumulate(s![1..4, 0..2], 0.25, x.t())?;
//! job.sync()?;
//!
//! let mut buffer = Array2::from_elem((5, 5), -1.0);
//! a.get_into(.., buffer.slice_mut(s![..4, ..4]))?;
//! assert_eq!(buffer.slice(s![1..4, 0..2]), x.t());
//! assert_eq!(buffer[[4, 4]], -1.0);
//! # job.sync()
//! # })
//! # }
//! ```
//!
//! # Compute while the data travel
//!
//! Over a network a `get` waits for the data. [`get_nb`](crate::GlobalArray::get_nb) returns a handle at once;
//! [`wait`](crate::transfer::Get::wait) returns the data. [`put_nb`](crate::GlobalArray::put_nb) and
//! [`accumulate_nb`](crate::GlobalArray::accumulate_nb) take ownership of the buffer and keep it until it is sent. To lend buffers
//! instead, use [`job.scope`](crate::Group::scope).
//!
//! ```
//! use global_arrays::prelude::*;
//! # fn main() -> Result<(), Error> {
//! # Launch::new().ranks(4).network("threads").run(|job| {
//! let a = GlobalArray1::<f64>::builder(job, [1000]).fill(1.0).create()?;
//! let mut next = a.get_nb(s![0..100])?;
//! let mut sum = 0.0;
//! for k in 1..=10 {
//!     let block = next.wait()?;
//!     next = a.get_nb(s![100 * (k % 10)..100 * (k % 10) + 100])?; // on its way …
//!     sum += block.sum(); // … while we compute
//! }
//! assert_eq!(sum, 1000.0);
//! # job.sync()
//! # })
//! # }
//! ```
//!
//! # Indices that wrap around
//!
//! In a periodic box, [`a.periodic()`](crate::GlobalArray::periodic) takes ranges that reach beyond the ends:
//! `a.periodic().get([-1..3, 0..4])` starts with the last row.
//!
//! Next: [who owns what](super::ownership).
