//! InfiniBand: active messages over verbs, with connections on demand.
//!
//! After A. Vishnu, M. Krishnan: *Efficient On-Demand Connection Management Mechanisms with PGAS Models over InfiniBand* (CCGrid 2010), and,
//! for what is sent before a connection stands, J. Wu and others: *Impact of On-Demand Connection Management in MPI over VIA* (CLUSTER 2002).
//!
//! | file | what it does |
//! |---|---|
//! | `networks` | which devices the ranks of a network drive |
//! | `cluster` | what a rank makes of its device: a wire |
//! | `links` | frames, writes and reads over the queue pairs of an endpoint: the wire of active messages |
//! | `device` | what the network asks of an adapter, in the words of verbs |
//! | `verbs` | the device of libibverbs |
//! | `ffi` | what is used of that library, which is loaded at run time |
//! | `soft` | the software device: verbs over the threads of a process, or the processes of a machine |
//! | `faulty` | a device that makes another one fail, for tests |
//! | `patterns` | tests: connections that the patterns of programs take |
//! | `sleeping` | tests: what ends the sleep of a rank |
//! | `transfers` | tests: puts and gets as writes and reads, over connections that break |
//!
//! # Which ranks connect
//!
//! The first rank of a node is its *agent* and answers for all of it (`am::route`), as ARMCI's data server does (ARMCI-ODCM, section II). So a rank
//! connects with the agents of the nodes that it needs, and only agents are connected with by others: P ranks on N nodes need at most P·N
//! connections and not P². The agent opens the memory of its node to its adapter. It is a thread of the first rank, and that
//! rank itself while it waits; it takes puts, gets and accumulates of other ranks from the memory that the node shares.
//!
//! # Completions
//!
//! A chain of works has one completion, that of the last: the works of a pair complete in their order. Of short puts in a row most are *silent*:
//! the first has a completion, and then every sixteenth. A thread that waits for their end, or polls the network, posts an empty write behind them.
//! The completion of that write stands for all of them. Messages and datagrams are *solicited*.
//! So the thread that answers while its rank computes is woken by what arrives, and not by the end of what the rank itself has posted; unless
//! something waits for that, a slot for instance.
//!
//! # Waiting
//!
//! Where each rank has a core, a rank that waits looks all the time. Where ranks outnumber cores, it looks for 50 µs and then sleeps until its device
//! has a completion, of any kind (`Network::nap`). Meanwhile the thread that answers for it does not look. A rank that shares memory with others on its
//! node sleeps so only while it has asked for something, or if it is the agent, and looks up every 50 to 100 µs: what neighbors do
//! ends no sleep in the device. Else it sleeps on its bell, or on the word that it waits for.
//!
//! # Virtual time
//!
//! Over `simulated:ib` all of this runs on modelled adapters, in virtual time. Nobody looks at a device by himself there, so an endpoint says
//! when it wants to look next ([`Device::remind`](device::Device::remind)).
//!
//! # What is not there yet
//!
//! * An adapter: all of it ran on soft-RoCE, in a virtual machine, and never on hardware.
//! * The event that an adapter gives back what a broken queue pair had taken of the shared receives (*last WQE reached*) is not awaited before the
//!   pair is reset. An adapter may lose a receive with each pair that breaks in the middle of a message of several packets.
//! * Memory of callers is registered for each transfer of 64 KiB and more, which takes an adapter some tens of microseconds. The threshold was
//!   measured on the software device only.
//! * An endpoint has 256 receives, however many peers it has; an adapter repeats what finds none after 0.08 ms. With hundreds of peers that all
//!   send messages at once this may be often.
//! * What nobody answers holds its slot until the peer says after 1 ms that it has seen it, so a rank that scatters messages over more than 48
//!   nodes sends 48 a millisecond.
//! * If `GA_CONNECTIONS` is less than the number of other ranks, a peer that dies before its connection is ready is waited for forever, because a
//!   live peer without a free queue pair does not answer either.
//! * Ports that ranks take in turns (`GA_IB_DEVICE`) must all reach each other: an agent has one port. And where a put goes by one adapter of a
//!   machine and a message about it by another, nothing but the write's completion keeps their order.
//! * Atomic operations of the adapter.

mod cluster;
mod device;
mod ffi;
mod links;
mod networks;
mod soft;
#[cfg(all(test, not(loom)))]
mod tests;
mod verbs;

pub(super) use self::networks::NETWORK;
#[cfg(feature = "_bench")]
pub use self::soft::Bare;
