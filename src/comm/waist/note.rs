//! What supervisors of different machines say to each other, as words and a text of a record.

/// A note. Which there are, and what they prove, is said in `supervisor`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    pub what: What,
    pub words: [u64; WORDS],
    pub text: String,
}

/// Words of a note.
const WORDS: usize = 7;

/// The longest text of a note, in bytes; it fits any frame.
const LONGEST_TEXT: usize = 400;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum What {
    /// The time when it was asked, by the clock of the rank that asks.
    Ask = 1,
    /// That time, place (two words), wait, looks, a word of two bits, the rank; text: what it waits for. Lowest bit: the rank has
    /// come to its end. Next bit: all of its machine have.
    Tell = 2,
    /// Number of the wave.
    Wave = 3,
    /// Number of the wave, stage; text: each rank and what it waits for.
    AllWait = 4,
    /// Are you there?
    Beat = 5,
    /// The answer.
    Alive = 6,
    /// The time of `Ask`, another rank, how long ago (ns) it was so and whether that rank has come to its end in the lowest bit, its
    /// wait ([`UNKNOWN`] if it has not answered yet), looks, place (two words); text: what it waits for.
    Told = 7,
}

impl What {
    fn of(code: u64) -> Option<Self> {
        let all = [What::Ask, What::Tell, What::Wave, What::AllWait, What::Beat, What::Alive, What::Told];
        all.into_iter().find(|what| *what as u64 == code)
    }
}

impl Note {
    /// As words and text of a record.
    pub(crate) fn record(&self) -> ([u64; 1 + WORDS], &[u8]) {
        let words = std::array::from_fn(|k| if k == 0 { self.what as u64 } else { self.words[k - 1] });
        (words, self.text.as_bytes())
    }

    /// From words and text of a record.
    pub(crate) fn of_record([what, words @ ..]: [u64; 1 + WORDS], text: &[u8]) -> Option<Self> {
        let what = What::of(what)?;
        Some(Note { what, words, text: String::from_utf8_lossy(text).into_owned() })
    }

    /// A note that says nothing more.
    pub(crate) fn bare(what: What) -> Self {
        Note::new(what, &[], String::new())
    }

    pub(in crate::comm) fn new(what: What, words: &[u64], text: String) -> Self {
        let mut all = [0; WORDS];
        all[..words.len()].copy_from_slice(words);
        Note { what, words: all, text }
    }
}

/// In the place of a wait, of a rank that was asked and has not answered. No wait is awaited from so high a rank.
pub(in crate::comm) const UNKNOWN: u64 = u64::MAX;

/// Stands between the texts of an answer.
const BETWEEN: char = '\u{1f}';

/// The text of a call and the object of a wait, in one.
pub(in crate::comm) fn texts(call: &str, object: &str) -> String {
    cut(format!("{call}{BETWEEN}{object}"))
}

/// As much of a text as a note carries.
pub(in crate::comm) fn cut(mut text: String) -> String {
    let end = (0..=LONGEST_TEXT.min(text.len())).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
    text.truncate(end);
    text
}

/// The two again.
pub(in crate::comm) fn parts(texts: &str) -> [String; 2] {
    let (call, object) = texts.split_once(BETWEEN).unwrap_or_default();
    [call, object].map(str::to_owned)
}
