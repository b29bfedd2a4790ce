//! An entry for each rank that something was exchanged with, in the order of first contact: all runs treat them alike.

use std::collections::HashMap;

use rustc_hash::FxBuildHasher;

/// Up to this number of entries, a look at all of them finds one: they alone lie in fewer lines of the cache than with a table.
const FEW: usize = 4;

/// An entry for each rank that something was exchanged with.
#[derive(Debug, Default)]
pub(in crate::comm) struct Peers<P> {
    /// Where the entry of a rank is, if there are more than a few.
    places: HashMap<usize, usize, FxBuildHasher>,
    entries: Vec<(usize, P)>,
}

impl<P> Peers<P> {
    #[inline]
    fn place(&self, rank: usize) -> Option<usize> {
        if self.entries.len() <= FEW { self.entries.iter().position(|entry| entry.0 == rank) } else { self.place_of_many(rank) }
    }

    #[inline(never)]
    fn place_of_many(&self, rank: usize) -> Option<usize> {
        self.places.get(&rank).copied()
    }

    #[inline]
    pub(in crate::comm) fn get(&self, rank: usize) -> Option<&P> {
        self.place(rank).map(|place| &self.entries[place].1)
    }

    #[inline]
    pub(in crate::comm) fn get_mut(&mut self, rank: usize) -> Option<&mut P> {
        self.place(rank).map(|place| &mut self.entries[place].1)
    }

    pub(in crate::comm) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(in crate::comm) fn iter(&self) -> impl Iterator<Item = (usize, &P)> {
        self.entries.iter().map(|(rank, peer)| (*rank, peer))
    }

    pub(in crate::comm) fn iter_mut(&mut self) -> impl Iterator<Item = (usize, &mut P)> {
        self.entries.iter_mut().map(|(rank, peer)| (*rank, peer))
    }
}

impl<P: Default> Peers<P> {
    /// The entry of a rank, made at the first contact.
    #[inline]
    pub(in crate::comm) fn meet(&mut self, rank: usize) -> &mut P {
        let place = self.place(rank).unwrap_or_else(|| self.add(rank));
        &mut self.entries[place].1
    }

    #[cold]
    fn add(&mut self, rank: usize) -> usize {
        let place = self.entries.len();
        self.entries.push((rank, P::default()));
        match place {
            ..FEW => {}
            FEW => self.places.extend(self.entries.iter().enumerate().map(|(place, entry)| (entry.0, place))),
            _ => drop(self.places.insert(rank, place)),
        }
        place
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

    #[test]
    fn many_are_found_like_a_few() {
        let mut peers = Peers::<usize>::default();
        for count in 1..=20 {
            *peers.meet(100 + count) = count;
            for other in 1..=20 {
                let known = (other <= count).then_some(other);
                assert_eq!((peers.get(100 + other).copied(), peers.get_mut(100 + other).copied()), (known, known));
                assert!(known.is_none_or(|known| *peers.meet(100 + other) == known));
            }
            assert_eq!(peers.len(), count);
        }
    }
}
