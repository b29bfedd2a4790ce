//! For implementers of networks: `trait Network`, `trait Conduit`, and the protocols above them.
//!
//! # The waist
//!
//! A [`Network`] moves contiguous bytes between local memory and an offset of a rank's *segment*, carries out atomic operations, and delivers mail. A
//! [`Conduit`] is what the engine drives: it knows where each rank is, can wait, and supervises. There are two. A
//! [`Member`](node::Member) is one rank of a machine, and the conduit of a job whose ranks are all mapped. [`Joined`](joined::Joined) is
//! a member with a network for the ranks that are not.
//!
//! Strided patches, accumulates, locks, counters, collectives and request tables exist once, above (`engine`, `crate::sync`,
//! `crate::array`). To add a network, write a folder beside `mpi` against the documentation of [`Network`], add its `mod` line here and
//! its line in the table of [`networks`]. Nothing here uses what is above: who starts a job hands down [`settings`].
//!
//! * Every call is made through `&self`, from any thread of the rank.
//! * `poll` is the only way in: completions and messages are reported there and nowhere else. No callback runs on a thread of the
//!   driver. Each operation's token is reported exactly once.
//! * [`Capabilities`] describes the hardware. It announces optional operations; operations that are not announced are never called.
//! * Only a conduit or a network reads a clock, parks a thread or spins.
//!
//! # What is here
//!
//! | file | what it does |
//! |---|---|
//! | `topology` | where ranks are: machine, node, whether their memory is mapped |
//! | `network`, `joined` | what a network does; a node and a network as one conduit |
//! | `am` | active messages: a network made of any wire |
//! | `protocol` | state machines without I/O, that `am` drives |
//! | `loopback`, `packets` | a network and a wire inside one machine |
//! | `layers` | networks that make another one harsher, or show what it is asked for |
//! | `settings` | what a network needs to start ranks |
//! | `launcher` | which launcher started this process |
//! | `networks`, `start` | the networks that jobs name, in one table; what each writes for it |
//! | `one_machine` | the conduits of jobs of one machine |
//! | `capabilities`, `event` | the types of the boundary |
//! | `mutex` | the lock of these files |
//! | `peers`, `slab` | what is kept of other ranks; values under numbers |
//! | `engine` | a rank's requests, from issue to the fence that reports failures |
//! | `requests`, `transfers`, `progress`, `waiting` | its parts: the table, what moves, what arrives, how a rank waits |
//! | `lasting` | waits that last: how they end, what they print, how deadlocks are found |
//! | `signals` | put with signal: data, then a word that announces them |
//! | `strided`, `accumulate`, `remote_lock` | protocols for peers whose memory is not mapped |
//! | `stripe_lock` | waiting for the lock of memory that is mapped, in a call and in a handler |
//! | `addition` | the owner's side of native accumulates, for conduits |
//! | `owned` | transfers whose memory belongs to the request |
//! | `node` | what ranks of one machine share whatever the network: mapping, control pages, inboxes, waiting |
//! | `threads`, `shared_memory`, `mpi` | how ranks start; the network of `mpi` |
//! | `testing`, `islands`, `post`, `watched` | networks for tests |
#![allow(unsafe_code)]

pub(crate) mod accumulate;
pub(crate) mod addition;
mod am;
mod capabilities;
pub(crate) mod engine;
mod event;
#[cfg(test)]
pub(crate) mod islands;
pub(crate) mod joined;
pub(crate) mod lasting;
pub(crate) mod launcher;
pub(crate) mod layers;
pub(crate) mod loopback;
#[cfg(feature = "mpi")]
pub(crate) mod mpi;
pub(crate) mod mutex;
pub(crate) mod network;
pub(crate) mod networks;
pub(crate) mod node;
mod one_machine;
pub(crate) mod owned;
mod packets;
mod peers;
#[cfg(test)]
pub(crate) mod post;
mod progress;
mod protocol;
mod remote_lock;
mod requests;
pub(crate) mod settings;
mod shared_memory;
mod signals;
mod slab;
pub(crate) mod start;
pub(crate) mod strided;
pub(crate) mod stripe_lock;
#[cfg(test)]
mod testing;
pub(crate) mod threads;
mod topology;
mod transfers;
mod waiting;
#[cfg(test)]
pub(crate) mod watched;

use std::{fmt, io, ops::Range, ptr::NonNull, time::Duration};

pub use capabilities::{Capabilities, Native, Ordering, Progress};
pub(crate) use event::{Cause, Event, Events, Token};
pub(crate) use network::Network;
pub(crate) use network::{Atomic, Issued, Remote};
pub(crate) use topology::Topology;

use crate::index::Loops;
pub(crate) use crate::memory::atomic_op::apply_atomic;
pub(crate) use crate::memory::{atomic_op::AtomicOp, numeric::Scale, word::WaitWord};

/// Raw memory of the calling rank, one side of a transfer.
///
/// Valid from the call until its local completion is polled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Local {
    /// First byte.
    pub ptr: *mut u8,
    /// Length in bytes.
    pub len: usize,
}

/// The word that a put with a signal changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SignalWord {
    /// Byte offset of a [`WaitWord`] in the target's segment.
    pub offset: usize,
    /// What is done to it.
    pub op: SignalOp,
    /// With what value.
    pub value: u32,
}

/// How a signal changes its word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SignalOp {
    /// The word becomes the value.
    Set,
    /// The value is added, wrapping. Additions exclude each other and whatever [`Conduit::atomic`] excludes.
    Add,
}

/// Words for a collective that has no memory of its own yet: the creation of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mail {
    /// Names the collective.
    pub key: u64,
    /// What is said.
    pub words: [u64; 3],
}

/// The inbox of the target has no room now. Poll, then try again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full;

/// Most levels around the runs of a block that [`Conduit::put_block`] and its like take.
pub(crate) const BLOCK_LEVELS: usize = 8;

/// The value of [`Conduit::over`] in a process that was forked by a rank: the job is its parent's. Nothing that a network shares with
/// the parent may be touched, and nobody touches this process's memory for the job: transfers under way are the parent's.
pub(crate) const INHERITED: u32 = 3;

/// A wait of a rank that has lasted, as others see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PublishedWait {
    /// The rank that has to act before it can end; the waiting rank itself if any rank, or another of its threads, may do what it
    /// waits for.
    pub awaited: usize,
    /// Tells the waits of a rank apart.
    pub number: u32,
    /// Grows with every look that did not find what is waited for.
    pub looks: u64,
}

/// A network backend: ranks, segments, contiguous one-sided transfers, small messages, waiting.
///
/// See the module's essay for what an implementer may assume and must keep.
pub(crate) trait Conduit: Send + Sync + fmt::Debug {
    /// Where the ranks of the job are. Constant for the life of the conduit.
    fn topology(&self) -> &Topology;

    /// The calling rank, `0..size`.
    fn rank(&self) -> usize {
        self.topology().rank()
    }

    /// Number of ranks.
    fn size(&self) -> usize {
        self.topology().size()
    }

    /// The node that a rank runs on.
    fn node(&self, rank: usize) -> usize {
        self.topology().node(rank)
    }

    /// The machine that a rank runs on: the ranks that share memory to commit, and cores.
    fn machine(&self, rank: usize) -> usize {
        self.topology().machine(rank)
    }

    /// What the hardware does. Constant for the life of the conduit.
    fn capabilities(&self) -> &Capabilities;

    /// First byte of the caller's own segment.
    fn segment(&self) -> NonNull<u8>;

    /// Bytes reserved for each segment; the same on every rank. Only committed ranges may be touched.
    fn segment_len(&self) -> usize;

    /// First byte of a rank's segment where loads and stores reach it, the caller's own included. The arrays then load and
    /// store by themselves. Either each rank can map the ranks of its node and no others, or no rank can map any, itself included. So
    /// mapping is symmetric: if one member can map the whole group, every member can, and the group does not use the network. Over other groups atomic operations,
    /// by the rule of [`Native::coherent`], and accumulates that the conduit does not do itself ([`Native::accumulate`]) take
    /// `put`, `get` and `atomic` to every member, the caller itself included.
    fn mapped(&self, rank: usize) -> Option<NonNull<u8>>;

    /// Makes a range of the caller's segment usable by everyone: pages, registration. Contents that it had stay.
    ///
    /// # Errors
    /// What the system says.
    fn commit(&self, range: Range<usize>) -> io::Result<()>;

    /// Gives a committed range back.
    ///
    /// # Errors
    /// What the system says.
    fn release(&self, range: Range<usize>) -> io::Result<()>;

    /// Bytes that all ranks of the caller's machine have committed and not released.
    fn committed(&self) -> u64;

    /// Starts writing `local` to a place in the segment of a rank. [`Event::LocalDone`] with the token reports that the
    /// memory may be reused, unless that is so when the call returns; [`Conduit::flush`] reports visibility at the target.
    ///
    /// # Safety
    /// `local` is readable until its completion is polled; the target range is committed there.
    unsafe fn put(&self, to: Remote, local: Local, token: Token) -> Issued;

    /// Starts reading from a place in the segment of a rank into `local`. [`Event::LocalDone`] reports that the data have arrived.
    ///
    /// # Safety
    /// `local` is writable, and nobody touches it until its completion is polled; the source range is committed there.
    unsafe fn get(&self, from: Remote, local: Local, token: Token);

    /// Gives up the transfers of a request that read or write memory of the caller: each is reported as ended, or failed, as soon as
    /// that memory is no longer touched. For conduits that hold such memory until others act.
    fn cancel(&self, token: Token) {
        let _ = token;
    }

    /// Asks for [`Event::RemoteDone`] once everything that was put to `rank` or added there before is visible.
    fn flush(&self, rank: usize, token: Token);

    /// The body of this rank ended, well or not. Called once; what outlives the body may still call the conduit.
    fn body_ended(&self) {}

    /// The body of this rank returned well: returns when all that the rank sent was handled, and no other rank needs it. Collective.
    fn leave(&self) {}

    /// Starts an atomic operation. The old value comes as [`Event::Value`].
    ///
    /// # Safety
    /// The word is committed and aligned to its width, which is 4 or 8.
    unsafe fn atomic(&self, word: Remote, atomic: Atomic, token: Token);

    /// Sends mail; that of one rank to another arrives in order.
    ///
    /// # Errors
    /// [`Full`]: nothing was sent.
    fn mail(&self, rank: usize, mail: Mail) -> Result<(), Full>;

    /// Makes progress and appends what happened. Never blocks.
    fn poll(&self, events: &mut Events);

    /// Time since the conduit started.
    fn now(&self) -> Duration;

    /// Returns when `poll` may have something to say, after `limit` at the latest. May return early.
    fn wait(&self, limit: Duration);

    /// Returns when the word differs from `seen`, when `poll` may have something to say, or after `limit`. May return early.
    /// The word lies in the caller's own segment or in mapped memory.
    fn wait_on(&self, word: &WaitWord, seen: u32, limit: Duration);

    /// Non-zero once the job is over for this rank, because it ended or was ended; [`INHERITED`] in a child that the rank's process
    /// forked. Read on every operation.
    fn over(&self) -> &std::sync::atomic::AtomicU32;

    /// Why the job is over, for people.
    fn over_cause(&self) -> String;

    /// Ends the job for all ranks because of what this one did, `cause` without its number; the first cause stays.
    fn end(&self, cause: &str);

    /// What a rank was last seen in: the two words that it published by [`Conduit::publish`]. `None` where it cannot be known.
    fn last_seen(&self, rank: usize) -> Option<[u64; 2]>;

    /// Publishes where this rank is, for messages about who is missing. Called on entering every collective: a few stores.
    fn publish(&self, place: [u64; 2]);

    /// Tells the others that this rank looked again and still waits for an act of rank `awaited`; without one, that it does not
    /// wait for certain. `object` is what it waits for, for people: a lock or a signal; empty in a collective. Called by waits that have lasted, some times a second, and at the end of such a wait.
    ///
    /// Ranks that wait for each other in a cycle are ended for that, so a conduit does not publish a wait while a thread that it did
    /// not start may act for the rank. What the rank put or sent before has arrived when others see the wait.
    fn publish_wait(&self, awaited: Option<usize>, object: &str);

    /// What a rank has published by [`Conduit::publish_wait`] and not taken back. `None` where it cannot be known.
    fn published_wait(&self, rank: usize) -> Option<PublishedWait>;

    /// The object of the wait that a rank published last, cut if it is long. Empty where it cannot be known.
    fn published_object(&self, rank: usize) -> String;

    /// A put with a signal, if [`Native::signals`] is announced: writes `local`, which may be empty, to a place in the segment of a
    /// rank as [`put`](Self::put) does, then changes a word there and wakes the rank that waits on it in [`wait_on`](Self::wait_on).
    ///
    /// Who sees the new value sees the bytes and, if [`Ordering::put_put`] is announced, whatever the caller put or accumulated at
    /// that rank before. [`Event::LocalDone`] reports that the memory may be reused, and that the rest happens without a further
    /// call of the caller. A [`flush`](Self::flush) covers it, and its place in the order of puts and gets is that of a put.
    ///
    /// # Safety
    /// As [`put`](Self::put), at most [`Capabilities::longest_transfer`] bytes; the word is a committed [`WaitWord`] apart from them.
    unsafe fn put_signal(&self, to: Remote, local: Local, signal: SignalWord, token: Token) -> Issued {
        let _ = (to, local, signal, token);
        unreachable!("a conduit that does not announce signals is never asked for them")
    }

    /// Starts writing the runs of `loops` to the segment of a rank, if [`Native::blocks`] is announced. The byte offsets of `loops`
    /// are relative to `to` on the remote side and to `local` on the other; either may be negative; there are at most
    /// [`BLOCK_LEVELS`] levels. Completion and order are
    /// those of one [`put`](Self::put), whatever the block's size: [`Capabilities::longest_transfer`] does not bind it.
    ///
    /// # Safety
    /// Every local run is readable until the completion of `token` is polled; every remote run is committed there, and no two of
    /// them overlap. `loops` lives during the call only.
    unsafe fn put_block(&self, to: Remote, loops: &Loops, local: *const u8, token: Token) -> Issued {
        let _ = (to, loops, local, token);
        unreachable!("a conduit that does not announce blocks is never asked for them")
    }

    /// Starts reading the runs of `loops` from the segment of a rank; as [`put_block`](Self::put_block), with the completion and
    /// order of one [`get`](Self::get).
    ///
    /// # Safety
    /// Every local run is writable, and nobody touches it until the completion of `token` is polled, and no two of them overlap;
    /// every remote run is committed there. `loops` lives during the call only.
    unsafe fn get_block(&self, from: Remote, loops: &Loops, local: *mut u8, token: Token) {
        let _ = (from, loops, local, token);
        unreachable!("a conduit that does not announce blocks is never asked for them")
    }

    /// Starts adding `scale` times the local runs of `loops` to the remote ones, if [`Native::accumulate`] is announced. Addresses
    /// are those of [`put_block`](Self::put_block). Completion is that of a put: the memory may be used again at
    /// [`Event::LocalDone`], the sums are visible after a [`flush`](Self::flush); its place in the order of puts and gets is that of
    /// a put.
    ///
    /// A processor of the owner's node adds, under the stripes of the lock word at offset `lock` of the owner's segment: so do the
    /// processors that have its memory mapped, and each element is changed by one of them at a time. [`addition::add`] is that
    /// act, for the handler of whatever message the conduit sends. Between accumulates any order is allowed.
    ///
    /// # Safety
    /// As [`put_block`](Self::put_block). Runs are whole numbers of elements of `scale.kind`; `lock` is the offset of a lock word,
    /// committed and aligned, in every segment.
    unsafe fn accumulate_block(
        &self,
        to: Remote,
        loops: &Loops,
        local: *const u8,
        scale: &Scale,
        lock: usize,
        token: Token,
    ) -> Issued {
        let _ = (to, loops, local, scale, lock, token);
        unreachable!("a conduit that does not announce accumulates is never asked for them")
    }
}
