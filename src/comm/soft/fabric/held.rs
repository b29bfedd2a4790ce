//! Words that adapters hold while they change them: memory has the new value when they are written back, and no processor may come between.

use std::{collections::BTreeMap, ops::Range};

use super::memory::Pinned;
use crate::{
    comm::{Atomic, kit::mutex::Mutex},
    memory::{atomic_op::changed, kernels},
};

/// The words that the adapters of a fabric hold, by rank and address.
#[derive(Debug, Default)]
pub(super) struct HeldWords(Mutex<BTreeMap<(usize, u64), HeldWord>>);

#[derive(Debug)]
struct HeldWord {
    place: Pinned,
    /// What memory had, and what it is to have.
    found: u64,
    value: u64,
}

impl HeldWords {
    /// Changes a word, which is held from then on. Returns its old value.
    ///
    /// # Safety
    /// `place` is the word, aligned to eight bytes.
    pub(super) unsafe fn change(&self, rank: usize, address: u64, place: Pinned, atomic: Atomic) -> u64 {
        let mut words = self.0.lock();
        let word = words.entry((rank, address)).or_insert_with(|| {
            // SAFETY: the caller's promise.
            let found = unsafe { kernels::load(place.start().cast()) };
            HeldWord { place, found, value: found }
        });
        let old = word.value;
        word.value = changed(atomic.op, old, atomic.operand, atomic.comparand).unwrap_or(old);
        old
    }

    /// Writes back the words of a range.
    ///
    /// # Errors
    /// A processor has written one of them meanwhile: that one stays as it is.
    pub(super) fn write_back(&self, rank: usize, range: Range<u64>) -> Result<(), String> {
        let mut words = self.0.lock();
        let first = range.start.saturating_sub(size_of::<u64>() as u64 - 1);
        let mut written = Ok(());
        while let Some((&of, _)) = words.range((rank, first)..(rank, range.end)).next()
            && let Some(HeldWord { place, found, value }) = words.remove(&of)
        {
            let word = place.start().cast();
            // SAFETY: an aligned word of pinned memory.
            if unsafe { kernels::load(word) } != found {
                let address = of.1;
                written =
                    Err(format!("a processor has written the word at {address:#x} of rank {rank}, which belongs to the adapter"));
            } else if value != found {
                // SAFETY: as above.
                unsafe { kernels::store(word, value) };
            }
        }
        written
    }
}
