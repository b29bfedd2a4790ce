//! InfiniBand: active messages over verbs, with connections on demand.
//!
//! After A. Vishnu, M. Krishnan: *Efficient On-Demand Connection Management Mechanisms with PGAS Models over InfiniBand* (CCGrid 2010),
//! and, for what is sent before a connection stands, J. Wu and others: *Impact of On-Demand Connection Management in MPI over VIA* (CLUSTER
//! 2002).
//!
//! | file | contents |
//! |---|---|
//! | `networks` | which devices the ranks drive |
//! | `cluster` | what a rank makes of its device: a wire |
//! | `links` | the wire: frames, writes and reads over queue pairs |
//! | `device` | what the network asks of an adapter |
//! | `verbs`, `ffi` | the device of libibverbs, and declarations of that library |
//! | `soft` | the software device |
//! | `tests` | tests, and a device that fails on purpose |
//!
//! A rank connects only with the agents of the nodes that it needs (`am::route`). So P ranks on N nodes need at most P·N connections and
//! not P².
//!
//! # Completions
//!
//! A chain of works has one completion, and most short puts have none (`protocol::completions`). A thread that waits for their end, or
//! polls the network, posts an empty write as the mark. Messages and datagrams are *solicited*: they wake the thread that answers while its
//! rank computes. The end of the rank's own works does not, unless something waits for it, for instance for a slot.
//!
//! # Waiting
//!
//! A completion of any kind ends the sleep of a rank in its device (`comm::node::conduit`). Meanwhile the thread that answers for it does
//! not look. A rank with neighbors on its node looks up every 50 to 100 µs.
//!
//! # Known limits
//!
//! * All of it ran on soft-RoCE and never on an adapter (`verbs`).
//! * The reset of a broken queue pair does not await the report that its shared receives are back (*last WQE reached*). So an adapter may
//!   lose a receive with each pair that breaks within a message of several packets.
//! * Each transfer of 64 KiB and more registers the caller's memory, which takes an adapter some tens of microseconds. The threshold was
//!   measured on the software device only.
//! * An endpoint has 256 receives for all peers. What finds none is repeated after 0.08 ms, perhaps often with hundreds of peers.
//! * A message without an answer holds its slot until the peer says after 1 ms that it has seen it. So a rank that scatters messages over
//!   more than 48 nodes sends 48 a millisecond.
//! * If `GA_CONNECTIONS` is less than the number of other ranks, a rank waits forever for a peer that dies before its connection is ready,
//!   because a live peer without a free queue pair does not answer either.
//! * Ports that ranks take in turns (`GA_IB_DEVICE`) must all reach each other: an agent has one port. Where a put goes by one adapter of a
//!   machine and a message about it by another, only the write's completion keeps their order.
//! * Atomic operations of the adapter are not used.

mod cluster;
mod device;
mod ffi;
mod links;
mod networks;
mod soft;
#[cfg(all(test, not(loom)))]
mod tests;
mod verbs;

pub(super) use self::networks::NETWORK;
#[cfg(feature = "_bench")]
pub use self::soft::Bare;
