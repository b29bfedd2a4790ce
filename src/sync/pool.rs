//! Memory of dropped groups.
//!
//! Dropping a group communicates nothing, and another member may still write into this rank's part of its memory. So nothing is
//! freed at that time. The creation of the next group with the same list of ranks carries a word: for each of the first 64 groups of
//! the list, a bit that says whether this member still has it. Memory of a group that no member has is reused, and the blocks of its
//! arrays are freed. A member fences before it sends the word, so its puts into them are complete.
//! Members create groups of one list in the same order, so the entries are the same on all of them.

use std::{collections::HashMap, sync::Arc};

/// Entries that one word can describe.
const TOLD: usize = 64;

/// The groups of each list of ranks in the order of their creation.
#[derive(Debug, Default)]
pub(crate) struct Pool(HashMap<Arc<[usize]>, Vec<Entry>>);

#[derive(Debug)]
struct Entry {
    /// Where its scratch memory lies in every member's segment.
    offset: usize,
    /// This member has not dropped it.
    used: bool,
    /// What was made on it and is dropped with it.
    blocks: Vec<usize>,
}

impl Pool {
    /// The groups of a list that this member still has.
    pub(super) fn still_used(&self, ranks: &Arc<[usize]>) -> u64 {
        let entries = self.0.get(ranks).into_iter().flatten().take(TOLD);
        entries.enumerate().filter(|(_, entry)| entry.used).fold(0, |mask, (k, _)| mask | 1 << k)
    }

    /// Takes the first entry that no member uses, given the union of all members' words: its offset and the blocks to free.
    pub(super) fn reuse(&mut self, ranks: &Arc<[usize]>, used: u64) -> Option<(usize, Vec<usize>)> {
        let entries = self.0.get_mut(ranks)?.iter_mut().take(TOLD);
        let (_, entry) = entries.enumerate().find(|(k, _)| used >> k & 1 == 0)?;
        entry.used = true;
        Some((entry.offset, std::mem::take(&mut entry.blocks)))
    }

    /// A group in new memory.
    pub(super) fn add(&mut self, ranks: &Arc<[usize]>, offset: usize) {
        self.0.entry(ranks.clone()).or_default().push(Entry { offset, used: true, blocks: Vec::new() });
    }

    /// This member dropped a group and everything that was made on it.
    pub(super) fn give_up(&mut self, ranks: &Arc<[usize]>, offset: usize, blocks: Vec<usize>) {
        if let Some(entry) = self.0.get_mut(ranks).into_iter().flatten().find(|entry| entry.offset == offset) {
            entry.used = false;
            entry.blocks = blocks;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_used_again_when_all_members_dropped_it_and_not_before() {
        let ranks: Arc<[usize]> = Arc::new([3, 1]);
        let mut members = [Pool::default(), Pool::default()];
        members.iter_mut().for_each(|pool| pool.add(&ranks, 640));
        members[0].give_up(&ranks, 640, vec![128]);
        let used = members[0].still_used(&ranks) | members[1].still_used(&ranks);
        assert!(members.iter_mut().all(|pool| pool.reuse(&ranks, used).is_none()));
        members[1].give_up(&ranks, 640, vec![128]);
        let used = members[0].still_used(&ranks) | members[1].still_used(&ranks);
        assert!(members.iter_mut().all(|pool| pool.reuse(&ranks, used) == Some((640, vec![128]))));
        assert!(members.iter().all(|pool| pool.still_used(&ranks) == 1));
    }
}
