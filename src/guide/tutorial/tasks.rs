//! Page 6: tasks and counters.
//!
//! When some elements take longer than others, a fixed division of the work leaves ranks idle. A shared counter balances it: each rank
//! takes the next task when it has finished the last one.
//!
//! ```
//! use global_arrays::prelude::*;
//! # fn main() -> Result<(), Error> {
//! # Launch::new().ranks(4).network("threads").run(|job| {
//! let result = GlobalArray1::<f64>::builder(job, [100]).zeros().create()?;
//! let tasks = Counter::new(job)?;
//! while let Some(task) = tasks.next_below(100)? {
//!     // Only this rank has this task.
//!     result.store([task as usize], (task as f64).sqrt())?;
//! }
//! job.sync()?;
//! assert_eq!(result.load([81])?, 9.0);
//! # job.sync()
//! # })
//! # }
//! ```
//!
//! Taking a task costs one atomic operation: a few nanoseconds inside a node, one round trip over the network. So make tasks longer
//! than that. Fetch the data of the next task with `get_nb` while you compute this one (the example `matmul_tasks`).
//!
//! [`tasks.reset(0)`](crate::Counter::reset) starts a new round. Several counters on different owners
//! ([`Counter::with_owner`](crate::Counter::with_owner)) avoid contention at one rank.
//!
//! # Atomic operations on elements
//!
//! Integer elements support the atomic operations known from `std::sync::atomic`:
//!
//! ```
//! use global_arrays::prelude::*;
//! # fn main() -> Result<(), Error> {
//! # Launch::new().ranks(4).network("threads").run(|job| {
//! let histogram = GlobalArray1::<i64>::builder(job, [10]).zeros().create()?;
//! job.sync()?;
//! for x in [3, 1, 4, 1, 5] {
//!     let before = histogram.fetch_add([x], 1)?; // the value before
//!     assert!(before >= 0);
//! }
//! job.sync()?;
//! assert_eq!(histogram.load([1])?, 8); // two from each of four ranks
//!
//! // One rank wins: it finds 0 and writes its number.
//! let winner = histogram.compare_exchange([0], 0, job.rank() as i64 + 1)?.is_ok();
//! assert_eq!(job.all_reduce_one(u32::from(winner), ops::sum)?, 1);
//! # job.sync()
//! # })
//! # }
//! ```
//!
//! # Locks
//!
//! [`Locks`](crate::Locks) protect updates that take more than one operation. The holder sees what the last holder wrote.
//!
//! ```
//! use global_arrays::prelude::*;
//! # fn main() -> Result<(), Error> {
//! # Launch::new().ranks(4).network("threads").run(|job| {
//! let a = GlobalArray1::<f64>::builder(job, [2]).fill(1.0).create()?;
//! let locks = Locks::new(job)?;
//! let guard = locks.lock(0)?;
//! let (x, y) = (a.load([0])?, a.load([1])?);
//! a.store([0], y)?;
//! a.store([1], x + y)?;
//! drop(guard);
//! job.sync()?;
//! assert_eq!((a.load([0])?, a.load([1])?), (5.0, 8.0)); // four steps of Fibonacci, one by each rank
//! # job.sync()
//! # })
//! # }
//! ```
//!
//! # Signals
//!
//! A [`Signal`](crate::Signal) replaces a sync when only two ranks are involved: put the data, then raise the receiver's signal.
//! When the receiver sees the signal, it also sees the data.
//!
//! ```
//! use global_arrays::prelude::*;
//! # fn main() -> Result<(), Error> {
//! # Launch::new().ranks(4).network("threads").run(|job| {
//! let (me, ranks) = (job.rank(), job.size());
//! let inbox = GlobalArray2::<f64>::builder(job, [ranks, 3]).grid([ranks, 1]).create()?;
//! let arrived = Signal::new(job)?;
//! job.sync()?;
//!
//! let right = (me + 1) % ranks;
//! let message = Array1::from_elem(3, me as f64);
//! inbox.put_signal(s![right, ..], &message, arrived.at(right, 0))?; // row `right` belongs to rank `right`
//!
//! arrived.wait_at_least(0, 1)?; // signal 0 of this rank was raised at least once
//! assert_eq!(inbox.load([me, 2])?, ((me + ranks - 1) % ranks) as f64);
//! # job.sync()
//! # })
//! # }
//! ```
//!
//! Where the same two ranks hand over data again and again, [channels](super::channels) need less.
//!
//! # Collectives
//!
//! All members of a [`Group`](crate::Group) can [`broadcast`](crate::Group::broadcast), [`reduce`](crate::Group::reduce),
//! [`all_reduce`](crate::Group::all_reduce), [`gather`](crate::Group::gather), [`all_gather`](crate::Group::all_gather) and
//! [`all_to_all`](crate::Group::all_to_all) slices. Results are bitwise equal on all ranks.
//!
//! Next: [channels](super::channels).
