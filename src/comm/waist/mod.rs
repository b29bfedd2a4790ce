//! The boundary: what a network writes, what the engine drives, and the types of both.

mod capabilities;
mod conduit;
pub(super) mod connections;
mod event;
mod network;
pub(super) mod note;
mod operations;
mod topology;

pub use capabilities::{Capabilities, Native, Ordering, Progress};
pub(crate) use conduit::{Conduit, INHERITED, PublishedWait};
pub(crate) use connections::Connect;
pub use connections::Connections;
pub(crate) use event::{Cause, Event, Events, Token};
pub(crate) use network::Network;
pub(crate) use operations::{Atomic, BLOCK_LEVELS, Full, Issued, Local, Mail, Operations, Remote, SignalOp, SignalWord};
pub(crate) use topology::{Spot, Spots, Topology};
