//! Page 5: epochs.
//!
//! `get` and `put` copy. To work on your own part in place, open an *epoch*. During the epoch your part is an ordinary slice or
//! view, and no other rank can access it.
//!
//! ```
//! use global_arrays::prelude::*;
//! # fn main() -> Result<(), Error> {
//! # Launch::new().ranks(4).network("threads").run(|job| {
//! let mut a = GlobalArray2::<f64>::builder(job, [100, 100]).fill(2.0).create()?;
//! a.owner_epoch(|mut part| part.view_mut().mapv_inplace(f64::sqrt))?;
//! assert_eq!(a.load([99, 0])?, 2.0_f64.sqrt());
//! # job.sync()
//! # })
//! # }
//! ```
//!
//! An epoch is collective. It begins and ends with a sync, so no separate sync is needed around it.
//!
//! # Why this is free of data races
//!
//! * On this rank: an array has one handle, which cannot be cloned, and the epoch borrows it `&mut`. The compiler rejects a `put`
//!   to the array inside the closure.
//! * On the other ranks: the epoch begins only after all members have agreed to begin it. So all handles are borrowed, and all earlier
//!   operations are complete.
//!
//! # Several arrays
//!
//! [`job.epoch`](crate::Group::epoch) takes a tuple of claims: [`owned`](crate::GlobalArray::owned) to read a part,
//! [`owned_mut`](crate::GlobalArray::owned_mut) to write it.
//!
//! ```
//! use global_arrays::prelude::*;
//! # fn main() -> Result<(), Error> {
//! # Launch::new().ranks(4).network("threads").run(|job| {
//! let mut x = GlobalArray1::<f64>::builder(job, [1000]).fill(1.0).create()?;
//! let mut v = GlobalArray1::<f64>::builder(job, [1000]).fill(0.5).create()?;
//! let energy = job.epoch((x.owned_mut(), v.owned()), |(mut x, v)| {
//!     x.view_mut().scaled_add(0.1, &v.view());
//!     0.5 * v.view().dot(&v.view()) // a closure may return a value
//! })?;
//! assert_eq!(job.all_reduce_one(energy, ops::sum)?, 125.0);
//! # job.sync()
//! # })
//! # }
//! ```
//!
//! # Read other ranks' parts
//!
//! In a [`read_epoch`](crate::GlobalArray::read_epoch) no rank can write the array. Each rank sees its own part as a view, and reads
//! any patch of the array through a reader: `a.read_epoch(|part, reader| reader.get(s![0, ..]))`.
//!
//! An array that stays as it is for longer, such as a table, is [frozen](crate::GlobalArray::freeze). Then a struct may hold it, any
//! thread may read it, and [`own`](crate::Frozen::own) is this rank's part as a view, outside of epochs. `freeze_on_nodes` also copies
//! it to each node.
//!
//! ```
//! use global_arrays::prelude::*;
//! # fn main() -> Result<(), Error> {
//! # Launch::new().ranks(4).network("threads").run(|job| {
//! struct Basis {
//!     overlap: Frozen<f64, Ix2>,
//! }
//! let overlap = GlobalArray2::from_fn(job, [8, 8], |(i, j)| if i == j { 1.0 } else { 0.25 })?;
//! let basis = Basis { overlap: overlap.freeze()? };
//! assert_eq!(basis.overlap.get(s![3, 2..5])?.to_vec(), [0.25, 1.0, 0.25]);
//! let overlap = basis.overlap.thaw()?; // it can be written again
//! # drop(overlap);
//! # job.sync()
//! # })
//! # }
//! ```
//!
//! # Shapes of a part
//!
//! * `part.view()` has the local shape, for block, irregular and block-cyclic arrays.
//! * For a tiled part, or for one of many blocks, iterate over `part.blocks()` and take `part.block(&block)`.
//! * `part.as_slice()` is the memory of the part in storage order; it is `None` if the part has ghost cells.
//!
//! ```
//! use global_arrays::prelude::*;
//! # fn main() -> Result<(), Error> {
//! # Launch::new().ranks(4).network("threads").run(|job| {
//! let mut a = GlobalArray2::<usize>::builder(job, [8, 8]).tiled([2, 2]).create()?;
//! a.owner_epoch(|mut part| {
//!     for block in part.blocks() {
//!         let start = *block.patch.start();
//!         part.block_mut(&block).indexed_iter_mut().for_each(|((i, j), x)| *x = 8 * (start[0] + i) + start[1] + j);
//!     }
//! })?;
//! assert_eq!(a.load([5, 7])?, 47);
//! # job.sync()
//! # })
//! # }
//! ```
//!
//! # Whole arrays
//!
//! Many loops need no explicit epoch: one collective call fills, scales, adds, multiplies, transposes or reduces arrays, whatever
//! their distribution. [`GlobalArray`](crate::GlobalArray) lists these operations.
//!
//! ```
//! use global_arrays::prelude::*;
//! # fn main() -> Result<(), Error> {
//! # Launch::new().ranks(4).network("threads").run(|job| {
//! let new = |name| GlobalArray2::<f64>::builder(job, [64, 64]).name(name).create();
//! let (mut a, mut b, mut c) = (new("a")?, new("b")?, new("c")?);
//! a.fill(2.0)?;
//! b.map_indexed(|(i, j), _| if i == j { 1.0 } else { 0.0 })?; // the identity
//! c.matmul(1.0, &a, &b, 0.0)?; // c = a b
//! assert_eq!(c.dot(&b)?, 128.0); // the trace of c
//! # job.sync()
//! # })
//! # }
//! ```
//!
//! # If an epoch fails
//!
//! If the closure panics or the job ends, the array is *poisoned*: its contents are unreliable, and every later call returns
//! [`Error::Poisoned`](crate::Error::Poisoned).
//!
//! Next: [tasks and counters](super::tasks).
