//! InfiniBand: queue pairs, remote memory and datagrams, in the words of verbs. The network over them is not written yet.
//!
//! | file | what it does |
//! |---|---|
//! | `device` | what the network asks of an adapter: the trait, and the rules that hold for every device |
//! | `work` | what is posted to a device, and what comes back |
//! | `soft` | the software device: verbs between the threads of one process |
//! | `faulty` | a device that makes another one fail, for tests |
//! | `random` | random numbers, for both |
//!
//! A device is narrow, so that the library of a real adapter and software can stand below the same network: one completion queue, one queue
//! of receives, connected pairs, and one datagram pair by which ranks meet before they are connected. A network that works over the
//! software device relies on nothing that an adapter does not promise, as far as `soft` says what it enforces.
//!
//! Nothing here has run on InfiniBand's hardware. The rules are those of the InfiniBand specification as libibverbs' manual pages tell
//! them, and what was found out by trying on soft-RoCE.

mod device;
#[cfg(all(test, not(loom)))]
mod faulty;
mod random;
mod soft;
mod work;
