//! What this rank waits for: each request for an answer has a number, its *origin*, which the answer brings back.

use super::{memory::unpack, runs::Runs};
use crate::{
    comm::{Cause, Event, Token, kit::slab::Slab},
    memory::kernels::copy,
};

/// What an origin waits for.
#[derive(Debug)]
enum Origin {
    /// A value: of an atomic operation, or a flush if it is not wanted.
    Value { token: Token, wanted: bool },
    /// Bytes. `pieces` messages bring some of them straight into their place.
    Data { token: Token, base: *mut u8, runs: OriginPlace, rest: usize, pieces: usize },
    /// Bytes that nobody wants any more. Their memory is free when the messages that write it have ended.
    Nobody { token: Token, rest: usize, pieces: usize },
}

/// Where bytes are laid, of a caller's memory.
#[derive(Debug)]
enum OriginPlace {
    /// The number of contiguous bytes.
    Run(usize),
    Runs(Box<Runs>),
}

/// All of a rank's origins, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Origins(Slab<Origin>);

// SAFETY: the pointers are those of `get`, whose callers promise that the memory may be used until the completion is polled, by
// whichever thread polls.
unsafe impl Send for Origins {}

impl Origins {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Names what waits for a value.
    pub(super) fn value(&mut self, token: Token, wanted: bool) -> u64 {
        self.0.add(Origin::Value { token, wanted })
    }

    /// Names what waits for `len` bytes, to be laid into runs of the caller's memory.
    pub(super) fn data(&mut self, token: Token, base: *mut u8, runs: Runs, len: usize) -> u64 {
        let runs = if runs.is_one() { OriginPlace::Run(len) } else { OriginPlace::Runs(Box::new(runs)) };
        self.0.add(Origin::Data { token, base, runs, rest: len, pieces: 0 })
    }

    /// Returns true if the memory for an origin's bytes may still be written.
    pub(super) fn wants(&self, id: u64) -> bool {
        matches!(self.0.get(id), Some(Origin::Data { .. }))
    }

    /// Bytes that nobody wants will not be asked for.
    pub(super) fn never_come(&mut self, id: u64, len: usize) {
        if let Some(Origin::Nobody { rest, .. }) = self.0.get_mut(id) {
            *rest = rest.saturating_sub(len);
            if *rest == 0 {
                self.0.remove(id);
            }
        }
    }

    /// A message begins to bring some of them straight there.
    pub(super) fn begin_piece(&mut self, id: u64) {
        if let Some(Origin::Data { pieces, .. }) = self.0.get_mut(id) {
            *pieces += 1;
        }
    }

    /// Such a message has ended: its bytes are in their place, or will be thrown away.
    pub(super) fn piece_ended(&mut self, id: u64, len: usize) -> Option<Event> {
        let (rest, event) = match self.0.get_mut(id)? {
            Origin::Value { .. } => return None,
            Origin::Data { token, rest, pieces, .. } => {
                (*rest, *pieces) = (rest.saturating_sub(len), pieces.saturating_sub(1));
                (*rest, (*rest == 0).then_some(Event::LocalDone(*token)))
            }
            Origin::Nobody { token, rest, pieces } => {
                (*rest, *pieces) = (rest.saturating_sub(len), pieces.saturating_sub(1));
                (*rest, (*pieces == 0).then(|| given_up(*token)))
            }
        };
        if rest == 0 {
            self.0.remove(id);
        }
        event
    }

    /// What was to ask was not sent.
    pub(super) fn never_asked(&mut self, id: u64) {
        self.0.remove(id);
    }

    /// A value has come.
    pub(super) fn value_came(&mut self, id: u64, value: u64) -> Option<Event> {
        let Some(Origin::Value { token, wanted }) = self.0.get(id) else { return None };
        let event = if *wanted { Event::Value(*token, value) } else { Event::RemoteDone(*token) };
        self.0.remove(id);
        Some(event)
    }

    /// Bytes have come, those from packed byte `at` on. Returns the event if they are the last.
    pub(super) fn data_came(&mut self, id: u64, at: usize, bytes: &[u8]) -> Option<Event> {
        let done = match self.0.get_mut(id)? {
            // Of a word that an adapter has changed.
            Origin::Value { .. } => return self.value_came(id, u64::from_le_bytes(bytes.try_into().ok()?)),
            Origin::Nobody { rest, .. } => {
                *rest = rest.saturating_sub(bytes.len());
                (*rest == 0).then_some(None)
            }
            Origin::Data { token, base, runs, rest, .. } => {
                let (all, is_part) = match runs {
                    OriginPlace::Run(len) => (*len, true),
                    OriginPlace::Runs(runs) => (runs.bytes().unwrap_or(0), runs.is_part(at, bytes.len())),
                };
                if bytes.len() > *rest || at > all || bytes.len() > all - at || !is_part {
                    return None;
                }
                match runs {
                    // SAFETY: the caller's memory until its completion is polled; the range was just checked.
                    OriginPlace::Run(_) => unsafe { copy(base.wrapping_add(at), bytes.as_ptr(), bytes.len()) },
                    // SAFETY: as above.
                    OriginPlace::Runs(runs) => unsafe { unpack(*base, runs, at, bytes) },
                }
                *rest -= bytes.len();
                (*rest == 0).then_some(Some(Event::LocalDone(*token)))
            }
        };
        let event = done?;
        self.0.remove(id);
        event
    }

    /// Lets go of the memory that a request's bytes were to be laid into; what comes is thrown away. One event for each.
    pub(super) fn cancel(&mut self, token: Token, events: &mut Vec<Event>) {
        for (_, origin) in self.0.iter_mut() {
            if let &mut Origin::Data { token: waits, rest, pieces, .. } = origin
                && waits == token
            {
                *origin = Origin::Nobody { token, rest, pieces };
                if pieces == 0 {
                    events.push(given_up(token));
                }
            }
        }
    }
}

/// A transfer that was given up.
pub(super) fn given_up(token: Token) -> Event {
    Event::Failed(token, Cause("it was given up".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_messages_write_is_given_back_after_the_last() {
        let (mut origins, mut events) = (Origins::default(), Vec::new());
        let mut memory = [0_u8; 24];
        let id = origins.data(Token(7), memory.as_mut_ptr(), Runs::one(24), 24);
        origins.begin_piece(id);
        assert!(origins.data_came(id, 0, &[1; 8]).is_none());
        origins.cancel(Token(7), &mut events);
        assert!(events.is_empty() && !origins.wants(id));
        // What comes through frames is thrown away, in whichever order.
        assert!(origins.data_came(id, 8, &[2; 8]).is_none());
        assert!(matches!(origins.piece_ended(id, 8), Some(Event::Failed(Token(7), _))));
        assert_eq!(memory, [[1; 8], [0; 8], [0; 8]].concat()[..]);
        let next = origins.data(Token(8), memory.as_mut_ptr(), Runs::one(24), 24);
        assert!(next != id && origins.data_came(id, 0, &[9; 8]).is_none(), "an answer that comes late finds nothing");
        origins.begin_piece(next);
        assert!(origins.data_came(next, 0, &[3; 16]).is_none());
        assert!(matches!(origins.piece_ended(next, 8), Some(Event::LocalDone(Token(8)))));
        // What was not asked for yet is not asked for any more, and what was frees the number.
        let last = origins.data(Token(9), memory.as_mut_ptr(), Runs::one(24), 24);
        origins.cancel(Token(9), &mut events);
        origins.never_come(last, 16);
        assert!(origins.data_came(last, 0, &[4; 8]).is_none());
        assert!(origins.0.is_empty());
    }
}
