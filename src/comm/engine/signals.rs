//! Put with signal: data, then a word that announces them.
//!
//! | the network has | what is sent |
//! |---|---|
//! | signals | one operation |
//! | order among puts | bytes, word |
//! | neither | bytes, flush, word, flush: the waiting rank must not need a further call of this rank |
//!
//! A program's signal is an addition: without signals, an atomic operation behind a fence. Its data share its operation if they are one
//! run of bytes at the signal's rank (`strided`); else a put carries them first.
//!
//! The receiver of a collective's word waits for it before anything else happens, so its target is not marked for a flush. A program's
//! signal, and a message of a channel, is a put like any other: the next fence, sync or creation completes it, so it never lands in
//! memory that is used again.

use std::sync::atomic::{Ordering, fence};

use super::{Engine, Label, Road, requests::Direction};
use crate::{
    comm::{Atomic, AtomicOp, Local, Operation, Remote, SignalOp, SignalWord},
    error::Error,
};

impl Engine {
    /// Puts bytes, then sets the word at byte `word` of the same rank's segment, on which the rank may wait. Returns when `bytes` may
    /// be used again. Keeps no order with what was put before, and no fence completes it.
    pub(crate) fn put_and_set(
        &self,
        rank: usize,
        offset: usize,
        bytes: &[u8],
        word: (usize, u32),
        label: &Label,
    ) -> Result<(), Error> {
        let signal = SignalWord { offset: word.0, op: SignalOp::Set, value: word.1, patient: false };
        self.put_then_set(Direction::Signal, rank, offset, bytes, signal, label)
    }

    /// The same as a put that a fence completes.
    pub(crate) fn put_message(
        &self,
        rank: usize,
        offset: usize,
        bytes: &[u8],
        signal: SignalWord,
        label: &Label,
    ) -> Result<(), Error> {
        self.put_then_set(Direction::Put, rank, offset, bytes, signal, label)
    }

    fn put_then_set(
        &self,
        direction: Direction,
        rank: usize,
        offset: usize,
        bytes: &[u8],
        signal: SignalWord,
        label: &Label,
    ) -> Result<(), Error> {
        let capabilities = &self.capabilities;
        if capabilities.native.signals && bytes.len() <= capabilities.longest_transfer {
            return self.put_signal(direction, rank, offset, bytes, signal, label);
        }
        // For what was stored into mapped memory: pairs with the acquire of a thread that learns of it.
        fence(Ordering::SeqCst);
        let (word, value) = (signal.offset, signal.value.to_ne_bytes());
        if !capabilities.order.put_put {
            self.put_apart(Direction::Put, rank, &[(offset, bytes)], label)?;
            self.flush(Some(rank), label)?;
            self.put_apart(Direction::Put, rank, &[(word, &value)], label)?;
            return self.flush(Some(rank), label);
        }
        self.put_apart(direction, rank, &[(offset, bytes), (word, &value)], label)
    }

    /// Adds one to a word of a rank's segment, on which the rank may wait, after everything that this rank put there.
    pub(crate) fn raise(&self, rank: usize, word: usize, label: &Label) -> Result<(), Error> {
        if self.capabilities.native.signals {
            return self.put_and_raise(rank, word, &[], word, label);
        }
        self.fence(Some(rank), label)?;
        let add = Atomic { op: AtomicOp::Add, width: size_of::<u32>(), operand: 1, comparand: 0 };
        self.atomic(Road::Network, Remote { rank, offset: word }, add, label).map(|_| ())
    }

    /// Puts bytes and raises the word at byte `word` of the same rank's segment, as [`raise`](Self::raise) does: one operation of a
    /// network that announces signals, on at most `longest_transfer` bytes. Returns when `bytes` may be used again.
    pub(super) fn put_and_raise(
        &self,
        rank: usize,
        offset: usize,
        bytes: &[u8],
        word: usize,
        label: &Label,
    ) -> Result<(), Error> {
        self.behind_puts(rank, label)?;
        let signal = SignalWord { offset: word, op: SignalOp::Add, value: 1, patient: false };
        self.put_signal(Direction::Put, rank, offset, bytes, signal, label)
    }

    /// A put that comes next will be visible at a rank after all that this rank put there.
    pub(crate) fn behind_puts(&self, rank: usize, label: &Label) -> Result<(), Error> {
        if self.capabilities.order.put_put {
            // The network keeps it behind earlier puts. Those that are known to have failed are reported as by a fence.
            self.lock().untold().map_or(Ok(()), Err)
        } else {
            self.fence(Some(rank), label)
        }
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
        let call = self.begin_unordered(label.clone());
        let operation = Operation::PutSignal { to: Remote { rank, offset }, local: Local::of(bytes), signal };
        // SAFETY: the slice is borrowed until the call is complete: `finish_call` does not return before. It is no longer than the
        // network takes, and the callers' types guarantee that `signal` names a word of a committed block.
        let issued = unsafe { self.issue(&call, direction, &operation) };
        self.finish_call(call, issued)
    }

    /// Puts slices one after the other, wherever other puts are, and waits until they may be used again.
    fn put_apart(&self, direction: Direction, rank: usize, slices: &[(usize, &[u8])], label: &Label) -> Result<(), Error> {
        let call = self.begin_unordered(label.clone());
        let issued = slices.iter().try_for_each(|&(offset, bytes)| {
            // SAFETY: the slice is borrowed until the request is complete: `finish_call` does not return before.
            unsafe { self.transfer(direction, &call, Remote { rank, offset }, Local::of(bytes)) }
        });
        self.finish_call(call, issued)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::comm::{
        Event,
        testing::{Call, Fake},
    };

    /// What the engine asks of a network with signals, which keeps the order of puts or not.
    fn asked(ordered: bool, act: impl FnOnce(&Engine, &Label)) -> Vec<String> {
        let list: Arc<Mutex<Vec<String>>> = Arc::default();
        let asked = list.clone();
        let mut fake = Fake::new(move |call| {
            let (what, event) = match call {
                Call::Put(token) => ("put".to_owned(), Event::LocalDone(token)),
                Call::PutSignal { len, signal: SignalWord { offset, op, value, .. }, token } => {
                    (format!("put {len}, {op:?} {value} at {offset}"), Event::LocalDone(token))
                }
                Call::Flush(token) => ("flush".to_owned(), Event::RemoteDone(token)),
                _ => return None,
            };
            asked.lock().unwrap().push(what);
            Some(event)
        });
        fake.capabilities.native.signals = true;
        fake.capabilities.order.put_put = ordered;
        act(&fake.engine(None), &Label::new("a", "put_signal"));
        list.lock().unwrap().clone()
    }

    #[test]
    fn data_and_signal_are_one_operation() {
        for ordered in [false, true] {
            let calls = asked(ordered, |engine, label| engine.put_and_raise(1, 64, &[7; 8], 128, label).unwrap());
            assert_eq!(calls, ["put 8, Add 1 at 128"], "ordered: {ordered}");
        }
    }

    #[test]
    fn what_was_put_before_is_flushed_where_the_network_keeps_no_order() {
        let act = |engine: &Engine, label: &Label| {
            engine.put_slice(1, 0, &[1; 8], label).unwrap();
            engine.put_and_raise(1, 64, &[7; 8], 128, label).unwrap();
        };
        assert_eq!(asked(true, act), ["put", "put 8, Add 1 at 128"]);
        assert_eq!(asked(false, act), ["put", "flush", "put 8, Add 1 at 128"]);
    }

    /// It is a put: its data are visible after a fence.
    #[test]
    fn a_fence_flushes_what_came_with_a_signal() {
        let act = |engine: &Engine, label: &Label| {
            engine.put_and_raise(1, 64, &[7; 8], 128, label).unwrap();
            engine.fence(None, label).unwrap();
        };
        assert_eq!(asked(true, act), ["put 8, Add 1 at 128", "flush"]);
    }
}
