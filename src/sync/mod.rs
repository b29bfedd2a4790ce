//! Barrier, collectives, locks, counters and signals, built over `trait Conduit`.
//!
//! | file | contents |
//! |---|---|
//! | `group`, `members` | an ordered set of ranks |
//! | `nodes` | which members are on which node |
//! | `create` | groups from lists of ranks |
//! | `mail` | letters between ranks that share no memory of a group yet |
//! | `scratch` | a group's own memory |
//! | `agreement` | the barrier that carries a few words |
//! | `collectives`, `lists`, `ops` | broadcast, reductions, gathers |
//! | `state` | what all groups of a rank share |
//! | `crew`, `pool` | threads that end; those of a rank |
//! | `memory`, `reclaim` | blocks for the objects of a group |
//! | `counts` | what a rank did to the memory of others |
//! | `call`, `whereabouts` | what ranks are in; messages about late ones |
//! | `words` | words that every member can change atomically |
//! | `counter`, `lock`, `signal` | made of such words |
//!
//! Within a rank, the collectives of one group run one at a time; a second thread gets `Error::Busy`. So does a second thread that
//! creates or destroys anything in any group: offsets and numbers are equal on all ranks only if each rank creates in sequence.

mod agreement;
pub(crate) mod call;
mod collectives;
mod counter;
mod counts;
mod create;
#[cfg(any(feature = "faer", feature = "rayon"))]
mod crew;
mod group;
mod lists;
mod lock;
mod mail;
mod members;
mod memory;
mod nodes;
pub mod ops;
#[cfg(feature = "rayon")]
mod pool;
mod reclaim;
mod scratch;
mod signal;
mod state;
mod whereabouts;
mod words;

pub(crate) use agreement::{EXACT_BITS, both_ways};
pub use counter::Counter;
pub(crate) use counts::Kind;
pub use counts::{Tally, Traffic};
#[cfg(feature = "faer")]
pub(crate) use crew::Crew;
pub(crate) use group::GroupInner;
pub use group::{Group, Ranks};
pub use lock::{LockGuard, Locks};
#[cfg(feature = "rayon")]
pub use pool::Pool;
pub(crate) use scratch::Scratch;
pub use signal::{Signal, SignalTarget};
pub(crate) use state::JobState;
pub(crate) use words::SharedWords;

/// The collectives, for fingerprints and for messages about who is where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Op {
    Start = 0,
    Barrier,
    Sync,
    End,
    Create,
    Commit,
    Destroy,
    ReadEpoch,
    OwnerEpoch,
    EndEpoch,
    Broadcast,
    Reduce,
    AllReduce,
    Gather,
    AllGather,
    AllToAll,
    Group,
    Words,
    Algebra,
    File,
    Ghosts,
    GhostEpoch,
    Freeze,
    Thaw,
    Channels,
    ActiveMessages,
    Mailbox,
}

impl Op {
    /// The name that users know.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Op::Start => "computation (no collective yet)",
            Op::Barrier => "barrier",
            Op::Sync => "sync",
            Op::End => "the end of the job",
            Op::Create => "creation of an array",
            Op::Commit => "commitment of memory",
            Op::Destroy => "destruction of an array",
            Op::ReadEpoch => "begin of a read epoch",
            Op::OwnerEpoch => "begin of an owner epoch",
            Op::EndEpoch => "end of an epoch",
            Op::Broadcast => "broadcast",
            Op::Reduce => "reduce",
            Op::AllReduce => "all-reduce",
            Op::Gather => "gather",
            Op::AllGather => "all-gather",
            Op::AllToAll => "all-to-all",
            Op::Group => "creation of a group",
            Op::Words => "creation of a counter, lock or signal",
            Op::Algebra => "an operation on whole arrays",
            Op::File => "reading or writing a file",
            Op::Ghosts => "update of ghost cells",
            Op::GhostEpoch => "begin of a ghost epoch",
            Op::Freeze => "freeze",
            Op::Thaw => "thaw",
            Op::Channels => "creation of channels",
            Op::ActiveMessages => "opening of handlers",
            Op::Mailbox => "creation of a mailbox",
        }
    }

    pub(crate) fn from_code(code: u64) -> Self {
        const ALL: [Op; 27] = [
            Op::Start,
            Op::Barrier,
            Op::Sync,
            Op::End,
            Op::Create,
            Op::Commit,
            Op::Destroy,
            Op::ReadEpoch,
            Op::OwnerEpoch,
            Op::EndEpoch,
            Op::Broadcast,
            Op::Reduce,
            Op::AllReduce,
            Op::Gather,
            Op::AllGather,
            Op::AllToAll,
            Op::Group,
            Op::Words,
            Op::Algebra,
            Op::File,
            Op::Ghosts,
            Op::GhostEpoch,
            Op::Freeze,
            Op::Thaw,
            Op::Channels,
            Op::ActiveMessages,
            Op::Mailbox,
        ];
        ALL.get((code & 0xff) as usize).copied().unwrap_or(Op::Start)
    }
}

/// Mixes the arguments of a call into 56 bits: different calls differ, the same call is the same on every rank.
pub(crate) fn fingerprint(parts: &[u64]) -> u64 {
    parts.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &part| {
        let mixed = (hash ^ part).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ mixed >> 29
    }) >> 8
}

/// A text as a part of a fingerprint.
pub(crate) fn text_fingerprint(text: &str) -> u64 {
    text.as_bytes().chunks(8).fold(text.len() as u64, |hash, bytes| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        fingerprint(&[hash, u64::from_le_bytes(word)])
    })
}
