//! Appending letters to a ring of another rank.
//!
//! | the ring | how |
//! |---|---|
//! | is mapped | this processor writes |
//! | else, where the network appends | it carries the letter; see below |
//! | else | compare and swap on the tail reserves slots, and a put carries the letter with its stamp as the signal |
//!
//! A letter comes whole, behind everything that its writer put at that rank before. It is a put like any other: after the next fence it is in the
//! ring, or held for it, so it never lands in memory that is used again.
//!
//! The network takes letters for a full ring too, and holds them. So a writer wants to hear now and then that a letter is in the ring, and sends no
//! more than [`WINDOW`] bytes that it has not heard of. Between two ranks no more is held.

use std::{cell::Cell, ptr::NonNull};

use super::{
    Engine, Label, Road, Waiter,
    lasting::TURN,
    requests::{Direction, RequestId},
};
use crate::{
    comm::{Atomic, AtomicOp, Operation, Remote, RingPlace, SignalOp, SignalWord, Token},
    error::Error,
    memory::{
        ring::{self, Letter, Ring},
        segments::Segment,
    },
};

/// Bytes of letters that the network may carry or hold for one writer and ring: two of the longest.
const WINDOW: usize = (16 << 10) + 256;
/// Looks of a wait that is too short to be seen by others.
const SHORT: u32 = 100;
/// Bytes behind a letter that the writer wanted to hear of, from which it wants to hear of another one.
const ASKED: usize = WINDOW / 4;

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
    /// The letter that the writer wants to hear of; bytes sent behind the last one, and bytes that it has not heard of.
    awaited: Option<RequestId>,
    behind: usize,
    unheard: usize,
}

impl FarRing {
    pub(crate) fn new(rank: usize, [offset, slots]: [usize; 2], segment: Option<Segment>, road: Road) -> Self {
        FarRing { rank, offset, slots, segment, road, head: 0, tail: 0, awaited: None, behind: 0, unheard: 0 }
    }
}

impl Engine {
    /// The segment of a ring, if this processor does all. Where the network appends, only processors change a ring.
    fn near(&self, ring: &FarRing) -> Option<Segment> {
        ring.segment.filter(|_| ring.road == Road::Processor || self.capabilities.native.append)
    }

    /// This rank's own segment.
    pub(crate) fn own_segment(&self) -> Segment {
        self.segment_at(self.conduit.segment())
    }

    fn segment_at(&self, base: NonNull<u8>) -> Segment {
        // SAFETY: a segment of the job begins there, and is mapped as long as the conduit, which the engine keeps alive.
        unsafe { Segment::new(base, self.conduit.segment_len()) }
    }

    /// A ring of a rank that any rank of the job may write to.
    pub(crate) fn ring_of_rank(&self, rank: usize, place: [usize; 2]) -> FarRing {
        let base = if rank == self.rank() { Some(self.conduit.segment()) } else { self.conduit.mapped_segment(rank) };
        let topology = self.conduit.topology();
        let by_processor = topology.is_mapped(rank) && (self.capabilities.native.coherent == 8 || topology.is_all_mapped());
        let road = if by_processor { Road::Processor } else { Road::Network };
        FarRing::new(rank, place, base.map(|base| self.segment_at(base)), road)
    }

    /// Appends a letter to a ring, behind what this rank put there; false if that has no room. On return the letter's memory may be used
    /// again.
    #[inline]
    pub(crate) fn append(&self, ring: &mut FarRing, letter: &Letter<'_>, label: &Label) -> Result<bool, Error> {
        if self.near(ring).is_none() {
            // Here, and not behind the reservation: slots without a stamp would block the ring.
            self.behind_puts(ring.rank, label)?;
        }
        self.append_beside(ring, letter, label)
    }

    /// The same, whatever became of puts.
    #[inline]
    pub(crate) fn append_beside(&self, ring: &mut FarRing, letter: &Letter<'_>, label: &Label) -> Result<bool, Error> {
        if let Some(segment) = self.near(ring) {
            let mapped = segment.ring(ring.offset, ring.slots);
            let Ok(position) = mapped.reserve(&mut ring.head, letter.slots()) else { return Ok(false) };
            mapped.write(position, letter);
            return Ok(true);
        }
        if self.capabilities.native.append {
            return self.append_by_network(ring, letter, label);
        }
        let Some(position) = self.reserve(ring, letter.slots(), label)? else { return Ok(false) };
        match ring.segment {
            Some(segment) => segment.ring(ring.offset, ring.slots).write(position, letter),
            None => self.put_letter(ring, position, letter, label).inspect_err(|error| {
                self.conduit.end(&format!("could not write a letter to the ring of rank {}: {error}", ring.rank));
            })?,
        }
        Ok(true)
    }

    /// Lets the network append a letter, if the window is open.
    fn append_by_network(&self, ring: &mut FarRing, letter: &Letter<'_>, label: &Label) -> Result<bool, Error> {
        self.check(label.operation)?;
        let bytes = letter.packed();
        let is_beyond = |ring: &FarRing, half: usize| ring.behind + bytes > half || ring.unheard + bytes > WINDOW;
        // So there is room for the longest letter behind the one that it hears of, whatever is under way.
        if is_beyond(ring, ASKED) && !self.has_heard(ring)? && is_beyond(ring, WINDOW / 2) {
            return Ok(false);
        }
        (ring.behind, ring.unheard) = (ring.behind + bytes, ring.unheard + bytes);
        let mut token = Token::NOBODY;
        if ring.awaited.is_none() && ring.behind > ASKED {
            let request = self.expect(label.clone());
            (ring.awaited, ring.behind, token) = (Some(request), 0, request.into());
        }
        let place = RingPlace { at: Remote { rank: ring.rank, offset: ring.offset }, slots: ring.slots };
        // SAFETY: the ring is committed, and the letter is copied.
        let _ = unsafe { self.conduit.issue(&Operation::Append { ring: place, letter: *letter }, token) };
        let call = self.begin_unordered(label.clone());
        self.lock().put_begins(&call, ring.rank, Direction::Put);
        Ok(true)
    }

    /// Returns true if the letter is in the ring that the writer wants to hear of.
    fn has_heard(&self, ring: &mut FarRing) -> Result<bool, Error> {
        let Some(request) = ring.awaited else { return Ok(true) };
        let mut table = self.lock();
        let is_in = table.is_complete(request);
        if is_in {
            (ring.awaited, ring.unheard) = (None, ring.behind);
            table.end(request)?;
        }
        Ok(is_in)
    }

    /// Looks whether the letter is in the ring that the writer wants to hear of. To look `surely` is to ask the ring's rank something first: word of
    /// the letter that is on its way comes before the answer. The looks of a wait that is published are such looks.
    fn look_for_word(&self, ring: &mut FarRing, surely: bool, label: &Label) -> Result<Option<()>, Error> {
        if surely {
            // A handler answers for a word of four bytes, here the first stamp. An adapter would know nothing of letters.
            let stamp = Remote { rank: ring.rank, offset: ring.offset + ring::SLOTS };
            let ask = Atomic { op: AtomicOp::Load, width: size_of::<u32>(), operand: 0, comparand: 0 };
            self.atomic(Road::Network, stamp, ask, label)?;
        }
        self.has_heard(ring).map(|heard| heard.then_some(()))
    }

    /// A writer sends no more letters.
    pub(crate) fn forget_ring(&self, ring: &FarRing) {
        ring.awaited.into_iter().for_each(|request| self.detach(request));
    }

    /// The reader of a ring reads no more. When this returns, nobody holds letters for it, or the job is over.
    pub(crate) fn close_ring(&self, ring: Ring<'_>) {
        if self.is_inherited() {
            return;
        }
        ring.close();
        while ring.is_held() && self.check("close").is_ok() {
            self.progress();
            self.conduit.pause(TURN);
        }
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
        if let Some(segment) = self.near(ring) {
            let (mapped, head) = (segment.ring(ring.offset, ring.slots), Cell::new(ring.head));
            let has_room = || {
                let mut seen = head.get();
                let has_room = mapped.has_room(&mut seen, mapped.tail(), slots);
                head.set(seen);
                has_room
            };
            return self.wait_any_word(waiter, || (otherwise() || has_room()).then_some(()));
        }
        if self.capabilities.native.append {
            let mut looks = 0;
            return self.take_turns(waiter, || match otherwise() {
                true => Some(Ok(())),
                false => {
                    looks += 1;
                    self.look_for_word(ring, looks > SHORT, label).transpose()
                }
            })?;
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

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use super::*;
    use crate::comm::{
        Event,
        testing::{Call, Fake},
    };

    /// A writer hears that letters are in the ring before the network has more than a window of them. A fence flushes them, and does not wait for
    /// more.
    #[test]
    fn the_network_carries_a_window_of_letters() {
        let (carried, asked): (Arc<AtomicUsize>, Arc<std::sync::Mutex<Option<Token>>>) = Default::default();
        let (sent, wants) = (carried.clone(), asked.clone());
        let flushes: Arc<AtomicUsize> = Arc::default();
        let flushed = flushes.clone();
        let mut fake = Fake::new(move |call| {
            if let Call::Append(bytes, token) = call {
                sent.fetch_add(bytes, Ordering::SeqCst);
                if token != Token::NOBODY {
                    assert_eq!(wants.lock().unwrap().replace(token), None);
                }
            }
            let Call::Flush(token) = call else { return None };
            flushed.fetch_add(1, Ordering::SeqCst);
            Some(Event::RemoteDone(token))
        });
        fake.capabilities.native.append = true;
        fake.capabilities.order.put_put = true;
        let engine = fake.engine(None);
        let mut ring = FarRing::new(1, [0, 64], None, Road::Network);
        let label = Label::new("(messages)", "send");
        let mut at_once = |engine: &Engine, payload: &[u8]| {
            let mut letters = 0;
            while engine.append(&mut ring, &Letter { from: 0, words: &[1], payload }, &label).unwrap() {
                letters += 1;
            }
            letters
        };
        assert!(at_once(&engine, &[0; 8]) > 500);
        assert!((WINDOW / 2..=WINDOW).contains(&carried.load(Ordering::SeqCst)), "{carried:?}");
        assert_eq!(at_once(&engine, &[0; 8]), 0);
        engine.fence(None, &label).unwrap();
        assert_eq!(flushes.load(Ordering::SeqCst), 1);
        let token = asked.lock().unwrap().take().unwrap();
        engine.lock().complete(token, |_| {});
        // The longest letters too.
        let before = carried.load(Ordering::SeqCst);
        assert_eq!(at_once(&engine, &[0; 8192]), 1);
        assert!(asked.lock().unwrap().take().is_some() && carried.load(Ordering::SeqCst) > before + 8192);
    }
}
