//! Tests of the whole network, and a device that fails on purpose.

pub(super) mod faulty;
mod patterns;
mod sleeping;
mod transfers;
