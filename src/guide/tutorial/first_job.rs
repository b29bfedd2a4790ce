//! Page 1: a first job.
//!
//! # Set up
//!
//! ```sh
//! cargo new first && cd first
//! cargo add --path ../global-arrays # a checkout of this repository; version 0.1 is not published yet
//! ```
//!
//! # The program
//!
//! Put this into `src/main.rs`:
//!
//! ```standalone_crate
//! use global_arrays::prelude::*;
//!
//! fn main() -> Result<(), Error> {
//!     run(|job| {
//!         // Every rank runs this closure.
//!         let (me, ranks) = (job.rank(), job.size());
//!
//!         // One array for all ranks together: 1000 numbers, all zero.
//!         let a = GlobalArray1::<f64>::builder(job, [1000]).name("a").zeros().create()?;
//!
//!         // Each rank writes its share, wherever these elements are stored.
//!         let (first, end) = (1000 * me / ranks, 1000 * (me + 1) / ranks);
//!         let squares = Array1::from_iter((first..end).map(|i| (i * i) as f64));
//!         a.put(s![first..end], &squares)?;
//!
//!         // Wait until all ranks have written.
//!         job.sync()?;
//!
//!         // Now each rank can read everything.
//!         if me == 0 {
//!             println!("a[999] = {}, and the sum is {}", a.load([999])?, a.get(..)?.sum());
//!         }
//! #       assert_eq!((a.load([999])?, a.get(..)?.sum()), (998001.0, 332833500.0));
//!         Ok(())
//!     })
//! }
//! ```
//!
//! ```text
//! $ cargo run --release
//! a[999] = 998001, and the sum is 332833500
//! $ GA_RANKS=3 cargo run --release
//! a[999] = 998001, and the sum is 332833500
//! ```
//!
//! # What happens
//!
//! * [`run`](crate::run) starts a *job*: several *ranks*, numbered from 0, which all run the closure. By default a rank is a process on this
//!   machine, with one rank per core. `GA_RANKS` sets a different number.
//! * [`builder`](crate::GlobalArray::builder) describes an array and [`create`](crate::Builder::create) creates it. This is a *collective* call: all ranks make it, in the same
//!   order and with the same arguments. If they do not, all get an error that says which rank called what.
//! * [`put`](crate::GlobalArray::put), [`load`](crate::GlobalArray::load) and [`get`](crate::GlobalArray::get) are *one-sided*: the rank
//!   that owns the elements does not take part, and no other rank makes a matching call.
//! * [`sync`](crate::Group::sync) is collective. When it returns, all ranks see what all ranks wrote.
//!
//! # The closure
//!
//! Over shared memory, `run` forks the ranks. Therefore:
//!
//! * Call `run` before anything starts a thread. It returns an error if the process has other threads.
//! * A rank sees a copy of what the closure captured. Changes do not come back to the code after `run`, but
//!   [what rank 0 returns](crate::guide::cookbook#return-a-value-from-a-job) does.
//! * If one rank returns an error, panics or is killed, the job ends: the other ranks get
//!   [`Error::JobEnded`](crate::Error::JobEnded), and `run` returns [`Error::RankFailed`](crate::Error::RankFailed) with the cause.
//!
//! The closure may use your own error type, if it implements `From<Error>`. [`Error::other`](crate::Error::other) turns a
//! message or another error into an [`Error`](crate::Error).
//!
//! Next: [patches](super::patches).
