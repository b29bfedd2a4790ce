//! The wire of reliable adapters without connections: libfabric, Gemini and EXTOLL stand on it.
//!
//! An adapter moves bytes into and out of the memory of peers. It loses nothing and repeats nothing, but works may end in any order. What
//! it does not order, the wire does (`order`), so active messages see the same order everywhere.
//!
//! | file | contents |
//! |---|---|
//! | `adapter` | what the layer asks of an adapter |
//! | `road` | how frames travel |
//! | `order` | transfers with one peer, and which of them are visible |
//! | `wire` | what active messages ask for: frames |
//! | `transfers` | writes and reads |
//! | `works` | slots of memory, and what was begun from each |
//! | `shim` | adapters behind a library in C that users compile |
//! | `at_once`, `pair` | an adapter that completes at once, and two software devices, for benches |
//!
//! # Completion
//!
//! The end of a write says that its memory is free. If the adapter ends a write only when the peer can see it, that is all. If not, a *mark*
//! behind the writes tells when all of them are visible. A look at the adapter sets one mark for each peer with new writes, and a peer has
//! one mark at a time.
//!
//! # Order
//!
//! * A frame of requests waits until the writes before it are visible, unless the adapter keeps frames behind writes. So a put with a
//!   signal costs a round trip on such adapters. Answers need not wait: they change only memory of a caller that waits for them.
//! * A write waits while an older write overlaps it, unless the adapter orders writes. A read does, unless it orders reads behind writes.
//! * An atomic operation of the adapter may take several steps. What meets its word waits until it has ended, and so do frames of requests.
//! * Nothing waits for a read: it may see what is written later.
//!
//! # Failures
//!
//! A work that failed means that the peer is gone, or that its memory was not open. Supervision then knows more than an adapter, so the job
//! ends by its words if it finds the rank dead, and by the adapter's words [a moment later](wire::GRACE) if not. A failed frame may be
//! for a rank that has come to its good end, so it ends the job only after the time of silence; no request goes to that rank behind it.
//! A transfer that has failed never ends: its caller waits for the end of the job.

pub(super) mod adapter;
#[cfg(feature = "_bench")]
mod at_once;
#[cfg(all(test, not(loom)))]
mod fake;
mod order;
#[cfg(feature = "_bench")]
pub(super) mod pair;
pub(super) mod road;
pub(super) mod shim;
#[cfg(all(test, not(loom)))]
mod tests;
mod transfers;
pub(super) mod wire;
mod works;

#[cfg(feature = "_bench")]
pub use self::{at_once::RmaAtOnce, pair::SoftPair};
