//! Ranks that an MPI launcher started, on one node or on thousands.
//!
//! * **Inside a node** ranks map the same memory file (`crate::comm::node`), whose descriptor they open at start from the node's first
//!   rank, so that arrays load and store as over shared memory.
//! * **Between nodes** active messages (`crate::comm::am`) travel as ordinary messages of MPI ([`MpiWire`]).
//!
//! Why not MPI's own one-sided operations? Both libraries were measured over TCP. Open MPI 4.1 has none there that a program with threads
//! may use: creation of the window fails. MPICH 4.0 takes 17 µs for a put of 8 bytes and its flush, as long as a message and its
//! answer, 5.2 ms for 1,024 puts of 16 bytes, and its target has to call the library just the same. What they would
//! give on networks that write remote memory by themselves was not measured: no such network was at hand.
//!
//! The agent of the active messages needs `MPI_THREAD_MULTIPLE`; if the library does not give that, there is none, and rank 0 prints so.
//!
//! Memory grows with the number of ranks only by what MPI keeps, and by a table of eight bytes a rank where nodes do not hold equally
//! many consecutive ranks.
//!
//! # What was run
//!
//! MPICH 4.0 (UCX, TCP and shared memory) and Open MPI 4.1 (TCP and shared memory) on one machine, its ranks split into nodes; on no
//! cluster.

mod communicator;
mod exit;
mod ffi;
mod keys;
mod leave;
mod start;
mod wire;

pub(super) use self::keys::meet;
pub(crate) use self::start::run_on;
use self::wire::MpiWire;
use super::{
    am::Am,
    start::{NO_DEVICE, Named, Ranks, Variant},
};

/// The network of ranks that an MPI launcher started.
pub(super) const NETWORK: Named = Named {
    name: "mpi",
    variants: &[Variant { devices: NO_DEVICE, ranks: Ranks::Launched, threads: 0, run: start::run }],
    options: &[],
    modelled: None,
};

/// The network of a rank under MPI.
type Mpi = Am<MpiWire>;
