//! What happens next: events in the order of their times.
//!
//! Events of one time come in the order in which they were added, or with a seed in another order. Events of one source and one time
//! stay in order.
//!
//! Time does not go back, so the queue is a radix heap (R. K. Ahuja, K. Mehlhorn, J. B. Orlin, R. E. Tarjan: Faster Algorithms for the
//! Shortest Path Problem, J. ACM 37(2), 1990). An event lies in the bucket of the highest bit in which its time differs from now. It
//! moves to lower buckets a few times, in the order of memory.

use std::{cmp::Reverse, collections::BinaryHeap};

use super::Picos;

/// A queue of events in the order of their times.
#[derive(Debug)]
pub(in crate::comm) struct Events<E> {
    /// The time of the last event that was taken.
    last: Picos,
    /// Events of this time too.
    now: BinaryHeap<Reverse<QueuedEvent<E>>>,
    /// Later events, by bit.
    later: [Bucket<E>; BITS],
    /// The buckets that are not empty.
    filled: u64,
    len: usize,
    said: u64,
    seed: u64,
}

/// Bits of a time.
const BITS: usize = u64::BITS as usize;

#[derive(Debug)]
struct Bucket<E> {
    entries: Vec<QueuedEvent<E>>,
    /// The time of the earliest of them.
    first: Picos,
}

#[derive(Debug)]
struct QueuedEvent<E> {
    at: Picos,
    turn: u64,
    said: u64,
    event: E,
}

impl<E> QueuedEvent<E> {
    /// The place among the entries of one time.
    fn key(&self) -> (u64, u64) {
        (self.turn, self.said)
    }
}

impl<E> PartialEq for QueuedEvent<E> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<E> Eq for QueuedEvent<E> {}

impl<E> PartialOrd for QueuedEvent<E> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for QueuedEvent<E> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

impl<E> Events<E> {
    /// Seed 0 keeps the order.
    pub(in crate::comm) fn new(seed: u64) -> Self {
        let later = std::array::from_fn(|_| Bucket { entries: Vec::new(), first: Picos::ZERO });
        Events { last: Picos::ZERO, now: BinaryHeap::new(), later, filled: 0, len: 0, said: 0, seed }
    }

    /// Adds an event of a source, not before the last that was taken.
    pub(in crate::comm) fn add(&mut self, at: Picos, source: usize, event: E) {
        debug_assert!(at >= self.last, "an event at {at:?}, and it is {:?}", self.last);
        let at = at.max(self.last);
        let turn = if self.seed == 0 { 0 } else { mix(self.seed ^ mix(at.0 ^ mix(source as u64))) };
        self.said += 1;
        self.len += 1;
        self.keep(QueuedEvent { at, turn, said: self.said, event });
    }

    fn keep(&mut self, entry: QueuedEvent<E>) {
        let differ = entry.at.0 ^ self.last.0;
        let Some(bit) = differ.checked_ilog2() else { return self.now.push(Reverse(entry)) };
        let bucket = &mut self.later[bit as usize];
        if bucket.entries.is_empty() || entry.at < bucket.first {
            bucket.first = entry.at;
        }
        bucket.entries.push(entry);
        self.filled |= 1 << bit;
    }

    /// A number that belongs to the seed, to now, and to what it is drawn for; 0 with seed 0.
    pub(in crate::comm) fn draw(&self, what: u64) -> u64 {
        if self.seed == 0 { 0 } else { self.draw_any(what) }
    }

    /// As [`draw`](Self::draw), but a number for seed 0 too.
    pub(in crate::comm) fn draw_any(&self, what: u64) -> u64 {
        mix(self.seed ^ mix(what ^ mix(self.said)))
    }

    /// The number of events that are to happen.
    pub(in crate::comm) fn len(&self) -> usize {
        self.len
    }

    /// The time of the next event.
    pub(in crate::comm) fn next_at(&self) -> Option<Picos> {
        if self.now.is_empty() { self.later.get(self.lowest()).map(|bucket| bucket.first) } else { Some(self.last) }
    }

    /// The bucket of the earliest later event; no bucket has this number if there is none.
    fn lowest(&self) -> usize {
        self.filled.trailing_zeros() as usize
    }

    /// Takes the next event.
    pub(in crate::comm) fn take(&mut self) -> Option<(Picos, E)> {
        if self.now.is_empty() {
            let lowest = self.lowest();
            let bucket = self.later.get_mut(lowest)?;
            self.last = bucket.first;
            self.filled ^= 1 << lowest;
            // All of them have the bit, so they go to lower buckets. The memory stays.
            let mut entries = std::mem::take(&mut bucket.entries);
            entries.drain(..).for_each(|entry| self.keep(entry));
            self.later[lowest].entries = entries;
        }
        let Reverse(entry) = self.now.pop()?;
        self.len -= 1;
        Some((entry.at, entry.event))
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
    use std::collections::BTreeSet;

    use super::*;

    /// Against a sorted set, at spans from none to very long ones.
    #[test]
    fn events_come_in_the_order_of_time() {
        let (mut events, mut sorted, mut now) = (Events::new(0), BTreeSet::new(), 0);
        for number in 0..20_000_u64 {
            let drawn = mix(number);
            if drawn % 5 < 3 {
                let at = now + (mix(drawn) >> ((drawn >> 8) % 64)) % (1 << 50);
                events.add(Picos(at), 0, number);
                sorted.insert((at, number));
            } else {
                let next = sorted.pop_first();
                assert_eq!(events.take(), next.map(|(at, number)| (Picos(at), number)));
                now = next.map_or(now, |next| next.0);
            }
            assert_eq!(events.next_at(), sorted.first().map(|next| Picos(next.0)));
            assert_eq!(events.len(), sorted.len());
        }
    }

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
