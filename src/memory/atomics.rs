//! The atomics of types without locks: the processor's, or under `cfg(loom)` those of a checker that runs every interleaving.
//!
//! Only types with a model beside them use these. Under `cfg(loom)` only the models run: shared memory cannot hold the checker's atomics.

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
