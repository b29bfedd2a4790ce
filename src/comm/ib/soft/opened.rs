//! An opened software device: verbs' calls on a port of the fabric.

use std::{
    sync::{Arc, MutexGuard, atomic::Ordering},
    time::{Duration, Instant},
};

use super::{
    SharedFabric,
    packet::{Content, Packet},
    pair::{PairId, Path, SoftPair},
    port::{DATAGRAM, Receive, Signs, SoftPort, at_most, datagram_key, deliver, gid, pin, port_of},
    traffic::FabricState,
};
use crate::comm::{
    ib::device::{
        Access, Address, Completion, Datagram, Device, DeviceError, DeviceEvent, DeviceLimits, DeviceRegion, Done, Handle,
        NUMBERS, Pair, Queue, Result, State, To, Wakes, Work, WorkPiece,
    },
    soft::{
        SetupStep,
        fabric::{Looker, is_far},
    },
};

/// A sleeper looks after what other devices left to be tried again, that often at least.
const SLICE: Duration = Duration::from_millis(10);

/// Packets have 1024 bytes, which only bounds datagrams.
const MTU: u8 = 3;

/// A port that was opened, as a device.
#[derive(Debug)]
pub(in crate::comm::ib) struct SoftDevice {
    pub(super) shared: Arc<SharedFabric>,
    pub(super) id: u64,
    /// That of its GID.
    pub(super) number: u64,
    /// Its rank, in virtual time.
    pub(super) rank: usize,
    pub(super) limits: DeviceLimits,
    pub(super) signs: Arc<Signs>,
    /// Of a device that others reach from other processes.
    pub(super) looker: Option<Looker>,
}

/// Verbs' code of an answer's time limit.
fn timeout(code: u8) -> Duration {
    if code == 0 { Duration::MAX } else { Duration::from_nanos(4096 << code) }
}

/// Verbs' code of the time that a receive may take to be posted: 1, 2, 3, 4, 6, 8, 12 and so on hundredths of a millisecond; 0 is the last.
fn receive_timer(code: u8) -> Duration {
    let code = if code == 0 { 32 } else { u64::from(code) };
    Duration::from_micros(10 * ((2 + code % 2) << (code / 2) >> 1))
}

/// The highest code of a time.
const MOST_CODE: usize = 31;

/// The last number of a pair or a packet.
const LAST: usize = NUMBERS as usize - 1;

impl SoftDevice {
    fn lock(&self) -> MutexGuard<'_, FabricState> {
        self.shared.state.lock()
    }

    /// Does something to the port, unless the device has failed.
    fn with<R>(&self, act: impl FnOnce(&mut SoftPort) -> Result<R>) -> Result<R> {
        let mut state = self.lock();
        let port = state.port(self.id)?;
        port.check()?;
        act(port)
    }

    /// In virtual time, its rank has made a step towards a connection.
    fn steps(&self, step: SetupStep) {
        self.shared.cables().into_iter().for_each(|cables| cables.steps(self.rank, step));
    }

    fn place(&self, pair: Pair) -> PairId {
        PairId { port: self.id, number: pair.number }
    }

    /// Makes a step of a pair, but for what a reset forgets.
    fn step(&self, pair: &mut SoftPair, to: To<'_>) -> Result<()> {
        if !to.may_follow(pair.state) {
            return Err(DeviceError::State { number: pair.place.number, state: pair.state, asked: to.name() });
        }
        match to {
            To::Init { access } => pair.path.access = access,
            To::ReadyToReceive { peer, number, first_packet, answer_depth, receive_timer: code } => {
                at_most("answers at once", answer_depth.into(), self.limits.answer_depth.into())?;
                at_most("as code of the receive timer", code.into(), MOST_CODE)?;
                at_most("as number of a queue pair", number as usize, LAST)?;
                at_most("as number of a packet", first_packet as usize, LAST)?;
                pair.path = Path {
                    peer: Some(PairId { port: port_of(&peer.gid), number }),
                    expected: first_packet,
                    answer_depth: answer_depth.into(),
                    receive_timer: receive_timer(code),
                    ..pair.path
                };
            }
            To::ReadyToSend { first_packet, read_depth, timeout: code, retries, receive_retries } => {
                at_most("reads at once", read_depth.into(), self.limits.read_depth.into())?;
                at_most("as code of the timeout", code.into(), MOST_CODE)?;
                at_most("retries", retries.max(receive_retries).into(), 7)?;
                at_most("as number of a packet", first_packet as usize, LAST)?;
                let (next, read_depth, timeout) = (first_packet, read_depth.into(), timeout(code));
                pair.path = Path { next, read_depth, timeout, retries, receive_retries, ..pair.path };
            }
            To::Reset | To::Error => {}
        }
        pair.state = to.state();
        Ok(())
    }

    /// Waits until no transfer of a pair is under way that has left the traffic.
    fn quiet(&self, pair: Pair) -> MutexGuard<'_, FabricState> {
        let is_in_use =
            |state: &mut FabricState| state.port(self.id).and_then(|port| port.pair(pair)).is_ok_and(|pair| pair.is_in_use());
        self.shared.wait_while(self.lock(), is_in_use)
    }
}

impl Device for SoftDevice {
    fn now(&self) -> Duration {
        self.shared.cables().map_or_else(|| self.shared.now(), |cables| cables.now(self.rank))
    }

    fn remind(&self, at: Duration) {
        self.shared.cables().into_iter().for_each(|cables| cables.ring_at(self.rank, at));
    }

    fn pass(&self) -> bool {
        match self.shared.cables() {
            Some(cables) => cables.pass(self.rank),
            None => {
                std::thread::yield_now();
                true
            }
        }
    }

    fn limits(&self) -> &DeviceLimits {
        &self.limits
    }

    fn address(&self) -> Address {
        let (key, answers) = (datagram_key(self.number), self.limits.answer_depth);
        Address { gid: gid(self.number), lid: 0, mtu: MTU, number: DATAGRAM, key, answers, global: false }
    }

    unsafe fn register(&self, start: *mut u8, len: usize, access: Access) -> Result<DeviceRegion> {
        // SAFETY: the caller's promise.
        self.with(|port| unsafe { port.keys.add(self.shared.number(), start, len, access) })
    }

    fn deregister(&self, region: DeviceRegion) -> Result<()> {
        let removed = self.lock().port(self.id)?.keys.remove(region.id)?;
        drop(self.shared.wait_while(self.lock(), |_| removed.is_in_use()));
        Ok(())
    }

    fn create(&self, depth: usize) -> Result<Pair> {
        self.steps(SetupStep::Prepares);
        self.with(|port| port.create(depth, self.shared.number().into()))
    }

    fn modify(&self, pair: Pair, to: To<'_>) -> Result<()> {
        self.with(|port| self.step(port.pair(pair)?, to))?;
        if let State::ReadyToReceive | State::ReadyToSend = to.state() {
            self.steps(SetupStep::Connects);
        }
        if to.state() == State::Reset {
            self.quiet(pair).port(self.id)?.pair(pair)?.reset(self.shared.number().into());
        }
        drop(self.shared.advance(self.lock(), self.place(pair)));
        self.shared.ask(self.rank);
        Ok(())
    }

    fn destroy(&self, pair: Pair) -> Result<()> {
        self.lock().port(self.id)?.pair(pair)?.state = State::Reset;
        self.quiet(pair).port(self.id)?.remove(pair)?;
        drop(self.shared.advance(self.lock(), self.place(pair)));
        self.shared.ask(self.rank);
        Ok(())
    }

    unsafe fn post(&self, pair: Pair, works: &[Work]) -> Result<usize> {
        let mut state = self.lock();
        // SAFETY: the caller's promise.
        let taken = unsafe { state.port(self.id)?.post(pair, works) };
        if self.shared.cables().is_some() {
            let count = match &taken {
                Ok(count) | Err(DeviceError::Work { at: count, .. }) => *count,
                Err(_) => 0,
            };
            state.sends(self.place(pair), count);
        }
        drop(self.shared.advance(state, self.place(pair)));
        self.shared.ask(self.rank);
        taken
    }

    unsafe fn post_receive(&self, queue: Queue, id: u64, piece: WorkPiece) -> Result<()> {
        self.with(|port| port.post_receive(queue, Receive { id, piece }))
    }

    fn handle(&self, to: &Address) -> Result<Handle> {
        self.with(|port| Ok(Handle { id: port.handles.add(*to) }))
    }

    fn release(&self, handle: Handle) -> Result<()> {
        let Handle { id } = handle;
        self.with(|port| port.handles.remove(id).map(drop).ok_or(DeviceError::Unknown { what: "handle", id }))
    }

    unsafe fn post_datagram(&self, datagram: &Datagram) -> Result<()> {
        let Datagram { id, to, number, key, local, signaled, inline } = *datagram;
        let longest = if inline { self.limits.inline.min(self.limits.longest_datagram) } else { self.limits.longest_datagram };
        let refuse = |why| DeviceError::Work { at: 0, id, why };
        if local.len > longest {
            return Err(refuse(format!("a datagram of {} bytes; at most {longest} are allowed", local.len)));
        }
        let mut state = self.lock();
        let port = state.port(self.id)?;
        port.check()?;
        let to = port.handles.get(to.id).ok_or(DeviceError::Unknown { what: "handle", id: to.id })?;
        let to = port_of(&to.gid);
        let bytes = match pin(&port.keys, local, Access::NONE) {
            _ if inline => local.start,
            Some(memory) => memory.start(),
            None => return Err(refuse("its key does not cover its memory".into())),
        };
        let pair = port.datagram_pair()?;
        let depth = pair.slots.depth;
        pair.slots.take().ok_or(DeviceError::Full { queue: "the send queue of datagrams", depth })?;
        if self.shared.cables().is_some() {
            // SAFETY: the data are registered, or inline and readable by the caller's promise.
            unsafe { state.sends_datagram(self.number, to, number, key, bytes, local.len) };
        } else if is_far(to) {
            let packet = Packet { from: DATAGRAM, to: number, number: 0, content: Content::Datagram { key } };
            // SAFETY: the data are registered, or inline and readable by the caller's promise.
            unsafe { state.send(to, packet, bytes, local.len) };
        } else if let Ok(target) = state.port(to)
            && (number, key) == (DATAGRAM, datagram_key(to))
        {
            // SAFETY: as above; receives are their poster's alone.
            unsafe { deliver(target, self.number, to, bytes, local.len) };
        }
        let port = state.port(self.id)?;
        if let Some(report) = port.datagram_pair()?.ended(id, signaled, Ok(Done::Sent)) {
            port.report(report);
        }
        drop(state);
        self.shared.ask(self.rank);
        Ok(())
    }

    fn poll(&self, completions: &mut Vec<Completion>, most: usize) -> Result<()> {
        let is_idle = self.shared.waiting.load(Ordering::Relaxed) == 0 && self.signs.reports.load(Ordering::Relaxed) == 0;
        if is_idle && self.looker.is_none() {
            self.shared.cables().into_iter().for_each(|cables| cables.has_polled(self.rank));
            return Ok(());
        }
        let mut state = self.shared.advance_all(self.lock());
        let port = state.port(self.id)?;
        port.check()?;
        let first = completions.len();
        completions.extend(std::iter::from_fn(|| port.poll()).take(most));
        drop(state);
        if let Some(cables) = self.shared.cables() {
            if self.signs.reports.load(Ordering::Relaxed) == 0 {
                cables.has_polled(self.rank);
            }
            let len = |completion: &Completion| match completion.outcome {
                Ok(Done::Received { len, .. }) => Some(len),
                _ => None,
            };
            let lens = completions[first..].iter().filter_map(len);
            let (messages, bytes) = lens.fold((0, 0), |(messages, bytes), len| (messages + 1, bytes + len));
            if messages > 0 {
                cables.takes(self.rank, messages, bytes);
            }
        }
        Ok(())
    }

    fn arm(&self, wakes: Wakes) -> Result<()> {
        self.with(|port| {
            port.arm(wakes);
            Ok(())
        })
    }

    fn wait(&self, limit: Duration) -> Result<bool> {
        let end = Instant::now().checked_add(limit);
        loop {
            let mut state = self.shared.advance_all(self.lock());
            if state.port(self.id)?.take_fired() {
                return Ok(true);
            }
            let seen = self.signs.bell.load();
            let left = end.map_or(SLICE, |end| end.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return Ok(false);
            }
            let due = state.due().map_or(SLICE, |due| due.saturating_sub(self.shared.now()));
            drop(state);
            self.signs.bell.sleep(seen, left.min(due).min(SLICE));
        }
    }

    fn event(&self) -> Option<DeviceEvent> {
        self.lock().port(self.id).ok()?.take_event()
    }
}

impl Drop for SoftDevice {
    /// Returns when nobody reads or writes the device's memory any more.
    fn drop(&mut self) {
        if self.looker.as_ref().is_some_and(Looker::is_of_a_parent) {
            return;
        }
        let mut state = self.lock();
        if let Ok(port) = state.port(self.id) {
            port.die("it was closed");
        }
        let mut state = self.shared.wait_while(state, |state| state.port(self.id).is_ok_and(|port| port.is_in_use()));
        state.ports.remove(self.id);
        drop(self.shared.advance_all(state));
    }
}
