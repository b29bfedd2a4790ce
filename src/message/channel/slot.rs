//! The slots of a channel, and the two slices in them.
//!
//! ```text
//!  receiver's segment  | word | data of slot 0 |  | word | data of slot 1 |      sender's segment  | messages read |
//!                        lap: 4 bits, length: 28 bits
//! ```
//!
//! Messages use the slots in turn. The *word* of a slot holds the length of the message in it, and the lap in which the message was put. It is
//! written once for each message, after the data. The *credit* is the number of messages that the receiver has given back. Nothing is ever
//! reset, and no word tells of two slots.
//!
//! # Who owns a slot
//!
//! | | from | until |
//! |---|---|---|
//! | the sender | its credit says that the receiver has given back the message of the lap before, or the slot was never used | it sets the word |
//! | the receiver | the word has the lap that comes next | it sets the credit |
//!
//! So while one of them has a slice into a slot, nobody else, in any process, accesses the slot:
//!
//! 1. A channel has one [`Outlet`] and one [`Inlet`]. Creation pairs them, refuses two with the same ranks and tag, and neither is `Clone`
//!    (`connect`). No other code knows where the slots are: the block belongs to the channels of one creation.
//! 2. What writes takes the outlet `&mut` and looks at the credit first. An inlet has a message between `take` and `give_back`; its slice
//!    borrows the inlet, and `give_back` takes it `&mut`, so no slice outlives it. A guard that is forgotten keeps its message until the next
//!    `take`.
//! 3. Each edge orders: the word is stored (Release) or put by an operation after its data, and loaded (Acquire) before the slice is made.
//!    The credit is stored after the last read of the slice, and loaded before the slot is written.
//! 4. The lap tells a new word from the one before it: a word is at most one lap behind, because the sender waits for the credit. Words
//!    and credits are zero when the channel is created, and the first lap is 1.
//! 5. A put that failed may still land. After a failure the sender never owns a slot again (`Outlet::is_sound`).
//! 6. The block is freed when all members have dropped its channels, after fences (`sync::reclaim`). Puts and credits are puts that a
//!    fence completes, so none lands in memory that is used again. When the job ends the memory stays as long as a channel's group.
//! 7. A process that a rank forks has no segments: its copies of slices fault, as those of epochs do (`array::epoch`).
#![allow(unsafe_code)]

use std::{marker::PhantomData, sync::Arc};

use ndarray::{ArrayView, Dimension};

use super::{super::Block, Peer};
use crate::{
    comm::{
        SignalOp, SignalWord, WaitWord,
        engine::{Engine, Label},
    },
    element::Element,
    error::{Error, Result},
    memory::{buffer::Source, segments::Segment},
    sync::{Group, Kind},
};

/// Bits of a length in a word; the lap is above.
const LENGTH_BITS: u32 = 28;
/// The longest message, in elements.
pub(super) const LONGEST: usize = (1 << LENGTH_BITS) - 1;

/// What both ends of a channel know.
#[derive(Debug)]
pub(super) struct End<T> {
    pub(super) block: Arc<Block>,
    /// The rank at the other end, its number in the group, and the tag.
    pub(super) peer: Peer,
    pub(super) other: usize,
    /// Elements that a slot holds, and the number of slots.
    pub(super) most: usize,
    pub(super) slots: u32,
    /// The first word and the first data in the receiver's segment, and from each to the next.
    pub(super) word: [usize; 2],
    pub(super) data: [usize; 2],
    /// The credit in the sender's segment.
    pub(super) credit: usize,
    /// This rank's segment, and the other's if it is mapped.
    pub(super) near: Segment,
    pub(super) far: Option<Segment>,
    pub(super) label: Label,
    pub(super) element: PhantomData<fn() -> T>,
}

impl<T: Element> End<T> {
    pub(super) fn group(&self) -> &Group {
        &self.block.group
    }

    pub(super) fn engine(&self) -> &Engine {
        self.group().inner.engine()
    }

    /// An error once the job is over.
    #[inline]
    pub(super) fn check(&self, operation: &'static str) -> Result<()> {
        if self.group().inner.segments.over() { Err(self.engine().over(operation)) } else { Ok(()) }
    }

    #[inline]
    fn word_of(&self, slot: u32) -> usize {
        self.word[0] + slot as usize * self.word[1]
    }

    #[inline]
    fn data_of(&self, slot: u32) -> usize {
        self.data[0] + slot as usize * self.data[1]
    }

    /// Puts bytes at the other rank, which is not mapped, and sets a word there: the next message, if there are bytes, or a credit, which may
    /// leave with the answer unless the sender has no other slot.
    fn put(&self, to: usize, bytes: Option<&[u8]>, (offset, value): (usize, u32)) -> Result<()> {
        let signal = SignalWord { offset, op: SignalOp::Set, value, patient: bytes.is_none() && self.slots > 1 };
        self.engine().put_message(self.peer.rank, to, bytes.unwrap_or_default(), signal, &self.label)
    }
}

/// The slot of the next message, and its lap.
#[derive(Clone, Copy, Debug)]
struct Turn {
    slot: u32,
    lap: u32,
}

impl Turn {
    const FIRST: Self = Turn { slot: 0, lap: 1 };

    fn next(self, slots: u32) -> Self {
        if self.slot + 1 < slots { Turn { slot: self.slot + 1, ..self } } else { Turn { slot: 0, lap: self.lap.wrapping_add(1) } }
    }

    /// The word of a message of some length.
    fn word(self, len: usize) -> u32 {
        self.lap << LENGTH_BITS | len as u32
    }

    /// The length of the message that a word tells of, if it is this turn's.
    fn length(self, word: u32) -> Option<usize> {
        (word ^ self.word(0) < 1 << LENGTH_BITS).then_some(word as usize & LONGEST)
    }
}

/// The sender's end of a channel; see [`Group::channels`].
#[derive(Debug)]
pub struct Outlet<T> {
    pub(super) end: End<T>,
    turn: Turn,
    /// Messages put, and those that were given back when last looked; they wrap.
    sent: u32,
    freed: u32,
    /// Where `write` writes what cannot be written where it will be read.
    packed: Vec<T>,
    failed: bool,
}

impl<T: Element> Outlet<T> {
    pub(super) fn new(end: End<T>) -> Self {
        Outlet { end, turn: Turn::FIRST, sent: 0, freed: 0, packed: Vec::new(), failed: false }
    }

    /// The word that ends a wait for a free slot.
    pub(super) fn credit(&self) -> &WaitWord {
        self.end.near.word(self.end.credit)
    }

    /// Returns true if a credit leaves a slot free.
    pub(super) fn suffices(&self, credit: u32) -> bool {
        self.sent.wrapping_sub(credit) < self.end.slots
    }

    /// Returns true if the next slot is free. The credit is looked at only if none was free when last looked at.
    #[inline]
    pub(super) fn is_free(&mut self) -> bool {
        if !self.suffices(self.freed) {
            self.freed = self.credit().load();
        }
        self.suffices(self.freed)
    }

    /// Returns true if no put has failed.
    pub(super) fn is_sound(&self) -> bool {
        !self.failed
    }

    /// Puts the elements of a view, in the order of their indices, into the next slot, which must be free.
    #[inline]
    pub(super) fn send<D: Dimension>(&mut self, view: &ArrayView<'_, T, D>) -> Result<()> {
        let (data, word, value) = self.begin(view.len());
        if let Some(far) = &self.end.far {
            let (part, word) = (far.part(data, view.len()), far.word(word));
            match view.as_slice() {
                Some(slice) => part.write_slice(0, slice),
                None => part.write(0, &row_major(view.raw_dim()), &Source::whole(view)),
            }
            word.publish(value);
        } else if let Some(slice) = view.as_slice() {
            self.put_far(data, slice, (word, value))?;
        } else {
            let packed: Vec<T> = view.iter().copied().collect();
            self.put_far(data, &packed, (word, value))?;
        }
        self.advance();
        Ok(())
    }

    /// Puts a message that `write` writes: into the slot, which must be free, if that is mapped, else into memory that is kept.
    #[inline]
    pub(super) fn write<R>(&mut self, len: usize, write: impl FnOnce(&mut [T]) -> R) -> Result<R> {
        let (data, word, value) = self.begin(len);
        let written = if let Some(far) = &self.end.far {
            let (part, word) = (far.part(data, len), far.word(word));
            // SAFETY: the essay: the slot is the sender's until its word is set, and `self` is borrowed exclusively.
            let written = write(unsafe { part.exclusive() });
            word.publish(value);
            written
        } else {
            let mut packed = std::mem::take(&mut self.packed);
            if packed.len() < len {
                // Fresh memory is zero without a pass over it.
                packed = bytemuck::zeroed_vec(self.end.most);
            }
            let written = write(&mut packed[..len]);
            let put = self.put_far(data, &packed[..len], (word, value));
            self.packed = packed;
            put.map(|()| written)?
        };
        self.advance();
        Ok(written)
    }

    /// Where a message goes, its word, and what that will hold. The caller stores the word right behind the data: meanwhile the receiver,
    /// which looks at the word, takes their line away once more.
    #[inline]
    fn begin(&mut self, len: usize) -> (usize, usize, u32) {
        assert!(self.is_free() && self.is_sound());
        let (end, inner) = (&self.end, &self.end.group().inner);
        if inner.job.counts.is_some() {
            inner.count(Kind::Put, end.other, len * size_of::<T>());
            inner.count(Kind::Signal, end.other, size_of::<u32>());
        }
        (end.data_of(self.turn.slot), end.word_of(self.turn.slot), self.turn.word(len))
    }

    fn put_far(&mut self, data: usize, elements: &[T], word: (usize, u32)) -> Result<()> {
        self.end.engine().behind_puts(self.end.peer.rank, &self.end.label)?;
        self.failed = true;
        self.end.put(data, Some(bytemuck::cast_slice(elements)), word)?;
        self.failed = false;
        Ok(())
    }

    #[inline]
    fn advance(&mut self) {
        self.turn = self.turn.next(self.end.slots);
        self.sent = self.sent.wrapping_add(1);
    }
}

/// The strides of a block in the order of its indices.
fn row_major<D: Dimension>(shape: D) -> D {
    let (mut strides, mut step) = (shape.clone(), 1);
    for (stride, &extent) in strides.slice_mut().iter_mut().zip(shape.slice()).rev() {
        *stride = step;
        step *= extent;
    }
    strides
}

/// The receiver's end of a channel; see [`Group::channels`].
#[derive(Debug)]
pub struct Inlet<T> {
    pub(super) end: End<T>,
    turn: Turn,
    /// Messages given back; wraps.
    read: u32,
    /// The length of the message that this rank has.
    taken: Option<usize>,
}

impl<T: Element> Inlet<T> {
    pub(super) fn new(end: End<T>) -> Self {
        Inlet { end, turn: Turn::FIRST, read: 0, taken: None }
    }

    /// The word that ends a wait for the next message.
    #[inline]
    pub(super) fn word(&self) -> &WaitWord {
        self.end.near.word(self.end.word_of(self.turn.slot))
    }

    /// Returns true if a word tells of the next message.
    pub(super) fn tells(&self, word: u32) -> bool {
        self.turn.length(word).is_some()
    }

    /// Takes the next message, if it has arrived. A message that this rank still has goes back.
    #[inline]
    pub(super) fn take(&mut self) -> Result<bool> {
        self.give_back()?;
        let Some(len) = self.turn.length(self.word().load()) else { return Ok(false) };
        if len > self.end.most {
            return Err(Error::argument("wait", format_args!("a message of {len} elements: memory was damaged")));
        }
        self.taken = Some(len);
        if let Some(far) = &self.end.far {
            // The line of the credit comes while the message is read. Else the credit waits for it, and behind it an answer: 100 bytes there
            // and back take 6 % longer (median of 20 runs, Zen 4).
            far.part::<u64>(self.end.credit, 1).slot(0).prefetch_to_write();
        }
        Ok(true)
    }

    /// The message that this rank has.
    #[inline]
    pub(super) fn slice(&self) -> &[T] {
        let part = self.end.near.part(self.end.data_of(self.turn.slot), self.taken.unwrap_or(0));
        // SAFETY: the essay: the word was seen, and the credit is set by a call that needs `self` exclusively.
        unsafe { part.shared() }
    }

    /// Gives the slot of the message back to the sender, if this rank has one.
    #[inline]
    pub(super) fn give_back(&mut self) -> Result<()> {
        if self.taken.take().is_none() {
            return Ok(());
        }
        self.turn = self.turn.next(self.end.slots);
        self.read = self.read.wrapping_add(1);
        let credit = self.end.credit;
        match &self.end.far {
            Some(far) => far.word(credit).publish(self.read),
            None => self.end.put(credit, None, (credit, self.read))?,
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// More laps than a word tells apart, each length, any number of slots.
    #[test]
    fn a_word_tells_of_its_own_turn_and_not_of_the_lap_before() {
        for slots in 1..4 {
            let mut words = vec![0; slots as usize];
            let mut turn = Turn::FIRST;
            for message in 0..100 {
                let word = &mut words[turn.slot as usize];
                assert_eq!(turn.length(*word), None, "message {message} of {slots} slots");
                let len = [0, 1, message, LONGEST][message % 4];
                *word = turn.word(len);
                assert_eq!(turn.length(*word), Some(len));
                turn = turn.next(slots);
            }
        }
    }

    #[test]
    fn strides_are_those_of_the_order_of_indices() {
        assert_eq!(row_major(ndarray::Dim([2, 3, 4])), ndarray::Dim([12, 4, 1]));
        assert_eq!(row_major(ndarray::Dim([5, 0, 4])), ndarray::Dim([0, 4, 1]));
        assert_eq!(row_major(ndarray::Dim([])), ndarray::Dim([]));
        assert_eq!(row_major(ndarray::IxDyn(&[7])), ndarray::IxDyn(&[1]));
    }
}
