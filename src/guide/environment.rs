//! Environment variables, and what the library does not do.
//!
//! # Environment variables
//!
//! The library reads these variables and no command line. A value that the program sets in [`Launch`](crate::Launch) takes precedence.
//!
//! | variable | value | default |
//! |---|---|---|
//! | `GA_RANKS` | number of ranks, from 1 to 4096. Under `mpirun` and `srun` the launcher sets it | one for each core that the process may use |
//! | `GA_NETWORK` | the conduit: `shared_memory`, `threads`, `mpi`, `shared_memory:unmapped` or `threads:unmapped` | `mpi` under `mpirun` or `srun` if the binary has the feature, else `shared_memory` |
//! | `GA_RANKS_PER_NODE` | splits the ranks into nodes of this many consecutive ranks. Only ranks of one node share memory. For trying a program as on many machines | a node is a machine |
//! | `GA_HEAP` | address space for the arrays of each rank, in bytes. Pages are taken when arrays are created | the memory of the node, halved until it can be mapped |
//! | `GA_MEMORY` | bytes that all ranks on a machine may use together | no limit beyond those of the kernel and of cgroups |
//! | `GA_PIN` | `0` or `1`: `0` does not pin ranks to cores | ranks are pinned if each has a core |
//! | `GA_LARGE_PAGES` | `0` or `1`: `0` uses no pages of 2 MiB | pages of 2 MiB where the system gives them to an ordinary user |
//! | `GA_STATS` | `0` or `1`: `1` counts who moves how much to whom, and prints a table when the job ends | `0` |
//! | `GA_TIMEOUT` | seconds, from 0.001 to 10⁹, after which a wait returns an error | a wait has no limit |
//!
//! Sizes take the suffixes `K`, `M`, `G` and `T`, which are powers of 1024: `GA_HEAP=8G`. A value that is not allowed is an error at the
//! start of the job. An empty variable counts as not set.
//!
//! Over `mpi` all ranks must have the same values.
//!
//! # Limits
//!
//! * The library runs on Linux. Its copy and arithmetic kernels are in assembly on x86-64. Other processors use a portable version, which is slower.
//! * An array has at most 64 axes.
//! * Over `shared_memory` the ranks are forked. [`run`](crate::run) returns an error if the process has other threads at that moment.
//!   Therefore tests under `cargo test` set `harness = false`, or use the conduit `threads`.
//! * Over `threads` a rank that computes cannot be stopped from outside. If another rank fails, it ends at its next call of the library.
//! * Memory is checked before it is taken: against what the kernel has left, the limits of all enclosing cgroups, and `GA_MEMORY`. If
//!   another program takes the memory in between, the kernel's OOM killer may kill a rank. That ends the job.
//! * More ranks than cores work, but each wait then costs a switch between processes.
//! * Over `mpi` a rank that computes answers others only if the library has `MPI_THREAD_MULTIPLE`. If it does not, rank 0 says so, and the rank answers at its next call.
//! * Ranks on different machines that wait for each other are not detected as a deadlock. After ten seconds they print what they
//!   wait for; `GA_TIMEOUT` ends them.
//! * Not there yet: arrays mirrored on nodes, sparse arrays, disk-resident arrays, eigensolvers, networks other than MPI's.
