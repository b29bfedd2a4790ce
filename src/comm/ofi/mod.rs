//! libfabric: the interface of Slingshot, EFA, Omni-Path and others.
//!
//! | file, folder | contents |
//! |---|---|
//! | `networks` | which providers ranks use |
//! | `adapter`, `messages` | a port as an adapter, and its frames |
//! | `sleeper` | sleeps until something comes, where a provider can tell |
//! | `port` | the objects of an endpoint, and calls on them |
//! | `library` | what libfabric offers |
//! | `ffi` | what is used of the library |
//! | `bare` | an endpoint without layers, for a bench |
//!
//! # Visible writes
//!
//! A write is visible when a read that the provider orders behind it has ended; if it is none of those that order a read of any word, when a
//! fenced write has been delivered; if it has no fence, each write ends when it is delivered, where the provider is one that tells the truth.
//!
//! # What ran
//!
//! The providers tcp;ofi_rxm, net, sockets and shm of libfabric 1.17, on one machine. verbs;ofi_rxm ran 20 random programs over soft-RoCE in a virtual
//! machine of two devices; it is no part of the tests, because soft-RoCE's reads are not reliable. None of cxi, efa, opx, psm2 and psm3.
//!
//! # Known limits
//!
//! * libpsm2, which Debian's libfabric loads, takes the signals of the process when it is loaded. They are given back at once (`ffi`).
//! * The provider shm is for tests. It keeps a file of 16 MiB for each rank in `/dev/shm`, and leaves it there if the rank is killed.
//! * Only with tcp;ofi_rxm and sockets does a rank sleep until something comes. With others it looks at intervals, so a rank that computes
//!   may answer half a millisecond late. The queues of net miss arrivals.
//! * With tcp;ofi_rxm a get of 8 bytes takes 1.2 of the time that libfabric alone takes: 1.03 without the descriptor that ends sleeps. Without it a rank
//!   that computes would answer late, so it stays. A thread that waits for others keeps off while its rank transfers, which halves the difference.
//! * RxM sizes its completion queue for 256 peers; with more, set `FI_UNIVERSE_SIZE` to their number.
//! * Some providers need variables of libfabric, which the start of a job asks for (`networks`). Without a cache of registered memory, cxi may map memory
//!   for each transfer, which costs a system call.
//! * `ofi` without a provider takes the first that each rank finds. Where a node lacks one, ranks would not reach each other: name it on a cluster.
//!   All ranks of a machine use the provider's first domain, unless `GA_OFI_DOMAIN` names several.
//! * Random puts are ordered by the range of all open writes to a peer. Where a provider orders no writes, many puts in one round wait for each
//!   other, and a put with a signal takes a round trip more.
//! * Memory is freed when the endpoint is closed, whatever the provider says to that.
//! * No atomic operations of the adapter.

mod adapter;
#[cfg(feature = "_bench")]
mod bare;
mod ffi;
mod library;
mod messages;
mod networks;
mod port;
mod sleeper;
#[cfg(all(test, not(loom)))]
mod tests;

#[cfg(feature = "_bench")]
pub use self::bare::BareEndpoint;
pub(super) use self::networks::NETWORK;
