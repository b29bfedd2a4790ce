//! Operations and bytes of a rank by kind, in one line of stderr when its body has ended.
//!
//! ```text
//! global-arrays: rank 0 asked its network for put 3 (192 bytes), put_signal 12 (640 bytes), flush 1
//! ```
//!
//! A rank that is killed, or calls `exit`, prints nothing.

use std::{
    fmt,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use super::observed::{Kind, NAMES, Observer, say};

/// See the module's essay.
#[derive(Debug)]
pub(super) struct Counted {
    rank: usize,
    /// Operations and bytes of each kind.
    counts: [[AtomicU64; 2]; NAMES.len()],
}

impl Counted {
    pub(super) fn new(rank: usize) -> Self {
        Counted { rank, counts: Default::default() }
    }
}

impl Observer for Counted {
    fn called(&self, kind: Kind, bytes: usize, _text: fmt::Arguments<'_>) {
        let [operations, all_bytes] = &self.counts[kind as usize];
        operations.fetch_add(1, Relaxed);
        all_bytes.fetch_add(bytes as u64, Relaxed);
    }

    fn ended(&self) {
        let counts = self.counts.each_ref().map(|counts| counts.each_ref().map(|count| count.load(Relaxed)));
        let words = NAMES.iter().zip(counts).filter_map(|(name, counts)| match counts {
            [0, _] => None,
            [operations, 0] => Some(format!("{name} {operations}")),
            [operations, bytes] => Some(format!("{name} {operations} ({bytes} bytes)")),
        });
        let words: Vec<String> = words.collect();
        let words = if words.is_empty() { "nothing".into() } else { words.join(", ") };
        say(format_args!("rank {} asked its network for {words}", self.rank));
    }
}
