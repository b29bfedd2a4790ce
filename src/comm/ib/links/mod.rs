//! The queue pairs of an endpoint: they do what `protocol::connection` decides, and tell it what the device says.
//!
//! Messages arrive in slots of the shared receive queue. A datagram for a peer that has not published its address is lost like others.
//!
//! A queue pair that is given back goes to RESET and serves the next peer, under the same number. Behind the reset all completions are
//! taken out of the device, so that none of its earlier life comes later.
//!
//! A *slot* names a work. Frames, and copies of what is written or read, lie in slots of registered memory. Where the device uses a
//! caller's memory directly, that memory is registered for it alone, and the slot has none.
//!
//! `protocol::replay` says what is posted again when a queue pair breaks. A peer that stays away for too long ends the job
//! (`protocol::absence`).
//!
//! | file | contents |
//! |---|---|
//! | `steps` | what the machine decides |
//! | `completions` | what the device reports |
//! | `frames` | frames on a connection, and on the next one |
//! | `one_sided` | writes and reads |
//! | `wire` | what active messages ask for |
//! | `posted` | what a completion is of |

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use self::{one_sided::SlotWork, posted::Posted, wire::FRAME};
use super::device::{self, Completion, Device, DeviceRegion, Handle, Pair, Queue, ROUTE_HEADER, Registered, Work};
use crate::comm::{
    am::{
        frame::Frames,
        wire::{Broken, Ended, Result, Transfers},
    },
    kit::{peers::Peers, random::Random},
    protocol::{
        absence::Absences,
        completions::Completions,
        connection::{Action, ConnectionSettings, Connections, LENGTH, PairEvent},
        replay::{self, Replay, header::HEADER, report::EndReports},
    },
    start::devices::directory::Directory,
};
use rustc_hash::FxBuildHasher;

mod completions;
mod frames;
mod one_sided;
mod posted;
mod steps;
mod wire;

/// Messages that may be on their way to others, and those that may have arrived before anybody looks.
pub(super) const SENDS: usize = 64;
const RECEIVES: usize = 256;
/// Transfers that go straight.
const STRAIGHT_SLOTS: usize = 32;
/// Messages without a frame.
const CONTROLS: usize = 32;
/// Datagrams on their way, and arrived.
const DATAGRAM_SENDS: usize = 64;
const DATAGRAM_RECEIVES: usize = 64;

/// What a device has to be opened with.
pub(super) const DEPTHS: device::Depths = device::Depths {
    // Each work and each receive has one completion at most, marks have no more than silent works lack; a pair that breaks flushes what it has.
    completions: 2 * (SENDS + STRAIGHT_SLOTS + CONTROLS + RECEIVES + DATAGRAM_SENDS + DATAGRAM_RECEIVES),
    shared_receives: RECEIVES,
    datagram_receives: DATAGRAM_RECEIVES,
    datagram_sends: DATAGRAM_SENDS,
};

/// Completions that are taken at a time.
const BATCH: usize = 32;

/// Looks that find completions, and do not look at the time.
const HURRY: u32 = 16;

/// The interval of asking the device for what has no completion.
const ASKS: Duration = Duration::from_millis(5);

/// Verbs' codes: an answer is awaited for some 67 ms, six times. A sender that meets no receive waits 0.08 ms, without end.
const TIMEOUT: u8 = 14;
const RETRIES: u8 = 6;
const RECEIVE_TIMER: u8 = 6;
const ANSWERS_FOR_EVER: u8 = 7;

/// Steps of the queue pairs of a peer that may fail one after the other.
const FAILURES: u32 = 20;

/// After a lookup of a peer failed, this endpoint waits this long before the next lookup of any peer.
const FIND_AGAIN: Duration = Duration::from_millis(100);

/// The queue pairs of an endpoint.
#[derive(Debug)]
pub(super) struct Links<D: Device> {
    device: Arc<D>,
    directory: Arc<Directory>,
    connections: Connections,
    /// What it has said and what was not done; true while that is being done.
    actions: VecDeque<Action>,
    acts: bool,
    /// There may be more peers than queue pairs, so the machine has to know which connections are in use.
    is_short: bool,
    peers: Peers<LinkPeer>,
    /// The peers of queue pairs, by the pairs' numbers.
    owners: HashMap<u32, usize, FxBuildHasher>,
    /// In RESET.
    spare: Vec<Pair>,
    sends: Registered,
    free_sends: Vec<usize>,
    /// Slots without memory, which are numbered behind the others.
    free_straight: Vec<usize>,
    /// What was posted from each slot.
    sent: Vec<Sent>,
    /// Slots whose works are done, and are to be let go.
    gone: Vec<usize>,
    /// Works of a chain; empty, kept for its memory.
    chain: Vec<Work>,
    /// Slots that are to be posted in a chain; empty, kept for its memory.
    posted: Vec<Posted>,
    /// Memory that is open to peers.
    opened: Vec<DeviceRegion>,
    /// Slots that hold what was read; transfers that went straight and have ended.
    read: VecDeque<usize>,
    /// Copied reads that are not handed out.
    reading: usize,
    ended: Vec<Ended>,
    controls: Registered,
    /// The peer that each was sent to, and as which work; none if it is free.
    controlled: [Option<(usize, u64)>; CONTROLS],
    /// Peers with silent writes.
    silent: Vec<usize>,
    /// Peers that are to be told something; peers whose frames were seen, which they were not told yet.
    due: VecDeque<usize>,
    unsaid: VecDeque<usize>,
    absences: Absences,
    receives: Registered,
    datagrams: Registered,
    free_datagrams: Vec<usize>,
    /// Datagrams that wait for a slot: the last for each peer, which says all that those before it said.
    late: VecDeque<(usize, [u8; LENGTH])>,
    arrivals: VecDeque<Arrived>,
    /// For the next use.
    frames: Frames,
    /// Completions that were taken last.
    polled: Vec<Completion>,
    /// Completions taken in all; and looks since the last one at the time.
    taken: u64,
    hurried: u32,
    /// Works that were posted again, and bytes of all that were posted.
    replayed: u64,
    bytes: u64,
    random: Random,
    /// When the next lookup of a peer may begin.
    find_at: Duration,
}

/// A work that was posted from a slot.
#[derive(Clone, Copy, Debug)]
struct Sent {
    to: usize,
    /// Which of the works that were posted to that peer.
    serial: u64,
    len: usize,
    what: SlotWork,
}

/// A message in a slot of the receives.
#[derive(Clone, Copy, Debug)]
struct Arrived {
    from: usize,
    slot: usize,
    len: usize,
}

/// What is kept of a peer that was met.
#[derive(Debug, Default)]
struct LinkPeer {
    /// The queue pair that it has, the epoch that it has it for, and the number of the first packet that it sends.
    pair: Option<(Pair, u32, u32)>,
    handle: Option<Handle>,
    /// A connection was asked for, and is not ready.
    wanted: bool,
    /// Works, by their slots; the silent ones are short writes.
    completions: Completions<usize>,
    /// It is in [`Links::silent`].
    is_listed: bool,
    /// Writes and reads that have begun, and that have ended.
    transfers: Transfers,
    /// Those that have ended and overtook one that has not, when a connection broke.
    overtook: u64,
    /// Frames, writes and reads, by their slots.
    replay: Replay<usize>,
    /// What it was told of its own frames.
    report: EndReports,
    /// Steps that have failed since it was ready.
    failures: u32,
}

impl LinkPeer {
    /// Returns true if no completion of a work is asked for: short writes in a row. A [mark](Links::mark) will stand behind them.
    fn is_silent(&mut self, own: usize, what: Posted, sent: &[Sent], silent: &mut Vec<usize>) -> bool {
        // The end of a message without a frame lets no slot go, so it is none of the silent writes before it.
        let Posted::Send(slot) = what else { return false };
        if slot >= SENDS || !matches!(sent[slot].what, SlotWork::Write { .. }) {
            self.completions.asks();
            return false;
        }
        let is_silent = self.completions.is_silent(slot);
        if is_silent && !std::mem::replace(&mut self.is_listed, true) {
            silent.push(own);
        }
        is_silent
    }

    fn ends(&mut self) {
        self.transfers.ended += 1;
        if self.transfers.ended == self.transfers.begun {
            self.overtook = 0;
        }
    }
}

impl<D: Device> Links<D> {
    /// # Errors
    /// What the device says.
    pub(super) fn new(device: D, directory: Arc<Directory>, settings: ConnectionSettings) -> device::Result<Self> {
        let sends = Registered::new(&device, SENDS, HEADER + FRAME)?;
        let receives = Registered::new(&device, RECEIVES, HEADER + FRAME)?;
        let controls = Registered::new(&device, CONTROLS, HEADER)?;
        let datagrams = Registered::new(&device, DATAGRAM_SENDS + DATAGRAM_RECEIVES, ROUTE_HEADER + LENGTH)?;
        let budget = settings.budget.min(device.limits().pairs);
        let links = Links {
            device: Arc::new(device),
            directory,
            connections: Connections::new(ConnectionSettings { budget, ..settings }),
            actions: VecDeque::new(),
            acts: false,
            is_short: budget < settings.endpoints.saturating_sub(1),
            peers: Peers::default(),
            owners: HashMap::default(),
            spare: Vec::new(),
            sends,
            free_sends: (0..SENDS).collect(),
            free_straight: (SENDS..SENDS + STRAIGHT_SLOTS).collect(),
            sent: vec![Sent { to: 0, serial: 0, len: 0, what: SlotWork::Frame }; SENDS + STRAIGHT_SLOTS],
            gone: Vec::new(),
            chain: Vec::new(),
            posted: Vec::new(),
            opened: Vec::new(),
            read: VecDeque::new(),
            reading: 0,
            ended: Vec::new(),
            controls,
            controlled: [None; CONTROLS],
            silent: Vec::new(),
            due: VecDeque::new(),
            unsaid: VecDeque::new(),
            absences: Absences::default(),
            receives,
            datagrams,
            free_datagrams: (0..DATAGRAM_SENDS).collect(),
            late: VecDeque::new(),
            arrivals: VecDeque::with_capacity(RECEIVES),
            frames: Frames::new(FRAME, SENDS),
            polled: Vec::with_capacity(BATCH),
            taken: 0,
            hurried: 0,
            replayed: 0,
            bytes: 0,
            random: Random::new(settings.token as u64 ^ settings.endpoint as u64),
            find_at: Duration::ZERO,
        };
        (0..RECEIVES).try_for_each(|slot| links.post_receive(slot))?;
        (0..DATAGRAM_RECEIVES).try_for_each(|slot| links.post_datagram_receive(DATAGRAM_SENDS + slot))?;
        links.directory.publish(settings.endpoint, links.device.address().to_words());
        Ok(links)
    }

    fn post_receive(&self, slot: usize) -> device::Result<()> {
        // SAFETY: the slot is touched by nobody before its completion was polled, and lives as long as the device.
        unsafe { self.device.post_receive(Queue::Shared, Posted::Receive(slot).id(), self.receives.whole(slot)) }
    }

    fn post_datagram_receive(&self, slot: usize) -> device::Result<()> {
        // SAFETY: as above.
        unsafe { self.device.post_receive(Queue::Datagram, Posted::DatagramReceive(slot).id(), self.datagrams.whole(slot)) }
    }

    /// Asks for connections before anything is sent.
    ///
    /// # Errors
    /// [`Broken`].
    pub(super) fn connect_with(&mut self, mut peers: impl Iterator<Item = usize>) -> Result<()> {
        peers.try_for_each(|peer| self.is_ready(peer).map(drop))
    }

    /// Returns true if a peer may be sent to. Asks for a connection if there is none.
    fn is_ready(&mut self, to: usize) -> Result<bool> {
        let peer = self.peers.meet(to);
        if self.connections.is_ready(to) {
            return Ok(peer.replay.may_post(replay::ItemKind::Frame));
        }
        if !std::mem::replace(&mut peer.wanted, true) {
            self.tell(to, PairEvent::Wanted);
            self.act()?;
        }
        Ok(false)
    }

    /// Sets the time after which a peer whose connection does not come back is lost; `None`: never.
    pub(super) fn loses_after(&mut self, silence: Option<Duration>) {
        self.absences.loses_after(silence);
    }

    /// Slots that are free for messages.
    fn room(&self) -> usize {
        self.free_sends.len()
    }

    #[cfg(test)]
    pub(super) fn device(&self) -> &D {
        &self.device
    }

    /// Peers for which queue pairs are held.
    #[cfg(test)]
    pub(super) fn partners(&self) -> impl ExactSizeIterator<Item = usize> {
        self.owners.values().copied()
    }

    /// Looks at the device, and at the time. Returns true if the device may have more to say.
    fn look(&mut self) -> Result<bool> {
        self.mark_all()?;
        let before = self.taken;
        let may_be_more = self.take_completions()?;
        if self.taken != before && self.hurried < HURRY && !self.device.limits().virtual_time {
            // The caller handles its completions first. The clock can wait.
            self.hurried += 1;
            return Ok(may_be_more);
        }
        self.hurried = 0;
        let now = self.device.now();
        while let Some(&peer) = self.unsaid.front() {
            let due = self.says_at(peer);
            if due.is_some_and(|at| now < at) {
                break;
            }
            self.unsaid.pop_front();
            self.due.extend(due.map(|_| peer));
        }
        self.send_due()?;
        if self.connections.next_timeout().is_some_and(|at| at <= now) {
            self.actions.extend(self.connections.on_timeout(now));
        }
        self.act()?;
        if self.device.limits().virtual_time {
            let says = self.unsaid.front().and_then(|&peer| self.says_at(peer));
            says.into_iter().chain(self.connections.next_timeout()).min().into_iter().for_each(|at| self.device.remind(at));
        }
        if self.absences.looks(now, ASKS) {
            self.look_for_lost()?;
            while let Some(event) = self.device.event() {
                // What is posted to a pair that failed fails by its completion, and the event may be of an earlier life of the pair.
                if event == device::DeviceEvent::Fatal {
                    return Err(Broken("the adapter does not work any more".into()));
                }
            }
        }
        Ok(may_be_more)
    }

    /// The time to tell a peer what was seen.
    fn says_at(&self, peer: usize) -> Option<Duration> {
        self.peers.get(peer)?.report.due()
    }

    /// Tells the machine of connections what has happened. What it says to that is done by [`act`](Self::act).
    fn tell(&mut self, peer: usize, event: PairEvent) {
        self.actions.extend(self.connections.on_event(self.device.now(), peer, event));
    }

    /// Gives everything back to the device that it still has. Nothing is sent or received any more.
    fn give_back(&mut self) {
        let mut held: Vec<Pair> = self.peers.iter_mut().filter_map(|(_, peer)| Some(peer.pair.take()?.0)).collect();
        held.append(&mut self.spare);
        held.sort_unstable_by_key(|pair| pair.id);
        for pair in held {
            // A device that refuses keeps its memory too.
            let _ = self.device.destroy(pair);
        }
        self.owners.clear();
        // No pair is left that could use what was lent.
        let lent = self.sent[SENDS..].iter_mut().filter_map(|sent| sent.what.take_region());
        for region in lent.chain(self.opened.drain(..)) {
            let _ = self.device.deregister(region);
        }
        for slots in [&mut self.sends, &mut self.controls, &mut self.receives, &mut self.datagrams] {
            slots.withdraw(&*self.device);
        }
    }
}
