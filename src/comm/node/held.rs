//! Letters for rings of this machine's ranks, and those that wait for room there.
//!
//! Only one processor of a machine appends for the ranks of another one: so letters keep their order.

use std::collections::VecDeque;

use super::Fabric;
use crate::memory::{
    ring::{Full, Letter},
    segments::Segment,
};

/// Where a ring is: its owner's number on the machine, its first byte, its slots.
pub(crate) type NearRing = (usize, usize, usize);

/// Letters that wait for room, each with a tag of its sender.
#[derive(Debug)]
pub(crate) struct HeldLetters<T>(VecDeque<HeldLetter<T>>);

#[derive(Debug)]
struct HeldLetter<T> {
    ring: NearRing,
    packed: Box<[u64]>,
    tag: T,
}

impl<T> Default for HeldLetters<T> {
    fn default() -> Self {
        HeldLetters(VecDeque::new())
    }
}

impl<T: Copy> HeldLetters<T> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Appends a letter, or holds it until there is room. Returns true if it is in the ring. `None` if there is no such ring, or it can never
    /// have room.
    pub(crate) fn append(&mut self, fabric: &Fabric, ring: NearRing, packed: &[u64], tag: T) -> Option<bool> {
        let (rank, offset, slots) = ring;
        let segment = fabric.mapped(rank);
        let (near, letter) = (segment.find_ring(offset, slots)?, Letter::unpack(packed)?);
        (letter.slots() <= slots).then_some(())?;
        let waits = self.0.iter().any(|held| held.ring == ring);
        let reserved = if waits {
            near.hold();
            Err(Full)
        } else {
            near.reserve_or_hold(letter.slots())
        };
        match reserved {
            Ok(position) => {
                near.write(position, &letter);
                Some(true)
            }
            Err(Full) => {
                self.0.push_back(HeldLetter { ring, packed: packed.into(), tag });
                Some(false)
            }
        }
    }

    /// Appends what there is room for, in order for each ring, and passes on the tags.
    pub(crate) fn deliver(&mut self, fabric: &Fabric, mut delivered: impl FnMut(T)) {
        let mut full = Vec::new();
        self.0.retain_mut(|held| {
            let (rank, offset, slots) = held.ring;
            let segment = fabric.mapped(rank);
            let ring = segment.ring(offset, slots);
            // It was unpacked before.
            let Some(letter) = Letter::unpack(&held.packed).filter(|_| !full.contains(&held.ring)) else { return true };
            let Ok(position) = ring.reserve_for_held(letter.slots()) else {
                full.push(held.ring);
                return true;
            };
            ring.write(position, &letter);
            ring.is_held_no_more();
            delivered(held.tag);
            false
        });
    }
}

impl Fabric {
    /// The segment of a rank.
    fn mapped(&self, rank: usize) -> Segment {
        // SAFETY: a segment of this length begins there, and the mapping lives as long as self.
        unsafe { Segment::new(self.segment(rank), self.segment_len()) }
    }
}
