//! Memory that other ranks write: the home of `unsafe`.
//!
//! | file | what it does |
//! |---|---|
//! | `atomic_op` | atomic operations on words of arrays, by the processor |
//! | `atomics` | the atomics of what is checked in every interleaving |
//! | `children` | mappings that children of this process do not get |
//! | `mapping` | reserves address space that processes share, commits and releases pages of it |
//! | `large_pages` | a memory file with pages of 2 MiB, where an ordinary user may have one |
//! | `heap` | pure arithmetic: which bytes of a segment are taken |
//! | `limits` | how much memory the node has left, by every limit that binds, and how long a file may be |
//! | `word` | a 32-bit word that a rank can wait on |
//! | `line` | lines that one rank writes and another waits for |
//! | `buffer` | the caller's side of a transfer |
//! | `stripes` | the lock that guards accumulates into a rank's memory |
//! | `part` | exposed memory as safe values: a part of an array |
//! | `plan` | the loops of a strided transfer in the kernels' words |
//! | `planned` | strided copies between parts that are planned once |
//! | `segments` | the members' segments: offsets become addresses, after a check |
//! | `kernels` | copy and arithmetic on memory that is written meanwhile |
//! | `numeric` | sums of elements whose type came in a message |
//!
//! Memory that another rank may write is never a slice outside an epoch: single elements are relaxed atomics, everything longer
//! goes through `kernels`. Nothing here knows ranks, arrays or networks.
#![allow(unsafe_code)]

pub(crate) mod atomic_op;
pub(crate) mod atomics;
pub(crate) mod buffer;
pub(crate) mod children;
pub(crate) mod heap;
pub(crate) mod kernels;
pub(crate) mod large_pages;
pub(crate) mod limits;
pub(crate) mod line;
pub(crate) mod mapping;
pub(crate) mod numeric;
pub(crate) mod part;
mod plan;
pub(crate) mod planned;
pub(crate) mod segments;
pub(crate) mod stripes;
pub(crate) mod word;
