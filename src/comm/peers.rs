//! What is kept of other ranks: an entry for each that something was exchanged with, and no walk over all ranks.
//!
//! Entries stay where they are in the order of the first contact, so what is done for all of them is done in the same order in each run.

use std::collections::HashMap;

use rustc_hash::FxBuildHasher;

/// See the module's essay.
#[derive(Debug, Default)]
pub(super) struct Peers<P> {
    /// Where the entry of a rank is.
    places: HashMap<usize, usize, FxBuildHasher>,
    entries: Vec<(usize, P)>,
}

impl<P> Peers<P> {
    pub(super) fn get(&self, rank: usize) -> Option<&P> {
        self.places.get(&rank).map(|&place| &self.entries[place].1)
    }

    pub(super) fn get_mut(&mut self, rank: usize) -> Option<&mut P> {
        self.places.get(&rank).map(|&place| &mut self.entries[place].1)
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &P)> {
        self.entries.iter().map(|(rank, peer)| (*rank, peer))
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (usize, &mut P)> {
        self.entries.iter_mut().map(|(rank, peer)| (*rank, peer))
    }
}

impl<P: Default> Peers<P> {
    /// The entry of a rank, made at the first contact.
    pub(super) fn meet(&mut self, rank: usize) -> &mut P {
        let place = *self.places.entry(rank).or_insert_with(|| {
            self.entries.push((rank, P::default()));
            self.entries.len() - 1
        });
        &mut self.entries[place].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_in_the_order_of_the_first_contact() {
        let mut peers = Peers::<u32>::default();
        for rank in [7, 3, 7, 8191, 3, 7] {
            *peers.meet(rank) += 1;
        }
        assert_eq!(peers.iter().collect::<Vec<_>>(), [(7, &3), (3, &2), (8191, &1)]);
        assert_eq!((peers.get(3), peers.get(4)), (Some(&2), None));
        peers.iter_mut().for_each(|(rank, peer)| *peer += rank as u32);
        assert_eq!(peers.get_mut(8191).copied(), Some(8192));
        assert!(peers.get_mut(0).is_none());
    }
}
