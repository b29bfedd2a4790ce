//! The blocks that a group owns, and those of them that its members have dropped.
//!
//! Dropping an array says nothing to anybody. Each creation in the group carries one word with it: for a window of 64 of the live
//! blocks, a bit that this member has not dropped it yet. What all have dropped is freed. The window turns over all live blocks
//! from one creation to the next, on every member alike, because the list changes by agreement only.

/// Blocks of a window.
const WINDOW: usize = 64;

/// Live blocks of a group in the order of their creation.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    live: Vec<Block>,
    /// Where the window begins.
    start: usize,
}

#[derive(Debug)]
struct Block {
    offset: usize,
    dropped: bool,
}

impl Registry {
    /// A block that was created on all members.
    pub(crate) fn add(&mut self, offset: usize) {
        self.live.push(Block { offset, dropped: false });
    }

    /// A block that all members give up now.
    pub(crate) fn remove(&mut self, offset: usize) {
        self.live.retain(|block| block.offset != offset);
    }

    /// This member has no use for a block any more.
    pub(crate) fn drop_block(&mut self, offset: usize) {
        if let Some(block) = self.live.iter_mut().find(|block| block.offset == offset) {
            block.dropped = true;
        }
    }

    /// All blocks, given up because the group itself is.
    pub(crate) fn take_all(&mut self) -> Vec<usize> {
        self.start = 0;
        self.live.drain(..).map(|block| block.offset).collect()
    }

    fn window(&self) -> impl Iterator<Item = usize> + '_ {
        let live = self.live.len();
        (0..live.min(WINDOW)).map(move |k| (self.start + k) % live)
    }

    /// The blocks of the window that this member still has.
    pub(crate) fn still_used(&self) -> u64 {
        self.window().enumerate().filter(|&(_, at)| !self.live[at].dropped).fold(0, |mask, (k, _)| mask | 1 << k)
    }

    /// Takes out what no member uses, given the union of all members' words; turns the window.
    pub(crate) fn agree(&mut self, used: u64) -> Vec<usize> {
        let free: Vec<usize> =
            self.window().enumerate().filter(|&(k, _)| used >> k & 1 == 0).map(|(_, at)| self.live[at].offset).collect();
        self.start = if self.live.is_empty() { 0 } else { (self.start + WINDOW) % self.live.len() };
        self.live.retain(|block| !free.contains(&block.offset));
        if self.start >= self.live.len() {
            self.start = 0;
        }
        free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_freed_when_all_members_dropped_it_and_not_before() {
        let mut members = [Registry::default(), Registry::default()];
        members.iter_mut().for_each(|m| (0..3).for_each(|k| m.add(128 * k)));
        members[0].drop_block(128);
        let union = |members: &[Registry; 2]| members[0].still_used() | members[1].still_used();
        let used = union(&members);
        assert!(members.iter_mut().all(|m| m.agree(used).is_empty()));
        members[1].drop_block(128);
        let used = union(&members);
        assert!(members.iter_mut().all(|m| m.agree(used) == [128]));
    }

    #[test]
    fn the_window_reaches_every_block_in_the_end() {
        let mut registry = Registry::default();
        (0..200).for_each(|k| registry.add(k));
        registry.drop_block(150);
        let freed: Vec<usize> = (0..4).flat_map(|_| registry.agree(registry.still_used())).collect();
        assert_eq!(freed, [150]);
    }
}
