//! Bulk messages under way, and what their ends mean.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    frame::Frame,
    long_frames::{FrameUse, LongFrames},
    wire::{BulkId, Ended},
};
use crate::comm::{Token, kit::slab::Slab};

/// What the end of a bulk message means.
#[derive(Debug)]
pub(super) enum Then {
    /// The memory of a put is free.
    Sent(Token),
    /// A piece of a block has left the caller's memory, for such a peer; it began then.
    PieceSent { whole: Arc<Token>, to: usize, begun: Instant },
    /// A piece of a put that the wire took from the caller's memory by itself has arrived.
    WentStraight(Arc<Token>),
    /// A piece of a get that it has laid into the caller's memory by itself is there.
    CameStraight { token: Token, origin: u64, len: usize },
    /// The memory of a get, or of a piece of one, is filled.
    Filled(Get),
    /// The same, but the caller wants its memory back.
    GivenUp(Get),
    /// The peer has what it asked for, and will see for itself.
    Served,
    /// A long frame has left.
    FrameSent(Frame, FrameUse),
    /// A long frame of answers has come.
    Answered { from: usize, frame: Frame },
    /// What a request of such a peer announced has come: its inbox knows the message.
    Announced { from: usize, message: u64 },
}

/// A get from or into the caller's memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Get {
    pub(super) token: Token,
    /// It is a piece of what this origin waits for.
    pub(super) piece_of: Option<u64>,
    pub(super) from: usize,
    pub(super) len: usize,
}

/// Pieces of blocks that leave at a time.
const PIECES: usize = 6;

/// A piece that took longer waited for a peer that did not look: over TCP on one machine half a MiB takes 60 to 200 µs.
const PROMPT: Duration = Duration::from_micros(500);

/// What an endpoint has of bulk messages.
#[derive(Debug, Default)]
pub(super) struct BulkMessages {
    /// Those under way.
    pub(super) messages: Slab<Then>,
    pieces: usize,
    /// The number of the last that this rank announced.
    numbers: u64,
    /// Empty, kept for its memory.
    pub(super) ended: Vec<Ended>,
    pub(super) frames: LongFrames,
    /// Long answers asked for that have not come.
    pub(super) asked: usize,
}

impl BulkMessages {
    /// The number of the next message of this rank.
    pub(super) fn next_number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Returns true if another piece of a block may leave.
    pub(super) fn has_room_for_a_piece(&self) -> bool {
        self.pieces < PIECES
    }

    pub(super) fn add(&mut self, then: Then) -> BulkId {
        self.pieces += usize::from(matches!(then, Then::PieceSent { .. }));
        BulkId(self.messages.add(then))
    }

    /// A message has ended.
    pub(super) fn remove(&mut self, id: BulkId) -> Option<Then> {
        let then = self.messages.remove(id.0)?;
        self.pieces -= usize::from(matches!(then, Then::PieceSent { .. }));
        Some(then)
    }

    /// Marks the gets of a request as given up, and names their messages, and its one-sided transfers.
    pub(super) fn give_up(&mut self, token: Token) -> Vec<BulkId> {
        let mut messages = Vec::new();
        for (id, then) in self.messages.iter_mut() {
            match then {
                Then::Filled(get) if get.token == token => *then = Then::GivenUp(*get),
                Then::WentStraight(whole) if **whole == token => {}
                Then::CameStraight { token: waits, .. } if *waits == token => {}
                _ => continue,
            }
            messages.push(BulkId(id));
        }
        messages
    }
}

/// Returns true if a piece took longer than a peer that looks would need.
pub(super) fn was_late(begun: Instant) -> bool {
    begun.elapsed() > PROMPT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_that_were_given_up_end_like_others() {
        let mut table = BulkMessages::default();
        let get = |token| Get { token: Token(token), piece_of: None, from: 1, len: 8 };
        let first = table.add(Then::Filled(get(5)));
        let other = table.add(Then::Filled(get(6)));
        assert_eq!(table.give_up(Token(5)), [first]);
        assert_eq!(table.give_up(Token(5)), []);
        assert!(matches!(table.remove(first), Some(Then::GivenUp(Get { token: Token(5), .. }))));
        assert!(table.remove(first).is_none());
        assert!(matches!(table.remove(other), Some(Then::Filled(_))));
        assert!(table.is_empty());
    }

    #[test]
    fn pieces_are_counted() {
        let mut table = BulkMessages::default();
        let whole = Arc::new(Token(1));
        let mut pieces = Vec::new();
        while table.has_room_for_a_piece() {
            pieces.push(table.add(Then::PieceSent { whole: whole.clone(), to: 2, begun: Instant::now() }));
        }
        assert_eq!(pieces.len(), PIECES);
        table.remove(pieces[3]);
        assert!(table.has_room_for_a_piece());
    }
}
