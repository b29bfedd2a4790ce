//! Page 3: who owns what.
//!
//! One rank, the *owner*, stores each element. All elements of an owner together are its *part*. You can read or write an element
//! without knowing its owner, but the distribution determines performance: a rank reaches its own part, and those of ranks on its
//! node, at memory speed; everything else crosses the network.
//!
//! # Three ways to divide an array
//!
//! The pictures show an array of 8 × 8 elements on four ranks. Numbers and colors show the owners.
//!
#![doc = include_str!("../pictures/owners.svg")]
//!
//! * **block**: one nearly square block per rank. This is the default, and suits most programs.
//! * **block-cyclic**: equal blocks, dealt out in turn as ScaLAPACK does. All ranks stay busy when the work moves through the
//!   array, as in a factorization.
//! * **irregular**: blocks between cuts that you choose, for instance to give each the same amount of work.
//!
//! ```
//! use global_arrays::prelude::*;
//! # fn main() -> Result<(), Error> {
//! # Launch::new().ranks(4).network("threads").run(|job| {
//! let block = GlobalArray2::<f64>::builder(job, [8, 8]).create()?;
//! let cyclic = GlobalArray2::<f64>::builder(job, [8, 8]).block_cyclic([2, 2]).create()?;
//! let irregular = GlobalArray2::<f64>::builder(job, [8, 8]).irregular([vec![0, 6], vec![0, 3]]).create()?;
//!
//! assert_eq!((block.owner([2, 2])?, cyclic.owner([2, 2])?, irregular.owner([2, 2])?), (0, 3, 0));
//! # job.sync()
//! # })
//! # }
//! ```
//!
//! The [builder](crate::Builder) has more options:
//!
//! | call | effect |
//! |---|---|
//! | [`min_block([1, 64])`](crate::Builder::min_block) | no block has a shorter edge than this; an axis is not cut if you give its extent |
//! | [`grid([4, 1])`](crate::Builder::grid) | sets the number of ranks along each axis |
//! | [`restrict(0..2)`](crate::Builder::restrict) | only these members own elements |
//! | [`order(Order::ColumnMajor)`](crate::Builder::order) | sets the memory layout of a part; patches do not change |
//! | [`tiled([64, 64])`](crate::Builder::tiled) | like block-cyclic, but each block is contiguous in memory |
//! | [`ghosts([1, 1])`](crate::Builder::ghosts) | [page 7](super::ghosts) |
//!
//! The order and the tiles change only where an element lies in its owner's memory. The picture shows the position of each element in
//! the part of rank 0:
//!
#![doc = include_str!("../pictures/offsets.svg")]
//!
//! # Work on what you own
//!
//! [`a.blocks(member)`](crate::GlobalArray::blocks) lists the blocks of a member, for any distribution. A rank that computes its own
//! blocks writes only to its own memory:
//!
//! ```
//! use global_arrays::prelude::*;
//! # fn main() -> Result<(), Error> {
//! # Launch::new().ranks(4).network("threads").run(|job| {
//! let a = GlobalArray2::<f64>::builder(job, [100, 50]).block_cyclic([16, 16]).create()?;
//! for block in a.blocks(job.rank()) {
//!     let start = *block.patch.start();
//!     let values = Array2::from_shape_fn(*block.patch.count(), |(i, j)| (start[0] + i + start[1] + j) as f64);
//!     a.put(&block.patch, &values)?;
//! }
//! job.sync()?;
//! assert_eq!(a.load([99, 49])?, 148.0);
//! # job.sync()
//! # })
//! # }
//! ```
//!
//! `println!("{}", a.summary())` prints which elements each member owns, and how many bytes.
//!
//! # Groups
//!
//! A [`Group`](crate::Group) is an ordered set of ranks; the [`Job`](crate::Job) is the group of all. An array belongs to the group
//! that created it, and only members of the group can use it. `job.split(color)` makes one group of all ranks that pass the same
//! color. A rank's number in a group is its *member* number.
//!
//! Next: [visibility](super::visibility).
