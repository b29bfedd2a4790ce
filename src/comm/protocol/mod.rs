//! State machines of the networks, without I/O.
//!
//! A machine is fed with what happened, in lengths, ranges and opaque handles, and says what is to be done.
//!
//! | file | decides | driver |
//! |---|---|---|
//! | `absence` | which unreached peers are lost | `ib` |
//! | `beats` | whether machines still answer | `am` |
//! | `completions` | which works ask for completions | `ib` |
//! | `connection` | which queue pairs an endpoint holds and may use | `ib` |
//! | `credit` | when frames of requests leave | `am` |
//! | `mailbox` | which words of a ring are a frame | `gemini` |
//! | `quiescence` | when no active message is on the way | `message::active` |
//! | `rendezvous` | when requests are handled | `am` |
//! | `replay` | what is posted again after a break | `ib` |
//! | `waves` | whether all ranks wait for good | `supervisor` |
//! | `simulation` | the order of events in tests | |

pub(super) mod absence;
pub(super) mod beats;
pub(super) mod completions;
pub(super) mod connection;
pub(super) mod credit;
pub(super) mod mailbox;
pub(super) mod quiescence;
pub(super) mod rendezvous;
pub(super) mod replay;
#[cfg(test)]
mod simulation;
pub(super) mod waves;
