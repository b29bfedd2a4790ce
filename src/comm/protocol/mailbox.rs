//! Mailboxes: rings of words that one rank writes into the memory of another, in any order (ARMCI-Gemini §III-C).
//!
//! Each word is half data and half a number, that of the lap around the ring. A word that the reader has not seen bears an older number, so
//! a frame is there when all of its words are, whatever came first. The reader counts the words that it has taken; the writer reads that count
//! when it needs room.
//!
//! A frame is a word with its length in bytes, and its bytes, four a word.

/// Bytes of data in a word.
pub(in crate::comm) const HALF: usize = 4;

/// Words of a frame.
pub(in crate::comm) fn words_of(len: usize) -> usize {
    1 + len.div_ceil(HALF)
}

/// A half word, and the number of its lap.
pub(in crate::comm) fn numbered(lap: u32, half: u32) -> u64 {
    u64::from(lap) << 32 | u64::from(half)
}

/// The half of a word that bears the number of a lap.
pub(in crate::comm) fn half_of(lap: u32, word: u64) -> Option<u32> {
    ((word >> 32) as u32 == lap).then_some(word as u32)
}

/// The place in a ring of the word of a number, and its lap. The first lap is 1: memory that nobody has written bears none.
pub(in crate::comm) fn place(number: u64, words: usize) -> (usize, u32) {
    let words = words as u64;
    ((number % words) as usize, (number / words + 1) as u32)
}

/// The end that writes.
#[derive(Clone, Copy, Debug)]
pub(in crate::comm) struct MailboxWriter {
    words: usize,
    written: u64,
    /// Words that the reader has taken, as far as is known.
    taken: u64,
}

impl MailboxWriter {
    /// That of an empty ring.
    pub(in crate::comm) fn new(words: usize) -> Self {
        MailboxWriter { words, written: 0, taken: 0 }
    }

    /// Words that may be written.
    pub(in crate::comm) fn room(&self) -> usize {
        self.words - (self.written - self.taken) as usize
    }

    /// The reader says that it has taken this number of words.
    pub(in crate::comm) fn has_taken(&mut self, taken: u64) {
        if (self.taken..=self.written).contains(&taken) {
            self.taken = taken;
        }
    }

    /// Writes a frame, for which there is room: hands out its words, and returns the place of the first.
    pub(in crate::comm) fn write(&mut self, frame: &[u8], mut each: impl FnMut(u64)) -> usize {
        let (first, words) = (self.written, self.words);
        let mut next = |half| {
            each(numbered(place(self.written, words).1, half));
            self.written += 1;
        };
        next(frame.len() as u32);
        for bytes in frame.chunks(HALF) {
            let mut half = [0; HALF];
            half[..bytes.len()].copy_from_slice(bytes);
            next(u32::from_le_bytes(half));
        }
        place(first, words).0
    }
}

/// The end that reads.
#[derive(Clone, Debug, Default)]
pub(in crate::comm) struct MailboxReader {
    words: usize,
    taken: u64,
    /// Bytes of the frame that comes, if its first word is there; those that are.
    len: Option<usize>,
    bytes: Vec<u8>,
}

impl MailboxReader {
    /// That of an empty ring, whose frames have at most `longest` bytes.
    pub(in crate::comm) fn new(words: usize, longest: usize) -> Self {
        MailboxReader { words, taken: 0, len: None, bytes: Vec::with_capacity(longest.next_multiple_of(HALF)) }
    }

    /// Words that were taken.
    pub(in crate::comm) fn taken(&self) -> u64 {
        self.taken
    }

    /// Takes what is there, up to the end of a frame. Returns true if a whole frame is there, which [`frame`](Self::frame) hands out.
    pub(in crate::comm) fn look(&mut self, word: impl Fn(usize) -> u64) -> bool {
        while !self.is_whole() {
            let (at, lap) = place(self.taken, self.words);
            let Some(half) = half_of(lap, word(at)) else { return false };
            self.taken += 1;
            match self.len {
                None => self.len = Some(half as usize),
                Some(_) => self.bytes.extend(half.to_le_bytes()),
            }
        }
        true
    }

    fn is_whole(&self) -> bool {
        self.len.is_some_and(|len| self.bytes.len() >= len)
    }

    /// The frame that is there, and its end.
    pub(in crate::comm) fn frame(&mut self, each: impl FnOnce(&[u8])) {
        let len = self.len.take().unwrap_or_default();
        each(&self.bytes[..len]);
        self.bytes.clear();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::comm::kit::random::Random;

    /// Frames through a ring whose words arrive in any order, and whose reader is slow, from a seed.
    fn frames_arrive(seed: u64) {
        const WORDS: usize = 16;
        let mut random = Random::new(seed);
        let (mut writer, mut reader) = (MailboxWriter::new(WORDS), MailboxReader::new(WORDS, 40));
        let (mut ring, mut under_way) = ([0_u64; WORDS], Vec::new());
        let (mut sent, mut received) = (Vec::new(), Vec::new());
        while received.len() < 40 {
            match random.below(4) {
                0 if sent.len() < 40 => {
                    let frame: Vec<u8> = (0..random.below(41)).map(|_| random.below(256) as u8).collect();
                    if words_of(frame.len()) <= writer.room() {
                        let mut words = Vec::new();
                        let first = writer.write(&frame, |word| words.push(word));
                        under_way.extend(words.into_iter().enumerate().map(|(k, word)| ((first + k) % WORDS, word)));
                        sent.push(frame);
                    }
                }
                1 => writer.has_taken(reader.taken()),
                2 if !under_way.is_empty() => {
                    let (at, word) = under_way.swap_remove(random.below(under_way.len()));
                    assert!(ring[at] >> 32 < word >> 32, "seed {seed}: a word overtook one of a later lap");
                    ring[at] = word;
                }
                _ => {
                    if reader.look(|at| ring[at]) {
                        reader.frame(|frame| received.push(frame.to_vec()));
                    }
                }
            }
        }
        assert_eq!(sent, received, "seed {seed}");
    }

    #[test]
    fn frames_arrive_whole_and_in_their_order() {
        let seeds = if std::env::var("GA_TEST_LONG").is_ok_and(|value| value == "1") { 100_000 } else { 2000 };
        (0..seeds).for_each(frames_arrive);
    }

    #[test]
    fn a_count_from_the_past_or_the_future_frees_nothing() {
        let mut writer = MailboxWriter::new(8);
        writer.write(&[1; 8], |_| ());
        writer.has_taken(4);
        assert_eq!(writer.room(), 5);
        writer.has_taken(3);
        writer.has_taken(2);
        assert_eq!(writer.room(), 8);
    }
}
