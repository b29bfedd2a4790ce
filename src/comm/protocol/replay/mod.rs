//! What is posted again after the connection of a pair broke, so that each frame has its effect once and in order.
//!
//! When a connection breaks, the last *items* that an end posted may have happened at the target or not. To repeat them all would be wrong:
//! a frame would add twice, and a write would erase a sum that a frame behind it made. So frames are numbered, in each direction and over
//! all connections of the pair. Each end opens a connection with the number of the last frame that it has seen: what was posted before it
//! did happen.
//!
//! ```text
//!  posted, not known to be done  | up to the last frame seen  | behind it
//!  ------------------------------+----------------------------+--------------------------------------
//!  frame                         | done                       | again, with its old number
//!  write                         | done                       | again: nothing behind it has happened
//!  read                          | again: its bytes were lost | again
//!  atomic of the adapter         | its outcome is unknown     | its outcome is unknown
//! ```
//!
//! A frame is kept until the peer has said that it has seen it: one that the adapter acknowledged can still be lost with the queue pair of
//! its target. What goes past the frames (writes, reads, atomics) waits until every frame before it was *handled*: a repeated frame comes
//! after what was completed behind it. Only the driver knows when that is so, because it knows which frames change memory. Frames wait for
//! nothing, so a write and the frame that tells of it are posted together.
//!
//! ```text
//!  event                         | this end
//!  ------------------------------+------------------------------------------------------------------
//!  an item is posted             | keeps it
//!  an item is completed          | forgets all up to it, but frames that the peer is not known to have seen
//!  a frame has come              | handles it if it is the next one
//!  the peer has seen up to n     | forgets the completed frames up to n; writes before them have happened
//!  the peer handled all frames   | may post what goes past frames
//!  the connection is over        | posts nothing
//!  a new one is ready            | tells the last frame that it has seen, and nothing else
//!  the peer's number has come    | forgets the frames that were seen; posts the rest again, in order
//! ```
//!
//! [`report`] decides when an end says which frames it has seen. [`header`] is how it says so.

pub(in crate::comm) mod header;
pub(in crate::comm) mod report;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

/// What an item does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::comm) enum ItemKind {
    /// Has effects when the target handles it.
    Frame,
    Write,
    Read,
    /// An atomic operation by the adapter.
    #[cfg_attr(not(test), expect(dead_code, reason = "no network asks its adapter for atomic operations yet"))]
    Atomic,
}

/// What becomes of an item whose connection broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::comm) enum ItemFate<H> {
    /// It is to be posted again, a frame with its old number.
    Again(H),
    /// It has happened.
    Done(H),
    /// Nobody knows whether it has happened.
    Unknown(H),
}

/// What a frame that has come is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::comm) enum FrameArrival {
    /// To be handled.
    Next,
    /// It was seen before.
    Seen,
    /// One before it is missing: the peer does not keep the protocol.
    Gap,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct PostedItem<H> {
    handle: H,
    kind: ItemKind,
    /// Of a frame.
    number: u64,
    /// The target has seen this frame, or one behind it.
    happened: bool,
    /// The adapter is done with it.
    completed: bool,
}

/// One end of a pair. `H` is what the driver knows an item by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::comm) struct Replay<H> {
    /// Oldest first.
    posted: VecDeque<PostedItem<H>>,
    /// The number of completed items, among the oldest, that wait to be seen.
    completed: usize,
    /// The numbers of the last frame, and of the last that the peer has seen, and handled.
    numbered: u64,
    known: u64,
    handled: u64,
    /// The last frame of the peer that has come.
    seen: u64,
    /// The peer has told on this connection what it has seen.
    is_open: bool,
}

impl<H: Copy + PartialEq> Default for Replay<H> {
    fn default() -> Self {
        Replay::new()
    }
}

impl<H: Copy + PartialEq> Replay<H> {
    /// An end with no connection.
    pub(in crate::comm) fn new() -> Self {
        Replay { posted: VecDeque::new(), completed: 0, numbered: 0, known: 0, handled: 0, seen: 0, is_open: false }
    }

    /// Returns true if an item may be posted now.
    pub(in crate::comm) fn may_post(&self, kind: ItemKind) -> bool {
        self.is_open && (kind == ItemKind::Frame || self.handled == self.numbered)
    }

    /// Returns true if all that was posted is known to be done. If not, a connection that is over is to be replaced.
    pub(in crate::comm) fn is_done(&self) -> bool {
        self.posted.is_empty()
    }

    /// An item is posted. Returns the number of a frame.
    pub(in crate::comm) fn posts(&mut self, kind: ItemKind, handle: H) -> u64 {
        self.numbered += u64::from(kind == ItemKind::Frame);
        self.posted.push_back(PostedItem { handle, kind, number: self.numbered, happened: false, completed: false });
        self.numbered
    }

    /// The adapter has completed an item, and so all before it. It names the items that it forgets.
    pub(in crate::comm) fn completed(&mut self, handle: H, mut forgets: impl FnMut(H)) {
        let news = self.posted.iter().skip(self.completed).position(|item| item.handle == handle);
        for _ in 0..news.map_or(0, |at| at + 1) {
            let Some(item) = self.posted.get_mut(self.completed) else { break };
            if item.is_forgotten_when_completed() {
                forgets(item.handle);
                self.posted.remove(self.completed);
            } else {
                item.completed = true;
                self.completed += 1;
            }
        }
    }

    /// The peer has seen the frames up to this number. Returns none if they were not all sent.
    #[must_use]
    pub(in crate::comm) fn acknowledged(&mut self, number: u64, forgets: impl FnMut(H)) -> Option<()> {
        self.have_been_seen(number, forgets)
    }

    /// The peer has handled all frames that were posted, as far as they change what others of its memory read or write.
    pub(in crate::comm) fn all_are_handled(&mut self) {
        self.handled = self.numbered;
    }

    /// A frame has come.
    #[must_use]
    pub(in crate::comm) fn arrived(&mut self, number: u64) -> FrameArrival {
        match number.checked_sub(self.seen) {
            Some(1) => {
                self.seen = number;
                FrameArrival::Next
            }
            Some(0) | None => FrameArrival::Seen,
            Some(_) => FrameArrival::Gap,
        }
    }

    /// The connection is over; nothing comes from it any more.
    pub(in crate::comm) fn is_over(&mut self) {
        self.is_open = false;
    }

    /// The number to tell the peer first when a new connection is ready.
    pub(in crate::comm) fn seen(&self) -> u64 {
        self.seen
    }

    /// The peer has told on a new connection which frame it saw last. Returns the fate of all that was open, in its order, with
    /// the numbers of frames. Returns none if the peer cannot have seen that frame.
    pub(in crate::comm) fn reopens(&mut self, number: u64, forgets: impl FnMut(H)) -> Option<Vec<(ItemFate<H>, u64)>> {
        if self.is_open || number < self.known {
            return None;
        }
        self.have_been_seen(number, forgets)?;
        (self.is_open, self.completed) = (true, 0);
        let mut fates = Vec::with_capacity(self.posted.len());
        self.posted.retain_mut(|item| {
            item.completed = false;
            let fate = match item.kind {
                ItemKind::Atomic => ItemFate::Unknown(item.handle),
                ItemKind::Frame | ItemKind::Write if item.happened => ItemFate::Done(item.handle),
                ItemKind::Frame | ItemKind::Write | ItemKind::Read => ItemFate::Again(item.handle),
            };
            fates.push((fate, item.number));
            matches!(fate, ItemFate::Again(_))
        });
        Some(fates)
    }

    /// The peer has seen the frames up to this number, so it has what was posted before them.
    fn have_been_seen(&mut self, number: u64, forgets: impl FnMut(H)) -> Option<()> {
        if number > self.numbered {
            return None;
        }
        if number <= self.known {
            return Some(());
        }
        self.known = number;
        // The number of what is no frame is that of the frame before it.
        let has_come = |item: &PostedItem<H>| item.number < number || item.kind == ItemKind::Frame && item.number == number;
        self.posted.iter_mut().for_each(|item| item.happened |= has_come(item));
        self.forget(forgets);
        Some(())
    }

    /// Forgets items that are done and that the adapter needs no more.
    fn forget(&mut self, mut forgets: impl FnMut(H)) {
        let before = self.posted.len();
        self.posted.retain(|item| {
            let is_done = item.completed && item.is_forgotten_when_completed();
            if is_done {
                forgets(item.handle);
            }
            !is_done
        });
        self.completed -= before - self.posted.len();
    }
}

impl<H> PostedItem<H> {
    /// Returns false for a frame that may still be lost at its target, until that is known to have seen it.
    fn is_forgotten_when_completed(&self) -> bool {
        self.happened || self.kind != ItemKind::Frame
    }
}
