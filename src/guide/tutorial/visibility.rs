//! Page 4: visibility.
//!
//! A `put` returns when you may reuse your buffer. The data may still be on their way. This page says when other ranks see them.
//!
//! | after | guarantee |
//! |---|---|
//! | `put`, `accumulate` or `store` returns | a later blocking read of these elements *by the same thread* sees them |
//! | [`a.fence()`](crate::GlobalArray::fence) or [`job.fence(rank)`](crate::Group::fence) | every rank that reads now sees what *this rank* wrote |
//! | [`job.sync()`](crate::Group::sync) | every rank sees what *all ranks* wrote |
//! | an epoch begins or ends ([page 5](super::epochs)) | the same as a sync |
//! | [`signal.wait_at_least(…)`](crate::Signal::wait_at_least) | this rank sees what the sender put here before it raised the signal |
//! | a rank gets a [lock](crate::Locks::lock) | it sees what the last holder wrote |
//!
//! # The usual pattern
//!
//! Alternate: all ranks write, `sync`, all ranks read, `sync`. The second sync is needed too. Without it a fast rank may write for the
//! next step while a slow one is still reading.
//!
//! ```
//! use global_arrays::prelude::*;
//! # fn main() -> Result<(), Error> {
//! # Launch::new().ranks(4).network("threads").run(|job| {
//! let (me, ranks) = (job.rank(), job.size());
//! let a = GlobalArray1::<usize>::builder(job, [ranks]).zeros().create()?;
//! for step in 0..10 {
//!     a.store([(me + 1) % ranks], step * 100 + me)?; // write …
//!     job.sync()?;
//!     let got = a.load([me])?; // … and read
//!     assert_eq!(got, step * 100 + (me + ranks - 1) % ranks);
//!     job.sync()?; // nobody writes step + 1 before all have read
//! }
//! # Ok::<(), Error>(())
//! # })
//! # }
//! ```
//!
//! With two arrays, each step needs only one sync: read from the first, write to the second, sync, swap. The example `jacobi` does
//! this.
//!
//! # A barrier is not a sync
//!
//! [`job.barrier()`](crate::Group::barrier) waits for all members and completes nothing. After a barrier a rank may still read the old
//! value of an element that another rank put before the barrier. Use `sync`, unless each writer called `fence` first.
//!
//! # When two ranks use the same element
//!
//! Races have defined results, because elements are plain data:
//!
//! * `load`, `store` and the atomic operations on elements of up to 8 bytes read or write a whole element.
//! * A `get` of a patch that another rank writes at the same time returns, for each byte, the old or the new value.
//! * Accumulates on one element exclude each other: no addition is lost. The same holds for the integer atomics among themselves
//!   ([`fetch_add`](crate::GlobalArray::fetch_add), [`swap`](crate::GlobalArray::swap), …) together with `load` and `store`.
//! * An accumulate and an integer atomic on the same element, without a sync between them, give an unspecified value.
//!
//! Next: [epochs](super::epochs).
