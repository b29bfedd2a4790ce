//! Page 8: on a cluster, and when something is wrong.
//!
//! # Many machines
//!
//! Build with the feature `mpi` and start with the cluster's launcher. The program stays the same.
//!
//! ```sh
//! cargo add global-arrays --features mpi
//! MPICC=mpicc cargo build --release
//! srun -n 256 target/release/my-program       # or mpirun -n 256
//! ```
//!
//! `docs/cluster.md` in the repository has job scripts for Slurm and PBS, and a section on containers.
//!
//! Try it first on your own machine: `GA_RANKS_PER_NODE=1` treats each rank as a machine of its own. Nothing is shared then, and
//! every operation goes the way that it would go between machines.
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
//! All ranks must make the same collective calls in the same order. If rank 0 alone makes one, all ranks get an error that says who
//! called what:
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
//! After ten seconds each waiting rank prints, once, which ranks are missing and where they were last seen. Ranks that wait for each
//! other in a circle get [`Error::Deadlock`](crate::Error::Deadlock) within seconds, if they are on one node and have no threads of their own. `GA_TIMEOUT=60`
//! turns every wait of more than a minute into an [`Error::Timeout`](crate::Error::Timeout).
//!
//! # The result is wrong
//!
//! 1. Run with `GA_RANKS=1`. If the result is still wrong, it is not the parallel part.
//! 2. Run with `GA_NETWORK=threads:unmapped`. This conduit completes operations late and out of order. A missing `sync` that shared
//!    memory forgives shows up here.
//! 3. Run with `GA_NETWORK=threads` under a debugger: all ranks are threads of one process.
//! 4. Look at each place where a rank reads what another wrote, and name the line of [page 4](super::visibility)'s table that makes it
//!    visible.
//!
//! # The program is slow
//!
//! `GA_STATS=1` prints who moved how much to whom. The [cookbook](crate::guide::cookbook#why-is-my-code-slow) explains how to read it.
//!
//! This is the last page. Go on with the [cookbook](crate::guide::cookbook), or with the page of
//! [`GlobalArray`](crate::GlobalArray).
