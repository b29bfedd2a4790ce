//! Dense arrays distributed over many processes. Any process can read, write or add to any part of an array at any time.
//!
//! **New here?** Read the [tutorial](guide::tutorial); it has nine short pages. The [cookbook](guide::cookbook) answers "how do I …?".
//! [Coming from Global Arrays](guide::coming_from_ga) lists the equivalent of each GA call.
//!
//! # A program
//!
//! ```standalone_crate
//! use global_arrays::prelude::*;
//!
//! fn main() -> Result<(), Error> {
//!     run(|job| {
//!         let a = GlobalArray2::<f64>::builder(job, [4, 6]).zeros().create()?;
//!         let mine = Array2::from_elem((2, 6), (job.rank() + 1) as f64);
//!         a.accumulate(s![1..3, ..], 0.5, &mine)?; // a[1..3, ..] += 0.5 * mine, whichever ranks store it
//!         job.sync()?; // from here on, every rank sees what all ranks added
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
//! [`run`] starts the *ranks*, runs the closure on each, and returns when all have ended. By default ranks are processes on this
//! machine, one per core. [`Launch`] and the [`GA_*` variables](guide::environment) change that.
//!
//! # Who owns what
//!
//! A [`GlobalArray<T, D>`](GlobalArray) is spread over the members of a [`Group`]; the [`Job`] is the group of all ranks. Each element
//! has one *owner*. The [`Builder`] selects the distribution: one block per member (the default), block-cyclic as in ScaLAPACK,
//! tiles, or blocks between cuts of your choice. The [tutorial](guide::tutorial::ownership) has pictures.
//!
//! You can use an element without knowing its owner. A *patch*, named as in ndarray (`s![10..20, ..]`), may lie in the memory of one
//! rank or of many:
//!
//! | operations | kind |
//! |---|---|
//! | [`get`](GlobalArray::get), [`put`](GlobalArray::put), [`accumulate`](GlobalArray::accumulate) of patches; [`load`](GlobalArray::load) and [`store`](GlobalArray::store) of elements; [`gather`](GlobalArray::gather) and [`scatter`](GlobalArray::scatter) of lists | one-sided: no other rank takes part |
//! | [`get_nb`](GlobalArray::get_nb) and its like, [`job.scope`](Group::scope) | one-sided, non-blocking: the rank computes meanwhile |
//! | [`fetch_add`](GlobalArray::fetch_add), [`compare_exchange`](GlobalArray::compare_exchange), [`Counter`], [`Locks`], [`Signal`] | one-sided and atomic |
//! | [`fill`](GlobalArray::fill), [`dot`](GlobalArray::dot), [`matmul`](GlobalArray::matmul), [`save`](GlobalArray::save) and the rest of the algebra | collective: all members call it |
//! | [`owner_epoch`](GlobalArray::owner_epoch), [`read_epoch`](GlobalArray::read_epoch), [`job.epoch`](Group::epoch) | collective: each rank's part as plain memory, free of data races |
//! | [`broadcast`](Group::broadcast), [`all_reduce`](Group::all_reduce) and the like | collective, on slices |
//!
//! # When a write is visible
//!
//! | after | guarantee |
//! |---|---|
//! | `put`, `accumulate` or `store` returns | you may reuse the buffer; a later blocking read of these elements by the *same thread* sees them |
//! | [`a.fence()`](GlobalArray::fence) | every rank that reads the array now sees what this rank wrote there |
//! | [`job.fence(rank)`](Group::fence) | every rank that reads memory of `rank` now sees what this rank wrote there |
//! | [`job.sync()`](Group::sync) | every member sees what *all* members wrote |
//! | an epoch begins or ends | the same, for the epoch's arrays |
//! | [`signal.wait_at_least(..)`](Signal::wait_at_least) returns | this rank sees what the sender put here before it raised the signal |
//! | [`lock`](Locks::lock) returns | the holder sees what the last holder wrote |
//!
//! Races have defined results. `load`, `store` and atomics of elements up to 8 bytes do not tear. A `get` that races with a write
//! returns, for each byte, the old or the new value. Accumulates on one element are atomic with respect to each other. So are integer
//! atomics, `load` and `store`. The two groups are not: an accumulate and an integer atomic on one element, without a sync between them,
//! give an unspecified value.
//!
//! # Errors
//!
//! A failure that a peer, a network, a file or a user can cause is an [`Error`] with the array's name, the operation, and the indices
//! or sizes in question.
//! Its message ends with the line of the program that made the call. Bounds and shapes are checked before any data move. Four kinds of
//! errors are specific to parallel programs:
//!
//! * *A rank fails.* If one rank returns an error, panics or is killed, the others get [`Error::JobEnded`] from whatever they call or
//!   wait in, and [`run`] returns [`Error::RankFailed`] with rank and cause.
//! * *Ranks disagree.* Every collective compares the members' calls and arguments. If they differ, all members get
//!   [`Error::Disagreement`], and the group can no longer be used.
//! * *Ranks deadlock* in collectives of different groups, on locks or on signals. Within a few seconds they get [`Error::Deadlock`],
//!   which names the waiting ranks and what each waits for. Deadlocks are not detected in a process that has other threads, because
//!   one of them might make the missing call.
//! * *A rank is late.* A rank that computes for a long time is not an error. After ten seconds the waiting ranks print, once, who is
//!   missing and which call it was last in: the operation, the array and the line of the program. `GA_TIMEOUT` turns long waits into an [`Error::Timeout`].
//!
//! The closure of [`run`] may use any error type that implements `From<Error>`. [`Error::other`] wraps a message or an error of the
//! program.
//!
//! # Conduits and features
//!
//! A *conduit* drives one network. `GA_NETWORK` or [`Launch::network`] selects it; nothing else in a program depends on it.
//!
//! | name | ranks are | status |
//! |---|---|---|
//! | `shared_memory` | processes on one machine, forked or started by `mpirun` or `srun`; the default | done |
//! | `threads` | threads of one process, for tests, debuggers and sanitizers | done |
//! | `shared_memory:unmapped`, `threads:unmapped` | the same, but every operation behaves as it would over a network | done, for tests |
//! | `mpi`, with the feature `mpi` | processes on one or many machines, started by `mpirun` or `srun`; the default under them | done |
//! | `ib` | processes on one or many machines, over InfiniBand or RoCE | runs on soft-RoCE; never ran on an adapter |
//! | `ib:soft`, `ib:sockets` | threads or processes of one machine, over the protocols of InfiniBand | runs, for tests |
//! | `simulated:…` | in one process, in virtual time, on a model of a machine | runs; [its page](guide::virtual_cluster) |
//! | `gemini`, `extoll` | processes on many machines, by a library that its user compiles there (`README.md`) | never ran on an adapter |
//!
//! The feature `mpi` needs an MPI library (MPICH or Open MPI) with its headers, and libclang. `MPICC` names the library's compiler
//! wrapper; the default is `mpicc`. Without the feature no system library is needed. The repository's `docs/cluster.md` shows how to
//! build and run on a cluster. [`Launch::run_on`](Launch) runs a job on a communicator of the program.
//!
//! With the feature `blas`, [`matmul`](GlobalArray::matmul) of floats and complex numbers uses a BLAS that is installed on the machine:
//! Intel MKL, BLIS, FlexiBLAS or OpenBLAS, the first that is found, or any other with the C interface that
//! [`GA_BLAS`](guide::environment) names. The library is loaded at run time, so the build does not need it. If none is found, and
//! without the feature, the crate uses its own kernel; without the feature, a library in `GA_BLAS` is an error.
//!
//! Eigenvalues, least squares and singular values ([`linalg`]) need the feature and the LAPACK in such a library (BLIS has none), or the feature `faer`.
//!
//! With the feature `rayon`, each rank has a pool of threads (`Group::pool`) for its cores, which large operations use by themselves; see
//! [the cookbook](guide::cookbook#use-threads-inside-a-rank). Without it a rank computes by one thread.
//!
//! Over `shared_memory`, [`run`] *forks* the ranks: the closure sees copies of what it captured, changes do not come back, and the
//! process must not have other threads at that moment. The guide lists the [limits](guide::environment#limits).
//!
//! **To add a network**, start with `ARCHITECTURE.md` in the repository and the module `src/comm`. What networks implement is not part of
//! the public API before 1.0.
//!
//! # Sources
//!
//! * J. Nieplocha, R. J. Harrison, R. J. Littlefield: *Global Arrays: a nonuniform memory access programming model for
//!   high-performance computers*, J. Supercomputing 10 (1996); and the [Global Arrays](https://globalarrays.github.io/) library
//!   of PNNL, version 5.9, for what such arrays do.
//! * ARMCI-Gemini, cited in the code by section: A. Vishnu, J. Daily, B. Palmer: *Designing scalable PGAS communication
//!   subsystems on Cray Gemini interconnect*, HiPC 2012. The symmetric heap, the pipeline of contiguous chunks, the paths of
//!   accumulate, counters by atomics, fences without messages.
//! * M. Krishnan, J. Nieplocha: *SRUMMA: a matrix multiplication algorithm suitable for clusters and scalable shared memory
//!   systems*, IPDPS 2004, for `matmul`.
//! * D. Bonachea: *GASNet specification*, for the boundary between conduits and the layers above.
//! * ScaLAPACK's block-cyclic map (`INDXG2P`, `INDXG2L`), for block-cyclic arrays.
#![deny(unsafe_code)]
#![warn(clippy::print_stdout)]
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod array;
mod calls;
mod comm;
pub mod distribution;
mod element;
mod error;
pub mod file;
mod file_names;
pub mod guide;
pub mod index;
mod job;
pub mod linalg;
mod memory;
mod message;
mod portable;
pub mod sparse;
mod sync;

pub use {bytemuck, ndarray, num_complex};

pub use array::{
    BlockCyclic, Builder, FetchOp, Frozen, GatherPlan, GlobalArray, GlobalArray1, GlobalArray2, GlobalArray3, GlobalArray4,
    GlobalArray5, GlobalArray6, GlobalArrayD,
};
pub use comm::Connections;
pub use distribution::{Boundary, Side};
pub use element::{Additive, AtomicInteger, Element, Number};
pub use error::{Error, Operation, Result};
pub use file::FileElement;
pub use job::{Bootstrap, Connect, Job, Launch, Meeting, Memory, Stats, run};
pub use message::{active, channel, mailbox};
pub use portable::Portable;
pub use sparse::SparseMatrix;
#[cfg(feature = "rayon")]
pub use sync::Pool;
pub use sync::{Counter, Group, LockGuard, Locks, Ranks, Signal, SignalTarget, Tally, Traffic, ops};

/// What the benches of this repository measure below the public interface.
#[cfg(feature = "_bench")]
#[doc(hidden)]
pub mod bench {
    pub use crate::comm::{Bare, BareEndpoint, RmaAtOnce, SoftPair};
}

/// What `ga-run` needs of the library: where ranks meet, and words for the ends of processes.
#[doc(hidden)]
pub mod launcher {
    pub use crate::comm::{LauncherMeeting, ended_by};
}

/// Types of whole-array operations: patches as operands, and element traits.
///
/// The operations are methods of [`GlobalArray`], [`PatchMut`](algebra::PatchMut) and [`PatchRef`](algebra::PatchRef).
pub mod algebra {
    pub use crate::array::{Halve, IntoOperand, IntoValues, Matmul, PatchMut, PatchRef, Summary, Values, VectorOrMatrix};
}

/// Programs in virtual time: [`Launch::simulated`], [`Group::simulation`].
pub mod simulation {
    pub use crate::job::{Computing, Machine, Simulation, Work};
}

/// What a network supports: [`Job::capabilities`].
pub mod network {
    pub use crate::comm::{Capabilities, Native, Ordering, Progress};
}

/// Types of epochs: claims on a rank's own part, and the part as plain memory.
///
/// [`GlobalArray::owner_epoch`] and [`GlobalArray::read_epoch`] start an epoch of one array; [`Group::epoch`] starts one of several
/// arrays, or with ghost cells.
pub mod epoch {
    pub use crate::array::{
        Cells, Claims, GhostPart, GhostPartMut, GhostUpdate, Ghosts, GhostsMut, Owned, OwnedMut, OwnedPart, OwnedPartMut,
        PartsOf, Reader,
    };
}

/// Types of transfers in flight, and of patches of a periodic array.
///
/// [`Get`](transfer::Get) and [`Pending`](transfer::Pending) are handles that own their buffers. They are not futures: a rank has no
/// executor and no wakers. Only a call by the rank itself, or the conduit's own thread, advances a transfer. So compute, then call
/// `wait`; or call `test` from time to time.
pub mod transfer {
    pub use crate::array::{Get, IndexRanges, Pending, Periodic, Scope};
}

/// Tests the README's program.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// What most programs need, with all of ndarray's prelude.
pub mod prelude {
    pub use ndarray::prelude::*;
    pub use num_complex::{Complex, Complex32, Complex64};

    pub use crate::{
        Additive, AtomicInteger, Boundary, Counter, Element, Error, FetchOp, Frozen, GatherPlan, GlobalArray, GlobalArray1,
        GlobalArray2, GlobalArray3, GlobalArray4, GlobalArray5, GlobalArray6, GlobalArrayD, Group, Job, Launch, Locks, Number,
        Portable, Side, Signal, SparseMatrix, distribution::Order, index::IntoPatch, ops, run,
    };
}
