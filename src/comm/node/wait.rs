//! How a rank waits: it spins while that can pay, yields a little, then sleeps.
//!
//! Spinning pays only while every rank has a core. Measured with 8 ranks on 2 cores: a barrier that yields a few times and then sleeps
//! takes 10 µs; one that spins for 20 µs first takes 160 µs.

use std::time::Duration;

use crate::memory::word::WaitWord;

/// How long a rank tries before it sleeps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// Looks without a pause.
    looks: u32,
    /// Looks with the processor's pause between them.
    pauses: u32,
    /// Yields to the scheduler.
    yields: u32,
    /// The longest sleep without a look: to see whether the job was ended, and in case a wake-up was missed.
    slice: Duration,
}

/// Slices of a few ranks, and of very many.
const SLICES: [Duration; 2] = [Duration::from_millis(10), Duration::from_millis(250)];

/// Between them, a slice has this much time for each rank of the machine. To look up takes some 5 µs, so sleepers of any number
/// take a tenth of a core together; with slices of 10 ms, 8192 of them would take four cores.
const SLICE_FOR_EACH: Duration = Duration::from_micros(50);

impl Patience {
    /// For `ranks` ranks that share `cores` cores.
    pub(crate) fn new(ranks: usize, cores: usize) -> Self {
        let [few, many] = SLICES;
        let slice = SLICE_FOR_EACH.saturating_mul(ranks as u32).clamp(few, many);
        if ranks <= cores {
            // 300 looks without a pause last about 0.1 µs, as long as a barrier of ranks that arrive together; 2,000 pauses
            // about 40 µs, as long as a sleep and a wake-up.
            Patience { looks: 300, pauses: 2_000, yields: 4, slice }
        } else {
            Patience { looks: 0, pauses: 0, yields: 4, slice }
        }
    }

    /// Waits until the word differs from `seen`, at most `limit` or a slice. May return early.
    #[inline]
    pub(crate) fn wait(self, word: &WaitWord, seen: u32, limit: Duration) {
        for _ in 0..self.looks {
            if word.load() != seen {
                return;
            }
        }
        self.wait_longer(word, seen, limit);
    }

    #[cold]
    fn wait_longer(self, word: &WaitWord, seen: u32, limit: Duration) {
        for _ in 0..self.pauses {
            if word.load() != seen {
                return;
            }
            std::hint::spin_loop();
        }
        for _ in 0..self.yields {
            if word.load() != seen {
                return;
            }
            std::thread::yield_now();
        }
        word.sleep(seen, limit.min(self.slice));
    }
}
