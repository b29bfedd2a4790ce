//! InfiniBand: what an adapter does, by libibverbs and by a software device that does the same.
//!
//! | file | what it does |
//! |---|---|
//! | `device` | what the network asks of an adapter, in the words of verbs |
//! | `ffi` | what is used of libibverbs, loaded at run time |
//! | `layout` | compares that with the library's header |

mod device;
mod ffi;
#[cfg(test)]
mod layout;
