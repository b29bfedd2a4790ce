//! A connected queue pair: its state, its peer, and the works of its send queue.
//!
//! ```text
//!  front                                            back
//!  | done, or read that is awaited ... | not started ... |
//!  0                                started            len
//! ```
//!
//! Done works leave at the front. So completions keep the order of posting, though a read may be done late.

use std::{collections::VecDeque, ops::Range, time::Duration};

use crate::comm::{
    ib::device::{Access, Completion, DeviceLimits, Done, NUMBERS, Opcode, State, Work, WorkFailure},
    soft::fabric::Pinned,
};

/// A pair of a port. Numbers are used again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PairId {
    pub(super) port: u64,
    pub(super) number: u32,
}

/// A connected queue pair.
#[derive(Debug, Default)]
pub(super) struct SoftPair {
    pub(super) id: u64,
    pub(super) place: PairId,
    pub(super) state: State,
    /// From creation or reset to the next reset.
    pub(super) life: u64,
    pub(super) path: Path,
    pub(super) slots: SendSlots,
    pub(super) works: VecDeque<QueuedWork>,
    started: usize,
    /// Works that have left the queue in this life; and works that have travelled to the peer, if time is virtual.
    retired: u64,
    arrived: Option<u64>,
    /// The time that the cables were last told to remind of.
    pub(super) reminded: Duration,
    /// Reads and atomics that were sent and not answered.
    pub(super) reads: usize,
    /// A transfer of this pair is under way.
    pub(super) busy: bool,
    /// The packet of its work that went to another process, and true if an answer to the last one that was sent is awaited.
    pub(super) asked: Option<u32>,
    pub(super) awaits: bool,
    /// Transfers of peers to this pair that are under way.
    pub(super) serving: usize,
    /// A work has failed or was flushed: all behind it are flushed.
    broken: bool,
    /// Nothing is tried before.
    pub(super) due: Duration,
    /// The times that the next work was sent in vain.
    pub(super) unanswered: u8,
    /// The times that it met no receive.
    pub(super) not_ready: u8,
}

/// What a pair was told of its peer, and of the way there.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Path {
    /// What the peer may do.
    pub(super) access: Access,
    pub(super) peer: Option<PairId>,
    /// The number of the packet that has to come next, and of the one that leaves next.
    pub(super) expected: u32,
    pub(super) next: u32,
    pub(super) read_depth: usize,
    pub(super) answer_depth: usize,
    /// The wait of a peer that met no receive.
    pub(super) receive_timer: Duration,
    pub(super) timeout: Duration,
    pub(super) retries: u8,
    pub(super) receive_retries: u8,
}

/// The number that follows on that of a packet. A message is one packet here, however long.
pub(super) fn after(packet: u32) -> u32 {
    (packet + 1) % NUMBERS
}

/// A work in its queue.
#[derive(Debug)]
pub(super) struct QueuedWork {
    pub(super) work: Work,
    /// Its data, if they were taken during the post.
    pub(super) inline: Option<Pinned>,
    pub(super) progress: Underway,
    /// The peer's answer has travelled back: the data of a read, or the word that a write has arrived. True from the start where time is real.
    pub(super) answered: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Underway {
    Posted,
    /// A read or an atomic that has reached the peer, in this life of its pair.
    Asked {
        life: u64,
    },
    /// One more than the peer answers at once.
    Excess,
    Done,
}

impl QueuedWork {
    /// A work as it was posted, or why it is refused.
    ///
    /// # Safety
    /// Inline data are readable.
    pub(super) unsafe fn new(work: Work, limits: &DeviceLimits) -> Result<Self, String> {
        let (len, is_answered) = (work.local.len, is_answered(work.kind));
        let longest = if work.inline { limits.inline } else { limits.longest_message };
        if work.inline && is_answered {
            return Err("only a send or a write can be inline".into());
        }
        if is_answered && !matches!(work.kind, Opcode::Read { .. }) && len != size_of::<u64>() {
            return Err(format!("{len} bytes for the old value of an atomic, which has 8"));
        }
        if len > longest {
            return Err(format!("{len} bytes{}; at most {longest} are allowed", if work.inline { " inline" } else { "" }));
        }
        // SAFETY: the caller's promise.
        let inline = work.inline.then(|| unsafe { Pinned::copy_of(work.local.start, len) });
        Ok(QueuedWork { work, inline, progress: Underway::Posted, answered: true })
    }
}

/// Returns true if the peer sends data back.
pub(super) fn is_answered(kind: Opcode) -> bool {
    !matches!(kind, Opcode::Send { .. } | Opcode::Write { .. })
}

/// The slots of a send queue: those of works that nobody has heard of stay taken until a later one is reported.
#[derive(Debug, Default)]
pub(super) struct SendSlots {
    pub(super) depth: usize,
    taken: usize,
    /// Works that have ended silently since the last report.
    silent: usize,
}

impl SendSlots {
    pub(super) fn new(depth: usize) -> Self {
        SendSlots { depth, ..SendSlots::default() }
    }

    pub(super) fn take(&mut self) -> Option<()> {
        (self.taken < self.depth).then(|| self.taken += 1)
    }

    pub(super) fn free(&mut self, slots: usize) {
        self.taken -= slots;
    }
}

/// A completion that nobody has polled.
#[derive(Debug)]
pub(super) struct PendingCompletion {
    pub(super) completion: Completion,
    /// Slots that are free when it is polled, of the pair if that is in the same life.
    pub(super) frees: usize,
    pub(super) life: u64,
}

impl SoftPair {
    pub(super) fn new(id: u64, place: PairId, depth: usize, life: u64) -> Self {
        SoftPair { id, place, life, slots: SendSlots::new(depth), ..SoftPair::default() }
    }

    /// Returns true if memory is touched for its works, or for those of its peer.
    pub(super) fn is_in_use(&self) -> bool {
        self.busy || self.serving > 0
    }

    /// Returns true if this pair answers a message from `from`.
    pub(super) fn answers(&self, from: PairId) -> bool {
        matches!(self.state, State::ReadyToReceive | State::ReadyToSend) && self.path.peer == Some(from)
    }

    /// The next work, if it may start now.
    pub(super) fn to_start(&self) -> Option<usize> {
        let next = self.works.get(self.started)?.work;
        if self.arrived.is_some_and(|arrived| self.retired + self.started as u64 >= arrived) {
            return None;
        }
        let waits = next.fence && self.reads > 0 || is_answered(next.kind) && self.reads >= self.path.read_depth;
        (!waits).then_some(self.started)
    }

    /// The oldest read or atomic that was sent and not answered.
    pub(super) fn to_answer(&self) -> Option<usize> {
        let is_open = |one: &QueuedWork| one.answered && matches!(one.progress, Underway::Asked { .. } | Underway::Excess);
        (self.reads > 0).then(|| self.works.iter().position(is_open)).flatten()
    }

    /// The work whose turn it was has started.
    pub(super) fn start(&mut self) {
        let work = self.works[self.started].work;
        self.path.next = after(self.path.next);
        self.reads += usize::from(is_answered(work.kind));
        self.started += 1;
        (self.unanswered, self.not_ready) = (0, 0);
    }

    /// A work that has started is done.
    pub(super) fn finish(&mut self, at: usize) {
        self.busy = false;
        self.reads -= usize::from(is_answered(self.works[at].work.kind));
        self.works[at].progress = Underway::Done;
        (self.unanswered, self.not_ready) = (0, 0);
    }

    /// The next report of works that are done. After a failure, of the others too: the first one failed, the rest is flushed.
    pub(super) fn retire(&mut self, failure: &mut Option<WorkFailure>) -> Option<PendingCompletion> {
        loop {
            let is_done = |entry: &&QueuedWork| failure.is_some() || entry.progress == Underway::Done && entry.answered;
            let entry = self.works.front().filter(is_done)?;
            let (Work { id, kind, signaled, .. }, progress) = (entry.work, entry.progress);
            self.works.pop_front();
            self.started = self.started.saturating_sub(1);
            self.retired += 1;
            self.broken |= progress != Underway::Done;
            let outcome = match kind {
                _ if self.broken => Err(failure.replace(WorkFailure::Flushed).unwrap_or(WorkFailure::Flushed)),
                Opcode::Send { .. } => Ok(Done::Sent),
                Opcode::Write { .. } => Ok(Done::Written),
                Opcode::Read { .. } => Ok(Done::Read),
                Opcode::FetchAdd { .. } | Opcode::CompareSwap { .. } => Ok(Done::Swapped),
            };
            if let Some(report) = self.ended(id, signaled || outcome.is_err(), outcome) {
                return Some(report);
            }
        }
    }

    /// A work has ended, and is reported or not.
    pub(super) fn ended(&mut self, id: u64, reported: bool, outcome: Result<Done, WorkFailure>) -> Option<PendingCompletion> {
        self.slots.silent += 1;
        let completion = Completion { id, number: self.place.number, outcome };
        reported.then(|| PendingCompletion { completion, frees: std::mem::take(&mut self.slots.silent), life: self.life })
    }

    /// Forgets everything but its name.
    pub(super) fn reset(&mut self, life: u64) {
        let arrived = self.arrived.map(|_| 0);
        *self = SoftPair { arrived, ..SoftPair::new(self.id, self.place, self.slots.depth, life) };
    }

    /// Works of this pair travel, in virtual time.
    pub(super) fn travel(&mut self) {
        self.arrived = Some(0);
    }

    /// The last `count` works that were posted leave: their numbers in this life.
    pub(super) fn leave(&mut self, count: usize) -> Range<u64> {
        let len = self.works.len();
        self.works.range_mut(len - count..).for_each(|entry| entry.answered = false);
        self.retired + (len - count) as u64..self.retired + len as u64
    }

    /// The lengths of the last works on the cables: what asks for something is as good as empty.
    pub(super) fn lens(&self, count: usize) -> impl Iterator<Item = usize> {
        let len = |entry: &QueuedWork| if is_answered(entry.work.kind) { 0 } else { entry.work.local.len };
        self.works.range(self.works.len() - count..).map(len)
    }

    /// The next work has come to the peer.
    pub(super) fn has_arrived(&mut self) {
        self.arrived = self.arrived.map(|arrived| arrived + 1);
    }

    /// The work of a number, if it is not done.
    pub(super) fn work(&mut self, number: u64) -> Option<&mut QueuedWork> {
        self.works.get_mut(number.checked_sub(self.retired)? as usize)
    }

    pub(super) fn number_of(&self, at: usize) -> u64 {
        self.retired + at as u64
    }
}
