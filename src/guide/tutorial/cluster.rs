//! Page 8: on a cluster, and when something is wrong.
//!
//! # Many machines
//!
//! Build with the feature `mpi` and start with the cluster's launcher. The source does not change.
//!
//! ```sh
//! cargo add global-arrays --features mpi
//! MPICC=mpicc cargo build --release
//! srun -n 256 target/release/my-program       # or mpirun -n 256
//! ```
//!
//! `docs/cluster.md` in the repository has job scripts for Slurm and PBS, and a section on containers.
//!
//! Try it first on your own machine: `GA_RANKS_PER_NODE=1` treats each rank as a separate machine. Ranks then share no memory, and
//! every operation takes the path that it would take between machines.
//!
//! # A rank fails
//!
//! One rank's failure ends the job, with one message that names the rank and the cause:
//!
//! ```
//! use global_arrays::prelude::*;
//! let failed = Launch::new().ranks(4).network("threads").run(|job| {
//!     if job.rank() == 2 {
//!         return Err(Error::other("the input file is empty"));
//!     }
//!     job.sync() // returns an error on the other ranks, instead of waiting forever
//! });
//! let message = failed.unwrap_err().to_string();
//! assert!(message.contains("rank 2") && message.contains("the input file is empty"), "{message}");
//! ```
//!
//! So return errors with `?`. An error that is only printed leaves the other ranks waiting for a rank that has gone on alone.
//!
//! # Ranks disagree
//!
//! All ranks must make the same collective calls, in the same order and with the same arguments. Otherwise all ranks get an error that
//! says which rank called what:
//!
//! ```
//! use global_arrays::prelude::*;
//! let failed = Launch::new().ranks(4).network("threads").run(|job| {
//!     let length = if job.rank() == 0 { 10 } else { 11 }; // a mistake
//!     GlobalArray1::<f64>::builder(job, [length]).create()?;
//!     Ok::<(), Error>(())
//! });
//! assert!(failed.unwrap_err().to_string().contains("do not agree"));
//! ```
//!
//! A frequent cause is a collective inside `if job.rank() == 0 { … }`. Creating an array, `sync`, epochs, whole-array operations and
//! `all_reduce` are collective; `get`, `put`, `load`, `store`, `accumulate` and counters are not.
//!
//! # The program hangs
//!
//! After ten seconds each waiting rank prints, once, its call, which ranks are missing and which call they were last in. Ranks that
//! deadlock get [`Error::Deadlock`](crate::Error::Deadlock) within seconds, if their processes have no other threads.
//! `GA_TIMEOUT=60` turns every wait of more than a minute into an [`Error::Timeout`](crate::Error::Timeout).
//!
//! # The result is wrong
//!
//! 1. Run with `GA_RANKS=1`. If the result is still wrong, the error is not in the parallel part.
//! 2. Run with `GA_NETWORK=threads:unmapped`. This conduit completes operations late and out of order. A missing `sync` that shared
//!    memory hides shows up here.
//! 3. Run with `GA_NETWORK=threads` under a debugger: all ranks are threads of one process.
//! 4. For each place where a rank reads what another wrote, find the row of [page 4](super::visibility)'s table that makes the data
//!    visible.
//!
//! # The program is slow
//!
//! `GA_STATS=1` prints how much data each rank moved to which others. The [cookbook](crate::guide::cookbook#why-is-my-code-slow)
//! explains how to read it.
//!
//! This is the last page. Continue with the [cookbook](crate::guide::cookbook), or with the page of
//! [`GlobalArray`](crate::GlobalArray).
