//! The atomics of what has no lock: the processor's, or under `cfg(loom)` those of a checker that runs every interleaving.
//!
//! Only types whose models stand beside them take their atomics from here. Under `cfg(loom)` nothing but the models runs: the
//! checker's atomics are no plain words, and shared memory cannot hold them.

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
