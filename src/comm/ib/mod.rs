//! InfiniBand: what an adapter does, by libibverbs and by a software device that does the same.
//!
//! | file | what it does |
//! |---|---|
//! | `device` | what the network asks of an adapter, in the words of verbs |
//! | `ffi` | what is used of libibverbs, loaded at run time |
//! | `layout` | compares that with the library's header |
//! | `verbs` | the device of libibverbs |

mod device;
mod ffi;
#[cfg(all(test, not(loom)))]
mod layout;
mod verbs;
