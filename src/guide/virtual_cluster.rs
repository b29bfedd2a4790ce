//! The virtual cluster: run your program on thousands of ranks of a modelled machine, on your own.
//!
//! ```text
//! GA_NETWORK=simulated:gemini GA_RANKS=1024 GA_STATS=1 my-program
//! ```
//!
//! This runs the unmodified program. All ranks are in one process and run one at a time. Time is *virtual*: a model of the machine says how
//! long each message takes, and [`Group::now`](crate::Group::now) returns that time. The same program with the same input does the same things at
//! the same times in each run.
//!
//! With `GA_STATS=1`, the last line on stderr shows the virtual time of the run, the number of messages and events, and a digest of all
//! events: their times, ranks, lengths and places. If two runs have the same digest, they did the same. The tables above that line show what
//! the ranks moved and what they spent their virtual time on; `GA_TRACE=run.json` writes a timeline of it
//! ([cookbook](super::cookbook#why-is-my-code-slow)).
//!
//! # Machines
//!
//! | network | a model of |
//! |---|---|
//! | `simulated:gemini` | a Cray XE6, a 3-D torus, 24 ranks on a node; between nodes the code of the network `gemini` runs as it is |
//! | `simulated:infiniband` | a cluster with InfiniBand HDR100, a fat tree, 64 ranks on a node |
//! | `simulated:extoll` | nodes with EXTOLL, a 3-D torus, 4 ranks on a node; between nodes the code of the network `extoll` |
//! | `simulated:bluegene` | an IBM Blue Gene/P, a 3-D torus, 4 ranks on a node |
//! | `simulated:loopback` | ranks of one machine that use MPI over TCP, whose processors move the messages |
//! | `simulated:ib` | "Chinook" at PNNL, a fat tree, 8 ranks on a node; between nodes the code of the network `ib` |
//! | `simulated:gemini-ports`, `simulated:extoll-ports` | the same machines, on which the model carries out each operation: faster, for many ranks |
//! | `simulated:my-machine.toml` | your own |
//!
//! `GA_RANKS_PER_NODE` sets another number of ranks on a node. In a program, [`Launch::simulated`](crate::Launch::simulated) takes the
//! [`Machine`](crate::simulation::Machine), by its name without `simulated:`, and what only such jobs may choose.
//!
//! For a machine of your own, copy one of the files in `src/comm/simulated/machines` and change its numbers. This is the one of Gemini:
//!
//! ```toml
#![doc = include_str!("../comm/simulated/machines/gemini.toml")]
//! ```
//!
//! A rank spends `overhead_us` on each operation. The adapter of a node sends one message at a time and receives one at a time. Each takes
//! `gap_us`, or the time of its bytes if that is longer. A message takes `latency_us`, `switch_us` for each switch, and the time of its
//! bytes at the slowest link. The target of a get reads for `read_us` before its answer leaves. Messages that share a link take turns.
//! Transfers of `adapter.block` or more use another engine. Ranks of a node copy, which takes `latency_us` and `bandwidth_gb_per_s` of
//! `[node]`.
//!
//! Not every network has an adapter that works by itself. Over TCP, the processors of both ranks move each message. A machine file says so
//! by a part `[adapter.processor]`. Each rank then sends or receives one message at a time. For each message that it receives, it spends
//! `receive_overhead_us` and the time of the bytes, and its own computing takes that much longer. If a message arrives while the rank
//! computes, it waits for `progress_delay_us`, or until the rank calls the library. Messages of more than `copied_bytes` wait like that one
//! after the other.
//!
//! # A network of its own code
//!
//! On some of these machines the model carries out each operation. A machine with a part `[agents]` only carries messages, and the code of
//! the network that `code` names runs on it: frames of small operations, puts and gets past the processor of their target, mailboxes of
//! `gemini`, packets of `extoll`, and with `ib` connections on demand and the agent of each node that answers for its ranks. `simulated:ib`
//! shows what a program costs over `ib` on many nodes, and how many connections it takes:
//!
//! ```text
//! GA_NETWORK=simulated:ib GA_RANKS=256 GA_CONNECTIONS=16 GA_STATS=1 my-program
//! ```
//!
//! A rank spends `overhead_us` on each call that sends, and on each message that it takes. If it computes when a message arrives, its agent
//! wakes up after `wake_up_us` and answers. The rank or agent that receives a message copies or adds its bytes at `handle_gb_per_s`. It answers
//! messages that came together when it has worked on all of them. Making a queue pair takes `prepare_us`, and connecting it `connect_us`, at each
//! end. Each rank has about 1.5 MiB for messages, so some hundred ranks are a good number here.
//! Copies that a rank makes of what it sends take no time, nor do those of a get that has come: short transfers look a little too fast.
//! Puts and gets really move their bytes, so `GA_COMPUTING=skip` is refused. Each call of the library may let other ranks run, so do not hold a lock of
//! your program (`std::sync::Mutex`) during one.
//!
//! # Topologies
//!
//! | topology | more fields |
//! |---|---|
//! | `crossbar` | none: messages share no link |
//! | `fat_tree` | `nodes_per_switch`, and `uplinks` of each lower switch |
//! | `torus` | `nodes_per_switch`; `sides = [x, y, z]`, or about a cube; `link_gb_per_s` may be `[x, y, z]` |
//! | `dragonfly` | `nodes_per_switch`, `switches_per_group`; one link joins each pair of groups |
//!
//! # Computing
//!
//! The model does not know how long your program computes. Say it:
//!
//! ```
//! use global_arrays::{prelude::*, simulation::{Machine, Work}};
//! # fn main() -> Result<(), Error> {
//! Launch::simulated(Machine::new("infiniband")).ranks(4).run(|job| {
//!     let begin = job.now();
//!     // ... multiply two matrices of 500 x 500 ...
//!     job.simulation().work(Work::flops(2.0 * 500.0_f64.powi(3)));
//!     job.sync()?;
//!     if job.rank() == 0 {
//!         println!("{:.3} ms", 1e3 * (job.now() - begin).as_secs_f64());
//!     }
//!     Ok(())
//! })
//! # }
//! ```
//!
//! The library's own products of matrices and algebra on arrays say theirs, but not what a closure of yours computes.
//! Over other networks, `work` does nothing. `GA_COMPUTING=measured` takes instead what your processor needs between the calls of each rank, and
//! `measured:0.5` half of that; such runs differ from each other. `GA_COMPUTING=zero` leaves communication alone.
//!
//! `GA_COMPUTING=skip` is for a problem that is too large to compute or to store here. A program that knows it ([`simulation::Simulation::skips`](crate::simulation::Simulation::skips))
//! says what it would compute, but does not, and creates its large arrays as [`hollow`](crate::Builder::hollow): they use no memory as long as nobody touches them in an epoch, and
//! transfers, updates of ghost cells and algebra take their time but move nothing. The examples `lu`, `stencil` and `matmul` do so.
//!
//! # A scaling curve
//!
//! In a clone of the crate, `cargo xtask scale` runs a program for each of several numbers of ranks, and writes a table as CSV and a picture:
//! time, efficiency, and what the time was spent on.
//!
//! ```text
//! cargo xtask scale --example lu --network gemini --ranks 64..1024 -- --n 4096
//! cargo xtask scale --program ~/bin/my-program --network my-machine.toml --ranks 1..256 -- my arguments
//! ```
//!
//! The time is that of the phases that the program names ([`Group::phase`](crate::Group::phase)), or of the whole run if it names none.
//! With `--resume`, it measures only the numbers of ranks that the table does not have yet.
//!
//! # How good are the predictions?
//!
//! `cargo xtask calibrate` fits a model to two ranks on your own machine, which use MPI over TCP. It then predicts four programs, and
//! runs them. This is what it printed in November 2026 with MPICH 4.0 on an AMD EPYC with two cores; each time is the median of five runs:
//!
//! ```text
//! program          ranks   measured, s  predicted, s   ratio
//! stencil              2        0.4345        0.4076    0.94
//! lu                   2        0.3778        0.3431    0.91
//! random_access        2        0.4027        0.4145    1.03
//! lennard_jones        2        0.3753        0.3381    0.90
//! stencil              4        0.6887        0.2258    0.33  not judged
//! lu                   4        1.0854        0.3139    0.29  not judged
//! random_access        4        1.7020        0.5424    0.32  not judged
//! lennard_jones        4        1.6117        0.4454    0.28  not judged
//! ```
//!
//! Four ranks share two cores, which the model does not know.
//!
//! Computing was measured there with one rank at a time (`GA_COMPUTING=measured`). Two ranks that compute at
//! once share the memory, and may slow each other down. The model does not know that.
//!
//! # Another order
//!
//! Events at one time are handled in the order in which the simulation learned of them: at the start that of the ranks. `GA_SEED=1`, `GA_SEED=2` and so on choose other orders. Where the network
//! keeps no order (`ordered = false`), a seed also delays each message by up to twice the latency. If the result of a program depends on the
//! seed, it depends on the order in which ranks arrive.
//!
//! # When something goes wrong
//!
//! `GA_FAULTS=die:3@0.5` kills rank 3 after 0.5 s of virtual time, which ends the job as on any network. `stall:2@0.1+0.05` stops the adapter of
//! node 2 for 0.05 s, and `delay:0.01*20` sends one message of a hundred between nodes up to 20 µs late, and what is behind it in its adapter too. Separate several by commas.
//!
//! # Ranks that are coroutines
//!
//! Ranks are threads, one of which runs at a time. `GA_COROUTINES=1` makes them coroutines of one thread: the same run, with the same times,
//! ten times as fast, and up to 65,536 ranks where a system allows some thousand threads.
//!
//! Coroutines share the thread's `thread_local!` values, and Rust does not know of them. So the variable is a promise about the program: *no rank
//! calls the library inside the initializer of a thread-local, nor inside a closure that `unsafe` code of another crate runs while it relies on
//! having the thread for itself*, such as that of `scoped_tls`. Nearly all programs keep it, and so do the examples of this crate. In a program that
//! breaks it, a reference may dangle, which is undefined behavior. That is why no method chooses coroutines.
//!
//! # Limits
//!
//! * The model of Gemini is compared with one paper, by `cargo xtask papers`, and that of `loopback` with two ranks of one machine. The others have not been compared with real machines yet.
//! * A run needs the memory of all its arrays, and some 32 KiB more for each rank.
//! * Only the thread that runs the body of a rank may call the library. Calls from other threads return errors.
//! * If a rank holds a lock of the program (`std::sync::Mutex`) during a call of the library, the whole run may stop; a line then says so.
//! * Each rank has a stack of 256 KiB, or `GA_STACK`. A program that needs more ends with a segmentation fault.
//! * Ranks of a node do not share memory here: operations inside a node are messages too, and collectives send as many messages as if each
//!   rank had its own node.
//! * No network here adds at the target. So an accumulate takes the lock of the owner, and gets, adds and puts.
//! * Virtual time ends after 100 days.
