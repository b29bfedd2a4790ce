//! What adapters in software have in common: a network's own rules stand on it.
//!
//! | file | contents |
//! |---|---|
//! | `memory` | memory that is open to an adapter |
//! | `landing` | how data land; atomics |
//! | `works`, `held`, `moving` | adapters that move memory without connections |
//! | `travelling`, `modelled` | the same in virtual time |
//! | `socket` | packets between processes, and the thread that takes them |
//!
//! Adapters of one process see each other, and those of a machine's processes send packets. In virtual time their messages travel by
//! [`Cables`](super::Cables).

mod held;
pub(in crate::comm) mod landing;
mod memory;
mod modelled;
mod moving;
mod socket;
mod travelling;
mod works;

pub(in crate::comm) use self::{
    memory::{Closed, OpenMemory, Pinned},
    moving::{MovingFabric, MovingPort, MovingRules},
    socket::{Looker, Socket, is_far},
    works::{Move, Moved},
};
