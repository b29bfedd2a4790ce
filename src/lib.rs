//! One large dense array over many processes, read, written and added to by any of them at any time.
#![deny(unsafe_code)]
#![warn(clippy::print_stdout)]
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod array;
pub mod comm;
pub mod distribution;
mod element;
mod error;
pub mod index;
mod job;
mod memory;
mod sync;

pub use array::{
    Builder, Claims, Factor, FetchOp, Get, GlobalArray, Matmul, NpyElement, OwnedPart, OwnedPartMut, PartsOf, Pending, Reader, Scope, Summary,
};
pub use element::{Accumulate, AtomicInteger, Element};
pub use error::{Error, Result};
pub use job::{Job, Launch, Memory, run};
pub use sync::{Counter, Group, LockGuard, Locks, Ranks, Signal, ops};

/// What a program needs, ndarray's words included.
pub mod prelude {
    pub use ndarray::{
        Array1, Array2, Array3, ArrayD, ArrayView1, ArrayView2, Dimension, Ix1, Ix2, Ix3, Ix4, Ix5, Ix6, IxDyn, s,
    };

    pub use crate::{
        Accumulate, AtomicInteger, Counter, Element, Error, GlobalArray, Group, Job, Launch, Locks, Signal, distribution::Order,
        ops, run,
    };
}
