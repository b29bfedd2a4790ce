//! The words in which a rank publishes a wait.

use std::time::Duration;

/// A wait of a rank that has lasted, as others see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PublishedWait {
    /// The rank that has to act before it can end; the waiting rank itself if any rank, or another of its threads, may do what it
    /// waits for.
    pub awaited: usize,
    /// Tells the waits of a rank apart.
    pub number: u32,
    /// Grows with every look that did not find what is waited for.
    pub looks: u64,
    /// It was so at this time or later, by the clock of the rank that reads it.
    pub at: Duration,
}

/// The half of a wait's word that names the awaited rank.
const AWAITED: u64 = u32::MAX as u64;

impl PublishedWait {
    /// From the words in which a rank publishes it: its number in the upper half of the first, the awaited rank plus one in the lower one.
    pub(crate) fn of_words(wait: u64, looks: u64, ranks: usize, at: Duration) -> Option<Self> {
        let awaited = ((wait & AWAITED) as usize).checked_sub(1).filter(|&awaited| awaited < ranks)?;
        Some(PublishedWait { awaited, number: (wait >> 32) as u32, looks, at })
    }

    /// The word of a wait behind one that was published before; the same if it is the same wait. Without an awaited rank, it is over.
    pub(crate) fn word_after(last: u64, awaited: Option<usize>) -> u64 {
        let code = awaited.map_or(0, |rank| rank as u64 + 1);
        if code == last & AWAITED { last } else { (last >> 32).wrapping_add(1) << 32 | code }
    }

    /// Returns true if a word names a wait.
    pub(crate) fn is_wait(word: u64) -> bool {
        word & AWAITED != 0
    }
}
