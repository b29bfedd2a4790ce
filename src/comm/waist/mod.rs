//! The boundary: what a network writes, and the types of both sides.

mod capabilities;
pub(super) mod connections;
mod event;
mod network;
pub(super) mod note;
mod operation;
mod topology;
mod virtual_time;

pub use capabilities::{Capabilities, Native, Ordering, Progress};
pub use connections::{Connect, Connections};
pub(crate) use event::{Cause, Event, Events, Token};
pub(crate) use network::{Announcement, Awaited, LeaveStep, Nap, Network, Slept};
pub(crate) use operation::{Atomic, BLOCK_LEVELS, Issued, Local, Operation, Remote, RingPlace, SignalOp, SignalWord, Strided};
pub(crate) use topology::{Spot, Spots, Topology};
pub(crate) use virtual_time::VirtualTime;
