//! Environment variables, and limits of the library.
//!
//! # Environment variables
//!
//! The library reads these variables, but no command line. A value that the program sets in [`Launch`](crate::Launch) takes
//! precedence.
//!
//! | variable | value | default |
//! |---|---|---|
//! | `GA_RANKS` | number of ranks, from 1 to 8192, or to 65,536 over a simulated network. Under `mpirun` and `srun` the launcher sets it | one per core that the process may use |
//! | `GA_NETWORK` | the conduit: `shared_memory`, `threads`, `mpi`, `ib`, `ofi` or `ofi:PROVIDER`, `gemini`, `extoll`, `shared_memory:unmapped` or `threads:unmapped`; `ib:soft`, `ib:sockets`, `gemini:soft`, `gemini:relaxed` and `extoll:soft` for tests; `simulated:gemini` and its like, see [the virtual cluster](super::virtual_cluster) | `mpi` under `mpirun` or `srun` if the binary has the feature, else `shared_memory` |
//! | `GA_BOOTSTRAP` | how the ranks of `shared_memory`, `ib`, `ofi`, `gemini` and `extoll` start: `fork`; `pmi` or `pmix`, by the launcher that started this process and speaks that protocol; `mpi`, by the MPI library of the binary, if it has one; or `root`, by `GA_ROOT` | `root` if `GA_ROOT` is set, as under `ga-run`; the launcher's protocol if one started this process and the binary has no MPI; `mpi` if it has, over `ib` and `ofi`; else `fork` |
//! | `GA_ROOT`, `GA_RANK` | host and port of rank 0, as `node07:29400`, and the rank of this process: ranks that no launcher started meet there; `GA_RANKS` is how many there are. `ga-run` sets them | |
//! | `GA_LAUNCHER` | set by `ga-run`: it listens at `GA_ROOT`, in place of rank 0 | rank 0 listens |
//! | `GA_TOKEN`, `GA_TOKEN_FILE` | the secret that these ranks prove to know, at least 16 bytes; or a file with it that only its owner may read | |
//! | `GA_RANKS_PER_NODE` | splits the ranks into nodes of this many consecutive ranks. Only ranks of one node share memory. Use it to test the path between machines on one machine | a node is a machine |
//! | `GA_HEAP` | address space for the arrays of each rank, in bytes. Pages are allocated when arrays are created | the memory of the node, halved until it can be mapped |
//! | `GA_MEMORY` | bytes that all ranks on a machine may use together | no limit beyond those of the kernel and cgroups |
//! | `GA_PIN` | `0` or `1`: `0` does not pin ranks to cores | ranks are pinned if each has a core |
//! | `GA_LARGE_PAGES` | `0` or `1`: `0` uses no 2 MiB pages | 2 MiB pages where the system allows an ordinary user to have them |
//! | `GA_HDF5` | the library for `.h5` files, by a path or a name | libhdf5 of the system |
//! | `GA_STATS` | `1` counts how much data each rank moves to which others, the time of its calls and its connections, and prints tables when the job ends. A file name counts the same and writes it there: figures (`.json`), or a picture of who moves data to whom (`.svg`) | `0` |
//! | `GA_TRACE` | a file name (`.json`): writes a timeline of all ranks there, for <https://ui.perfetto.dev> | no trace |
//! | `GA_TIMEOUT` | seconds, from 0.001 to 10⁹, after which a wait returns an error | a wait has no limit |
//! | `GA_SILENCE` | seconds, from 1 to 10⁹, after which a machine that does not answer, or over `ib` a connection that broke and does not come back, ends the job (a rank that never answered: ten times as long); `0`: never | `3.5` |
//! | `GA_CONNECT` | over `ib`: when and how ranks connect, `overlapped`, `serial` or `static`; see [`Connect`](crate::Connect) | `overlapped` |
//! | `GA_CONNECTIONS` | over `ib`: connections that a rank may have at a time, at least 1 | no limit |
//! | `GA_IB_DEVICE` | over `ib`: ports of adapters, such as `mlx5_0:1` or `mlx5_0:1,mlx5_1:1`; the ranks of a machine take turns | the first active port |
//! | `GA_IB_GID` | over `ib`: the number of an entry of the port's GID table | over Ethernet the entry of RoCE v2, over InfiniBand the first one |
//! | `GA_IB_PKEY` | over `ib`: the key of a partition of the network, such as `0x8001` | the first one that the port is a full member of |
//! | `GA_OFI_DOMAIN` | over `ofi`: names of domains of the provider that the ranks of a machine take in turns, as `cxi0,cxi1` | the provider's first |
//! | `GA_DMAPP`, `GA_EXTOLL` | over `gemini`, over `extoll`: the path of the library that was compiled from the `shim.c` of the network; the README has the commands | |
//! | `GA_EXTOLL_PACKETS` | over `extoll:soft` and `simulated:extoll`: `first` or `second`, the designs of active messages in the paper | `second` |
//! | `GA_IB_SL`, `GA_IB_TC` | over `ib`: the service level of packets, 0 to 15, and their traffic class, 0 to 255 | `0`, `0` |
//! | `GA_SEED` | of a simulated network: a number that chooses the order of what happens at one time | `0` |
//! | `GA_COMPUTING` | of a simulated network: the time that computing takes, `declared`, `measured`, `measured:FACTOR`, `zero` or `skip` | `declared` |
//! | `GA_FAULTS` | of a simulated network: what goes wrong, such as `die:3@0.5`; see [`Machine::faults`](crate::simulation::Machine::faults) | nothing |
//! | `GA_COROUTINES` | of a simulated network: `1`: ranks are coroutines, for thousands of them, if the program's [thread-locals](crate::guide::virtual_cluster#ranks-that-are-coroutines) allow that; `0`: threads | `0` |
//! | `GA_STACK` | of a simulated network: bytes of the stack of each rank, at least `64K` | `256K` |
//! | `GA_BLAS` | with the feature `blas`: the path or the name of a BLAS for [`matmul`](crate::GlobalArray::matmul), or `none` | Intel MKL, AOCL-BLIS, FlexiBLAS or OpenBLAS, the first that is found; else none |
//!
//! Sizes take the suffixes `K`, `M`, `G` and `T`, which are powers of 1024: `GA_HEAP=8G`. An invalid value is an error at the
//! start of the job; for `GA_BLAS`, at the first product. An empty variable counts as unset.
//!
//! To find mistakes that one machine hides, add *layers* to the name of a network, as in `GA_NETWORK=threads+hidden+scrambled`. With
//! `hidden`, no rank sees memory, so every operation takes the network. Between ranks that do not see each other's memory, `delayed` makes
//! most puts visible only at a fence, and `scrambled` completes operations late and out of order. `:unmapped` stands for
//! `+hidden+delayed+scrambled`. `threads:packets+hidden` runs the active messages that also `mpi` runs, inside one machine. `ib:soft+hidden` runs them over the
//! protocols of InfiniBand, on a software device, and `ib:sockets+hidden` the same among processes.
//!
//! Two layers show what goes over the network between these ranks, and change nothing. With `threads+hidden+counted` or `mpi+counted`,
//! each rank prints its operations and bytes by kind in one line of stderr when its body ends. With `traced`, it prints a line for each
//! operation that the network took and for each event. Layers are an error if all ranks see each other's memory, because nothing goes
//! over the network then; `hidden` changes that.
//!
//! `GA_BLAS` must name a library with the C interface (CBLAS) and 32-bit integers. With `none`, or if no library is found, the crate's
//! own kernel multiplies. In a program without the feature, a library in `GA_BLAS` is an error. A BLAS uses one thread in each rank,
//! unless one of `OPENBLAS_NUM_THREADS`, `MKL_NUM_THREADS`, `BLIS_NUM_THREADS` and `OMP_NUM_THREADS` is set. The reference BLAS is not searched for, because the own kernel is faster.
//!
//! If a launcher started the ranks, all must have the same values.
//!
//! # Limits
//!
//! * The library runs on Linux. Its copy and arithmetic kernels are in assembly on x86-64. Other processors use a slower, portable
//!   version.
//! * An array has at most 64 axes.
//! * Over `shared_memory` the ranks are forked. [`run`](crate::run) returns an error if the process has other threads at that moment.
//!   So tests under `cargo test` must set `harness = false` or use the conduit `threads`.
//! * Over `threads` a rank that computes cannot be stopped from outside. If another rank fails, it ends at its next call to the
//!   library.
//! * Memory is checked before it is allocated: against what the kernel has left, the limits of all enclosing cgroups, and `GA_MEMORY`.
//!   If another program takes the memory in between, the kernel's OOM killer may kill a rank, which ends the job.
//! * An array that outlives its job, or a transfer that was forgotten (`mem::forget`), keeps the adapter's descriptors open over `ib` and `ofi`. No
//!   page and, but for devices of tests, no thread waits for it.
//! * A rank with a pool of threads (the feature `rayon`), or with other threads of its own, finds no deadlocks: a thread may make the missing
//!   call. `GA_TIMEOUT` ends such waits.
//! * You can run more ranks than cores, but each wait then costs a context switch.
//! * Over `mpi` a rank that computes answers others only if the MPI library provides `MPI_THREAD_MULTIPLE`. Otherwise rank 0 prints a
//!   message, and a rank answers only in its own calls.
//! * A machine that is lost is found only where MPI provides `MPI_THREAD_MULTIPLE`. A rank watches the machines that it met first and
//!   those that it waits for.
//! * Not implemented yet: arrays mirrored on nodes, eigensolvers that divide one matrix among nodes. `ib`,
//!   `gemini` and `extoll` never ran on an adapter.
