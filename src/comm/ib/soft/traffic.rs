//! What the adapters do next: which work of a pair starts, what its target says, and how it ends.
//!
//! All of this happens under the lock of the fabric, save the moving of bytes: [`State::next`] hands out a [`Transfer`], which is carried
//! out without the lock and then [finished](State::finish). A pair has one transfer at a time.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use super::{
    keys::{By, Pinned},
    landing,
    pair::{Connected, Data, Place, Progress},
    port::Port,
};
use crate::comm::{
    ib::device::{Access, DeviceError, Done, Event, Failure, Kind, State as PairState},
    mutex::Mutex,
    slab::Slab,
};

/// All that the devices of a fabric share.
#[derive(Debug)]
pub(super) struct State {
    pub(super) ports: Slab<Port>,
    /// Pairs that have works.
    waiting: BTreeSet<Place>,
    random: u64,
    lives: u64,
    regions: u32,
}

/// Bytes, or a word, that an adapter moves.
#[derive(Debug)]
pub(super) struct Transfer {
    from: Place,
    /// Of the work in its queue.
    at: usize,
    to: Place,
    kind: Kind,
    here: Here,
    there: Pinned,
    len: usize,
    /// Of the receive that a send takes.
    receive: Option<u64>,
    adapter: Arc<Mutex<()>>,
    random: u64,
}

/// The local side.
#[derive(Debug)]
enum Here {
    Inline(Box<[u8]>),
    Memory(Pinned),
}

impl Transfer {
    /// Moves the bytes.
    pub(super) fn carry_out(&mut self) {
        let here = match &mut self.here {
            Here::Inline(bytes) => bytes.as_mut_ptr(),
            Here::Memory(memory) => memory.start(),
        };
        let (there, len, random) = (self.there.start(), self.len, self.random);
        match self.kind {
            // SAFETY: both sides lie in memory that is registered until this value is dropped, for the access that they need, or here in
            // this value. Who registered it promised that there are no references to it, who posted the work that the two do not overlap.
            Kind::Send { .. } | Kind::Write { .. } => unsafe { landing::land(there, here, len, random) },
            // SAFETY: as above.
            Kind::Read { .. } => unsafe { landing::land(here, there, len, random) },
            // SAFETY: as above; the alignment was checked, and both lengths are eight.
            Kind::FetchAdd { .. } | Kind::CompareSwap { .. } => unsafe {
                landing::atomic(&self.adapter, there.cast(), here, self.kind);
            },
        }
    }
}

/// Why a work did not start, or was not answered.
#[derive(Debug)]
enum Trouble {
    /// Nobody is there who answers.
    Unanswered,
    /// No receive is posted; when to come again.
    NotReady(Duration),
    /// The work is wrong here.
    Local(Failure),
    /// The peer refuses it, and fails too.
    Refused { by: Place, here: Failure, receive: Option<Failure> },
}

/// What may be done through a pair and to memory by a work.
fn needs(kind: Kind) -> Access {
    match kind {
        Kind::Send { .. } => Access::NONE,
        Kind::Write { .. } => Access::REMOTE_WRITE,
        Kind::Read { .. } => Access::REMOTE_READ,
        Kind::FetchAdd { .. } | Kind::CompareSwap { .. } => Access::REMOTE_ATOMIC,
    }
}

impl State {
    pub(super) fn new(seed: u64) -> Self {
        State { ports: Slab::default(), waiting: BTreeSet::new(), random: seed, lives: 0, regions: 0 }
    }

    pub(super) fn port(&mut self, id: u64) -> Result<&mut Port, DeviceError> {
        self.ports.get_mut(id).ok_or(DeviceError::Unknown { what: "device", id })
    }

    /// A number that no pair's life had before.
    pub(super) fn life(&mut self) -> u64 {
        self.lives += 1;
        self.lives
    }

    /// A number that no region had before.
    pub(super) fn region(&mut self) -> u32 {
        self.regions += 1;
        self.regions
    }

    /// SplitMix64 (Steele, Lea and Flood, 2014).
    fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.random ^ self.random >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }

    /// Notes whether a pair has works. How many pairs have.
    pub(super) fn note(&mut self, place: Place) -> usize {
        let pair = self.ports.get_mut(place.port).and_then(|port| port.numbered(place.number));
        if pair.is_some_and(|pair| !pair.is_idle()) {
            self.waiting.insert(place);
        } else {
            self.waiting.remove(&place);
        }
        self.waiting.len()
    }

    /// The first pair behind `last` that has works.
    pub(super) fn waiting_behind(&self, last: Option<Place>) -> Option<Place> {
        use std::ops::Bound::{Excluded, Unbounded};
        self.waiting.range((last.map_or(Unbounded, Excluded), Unbounded)).next().copied()
    }

    /// When the first of them may go on.
    pub(super) fn due(&mut self) -> Option<Duration> {
        let ports = &mut self.ports;
        self.waiting.iter().filter_map(|place| Some(ports.get_mut(place.port)?.numbered(place.number)?.due)).min()
    }

    /// What a pair does next, if it can do anything now.
    pub(super) fn next(&mut self, place: Place, now: Duration) -> Option<Transfer> {
        loop {
            let coin = self.random().is_multiple_of(2);
            let port = self.ports.get_mut(place.port)?;
            let pair = port.numbered(place.number).filter(|pair| !pair.busy)?;
            if pair.state == PairState::Error {
                port.fail(place.number, Failure::Flushed);
                return None;
            }
            if pair.state != PairState::ReadyToSend || pair.due > now {
                return None;
            }
            // A read may be answered after what is behind it.
            let (start, answer) = (pair.to_start(), pair.to_answer());
            let [first, second] = if coin { [start, answer] } else { [answer, start] };
            let at = first.or(second)?;
            let trouble = match self.attempt(place, at) {
                Ok(Some(transfer)) => return Some(transfer),
                Ok(None) => continue,
                // What was asked before is answered before.
                Err(_) if Some(at) == start && answer.is_some() => match self.attempt(place, answer?) {
                    Ok(transfer) => return transfer,
                    Err(trouble) => trouble,
                },
                Err(trouble) => trouble,
            };
            self.handle(place, trouble, now);
        }
    }

    /// Starts the work of a pair, or has the one answered that has started before. Nothing if it only asked.
    fn attempt(&mut self, from: Place, at: usize) -> Result<Option<Transfer>, Trouble> {
        use Trouble::{Local, NotReady, Refused, Unanswered};
        let random = self.random();
        let port = self.ports.get_mut(from.port).ok_or(Unanswered)?;
        let pair = port.numbered(from.number).ok_or(Unanswered)?;
        let (path, reads, entry) = (pair.path, pair.reads(), pair.work(at));
        let (kind, progress, len, is_answered) = (entry.kind, entry.progress, entry.data.len(), entry.is_answered());
        let here = match entry.data {
            Data::Inline(_) => None,
            Data::Memory { start, len, key } => {
                let needs = if is_answered { Access::LOCAL_WRITE } else { Access::NONE };
                Some(port.keys.pin(By::Local, key, start, len, needs).ok_or(Local(Failure::LocalProtection))?)
            }
        };

        let by = path.peer.ok_or(Unanswered)?;
        let target_port = self.ports.get_mut(by.port).filter(|port| port.check().is_ok()).ok_or(Unanswered)?;
        let target = target_port.numbered(by.number).ok_or(Unanswered)?;
        let is_ready = matches!(target.state, PairState::ReadyToReceive | PairState::ReadyToSend);
        let in_turn = match progress {
            Progress::Asked { life } => life == target.life,
            Progress::Excess => true,
            Progress::Posted | Progress::Done => path.next == target.path.expected,
        };
        if !is_ready || target.path.peer != Some(from) || !in_turn {
            return Err(Unanswered);
        }
        let refused = |here| Refused { by, here, receive: None };
        if progress == Progress::Excess {
            return Err(refused(Failure::RemoteInvalid));
        }
        if progress == Progress::Posted && is_answered {
            let life = target.life;
            target.path.expected = target.path.after(target.path.expected, len);
            let is_excess = reads >= target.path.answer_depth;
            let pair = self.pair(from).ok_or(Unanswered)?;
            pair.work(at).progress = if is_excess { Progress::Excess } else { Progress::Asked { life } };
            pair.start();
            return Ok(None);
        }

        let (access, receive_timer) = (target.access, target.path.receive_timer);
        let (there, receive) = match kind {
            Kind::Send { .. } => {
                let receive = *target_port.shared.front().ok_or(NotReady(receive_timer))?;
                let fails = |here, there| Refused { by, here, receive: Some(there) };
                if len > receive.len {
                    return Err(fails(Failure::RemoteInvalid, Failure::LocalLength));
                }
                let there = receive.pin(&target_port.keys).ok_or(fails(Failure::RemoteOperation, Failure::LocalProtection))?;
                target_port.shared.pop_front();
                (there, Some(receive.id))
            }
            Kind::Write { to: at } | Kind::Read { from: at } | Kind::FetchAdd { at, .. } | Kind::CompareSwap { at, .. } => {
                let needs = needs(kind);
                let is_atomic = needs == Access::REMOTE_ATOMIC;
                if is_atomic && !at.start.is_multiple_of(size_of::<u64>() as u64) {
                    return Err(refused(Failure::RemoteInvalid));
                }
                let there = target_port.keys.pin(By::Remote, at.key, at.start, len, needs);
                (there.filter(|_| access.allows(needs)).ok_or(refused(Failure::RemoteAccess))?, None)
            }
        };
        let adapter = target_port.adapter.clone();
        let target = target_port.numbered(by.number).ok_or(Unanswered)?;
        target.serving += 1;
        if progress == Progress::Posted {
            target.path.expected = target.path.after(target.path.expected, len);
        }
        let pair = self.pair(from).ok_or(Unanswered)?;
        if progress == Progress::Posted {
            pair.start();
        }
        pair.busy = true;
        let here = here.map_or_else(|| Here::Inline(pair.work(at).data.take()), Here::Memory);
        Ok(Some(Transfer { from, at, to: by, kind, here, there, len, receive, adapter, random }))
    }

    fn pair(&mut self, place: Place) -> Option<&mut Connected> {
        self.ports.get_mut(place.port)?.numbered(place.number)
    }

    /// The first work of a pair that is not done did not get through.
    fn handle(&mut self, place: Place, trouble: Trouble, now: Duration) {
        let Some(pair) = self.pair(place) else { return };
        let path = pair.path;
        let failure = match trouble {
            Trouble::Local(failure) | Trouble::Refused { here: failure, .. } => failure,
            Trouble::Unanswered => {
                // Seven are for ever, as with soft-RoCE.
                if pair.unanswered < path.retries || path.retries == 7 {
                    pair.unanswered = pair.unanswered.saturating_add(1);
                    pair.due = now.saturating_add(path.timeout);
                    return;
                }
                Failure::RetryExceeded
            }
            Trouble::NotReady(timer) => {
                if pair.not_ready < path.receive_retries || path.receive_retries == 7 {
                    pair.not_ready = pair.not_ready.saturating_add(1);
                    pair.due = now.saturating_add(timer);
                    return;
                }
                Failure::ReceiveRetryExceeded
            }
        };
        if let Some(port) = self.ports.get_mut(place.port) {
            port.fail(place.number, failure);
        }
        if let Trouble::Refused { by, receive, .. } = trouble
            && let Some(port) = self.ports.get_mut(by.port)
        {
            if let Some(failure) = receive
                && let Some(receive) = port.shared.pop_front()
            {
                port.received(receive.id, by.number, Err(failure));
            }
            if let Some(pair) = port.numbered(by.number) {
                pair.state = PairState::Error;
            }
            // Its works are flushed when it is its turn: a transfer of its own may be under way.
            port.event(Event::PairFailed(by.number));
        }
    }

    /// The bytes of a transfer have landed.
    pub(super) fn finish(&mut self, transfer: Transfer) {
        let Transfer { from, at, to, kind, here, there, len, receive, .. } = transfer;
        drop((here, there));
        if let Some(target) = self.pair(to) {
            target.serving -= 1;
        }
        if let (Some(id), Kind::Send { immediate }) = (receive, kind)
            && let Some(port) = self.ports.get_mut(to.port)
        {
            port.received(id, to.number, Ok(Done::Received { len, immediate, from: None }));
        }
        if let Some(pair) = self.pair(from) {
            pair.busy = false;
            pair.finish(at);
        }
        if let Some(port) = self.ports.get_mut(from.port) {
            port.retire(from.number);
        }
    }
}
