//! EXTOLL by its two engines, VELO and RMA (the EXTOLL conduit of GASNet: Froening, Nuessle, Litz, Bruening).
//!
//! | file | contents |
//! |---|---|
//! | `networks` | what a job can name |
//! | `engines` | the calls of `velo2` and `rma2` that are used |
//! | `adapter` | RMA as an adapter |
//! | `packets` | frames as packets of VELO |
//! | `soft` | both engines without an adapter, over the ranks of one process |
//! | `library` | the engines themselves, by `shim.c` |
//!
//! `shim.c` is compiled by users on their machine: the headers there alone tell the layouts of VELO's structures and the values of enumerations.
//!
//! # Order and ends
//!
//! Commands of RMA to one node keep their order, and packets of VELO do; the two engines know nothing of each other. A put tells its origin only that
//! it has left. A get of eight bytes follows the puts, and when it has ended they have landed. A notification names a get by the address of its last byte.
//!
//! # What ran
//!
//! All of it over the software device, and in virtual time on a model of the adapter. Nothing over EXTOLL: the source of `libvelo2` is not public, and
//! no simulator exists. `shim.c` was compiled with headers of ours alone, and called with stubs of both libraries that record their calls
//! (`tests/runner/stubs`).
//!
//! # Known limits
//!
//! * EXTOLL registers whole pages, and no page twice. A range inside of another one for the same use shares its pages, which stay registered until both
//!   are given back. Any other overlap is refused, and such transfers are copied: those from and to memory of arrays that peers write, too. What lies on
//!   the same page as open memory is open.
//! * Memory has no keys: every rank of the job may read and write what a rank has opened.
//! * Atomic operations are messages.

mod adapter;
mod engines;
mod library;
#[cfg(all(test, not(loom)))]
mod library_tests;
mod networks;
mod packets;
#[cfg(feature = "_bench")]
mod pair;
mod soft;
#[cfg(all(test, not(loom)))]
mod tests;

pub(super) use self::networks::NETWORK;
