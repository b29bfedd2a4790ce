//! For implementers of networks: the traits of the network floor, and the protocols above them.
//!
//! # The waist
//!
//! [`Operations`] move bytes between local memory and an offset of a rank's *segment*, change words there, and deliver mail. A
//! [`Network`] carries them out for any rank. A [`Conduit`] is what the engine drives: it also knows where each rank is, can wait,
//! and supervises. There are three. A [`Member`](node::Member) is one rank of a machine, and the conduit of a job whose ranks are all
//! mapped. [`Joined`](joined::Joined) is a member with a network for the ranks that are not. A rank of [`simulated`] is a member too, whose
//! network and time are a model.
//!
//! Strided patches, accumulates, locks, counters, collectives and request tables exist once, above (`engine`, `crate::sync`,
//! `crate::array`). To add a network, write a folder beside `mpi` against the documentation of [`Operations`] and [`Network`], add
//! its `mod` line here and its line in the table of [`networks`]. Nothing here uses what is above: who starts a job hands down
//! [`settings`].
//!
//! * Every call is made through `&self`, from any thread of the rank.
//! * `poll` is the only way in: completions and messages are reported there and nowhere else. No callback runs on a thread of the
//!   driver. Each operation's token is reported exactly once.
//! * [`Capabilities`] describes the hardware. It announces optional operations; operations that are not announced are never called.
//! * Only a conduit or a network reads a clock, parks a thread or spins.
//!
//! # What is here
//!
//! | file | what it does |
//! |---|---|
//! | `topology` | where ranks are: machine, node, whether their memory is mapped |
//! | `operations`, `conduit`, `network` | the traits: what both have, what the engine drives, what a network does |
//! | `joined` | a node and a network as one conduit |
//! | `am` | active messages: a network made of any wire |
//! | `agent` | the thread that answers for a rank that computes, and sees the end of its neighbours |
//! | `protocol` | state machines without I/O, that `am` drives |
//! | `loopback`, `packets` | a network and a wire inside one machine |
//! | `layers` | networks that make another one harsher, or show what it is asked for |
//! | `connections` | connections of a rank, where a network makes them: when, and how many there were |
//! | `devices` | ranks that each drive a device of their own: how they start |
//! | `settings` | what a network needs to start ranks |
//! | `launcher`, `bootstrap` | which launcher started this process; how its processes meet |
//! | `networks`, `start` | the networks that jobs name, in one table; what each writes for it |
//! | `one_machine` | the conduits of jobs of one machine |
//! | `capabilities`, `event` | the types of the boundary |
//! | `mutex`, `say`, `cores` | the lock of these files; lines for people; masks of cores |
//! | `peers`, `slab`, `slots`, `tree` | what is kept of other ranks; values under numbers; memory for messages; the binomial tree |
//! | `random` | random numbers of a seed |
//! | `engine` | a rank's requests, from issue to the fence that reports failures |
//! | `requests`, `transfers`, `progress`, `waiting` | its parts: the table, what moves, what arrives, how a rank waits |
//! | `lasting`, `chain` | waits that last: how they end, what they print, how deadlocks are found; who waits for whom |
//! | `signals` | put with signal: data, then a word that announces them |
//! | `strided`, `accumulate`, `remote_lock` | protocols for peers whose memory is not mapped |
//! | `stripe_lock` | waiting for the lock of memory that is mapped, in a call and in a handler |
//! | `addition` | the owner's side of native accumulates, for conduits |
//! | `owned` | transfers whose memory belongs to the request |
//! | `node` | what ranks of one machine share whatever the network: mapping, control pages, inboxes, waiting; what machines know of each other |
//! | `threads`, `shared_memory`, `mpi` | how ranks start; the network of `mpi` |
//! | `ib` | InfiniBand: devices, and a wire over queue pairs that connect on demand |
//! | `simulated` | all ranks in one process, in virtual time |
//! | `modelled` | networks whose own code runs there |
//! | `soft` | virtual time, models of machines, ranks that run one at a time |
//! | `testing`, `islands`, `post`, `watched`, `apart` | networks for tests |
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
