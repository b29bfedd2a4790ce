//! What launchers of every protocol do for the processes that they start.

use std::io::{self, ErrorKind};

/// What a launcher, or the way to it, refuses.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refused {
    /// Its end of the connection is closed.
    #[error(
        "its connection is closed; it has ended, or was ended, or an earlier program in place of this one has taken its leave"
    )]
    Gone,
    /// It says so.
    #[error("it answered {0:?}")]
    Said(String),
    #[error("it keeps values of {longest} bytes at most, and those needed have {len}")]
    TooLong { len: usize, longest: usize },
    /// The user's limit.
    #[error("the limit of {0} s (GA_TIMEOUT) is over: not all ranks have come; each process of the launcher must call `run`")]
    Late(f64),
    #[error("{0}")]
    System(io::Error),
}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::UnexpectedEof | ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => Refused::Gone,
            ErrorKind::InvalidData => Refused::Said(error.to_string()),
            _ => Refused::System(error),
        }
    }
}

pub(super) type Result<T> = std::result::Result<T, Refused>;

/// What a caller does while it waits; an error ends the wait.
pub(super) type Idle<'i> = &'i mut dyn FnMut() -> io::Result<()>;

/// What a launcher keeps for the processes that it started.
pub(super) trait KeyValues: Send {
    /// The number of ranks, if the launcher tells it by this way only.
    fn size(&self) -> Option<usize> {
        None
    }

    /// Bytes of the longest value.
    fn longest(&self) -> usize;

    /// Puts a value under a key, once. Others see it after a fence. Neither has blanks or semicolons.
    fn put(&mut self, key: &str, value: &str, idle: Idle<'_>) -> Result<()>;

    /// Returns when all processes have called it.
    fn fence(&mut self, idle: Idle<'_>) -> Result<()>;

    /// The value that a rank put under a key.
    fn get(&mut self, from: usize, key: &str, idle: Idle<'_>) -> Result<String>;

    /// This process needs no other any more.
    fn finish(&mut self, idle: Idle<'_>) -> Result<()>;

    /// Asks the launcher to end all processes of the job.
    fn abort(&mut self);

    /// Whether the launcher has gone.
    fn is_gone(&self) -> bool;
}
