//! What adapters in software have in common: a network's own rules stand on it.
//!
//! | file | contents |
//! |---|---|
//! | `memory` | memory that is open to an adapter |
//! | `landing` | how data land; atomics |
//! | `moving` | adapters that move memory without connections |
//! | `socket` | packets between processes, and the thread that takes them |
//!
//! Adapters of one process see each other, and those of a machine's processes send packets. In virtual time their messages travel by
//! [`Cables`](super::Cables).

pub(in crate::comm) mod landing;
mod memory;
mod moving;
mod socket;

pub(in crate::comm) use self::{
    memory::{Closed, OpenMemory, Pinned},
    moving::{Move, Moved, MovingFabric, MovingPort, MovingRules},
    socket::{Looker, Socket, is_far},
};
