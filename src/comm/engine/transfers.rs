//! Puts, gets and atomic operations: each is part of a request, and at most a window of them is in flight.

use std::collections::VecDeque;

use super::{
    Engine, Road,
    lasting::{Lasting, TURN, Waiter},
    requests::{Call, Direction, Label, Owner, RequestId},
};
use crate::{
    comm::{Atomic, Issued, Local, Operation, Remote, Token, apply_atomic},
    element::Element,
    error::Error,
};

/// Atomic operations of a list that are in flight at once: as many messages as an inbox takes without waiting.
const ATOMICS: usize = 32;

/// Bytes of a put that is issued under the table's lock, so that it need not enter the table. More would keep the other threads of
/// the rank waiting.
const SHORT: usize = 4096;

/// A wait for a place in the window.
struct Room {
    rank: usize,
    window: usize,
}

impl Waiter for Room {
    fn operation(&self) -> String {
        format!("a transfer with rank {}", self.rank)
    }
    fn missing(&self) -> String {
        format!("the completion of one of the {} transfers in flight", self.window)
    }
}

impl Engine {
    /// Adds a put to a call, waiting while the window is full.
    ///
    /// # Safety
    /// As [`Operation`] says, until the request is complete.
    pub(crate) unsafe fn put(&self, call: &Call, rank: usize, offset: usize, ptr: *const u8, len: usize) -> Result<(), Error> {
        // SAFETY: the caller's promise; a put only reads the memory.
        unsafe { self.transfer(Direction::Put, call, Remote { rank, offset }, Local { ptr: ptr.cast_mut(), len }) }
    }

    /// Adds a get to a call, waiting while the window is full.
    ///
    /// # Safety
    /// As [`Operation`] says, until the request is complete.
    pub(crate) unsafe fn get(&self, call: &Call, rank: usize, offset: usize, ptr: *mut u8, len: usize) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe { self.transfer(Direction::Get, call, Remote { rank, offset }, Local { ptr, len }) }
    }

    /// In pieces that the network takes.
    ///
    /// # Safety
    /// As [`Operation`] says, until the request is complete.
    pub(super) unsafe fn transfer(&self, direction: Direction, call: &Call, to: Remote, local: Local) -> Result<(), Error> {
        let (longest, Remote { rank, offset }, Local { ptr, len }) = (self.capabilities.longest_transfer, to, local);
        let mut at = 0;
        while at < len {
            let part = (len - at).min(longest);
            // SAFETY: inside the caller's memory, which is valid as long as the conduit needs it.
            let (place, local) = (Remote { rank, offset: offset + at }, Local { ptr: unsafe { ptr.add(at) }, len: part });
            self.start(call, (rank, direction), part, |token| match direction {
                // SAFETY: the caller's promise.
                Direction::Put | Direction::Signal => unsafe { self.conduit.put(place, local, token) },
                // SAFETY: the caller's promise.
                Direction::Get => unsafe { self.conduit.get(place, local, token) },
            })?;
            at += part;
        }
        Ok(())
    }

    /// Adds an operation to a call, as a put or a get is added.
    ///
    /// # Safety
    /// As [`Operation`] says, until the request is complete.
    pub(super) unsafe fn issue(&self, call: &Call, direction: Direction, operation: &Operation<'_>) -> Result<(), Error> {
        self.start(call, (operation.rank(), direction), operation.bytes(), |token| {
            // SAFETY: the caller's promise.
            unsafe { self.conduit.issue(operation, token) }
        })
    }

    /// Starts a transfer of `len` bytes of a call when it has its place in the window, behind those that it must not overtake.
    fn start(
        &self,
        call: &Call,
        (rank, direction): (usize, Direction),
        len: usize,
        start: impl FnOnce(Token) -> Issued,
    ) -> Result<(), Error> {
        let window = self.capabilities.window;
        let (mut lasting, mut is_flushed) = (None, false);
        loop {
            let mut table = self.lock();
            if self.has_body_ended() {
                return Err(self.over(table.label(call).map_or("transfer", |(label, _)| label.operation)));
            }
            // Once: what other threads put meanwhile need not come before it.
            if !is_flushed
                && table.is_dirty(rank, call)
                && !self.keeps_order(direction)
                && let Some((label, true)) = table.label(call)
            {
                let label = label.clone();
                drop(table);
                self.flush(Some(rank), &label)?;
                is_flushed = true;
                continue;
            }
            if table.in_flight < window {
                let token = table.token(call);
                if len <= SHORT && direction != Direction::Get {
                    // Under the table's lock: if it is not complete at once, it is in the table before anybody completes it.
                    match start(token) {
                        Issued::Complete => table.put_begins(call, rank, direction),
                        _ => table.admit(call, rank, direction),
                    }
                    return Ok(());
                }
                table.admit(call, rank, direction);
                drop(table);
                // The same: the call is in the table now.
                let issued = start(token);
                let mut table = self.lock();
                // What another thread saw visible meanwhile, or began to flush, may not have been this.
                table.put_begins(call, rank, direction);
                if issued == Issued::Complete {
                    table.transfer_ended(token, None);
                }
                return Ok(());
            }
            drop(table);
            lasting.get_or_insert_with(|| Lasting::new(&self.conduit, self.timeout)).look(&Room { rank, window })?;
            self.progress();
            // A completion is reported once. If that poll got the last one, a wait would be for one transfer more.
            if self.lock().in_flight >= window {
                // Another thread of this rank may find what ends: no word comes of that.
                self.conduit.wait(TURN);
            }
        }
    }

    /// Returns true if the network keeps a transfer behind earlier puts to the same target.
    fn keeps_order(&self, direction: Direction) -> bool {
        let order = self.capabilities.order;
        match direction {
            Direction::Put | Direction::Signal => order.put_put,
            Direction::Get => order.put_get,
        }
    }

    /// Does an operation on a word of a rank's memory. Returns the old value.
    ///
    /// # Panics
    /// If the processor cannot reach the word that it is sent to.
    pub(crate) fn atomic(&self, road: Road, word: Remote, atomic: Atomic, label: &Label) -> Result<u64, Error> {
        if road == Road::Processor {
            self.check(label.operation)?;
            let (base, Atomic { op, width, operand, comparand }) =
                (self.conduit.mapped_segment(word.rank).expect("a mapped rank"), atomic);
            // SAFETY: `word` is an aligned word of a committed block, as the callers' types guarantee.
            return Ok(unsafe { apply_atomic(base.as_ptr().add(word.offset), op, width, operand, comparand) });
        }
        let request = self.begin_atomic(word, atomic, label)?;
        self.finish_atomic(request)
    }

    /// As [`atomic`](Self::atomic) on a word that is a lock: where it cannot be known whether the operation was done, the job ends,
    /// because others would wait for the lock forever. `what` says it of this rank: "could not learn whether it holds lock 3".
    pub(crate) fn atomic_on_lock(
        &self,
        road: Road,
        lock: Remote,
        atomic: Atomic,
        label: &Label,
        what: &dyn Fn() -> String,
    ) -> Result<u64, Error> {
        if road == Road::Processor {
            return self.atomic(road, lock, atomic, label);
        }
        let request = self.begin_atomic(lock, atomic, label)?;
        self.finish_atomic(request).inspect_err(|error| self.conduit.end(&format!("{}: {error}", what())))
    }

    /// Begins an operation on a word of another rank's memory, by the network; after an error it will not be done.
    fn begin_atomic(&self, word: Remote, atomic: Atomic, label: &Label) -> Result<RequestId, Error> {
        // No network keeps an atomic behind earlier puts by promise.
        self.flush(Some(word.rank), label)?;
        let mut request = self.request(label.clone(), Owner::Caller, 1, true);
        request.peer = word.rank;
        let request = self.lock().enter(request);
        // SAFETY: it is an aligned word of a committed block, as the callers' types guarantee. The end is an event.
        let _ = unsafe { self.conduit.issue(&Operation::Atomic { word, atomic }, request.into()) };
        Ok(request)
    }

    /// The old value. After an error nobody knows whether the operation was done, or will be.
    fn finish_atomic(&self, request: RequestId) -> Result<u64, Error> {
        let finished = self.finish(request);
        if finished.is_err() {
            self.detach(request);
        }
        Ok(finished?.unwrap_or(0))
    }

    /// Applies operations to words of other ranks by the network, many at once. Returns when all are done.
    pub(crate) fn atomic_list(&self, words: impl Iterator<Item = (Remote, Atomic)>, label: &Label) -> Result<(), Error> {
        let most = self.capabilities.window.min(ATOMICS);
        let mut under_way = VecDeque::with_capacity(most);
        let mut done = Ok(());
        for (word, atomic) in words {
            if under_way.len() == most
                && let Some(oldest) = under_way.pop_front()
            {
                done = self.finish_atomic(oldest).map(|_| ());
            }
            if done.is_err() {
                break;
            }
            match self.begin_atomic(word, atomic, label) {
                Ok(request) => under_way.push_back(request),
                Err(error) => done = Err(error),
            }
        }
        // Each is waited for, whatever became of the others.
        for request in under_way {
            done = done.and(self.finish_atomic(request).map(|_| ()));
        }
        done
    }

    /// Puts a slice and waits until it may be used again.
    pub(crate) fn put_slice(&self, rank: usize, offset: usize, from: &[u8], label: &Label) -> Result<(), Error> {
        let call = self.begin(label.clone());
        // SAFETY: the slice is borrowed until the request is complete: `finish_borrowed` does not return before.
        let issued = unsafe { self.put(&call, rank, offset, from.as_ptr(), from.len()) };
        self.finish_call(call, issued)
    }

    /// Gets into slices: from a rank, from a byte offset, into what.
    pub(crate) fn get_slices<'a>(
        &self,
        slices: impl Iterator<Item = (usize, usize, &'a mut [u8])>,
        label: &Label,
    ) -> Result<(), Error> {
        let call = self.begin(label.clone());
        let issued = slices.into_iter().try_for_each(|(rank, offset, to)| {
            // SAFETY: the slice is borrowed until the request is complete: `finish_borrowed` does not return before.
            unsafe { self.get(&call, rank, offset, to.as_mut_ptr(), to.len()) }
        });
        self.finish_call(call, issued)
    }

    /// Gets runs of elements: from a rank, from a byte offset, into what.
    pub(crate) fn get_list<'a, T: Element>(
        &self,
        mut runs: impl Iterator<Item = (usize, usize, &'a mut [T])>,
        label: &Label,
    ) -> Result<(), Error> {
        let call = self.begin(label.clone());
        let issued = runs.try_for_each(|(rank, offset, to)| {
            // SAFETY: the elements are borrowed until the request is complete: `finish_borrowed` does not return before.
            unsafe { self.get(&call, rank, offset, to.as_mut_ptr().cast(), size_of_val(to)) }
        });
        self.finish_call(call, issued)
    }

    /// Puts single elements: to a rank, to a byte offset, what.
    pub(crate) fn put_list<'a, T: Element>(
        &self,
        elements: impl Iterator<Item = (usize, usize, &'a T)>,
        label: &Label,
    ) -> Result<(), Error> {
        let call = self.begin(label.clone());
        let issued = elements.into_iter().try_for_each(|(rank, offset, from)| {
            // SAFETY: as in `get_list`.
            unsafe { self.put(&call, rank, offset, std::ptr::from_ref(from).cast(), size_of::<T>()) }
        });
        self.finish_call(call, issued)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::testing::Fake;

    #[test]
    fn a_window_that_stays_full_is_a_timeout() {
        let mut fake = Fake::new(|_| None);
        fake.capabilities.window = 1;
        let engine = fake.engine(Some(0.02));
        let call = engine.begin(Label::new("a", "put"));
        // SAFETY: the network reads nothing.
        let put = || unsafe { engine.put(&call, 1, 0, [2; 8].as_ptr(), 8) };
        put().unwrap();
        let error = put().expect_err("no room").to_string();
        assert!(error.contains("one of the 1 transfers in flight"), "{error}");
    }
}
