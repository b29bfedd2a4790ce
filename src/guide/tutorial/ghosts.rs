//! Page 7: ghost cells.
//!
//! A stencil reads the neighbors of each element, and some neighbors belong to other ranks. *Ghost cells* are copies of these
//! elements around a rank's block, in one local array with it. The left picture shows an array of 8 × 8 elements on four ranks; the
//! right one shows what rank 0 stores if the array is periodic with ghost cells of width 1. Each cell shows the index of its element,
//! in the color of the element's owner.
//!
#![doc = include_str!("../pictures/halo.svg")]
//!
//! # A stencil
//!
//! Create the array with [`ghosts`](crate::Builder::ghosts) and claim it with [`a.ghosts()`](crate::GlobalArray::ghosts). The epoch
//! fills the ghost cells when it begins.
//!
//! ```
//! use global_arrays::prelude::*;
//! # fn main() -> Result<(), Error> {
//! # Launch::new().ranks(4).network("threads").run(|job| {
//! let mut old = GlobalArray2::<f64>::builder(job, [32, 32]).ghosts([1, 1]).zeros().create()?;
//! let mut new = old.duplicate("new")?;
//! if job.rank() == 0 {
//!     old.store([0, 0], 1.0)?; // a hot spot in the corner
//! }
//! job.sync()?;
//! for _ in 0..10 {
//!     job.epoch((old.ghosts(), new.owned_mut()), |(old, mut new)| {
//!         let u = old.view(); // one larger than the block on each side
//!         let (n, m) = (u.nrows(), u.ncols());
//!         let neighbors = &u.slice(s![..n - 2, 1..m - 1]) // north
//!             + &u.slice(s![2.., 1..m - 1]) // south
//!             + u.slice(s![1..n - 1, ..m - 2]) // west
//!             + u.slice(s![1..n - 1, 2..]); // east
//!         new.view_mut().assign(&(neighbors / 4.0));
//!     })?;
//!     std::mem::swap(&mut old, &mut new);
//! }
//! let total = old.sum()?; // heat is conserved, across the periodic edges too
//! assert!((total - 1.0).abs() < 1e-12);
//! assert!(old.load([31, 31])? > 0.0);
//! # job.sync()
//! # })
//! # }
//! ```
//!
//! (If a rank may own nothing, for example with more ranks than rows, test for an empty view first.)
//!
//! # Choices
//!
//! * [`boundaries`](crate::Builder::boundaries): an axis is [`Periodic`](crate::Boundary::Periodic), as above, or
//!   [`Open`](crate::Boundary::Open). Cells beyond an open boundary keep what the program writes into them;
//!   use them for boundary values.
//! * [`corners(false)`](crate::Builder::corners) leaves out the diagonal neighbors, which a five-point stencil does not read.
//! * A width of 2 or more lets you do several sweeps per exchange, as the example `stencil` does.
//! * [`update_ghosts`](crate::GlobalArray::update_ghosts) fills the cells outside an epoch;
//!   [`update_ghosts_nb`](crate::GlobalArray::update_ghosts_nb) fills them while you compute.
//! * [`ghosts_mut`](crate::GlobalArray::ghosts_mut) claims the part and its ghost cells for writing, without an update.
//!
//! A patch cannot contain ghost cells. Only the rank that holds them sees them.
//!
//! Without ghost cells, one `get` of your block and its border does the same (the example `jacobi`).
//!
//! Next: [on a cluster, and when something is wrong](super::cluster).
