//! The network floor, in floors of its own. Each uses those above it in this table, and none below; the lint looks after that.
//!
//! | folder | what it does |
//! |---|---|
//! | `kit` | locks, tables of ranks and numbers, random numbers, cores, lines for people |
//! | `waist` | the boundary: what a network writes ([`Operations`], [`Network`]), what the engine drives ([`Conduit`]), and the types of both |
//! | `protocol` | state machines without I/O |
//! | `node` | what ranks of one machine share, whatever the network is: mapping, control pages, inboxes, waiting, supervision |
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
//! [`Operations`] move bytes between local memory and an offset of a rank's *segment*, change words there, and deliver mail. A
//! [`Network`] carries them out for any rank. A [`Conduit`] is what the engine drives: it also knows where each rank is, can wait,
//! and supervises. There are three. A [`Member`](node::Member) is one rank of a machine, and the conduit of a job whose ranks are all
//! mapped. [`Joined`](node::joined::Joined) is a member with a network for the ranks that are not. A rank of [`simulated`] is a member too,
//! whose network and time are a model.
//!
//! Strided patches, accumulates, locks, counters, collectives and request tables exist once, above the waist (`engine`, `crate::sync`,
//! `crate::array`). To add a network, write a folder beside `mpi` against the documentation of [`Operations`] and [`Network`], add
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
pub(crate) use waist::{
    Atomic, BLOCK_LEVELS, Cause, Conduit, Connect, Event, Events, Full, INHERITED, Issued, Local, Mail, Network, Operations,
    PublishedWait, Remote, SignalOp, SignalWord, Spot, Spots, Token, Topology,
};
pub use waist::{Capabilities, Connections, Native, Ordering, Progress};

pub(crate) use crate::memory::atomic_op::apply_atomic;
pub(crate) use crate::memory::{atomic_op::AtomicOp, numeric::Scale, word::WaitWord};
