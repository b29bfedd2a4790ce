//! Letters of an endpoint, and those that have not left.

use std::{collections::VecDeque, ops::Deref};

use super::{Argument, kind::Named};
use crate::{
    element::Element,
    error::{Error, Result},
    memory::ring::MOST_WORDS,
    message::rings::MOST_BYTES,
};

/// Numbers of letters that are no messages of the program.
pub(super) const REPLY: u16 = u16::MAX;
pub(super) const REPORT: u16 = u16::MAX - 1;
pub(super) const VERDICT: u16 = u16::MAX - 2;

/// A letter's first word: the kind's number, bytes of payload, the number of the call that it is, or 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    pub(super) kind: u16,
    pub(super) bytes: u16,
    pub(super) call: u32,
}

impl Head {
    /// The word, and the arguments behind it.
    pub(super) fn with<A: Argument>(self, arguments: &A) -> Words {
        let mut words = Words::new();
        words.push(&self.word());
        words.push(arguments);
        words
    }

    fn word(self) -> u64 {
        u64::from(self.kind) << 48 | u64::from(self.bytes) << 32 | u64::from(self.call)
    }

    pub(super) fn of(word: u64) -> Self {
        Head { kind: (word >> 48) as u16, bytes: (word >> 32) as u16, call: word as u32 }
    }
}

/// A few words: of a letter before its payload, or of an answer.
#[derive(Clone, Copy)]
pub(super) struct Words {
    words: [u64; MOST_WORDS],
    len: usize,
}

impl Words {
    pub(super) fn new() -> Self {
        Words { words: [0; MOST_WORDS], len: 0 }
    }

    /// `None` if there are too many.
    pub(super) fn of(words: &[u64]) -> Option<Self> {
        let mut all = Self::new();
        all.len = words.len();
        all.words.get_mut(..words.len())?.copy_from_slice(words);
        Some(all)
    }

    /// Writes a value behind those that are there.
    pub(super) fn push<A: Argument>(&mut self, value: &A) {
        let start = self.len;
        self.len += A::WORDS;
        value.write(&mut self.words[start..self.len]);
    }
}

impl Deref for Words {
    type Target = [u64];

    fn deref(&self) -> &[u64] {
        &self.words[..self.len]
    }
}

/// A letter that has not left.
pub(super) struct Leaving {
    pub(super) to: usize,
    pub(super) words: Words,
    pub(super) payload: Box<[u8]>,
}

/// What an endpoint sends.
pub(super) struct Outgoing {
    pub(super) kinds: Vec<Named>,
    pub(super) queue: VecDeque<Leaving>,
    /// Messages of the program, and replies: sent, and handled.
    pub(super) counts: [u64; 2],
}

impl Outgoing {
    pub(super) fn number(&self, operation: &'static str, kind: Named) -> Result<u16> {
        let number = self.kinds.iter().position(|known| *known == kind);
        let unknown = || Error::argument(operation, format_args!("no handler for messages \"{}\" of {}", kind.name, kind.text));
        number.map(|number| number as u16).ok_or_else(unknown)
    }

    pub(super) fn enqueue(&mut self, leaving: Leaving) {
        self.counts[0] += 1;
        self.queue.push_back(leaving);
    }
}

/// The bytes of a payload, if it is not too long.
pub(super) fn payload<'s, T: Element>(operation: &'static str, slice: &'s [T]) -> Result<&'s [u8]> {
    let bytes = bytemuck::cast_slice(slice);
    if bytes.len() <= MOST_BYTES {
        return Ok(bytes);
    }
    Err(Error::argument(operation, format_args!("{} bytes of payload; a message carries up to {MOST_BYTES}", bytes.len())))
}
