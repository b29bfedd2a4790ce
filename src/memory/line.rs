//! A line in a segment that one rank writes and another reads: a word to wait on and a few words beside it.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::word::WaitWord;

/// Words that travel with a line.
pub(crate) const WORDS: usize = 5;

/// One writer at a time; the word is raised last. Zeros are the initial state.
#[derive(Debug, Default)]
#[repr(C, align(128))]
pub(crate) struct Line {
    pub(crate) word: WaitWord,
    words: [AtomicU64; WORDS],
}

/// What goes over the wire in front of the word: the words as bytes.
pub(crate) const WORDS_OFFSET: usize = 8;

impl Line {
    /// The words; read them after the word was seen.
    pub(crate) fn read(&self) -> [u64; WORDS] {
        self.words.each_ref().map(|word| word.load(Ordering::Relaxed))
    }

    /// Writes the words, then raises the word and wakes who waits.
    #[inline]
    pub(crate) fn post(&self, words: [u64; WORDS], sequence: u32) {
        for (to, word) in self.words.iter().zip(words) {
            to.store(word, Ordering::Relaxed);
        }
        self.word.store(sequence);
        self.word.wake();
    }
}

/// Where members meet when they outnumber the cores: each adds what it brings, the last one publishes the result.
///
/// All combinations have zero as their neutral element, so that fresh memory is ready. Two of these serve alternating
/// agreements, and the one who publishes clears it for the next but one.
#[derive(Debug, Default)]
#[repr(C, align(128))]
pub(crate) struct Meeting {
    /// Raised when the result stands.
    pub(crate) phase: WaitWord,
    arrived: AtomicU32,
    gathered: [AtomicU64; WORDS],
    result: [AtomicU64; WORDS],
}

/// How a word of a meeting is combined.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Combine {
    Max,
    Or,
    Sum,
}

impl Meeting {
    /// Adds a member's words; true for the last of `members`, who must then publish.
    pub(crate) fn arrive(&self, words: [u64; WORDS], how: [Combine; WORDS], members: usize) -> bool {
        for ((to, word), how) in self.gathered.iter().zip(words).zip(how) {
            match how {
                Combine::Max => to.fetch_max(word, Ordering::Relaxed),
                Combine::Or => to.fetch_or(word, Ordering::Relaxed),
                Combine::Sum => to.fetch_add(word, Ordering::Relaxed),
            };
        }
        // AcqRel: the last one sees what all others gathered and wrote before.
        self.arrived.fetch_add(1, Ordering::AcqRel) as usize + 1 == members
    }

    /// Publishes the result and wakes everyone at once.
    pub(crate) fn publish(&self, sequence: u32) {
        for (to, from) in self.result.iter().zip(&self.gathered) {
            to.store(from.swap(0, Ordering::Relaxed), Ordering::Relaxed);
        }
        self.arrived.store(0, Ordering::Relaxed);
        self.phase.store(sequence);
        self.phase.wake();
    }

    /// The published words.
    pub(crate) fn result(&self) -> [u64; WORDS] {
        self.result.each_ref().map(|word| word.load(Ordering::Relaxed))
    }
}
