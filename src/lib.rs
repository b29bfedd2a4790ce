//! One large dense array over many processes, read, written and added to by any of them at any time.
//!
//! # A program
//!
//! ```standalone_crate
//! use global_arrays::prelude::*;
//!
//! fn main() -> Result<(), Error> {
//!     run(|job| {
//!         let a = GlobalArray::<f64, Ix2>::builder(job, [4, 6]).zeros().create()?;
//!         let mine = Array2::from_elem((2, 6), (job.rank() + 1) as f64);
//!         a.accumulate(s![1..3, ..], 0.5, &mine)?; // a[1..3, ..] += 0.5 * mine, whoever owns it
//!         job.sync()?; // now everybody sees everybody's
//!         println!("rank {} of {} reads {}", job.rank(), job.size(), a.get(s![1.., 2])?);
//! #       let n = job.size() as f64;
//! #       assert_eq!(a.get(s![1.., 2])?.to_vec(), [n * (n + 1.0) / 4.0, n * (n + 1.0) / 4.0, 0.0]);
//!         Ok(())
//!     })
//! }
//! ```
//!
//! With two ranks (`GA_RANKS=2`) it prints, in some order,
//!
//! ```text
//! rank 0 of 2 reads [1.5, 1.5, 0]
//! rank 1 of 2 reads [1.5, 1.5, 0]
//! ```
//!
//! [`run`] starts the *ranks*, runs the closure on each and returns when all have ended. Without further words ranks are
//! processes of this machine, one for each core. [`Launch`] says otherwise, from the program or by `GA_*` variables.
//!
//! # Who owns what
//!
//! A [`GlobalArray<T, D>`](GlobalArray) is spread over the members of a [`Group`]; the [`Job`] is the group of all ranks. Its
//! [`distribution`] says which member owns which element: one block for each member (the default), blocks dealt round as
//! ScaLAPACK does, tiles that are stored each by itself, blocks or tiles with edges of the program's choice; all of them over all
//! members or [some](Builder::restrict).
//!
//! ```
//! use global_arrays::prelude::*;
//! # fn main() -> Result<(), Error> {
//! # Launch::new().ranks(4).network("threads").run(|job| {
//! let plain = GlobalArray::<f64, Ix2>::builder(job, [1000, 1000]).create()?;
//! let cyclic = GlobalArray::<f64, Ix2>::builder(job, [1000, 1000]).block_cyclic([64, 64]).create()?;
//! let cut = GlobalArray::<i64, Ix1>::builder(job, [100]).irregular([vec![0, 10, 50, 51]]).create()?;
//! let tiled = GlobalArray::<f64, Ix2>::builder(job, [1000, 1000]).tiled([64, 64]).restrict(0..2).create()?;
//! assert_eq!((cut.owner([9])?, cut.owner([10])?), (0, 1));
//! for block in cyclic.blocks(job.rank()) {
//!     // block.patch: which elements; block.local_start: where in this rank's part
//! }
//! # let _ = (plain, tiled);
//! # Ok::<(), Error>(())
//! # })
//! # }
//! ```
//!
//! Nobody has to know it: a *patch*, named as in ndarray (`s![10..20, ..]`, negative indices and steps included), is read,
//! written and added to as one thing, whoever owns its pieces.
//!
//! * [`get_into`](GlobalArray::get_into), [`get`](GlobalArray::get), [`put`](GlobalArray::put),
//!   [`accumulate`](GlobalArray::accumulate) move patches; [`load`](GlobalArray::load) and [`store`](GlobalArray::store) single
//!   elements; [`gather`](GlobalArray::gather), [`scatter`](GlobalArray::scatter) and
//!   [`scatter_accumulate`](GlobalArray::scatter_accumulate), [`scatter_op`](GlobalArray::scatter_op) lists of elements. They are *one-sided*: no other rank takes part.
//! * `get_nb`, `put_nb`, `accumulate_nb` and `job.scope` do the same while the rank computes.
//! * [`fetch_add`](GlobalArray::fetch_add), [`fetch_op`](GlobalArray::fetch_op), [`swap`](GlobalArray::swap) and
//!   [`compare_exchange`](GlobalArray::compare_exchange) change an integer atomically. [`Counter`] hands out tasks, [`Locks`] exclude,
//!   [`Signal`] tells that data have come.
//! * [`broadcast`](Group::broadcast), [`all_reduce`](Group::all_reduce) and the other collectives of a [`Group`] work on
//!   slices.
//! * Whole arrays are filled, copied, scaled, added, multiplied, transposed and reduced by collective methods (`fill`,
//!   `assign`, `scale`, `assign_sum`, `dot`, `map`, `matmul`, …), and saved and loaded as `.npy` files.
//!
//! What a rank owns is plain memory to it inside an *epoch*: a collective call that begins and ends with a sync, and in which
//! nobody else can reach that memory. The compiler sees to it on this rank, because an epoch borrows the one handle `&mut`; the
//! agreement at its begin and end sees to it on the others.
//!
//! ```
//! use global_arrays::prelude::*;
//! # fn main() -> Result<(), Error> {
//! # Launch::new().ranks(2).network("threads").run(|job| {
//! let mut a = GlobalArray::<f64, Ix1>::builder(job, [100]).fill(2.0).create()?;
//! a.owner_epoch(|mut part| part.iter_mut().for_each(|x| *x = x.sqrt()))?;
//! assert_eq!(a.load([99])?, 2.0_f64.sqrt());
//! # job.sync()
//! # })
//! # }
//! ```
//!
//! # When a write is visible
//!
//! | after | holds |
//! |---|---|
//! | return of `put`, `accumulate`, `store` | the buffer may be used again; a later blocking get by the *same thread* of the same elements sees them |
//! | [`a.fence()`](GlobalArray::fence), [`job.fence(rank)`](Job::fence) | what this rank wrote is visible to whoever reads |
//! | [`job.sync()`](Group::sync) | what *all* members wrote is visible to all members |
//! | the begin or end of an epoch | the same, for the epoch's arrays |
//! | [`signal.wait_at_least(..)`](Signal::wait_at_least) | what the sender put to this rank before it raised the signal is visible here |
//! | the next holder's [`lock`](Locks::lock) | what the last holder wrote is visible to it |
//!
//! Accesses that race are defined: `load`, `store` and atomics of elements up to 8 bytes do not tear, and a patch read while it
//! is written gives each byte old or new. Accumulates are atomic for each element among each other; the integer atomics, `load`
//! and `store` are so among each other. Mixing the two kinds on one element without a sync between gives an unspecified value.
//!
//! # Errors
//!
//! What a peer, a network, a file or a user can cause is an [`Error`] with the array's name, the operation and the numbers;
//! bounds and shapes are checked before any byte moves. The message ends with the line of the program that made the call. Four things are particular to parallel programs:
//!
//! * *A rank fails.* If one returns an error, panics or is killed, the others get [`Error::JobEnded`] from whatever they call
//!   or wait in, and [`run`] returns [`Error::RankFailed`] with rank and cause. Under `shared_memory` a rank that does not come
//!   back within half a second is killed; under `threads` it can only end at its next call.
//! * *Ranks disagree.* Every collective compares what the members called it with. Where they differ all of them get
//!   [`Error::Disagreement`], and the group cannot be used any more.
//! * *Ranks wait for each other* in collectives of different groups, for locks or for signals. Within a few seconds they get
//!   [`Error::Deadlock`], which says who waits for whom and in what. Not if a process has threads that the program started: one of
//!   them may make the call. Waits for ranks that have ended are found in any case. (Over `mpi` the first holds inside a node, the second
//!   inside a machine.)
//! * *Somebody is late.* A rank that computes is no error. After ten seconds the waiters say once who is missing and where it
//!   was last seen; `GA_TIMEOUT` makes that an [`Error::Timeout`].
//!
//! The closure of [`run`] may use any error type that is made from [`Error`]; [`Error::other`] wraps a message or an error of
//! the program.
//!
//! # Conduits and features
//!
//! A *conduit* drives one network. Programs name one by `GA_NETWORK` or [`Launch::network`], and otherwise never meet it.
//!
//! | name | ranks are | state |
//! |---|---|---|
//! | `shared_memory` | processes of one machine, the default | done |
//! | `threads` | threads of one process: for tests, debuggers, sanitizers | done |
//! | `shared_memory:unmapped`, `threads:unmapped` | the same with nothing mapped: every operation takes the road of a real network | done, for tests |
//! | `mpi`, with the feature `mpi` | processes of one or many machines that `mpirun` or `srun` started; picked by itself under them | done |
//! | `ib`, `gemini`, `extoll` | processes of many machines | not there yet |
//!
//! `GA_RANKS_PER_NODE=k` makes every k consecutive ranks a node of their own, which share memory among themselves and use the
//! network with others: so the roads of a job on many machines can be tried on one.
//!
//! The one cargo feature is `mpi`. It needs an MPI library (MPICH or Open MPI) with its headers, and libclang; `MPICC` names the
//! library's compiler, else `mpicc`. A program then runs unchanged under `mpirun -n 4`, or makes a job on a communicator of its own by
//! `Launch::run_on`; the README tells how on a cluster. Without the feature no system library is needed. Linux only. What a conduit is,
//! and how to write one, is told in [`comm`].
//!
//! Over `shared_memory` ranks are *forked* at the call of [`run`]: what the closure captured is copied into each rank, changes
//! to it do not come back, and the process must not have other threads at that moment (integration tests set `harness = false`,
//! or take `threads`). Over `mpi` the ranks are processes from the beginning: what stands before [`run`] happens on each.
//!
//! `GA_STATS=1` counts who moves what to whom and prints it at the end of the job; [`Job::stats`] tells a program the same.
//!
//! # Further reading
//!
//! [`guide::coming_from_ga`] maps the calls of Global Arrays to ours; [`guide::glossary`] has our words beside those of GA,
//! ARMCI, MPI and OpenSHMEM. `ARCHITECTURE.md` in the repository is the map of the code.
//!
//! # Sources
//!
//! * J. Nieplocha, R. J. Harrison, R. J. Littlefield: *Global Arrays: a nonuniform memory access programming model for
//!   high-performance computers*, J. Supercomputing 10 (1996); and the [Global Arrays](https://globalarrays.github.io/) library
//!   of PNNL, version 5.9, for what such arrays do.
//! * ARMCI-Gemini, cited in the code by section: A. Vishnu, J. Daily, B. Palmer: *Designing scalable PGAS communication
//!   subsystems on Cray Gemini interconnect*, HiPC 2012. The symmetric heap, the pipeline of contiguous chunks, the roads of
//!   accumulate, counters by atomics, fences without messages.
//! * M. Krishnan, J. Nieplocha: *SRUMMA: a matrix multiplication algorithm suitable for clusters and scalable shared memory
//!   systems*, IPDPS 2004, for `matmul`.
//! * D. Bonachea: *GASNet specification*, for the boundary between conduits and what stands above.
//! * ScaLAPACK's block-cyclic map (`INDXG2P`, `INDXG2L`), for block-cyclic arrays.
#![deny(unsafe_code)]
#![warn(clippy::print_stdout)]
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod array;
pub mod comm;
pub mod distribution;
mod element;
mod error;
pub mod guide;
pub mod index;
mod job;
mod memory;
mod sync;

pub use array::{
    Builder, FetchOp, GlobalArray, GlobalArray1, GlobalArray2, GlobalArray3, GlobalArray4, GlobalArray5, GlobalArray6,
    GlobalArrayD, NpyElement,
};
pub use distribution::{Boundary, Side};
pub use element::{Accumulate, AtomicInteger, Element};
pub use error::{Error, Operation, Result};
pub use job::{Job, Launch, Memory, Stats, Tally, Traffic, run};
pub use sync::{Counter, Group, LockGuard, Locks, Ranks, Signal, SignalTarget, ops};

/// What operations on whole arrays take and give: patches as operands, and the bounds on elements.
///
/// The operations are methods of [`GlobalArray`], [`PatchMut`](algebra::PatchMut) and [`PatchRef`](algebra::PatchRef).
pub mod algebra {
    pub use crate::array::{Halve, Matmul, PatchMut, PatchRef, Summary};
}

/// What epochs take and give: claims on a rank's own part, and the part as plain memory.
///
/// An epoch begins by [`GlobalArray::owner_epoch`], [`GlobalArray::read_epoch`] or, of several arrays and with ghost cells, by
/// [`Job::epoch`].
pub mod epoch {
    pub use crate::array::{
        Claims, GhostPart, GhostPartMut, GhostUpdate, Ghosts, GhostsMut, Owned, OwnedMut, OwnedPart, OwnedPartMut, PartsOf,
        Reader,
    };
}

/// Transfers under way, and patches of an array without edges.
///
/// [`Get`](transfer::Get) and [`Pending`](transfer::Pending) are handles that own their buffers. They are no futures: a future is
/// polled by an executor that its waker wakes, and a rank has neither; only a call of the rank itself, or the conduit's own thread,
/// moves a transfer on. Compute, then `wait`, or `test` now and then.
pub mod transfer {
    pub use crate::array::{Get, IndexRanges, Pending, Periodic, Scope};
}

/// What a program needs, ndarray's words included.
pub mod prelude {
    pub use ndarray::{
        Array1, Array2, Array3, ArrayD, ArrayView1, ArrayView2, Dimension, Ix1, Ix2, Ix3, Ix4, Ix5, Ix6, IxDyn, s,
    };

    pub use crate::{
        Accumulate, AtomicInteger, Boundary, Counter, Element, Error, GlobalArray, GlobalArray1, GlobalArray2, GlobalArray3,
        GlobalArray4, GlobalArray5, GlobalArray6, GlobalArrayD, Group, Job, Launch, Locks, Signal, distribution::Order, ops, run,
    };
}
