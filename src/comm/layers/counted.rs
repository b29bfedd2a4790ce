//! Prints a rank's operations and bytes by kind, in one line of stderr at the end of its body.
//!
//! ```text
//! global-arrays: rank 0 asked its network for flush 1, put 3 (192 bytes), put_signal 12 (640 bytes)
//! ```
//!
//! A rank that is killed, or calls `exit`, prints nothing.

use std::{collections::BTreeMap, fmt};

use super::observed::Observer;
use crate::comm::kit::{mutex::Mutex, say::say};

/// An observer that counts operations and bytes.
#[derive(Debug)]
pub(super) struct Counted {
    rank: usize,
    /// Operations and bytes, by name.
    counts: Mutex<BTreeMap<&'static str, [usize; 2]>>,
}

impl Counted {
    pub(super) fn new(rank: usize) -> Self {
        Counted { rank, counts: Mutex::default() }
    }
}

impl Observer for Counted {
    fn called(&self, name: &'static str, bytes: usize, _text: fmt::Arguments<'_>) {
        let mut counts = self.counts.lock();
        let [operations, all_bytes] = counts.entry(name).or_default();
        (*operations, *all_bytes) = (*operations + 1, *all_bytes + bytes);
    }

    fn ended(&self) {
        let counts = self.counts.lock();
        let words = counts.iter().map(|(name, counts)| match counts {
            [operations, 0] => format!("{name} {operations}"),
            [operations, bytes] => format!("{name} {operations} ({bytes} bytes)"),
        });
        let words: Vec<String> = words.collect();
        let words = if words.is_empty() { "nothing".into() } else { words.join(", ") };
        say(format_args!("rank {} asked its network for {words}", self.rank));
    }
}
