//! The software device: verbs without an adapter, over the threads of one process or over processes of one machine.
//!
//! Devices that are opened in a [`SoftFabric`] reach each other. One that is opened [for other processes](SoftFabric::open_far) is alone on its
//! fabric, and reaches devices of others by a socket. They enforce what an adapter enforces, and promise no more: messages land in pieces,
//! reads are overtaken, atomics are not coherent with processors.
//!
//! | file | contents |
//! |---|---|
//! | `opened` | an opened port as [`Device`](super::device::Device) |
//! | `port` | its completions, receives, events |
//! | `pair` | a connected queue pair |
//! | `keys` | registered memory |
//! | `traffic` | what the adapters do next |
//! | `modelled` | works in virtual time |
//! | `far` | works between processes |
//! | `packet` | what processes send each other |
//! | `bare` | two devices alone, for a bench |
//!
//! # Which threads do the work
//!
//! Among threads, the one that posts a work carries it out at once, at both sides, if the work can start. A work whose peer does not answer
//! or has no receive is tried again later, by a thread that posts to the pair, or polls or waits at any device of the fabric. One mutex
//! guards everything but the bytes, so that ranks copy side by side. A thread that deregisters memory or resets a pair waits until its
//! transfers are over. Between processes a thread of each does the work ([`Looker`]), and so does a rank that looks.
//!
//! A message gets no answer if its target is not there, is in another state, is connected to another pair or awaits another packet number.
//! A real adapter may then acknowledge the last packet that it accepted. The sender awaits that one only by chance, so it is no answer
//! either.
//!
//! # What it does not do
//!
//! * Between processes reads do not overtake, and a message has 64 KiB at most.
//! * It does not keep other programs of this machine out: they may fill the queue of a socket, take the name of one that is gone, and send
//!   datagrams, but not in the name of a living process. A stopped process may hold up its senders.
//! * The connected service has no loss and no congestion. Datagrams are dropped only for the reasons of
//!   [`Device::post_datagram`](super::device::Device::post_datagram).
//! * A message is one packet of any length: it never fails when a part of it has landed.
//! * The post refuses a datagram whose memory is not registered. An adapter would say so later.

#[cfg(feature = "_bench")]
mod bare;
mod far;
mod keys;
mod modelled;
mod opened;
mod packet;
mod pair;
mod port;
#[cfg(all(test, not(loom)))]
mod tests;
mod traffic;

use std::{
    io,
    sync::{
        Arc, Condvar, MutexGuard, PoisonError,
        atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

#[cfg(feature = "_bench")]
pub use self::bare::Bare;
pub(super) use self::opened::SoftDevice;
use self::{
    packet::HEADER,
    pair::PairId,
    port::{SoftPort, at_most},
    traffic::FabricState,
};
use super::device::{Depths, DeviceError, DeviceLimits, Result};
use crate::comm::{
    kit::mutex::Mutex,
    soft::{
        Adapters, Cables,
        fabric::{Looker, Socket},
    },
};

/// What a fabric allows. The depths of queues that are made when a device is opened are the most that may be asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub(super) limits: DeviceLimits,
    /// Bytes that a device may have registered.
    pub(super) pinned: usize,
    /// Chooses in which order data land, and whether a read overtakes.
    pub(super) seed: u64,
}

impl Default for Rules {
    fn default() -> Self {
        // Those of a common adapter, but for datagrams, which are as short as with soft-RoCE over Ethernet's packets.
        let limits = DeviceLimits {
            inline: 220,
            read_depth: 16,
            answer_depth: 16,
            longest_message: 1 << 30,
            longest_datagram: 1024,
            send_depth: 8192,
            completions: 1 << 17,
            shared_receives: 8192,
            datagram_receives: 8192,
            pairs: 1 << 17,
            reads: true,
            virtual_time: false,
        };
        Rules { limits, pinned: usize::MAX, seed: 0 }
    }
}

/// Bytes of a message to another process: it is one packet, and the system takes packets of some 200 KiB.
const LONGEST_PACKET: usize = 64 << 10;

/// What the name of a socket begins with.
const NAME: &str = "global-arrays-ib-";

/// Adapters that reach each other.
#[derive(Clone, Debug)]
pub(super) struct SoftFabric(Arc<SharedFabric>);

#[derive(Debug)]
struct SharedFabric {
    rules: Rules,
    state: Mutex<FabricState>,
    /// A transfer was finished; the number of threads that wait for that.
    finished: Condvar,
    waiters: AtomicUsize,
    /// Pairs that have works: what can be seen without the lock.
    waiting: AtomicUsize,
    /// The next number of a region or of a pair's life.
    numbers: AtomicU32,
    start: Instant,
    /// What devices in virtual time are joined by, and when something happened there last, in nanoseconds.
    cables: Option<Arc<dyn Cables>>,
    virtual_now: AtomicU64,
}

impl SoftFabric {
    pub(super) fn new(rules: Rules) -> Self {
        SoftFabric::on(rules, None)
    }

    /// Devices in virtual time, which the ranks of a job open, one each.
    pub(super) fn on_cables(rules: Rules, cables: Arc<dyn Cables>) -> Self {
        let limits = DeviceLimits { virtual_time: true, ..rules.limits };
        SoftFabric::on(Rules { limits, ..rules }, Some(cables))
    }

    /// The adapters that the cables are to tell what has arrived.
    pub(super) fn adapters(&self) -> Arc<dyn Adapters> {
        self.0.clone()
    }

    fn on(rules: Rules, cables: Option<Arc<dyn Cables>>) -> Self {
        let state = Mutex::new(FabricState::new(rules.seed));
        SoftFabric(Arc::new(SharedFabric {
            rules,
            state,
            finished: Condvar::new(),
            waiters: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            numbers: AtomicU32::new(1),
            start: Instant::now(),
            cables,
            virtual_now: AtomicU64::new(0),
        }))
    }

    pub(super) fn open(&self, depths: Depths) -> Result<SoftDevice> {
        self.open_of(None, depths)
    }

    /// Opens the device of a rank, in virtual time.
    pub(super) fn open_of(&self, rank: Option<usize>, depths: Depths) -> Result<SoftDevice> {
        let Rules { limits, pinned, .. } = self.0.rules;
        let Depths { completions, shared_receives, datagram_receives, datagram_sends } = depths;
        at_most("completions", completions, limits.completions)?;
        at_most("shared receives", shared_receives, limits.shared_receives)?;
        at_most("receives of datagrams", datagram_receives, limits.datagram_receives)?;
        at_most("datagrams that leave", datagram_sends, limits.send_depth)?;
        let limits = DeviceLimits { completions, shared_receives, datagram_receives, ..limits };
        let mut state = self.0.state.lock();
        let id = state.ports.next();
        let mut port = SoftPort::new(id, limits, datagram_sends, pinned);
        port.rank = rank.map(|rank| rank as u32);
        let signs = port.signs.clone();
        state.ports.add(port);
        Ok(SoftDevice { shared: self.0.clone(), id, number: id, limits, signs, rank: rank.unwrap_or_default(), looker: None })
    }

    /// Opens a device that those of other processes reach by the socket of a number that nobody else has. Both numbers are random.
    pub(super) fn open_far([number, keys]: [u64; 2], rules: Rules, depths: Depths) -> Result<SoftDevice> {
        let mut rules = rules;
        rules.limits.longest_message = rules.limits.longest_message.min(LONGEST_PACKET);
        let longest = HEADER + LONGEST_PACKET;
        let system = |error: io::Error| DeviceError::System { call: "socket", code: error.raw_os_error().unwrap_or(0) };
        let socket = Socket::new(NAME, number, longest).map_err(system)?;
        let granted = socket.send_buffer().map_err(system)?;
        at_most("bytes of a socket's send buffer (net.core.wmem_max)", 2 * longest, granted)?;
        let fabric = SoftFabric::new(rules);
        // So a key that is good for one device is most likely good for no other, and is not to be guessed.
        fabric.0.numbers.store(keys as u32 >> 2 | 1, Ordering::Relaxed);
        let mut device = fabric.open(depths)?;
        device.number = socket.number();
        let shared = device.shared.clone();
        let looker = Looker::start(&socket, move || drop(shared.advance_all(shared.state.lock())));
        let fail = |error: io::Error| DeviceError::System { call: "pthread_create", code: error.raw_os_error().unwrap_or(0) };
        device.looker = Some(looker.map_err(fail)?);
        let mut state = device.shared.state.lock();
        (state.own, state.socket) = (device.id, Some(socket));
        drop(state);
        Ok(device)
    }
}

impl SharedFabric {
    /// The only clock.
    fn now(&self) -> Duration {
        match self.cables {
            Some(_) => Duration::from_nanos(self.virtual_now.load(Ordering::Relaxed)),
            None => self.start.elapsed(),
        }
    }

    /// A number that nothing had before.
    fn number(&self) -> u32 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// Lets a pair do what it can.
    fn advance<'a>(&'a self, mut state: MutexGuard<'a, FabricState>, place: PairId) -> MutexGuard<'a, FabricState> {
        while let Some(transfer) = state.next(place, self.now()) {
            drop(state);
            transfer.carry_out();
            state = self.state.lock();
            state.finish(transfer);
            // A waiting thread increments this while it holds the lock of the state.
            if self.waiters.load(Ordering::Relaxed) > 0 {
                self.finished.notify_all();
            }
        }
        self.waiting.store(state.note(place), Ordering::Relaxed);
        if self.cables.is_some() {
            state.wish(place, self.now());
        }
        state
    }

    /// Lets all pairs do what they can, with what came from other processes.
    fn advance_all<'a>(&'a self, mut state: MutexGuard<'a, FabricState>) -> MutexGuard<'a, FabricState> {
        if state.socket.is_some() {
            state.exchange(self.now());
        }
        if self.cables.is_some() {
            // Each pair goes on when something has happened to it.
            return state;
        }
        let mut last = None;
        while let Some(place) = state.waiting_behind(last) {
            state = self.advance(state, place);
            last = Some(place);
        }
        state
    }

    fn wait_while<'a>(
        &'a self,
        state: MutexGuard<'a, FabricState>,
        is_in_use: impl FnMut(&mut FabricState) -> bool,
    ) -> MutexGuard<'a, FabricState> {
        self.waiters.fetch_add(1, Ordering::Relaxed);
        let state = self.finished.wait_while(state, is_in_use).unwrap_or_else(PoisonError::into_inner);
        self.waiters.fetch_sub(1, Ordering::Relaxed);
        state
    }
}
