//! Appending letters to a ring of another rank, by puts and atomic operations.
//!
//! A writer reserves slots by compare and swap on the ring's tail, and puts the letter with its stamp as the signal.
//! So a letter comes whole, behind everything that its writer put at that rank before.

use std::cell::Cell;

use super::{Engine, Label, Road, Waiter};
use crate::{
    comm::{Atomic, AtomicOp, Remote, SignalOp, SignalWord},
    error::Error,
    memory::{
        ring::{self, Letter},
        segments::Segment,
    },
};

/// A ring of a rank, to a writer.
#[derive(Debug)]
pub(crate) struct FarRing {
    rank: usize,
    /// Its beginning in the rank's segment, and its slots.
    offset: usize,
    slots: usize,
    /// The segment, if it is mapped.
    segment: Option<Segment>,
    /// How the tail is changed.
    road: Road,
    /// What was seen of the ring.
    head: u64,
    tail: u64,
}

impl FarRing {
    pub(crate) fn new(rank: usize, [offset, slots]: [usize; 2], segment: Option<Segment>, road: Road) -> Self {
        FarRing { rank, offset, slots, segment, road, head: 0, tail: 0 }
    }

    /// The segment, if this processor does all.
    fn near(&self) -> Option<Segment> {
        self.segment.filter(|_| self.road == Road::Processor)
    }
}

impl Engine {
    /// Appends a letter to a ring; false if that has no room. On return the letter's memory may be used again.
    #[inline]
    pub(crate) fn append(&self, ring: &mut FarRing, letter: &Letter<'_>, label: &Label) -> Result<bool, Error> {
        if let Some(segment) = ring.near() {
            let mapped = segment.ring(ring.offset, ring.slots);
            let Ok(position) = mapped.reserve(&mut ring.head, letter.slots()) else { return Ok(false) };
            mapped.write(position, letter);
            return Ok(true);
        }
        // Here, and not behind the reservation: slots without a stamp would block the ring.
        self.behind_puts(ring.rank, label)?;
        let Some(position) = self.reserve(ring, letter.slots(), label)? else { return Ok(false) };
        match ring.segment {
            Some(segment) => segment.ring(ring.offset, ring.slots).write(position, letter),
            None => self.put_letter(ring, position, letter, label).inspect_err(|error| {
                self.conduit.end(&format!("could not write a letter to the ring of rank {}: {error}", ring.rank));
            })?,
        }
        Ok(true)
    }

    /// Waits until a ring has room for a letter, or `otherwise`.
    pub(crate) fn wait_for_room(
        &self,
        ring: &mut FarRing,
        slots: usize,
        waiter: &dyn Waiter,
        otherwise: impl Fn() -> bool,
        label: &Label,
    ) -> Result<(), Error> {
        if let Some(segment) = ring.near() {
            let (mapped, head) = (segment.ring(ring.offset, ring.slots), Cell::new(ring.head));
            let has_room = || {
                let mut seen = head.get();
                let has_room = mapped.has_room(&mut seen, mapped.tail(), slots);
                head.set(seen);
                has_room
            };
            return self.wait_any_word(waiter, || (otherwise() || has_room()).then_some(()));
        }
        self.take_turns(waiter, || match otherwise() {
            true => Some(Ok(())),
            false => self.has_room(ring, slots, label).map(|has_room| has_room.then_some(())).transpose(),
        })?
    }

    /// Returns true if a ring has room behind the tail that was seen last.
    fn has_room(&self, ring: &mut FarRing, slots: usize, label: &Label) -> Result<bool, Error> {
        let fits = |ring: &FarRing| ring.tail + slots as u64 <= ring.head + ring.slots as u64;
        if !fits(ring) {
            self.see_head(ring, label)?;
        }
        Ok(fits(ring))
    }

    fn see_head(&self, ring: &mut FarRing, label: &Label) -> Result<(), Error> {
        let mut head = [0; size_of::<u64>()];
        self.get_slices([(ring.rank, ring.offset + ring::HEAD, &mut head[..])].into_iter(), label)?;
        ring.head = u64::from_ne_bytes(head);
        Ok(())
    }

    /// Where slots begin that are this rank's now; `None` if there is no room.
    fn reserve(&self, ring: &mut FarRing, slots: usize, label: &Label) -> Result<Option<u64>, Error> {
        let tail = Remote { rank: ring.rank, offset: ring.offset + ring::TAIL };
        while self.has_room(ring, slots, label)? {
            let (comparand, operand) = (ring.tail, ring.tail + slots as u64);
            let swap = Atomic { op: AtomicOp::CompareSwap, width: size_of::<u64>(), operand, comparand };
            let what = || format!("could not learn whether it holds slots of the ring of rank {}", ring.rank);
            let found = self.atomic_on_lock(ring.road, tail, swap, label, &what)?;
            ring.tail = if found == comparand { operand } else { found };
            if found == comparand {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Puts a letter into slots that were reserved.
    fn put_letter(&self, ring: &FarRing, position: u64, letter: &Letter<'_>, label: &Label) -> Result<(), Error> {
        let image = letter.image();
        let first = ring.offset + ring::SLOTS;
        let at = first + position as usize % ring.slots * ring::SLOT;
        // What comes round the end of the ring goes first; the rest is one piece, and the stamp its signal.
        let (own, round) = bytemuck::cast_slice::<_, u8>(&image)
            .split_at(letter.slots().min(ring.slots - position as usize % ring.slots) * ring::SLOT);
        if !round.is_empty() {
            self.put_slice(ring.rank, first, round, label)?;
            self.behind_puts(ring.rank, label)?;
        }
        let value = ring::stamp(position, ring.slots);
        let signal = SignalWord { offset: at, op: SignalOp::Set, value, patient: false };
        self.put_message(ring.rank, at + ring::STAMP, &own[ring::STAMP..], signal, label)
    }
}
