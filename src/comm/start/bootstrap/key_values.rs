//! What launchers of every protocol do for the processes that they start.

use std::{
    fmt::Write,
    io::{self, ErrorKind},
};

use crate::comm::start::launcher::Started;

/// The longest value, in bytes, that every launcher must keep. Longer ones are put in parts.
const LEAST_VALUE: usize = 16;

/// A refusal of a launcher, or of the way to it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refused {
    /// The launcher's end of the connection is closed.
    #[error(
        "its connection is closed; it has ended, or was ended, or an earlier program in place of this one has taken its leave"
    )]
    Gone,
    /// The launcher's own refusal.
    #[error("it answered {0:?}")]
    Said(String),
    #[error("it keeps values of {longest} bytes at most, and those needed have {len}")]
    TooLong { len: usize, longest: usize },
    /// The user's limit.
    #[error(
        "the limit of {0} s (GA_TIMEOUT) is over: not all ranks have come; each process of the launcher must call `run` or `start`"
    )]
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

pub(crate) type Result<T> = std::result::Result<T, Refused>;

/// The work of a caller while it waits; an error ends the wait.
pub(crate) type Idle<'i> = &'i mut dyn FnMut() -> io::Result<()>;

/// Makes the connection of ranks whose launcher a library of the program speaks with.
pub(crate) type Meet = fn(&Started, Idle<'_>) -> Result<Box<dyn KeyValues>>;

/// What a launcher keeps for the processes that it started.
pub(crate) trait KeyValues: Send {
    /// The number of ranks, if the launcher gives it by this way only.
    fn size(&self) -> Option<usize> {
        None
    }

    /// The node of each of `ranks` ranks, if the launcher gives it.
    fn nodes(&mut self, _ranks: usize, _idle: Idle<'_>) -> Result<Option<Vec<u32>>> {
        Ok(None)
    }

    /// Threads of this process that a library made to speak with the launcher.
    fn threads(&self) -> usize {
        0
    }

    /// Bytes of the longest value.
    fn longest(&self) -> usize;

    /// Puts a value under a key, once. Others see it after a fence. Neither has blanks or semicolons.
    fn put(&mut self, key: &str, value: &str, idle: Idle<'_>) -> Result<()>;

    /// Returns when all processes have called it.
    fn fence(&mut self, idle: Idle<'_>) -> Result<()>;

    /// The value that a rank put under a key.
    fn get(&mut self, from: usize, key: &str, idle: Idle<'_>) -> Result<String>;

    /// Takes leave: this process needs no other any more.
    fn finish(&mut self, idle: Idle<'_>) -> Result<()>;

    /// Has the launcher end all processes of the job.
    fn abort(&mut self, why: &str);

    /// Returns true if the launcher has gone.
    fn is_gone(&self) -> bool;

    /// The rank for which a launcher that has gone had to end the job, and the cause, if it gave them. Returns them once.
    fn last_words(&self) -> Option<(usize, String)> {
        None
    }
}

/// Puts words. Their text may be longer than a value of the launcher: the key has the number of parts, and `key-0`, `key-1` ... have the
/// parts.
pub(crate) fn put_words(launcher: &mut dyn KeyValues, key: &str, words: &[u64], idle: Idle<'_>) -> Result<()> {
    let value = words.iter().fold(String::new(), |mut text, word| {
        let _ = write!(text, "{word:x},");
        text
    });
    let longest = launcher.longest();
    if longest < LEAST_VALUE {
        return Err(Refused::TooLong { len: LEAST_VALUE, longest });
    }
    let parts: Vec<&str> = value.as_bytes().chunks(longest).filter_map(|part| std::str::from_utf8(part).ok()).collect();
    launcher.put(key, &parts.len().to_string(), &mut *idle)?;
    for (part, value) in parts.into_iter().enumerate() {
        launcher.put(&format!("{key}-{part}"), value, &mut *idle)?;
    }
    Ok(())
}

/// Gets the words that a rank put.
pub(crate) fn get_words(launcher: &mut dyn KeyValues, from: usize, key: &str, idle: Idle<'_>) -> Result<Vec<u64>> {
    let parts = launcher.get(from, key, &mut *idle)?;
    let parts: usize = parts.parse().map_err(|_| Refused::Said(parts))?;
    let mut value = String::new();
    for part in 0..parts {
        value += &launcher.get(from, &format!("{key}-{part}"), &mut *idle)?;
    }
    let word = |word: &str| u64::from_str_radix(word, 16).map_err(|_| Refused::Said(value.clone()));
    value.split(',').filter(|word| !word.is_empty()).map(word).collect()
}
