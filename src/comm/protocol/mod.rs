//! State machines of the networks, without I/O.
//!
//! A machine is fed with what happened and says what is to be done. It sees lengths, ranges and opaque handles, no memory and no
//! network; it has no clock, no lock and no `unsafe` (`cargo xtask lint` checks that). So its tests run it in a simulated network, over
//! thousands of schedules that are each drawn from a seed.
//!
//! | file | what it decides | who drives it |
//! |---|---|---|
//! | `beats` | whether the machines that a rank has to do with still answer | `am` |
//! | `connection` | which queue pairs an endpoint holds, and when each may be used | none yet |
//! | `credit` | when a frame of requests may leave, and what is acknowledged when | `am` |
//! | `rendezvous` | when a request of others is handled, and when the bytes that it announces may come | `am` |
//! | `replay` | what is posted again after a connection broke | none yet |
//! | `waves` | whether all ranks of the job wait for good | `supervisor` |
//! | `simulation` | the order of events in tests | |

pub(super) mod beats;
#[cfg_attr(not(test), expect(dead_code, reason = "the serial way, the end of a peer and statistics come with their users"))]
pub(super) mod connection;
pub(super) mod credit;
pub(super) mod rendezvous;
#[cfg_attr(not(test), expect(dead_code, reason = "the network of queue pairs that drives it is not written yet"))]
pub(super) mod replay;
#[cfg(test)]
mod simulation;
pub(super) mod waves;
