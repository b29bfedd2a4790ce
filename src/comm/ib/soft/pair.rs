//! A connected queue pair: its state, its peer, and the works of its send queue.
//!
//! ```text
//!  front                                            back
//!  | done, or read that is awaited ... | not started ... |
//!  0                                started            len
//! ```
//!
//! Works leave at the front, when they are done. So completions come in order of posting, though reads may be done later than what
//! is behind them.

use std::{collections::VecDeque, time::Duration};

use crate::{
    comm::ib::device::{Access, Completion, Done, Failure, Kind, Limits, NUMBERS, State, Work},
    memory::kernels,
};

/// A pair of a port. Numbers are used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) port: u64,
    pub(super) number: u32,
}

/// See the module's essay.
#[derive(Debug)]
pub(super) struct Connected {
    pub(super) id: u64,
    pub(super) place: Place,
    pub(super) state: State,
    pub(super) access: Access,
    /// From creation or reset to the next reset.
    pub(super) life: u64,
    pub(super) path: Path,
    pub(super) slots: Slots,
    works: VecDeque<Entry>,
    started: usize,
    /// Reads and atomics that were sent and not answered.
    reads: usize,
    /// A transfer of this pair is under way.
    pub(super) busy: bool,
    /// Transfers of peers to this pair that are under way.
    pub(super) serving: usize,
    /// Nothing is tried before.
    pub(super) due: Duration,
    /// How often the work whose turn it is was sent in vain.
    pub(super) unanswered: u8,
    /// How often it met no receive.
    pub(super) not_ready: u8,
}

/// What a pair was told of the way to its peer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path {
    pub(super) peer: Option<Place>,
    /// Bytes of a packet.
    pub(super) packet: usize,
    /// The number of the packet that has to come next, and of the one that leaves next.
    pub(super) expected: u32,
    pub(super) next: u32,
    pub(super) read_depth: usize,
    pub(super) answer_depth: usize,
    /// How long peers wait that met no receive.
    pub(super) receive_timer: Duration,
    pub(super) timeout: Duration,
    pub(super) retries: u8,
    pub(super) receive_retries: u8,
}

impl Path {
    pub(super) const NONE: Self = Path {
        peer: None,
        packet: 1,
        expected: 0,
        next: 0,
        read_depth: 0,
        answer_depth: 0,
        receive_timer: Duration::ZERO,
        timeout: Duration::ZERO,
        retries: 0,
        receive_retries: 0,
    };

    /// The packet number that follows on a message of so many bytes.
    pub(super) fn after(&self, number: u32, len: usize) -> u32 {
        (number + len.div_ceil(self.packet).max(1) as u32) % NUMBERS
    }
}

/// A work in its queue.
#[derive(Debug)]
pub(super) struct Entry {
    id: u64,
    pub(super) kind: Kind,
    pub(super) data: Data,
    signaled: bool,
    fence: bool,
    pub(super) progress: Progress,
}

/// The local side of a work.
#[derive(Debug)]
pub(super) enum Data {
    Inline(Box<[u8]>),
    Memory { start: u64, len: usize, key: u32 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    Posted,
    /// A read or an atomic that has reached the peer, in this life of its pair.
    Asked {
        life: u64,
    },
    /// One more than the peer answers at once.
    Excess,
    Done,
}

impl Data {
    pub(super) fn len(&self) -> usize {
        match self {
            Data::Inline(bytes) => bytes.len(),
            Data::Memory { len, .. } => *len,
        }
    }

    /// The inline data; nothing is left of them.
    pub(super) fn take(&mut self) -> Box<[u8]> {
        match self {
            Data::Inline(bytes) => std::mem::take(bytes),
            Data::Memory { .. } => Box::default(),
        }
    }
}

impl Entry {
    /// A work as it was posted, or why it is refused.
    ///
    /// # Safety
    /// Inline data are readable.
    pub(super) unsafe fn new(work: &Work, limits: &Limits) -> Result<Self, String> {
        let Work { id, kind, local, signaled, inline, fence } = *work;
        if local.len > limits.longest_message {
            return Err(format!("a message of {} bytes; at most {} are allowed", local.len, limits.longest_message));
        }
        if matches!(kind, Kind::FetchAdd { .. } | Kind::CompareSwap { .. }) && local.len != size_of::<u64>() {
            return Err(format!("{} bytes for the old value of an atomic, which has 8", local.len));
        }
        let data = if inline {
            // SAFETY: the caller's promise.
            Data::Inline(unsafe { inline_data(kind, local.start, local.len, limits) }?)
        } else {
            Data::Memory { start: local.start.addr() as u64, len: local.len, key: local.key }
        };
        Ok(Entry { id, kind, data, signaled, fence, progress: Progress::Posted })
    }

    /// Whether the peer sends data back.
    pub(super) fn is_answered(&self) -> bool {
        !matches!(self.kind, Kind::Send { .. } | Kind::Write { .. })
    }

    fn done(&self) -> Done {
        match self.kind {
            Kind::Send { .. } => Done::Sent,
            Kind::Write { .. } => Done::Written,
            Kind::Read { .. } => Done::Read,
            Kind::FetchAdd { .. } | Kind::CompareSwap { .. } => Done::Swapped,
        }
    }
}

/// # Safety
/// The bytes are readable.
unsafe fn inline_data(kind: Kind, start: *const u8, len: usize, limits: &Limits) -> Result<Box<[u8]>, String> {
    if !matches!(kind, Kind::Send { .. } | Kind::Write { .. }) {
        return Err("only a send or a write can be inline".into());
    }
    if len > limits.inline {
        return Err(format!("{len} bytes inline; at most {} are allowed", limits.inline));
    }
    let mut bytes = vec![0; len].into_boxed_slice();
    // SAFETY: the caller's promise; the copy is private.
    unsafe { kernels::copy(bytes.as_mut_ptr(), start, len) };
    Ok(bytes)
}

/// The slots of a send queue: those of works that nobody has heard of stay taken until a later one is reported.
#[derive(Debug)]
pub(super) struct Slots {
    pub(super) depth: usize,
    taken: usize,
    /// Works that have ended silently since the last report.
    silent: usize,
}

impl Slots {
    pub(super) fn new(depth: usize) -> Self {
        Slots { depth, taken: 0, silent: 0 }
    }

    /// Takes a slot, if one is free.
    pub(super) fn take(&mut self) -> Option<()> {
        (self.taken < self.depth).then(|| self.taken += 1)
    }

    /// A work has ended. How many slots are free again when its report is polled; none without a report.
    pub(super) fn ended(&mut self, reported: bool) -> Option<usize> {
        self.silent += 1;
        reported.then(|| std::mem::take(&mut self.silent))
    }

    pub(super) fn free(&mut self, slots: usize) {
        self.taken -= slots;
    }
}

/// A completion that nobody has polled.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) completion: Completion,
    /// Slots that are free when it is polled, of the pair if that is in the same life.
    pub(super) frees: usize,
    pub(super) life: u64,
}

impl Connected {
    pub(super) fn new(id: u64, place: Place, depth: usize, life: u64) -> Self {
        Connected {
            id,
            place,
            state: State::Reset,
            access: Access::NONE,
            life,
            path: Path::NONE,
            slots: Slots::new(depth),
            works: VecDeque::new(),
            started: 0,
            reads: 0,
            busy: false,
            serving: 0,
            due: Duration::ZERO,
            unanswered: 0,
            not_ready: 0,
        }
    }

    /// Whether memory is touched for its works, or for those of its peer.
    pub(super) fn is_in_use(&self) -> bool {
        self.busy || self.serving > 0
    }

    pub(super) fn is_idle(&self) -> bool {
        self.works.is_empty()
    }

    /// Adds a work, if it has room.
    pub(super) fn post(&mut self, entry: Entry) -> bool {
        let has_room = self.slots.take().is_some();
        if has_room {
            self.works.push_back(entry);
        }
        has_room
    }

    pub(super) fn work(&mut self, at: usize) -> &mut Entry {
        &mut self.works[at]
    }

    /// The next work, if it may start now.
    pub(super) fn to_start(&self) -> Option<usize> {
        let next = self.works.get(self.started)?;
        let waits = next.fence && self.reads > 0 || next.is_answered() && self.reads >= self.path.read_depth;
        (!waits).then_some(self.started)
    }

    /// The oldest read or atomic that was sent and not answered.
    pub(super) fn to_answer(&self) -> Option<usize> {
        if self.reads == 0 {
            return None;
        }
        self.works.iter().position(|work| matches!(work.progress, Progress::Asked { .. } | Progress::Excess))
    }

    /// Reads and atomics that were sent and not answered.
    pub(super) fn reads(&self) -> usize {
        self.reads
    }

    /// The work whose turn it was has started.
    pub(super) fn start(&mut self) {
        let work = &self.works[self.started];
        self.path.next = self.path.after(self.path.next, work.data.len());
        self.reads += usize::from(work.is_answered());
        self.started += 1;
        (self.unanswered, self.not_ready) = (0, 0);
    }

    /// A work that has started is done.
    pub(super) fn finish(&mut self, at: usize) {
        self.reads -= usize::from(self.works[at].is_answered());
        self.works[at].progress = Progress::Done;
        (self.unanswered, self.not_ready) = (0, 0);
    }

    /// The next report of works that are done.
    pub(super) fn retire(&mut self) -> Option<Report> {
        while self.works.front().is_some_and(|work| work.progress == Progress::Done) {
            let work = self.works.pop_front()?;
            self.started -= 1;
            if let Some(frees) = self.slots.ended(work.signaled) {
                return Some(self.report(work.id, Ok(work.done()), frees));
            }
        }
        None
    }

    /// Takes the first work, which has failed.
    pub(super) fn fail(&mut self, failure: Failure) -> Option<Report> {
        let work = self.works.pop_front()?;
        (self.started, self.reads) = (0, 0);
        let frees = self.slots.ended(true)?;
        Some(self.report(work.id, Err(failure), frees))
    }

    fn report(&self, id: u64, outcome: Result<Done, Failure>, frees: usize) -> Report {
        Report { completion: Completion { id, number: self.place.number, outcome }, frees, life: self.life }
    }

    /// Forgets everything but its name.
    pub(super) fn reset(&mut self, life: u64) {
        *self = Connected::new(self.id, self.place, self.slots.depth, life);
    }
}
