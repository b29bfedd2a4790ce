//! One large dense array over many processes.
#![deny(unsafe_code)]

pub mod distribution;
mod element;
pub mod index;
pub mod memory;

pub use element::{Accumulate, AtomicInteger, Element};
