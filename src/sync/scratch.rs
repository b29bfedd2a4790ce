//! A group's own memory in each member's segment.
//!
//! ```text
//!  | lines, even | lines, odd | meeting, even | meeting, odd | box 0 | box 1 | ... | box of my own |
//! ```
//!
//! *Lines* carry an agreement. Two sets alternate, so agreement n + 2 reuses the set of n. Its writer has left n + 1, which all members
//! entered only after they had read the lines of n. *Boxes* carry data, [`chunk`](Scratch::chunk) bytes each, inside one collective,
//! between two agreements. The sender of a second piece waits until the reader has emptied the box and said so.
//!
//! Agreement numbers wrap around. A line is written in every second agreement, so it always holds the number of two agreements before. A
//! box may stay idle, so its line holds [`FULL`] instead, and its reader empties it before the next agreement.

use crate::{
    comm::engine::{Engine, Label, Waiter},
    error::Result,
    memory::{
        line::{Line, Meeting, WORDS, WORDS_OFFSET},
        segments::Segments,
        word::WaitWord,
    },
};

/// In the line of an empty box; the initial state.
pub(super) const EMPTY: u32 = 0;
/// In the line of a box whose data are there, or more than it.
pub(super) const FULL: u32 = 1;

/// Layout of a group's scratch memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scratch {
    offset: usize,
    rounds: usize,
    chunk: usize,
}

/// Address of something in a member's segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) member: usize,
    pub(crate) rank: usize,
    pub(crate) offset: usize,
}

impl Scratch {
    pub(crate) fn new(offset: usize, members: usize) -> Self {
        // Small groups can afford large boxes; 4096 ranks of one process must start.
        let chunk = if members <= 64 { 64 << 10 } else { 4 << 10 };
        Scratch { offset, rounds: rounds(members), chunk }
    }

    pub(crate) fn bytes(members: usize) -> usize {
        let scratch = Scratch::new(0, members);
        scratch.box_offset(scratch.boxes())
    }

    /// Where it begins in every member's segment.
    pub(crate) fn offset(&self) -> usize {
        self.offset
    }

    /// Bytes of data that fit into a box.
    pub(crate) fn chunk(&self) -> usize {
        self.chunk
    }

    /// Rounds of an agreement.
    pub(crate) fn rounds(&self) -> usize {
        self.rounds
    }

    /// Boxes: one for each round, one for each of the two folds, and one of a member's own.
    fn boxes(&self) -> usize {
        self.rounds + 3
    }

    /// The box from which others read what this member offers.
    pub(crate) fn own_box(&self) -> usize {
        self.boxes() - 1
    }

    /// Lines of a set: of the rounds, of the two folds, of the levels. A tree may have a level more than there are rounds.
    fn lines(&self) -> usize {
        self.level(self.rounds + 1)
    }

    /// The line on which a message of a level of a node's tree arrives.
    pub(crate) fn level(&self, level: usize) -> usize {
        self.rounds + 2 + level
    }

    pub(crate) fn line(&self, set: u32, index: usize) -> usize {
        self.offset + (set as usize % 2 * self.lines() + index) * size_of::<Line>()
    }

    pub(crate) fn meeting(&self, set: u32) -> usize {
        self.offset + 2 * self.lines() * size_of::<Line>() + set as usize % 2 * size_of::<Meeting>()
    }

    fn box_offset(&self, index: usize) -> usize {
        let front = 2 * self.lines() * size_of::<Line>() + 2 * size_of::<Meeting>();
        self.offset + front + index * (size_of::<Line>() + self.chunk)
    }

    /// The line in front of a box, and the data behind it.
    pub(crate) fn letter_box(&self, index: usize) -> (usize, usize) {
        let line = self.box_offset(index);
        (line, line + size_of::<Line>())
    }
}

/// Rounds of recursive doubling among the largest power of two members.
pub(crate) fn rounds(members: usize) -> usize {
    members.max(1).ilog2() as usize
}

/// Writes a line of another member and wakes it.
pub(crate) fn post(
    engine: &Engine,
    segments: &Segments,
    to: Place,
    words: [u64; WORDS],
    sequence: u32,
    label: impl Fn() -> Label,
) -> Result<()> {
    if let Some(line) = segments.line(to.member, to.offset) {
        line.post(words, sequence);
        return Ok(());
    }
    let mut bytes = [0; WORDS * 8];
    for (to, word) in bytes.chunks_exact_mut(8).zip(words) {
        to.copy_from_slice(&word.to_ne_bytes());
    }
    engine.put_and_set(to.rank, to.offset + WORDS_OFFSET, &bytes, (to.offset, sequence), &label())
}

/// Waits until a line of this rank's own has reached a sequence number.
#[inline]
pub(crate) fn await_word(engine: &Engine, word: &WaitWord, sequence: u32, waiter: &dyn Waiter) -> Result<()> {
    engine.wait_word(word, waiter, |value| value == sequence)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What an agreement uses, with its length: all lines, and the meeting.
    fn used(scratch: &Scratch, sequence: u32) -> Vec<(usize, usize)> {
        let lines = (0..scratch.lines()).map(|index| (scratch.line(sequence, index), size_of::<Line>()));
        lines.chain([(scratch.meeting(sequence), size_of::<Meeting>())]).collect()
    }

    #[test]
    fn two_agreements_in_a_row_share_nothing_and_the_third_is_the_first() {
        for members in (1..=70).chain([1000, 4096]) {
            let scratch = Scratch::new(4096, members);
            let boxes = (0..scratch.boxes()).map(|index| {
                let (line, data) = scratch.letter_box(index);
                assert_eq!(data, line + size_of::<Line>());
                (line, size_of::<Line>() + scratch.chunk())
            });
            let mut all: Vec<_> = used(&scratch, 6).into_iter().chain(used(&scratch, 7)).chain(boxes).collect();
            assert_eq!(used(&scratch, u32::MAX - 1), used(&scratch, 6));
            assert_eq!(used(&scratch, u32::MAX), used(&scratch, 7));
            all.sort_unstable();
            assert!(all.iter().all(|(at, _)| at % align_of::<Line>() == 0));
            assert!(all.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0), "{members} members: {all:?}");
            let (first, last) = (all[0], all[all.len() - 1]);
            assert!(first.0 >= scratch.offset() && last.0 + last.1 <= scratch.offset() + Scratch::bytes(members));
        }
    }

    #[test]
    fn there_is_a_line_for_each_round_fold_and_level() {
        for members in 1..=70 {
            let scratch = Scratch::new(0, members);
            let (rounds, levels) = (scratch.rounds(), (members - 1).checked_ilog2().map_or(0, |level| level as usize + 1));
            assert!(1 << rounds <= members && members < 2 << rounds);
            // The rounds, and then the two folds, come before the levels.
            assert!(scratch.level(0) >= rounds + 2 && scratch.level(levels) <= scratch.lines(), "{members} members");
            assert!(scratch.own_box() > rounds + 1 && scratch.own_box() < scratch.boxes());
        }
    }
}
