//! Recipes.
//!
//! * [Return a value from a job](#return-a-value-from-a-job)
//! * [Start a job without a closure](#start-a-job-without-a-closure)
//! * [Store structs](#store-structs)
//! * [Use threads inside a rank](#use-threads-inside-a-rank)
//! * [Write generic code](#write-generic-code)
//! * [Keep data on each node](#keep-data-on-each-node)
//! * [Call ScaLAPACK or ELPA](#call-scalapack-or-elpa)
//! * [Recipes that are programs](#recipes-that-are-programs)
//! * [Why is my code slow?](#why-is-my-code-slow)
//!
//! # Return a value from a job
//!
//! [`run`](crate::run) returns what the body of rank 0 returned: a number, a string, a vector, an ndarray array, an option or a tuple of
//! these, or a struct that implements [`Portable`](crate::Portable). Its length does not matter. Under a launcher every process gets the value.
//!
//! ```standalone_crate
//! use global_arrays::prelude::*;
//!
//! /// The sum, and all elements.
//! fn solve(job: &Job) -> Result<(f64, Array1<f64>), Error> {
//!     let mut a = GlobalArray1::<f64>::builder(job, [100_000]).create()?;
//!     a.map_indexed(|i, _| i as f64)?;
//!     Ok((a.sum()?, a.get(..)?))
//! }
//!
//! fn main() -> Result<(), Error> {
//!     let (sum, a) = run(solve)?;
//!     assert_eq!((sum, a.sum()), (4_999_950_000.0, 4_999_950_000.0));
//!     Ok(())
//! }
//! ```
//!
//! Nothing else comes back: over `shared_memory` each rank is a forked process with copies of what the closure captured. A large array
//! need not cross: [`save`](crate::GlobalArray::save) writes a file that NumPy reads.
//!
//! The error of the body may have any type with a `From<Error>`, such as `Box<dyn std::error::Error>`. Where `?` follows `run`, name the
//! type, as `solve` does or as `|job| -> Result<_, Error> { .. }`.
//!
//! # Start a job without a closure
//!
//! A notebook, a `#[test]`, a library or a program that owns its `main` has no closure to put a job in. [`Launch::start`](crate::Launch::start) makes
//! the process a rank: of the job that `ga-run`, `mpirun` or `srun` started, or of one rank alone.
//!
//! ```
//! use global_arrays::prelude::*;
//!
//! struct Simulation {
//!     job: Job,
//!     field: GlobalArray2<f64>,
//! }
//!
//! impl Simulation {
//!     fn new(n: usize) -> Result<Self, Error> {
//!         let job = Launch::new().start()?;
//!         let field = GlobalArray2::builder(&job, [n, n]).zeros().create()?;
//!         Ok(Simulation { job, field })
//!     }
//!
//!     fn end(self) -> Result<(), Error> {
//!         self.job.finish()
//!     }
//! }
//!
//! # fn main() -> Result<(), Error> {
//! let mut simulation = Simulation::new(100)?;
//! simulation.field.fill(1.0)?;
//! assert_eq!(simulation.field.sum()?, 10_000.0);
//! simulation.end()
//! # }
//! ```
//!
//! Without [`finish`](crate::Job::finish), as after an error or a panic, the job ends for all ranks when it is dropped, and the others hear which
//! rank did that. A job stays in its thread; other threads use `&Job`. [`Launch::start_with`](crate::Launch::start_with) takes any other way by
//! which ranks meet, such as a communicator of mpi4py.
//!
//! # Store structs
//!
//! An element can be any type that is plain data: it implements
//! [`bytemuck::Pod`](https://docs.rs/bytemuck/latest/bytemuck/trait.Pod.html). Derive it. The struct needs `#[repr(C)]` and must not have
//! padding; name the gaps, as `pad` does here. (With `cargo add bytemuck --features derive`, `use bytemuck::..` and no attribute that
//! names the crate are enough.)
//!
//! ```
//! use global_arrays::bytemuck::{Pod, Zeroable};
//! use global_arrays::prelude::*;
//!
//! #[repr(C)]
//! #[derive(Clone, Copy, Debug, Pod, Zeroable)]
//! #[bytemuck(crate = "global_arrays::bytemuck")]
//! struct Particle {
//!     position: [f64; 3],
//!     charge: f32,
//!     species: u16,
//!     pad: [u8; 2], // without it the compiler would leave two bytes here, and `derive(Pod)` is an error
//! }
//! # fn main() -> Result<(), Error> {
//! # Launch::new().ranks(4).network("threads").run(|job| {
//! let particles = GlobalArray1::<Particle>::builder(job, [1000]).create()?;
//! let proton = Particle { position: [0.5; 3], charge: 1.0, species: 1, pad: [0; 2] };
//! if job.rank() == 0 {
//!     particles.store([7], proton)?;
//! }
//! job.sync()?;
//! assert_eq!(particles.load([7])?.position, [0.5; 3]);
//! # job.sync()
//! # })
//! # }
//! ```
//!
//! A new array has unspecified contents unless you call `fill` or `zeros`. To add structs with `accumulate`, implement
//! [`Additive`](crate::Additive).
//!
//! # Use threads inside a rank
//!
//! Start threads inside the closure, not before `run`. [`job.threads()`](crate::Job::threads) is the number of cores that this rank
//! should use. With one rank per core it is 1, so start fewer ranks (`GA_RANKS=2`).
//!
//! A [`GlobalArray`](crate::GlobalArray) is `Sync`: several threads of a rank may get, put and accumulate at once. Make collective
//! calls from one thread at a time. In an epoch the part is an ordinary slice, which threads can divide:
//!
//! ```
//! use global_arrays::prelude::*;
//! # fn main() -> Result<(), Error> {
//! # Launch::new().ranks(2).network("threads").run(|job| {
//! let mut a = GlobalArray1::<f64>::builder(job, [1000]).fill(4.0).create()?;
//! let threads = job.threads().get();
//! a.owner_epoch(|mut part| {
//!     let mut part = part.view_mut();
//!     let chunk = part.len().div_ceil(threads).max(1);
//!     std::thread::scope(|scope| {
//!         for mut chunk in part.axis_chunks_iter_mut(Axis(0), chunk) {
//!             scope.spawn(move || chunk.mapv_inplace(f64::sqrt));
//!         }
//!     });
//! })?;
//! assert_eq!(a.sum()?, 2000.0);
//! # job.sync()
//! # })
//! # }
//! ```
//!
//! The feature `rayon` brings such threads along, so that one rank for each socket is enough:
//!
//! * `job.pool()?` is the rank's own rayon pool, with a thread for each of its cores. `job.pool()?.install(|| ..)` runs parallel iterators
//!   there. Any thread of the pool may get, put and accumulate.
//! * `a.par_map(f)` and `a.par_zip_with(&b, f)` are `map` and `zip_with` with closures that are `Fn + Sync`; `part.par_blocks()` is a parallel
//!   iterator over the blocks of a part.
//! * `matmul`, `fill`, `scale`, sums of arrays, copies of one distribution, `dot`, sums and norms use the pool by themselves where parts are
//!   large. Sums have the same bits for any number of threads; products may round differently.
//!
//! ```ignore
//! let pool = job.pool()?;
//! a.owner_epoch(|mut part| pool.install(|| part.par_blocks().for_each(|(_, mut block)| block.mapv_inplace(f64::sqrt))))?;
//! ```
//!
//! A pool ends with the body of its rank. In virtual time, and with one core for each rank, operations use the rank's own thread only. Do not
//! hold a lock around a parallel loop whose threads take it too.
//!
//! # Write generic code
//!
//! Require [`Element`](crate::Element) to move elements, [`Additive`](crate::Additive) to add them, [`Number`](crate::Number) to compute, and
//! [`AtomicInteger`](crate::AtomicInteger) for atomic operations. `D` is any ndarray dimension. A patch parameter has the type
//! `impl IntoPatch<D>`.
//!
//! ```
//! use global_arrays::{index::IntoPatch, prelude::*};
//!
//! /// The mean of an array of any type and number of axes. Collective.
//! fn mean<T: Number + Into<f64>, D: Dimension>(a: &GlobalArray<T, D>) -> Result<f64, Error> {
//!     Ok(a.sum()?.into() / a.len() as f64)
//! }
//!
//! /// The largest element of a patch. One-sided.
//! fn largest<D: Dimension>(a: &GlobalArray<i32, D>, patch: impl IntoPatch<D>) -> Result<Option<i32>, Error> {
//!     Ok(a.get(patch)?.iter().copied().max())
//! }
//! # fn main() -> Result<(), Error> {
//! # Launch::new().ranks(4).network("threads").run(|job| {
//! let a = GlobalArray3::<i32>::builder(job, [4, 5, 6]).fill(3).create()?;
//! assert_eq!((mean(&a)?, largest(&a, s![0, .., ..])?), (3.0, Some(3)));
//! # job.sync()
//! # })
//! # }
//! ```
//!
//! # Keep data on each node
//!
//! A table that all ranks read often should be stored once per node, not once per rank. If it is a global array,
//! [`freeze_on_nodes`](crate::GlobalArray::freeze_on_nodes) copies it to each node. Else make a group of the ranks on each node, and an
//! array in that group:
//!
//! ```
//! use global_arrays::prelude::*;
//! # fn main() -> Result<(), Error> {
//! # Launch::new().ranks(4).ranks_per_node(2).network("threads").run(|job| {
//! let node = job.node_group()?; // the ranks that share memory with this one
//! let table = GlobalArray1::<f64>::builder(&node, [10_000]).name("table").create()?;
//! if node.member() == 0 {
//!     table.put(.., &Array1::linspace(0.0, 1.0, 10_000))?; // one rank of each node fills its copy
//! }
//! node.sync()?;
//! assert_eq!(table.load([9_999])?, 1.0); // never crosses the network
//! # assert_eq!(node.size(), 2);
//! # job.sync()
//! # })
//! # }
//! ```
//!
//! # Call ScaLAPACK or ELPA
//!
//! These libraries work on the parts of a matrix in place, in an epoch. The matrix is block-cyclic and in column-major order, and the
//! communicator needs the feature `mpi`. [`a.scalapack()`](crate::GlobalArray::scalapack) returns the numbers that they take; members lie on
//! the grid of BLACS in row-major order, `R`:
//!
//! ```ignore
//! use global_arrays::prelude::*;
//! use mpi::{ffi::MPI_Comm, raw::AsRaw};
//! use std::ffi::{c_char, c_int};
//!
//! #[link(name = "scalapack-openmpi")] // the one of the MPI library
//! unsafe extern "C" {
//!     fn Csys2blacs_handle(comm: MPI_Comm) -> c_int;
//!     fn Cblacs_gridinit(context: &mut c_int, order: *const c_char, rows: c_int, columns: c_int);
//!     fn pdpotrf_(half: *const c_char, n: &c_int, a: *mut f64, i: &c_int, j: &c_int, of_a: &[c_int; 9], info: &mut c_int, len: usize);
//! }
//!
//! let builder = GlobalArray2::<f64>::builder(job, [n, n]).block_cyclic([64, 64]);
//! let mut a = builder.order(Order::ColumnMajor).create()?;
//! // .. its elements
//! let (comm, described) = (job.mpi_comm()?, a.scalapack()?);
//! let [rows, columns] = described.grid;
//! let mut context = unsafe { Csys2blacs_handle(comm.as_raw()) };
//! unsafe { Cblacs_gridinit(&mut context, c"R".as_ptr(), rows, columns) };
//! let descriptor = described.descriptor(context);
//! let info = a.owner_epoch(|mut part| {
//!     let mut info = 0;
//!     // A member beyond the grid waits for the others.
//!     if described.place.is_some() {
//!         let part = part.view_mut().as_mut_ptr();
//!         unsafe { pdpotrf_(c"L".as_ptr(), &described.shape[0], part, &1, &1, &descriptor, &mut info, 1) };
//!     }
//!     info
//! })?;
//! ```
//!
//! Several matrices are several claims of one epoch: `job.epoch((a.owned_mut(), z.owned_mut()), |(mut a, mut z)| ..)`. The file
//! `tests/mpi/scalapack.rs` of the repository calls `pdsyevd`, `pzgesv` and ELPA so.
//!
//! # Recipes that are programs
//!
//! | you want to | program in `examples/`, under 80 lines |
//! |---|---|
//! | deal out tasks that are known from the start | `matmul_tasks.rs` |
//! | let tasks make more tasks | `task_queue.rs` |
//! | compute many cases, each by a few ranks | `groups.rs` |
//! | stop, and go on later with another number of ranks | `checkpoint.rs` |
//!
//! # Why is my code slow?
//!
//! Run it with `GA_STATS=1`. When the job ends, rank 0 prints a table to standard error. This is the example `random_access`, which
//! changes random words of a table, one call for each word (`--way elements`):
//!
//! ```text
//! $ GA_STATS=1 target/release/random_access --ranks 4 --log2-size 16 --way elements
//! communication of 4 ranks on 1 node, as operations and bytes to other ranks
//!   rank peers nodes              put              get       accumulate           atomic  signals messages in flight         own part
//!      0     3     1      0       0 B      0       0 B      0       0 B  40987   320 KiB        0        0         0  24549   192 KiB
//!      1     3     1      0       0 B      0       0 B      0       0 B  49976   390 KiB        0        0         0  15560   122 KiB
//!      2     3     1      0       0 B      0       0 B      0       0 B  49842   389 KiB        0        0         0  15694   123 KiB
//!      3     3     1      0       0 B      0       0 B      0       0 B  49831   389 KiB        0        0         0  15705   123 KiB
//! ```
//!
//! The same work with lists of 1024 words in one call (`--way lists`) moves the same bytes in far fewer operations:
//!
//! ```text
//!   rank peers nodes              put              get       accumulate           atomic  signals messages in flight         own part
//!      0     3     1      0       0 B      0       0 B      0       0 B    192   320 KiB        0        0         0     64   192 KiB
//!      1     3     1      0       0 B      0       0 B      0       0 B    192   390 KiB        0        0         0     64   122 KiB
//! ```
//!
//! Each operation has two columns: calls and bytes. *own part* is what a rank moved within its own part; *peers* and *nodes* count the
//! other ranks and the nodes that it reached; *in flight* is the largest number of transfers that it had on the network at once.
//!
//! | you see | it means | try |
//! |---|---|---|
//! | many operations with few bytes each | every call has a cost: some nanoseconds inside a node, a round trip between nodes | one patch or one `gather` instead of a loop of `load`s; [tutorial, page 2](super::tutorial::patches) |
//! | one rank has far more than the others | the work or the data are unbalanced | another [distribution](super::tutorial::ownership), or a [counter](super::tutorial::tasks) |
//! | most bytes come from other ranks although each rank could work on its own | a rank works on blocks that others own | loop over [`a.blocks(rank)`](crate::GlobalArray::blocks); an [epoch](super::tutorial::epochs) |
//! | many atomic operations | tasks are too short, or ranks wait for a lock | longer tasks; several [locks](crate::Locks) |
//! | in flight is 0 or 1 over a network | the rank waits for each transfer | `get_nb`, or [`job.scope`](crate::Group::scope) |
//! | few bytes, but still slow | communication is not the cause: the time is in your code, or in waiting for a late rank | a profiler on one rank, such as `perf record -p` |
//!
//! A second table shows where the time goes: the time of each call, as a mean of all ranks, and the part of it that was spent waiting. This is
//! the example `lu` on a modelled Cray XE6, `GA_NETWORK=simulated:gemini target/release/lu --n 512 --ranks 4`:
//!
//! ```text
//! time of 4 ranks, the mean of all: 10.225 ms
//!        calls        time   share  waiting        most  call
//!           14    4.055 ms  39.7 %  100.0 %    5.034 ms  Signal::wait_at_least
//!         1024    1.729 ms  16.9 %   90.8 %    2.964 ms  Group::all_gather
//!         1027  159.723 us   1.6 %   54.1 %  227.428 us  put
//!                 3.473 ms  34.0 %                       (computing, and all else between calls)
//! ```
//!
//! | you see | it means | try |
//! |---|---|---|
//! | much time in `sync`, `barrier` or a collective, nearly all of it waiting | ranks wait for the slowest | look for who is late in a trace; balance the work |
//! | much time in short operations on whole arrays | each syncs twice | [`job.unsynced`](crate::Group::unsynced): one sync for several |
//! | much time in `get`, nearly all of it waiting | the network's latency, or a busy owner | larger patches, `get_nb`, [`job.scope`](crate::Group::scope) |
//! | much time in a call without waiting | the processor copies | larger contiguous patches |
//! | most time between calls | your own code | a profiler |
//!
//! `GA_TRACE=run.json` writes a timeline: what each rank was doing, when, called from which line. Open the file in <https://ui.perfetto.dev>.
//! `GA_STATS=run.svg` draws how many bytes each rank moves from and to each other.
//!
//! To look at one phase only, take [`job.stats()`](crate::Job::stats) before and after and subtract with
//! [`since`](crate::Stats::since).
//!
//! What an epoch does to its memory does not appear in the first table: it is plain memory. Counting makes small operations slower, so do not time a program with
//! `GA_STATS=1`.
