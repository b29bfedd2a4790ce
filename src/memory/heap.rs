//! The free and the taken bytes of a segment: pure arithmetic.
//!
//! The heap is symmetric: for what the whole job owns, every rank makes the same calls and finds the same offsets without communication.
//! What a group owns comes from the upper end, because other ranks know nothing of it. An array goes to the highest offset that is free
//! for all members (`sync::memory`), a new group's own memory below the lowest mark (`sync::create`).
//!
//! ```text
//!  0            low end, first fit              hole            mark        upper end         capacity
//!  |== world ==|== world ==|....|== world ==|........................|== group ==|== group ==|
//! ```
//!
//! Parts differ in size, so each rank knows which ranges of *its* segment have pages. Freed ranges keep theirs until they are trimmed.

use std::{collections::BTreeMap, ops::Range};

/// Every block starts at a multiple of this: a cache line pair, and enough for any element.
pub(crate) const ALIGN: usize = 128;

/// Offsets of one rank's segment.
#[derive(Debug, Clone)]
pub(crate) struct Heap {
    capacity: usize,
    /// Pages are committed and released in pieces of this size.
    granule: usize,
    /// start → end of what is taken at the low end
    low: BTreeMap<usize, usize>,
    /// start → end of what is taken at the upper end
    high: BTreeMap<usize, usize>,
    committed: Ranges,
}

impl Heap {
    pub(crate) fn new(capacity: usize, granule: usize) -> Self {
        Heap {
            capacity: capacity / ALIGN * ALIGN,
            granule,
            low: BTreeMap::new(),
            high: BTreeMap::new(),
            committed: Ranges::default(),
        }
    }

    /// Start of the upper end.
    pub(crate) fn mark(&self) -> usize {
        self.high.keys().next().copied().unwrap_or(self.capacity)
    }

    /// Where a world block of `len` bytes would go, below `mark`; nothing is taken. On failure the largest hole.
    pub(crate) fn find_low(&self, len: usize, mark: usize) -> Result<usize, usize> {
        let len = round_up(len.max(1)).ok_or(0_usize)?;
        let (mut at, mut largest) = (0, 0);
        for (&start, &end) in &self.low {
            if start - at >= len {
                return Ok(at);
            }
            largest = largest.max(start - at);
            at = end;
        }
        let rest = mark.saturating_sub(at);
        if rest >= len { Ok(at) } else { Err(largest.max(rest)) }
    }

    /// Where a block would go that ends at an agreed `mark`. On failure the room below it.
    pub(crate) fn find_below(&self, len: usize, mark: usize) -> Result<usize, usize> {
        let len = round_up(len.max(1)).ok_or(0_usize)?;
        let low_end = self.low_end();
        match mark.checked_sub(len) {
            Some(start) if start >= low_end => Ok(start),
            _ => Err(mark.saturating_sub(low_end)),
        }
    }

    /// The highest offset, `limit` at most, where a group block of `len` bytes would go: in a hole of the upper end or below the mark.
    pub(crate) fn find_high(&self, len: usize, limit: usize) -> Option<usize> {
        let len = round_up(len.max(1))?;
        let fit = |hole: Range<usize>| Some(hole.end.checked_sub(len)?.min(limit)).filter(|&start| start >= hole.start);
        let mut top = self.capacity;
        for (&start, &end) in self.high.iter().rev() {
            if let Some(found) = fit(end..top) {
                return Some(found);
            }
            top = start;
        }
        fit(self.low_end()..top)
    }

    /// End of what the world has taken.
    pub(crate) fn low_end(&self) -> usize {
        self.low.values().next_back().copied().unwrap_or(0)
    }

    pub(crate) fn take_low(&mut self, start: usize, len: usize) {
        self.low.insert(start, start + round_up(len.max(1)).expect("found before"));
    }

    pub(crate) fn take_high(&mut self, start: usize, len: usize) {
        self.high.insert(start, start + round_up(len.max(1)).expect("found before"));
    }

    pub(crate) fn free(&mut self, start: usize) {
        if self.low.remove(&start).is_none() {
            self.high.remove(&start);
        }
    }

    /// The part of a range, widened to whole commit pieces, that has no pages yet.
    pub(crate) fn uncommitted(&self, range: Range<usize>) -> Vec<Range<usize>> {
        if range.is_empty() {
            return Vec::new();
        }
        self.committed.missing(range.start / self.granule * self.granule..range.end.next_multiple_of(self.granule))
    }

    pub(crate) fn set_committed(&mut self, range: Range<usize>) {
        self.committed.insert(range);
    }

    /// Committed bytes in all.
    pub(crate) fn committed(&self) -> usize {
        self.committed.total()
    }

    /// Bytes of blocks in use.
    pub(crate) fn used(&self) -> usize {
        self.low.iter().chain(&self.high).map(|(start, end)| end - start).sum()
    }

    /// Takes all pieces out of the committed set that hold no part of any block, and returns them.
    pub(crate) fn trim(&mut self) -> Vec<Range<usize>> {
        let mut used = Ranges::default();
        for (&start, &end) in self.low.iter().chain(&self.high) {
            used.insert(start / self.granule * self.granule..end.next_multiple_of(self.granule));
        }
        let idle: Vec<_> = self.committed.iter().flat_map(|range| used.missing(range)).collect();
        for range in &idle {
            self.committed.remove(range.clone());
        }
        idle
    }
}

fn round_up(len: usize) -> Option<usize> {
    Some(len.checked_add(ALIGN - 1)? / ALIGN * ALIGN)
}

/// A set of integers kept as disjoint ranges, none touching another.
#[derive(Debug, Clone, Default)]
struct Ranges(BTreeMap<usize, usize>);

impl Ranges {
    fn iter(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        self.0.iter().map(|(&start, &end)| start..end)
    }

    fn total(&self) -> usize {
        self.iter().map(|r| r.len()).sum()
    }

    fn insert(&mut self, range: Range<usize>) {
        if range.is_empty() {
            return;
        }
        let (mut start, mut end) = (range.start, range.end);
        while let Some((&s, &e)) = self.0.range(..=end).next_back().filter(|&(_, &e)| e >= start) {
            start = start.min(s);
            end = end.max(e);
            self.0.remove(&s);
        }
        self.0.insert(start, end);
    }

    fn remove(&mut self, range: Range<usize>) {
        let touched: Vec<_> = self.0.range(..range.end).filter(|&(_, &e)| e > range.start).map(|(&s, &e)| (s, e)).collect();
        for (s, e) in touched {
            self.0.remove(&s);
            if s < range.start {
                self.0.insert(s, range.start);
            }
            if e > range.end {
                self.0.insert(range.end, e);
            }
        }
    }

    fn missing(&self, range: Range<usize>) -> Vec<Range<usize>> {
        let before = self.0.range(..=range.start).next_back().map_or(range.start, |(_, &e)| e.max(range.start));
        let mut at = before;
        let mut holes = Vec::new();
        for (&s, &e) in self.0.range(range.start..range.end) {
            if s > at {
                holes.push(at..s);
            }
            at = at.max(e);
        }
        if at < range.end {
            holes.push(at..range.end);
        }
        holes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMIT: usize = 1 << 16;

    #[test]
    fn world_blocks_are_found_first_fit_and_reused() {
        let mut heap = Heap::new(1 << 20, COMMIT);
        let a = heap.find_low(100, heap.mark()).unwrap();
        heap.take_low(a, 100);
        let b = heap.find_low(300, heap.mark()).unwrap();
        heap.take_low(b, 300);
        assert_eq!((a, b), (0, 128));
        heap.free(a);
        assert_eq!(heap.find_low(128, heap.mark()), Ok(0));
        assert_eq!(heap.find_low(129, heap.mark()), Ok(512));
        assert_eq!(heap.find_low(2 << 20, heap.mark()), Err((1 << 20) - 512));
    }

    #[test]
    fn group_blocks_come_from_the_upper_end_and_never_meet_the_lower() {
        let mut heap = Heap::new(1024, COMMIT);
        heap.take_low(0, 512);
        let g = heap.find_below(200, heap.mark()).unwrap();
        assert_eq!(g, 768);
        heap.take_high(g, 200);
        assert_eq!(heap.find_below(512, heap.mark()), Err(256));
        assert_eq!(heap.find_high(512, 1024), None);
        assert_eq!(heap.find_low(512, heap.mark()), Err(256));
        heap.free(g);
        assert_eq!(heap.mark(), 1024);
    }

    #[test]
    fn holes_of_the_upper_end_are_found_from_the_top() {
        let mut heap = Heap::new(4096, COMMIT);
        heap.take_low(0, 512);
        for start in [3840, 3328, 3072] {
            heap.take_high(start, 256);
        }
        // 512..3072 is free, and 3584..3840.
        assert_eq!(heap.find_high(256, 4096), Some(3584));
        assert_eq!(heap.find_high(100, 4096), Some(3712));
        assert_eq!(heap.find_high(100, 3600), Some(3600));
        assert_eq!(heap.find_high(256, 3583), Some(2816));
        assert_eq!(heap.find_high(257, 4096), Some(2688));
        assert_eq!(heap.find_high(2560, 4096), Some(512));
        assert_eq!(heap.find_high(2560, 511), None);
        assert_eq!(heap.find_high(2561, 4096), None);
        heap.free(3840);
        assert_eq!(heap.find_high(512, 4096), Some(3584));
    }

    #[test]
    fn committed_ranges_merge_and_trimming_returns_what_no_block_uses() {
        let mut heap = Heap::new(16 * COMMIT, COMMIT);
        heap.take_low(0, 3 * COMMIT);
        assert_eq!(heap.uncommitted(10..20), vec![0..COMMIT]);
        heap.set_committed(0..COMMIT);
        assert_eq!(heap.uncommitted(COMMIT - 1..2 * COMMIT + 1), vec![COMMIT..3 * COMMIT]);
        heap.set_committed(2 * COMMIT..4 * COMMIT);
        assert_eq!(heap.uncommitted(0..5 * COMMIT), vec![COMMIT..2 * COMMIT, 4 * COMMIT..5 * COMMIT]);
        heap.set_committed(COMMIT..2 * COMMIT);
        assert_eq!(heap.committed(), 4 * COMMIT);
        assert_eq!(heap.trim(), vec![3 * COMMIT..4 * COMMIT]);
        heap.free(0);
        assert_eq!(heap.trim(), vec![0..3 * COMMIT]);
        assert_eq!(heap.committed(), 0);
    }

    /// The same by a table: for each unit of the segment who holds it, for each granule whether it has pages.
    struct Model {
        /// The block that holds a unit, its first unit and whether it is the world's.
        units: Vec<Option<(usize, bool)>>,
        committed: Vec<bool>,
    }

    const UNITS: usize = 60;
    const GRANULE: usize = 4 * ALIGN;

    impl Model {
        fn ends(&self, world: bool) -> (usize, usize) {
            let held = |unit: &usize| self.units[*unit].is_some_and(|(_, low)| low == world);
            ((0..UNITS).find(held).unwrap_or(UNITS), (0..UNITS).rfind(held).map_or(0, |unit| unit + 1))
        }

        fn is_free(&self, units: Range<usize>) -> bool {
            units.end <= UNITS && self.units[units].iter().all(Option::is_none)
        }

        /// The longest free run of units before `mark`.
        fn largest(&self, from: usize, mark: usize) -> usize {
            // Plain loops: memcheck takes what the compiler makes of nested iterators for a use of uninitialised memory.
            let mut largest = 0;
            for start in from..mark {
                for end in start..=mark {
                    if end - start > largest && self.is_free(start..end) {
                        largest = end - start;
                    }
                }
            }
            largest
        }

        fn take(&mut self, start: usize, len: usize, low: bool) {
            assert!(self.is_free(start..start + len), "{start} and {len} more are taken");
            self.units[start..start + len].fill(Some((start, low)));
        }

        /// Granules of which `chosen` says yes, as ranges of bytes.
        fn granules(&self, chosen: impl Fn(usize) -> bool) -> Vec<Range<usize>> {
            let mut ranges: Vec<Range<usize>> = Vec::new();
            for granule in (0..UNITS / 4).filter(|&granule| chosen(granule)) {
                let range = granule * GRANULE..(granule + 1) * GRANULE;
                match ranges.last_mut().filter(|last| last.end == range.start) {
                    Some(last) => last.end = range.end,
                    None => ranges.push(range),
                }
            }
            ranges
        }
    }

    /// Units that so many bytes take.
    fn units(len: usize) -> usize {
        len.max(1).div_ceil(ALIGN)
    }

    fn check(steps: &[(u8, usize, usize)]) {
        let mut heap = Heap::new(UNITS * ALIGN + 5, GRANULE);
        let mut model = Model { units: vec![None; UNITS], committed: vec![false; UNITS / 4] };
        for &(step, a, len) in steps {
            let (need, place) = (units(len), a % (UNITS + 1));
            let (mark, low_end) = (model.ends(false).0, model.ends(true).1);
            assert_eq!((heap.mark(), heap.low_end()), (mark * ALIGN, low_end * ALIGN));
            match step {
                0 => {
                    // As the world does where another rank's mark is lower.
                    let mark = mark.min(place.max(low_end));
                    let first = (0..mark).find(|&at| at + need <= mark && model.is_free(at..at + need));
                    let found = heap.find_low(len, mark * ALIGN);
                    assert_eq!(found, first.map(|at| at * ALIGN).ok_or(model.largest(0, mark) * ALIGN));
                    if let Ok(start) = found {
                        heap.take_low(start, len);
                        model.take(start / ALIGN, need, true);
                    }
                }
                1 => {
                    let last = (low_end..=place).rev().find(|&at| model.is_free(at..at + need));
                    let found = heap.find_high(len, place * ALIGN);
                    assert_eq!(found, last.map(|at| at * ALIGN));
                    if let Some(start) = found {
                        heap.take_high(start, len);
                        model.take(start / ALIGN, need, false);
                    }
                }
                2 => {
                    let agreed = place.min(mark);
                    let room = agreed.saturating_sub(low_end);
                    let start = agreed.checked_sub(need).filter(|&start| start >= low_end);
                    assert_eq!(heap.find_below(len, agreed * ALIGN), start.map(|at| at * ALIGN).ok_or(room * ALIGN));
                }
                3 | 4 => {
                    let blocks: Vec<_> = model.units.iter().flatten().copied().collect();
                    if let Some(&(start, _)) = blocks.get(a % blocks.len().max(1)) {
                        heap.free(start * ALIGN);
                        model
                            .units
                            .iter_mut()
                            .filter(|unit| unit.is_some_and(|block| block.0 == start))
                            .for_each(|unit| *unit = None);
                    }
                }
                5 => {
                    let start = (place * ALIGN).min((UNITS - 1) * ALIGN);
                    let range = start..(start + len % 900).min(UNITS * ALIGN);
                    let touched = range.start / GRANULE..range.end.div_ceil(GRANULE);
                    let missing = heap.uncommitted(range.clone());
                    assert_eq!(missing, model.granules(|k| !range.is_empty() && touched.contains(&k) && !model.committed[k]));
                    for range in missing {
                        model.committed[range.start / GRANULE..range.end / GRANULE].fill(true);
                        heap.set_committed(range);
                    }
                }
                _ => {
                    let is_used = |k: usize| !model.is_free(4 * k..4 * k + 4);
                    assert_eq!(heap.trim(), model.granules(|k| model.committed[k] && !is_used(k)));
                    (0..UNITS / 4).for_each(|k| model.committed[k] &= !model.is_free(4 * k..4 * k + 4));
                }
            }
            assert_eq!(heap.used(), model.units.iter().flatten().count() * ALIGN);
            assert_eq!(heap.committed(), model.committed.iter().filter(|&&committed| committed).count() * GRANULE);
        }
    }

    proptest::proptest! {
        #[test]
        fn a_heap_is_what_a_table_says(
            steps in proptest::collection::vec((0..7_u8, 0..1000_usize, 0..2000_usize), 1..60),
        ) {
            check(&steps);
        }
    }

    #[test]
    fn lengths_beyond_all_memory_are_refused() {
        let heap = Heap::new(1024, COMMIT);
        assert_eq!((heap.find_low(usize::MAX, 1024), heap.find_below(usize::MAX, 1024)), (Err(0), Err(0)));
        assert_eq!(heap.find_high(usize::MAX, 1024), None);
    }
}
