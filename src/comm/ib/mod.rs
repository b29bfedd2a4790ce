//! InfiniBand: what an adapter does, by libibverbs and by a software device that does the same. The network over them is not written yet.
//!
//! | file | what it does |
//! |---|---|
//! | `device` | what the network asks of an adapter: the trait, and the rules that hold for every device |
//! | `work` | what is posted to a device, and what comes back |
//! | `soft` | the software device: verbs between the threads of one process |
//! | `faulty` | a device that makes another one fail, for tests |
//! | `random` | random numbers, for both |
//! | `verbs` | the device of libibverbs |
//! | `ffi` | what is used of that library, which is loaded at run time |

mod device;
#[cfg(all(test, not(loom)))]
mod faulty;
mod ffi;
mod random;
mod soft;
mod verbs;
mod work;
