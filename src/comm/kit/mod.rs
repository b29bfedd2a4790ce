//! What every floor of the network uses.

pub(crate) mod cores;
pub(crate) mod mutex;
pub(super) mod peers;
pub(super) mod process;
pub(super) mod random;
pub(crate) mod say;
pub(super) mod slab;
pub(super) mod slots;
pub(crate) mod tree;
