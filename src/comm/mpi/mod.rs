//! Ranks that an MPI launcher started.
//!
//! * **Inside a node** ranks map one memory file (`crate::comm::node`).
//! * **Between nodes** active messages (`crate::comm::am`) travel as ordinary messages of MPI ([`MpiWire`]).
//!
//! MPI's own one-sided operations gain nothing over TCP. Open MPI 4.1 has none for a program with threads: creation of the window
//! fails. MPICH 4.0 takes 17 µs for a put of 8 bytes and its flush, as long as a message and its answer, and 5.2 ms for 1,024 puts
//! of 16 bytes. Its target has to call the library. Networks that write remote memory were not measured.
//!
//! Without `MPI_THREAD_MULTIPLE` there is no helper. Memory grows with the number of ranks only by what MPI keeps, and by eight
//! bytes a rank where nodes do not hold equally many consecutive ranks.
//!
//! MPICH 4.0 (UCX) and Open MPI 4.1 ran over TCP and shared memory, on one machine whose ranks were split into nodes, and on no
//! cluster.

mod communicator;
mod exit;
mod ffi;
mod keys;
mod leave;
mod start;
mod wire;

pub(super) use self::keys::meet;
use self::wire::MpiWire;
pub(crate) use self::{communicator::communicator, start::begin_on};
use super::{
    am::Am,
    start::{NO_DEVICE, Named, Ranks, Variant},
};

/// The network of ranks that an MPI launcher started.
pub(super) const NETWORK: Named = Named {
    name: "mpi",
    variants: &[Variant { devices: NO_DEVICE, ranks: Ranks::Launched(start::begin), threads: 0 }],
    options: &[],
    modelled: None,
};

/// The network of a rank under MPI.
type Mpi = Am<MpiWire>;
