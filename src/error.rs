//! The one public error.
//!
//! Everything that a peer, a network, a file or a user can cause is a variant here and carries the numbers: which array, what
//! was asked, what the limits were. Misuse that a program cannot handle (an index whose number of axes is wrong at compile time
//! would be one) panics with the caller's place instead.

use std::{fmt, io, path::PathBuf};

use crate::{distribution::DistributionError, index::PatchError};

/// The result of everything in this crate that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, where, and with which numbers.
///
/// Its `Debug` form is its message, because that is what a program shows whose `main` returns it.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A patch does not lie inside the array.
    #[error("{operation} of array \"{array}\" with extents {extents:?}: {source}")]
    Patch {
        /// Name of the array.
        array: String,
        /// The operation that was asked for.
        operation: &'static str,
        /// Extents of the array.
        extents: Vec<usize>,
        /// Which axis, which bounds.
        source: PatchError,
    },
    /// A single subscript lies outside the array.
    #[error("{operation} of array \"{array}\": element {index:?} is outside the extents {extents:?}")]
    Index {
        /// Name of the array.
        array: String,
        /// The operation that was asked for.
        operation: &'static str,
        /// The subscript that was given.
        index: Vec<usize>,
        /// Extents of the array.
        extents: Vec<usize>,
    },
    /// The caller's buffer and the patch differ in shape.
    #[error("{operation} of array \"{array}\": the patch has shape {patch:?} but the buffer has shape {buffer:?}")]
    Shape {
        /// Name of the array.
        array: String,
        /// The operation that was asked for.
        operation: &'static str,
        /// Shape of the patch.
        patch: Vec<usize>,
        /// Shape of the buffer that was passed.
        buffer: Vec<usize>,
    },
    /// Two arrays that must go together do not.
    #[error("{operation}: {what}")]
    Mismatch {
        /// The operation that was asked for.
        operation: &'static str,
        /// Which arrays, and how they differ.
        what: String,
    },
    /// A distribution cannot be made from what was given.
    #[error("array \"{array}\" cannot be distributed: {source}")]
    Distribution {
        /// Name of the array.
        array: String,
        /// The rule that was broken.
        source: DistributionError,
    },
    /// The machine has not enough memory for a creation; nothing was allocated.
    #[error(
        "{what} asks for {asked} bytes on machine {machine} but only {available} are available ({limit}); use more nodes, smaller arrays, or raise the limit"
    )]
    OutOfMemory {
        /// What asked, an array by name for instance.
        what: String,
        /// Bytes asked for by all ranks of the node together.
        asked: u64,
        /// Bytes that were left.
        available: u64,
        /// The limit that binds: `MemAvailable`, a cgroup, `GA_MEMORY`.
        limit: String,
        /// The machine that is short, by the first of its nodes if it was split into several.
        machine: usize,
    },
    /// The address space reserved for a rank is used up.
    #[error(
        "{what} asks for {asked} bytes but the heap of a rank has {available} of {heap} bytes of address space left; set GA_HEAP"
    )]
    HeapFull {
        /// What asked.
        what: String,
        /// Bytes asked for.
        asked: u64,
        /// Largest hole.
        available: u64,
        /// Size of the heap.
        heap: u64,
    },
    /// The ranks of a group called different collectives, or the same with different arguments.
    #[error(
        "rank {rank} called {operation} but the ranks of its group do not agree: {seen}; all ranks must make the same collective calls in the same order with the same arguments"
    )]
    Disagreement {
        /// This rank.
        rank: usize,
        /// What this rank called.
        operation: String,
        /// What each rank was seen in.
        seen: String,
    },
    /// A group that failed before is used again.
    #[error("{operation}: the group cannot be used any more: {cause}")]
    GroupFailed {
        /// What was asked.
        operation: &'static str,
        /// The first failure.
        cause: String,
    },
    /// A second thread of the same rank is inside a collective of the same group.
    #[error(
        "{operation}: another thread of rank {rank} is inside a collective of the same group; collectives of one group run one at a time in a rank"
    )]
    Busy {
        /// What was asked.
        operation: &'static str,
        /// This rank.
        rank: usize,
    },
    /// An array is used after an epoch of it failed or was unwound.
    #[error("{operation} of array \"{array}\": an earlier epoch of it failed or panicked, so its contents cannot be trusted")]
    Poisoned {
        /// Name of the array.
        array: String,
        /// What was asked.
        operation: &'static str,
    },
    /// The job has ended, or another rank ended it.
    #[error("{operation}: the job is over: {cause}")]
    JobEnded {
        /// What was asked.
        operation: &'static str,
        /// Why it ended.
        cause: String,
    },
    /// A wait lasted longer than `GA_TIMEOUT`.
    #[error("rank {rank} waited {seconds:.1} s in {operation} (GA_TIMEOUT); missing: {missing}")]
    Timeout {
        /// This rank.
        rank: usize,
        /// What it waited in.
        operation: String,
        /// How long.
        seconds: f64,
        /// Who did not come, and where each was last seen.
        missing: String,
    },
    /// Ranks wait for each other: in collectives of different groups, for locks, or for signals.
    #[error("rank {rank} would wait in {operation} for ever: {cause}")]
    Deadlock {
        /// This rank.
        rank: usize,
        /// What it waited in.
        operation: String,
        /// Who waits for whom and in what, or who has ended.
        cause: String,
    },
    /// A rank ended the whole job: it panicked, returned an error, or was killed.
    #[error("rank {rank} {cause}")]
    RankFailed {
        /// The rank.
        rank: usize,
        /// What happened to it.
        cause: String,
    },
    /// A transfer failed after the call that issued it had returned.
    #[error("{operation} of array \"{array}\" with rank {peer} failed: {cause}")]
    Transfer {
        /// Name of the array.
        array: String,
        /// The operation that was issued.
        operation: &'static str,
        /// The peer.
        peer: usize,
        /// What the conduit said.
        cause: String,
    },
    /// A job cannot be started as asked.
    #[error("cannot start a job: {0}")]
    Launch(String),
    /// A value that the program passed is not allowed.
    #[error("{operation}: {what}")]
    Argument {
        /// The operation.
        operation: &'static str,
        /// What is wrong and what is allowed.
        what: String,
    },
    /// A file could not be read or written.
    #[error("{operation} {}: {source}", path.display())]
    File {
        /// `save` or `load`.
        operation: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file is not what it should be.
    #[error("{}: {what}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// The operating system refused something.
    #[error("{operation}: {source}")]
    System {
        /// What was tried.
        operation: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// What a program's own code wants to end its rank with.
    #[error("{0}")]
    Other(Box<dyn std::error::Error + Send + Sync>),
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error {
    /// Wraps any message or error of the program, so that `?` works in the body of a job.
    pub fn other(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Error::Other(error.into())
    }

    pub(crate) fn system(operation: &'static str, source: impl Into<io::Error>) -> Self {
        Error::System { operation, source: source.into() }
    }

    pub(crate) fn argument(operation: &'static str, what: impl fmt::Display) -> Self {
        Error::Argument { operation, what: what.to_string() }
    }
}
