//! Where the chunks of an array are.

use std::path::PathBuf;

use super::codecs::Codec;
use crate::portable::portable;

/// Where the chunks of an array are, and what is in their files.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::file) struct Grid {
    /// Of the array.
    pub(in crate::file) folder: PathBuf,
    pub(in crate::file) keys: Keys,
    /// Elements of a chunk along each axis.
    pub(in crate::file) chunk: Vec<usize>,
    pub(in crate::file) codecs: Vec<Codec>,
    pub(in crate::file) shard: Option<Shard>,
    /// The bytes of an element that is in no file.
    pub(in crate::file) fill: Vec<u8>,
    /// Why the elements can be neither read nor written.
    pub(in crate::file) refusal: Option<String>,
}

/// How the files of chunks are named.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::file) struct Keys {
    pub(in crate::file) separator: String,
    /// `c` stands before the numbers, as usual since version 3.
    pub(in crate::file) has_prefix: bool,
    /// The last axis has the first number.
    pub(in crate::file) is_reversed: bool,
    /// The number of the time step stands before those of the axes.
    pub(in crate::file) step: Option<usize>,
}

impl Grid {
    /// Elements of a chunk along each axis, of one that can be used.
    pub(in crate::file) fn chunk(&self) -> Option<&[usize]> {
        self.refusal.is_none().then_some(&self.chunk)
    }

    /// A chunk is not its elements as they are.
    pub(in crate::file) fn is_encoded(&self) -> bool {
        !self.codecs.is_empty() || self.shard.is_some()
    }
}

impl Keys {
    /// The name of a chunk, from its place along each axis.
    pub(in crate::file) fn key(&self, index: &[usize]) -> String {
        let mut parts: Vec<String> = self.step.iter().chain(index).map(usize::to_string).collect();
        if self.is_reversed {
            parts.reverse();
        }
        if self.has_prefix {
            parts.insert(0, "c".into());
        } else if parts.is_empty() {
            parts.push("0".into());
        }
        parts.join(&self.separator)
    }
}

/// Chunks that share a file.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::file) struct Shard {
    /// Chunks along each axis.
    pub(in crate::file) chunks: Vec<usize>,
    /// The table of chunks is before them, not after them.
    pub(in crate::file) index_is_first: bool,
    pub(in crate::file) index_codecs: Vec<Codec>,
}

portable!(Keys { separator, has_prefix, is_reversed, step });
portable!(Shard { chunks, index_is_first, index_codecs });
portable!(Grid { folder, keys, chunk, codecs, shard, fill, refusal });
