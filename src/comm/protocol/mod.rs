//! State machines of the networks, without I/O.
//!
//! A machine is fed with what happened and says what is to be done. It sees lengths, ranges and opaque handles, no memory and no
//! network; it has no clock, no lock and no `unsafe` (`cargo xtask lint` checks that). So its tests run it in a simulated network, over
//! thousands of schedules that are each drawn from a seed.
//!
//! | file | what it decides | who drives it |
//! |---|---|---|
//! | `beats` | whether the machines that a rank has to do with still answer | `am` |
//! | `credit` | when a frame of requests may leave, and what is acknowledged when | `am` |
//! | `rendezvous` | when a request of others is handled, and when the bytes that it announces may come | `am` |
//! | `waves` | whether all ranks of the job wait for good | `supervisor` |
//! | `simulation` | the order of events in tests | |

pub(super) mod beats;
pub(super) mod credit;
pub(super) mod rendezvous;
#[cfg(test)]
mod simulation;
pub(super) mod waves;
