//! Blocks that all members have dropped, of arrays and of groups.
//!
//! Dropping communicates nothing, and another member may still write into the block. So nothing is freed yet. Each creation carries one
//! word: for a window of 64 live blocks, a bit for each that this member has not dropped. A member fences before it sends the word, so
//! its puts into what it dropped are complete. Blocks that all members have dropped are freed. With each creation the window moves on,
//! equally on every member, because the list changes only by agreement.
//!
//! Creations of a group free blocks of its arrays. A dropped group makes no more agreements. So creations of groups with the same list of
//! ranks, which members make in the same order, free its own memory and that of its arrays.

/// Blocks of a window.
const WINDOW: usize = 64;

/// The live blocks of a group, or of the groups of one list of ranks, in the order of their creation.
#[derive(Debug, Default)]
pub(crate) struct LiveBlocks {
    live: Vec<Block>,
    /// Where the window begins.
    start: usize,
}

#[derive(Debug)]
struct Block {
    offset: usize,
    dropped: bool,
    /// Blocks that are freed with it.
    inner: Vec<usize>,
}

impl LiveBlocks {
    /// A block that was created on all members.
    pub(crate) fn add(&mut self, offset: usize) {
        self.live.push(Block { offset, dropped: false, inner: Vec::new() });
    }

    /// A block that all members give up now.
    pub(crate) fn remove(&mut self, offset: usize) {
        self.live.retain(|block| block.offset != offset);
    }

    /// This member has no use for a block any more, nor for the `inner` ones of its owner.
    pub(crate) fn drop_block(&mut self, offset: usize, inner: Vec<usize>) {
        if let Some(block) = self.live.iter_mut().find(|block| block.offset == offset) {
            block.dropped = true;
            block.inner = inner;
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

    /// Takes out what no member uses, given the union of all members' words; turns the window. Each block is followed by its inner ones.
    pub(crate) fn agree(&mut self, used: u64) -> Vec<usize> {
        let free: Vec<usize> = self.window().enumerate().filter(|&(k, _)| used >> k & 1 == 0).map(|(_, at)| at).collect();
        let mut freed = Vec::new();
        for at in free {
            let block = &mut self.live[at];
            freed.push(block.offset);
            freed.append(&mut block.inner);
        }
        self.start = if self.live.is_empty() { 0 } else { (self.start + WINDOW) % self.live.len() };
        // No inner block lies where a live one does.
        self.live.retain(|block| !freed.contains(&block.offset));
        if self.start >= self.live.len() {
            self.start = 0;
        }
        freed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_freed_when_all_members_dropped_it_and_not_before() {
        let mut members = [LiveBlocks::default(), LiveBlocks::default()];
        members.iter_mut().for_each(|m| (0..3).for_each(|k| m.add(128 * k)));
        members[0].drop_block(128, Vec::new());
        let union = |members: &[LiveBlocks; 2]| members[0].still_used() | members[1].still_used();
        let used = union(&members);
        assert!(members.iter_mut().all(|m| m.agree(used).is_empty()));
        members[1].drop_block(128, Vec::new());
        let used = union(&members);
        assert!(members.iter_mut().all(|m| m.agree(used) == [128]));
    }

    #[test]
    fn a_group_is_used_again_when_all_members_dropped_it_and_not_before() {
        let mut members = [LiveBlocks::default(), LiveBlocks::default()];
        members.iter_mut().for_each(|m| m.add(640));
        members[0].drop_block(640, vec![128]);
        let union = |members: &[LiveBlocks; 2]| members[0].still_used() | members[1].still_used();
        let used = union(&members);
        assert!(members.iter_mut().all(|m| m.agree(used).is_empty()));
        members[1].drop_block(640, vec![128]);
        let used = union(&members);
        assert!(members.iter_mut().all(|m| m.agree(used) == [640, 128]));
        members.iter_mut().for_each(|m| m.add(640));
        assert!(members.iter().all(|m| m.still_used() == 1));
    }

    #[test]
    fn each_dropped_group_is_followed_by_its_blocks() {
        let mut groups = LiveBlocks::default();
        [640, 1280, 1920].into_iter().for_each(|offset| groups.add(offset));
        groups.drop_block(1920, vec![128]);
        groups.drop_block(640, vec![256, 384]);
        assert_eq!(groups.agree(groups.still_used()), [640, 256, 384, 1920, 128]);
        assert_eq!(groups.take_all(), [1280]);
    }

    #[test]
    fn the_window_reaches_every_block_in_the_end() {
        let mut blocks = LiveBlocks::default();
        (0..200).for_each(|k| blocks.add(k));
        blocks.drop_block(150, Vec::new());
        let freed: Vec<usize> = (0..4).flat_map(|_| blocks.agree(blocks.still_used())).collect();
        assert_eq!(freed, [150]);
    }

    #[test]
    fn members_free_exactly_what_all_of_them_dropped() {
        const MEMBERS: usize = 3;
        let mut random = 1_u64;
        let mut below = move |bound: usize| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) as usize % bound
        };
        let mut members: [LiveBlocks; MEMBERS] = std::array::from_fn(|_| LiveBlocks::default());
        // Who still has each live block, as bits.
        let mut holders: Vec<(usize, u32)> = Vec::new();
        for offset in 0..3000 {
            // More blocks than a window has, and then fewer.
            let drops = if offset / 500 % 2 == 0 { 2 } else { 5 };
            for _ in 0..drops.min(holders.len()) {
                let (block, member) = (below(holders.len()), below(MEMBERS));
                members[member].drop_block(holders[block].0, Vec::new());
                holders[block].1 &= !(1 << member);
            }
            let used = members.iter().fold(0, |used, member| used | member.still_used());
            let freed = members.each_mut().map(|member| member.agree(used));
            assert!(freed.iter().all(|list| *list == freed[0]), "{freed:?}");
            for block in &freed[0] {
                let at = holders.iter().position(|(live, _)| live == block).expect("a live block is freed once");
                assert_eq!(holders.remove(at).1, 0, "block {block} is in use");
            }
            members.iter_mut().for_each(|member| member.add(offset));
            holders.push((offset, (1 << MEMBERS) - 1));
        }
        assert!(holders.len() > 2 * WINDOW, "{} blocks", holders.len());
        // Nobody drops any more: as many turns as it takes to see each block bring out the rest.
        for _ in 0..2 * holders.len().div_ceil(WINDOW) {
            let used = members.iter().fold(0, |used, member| used | member.still_used());
            let freed = members.each_mut().map(|member| member.agree(used));
            holders.retain(|(live, _)| !freed[0].contains(live));
        }
        assert!(holders.iter().all(|&(_, holders)| holders != 0));
        let mut all = members[0].take_all();
        all.sort_unstable();
        assert!(holders.iter().map(|&(live, _)| live).eq(all));
    }

    #[test]
    fn a_block_that_was_destroyed_is_not_freed_again() {
        let mut blocks = LiveBlocks::default();
        (0..3).for_each(|k| blocks.add(k));
        blocks.remove(1);
        (0..3).for_each(|k| blocks.drop_block(k, Vec::new()));
        assert_eq!(blocks.agree(blocks.still_used()), [0, 2]);
        assert!(blocks.take_all().is_empty());
    }
}
