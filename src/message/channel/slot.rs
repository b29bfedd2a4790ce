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
//! 1. A channel has one [`Sending`] and one [`Receiving`]. Creation pairs them, refuses two with the same ranks and tag, and neither is `Clone`
//!    (`connect`). No other code knows where the slots are: the block belongs to the channels of one creation.
//! 2. [`Sending::slice`] and what puts take `&mut self` and look at the credit first. [`Receiving`] has a message between
//!    [`arrived`](Receiving::arrived) and [`give_back`](Receiving::give_back); its slice borrows it, and `give_back` takes `&mut self`, so no
//!    slice outlives it. A guard that is forgotten keeps its message until the next look.
//! 3. Each edge orders: the word is stored (Release) or put by an operation after its data, and loaded (Acquire) before the slice is made.
//!    The credit is stored after the last read of the slice, and loaded before the slot is written.
//! 4. The lap tells a new word from the one before it: a word is at most one lap behind, because the sender waits for the credit. Words
//!    and credits are zero when the channel is created, and the first lap is 1.
//! 5. A put that failed may still land. After a failure the sender never owns a slot again ([`Sending::check`]).
//! 6. The block is freed when all members have dropped its channels, after fences (`sync::reclaim`). Puts and credits are puts that a
//!    fence completes, so none lands in memory that is used again. When the job ends the memory stays as long as a channel's group.
//! 7. A process that a rank forks has no segments: its copies of slices fault, as those of epochs do (`array::epoch`).
#![allow(unsafe_code)]

use std::{marker::PhantomData, sync::Arc};

use ndarray::{ArrayView, Dimension};

use crate::{
    comm::{
        WaitWord,
        engine::{Engine, Label},
    },
    element::Element,
    error::{Error, Result},
    memory::{buffer::Source, part::Part},
    sync::{Group, Kind},
};

/// Bits of a length in a word; the lap is above.
const LENGTH_BITS: u32 = 28;
/// The longest message, in elements.
pub(super) const LONGEST: usize = (1 << LENGTH_BITS) - 1;

/// The memory of all channels of one creation, which is given back when the last of them is dropped.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) group: Group,
    /// Where it begins in every member's segment.
    pub(super) offset: usize,
}

impl Drop for Block {
    fn drop(&mut self) {
        self.group.inner.blocks().drop_block(self.offset, Vec::new());
    }
}

/// The slots of a channel, as bytes of the receiver's segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slots {
    pub(super) count: u32,
    /// The first word, and the distance of the next.
    pub(super) word: usize,
    pub(super) word_step: usize,
    /// The same of data.
    pub(super) data: usize,
    pub(super) data_step: usize,
}

/// Both ends of a channel know it so.
#[derive(Debug)]
pub(super) struct End<T> {
    pub(super) block: Arc<Block>,
    /// The member at the other end.
    pub(super) other: usize,
    pub(super) tag: u64,
    /// Elements that a slot holds.
    pub(super) most: usize,
    pub(super) slots: Slots,
    /// The word in the sender's segment.
    pub(super) credit: usize,
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

    /// A word of this rank's own.
    fn own_word(&self, offset: usize) -> &WaitWord {
        let inner = &self.group().inner;
        inner.segments.own_word(inner.engine().conduit().segment(), offset)
    }

    /// The data of a slot in the other member's segment, if that is mapped.
    fn mapped(&self, slot: u32, len: usize) -> Option<Part<'_, T>> {
        self.group().inner.segments.part(self.other, self.slots.data + slot as usize * self.slots.data_step, len)
    }

    /// Sets a word of the other member after all that this rank put there; before it come `bytes`, if that member is not mapped.
    fn set(&self, (word, value): (usize, u32), (to, bytes): (usize, &[u8])) -> Result<()> {
        let inner = &self.group().inner;
        let rank = inner.rank_of(self.other);
        let Some(mapped) = inner.segments.word(self.other, word) else {
            return inner.engine().put_and_announce(rank, to, bytes, (word, value), &self.label);
        };
        // What went by the network is not ordered before a store.
        if !inner.mapped {
            inner.engine().fence(Some(rank), &self.label)?;
        }
        mapped.store(value);
        mapped.wake();
        Ok(())
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

/// The sender's side.
#[derive(Debug)]
pub(super) struct Sending<T> {
    pub(super) end: End<T>,
    turn: Turn,
    /// Messages put, and those that were given back when last looked; they wrap.
    sent: u32,
    freed: u32,
    /// What is written where the receiver is not mapped and the data are not one run.
    packed: Vec<T>,
    failed: bool,
}

impl<T: Element> Sending<T> {
    pub(super) fn new(end: End<T>) -> Self {
        Sending { end, turn: Turn::FIRST, sent: 0, freed: 0, packed: Vec::new(), failed: false }
    }

    /// The word that ends a wait for a free slot.
    pub(super) fn credit(&self) -> &WaitWord {
        self.end.own_word(self.end.credit)
    }

    /// Returns true if a credit leaves a slot free.
    pub(super) fn suffices(&self, credit: u32) -> bool {
        self.sent.wrapping_sub(credit) < self.end.slots.count
    }

    /// Returns true if the next slot is free. The credit is looked at only if it was not when last looked at.
    #[inline]
    pub(super) fn is_free(&mut self) -> bool {
        if !self.suffices(self.freed) {
            self.freed = self.credit().load();
        }
        self.suffices(self.freed)
    }

    /// An error after a put that failed.
    pub(super) fn check(&self) -> Result<()> {
        if !self.failed {
            return Ok(());
        }
        let what = "a put on this channel failed, and its message may still arrive: the channel cannot be used any more";
        Err(Error::argument("put", what))
    }

    /// Puts the elements of a view, in the order of their indices.
    ///
    /// # Panics
    /// If no slot is free.
    pub(super) fn put<D: Dimension>(&mut self, view: &ArrayView<'_, T, D>) -> Result<()> {
        assert!(self.is_free(), "a slot that is not free");
        let len = view.len();
        if let Some(part) = self.end.mapped(self.turn.slot, len) {
            match view.as_slice() {
                Some(slice) => part.write_slice(0, slice),
                None => part.write(0, &row_major(view.raw_dim()), &Source::whole(view)),
            }
            return self.tell(len, &[]);
        }
        if let Some(slice) = view.as_slice() {
            return self.tell(len, slice);
        }
        let mut packed = std::mem::take(&mut self.packed);
        packed.clear();
        packed.extend(view.iter());
        let told = self.tell(len, &packed);
        self.packed = packed;
        told
    }

    /// Puts a message that `write` writes: into the slot if that is mapped, else into memory that is kept.
    ///
    /// # Panics
    /// If no slot is free.
    pub(super) fn fill<R>(&mut self, len: usize, write: impl FnOnce(&mut [T]) -> R) -> Result<R> {
        assert!(self.is_free(), "a slot that is not free");
        if let Some(part) = self.end.mapped(self.turn.slot, len) {
            // SAFETY: the essay: the slot is the sender's until `tell`, and `self` is borrowed exclusively.
            let value = write(unsafe { part.exclusive() });
            return self.tell(len, &[]).map(|()| value);
        }
        let mut packed = std::mem::take(&mut self.packed);
        if packed.len() < len {
            // Fresh memory is zero without a pass over it.
            packed = bytemuck::zeroed_vec(self.end.most);
        }
        let value = write(&mut packed[..len]);
        let told = self.tell(len, &packed[..len]);
        self.packed = packed;
        told.map(|()| value)
    }

    /// Sets the word of a message whose data are in the slot, or go along.
    fn tell(&mut self, len: usize, data: &[T]) -> Result<()> {
        let (end, slot) = (&self.end, self.turn.slot as usize);
        let (word, to) = (end.slots.word + slot * end.slots.word_step, end.slots.data + slot * end.slots.data_step);
        let inner = &end.group().inner;
        if inner.job.counts.is_some() {
            inner.count(Kind::Put, end.other, len * size_of::<T>());
            inner.count(Kind::Signal, end.other, size_of::<u32>());
        }
        self.failed = true;
        end.set((word, self.turn.word(len)), (to, bytemuck::cast_slice(data)))?;
        self.failed = false;
        self.turn = self.turn.next(self.end.slots.count);
        self.sent = self.sent.wrapping_add(1);
        // Now, while this rank goes on, rather than in the way of the next put.
        self.is_free();
        Ok(())
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

/// The receiver's side.
#[derive(Debug)]
pub(super) struct Receiving<T> {
    pub(super) end: End<T>,
    turn: Turn,
    /// Messages given back; wraps.
    read: u32,
    /// The length of the message that this rank has.
    arrived: Option<usize>,
}

impl<T: Element> Receiving<T> {
    pub(super) fn new(end: End<T>) -> Self {
        Receiving { end, turn: Turn::FIRST, read: 0, arrived: None }
    }

    /// The word that ends a wait for the next message.
    pub(super) fn word(&self) -> &WaitWord {
        self.end.own_word(self.end.slots.word + self.turn.slot as usize * self.end.slots.word_step)
    }

    /// Returns true if a word tells of the next message.
    pub(super) fn tells(&self, word: u32) -> bool {
        self.turn.length(word).is_some()
    }

    /// Takes the next message, if it has arrived. A message that this rank still has goes back.
    pub(super) fn arrived(&mut self) -> Result<bool> {
        self.give_back()?;
        let Some(len) = self.turn.length(self.word().load()) else { return Ok(false) };
        if len > self.end.most {
            let what = format_args!("a message of {len} elements where {} are possible: memory was damaged", self.end.most);
            return Err(Error::argument("wait", what));
        }
        self.arrived = Some(len);
        Ok(true)
    }

    /// The message that this rank has.
    pub(super) fn slice(&self) -> &[T] {
        let (end, Some(len)) = (&self.end, self.arrived) else { return &[] };
        let inner = &end.group().inner;
        let at = end.slots.data + self.turn.slot as usize * end.slots.data_step;
        let part = inner.segments.own_part(inner.engine().conduit().segment(), at, len);
        // SAFETY: the essay: the word was seen, and the credit is set by a call that needs `self` exclusively.
        unsafe { part.shared() }
    }

    /// Gives the slot of the message back to the sender, if this rank has one.
    pub(super) fn give_back(&mut self) -> Result<()> {
        if self.arrived.take().is_none() {
            return Ok(());
        }
        self.turn = self.turn.next(self.end.slots.count);
        self.read = self.read.wrapping_add(1);
        self.end.set((self.end.credit, self.read), (self.end.credit, &[]))
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
