//! Memory that other ranks write: mappings, kernels, atomics.
#![allow(unsafe_code)]
pub(crate) mod kernels;
