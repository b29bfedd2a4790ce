//! Which memory is open to one-sided transfers: of this rank, and what it knows of its peers.
//!
//! A peer that wants to reach a rank's memory asks once for its *regions*, and keeps them.
//!
//! # Memory that is given back
//!
//! A region may be a part of what is given back, or contain it. A transfer into a shut region breaks the connection. So the owner sends a
//! revocation to every peer that knows its regions, and shuts the region when all have answered. A peer forgets all regions of that owner,
//! and answers when its transfers with the owner have ended. Regions may arrive after a later revocation. Both carry the owner's *version*,
//! which each revocation raises, and a peer ignores regions of an older version.

use std::{collections::VecDeque, ops::Range};

use super::{
    route::Route,
    wire::{Key, Opened, Piece},
};

/// A part of a peer's segment, and how to reach it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Region {
    pub(super) offset: usize,
    pub(super) len: usize,
    pub(super) address: u64,
    pub(super) key: Key,
}

impl Region {
    /// Words of a region in a record.
    pub(super) const WORDS: usize = 5;

    pub(super) fn words(&self) -> [u64; Self::WORDS] {
        let Key([first, second]) = self.key;
        [self.offset as u64, self.len as u64, self.address, first, second]
    }

    fn of_words([offset, len, address, first, second]: [u64; Self::WORDS]) -> Option<Self> {
        let (offset, len) = (usize::try_from(offset).ok()?, usize::try_from(len).ok()?);
        offset.checked_add(len)?;
        Some(Region { offset, len, address, key: Key([first, second]) })
    }

    /// The address of an offset that lies in it, and the number of bytes left from there.
    pub(super) fn at(&self, offset: usize) -> (u64, usize) {
        let into = offset - self.offset;
        (self.address + into as u64, self.len - into)
    }
}

/// What an endpoint has of one-sided transfers.
#[derive(Debug)]
pub(super) struct Reach {
    /// Memory that peers reach by themselves, of the ranks that this one answers for.
    pub(super) owned: Owned,
    /// Ranks of peers, whose revocations are not answered.
    pub(super) owing: Vec<Route>,
    /// Peers with flushes that take no message.
    pub(super) flushing: Vec<usize>,
    /// Pieces that begin together; empty, kept for its memory.
    pub(super) chain: Vec<Piece>,
}

impl Reach {
    pub(super) fn new(answers_for: usize) -> Self {
        Reach { owned: Owned::new(answers_for), owing: Vec::new(), flushing: Vec::new(), chain: Vec::new() }
    }
}

/// What is open of the ranks that an endpoint answers for, and what is being shut.
#[derive(Debug)]
pub(super) struct Owned {
    of: Vec<Own>,
    pub(super) opening: VecDeque<OpeningRange>,
    pub(super) shutting: Vec<Shutting>,
    /// Errands that were brought when they were looked at last.
    pub(super) seen: u32,
}

impl Owned {
    pub(super) fn new(ranks: usize) -> Self {
        Owned { of: (0..ranks).map(|_| Own::default()).collect(), opening: VecDeque::new(), shutting: Vec::new(), seen: 0 }
    }

    pub(super) fn of(&mut self, number: u16) -> Option<&mut Own> {
        self.of.get_mut(usize::from(number))
    }
}

/// A range that is to be opened, a part after the other.
#[derive(Debug)]
pub(super) struct OpeningRange {
    pub(super) number: u16,
    /// What is left of it, and all.
    pub(super) range: Range<usize>,
    pub(super) whole: Range<usize>,
}

/// A range that is shut when all have answered its revocation.
#[derive(Debug)]
pub(super) struct Shutting {
    pub(super) number: u16,
    pub(super) range: Range<usize>,
    /// What overlaps it, and this rank's transfers with itself that had begun when it was taken.
    pub(super) taken: Vec<(Region, Opened)>,
    pub(super) begun: u64,
    /// What is said of it then.
    pub(super) outcome: Result<(), String>,
}

/// What is open of one rank.
#[derive(Debug, Default)]
pub(super) struct Own {
    open: Vec<(Region, Opened)>,
    version: u64,
    /// Peers that asked since the last revocation. `unanswered` counts the peers that have not answered one.
    told: Vec<usize>,
    unanswered: usize,
}

impl Own {
    pub(super) fn add(&mut self, region: Region, opened: Opened) {
        self.open.push((region, opened));
    }

    /// The region that holds a byte.
    pub(super) fn find(&self, offset: usize) -> Option<Region> {
        self.open.iter().map(|(region, _)| *region).find(|region| offset.wrapping_sub(region.offset) < region.len)
    }

    /// The version and the regions, for a peer that asks.
    pub(super) fn tell(&mut self, to: usize) -> (u64, impl Iterator<Item = &Region>) {
        if !self.told.contains(&to) {
            self.told.push(to);
        }
        (self.version, self.open.iter().map(|(region, _)| region))
    }

    /// Takes out the regions that overlap a range. They may be shut when nobody has an answer to give any more.
    pub(super) fn take(&mut self, range: &Range<usize>) -> Vec<(Region, Opened)> {
        self.open.extract_if(.., |(region, _)| region.offset < range.end && range.start < region.offset + region.len).collect()
    }

    /// Revokes all regions. The new version, and the peers to send it to.
    pub(super) fn revoke(&mut self) -> (u64, Vec<usize>) {
        let told = std::mem::take(&mut self.told);
        self.version += 1;
        self.unanswered += told.len();
        (self.version, told)
    }

    /// A peer has answered a revocation. None if no answer was due.
    pub(super) fn answered(&mut self) -> Option<()> {
        self.unanswered = self.unanswered.checked_sub(1)?;
        Some(())
    }

    /// Returns true if all peers have answered.
    pub(super) fn is_revoked(&self) -> bool {
        self.unanswered == 0
    }
}

/// Operations in regions that are not known, before the peer is asked again.
const MISSES: u32 = 64;

/// What is known of a peer.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// By their offsets.
    regions: Vec<Region>,
    version: u64,
    asked: bool,
    /// Since it was asked last.
    misses: u32,
    /// An answer that it waits for: the version of its revocation, and the number of transfers that had begun before.
    pub(super) owed: Option<(u64, u64)>,
}

impl Known {
    /// The region that holds a byte.
    pub(super) fn find(&self, offset: usize) -> Option<Region> {
        let behind = self.regions.partition_point(|region| region.offset <= offset);
        let region = self.regions.get(behind.checked_sub(1)?)?;
        (offset - region.offset < region.len).then_some(*region)
    }

    /// Counts an operation in a region that is not known. Returns true if the peer is to be asked.
    pub(super) fn misses(&mut self) -> bool {
        let asks = !self.asked && self.misses.is_multiple_of(MISSES);
        self.misses = self.misses.wrapping_add(1);
        asks
    }

    /// The peer was asked.
    pub(super) fn asks(&mut self) {
        self.asked = true;
    }

    /// Returns true if the peer was asked and has not answered.
    pub(super) fn is_asked(&self) -> bool {
        self.asked
    }

    /// The peer lists its regions, from the `first` one on. None if the list cannot be read.
    pub(super) fn told(&mut self, version: u64, first: usize, words: &[u64]) -> Option<()> {
        let (regions, []) = words.as_chunks() else { return None };
        self.asked = false;
        if version < self.version {
            return Some(());
        }
        if first == 0 {
            self.regions.clear();
        }
        for words in regions {
            self.regions.push(Region::of_words(*words)?);
        }
        self.regions.sort_unstable_by_key(|region| region.offset);
        Some(())
    }

    /// The peer has revoked its regions.
    pub(super) fn revoked(&mut self, version: u64, begun: u64) {
        self.version = self.version.max(version);
        (self.owed, self.misses) = (Some((version, begun)), 0);
        self.regions.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(offset: usize, len: usize, key: u64) -> Region {
        Region { offset, len, address: 1000 + offset as u64, key: Key([key, u64::MAX - key]) }
    }

    fn opened(id: u64) -> Opened {
        Opened { address: 0, key: Key([id; 2]), id }
    }

    fn words(regions: &[Region]) -> Vec<u64> {
        regions.iter().flat_map(Region::words).collect()
    }

    #[test]
    fn bytes_are_found_in_their_regions() {
        let mut known = Known::default();
        assert_eq!(known.find(0), None);
        // In any order, and in more than one record.
        let all = [region(64, 64, 2), region(0, 64, 1), region(256, 8, 3)];
        known.told(0, 0, &words(&all[..2])).unwrap();
        known.told(0, 2, &words(&all[2..])).unwrap();
        let keys = [0, 63, 64, 127, 128, 255, 256, 263, 264].map(|offset| known.find(offset).map(|region| region.key.0[0]));
        assert_eq!(keys, [Some(1), Some(1), Some(2), Some(2), None, None, Some(3), Some(3), None]);
        assert_eq!(known.find(100).map(|region| region.at(100)), Some((1100, 28)));
        // The next answer replaces the last one.
        known.told(0, 0, &words(&all[2..])).unwrap();
        assert_eq!((known.find(0), known.find(256)), (None, Some(all[2])));
        assert!(known.told(0, 0, &[1, 2, 3]).is_none() && known.told(0, 0, &[u64::MAX, 1, 0, 0, 0]).is_none());
    }

    #[test]
    fn a_peer_is_asked_once_and_again_after_some_misses() {
        let mut known = Known::default();
        assert!(known.misses() && !known.is_asked());
        known.asks();
        assert!((1..MISSES).all(|_| !known.misses()));
        // The answer is still on its way.
        assert!(!known.misses() && known.is_asked());
        known.told(0, 0, &[]).unwrap();
        assert!((1..MISSES).all(|_| !known.misses()) && known.misses());
        // What is revoked is asked for at once.
        known.told(0, 0, &[]).unwrap();
        known.revoked(1, 0);
        assert!(known.misses());
    }

    #[test]
    fn what_was_told_before_a_revocation_is_not_believed_after_it() {
        let (mut own, mut known) = (Own::default(), Known::default());
        own.add(region(0, 64, 1), opened(1));
        own.add(region(64, 64, 2), opened(2));
        let tell = |own: &mut Own| {
            let (version, regions) = own.tell(3);
            (version, words(&regions.copied().collect::<Vec<_>>()))
        };
        let (old, before) = tell(&mut own);
        assert_eq!(own.take(&(128..200)), []);
        assert_eq!(own.take(&(127..200)), [(region(64, 64, 2), opened(2))]);
        let (version, told) = own.revoke();
        assert_eq!((told, own.is_revoked()), (vec![3], false));
        known.revoked(version, 0);
        known.told(old, 0, &before).unwrap();
        assert_eq!(known.find(64), None);
        assert_eq!((own.answered(), own.is_revoked(), own.answered()), (Some(()), true, None));
        let (new, after) = tell(&mut own);
        known.told(new, 0, &after).unwrap();
        assert_eq!((known.find(0), known.find(64)), (Some(region(0, 64, 1)), None));
        // No peer has learned of it since.
        own.revoke();
        assert_eq!(own.revoke().1, [0_usize; 0]);
    }
}
