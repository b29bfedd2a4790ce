//! Memory that other ranks write: the home of `unsafe`.
//!
//! | file | contents |
//! |---|---|
//! | `atomic_op`, `atomics` | operations on words; what loom checks |
//! | `mapping`, `large_pages` | shared address space, and its pages |
//! | `children` | mappings that children do not get |
//! | `heap` | free and taken bytes of a segment |
//! | `limits` | how much memory is left |
//! | `word`, `line` | what a rank can wait on |
//! | `buffer` | the caller's side of a transfer |
//! | `ring` | letters of many writers for one reader |
//! | `stripes` | the lock for accumulates |
//! | `part`, `segments` | exposed memory as safe values |
//! | `plan`, `planned` | strided transfers |
//! | `kernels`, `numeric` | copy and arithmetic |
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
pub(crate) mod ring;
pub(crate) mod segments;
pub(crate) mod stripes;
pub(crate) mod vectorized;
pub(crate) mod word;
