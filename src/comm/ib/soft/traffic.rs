//! What the adapters do next: which work of a pair starts, what its target says, and how it ends.
//!
//! [`FabricState::next`] hands out a [`Transfer`], which moves bytes without the fabric's lock and is then
//! [finished](FabricState::finish).

use std::{
    collections::BTreeSet,
    ops::Bound::{Excluded, Unbounded},
    sync::Arc,
    time::Duration,
};

use super::{
    keys::By,
    pair::{PairId, Path, SoftPair, Underway, after, is_answered},
    port::{SoftPort, pin},
};
use crate::comm::{
    ib::device::{Access, DeviceError, DeviceEvent, Done, Opcode, State as PairState, Work, WorkFailure},
    kit::{mutex::Mutex, random::Random, slab::Slab},
    soft::{
        Wish,
        fabric::{Pinned, Socket, is_far, landing},
    },
};

/// All that the devices of a fabric share.
#[derive(Debug)]
pub(super) struct FabricState {
    pub(super) ports: Slab<SoftPort>,
    /// Pairs that have works.
    waiting: BTreeSet<PairId>,
    pub(super) random: Random,
    /// Of a process, for devices of others; and the port that packets are for.
    pub(super) socket: Option<Socket>,
    pub(super) own: u64,
    /// In virtual time, what is on its way, and what the cables are to do.
    pub(super) travelling: Slab<Travelling>,
    pub(super) wishes: Vec<Wish>,
}

/// In virtual time, what is on its way, by its number.
#[derive(Debug)]
pub(super) enum Travelling {
    /// A work of a pair, by the pair's life and its number in that.
    Work { of: PairId, life: u64, number: u64 },
    /// What it brings back.
    Return { of: PairId, life: u64, number: u64 },
    /// A datagram from one port to the pair of a number of another one.
    Datagram { from: u64, to: u64, number: u32, key: u32, bytes: Box<[u8]> },
    /// No message: a pair may try again.
    Again { of: PairId },
}

/// Bytes, or a word, that an adapter moves.
#[derive(Debug)]
pub(super) struct Transfer {
    from: PairId,
    /// Of the work in its queue.
    at: usize,
    to: PairId,
    work: Work,
    here: Pinned,
    there: Pinned,
    /// Of the receive that a send takes.
    receive: Option<u64>,
    adapter: Arc<Mutex<()>>,
    random: usize,
}

impl Transfer {
    pub(super) fn carry_out(&self) {
        let (here, there, len) = (self.here.start(), self.there.start(), self.work.local.len);
        match self.work.kind {
            // SAFETY: both sides lie in memory that stays registered until this value is dropped, for the access that they need, or
            // in a copy of inline data. The caller that registered it promised that there are no references to it. The caller
            // that posted the work promised that the two do not overlap.
            Opcode::Send { .. } | Opcode::Write { .. } => unsafe { landing::land(there, here, len, self.random) },
            // SAFETY: as above.
            Opcode::Read { .. } => unsafe { landing::land(here, there, len, self.random) },
            // SAFETY: as above; the alignment was checked, and both lengths are eight.
            kind => unsafe { landing::atomic(&self.adapter, there.cast(), here, |old| changed(kind, old)) },
        }
    }
}

/// What an atomic makes of a word, if it changes it.
pub(super) fn changed(kind: Opcode, old: u64) -> Option<u64> {
    match kind {
        Opcode::FetchAdd { operand, .. } => Some(old.wrapping_add(operand)),
        Opcode::CompareSwap { expected, value, .. } if expected == old => Some(value),
        _ => None,
    }
}

/// Why a work did not start, or was not answered.
#[derive(Debug)]
pub(super) enum Trouble {
    /// No peer is there to answer.
    Unanswered,
    /// No receive is posted; when to come again.
    NotReady(Duration),
    /// The work is wrong here.
    Local(WorkFailure),
    /// The peer refuses it, and fails too; so does the receive, if it is about one.
    Refused { by: PairId, here: WorkFailure, receive: Option<WorkFailure> },
}

/// Counts a try. Returns true if it is allowed. A limit of seven means no limit, as with soft-RoCE.
pub(super) fn try_again(tries: &mut u8, most: u8) -> bool {
    *tries = tries.saturating_add(1);
    *tries <= most || most == 7
}

/// The memory of a pair that a work of its peer is about, and the receive that a send takes.
pub(super) fn reach(
    port: &mut SoftPort,
    by: PairId,
    path: &Path,
    kind: Opcode,
    len: usize,
) -> Result<(Pinned, Option<u64>), Trouble> {
    let refused = |here, receive| Trouble::Refused { by, here, receive };
    let (at, needs, alignment) = match kind {
        Opcode::Send { .. } => {
            let receive = *port.shared.front().ok_or(Trouble::NotReady(path.receive_timer))?;
            if len > receive.piece.len {
                return Err(refused(WorkFailure::RemoteInvalid, Some(WorkFailure::LocalLength)));
            }
            let closed = || refused(WorkFailure::RemoteOperation, Some(WorkFailure::LocalProtection));
            let there = receive.pin(&port.keys).ok_or_else(closed)?;
            port.shared.pop_front();
            return Ok((there, Some(receive.id)));
        }
        Opcode::Write { to } => (to, Access::REMOTE_WRITE, 1),
        Opcode::Read { from } => (from, Access::REMOTE_READ, 1),
        Opcode::FetchAdd { at, .. } | Opcode::CompareSwap { at, .. } => (at, Access::REMOTE_ATOMIC, size_of::<u64>() as u64),
    };
    if !at.start.is_multiple_of(alignment) || !path.access.allows(needs) {
        return Err(refused(WorkFailure::RemoteInvalid, None));
    }
    let there = port.keys.pin(By::Remote, at.key, at.start, len, needs);
    Ok((there.ok_or_else(|| refused(WorkFailure::RemoteAccess, None))?, None))
}

impl FabricState {
    pub(super) fn new(seed: u64) -> Self {
        FabricState {
            ports: Slab::default(),
            waiting: BTreeSet::new(),
            random: Random::new(seed),
            socket: None,
            own: 0,
            travelling: Slab::default(),
            wishes: Vec::new(),
        }
    }

    pub(super) fn port(&mut self, id: u64) -> Result<&mut SoftPort, DeviceError> {
        self.ports.get_mut(id).ok_or(DeviceError::Unknown { what: "device", id })
    }

    pub(super) fn pair(&mut self, place: PairId) -> Option<&mut SoftPair> {
        self.ports.get_mut(place.port)?.numbered(place.number)
    }

    /// Notes whether a pair has works. Returns the number of pairs that have.
    pub(super) fn note(&mut self, place: PairId) -> usize {
        if self.pair(place).is_some_and(|pair| !pair.works.is_empty()) {
            self.waiting.insert(place);
        } else {
            self.waiting.remove(&place);
        }
        self.waiting.len()
    }

    /// The first pair behind `last` that has works.
    pub(super) fn waiting_behind(&self, last: Option<PairId>) -> Option<PairId> {
        self.waiting.range((last.map_or(Unbounded, Excluded), Unbounded)).next().copied()
    }

    /// The time when the first of them may go on.
    pub(super) fn due(&mut self) -> Option<Duration> {
        let ports = &mut self.ports;
        self.waiting.iter().filter_map(|place| Some(ports.get_mut(place.port)?.numbered(place.number)?.due)).min()
    }

    /// What a pair does next, if it can do anything now.
    pub(super) fn next(&mut self, place: PairId, now: Duration) -> Option<Transfer> {
        loop {
            let coin = self.random.below(2);
            let port = self.ports.get_mut(place.port)?;
            let pair = port.numbered(place.number).filter(|pair| !pair.busy)?;
            if pair.state == PairState::Error {
                port.retire(place.number, Some(WorkFailure::Flushed));
                return None;
            }
            if pair.state != PairState::ReadyToSend || pair.due > now {
                return None;
            }
            if let Some(peer) = pair.path.peer.filter(|peer| is_far(peer.port)) {
                match self.ask(place, peer, now) {
                    Ok(()) => return None,
                    Err(trouble) => {
                        self.handle(place, trouble, now);
                        continue;
                    }
                }
            }
            // A read may be answered after what is behind it has started.
            let (start, answer) = (pair.to_start(), pair.to_answer());
            let at = if coin == 0 { start.or(answer) } else { answer.or(start) }?;
            let outcome = match self.attempt(place, at) {
                // What was asked before is answered before it fails.
                Err(_) if Some(at) == start && answer.is_some() => self.attempt(place, answer?),
                outcome => outcome,
            };
            match outcome {
                Ok(Some(transfer)) => return Some(transfer),
                Ok(None) => {}
                Err(trouble) => self.handle(place, trouble, now),
            }
        }
    }

    /// Starts a work of a pair, or has it answered, if it was asked before. Nothing if it only asked.
    fn attempt(&mut self, from: PairId, at: usize) -> Result<Option<Transfer>, Trouble> {
        use Trouble::{Local, Refused, Unanswered};
        let random = self.random.below(usize::MAX);
        let port = self.ports.get_mut(from.port).ok_or(Unanswered)?;
        let pair = port.numbered(from.number).ok_or(Unanswered)?;
        let (path, reads, entry) = (pair.path, pair.reads, &pair.works[at]);
        let (work, progress, inline) = (entry.work, entry.progress, entry.inline.is_some());
        let (kind, len) = (work.kind, work.local.len);
        let needs = if is_answered(kind) { Access::LOCAL_WRITE } else { Access::NONE };
        let here =
            if inline { None } else { Some(pin(&port.keys, work.local, needs).ok_or(Local(WorkFailure::LocalProtection))?) };

        let by = path.peer.ok_or(Unanswered)?;
        let port = self.ports.get_mut(by.port).ok_or(Unanswered)?;
        let target = port.numbered(by.number).ok_or(Unanswered)?;
        let in_turn = match progress {
            Underway::Asked { life } => life == target.life,
            Underway::Excess => true,
            Underway::Posted | Underway::Done => path.next == target.path.expected,
        };
        if !target.answers(from) || !in_turn {
            return Err(Unanswered);
        }
        let (life, theirs) = (target.life, target.path);
        let there = match kind {
            _ if progress == Underway::Excess => {
                return Err(Refused { by, here: WorkFailure::RemoteInvalid, receive: None });
            }
            _ if progress == Underway::Posted && is_answered(kind) => None,
            _ => Some(reach(port, by, &theirs, kind, len)?),
        };
        let adapter = port.adapter.clone();
        let target = port.numbered(by.number).ok_or(Unanswered)?;
        target.serving += usize::from(there.is_some());
        if progress == Underway::Posted {
            target.path.expected = after(theirs.expected);
        }
        let pair = self.pair(from).ok_or(Unanswered)?;
        if progress == Underway::Posted {
            pair.start();
        }
        let Some((there, receive)) = there else {
            pair.works[at].progress = if reads < theirs.answer_depth { Underway::Asked { life } } else { Underway::Excess };
            self.returns(from, by, at);
            return Ok(None);
        };
        let here = here.or_else(|| pair.works[at].inline.take()).ok_or(Local(WorkFailure::LocalProtection))?;
        pair.busy = true;
        Ok(Some(Transfer { from, at, to: by, work, here, there, receive, adapter, random }))
    }

    /// The first work of a pair that is not done did not get through.
    pub(super) fn handle(&mut self, place: PairId, trouble: Trouble, now: Duration) {
        let Some(pair) = self.pair(place) else { return };
        let path = pair.path;
        let (again, after, failure) = match trouble {
            Trouble::Local(failure) | Trouble::Refused { here: failure, .. } => (false, now, failure),
            Trouble::Unanswered => (try_again(&mut pair.unanswered, path.retries), path.timeout, WorkFailure::RetryExceeded),
            Trouble::NotReady(timer) => {
                (try_again(&mut pair.not_ready, path.receive_retries), timer, WorkFailure::ReceiveRetryExceeded)
            }
        };
        if again {
            pair.due = now.saturating_add(after);
            return;
        }
        if let Some(port) = self.ports.get_mut(place.port) {
            port.retire(place.number, Some(failure));
        }
        if let Trouble::Refused { by, receive, .. } = trouble {
            self.refused(by, receive);
        }
    }

    /// A pair has refused a work of its peer, and fails too; so does the receive, if it is about one.
    pub(super) fn refused(&mut self, by: PairId, receive: Option<WorkFailure>) {
        let says_so = self.random.below(2) == 0;
        let Some(port) = self.ports.get_mut(by.port) else { return };
        if let Some((failure, receive)) = receive.and_then(|failure| Some((failure, port.shared.pop_front()?))) {
            port.received(receive.id, by.number, Err(failure));
        }
        // Its works are flushed when it is its turn: a transfer of its own may be under way.
        if let Some(pair) = port.numbered(by.number) {
            pair.state = PairState::Error;
        }
        // Some adapters do, soft-RoCE does not.
        if says_so {
            port.event(DeviceEvent::PairFailed(by.number));
        }
    }

    /// The bytes of a transfer have landed.
    pub(super) fn finish(&mut self, transfer: Transfer) {
        let Transfer { from, at, to, work, receive, .. } = transfer;
        let written = if matches!(work.kind, Opcode::Read { .. }) { from } else { to };
        self.ports.get_mut(written.port).into_iter().for_each(|port| port.touched = true);
        if let Some(port) = self.ports.get_mut(to.port) {
            if let Some(target) = port.numbered(to.number) {
                target.serving -= 1;
            }
            if let (Some(id), Opcode::Send { immediate }) = (receive, work.kind) {
                port.received(id, to.number, Ok(Done::Received { len: work.local.len, immediate, from: None }));
            }
        }
        if let Some(port) = self.ports.get_mut(from.port) {
            if let Some(pair) = port.numbered(from.number) {
                pair.finish(at);
            }
            port.retire(from.number, None);
        }
    }
}
