//! Memory from which other members fetch what is too long for letters.
//!
//! It is four *parts* beside the ring of each member, and a word for each part. A sender copies data into a free part, sets its word, and tells the
//! receiver by a letter, which gets the data and clears the word. So a part is the sender's while its word is 0, and the receiver's else. Who finds
//! no part free sends letters: nobody waits for a part, and one that a member never fetches is only not used again.

use crate::{
    comm::{
        SignalOp, SignalWord,
        engine::{Engine, Label},
    },
    error::Result,
    memory::segments::Segment,
};

/// Bytes of a part.
pub(super) const PART: usize = 1 << 16;
pub(super) const PARTS: usize = 4;
/// Of the words, which come first: a line.
const WORDS: usize = 64;
const FREE: u32 = 0;
const FULL: u32 = 1;

/// A member's own.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stage {
    near: Segment,
    /// In the segment of each member.
    offset: usize,
}

impl Stage {
    pub(super) const BYTES: usize = WORDS + PARTS * PART;

    /// With all parts free.
    pub(super) fn new(near: Segment, offset: usize) -> Self {
        near.part::<u64>(offset, WORDS / size_of::<u64>()).fill(u64::from(FREE));
        Stage { near, offset }
    }

    fn word(self, part: usize) -> usize {
        self.offset + part * size_of::<u64>()
    }

    fn data(self, part: usize) -> usize {
        self.offset + WORDS + part * PART
    }

    /// Takes back a part of which nobody was told.
    pub(super) fn release(self, part: usize) {
        self.near.word(self.word(part)).store(FREE);
    }

    /// Copies bytes into a free part, if there is one, and returns its number.
    pub(super) fn fill(self, bytes: &[u8]) -> Option<usize> {
        let part = (0..PARTS).find(|&part| self.near.word(self.word(part)).load() == FREE)?;
        self.near.part(self.data(part), bytes.len()).write_slice(0, bytes);
        self.near.word(self.word(part)).store(FULL);
        Some(part)
    }

    /// Gets what a rank has in a part, and frees that. After an error the job is over: the message could not be put together.
    pub(super) fn fetch(self, engine: &Engine, rank: usize, part: usize, bytes: &mut [u8], label: &Label) -> Result<()> {
        let signal = SignalWord { offset: self.word(part), op: SignalOp::Set, value: FREE, patient: true };
        let fetched = engine.get_slices(std::iter::once((rank, self.data(part), bytes)), label);
        let freed = fetched.and_then(|()| engine.put_message(rank, self.word(part), &[], signal, label));
        freed.inspect_err(|error| {
            engine.conduit().end(&format!("could not fetch a message of rank {rank}: {error}"));
        })
    }
}
