//! State machines of the networks, without I/O.
//!
//! A machine is fed with what happened and says what is to be done. It sees lengths, ranges and opaque handles, no memory and no
//! network; it has no clock, no lock and no `unsafe` (`cargo xtask lint` checks that). So its tests run it in a simulated network, over
//! thousands of schedules that are each drawn from a seed.
//!
//! | file | what it decides | driver |
//! |---|---|---|
//! | `absence` | which peers are lost, of those that are not reached | `ib` |
//! | `beats` | whether the machines that a rank has to do with still answer | `am` |
//! | `completions` | which works ask for a completion, and which works have ended when one comes | `ib` |
//! | `connection` | which queue pairs an endpoint holds, and when each may be used | `ib` |
//! | `credit` | when a frame of requests may leave, and what is acknowledged when | `am` |
//! | `rendezvous` | when a request of others is handled, and when the bytes that it announces may come | `am` |
//! | `replay` | what is posted again after a connection broke, and when an end reports what it has seen | `ib` |
//! | `waves` | whether all ranks of the job wait for good | `supervisor` |
//! | `simulation` | the order of events in tests | |

pub(super) mod absence;
pub(super) mod beats;
pub(super) mod completions;
pub(super) mod connection;
pub(super) mod credit;
pub(super) mod rendezvous;
pub(super) mod replay;
#[cfg(test)]
mod simulation;
pub(super) mod waves;
