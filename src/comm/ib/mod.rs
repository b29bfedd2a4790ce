//! InfiniBand and RoCE.

mod ffi;
#[cfg(test)]
mod layout;
