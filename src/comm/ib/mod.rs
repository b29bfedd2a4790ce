//! InfiniBand: what an adapter does, and a software device that does the same.
//!
//! | file | what it does |
//! |---|---|
//! | `device` | what the network asks of an adapter, in the words of verbs |
//! | `work` | what is posted to it, and what comes back |
//! | `faulty` | a device that makes another one fail, for tests |
//! | `random` | random numbers, for both |
//! | `soft` | the software device: verbs over the threads of one process |

mod device;
#[cfg(all(test, not(loom)))]
mod faulty;
mod random;
mod soft;
mod work;
