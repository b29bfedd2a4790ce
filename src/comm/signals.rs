//! Put with signal: data, then a word that announces them.
//!
//! | the network has | what is sent |
//! |---|---|
//! | signals | one operation, and nothing to wait for but the memory |
//! | order among puts | the bytes, and the word right behind them |
//! | neither | the bytes, a flush, the word, another flush: the waiting rank must not need a further call of this rank |
//!
//! A word of a collective is awaited by its receiver before anything else happens, so no fence of this rank waits for it: its target is
//! not marked as one with puts to be flushed. Nobody need wait for a signal that a program raises. It is a put like any other: the next
//! fence, sync or creation completes it, so that it is counted after a sync and never lands in memory that was used again.

use std::sync::atomic::{Ordering, fence};

use super::{
    AtomicOp, Local, Remote, SignalOp, SignalWord, Token,
    engine::{Engine, Label, Road},
    transfers::Direction,
};
use crate::error::Error;

impl Engine {
    /// Puts bytes, then sets the word at byte `word` of the same rank's segment, on which the rank may wait. Returns when `bytes` may
    /// be used again. Keeps no order with what was put before.
    pub(crate) fn put_and_set(
        &self,
        rank: usize,
        offset: usize,
        bytes: &[u8],
        (word, value): (usize, u32),
        label: &Label,
    ) -> Result<(), Error> {
        let capabilities = self.conduit.capabilities();
        if capabilities.native.signals && bytes.len() <= capabilities.longest_transfer {
            let signal = SignalWord { offset: word, op: SignalOp::Set, value };
            return self.put_signal(Direction::Signal, rank, offset, bytes, signal, label);
        }
        // What was stored into mapped memory: pairs with the acquire of whoever is told about it.
        fence(Ordering::SeqCst);
        let value = value.to_ne_bytes();
        if !capabilities.order.put_put {
            self.put_apart(Direction::Put, rank, &[(offset, bytes)], label)?;
            self.flush(Some(rank), label)?;
            self.put_apart(Direction::Put, rank, &[(word, &value)], label)?;
            return self.flush(Some(rank), label);
        }
        self.put_apart(Direction::Signal, rank, &[(offset, bytes), (word, &value)], label)
    }

    /// Adds one to a word of a rank's segment, on which the rank may wait, after everything that this rank put there.
    pub(crate) fn raise(&self, rank: usize, word: usize, label: &Label) -> Result<(), Error> {
        let capabilities = self.conduit.capabilities();
        if capabilities.native.signals && capabilities.order.put_put {
            // Behind what was put before by itself; what of that is known to have failed is told as by a fence.
            self.lock().untold().map_or(Ok(()), Err)?;
        } else {
            self.fence(Some(rank), label)?;
        }
        if !capabilities.native.signals {
            let width = size_of::<u32>();
            return self.atomic(rank, Road::Network, word, AtomicOp::Add, width, 1, 0, label).map(|_| ());
        }
        self.put_signal(Direction::Put, rank, word, &[], SignalWord { offset: word, op: SignalOp::Add, value: 1 }, label)
    }

    fn put_signal(
        &self,
        direction: Direction,
        rank: usize,
        offset: usize,
        bytes: &[u8],
        signal: SignalWord,
        label: &Label,
    ) -> Result<(), Error> {
        fence(Ordering::SeqCst);
        let request = self.begin_unordered(label.clone());
        let issued = self.admit(request, rank, direction);
        if issued.is_ok() {
            let local = Local { ptr: bytes.as_ptr().cast_mut(), len: bytes.len() };
            // SAFETY: the slice is borrowed until the request is complete: `finish_borrowed` does not return before. It is no longer
            // than the network takes, and the callers' types guarantee that `signal` names a word of a committed block.
            unsafe { self.conduit.put_signal(Remote { rank, offset }, local, signal, Token(request.0)) };
        }
        self.finish_borrowed(request, issued)
    }

    /// Puts slices one after the other, wherever other puts are, and waits until they may be used again.
    fn put_apart(&self, direction: Direction, rank: usize, slices: &[(usize, &[u8])], label: &Label) -> Result<(), Error> {
        let request = self.begin_unordered(label.clone());
        let issued = slices.iter().try_for_each(|&(offset, bytes)| {
            // SAFETY: the slice is borrowed until the request is complete: `finish_borrowed` does not return before.
            unsafe { self.transfer(direction, request, rank, offset, bytes.as_ptr().cast_mut(), bytes.len()) }
        });
        self.finish_borrowed(request, issued)
    }
}
