//! The network floor, in floors of its own. Each floor uses only those above it in this table; the lint checks that.
//!
//! | folder | contents |
//! |---|---|
//! | `kit` | locks, tables, random numbers, lines for people |
//! | `waist` | the boundary: [`Operation`], [`Network`], their types |
//! | `protocol` | state machines without I/O |
//! | `node` | what ranks of a machine share; the [`Conduit`] |
//! | `engine` | requests; protocols for memory that is not mapped |
//! | `layers` | networks that make another one harsher, or show it |
//! | `soft` | virtual time, models of machines, ranks by turns |
//! | `am` | active messages over any wire |
//! | `start` | how ranks start and meet; the table of networks |
//! | `rma` | a wire over any reliable adapter |
//! | `mpi`, `ib`, `ofi`, `simulated` | networks |
//! | `testing` | networks for tests |
//!
//! # The waist
//!
//! A put, a get, or an [`Operation`] moves bytes between local memory and an offset of a rank's *segment*, changes words there, or appends a letter to a ring. A
//! [`Network`] carries out operations for any rank. The engine drives a [`Conduit`]: a [`Member`](node::Member) of a machine, a network
//! if some memory is not mapped, and real or virtual time ([`VirtualTime`]). Patches, accumulates, locks, counters, collectives and
//! request tables exist once, above the waist (`engine`, `crate::sync`, `crate::array`).
//!
//! * Every call takes `&self`. Any thread of the rank may call, if the capabilities allow threads.
//! * `poll` reports all that happens after a call. No callback runs on a thread of the driver. Each token is reported once: by a call
//!   or by `poll`.
//! * [`Capabilities`] describes the hardware. Optional operations that it does not announce are never issued.
//! * Only a conduit or a network reads a clock, parks a thread or spins.
#![allow(unsafe_code)]

mod am;
pub(crate) mod engine;
mod extoll;
mod gemini;
#[cfg_attr(loom, allow(dead_code, reason = "what its tests use, which models leave out"))]
mod ib;
pub(crate) mod kit;
pub(crate) mod layers;
#[cfg(feature = "mpi")]
pub(crate) mod mpi;
pub(crate) mod node;
mod ofi;
mod protocol;
mod rma;
pub(crate) mod simulated;
pub(crate) mod soft;
pub(crate) mod start;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod waist;

pub(crate) use node::{Conduit, PublishedWait};
pub(crate) use protocol::quiescence::{Joined, Quiescence};
pub(crate) use waist::{
    Announcement, Atomic, Awaited, BLOCK_LEVELS, Cause, Event, Events, Issued, LeaveStep, Local, Nap, Network, Operation, Remote,
    RingPlace, SignalOp, SignalWord, Slept, Spot, Spots, Strided, Token, Topology, VirtualTime,
};
pub use waist::{Capabilities, Connect, Connections, Native, Ordering, Progress};
#[cfg(feature = "_bench")]
pub use {
    ib::Bare,
    ofi::BareEndpoint,
    rma::{RmaAtOnce, SoftPair},
};
#[doc(hidden)]
pub use {node::ended_by, start::bootstrap::root::LauncherMeeting};

pub(crate) use crate::memory::atomic_op::apply_atomic;
pub(crate) use crate::memory::{atomic_op::AtomicOp, numeric::Scale, word::WaitWord};
