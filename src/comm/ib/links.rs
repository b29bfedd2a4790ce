//! The queue pairs of an endpoint: what the machine of connections decides is done here, and what the device says is told to it.
//!
//! One device serves all peers of an endpoint: a completion names a queue pair, and that a peer. Messages arrive in slots of the shared
//! receive queue. Datagrams are those of the machine and no others; one for a peer that has not published its address is lost like others.
//!
//! A queue pair that is given back goes to RESET and is used for the next peer, under the same number. Before that, all completions
//! are taken out of the device, because those of a pair in RESET may never be reported.

use std::{
    collections::{HashMap, VecDeque},
    fmt,
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use super::{
    device::{self, Completion, Datagram, DeviceError, Done, Handle, Kind, Pair, Queue, ROUTE_HEADER, To, Work},
    slots::Slots,
};
use crate::comm::{
    am::wire::{Broken, Result},
    protocol::connection::{Action, Address, Connections, Event, LENGTH, Settings},
    random::Random,
};

/// Messages that may be on their way to others, and those that may have arrived before anybody looks.
pub(super) const SENDS: usize = 64;
pub(super) const RECEIVES: usize = 256;
/// The same of datagrams.
const DATAGRAM_SENDS: usize = 64;
const DATAGRAM_RECEIVES: usize = 64;

/// What a device has to be opened with.
pub(super) const DEPTHS: device::Depths = device::Depths {
    // Each work and each receive has one completion; a pair that breaks flushes what it has.
    completions: 2 * (SENDS + RECEIVES + DATAGRAM_SENDS + DATAGRAM_RECEIVES),
    shared_receives: RECEIVES,
    datagram_receives: DATAGRAM_RECEIVES,
    datagram_sends: DATAGRAM_SENDS,
};

/// Completions that are taken at a time.
const BATCH: usize = 32;

/// How often the device is asked for what has no completion.
const ASKS: Duration = Duration::from_millis(5);

/// Verbs' codes: an answer is awaited for some 67 ms, six times; who meets no receive waits 0.08 ms, and never gives up.
const TIMEOUT: u8 = 14;
const RETRIES: u8 = 6;
const RECEIVE_TIMER: u8 = 6;
const FOR_EVER: u8 = 7;

/// Steps of the queue pairs of a peer that may fail one after the other.
const FAILURES: u32 = 20;

/// Where the endpoints of a job are reached, once they have said so.
#[derive(Debug)]
pub(super) struct Directory(Vec<OnceLock<device::Address>>);

impl Directory {
    pub(super) fn new(endpoints: usize) -> Self {
        Directory((0..endpoints).map(|_| OnceLock::new()).collect())
    }

    fn publish(&self, endpoint: usize, address: device::Address) {
        let published = self.0[endpoint].set(address);
        debug_assert!(published.is_ok(), "endpoint {endpoint} is opened twice");
    }

    fn find(&self, endpoint: usize) -> Option<&device::Address> {
        self.0[endpoint].get()
    }
}

/// See the module's essay.
pub(super) struct Links<D> {
    device: D,
    directory: Arc<Directory>,
    connections: Connections,
    peers: HashMap<usize, Peer>,
    /// Whose queue pairs these are.
    owners: HashMap<u32, usize>,
    /// In RESET.
    spare: Vec<Pair>,
    sends: Slots,
    free_sends: Vec<usize>,
    /// Whom each slot of `sends` was sent to.
    sent_to: [usize; SENDS],
    receives: Slots,
    datagrams: Slots,
    free_datagrams: Vec<usize>,
    /// Datagrams that wait for a slot: the last for each peer, which says all that those before it said.
    late: VecDeque<(usize, [u8; LENGTH])>,
    arrivals: VecDeque<Arrived>,
    polled: Vec<Completion>,
    /// Taken out of the device, and not handled.
    completions: VecDeque<Completion>,
    random: Random,
    start: Instant,
    asked: Duration,
}

/// A message in a slot of the receives.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrived {
    pub(super) from: usize,
    pub(super) slot: usize,
    pub(super) len: usize,
}

/// What is kept of a peer that was met.
#[derive(Debug, Default)]
struct Peer {
    /// The queue pair that it has, the epoch that it has it for, and the number of the first packet that it sends.
    pair: Option<(Pair, u32, u32)>,
    handle: Option<Handle>,
    /// A connection was asked for, and is not ready.
    wanted: bool,
    /// Messages that are not acknowledged.
    open: usize,
    /// Steps that have failed since it was ready.
    failures: u32,
}

/// What a completion is of: 32 bits say what, 32 bits which slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Posted {
    Send(usize),
    Receive(usize),
    DatagramSend(usize),
    DatagramReceive(usize),
}

impl Posted {
    fn id(self) -> u64 {
        let (what, slot) = match self {
            Posted::Send(slot) => (0, slot),
            Posted::Receive(slot) => (1, slot),
            Posted::DatagramSend(slot) => (2, slot),
            Posted::DatagramReceive(slot) => (3, slot),
        };
        what << 32 | slot as u64
    }

    fn of(id: u64) -> Self {
        let slot = id as u32 as usize;
        match id >> 32 {
            0 => Posted::Send(slot),
            1 => Posted::Receive(slot),
            2 => Posted::DatagramSend(slot),
            _ => Posted::DatagramReceive(slot),
        }
    }
}

impl From<DeviceError> for Broken {
    fn from(error: DeviceError) -> Self {
        Broken(error.to_string())
    }
}

impl<D: device::Device> Links<D> {
    /// For messages of `longest` bytes at most.
    ///
    /// # Errors
    /// What the device says.
    pub(super) fn new(device: D, directory: Arc<Directory>, settings: Settings, longest: usize) -> device::Result<Self> {
        let sends = Slots::new(&device, SENDS, longest)?;
        let receives = Slots::new(&device, RECEIVES, longest)?;
        let datagrams = Slots::new(&device, DATAGRAM_SENDS + DATAGRAM_RECEIVES, ROUTE_HEADER + LENGTH)?;
        let address = device.address();
        let seed = u64::from_le_bytes(std::array::from_fn(|k| settings.token.to_le_bytes()[k])) ^ settings.endpoint as u64;
        let budget = settings.budget.min(device.limits().pairs);
        let links = Links {
            device,
            directory,
            connections: Connections::new(Settings { budget, ..settings }),
            peers: HashMap::new(),
            owners: HashMap::new(),
            spare: Vec::new(),
            sends,
            free_sends: (0..SENDS).collect(),
            sent_to: [0; SENDS],
            receives,
            datagrams,
            free_datagrams: (0..DATAGRAM_SENDS).collect(),
            late: VecDeque::new(),
            arrivals: VecDeque::with_capacity(RECEIVES),
            polled: Vec::with_capacity(BATCH),
            completions: VecDeque::with_capacity(BATCH),
            random: Random::new(seed),
            start: Instant::now(),
            asked: Duration::ZERO,
        };
        (0..RECEIVES).try_for_each(|slot| links.post_receive(slot))?;
        (0..DATAGRAM_RECEIVES).try_for_each(|slot| links.post_datagram_receive(DATAGRAM_SENDS + slot))?;
        links.directory.publish(settings.endpoint, address);
        Ok(links)
    }

    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn post_receive(&self, slot: usize) -> device::Result<()> {
        // SAFETY: the slot is touched by nobody before its completion was polled, and lives as long as the device.
        unsafe { self.device.post_receive(Queue::Shared, Posted::Receive(slot).id(), self.receives.whole(slot)) }
    }

    fn post_datagram_receive(&self, slot: usize) -> device::Result<()> {
        // SAFETY: as in `post_receive`.
        unsafe { self.device.post_receive(Queue::Datagram, Posted::DatagramReceive(slot).id(), self.datagrams.whole(slot)) }
    }

    /// Whether a peer may be sent to; if not, a connection is on its way.
    ///
    /// # Errors
    /// [`Broken`].
    pub(super) fn is_ready(&mut self, to: usize) -> Result<bool> {
        if self.connections.is_ready(to) {
            return Ok(true);
        }
        let peer = self.peers.entry(to).or_default();
        if !std::mem::replace(&mut peer.wanted, true) {
            let actions = self.connections.on_event(self.start.elapsed(), to, Event::Wanted);
            self.carry_out(actions)?;
        }
        Ok(self.connections.is_ready(to))
    }

    /// Slots that are free for messages.
    pub(super) fn room(&self) -> usize {
        self.free_sends.len()
    }

    #[cfg(test)]
    pub(super) fn statistics(&self) -> crate::comm::protocol::connection::Statistics {
        self.connections.statistics()
    }

    /// Queue pairs that are held for peers.
    #[cfg(test)]
    pub(super) fn pairs(&self) -> usize {
        self.owners.len()
    }

    /// Sends a message to a peer that is [ready](Self::is_ready). False if there is no room.
    ///
    /// # Errors
    /// [`Broken`].
    pub(super) fn send(&mut self, to: usize, bytes: &[u8]) -> Result<bool> {
        let Some((pair, ..)) = self.peers.get(&to).and_then(|peer| peer.pair) else { return Ok(false) };
        let Some(slot) = self.free_sends.pop() else { return Ok(false) };
        self.sends.write(slot, bytes);
        let work = Work {
            id: Posted::Send(slot).id(),
            kind: Kind::Send { immediate: None },
            local: self.sends.piece(slot, bytes.len()),
            signaled: true,
            inline: bytes.len() <= self.device.limits().inline,
            fence: false,
        };
        // SAFETY: the slot is touched by nobody before its completion was polled, and lives as long as the device.
        let taken = unsafe { self.device.post(pair, &[work]) };
        if !matches!(taken, Ok(1)) {
            self.free_sends.push(slot);
            return Ok(taken? == 1);
        }
        self.sent_to[slot] = to;
        let peer = self.peers.entry(to).or_default();
        peer.open += 1;
        if peer.open == 1 {
            self.tell(to, Event::Used)?;
        }
        Ok(true)
    }

    /// Looks at the device, and at the time. Whether the device may have more to say.
    ///
    /// # Errors
    /// [`Broken`].
    pub(super) fn look(&mut self) -> Result<bool> {
        let may_be_more = self.take_completions()?;
        let now = self.now();
        if self.connections.next_timeout().is_some_and(|at| at <= now) {
            let actions = self.connections.on_timeout(now);
            self.carry_out(actions)?;
        }
        if now.saturating_sub(self.asked) >= ASKS {
            self.asked = now;
            while let Some(event) = self.device.event() {
                // What is posted to a pair that failed fails by its completion, and the event may be of an earlier life of the pair.
                if event == device::Event::Fatal {
                    return Err(Broken("the adapter does not work any more".into()));
                }
            }
        }
        Ok(may_be_more)
    }

    /// The next message that has come.
    pub(super) fn arrived(&mut self) -> Option<Arrived> {
        self.arrivals.pop_front()
    }

    /// Copies a message, and gives its slot back.
    ///
    /// # Errors
    /// [`Broken`].
    pub(super) fn read(&mut self, Arrived { slot, len, .. }: Arrived, bytes: &mut [u8]) -> Result<()> {
        self.receives.read(slot, 0, &mut bytes[..len]);
        Ok(self.post_receive(slot)?)
    }

    /// Handles up to [`BATCH`] completions, and those that were taken out before; whether there may be more.
    ///
    /// What follows from one may call this again, so those that wait are in a queue: their order is that of the device, whoever handles them.
    fn take_completions(&mut self) -> Result<bool> {
        self.device.poll(&mut self.polled, BATCH)?;
        let may_be_more = self.polled.len() == BATCH;
        self.completions.extend(self.polled.drain(..));
        while let Some(completion) = self.completions.pop_front() {
            self.completed(completion)?;
        }
        Ok(may_be_more)
    }

    fn completed(&mut self, Completion { id, number, outcome }: Completion) -> Result<()> {
        match (Posted::of(id), outcome) {
            (Posted::Send(slot), outcome) => {
                let to = self.sent_to[slot];
                self.free_sends.push(slot);
                let open = self.peers.get_mut(&to).map_or(0, |peer| {
                    peer.open -= 1;
                    peer.open
                });
                if let Err(failure) = outcome {
                    return Err(Broken(format!("a message to rank {to}: {failure}")));
                }
                if open == 0 { self.tell(to, Event::Acknowledged) } else { Ok(()) }
            }
            (Posted::Receive(slot), Ok(Done::Received { len, .. })) => {
                let Some(&from) = self.owners.get(&number) else {
                    return Err(Broken(format!("a message came to queue pair {number:#x}, which was given back")));
                };
                self.arrivals.push_back(Arrived { from, slot, len });
                match self.peers.get(&from).and_then(|peer| peer.pair) {
                    Some((_, epoch, _)) if !self.connections.is_ready(from) => self.tell(from, Event::Data { epoch }),
                    _ => Ok(()),
                }
            }
            (Posted::Receive(slot), _) => Ok(self.post_receive(slot)?),
            (Posted::DatagramSend(slot), Ok(_)) => {
                self.free_datagrams.push(slot);
                self.late.pop_front().map_or(Ok(()), |(to, bytes)| self.send_datagram(to, &bytes))
            }
            (Posted::DatagramReceive(slot), Ok(Done::Received { len, .. })) => {
                let mut bytes = [0; LENGTH];
                let is_whole = len == ROUTE_HEADER + LENGTH;
                if is_whole {
                    self.datagrams.read(slot, ROUTE_HEADER, &mut bytes);
                }
                self.post_datagram_receive(slot)?;
                let bytes = if is_whole { &bytes[..] } else { &[] };
                let actions = self.connections.on_datagram(self.start.elapsed(), bytes);
                self.carry_out(actions)
            }
            (Posted::DatagramReceive(slot), Ok(_)) => Ok(self.post_datagram_receive(slot)?),
            (Posted::DatagramSend(_) | Posted::DatagramReceive(_), Err(failure)) => {
                Err(Broken(format!("the queue pair by which connections are made: {failure}")))
            }
        }
    }

    fn tell(&mut self, peer: usize, event: Event) -> Result<()> {
        let actions = self.connections.on_event(self.now(), peer, event);
        self.carry_out(actions)
    }

    /// Does what the machine of connections says, and what follows from it.
    fn carry_out(&mut self, actions: Vec<Action>) -> Result<()> {
        let mut actions = VecDeque::from(actions);
        while let Some(action) = actions.pop_front() {
            let told = match action {
                Action::Send { peer, bytes } => {
                    self.send_datagram(peer, &bytes)?;
                    continue;
                }
                Action::Prepare { peer, epoch } => {
                    let prepared = self.prepare(peer, epoch).map(|address| Event::Prepared { epoch, address });
                    (peer, self.or_failed(peer, epoch, prepared)?)
                }
                Action::Connect { peer, epoch, remote } => {
                    let connected = self.connect(peer, remote).map(|()| Event::Connected { epoch });
                    (peer, self.or_failed(peer, epoch, connected)?)
                }
                Action::Release { peer, epoch } => {
                    while self.take_completions()? {}
                    // What came for it while it was closed asks again.
                    self.peers.entry(peer).or_default().wanted = false;
                    let released = self.release(peer).map(|()| Event::Released { epoch });
                    (peer, self.or_failed(peer, epoch, released)?)
                }
                Action::Ready { peer, .. } => {
                    let peer = self.peers.entry(peer).or_default();
                    (peer.wanted, peer.failures) = (false, 0);
                    continue;
                }
                Action::Hold { peer, .. } => match self.peers.get(&peer).map_or(0, |peer| peer.open) {
                    0 => (peer, Event::Acknowledged),
                    _ => continue,
                },
                Action::Dead { peer } => return Err(Broken(format!("rank {peer} has ended"))),
            };
            let (peer, event) = told;
            actions.extend(self.connections.on_event(self.now(), peer, event));
        }
        Ok(())
    }

    /// What the machine is told of a step. One that fails is tried again, but not for ever.
    fn or_failed(&mut self, peer: usize, epoch: u32, step: device::Result<Event>) -> Result<Event> {
        let failures = &mut self.peers.entry(peer).or_default().failures;
        match step {
            Ok(event) => Ok(event),
            Err(error) if *failures == FAILURES => Err(Broken(format!("connecting to rank {peer}: {error}"))),
            Err(_) => {
                *failures += 1;
                Ok(Event::Failed { epoch })
            }
        }
    }

    /// A queue pair in INIT, for a peer. If a step fails there is none.
    fn prepare(&mut self, peer: usize, epoch: u32) -> device::Result<Address> {
        let pair = match self.spare.pop() {
            Some(pair) => pair,
            None => self.device.create(SENDS)?,
        };
        if let Err(error) = self.device.modify(pair, To::Init { access: device::Access::NONE }) {
            self.device.destroy(pair)?;
            return Err(error);
        }
        let sequence = self.random.below(device::NUMBERS as usize) as u32;
        self.peers.entry(peer).or_default().pair = Some((pair, epoch, sequence));
        self.owners.insert(pair.number, peer);
        Ok(Address { queue_pair: pair.number, sequence })
    }

    fn connect(&mut self, peer: usize, remote: Address) -> device::Result<()> {
        const NOT_MET: DeviceError = DeviceError::Invalid("a peer without an address or a queue pair");
        let (pair, _, first_packet) = self.peers.get(&peer).and_then(|peer| peer.pair).ok_or(NOT_MET)?;
        let address = self.directory.find(peer).ok_or(NOT_MET)?;
        let device::Limits { read_depth, answer_depth, .. } = *self.device.limits();
        let (number, first) = (remote.queue_pair, remote.sequence);
        let receive =
            To::ReadyToReceive { peer: address, number, first_packet: first, answer_depth, receive_timer: RECEIVE_TIMER };
        self.device.modify(pair, receive)?;
        let send = To::ReadyToSend { first_packet, read_depth, timeout: TIMEOUT, retries: RETRIES, receive_retries: FOR_EVER };
        self.device.modify(pair, send)
    }

    /// The queue pair of a peer is spare. If that fails there is none.
    fn release(&mut self, peer: usize) -> device::Result<()> {
        let Some((pair, ..)) = self.peers.get_mut(&peer).and_then(|peer| peer.pair.take()) else { return Ok(()) };
        self.owners.remove(&pair.number);
        if let Err(error) = self.device.modify(pair, To::Reset) {
            self.device.destroy(pair)?;
            return Err(error);
        }
        self.spare.push(pair);
        Ok(())
    }

    /// Sends a datagram, if that can be done now.
    fn send_datagram(&mut self, to: usize, bytes: &[u8; LENGTH]) -> Result<()> {
        let Some(&address) = self.directory.find(to) else { return Ok(()) };
        let peer = self.peers.entry(to).or_default();
        let handle = match peer.handle {
            Some(handle) => handle,
            None => *peer.handle.insert(self.device.handle(&address)?),
        };
        let Some(slot) = self.free_datagrams.pop() else {
            self.late.retain(|&(peer, _)| peer != to);
            self.late.push_back((to, *bytes));
            return Ok(());
        };
        self.datagrams.write(slot, bytes);
        let datagram = Datagram {
            id: Posted::DatagramSend(slot).id(),
            to: handle,
            number: address.number,
            key: address.key,
            local: self.datagrams.piece(slot, bytes.len()),
            signaled: true,
            inline: bytes.len() <= self.device.limits().inline,
        };
        // SAFETY: the slot is touched by nobody before its completion was polled, and lives as long as the device.
        match unsafe { self.device.post_datagram(&datagram) } {
            Ok(()) => Ok(()),
            Err(DeviceError::Full { .. }) => {
                self.free_datagrams.push(slot);
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Gives everything back to the device. Nothing is sent or received any more.
    pub(super) fn close(&mut self) {
        let mut held: Vec<Pair> = self.peers.values_mut().filter_map(|peer| Some(peer.pair.take()?.0)).collect();
        held.append(&mut self.spare);
        held.sort_unstable_by_key(|pair| pair.id);
        for pair in held {
            // A device that refuses keeps its memory too.
            let _ = self.device.destroy(pair);
        }
        self.owners.clear();
        for slots in [&mut self.sends, &mut self.receives, &mut self.datagrams] {
            slots.withdraw(&self.device);
        }
    }
}

impl<D: fmt::Debug> fmt::Debug for Links<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Links").field("device", &self.device).field("peers", &self.peers).finish_non_exhaustive()
    }
}
