//! What happens next: events in the order of their times.
//!
//! What happens at one time is in the order in which it was said, or with a seed in another order. What one source says for one time
//! stays in its order.

use std::{cmp::Reverse, collections::BinaryHeap};

use super::Picos;

/// See the module's essay.
#[derive(Debug)]
pub(in crate::comm) struct Events<E> {
    heap: BinaryHeap<Reverse<Entry<E>>>,
    said: u64,
    seed: u64,
}

#[derive(Debug)]
struct Entry<E> {
    at: Picos,
    turn: u64,
    said: u64,
    event: E,
}

impl<E> Entry<E> {
    fn key(&self) -> (Picos, u64, u64) {
        (self.at, self.turn, self.said)
    }
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<E> Eq for Entry<E> {}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

impl<E> Events<E> {
    /// Seed 0 keeps the order.
    pub(in crate::comm) fn new(seed: u64) -> Self {
        Events { heap: BinaryHeap::new(), said: 0, seed }
    }

    /// Something is to happen, says a source.
    pub(in crate::comm) fn add(&mut self, at: Picos, source: usize, event: E) {
        let turn = if self.seed == 0 { 0 } else { mix(self.seed ^ mix(at.0 ^ mix(source as u64))) };
        self.said += 1;
        self.heap.push(Reverse(Entry { at, turn, said: self.said, event }));
    }

    /// A number that belongs to the seed, to now, and to what it is drawn for; 0 with seed 0.
    pub(in crate::comm) fn draw(&self, what: u64) -> u64 {
        if self.seed == 0 { 0 } else { self.draw_any(what) }
    }

    /// The same with any seed.
    pub(in crate::comm) fn draw_any(&self, what: u64) -> u64 {
        mix(self.seed ^ mix(what ^ mix(self.said)))
    }

    /// How many are to happen.
    pub(in crate::comm) fn len(&self) -> usize {
        self.heap.len()
    }

    /// When the next happens.
    pub(in crate::comm) fn next_at(&self) -> Option<Picos> {
        self.heap.peek().map(|Reverse(entry)| entry.at)
    }

    /// The next.
    pub(in crate::comm) fn take(&mut self) -> Option<(Picos, E)> {
        self.heap.pop().map(|Reverse(entry)| (entry.at, entry.event))
    }
}

/// A step of SplitMix64 (G. L. Steele, D. Lea, C. H. Flood, OOPSLA 2014).
fn mix(word: u64) -> u64 {
    let word = word.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let word = (word ^ word >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let word = (word ^ word >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ word >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(seed: u64) -> Vec<(usize, u32)> {
        let mut events = Events::new(seed);
        for number in 0..3 {
            for source in 0..20 {
                events.add(Picos(7), source, (source, number));
            }
        }
        events.add(Picos(3), 5, (99, 0));
        assert_eq!(events.next_at(), Some(Picos(3)));
        assert_eq!(events.take(), Some((Picos(3), (99, 0))));
        std::iter::from_fn(|| events.take()).map(|(_, event)| event).collect()
    }

    #[test]
    fn what_happens_at_one_time_is_in_the_order_of_the_seed() {
        let as_said: Vec<(usize, u32)> = (0..3).flat_map(|number| (0..20).map(move |source| (source, number))).collect();
        assert_eq!(order(0), as_said);
        for seed in 1..50 {
            let found = order(seed);
            assert_eq!(found, order(seed));
            assert!(found != as_said && found != order(seed + 1), "{seed}");
            for source in 0..20 {
                let numbers: Vec<u32> = found.iter().filter(|event| event.0 == source).map(|event| event.1).collect();
                assert_eq!(numbers, [0, 1, 2]);
            }
        }
    }
}
