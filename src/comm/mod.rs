//! The network floor, in floors of its own. Each uses those above it in this table, and none below; the lint looks after that.
//!
//! | folder | what it does |
//! |---|---|
//! | `kit` | locks, tables of ranks and numbers, random numbers, cores, lines for people |
//! | `waist` | the boundary: what a network is asked for ([`Operation`]), what it writes ([`Network`]), and their types |
//! | `protocol` | state machines without I/O |
//! | `node` | what ranks of one machine share, whatever the network is: mapping, control pages, inboxes, waiting, supervision; the [`Conduit`] |
//! | `engine` | a rank's requests, from issue to the fence that reports failures, and the protocols for memory that is not mapped |
//! | `layers` | networks that make another one harsher, or show what it is asked for |
//! | `soft` | virtual time, models of machines, ranks that run one at a time |
//! | `am` | active messages: a network made of any wire |
//! | `start` | how ranks start and meet; the table of networks that jobs name |
//! | `mpi`, `ib`, `simulated` | the networks |
//! | `testing` | networks for tests |
//!
//! # The waist
//!
//! An [`Operation`] moves bytes between local memory and an offset of a rank's *segment*, changes words there, or delivers mail. A
//! [`Network`] carries operations out for any rank. A [`Conduit`] is what the engine drives: a [`Member`](node::Member) of a machine, a
//! network for the ranks whose memory is not mapped, if there are any, and real or virtual time ([`VirtualTime`]).
//!
//! Strided patches, accumulates, locks, counters, collectives and request tables exist once, above the waist (`engine`, `crate::sync`,
//! `crate::array`). To add a network, write a folder beside `mpi` against the documentation of [`Operation`] and [`Network`], add
//! its `mod` line here and its line in the table of [`start::table`]. Nothing here uses what is above: who starts a job hands down
//! [`start::settings`].
//!
//! * Every call is made through `&self`, from any thread of the rank.
//! * `poll` is the only way in: completions and messages are reported there and nowhere else. No callback runs on a thread of the
//!   driver. Each operation's token is reported exactly once.
//! * [`Capabilities`] describes the hardware. It announces optional operations; operations that are not announced are never called.
//! * Only a conduit or a network reads a clock, parks a thread or spins.
#![allow(unsafe_code)]

mod am;
pub(crate) mod engine;
#[cfg_attr(loom, allow(dead_code, reason = "what its tests use, which models leave out"))]
mod ib;
pub(crate) mod kit;
pub(crate) mod layers;
#[cfg(feature = "mpi")]
pub(crate) mod mpi;
pub(crate) mod node;
mod protocol;
pub(crate) mod simulated;
pub(crate) mod soft;
pub(crate) mod start;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod waist;

#[cfg(feature = "_bench")]
pub use ib::Bare;
pub(crate) use node::{Conduit, PublishedWait};
pub(crate) use waist::{
    Announcement, Atomic, Awaited, BLOCK_LEVELS, Cause, Connect, Event, Events, Issued, LeaveStep, Local, Mail, Nap, Network,
    Operation, Remote, SignalOp, SignalWord, Slept, Spot, Spots, Strided, Token, Topology, VirtualTime,
};
pub use waist::{Capabilities, Connections, Native, Ordering, Progress};

pub(crate) use crate::memory::atomic_op::apply_atomic;
pub(crate) use crate::memory::{atomic_op::AtomicOp, numeric::Scale, word::WaitWord};
