//! Agreement of members on what they do with files.
//!
//! One member may see a file that another does not. So every step ends in an agreement, and one member's failure is the error of all.

use std::{io, path::Path};

use crate::{
    error::{Error, Result},
    portable::Portable,
    sync::{Group, Op, fingerprint, text_fingerprint},
};

/// What can happen to one member.
#[derive(Debug)]
pub(super) enum Failure {
    /// The system refused.
    System(io::Error),
    /// The file is not what it should be.
    Format(String),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Failure::System(error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::System(io::Error::other(error))
    }
}

/// One collective on one file.
#[derive(Debug)]
pub(super) struct Visit<'a> {
    pub(super) group: &'a Group,
    pub(super) operation: &'static str,
    pub(super) path: &'a Path,
}

impl Visit<'_> {
    /// Waits for all members; the failure of the first that has one is the error of all.
    pub(super) fn agree(&self, mine: Result<(), Failure>) -> Result<()> {
        let (size, me) = (self.group.size(), self.group.member());
        let call = fingerprint(&[text_fingerprint(self.operation), text_fingerprint(&self.path.to_string_lossy())]);
        let first = if mine.is_err() { size - me } else { 0 };
        let first = self.group.agree_values(Op::File, call, 0, 0, first as u64)?.max as usize;
        if first == 0 {
            return Ok(());
        }
        let mut text = match &mine {
            Ok(()) => String::new(),
            Err(Failure::System(error)) => format!("s{error}"),
            Err(Failure::Format(what)) => format!("f{what}"),
        }
        .into_bytes();
        self.group.broadcast_bytes(size - first, &mut text)?;
        let text = String::from_utf8_lossy(&text);
        match (mine, text.strip_prefix('s')) {
            // Whose failure it is keeps the system's own error.
            (Err(Failure::System(source)), Some(_)) if me == size - first => Err(self.system(source)),
            (_, Some(text)) => Err(self.system(io::Error::other(text.to_owned()))),
            (_, None) => Err(self.format(text.strip_prefix('f').unwrap_or(&text).to_owned())),
        }
    }

    /// What member 0 finds, on all.
    pub(super) fn first<R: Portable>(&self, f: impl FnOnce() -> Result<R, Failure>) -> Result<R> {
        let found = if self.group.member() == 0 { f().map(Some) } else { Ok(None) };
        let (found, failed) = match found {
            Ok(found) => (found, Ok(())),
            Err(failure) => (None, Err(failure)),
        };
        self.agree(failed)?;
        self.group.from_member(0, || found.ok_or_else(|| self.system(io::Error::other("nothing was found"))))
    }

    /// A failure that all members have alike, or what each has.
    pub(super) fn agreed<R>(&self, mine: Result<R, Failure>) -> Result<R> {
        mine.map_err(|failure| match failure {
            Failure::System(source) => self.system(source),
            Failure::Format(what) => self.format(what),
        })
    }

    pub(super) fn system(&self, source: io::Error) -> Error {
        Error::File { operation: self.operation.into(), path: self.path.to_owned(), source }
    }

    pub(super) fn format(&self, what: String) -> Error {
        Error::Format { path: self.path.to_owned(), what, operation: self.operation.into() }
    }
}
