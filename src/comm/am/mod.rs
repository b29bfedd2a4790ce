//! Active messages: what ranks of different nodes write to each other, and what its arrival does.

pub(super) mod frame;
mod handle;
mod inbox;
mod long_frames;
mod longs;
pub(super) mod memory;
pub(super) mod net;
mod origins;
pub(super) mod peer;
mod pump;
pub(super) mod runs;
mod write;

use super::mpi::{LONGEST, ffi, mail};
