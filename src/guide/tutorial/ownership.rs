//! Page 3: who owns what.
//!
//! Every element is stored by one rank, its *owner*. All elements of an owner together are its *part*. You never need the owner to
//! read or write an element, but the distribution decides how fast a program is: a rank reaches its own part, and what its node
//! shares, at the speed of memory; everything else crosses the network.
//!
//! # Three ways to divide an array
//!
//! An array of 8 × 8 elements on four ranks. Numbers and colors are the owners.
//!
#![doc = include_str!("../pictures/owners.svg")]
//!
//! * **block**: one block for each rank, nearly square. This is the default, and good for most programs.
//! * **block-cyclic**: equal blocks, dealt out in turn as ScaLAPACK does. All ranks stay busy when the work moves through the
//!   array, as in a factorization.
//! * **irregular**: blocks between cuts that you choose, for instance so that each has the same amount of work.
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
//! More words of the [builder](crate::Builder):
//!
//! | call | says |
//! |---|---|
//! | [`min_block([1, 64])`](crate::Builder::min_block) | no block has an edge shorter than this; an axis whose number is its extent stays whole |
//! | [`grid([4, 1])`](crate::Builder::grid) | how the ranks are arranged along the axes |
//! | [`restrict(0..2)`](crate::Builder::restrict) | only these members own elements |
//! | [`order(Order::ColumnMajor)`](crate::Builder::order) | how a part lies in memory; patches do not change |
//! | [`tiled([64, 64])`](crate::Builder::tiled) | as block-cyclic, but each block is contiguous in memory |
//! | [`ghosts([1, 1])`](crate::Builder::ghosts) | [page 7](super::ghosts) |
//!
//! The order and the tiles change only where an element lies in its owner's memory. Here is the place of each element in the part of
//! rank 0:
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
//! `println!("{}", a.summary())` prints who owns what, and how many bytes.
//!
//! # Groups
//!
//! A [`Group`](crate::Group) is an ordered set of ranks; the [`Job`](crate::Job) is the group of all. An array belongs to the group
//! that created it, and only members of the group can use it. `job.split(color)` makes one group of the ranks that pass the same
//! color. A rank's number in a group is its *member* number.
//!
//! Next: [visibility](super::visibility).
