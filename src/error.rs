//! The one public error: failures that a peer, a network, a file or a user can cause.

use std::{borrow::Cow, fmt, io, panic::Location, path::PathBuf};

use crate::{distribution::DistributionError, index::PatchError};

/// The result of the crate's fallible operations.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, where, and with which numbers.
///
/// The message ends with the line of the program that made the call, `at src/main.rs:42`. [`operation`](Self::operation) returns the
/// operation and that line. `Debug` prints the same message, because Rust prints `Debug` when `main` returns an error.
#[doc(alias = "GA_Error")]
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A patch does not lie inside the array.
    #[error("{operation} of array \"{array}\" with extents {extents:?}: {source}{}", operation.place())]
    Patch {
        /// Name of the array.
        array: String,
        /// The operation that was called.
        operation: Operation,
        /// Extents of the array.
        extents: Vec<usize>,
        /// Which axis, which bounds.
        source: PatchError,
    },
    /// A single subscript lies outside the array.
    #[error("{operation} of array \"{array}\": element {index:?} is outside the extents {extents:?}{}", operation.place())]
    Index {
        /// Name of the array.
        array: String,
        /// The operation that was called.
        operation: Operation,
        /// The subscript that was given.
        index: Vec<usize>,
        /// Extents of the array.
        extents: Vec<usize>,
    },
    /// The caller's buffer and the patch differ in shape.
    #[error("{operation} of array \"{array}\": the patch has shape {patch:?} but the buffer has shape {buffer:?}{}", operation.place())]
    Shape {
        /// Name of the array.
        array: String,
        /// The operation that was called.
        operation: Operation,
        /// Shape of the patch.
        patch: Vec<usize>,
        /// Shape of the buffer that was passed.
        buffer: Vec<usize>,
    },
    /// Two arrays that must match do not.
    #[error("{operation}: {what}{}", operation.place())]
    Mismatch {
        /// The operation that was called.
        operation: Operation,
        /// Which arrays, and how they differ.
        what: String,
    },
    /// A matrix has no such factors, eigenvalues or solution.
    #[error("{operation} of array \"{array}\": {source}{}", operation.place())]
    Matrix {
        /// Name of the array.
        array: String,
        /// The operation that was called.
        operation: Operation,
        /// What is wrong with the matrix.
        source: MatrixError,
    },
    /// The requested distribution is impossible.
    #[error("array \"{array}\" cannot be distributed: {source}{}", operation.place())]
    Distribution {
        /// Name of the array.
        array: String,
        /// The rule that was broken.
        source: DistributionError,
        /// The operation that failed, and where it was called.
        operation: Operation,
    },
    /// The machine has too little memory for a creation; nothing was allocated.
    #[error(
        "{what} asks for {asked} bytes on machine {machine} but only {available} are available ({limit}); use more nodes, smaller arrays, or raise the limit{}", operation.place()
    )]
    OutOfMemory {
        /// What requested the memory, for instance an array by name.
        what: String,
        /// Bytes requested by all ranks of the machine together.
        asked: u64,
        /// Bytes that were left.
        available: u64,
        /// The limit that binds: `MemAvailable`, a cgroup, `GA_MEMORY`.
        limit: String,
        /// The machine that lacks memory; if it was split into nodes, the first of them.
        machine: usize,
        /// The operation that failed, and where it was called.
        operation: Operation,
    },
    /// The address space reserved for a rank is used up.
    #[error(
        "{what} asks for {asked} bytes but the heap of a rank has {available} of {heap} bytes of address space left; set GA_HEAP, and lift the limits of ulimit -v and ulimit -f if there are any{}", operation.place()
    )]
    HeapFull {
        /// What requested the memory.
        what: String,
        /// Bytes requested.
        asked: u64,
        /// Largest free block in bytes.
        available: u64,
        /// Size of the heap in bytes.
        heap: u64,
        /// The operation that failed, and where it was called.
        operation: Operation,
    },
    /// The ranks of a group called different collectives, or the same one with different arguments.
    #[error(
        "rank {rank} called {operation} but the ranks of its group do not agree: {seen}; all ranks must make the same collective calls in the same order with the same arguments{}", operation.place()
    )]
    Disagreement {
        /// This rank.
        rank: usize,
        /// What this rank called.
        operation: Operation,
        /// The call in which each rank was seen.
        seen: String,
    },
    /// A group was used after it had failed.
    #[error("{operation}: the group cannot be used any more: {cause}{}", operation.place())]
    GroupFailed {
        /// The operation that was called.
        operation: Operation,
        /// The first failure.
        cause: String,
    },
    /// Another thread of the same rank is inside a collective of the same group, or creates or destroys an object.
    #[error(
        "{operation}: another thread of rank {rank} is inside a collective of the same group; collectives of one group run one at a time in a rank{}", operation.place()
    )]
    Busy {
        /// The operation that was called.
        operation: Operation,
        /// This rank.
        rank: usize,
    },
    /// An array was used after one of its epochs had failed or panicked.
    #[error("{operation} of array \"{array}\": an earlier epoch of it failed or panicked, so its contents cannot be trusted{}", operation.place())]
    Poisoned {
        /// Name of the array.
        array: String,
        /// The operation that was called.
        operation: Operation,
    },
    /// The job has ended, or another rank ended it.
    #[error("{operation}: the job is over: {cause}{}", operation.place())]
    JobEnded {
        /// The operation that was called.
        operation: Operation,
        /// Why it ended.
        cause: String,
    },
    /// A wait lasted longer than `GA_TIMEOUT`.
    #[error("rank {rank} waited {seconds:.1} s in {operation} (GA_TIMEOUT); missing: {missing}{}", operation.place())]
    Timeout {
        /// This rank.
        rank: usize,
        /// The operation in which it waited.
        operation: Operation,
        /// How long it waited.
        seconds: f64,
        /// The missing ranks, and where each was last seen.
        missing: String,
    },
    /// Ranks wait for each other: in collectives of different groups, for locks, or for signals.
    #[error("rank {rank} would wait in {operation} forever: {cause}{}", operation.place())]
    Deadlock {
        /// This rank.
        rank: usize,
        /// The operation in which it waited.
        operation: Operation,
        /// Which rank waits for which and in what call, or which rank has ended.
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
    #[error("{operation} of array \"{array}\" with rank {peer} failed: {cause}{}{}", Place(*issued, "issued at"), Place(operation.location, "reported at"))]
    Transfer {
        /// Name of the array.
        array: String,
        /// The operation that was issued.
        operation: Operation,
        /// The peer.
        peer: usize,
        /// The error of the conduit.
        cause: String,
        /// The call that issued the transfer, if it had returned before the failure: that of a non-blocking transfer, or of one in a
        /// scope.
        issued: Option<&'static Location<'static>>,
    },
    /// The job cannot be started as requested.
    #[error("cannot start a job: {0}")]
    Launch(String),
    /// The program passed an invalid value.
    #[error("{operation}: {what}{}", operation.place())]
    Argument {
        /// The operation.
        operation: Operation,
        /// What is wrong and what is allowed.
        what: String,
    },
    /// A file could not be read or written.
    #[error("{operation} {}: {source}{}", path.display(), operation.place())]
    File {
        /// The operation that used the file.
        operation: Operation,
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A file has the wrong format or contents.
    #[error("{}: {what}{}", path.display(), operation.place())]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
        /// The operation that failed, and where it was called.
        operation: Operation,
    },
    /// The operating system refused something.
    #[error("{operation}: {source}{}", operation.place())]
    System {
        /// The operation that was tried.
        operation: Operation,
        /// The error of the operating system.
        source: io::Error,
    },
    /// An error of the program's own code; see [`Error::other`].
    #[error("{0}")]
    Other(Box<dyn std::error::Error + Send + Sync>),
}

/// What is wrong with a matrix. Rows and columns count from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MatrixError {
    /// An element is NaN or infinite.
    #[error("element [{row}, {column}] is not finite")]
    NotFinite {
        /// Its row.
        row: usize,
        /// Its column.
        column: usize,
    },
    /// A matrix that should be symmetric, or Hermitian if it is complex, is not.
    #[error(
        "elements [{row}, {column}] and [{column}, {row}] differ by more than rounding, so it is not symmetric (Hermitian if complex); symmetrize it if that is meant"
    )]
    NotSymmetric {
        /// The row of the element below the diagonal.
        row: usize,
        /// Its column.
        column: usize,
    },
    /// A matrix that should be positive definite is not.
    #[error("it is not positive definite: the leading {order} x {order} block is not, the one before it is")]
    NotPositive {
        /// The order of the smallest leading block that is not positive definite.
        order: usize,
    },
    /// A factor has a zero on its diagonal.
    #[error("it is singular: the triangular factor has an exact zero at [{at}, {at}]")]
    Singular {
        /// Its row and column.
        at: usize,
    },
    /// The columns depend on each other.
    #[error("it has not full rank: the triangular factor has an exact zero at [{at}, {at}]")]
    Dependent {
        /// Its row and column.
        at: usize,
    },
    /// An iteration of LAPACK or faer did not converge.
    #[error("an iteration did not converge (LAPACK's info = {info})")]
    NotConverged {
        /// What LAPACK returned; 0 from faer.
        info: usize,
    },
}

/// The operation that failed, and where the program's source called it. `Display` prints the name of the operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    name: Cow<'static, str>,
    location: Option<&'static Location<'static>>,
}

impl Operation {
    /// The name: a method of the crate, or the wait that failed.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The call in the program's source that returned the error; `None` if no call did.
    #[must_use]
    pub fn location(&self) -> Option<&'static Location<'static>> {
        self.location
    }

    /// The end of a message.
    fn place(&self) -> Place {
        Place(self.location, "at")
    }
}

impl From<&'static str> for Operation {
    fn from(name: &'static str) -> Self {
        Operation { name: name.into(), location: None }
    }
}

impl From<String> for Operation {
    fn from(name: String) -> Self {
        Operation { name: name.into(), location: None }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// A place behind a message, and the word before it.
struct Place(Option<&'static Location<'static>>, &'static str);

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |at| write!(f, ", {} {}:{}", self.1, at.file(), at.line()))
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The operation in an error, behind a reference of the kind that is given.
macro_rules! operation_of {
    ($error:expr) => {
        match $error {
            Error::Patch { operation, .. }
            | Error::Index { operation, .. }
            | Error::Shape { operation, .. }
            | Error::Mismatch { operation, .. }
            | Error::Matrix { operation, .. }
            | Error::Distribution { operation, .. }
            | Error::OutOfMemory { operation, .. }
            | Error::HeapFull { operation, .. }
            | Error::Disagreement { operation, .. }
            | Error::GroupFailed { operation, .. }
            | Error::Busy { operation, .. }
            | Error::Poisoned { operation, .. }
            | Error::JobEnded { operation, .. }
            | Error::Timeout { operation, .. }
            | Error::Deadlock { operation, .. }
            | Error::Transfer { operation, .. }
            | Error::Argument { operation, .. }
            | Error::File { operation, .. }
            | Error::Format { operation, .. }
            | Error::System { operation, .. } => Some(operation),
            Error::RankFailed { .. } | Error::Launch(_) | Error::Other(_) => None,
        }
    };
}

impl Error {
    /// Wraps any message or error of the program, so that `?` works in the body of a job.
    pub fn other(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Error::Other(error.into())
    }

    /// The operation that failed, and the call in the program's source that returned the error; `None` if no single call failed.
    #[must_use]
    pub fn operation(&self) -> Option<&Operation> {
        operation_of!(self)
    }

    /// The same error with the place of a call, which replaces the place of a call inside the crate.
    #[cold]
    #[inline(never)]
    pub(crate) fn called_at(mut self, at: &'static Location<'static>) -> Self {
        if let Some(operation) = operation_of!(&mut self) {
            operation.location = Some(at);
        }
        self
    }

    pub(crate) fn system(operation: &'static str, source: impl Into<io::Error>) -> Self {
        Error::System { operation: operation.into(), source: source.into() }
    }

    pub(crate) fn argument(operation: &'static str, what: impl fmt::Display) -> Self {
        Error::Argument { operation: operation.into(), what: what.to_string() }
    }
}
