//! An opened software device: verbs' calls on a port of the fabric.

use std::{
    sync::{Arc, MutexGuard, atomic::Ordering},
    time::{Duration, Instant},
};

use super::{
    Shared,
    keys::By,
    pair::{Connected, Entry, Path, Place, Report},
    port::{DATAGRAM, Port, Receive, Signs},
    traffic,
};
use crate::{
    comm::ib::device::{
        Access, Address, Completion, Datagram, Device, DeviceError, Done, Event, Failure, Handle, Limits, NUMBERS, Pair, Piece,
        Queue, ROUTE_HEADER, Region, Result, State, To, Work,
    },
    memory::kernels,
};

/// A sleeper looks after what other devices left to be tried again, that often at least.
const SLICE: Duration = Duration::from_millis(10);

/// Packets have 1024 bytes.
const MTU: u8 = 3;

/// Where a GID has the number of its port, behind the prefix of addresses of one link.
const NUMBER_IN_GID: usize = 8;

/// See the module's essay.
#[derive(Debug)]
pub(in crate::comm::ib) struct SoftDevice {
    shared: Arc<Shared>,
    id: u64,
    limits: Limits,
    signs: Arc<Signs>,
}

fn gid(port: u64) -> [u8; 16] {
    let mut gid = [0; 16];
    gid[..2].copy_from_slice(&[0xFE, 0x80]);
    gid[NUMBER_IN_GID..].copy_from_slice(&port.to_be_bytes());
    gid
}

/// The port that has a GID, if one of a fabric has.
fn port_of(gid: &[u8; 16]) -> u64 {
    u64::from_be_bytes(std::array::from_fn(|k| gid[NUMBER_IN_GID + k]))
}

/// The Q_Key of a port: each has another.
fn datagram_key(port: u64) -> u32 {
    0x1000 + port as u32
}

/// Verbs' code of an answer's time limit.
fn timeout(code: u8) -> Duration {
    if code == 0 { Duration::MAX } else { Duration::from_nanos(4096 << code) }
}

/// Verbs' code of the time that a receive may take to be posted.
fn receive_timer(code: u8) -> Duration {
    let hundredths = match code {
        0 => 1 << 16,
        1 => 1,
        even if even % 2 == 0 => 1 << (even / 2),
        odd => 3 << (odd / 2) >> 1,
    };
    Duration::from_micros(10 * hundredths)
}

fn at_most(what: &'static str, asked: u32, limit: u32) -> Result<()> {
    if asked <= limit { Ok(()) } else { Err(DeviceError::Limit { what, asked: asked.into(), limit: limit.into() }) }
}

/// The highest code of a time.
const MOST_CODE: u32 = 31;

impl SoftDevice {
    pub(super) fn new(shared: Arc<Shared>, id: u64, limits: Limits, signs: Arc<Signs>) -> Self {
        SoftDevice { shared, id, limits, signs }
    }

    #[cfg(test)]
    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    fn lock(&self) -> MutexGuard<'_, traffic::State> {
        self.shared.state.lock()
    }

    fn place(&self, pair: Pair) -> Place {
        Place { port: self.id, number: pair.number }
    }

    /// A step to a state in which the pair takes part in traffic.
    fn connect(&self, pair: &mut Connected, to: To<'_>) -> Result<()> {
        match to {
            To::Init { access } => pair.access = access,
            To::ReadyToReceive { peer, number, first_packet, answer_depth, receive_timer: code } => {
                at_most("answers at once", answer_depth.into(), self.limits.answer_depth.into())?;
                at_most("as code of the receive timer", code.into(), MOST_CODE)?;
                at_most("as number of a queue pair", number, NUMBERS - 1)?;
                at_most("as number of a packet", first_packet, NUMBERS - 1)?;
                pair.path.peer = Some(Place { port: port_of(&peer.gid), number });
                pair.path.packet = 128 << peer.mtu.min(MTU);
                pair.path.expected = first_packet;
                pair.path.answer_depth = answer_depth.into();
                pair.path.receive_timer = receive_timer(code);
            }
            To::ReadyToSend { first_packet, read_depth, timeout: code, retries, receive_retries } => {
                at_most("reads at once", read_depth.into(), self.limits.read_depth.into())?;
                at_most("as code of the timeout", code.into(), MOST_CODE)?;
                at_most("retries", retries.into(), 7)?;
                at_most("retries of receives", receive_retries.into(), 7)?;
                at_most("as number of a packet", first_packet, NUMBERS - 1)?;
                pair.path = Path {
                    next: first_packet,
                    read_depth: read_depth.into(),
                    timeout: timeout(code),
                    retries,
                    receive_retries,
                    ..pair.path
                };
            }
            To::Reset | To::Error => {}
        }
        Ok(())
    }

    /// Takes a pair out of the traffic and waits until no transfer of it is under way.
    fn stop(&self, pair: Pair) -> Result<MutexGuard<'_, traffic::State>> {
        let mut state = self.lock();
        state.port(self.id)?.pair(pair)?.state = State::Reset;
        let is_in_use =
            |state: &mut traffic::State| state.port(self.id).and_then(|port| port.pair(pair)).is_ok_and(|pair| pair.is_in_use());
        Ok(self.shared.wait_while(state, is_in_use))
    }
}

/// What a receiver finds in front of a datagram.
fn route_header(from: u64, to: u64, len: usize) -> [u8; ROUTE_HEADER] {
    let mut header = [0; ROUTE_HEADER];
    // Version 6; the length behind the header; the code of InfiniBand; hops.
    header[0] = 0x60;
    header[4..6].copy_from_slice(&(len as u16).to_be_bytes());
    header[6..8].copy_from_slice(&[0x1B, 64]);
    header[8..24].copy_from_slice(&gid(from));
    header[24..].copy_from_slice(&gid(to));
    header
}

/// Puts a datagram into the next receive of a port, if there is one and it is long enough.
///
/// # Safety
/// `bytes` is readable for `len` bytes, and no receive's memory.
unsafe fn deliver(target: &mut Port, header: &[u8; ROUTE_HEADER], bytes: *const u8, len: usize) {
    if target.datagrams.front().is_none_or(|receive| receive.len < ROUTE_HEADER + len) {
        return;
    }
    let Some(receive) = target.datagrams.pop_front() else { return };
    let Some(memory) = receive.pin(&target.keys) else {
        return target.received(receive.id, DATAGRAM, Err(Failure::LocalProtection));
    };
    // SAFETY: the receive's memory is registered, and long enough for both.
    unsafe { kernels::copy(memory.start(), header.as_ptr(), ROUTE_HEADER) };
    // SAFETY: as above; the caller's promise.
    unsafe { kernels::copy(memory.start().wrapping_add(ROUTE_HEADER), bytes, len) };
    let done = Done::Received { len: ROUTE_HEADER + len, immediate: None, from: Some(DATAGRAM) };
    target.received(receive.id, DATAGRAM, Ok(done));
}

impl Device for SoftDevice {
    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn address(&self) -> Address {
        Address { gid: gid(self.id), lid: 0, mtu: MTU, number: DATAGRAM, key: datagram_key(self.id) }
    }

    unsafe fn register(&self, start: *mut u8, len: usize, access: Access) -> Result<Region> {
        let mut state = self.lock();
        let number = state.region();
        state.port(self.id)?.keys.add(number, start, len, access)
    }

    fn deregister(&self, region: Region) -> Result<()> {
        let mut state = self.lock();
        let removed = state.port(self.id)?.keys.remove(region.id)?;
        drop(self.shared.wait_while(state, |_| removed.is_in_use()));
        Ok(())
    }

    fn create(&self, depth: usize) -> Result<Pair> {
        let mut state = self.lock();
        let life = state.life();
        let port = state.port(self.id)?;
        port.check()?;
        port.create(depth, life)
    }

    fn modify(&self, pair: Pair, to: To<'_>) -> Result<()> {
        let mut state = self.lock();
        let port = state.port(self.id)?;
        port.check()?;
        let connected = port.pair(pair)?;
        if !to.may_follow(connected.state) {
            return Err(DeviceError::State { number: pair.number, state: connected.state, asked: to.name() });
        }
        self.connect(connected, to)?;
        connected.state = to.state();
        match to {
            To::Reset => {
                drop(state);
                let mut state = self.stop(pair)?;
                let life = state.life();
                state.port(self.id)?.pair(pair)?.reset(life);
                drop(self.shared.advance(state, self.place(pair)));
            }
            To::Error => drop(self.shared.advance(state, self.place(pair))),
            To::Init { .. } | To::ReadyToReceive { .. } | To::ReadyToSend { .. } => {}
        }
        Ok(())
    }

    fn destroy(&self, pair: Pair) -> Result<()> {
        let mut state = self.stop(pair)?;
        state.port(self.id)?.remove(pair)?;
        drop(self.shared.advance(state, self.place(pair)));
        Ok(())
    }

    unsafe fn post(&self, pair: Pair, works: &[Work]) -> Result<usize> {
        let mut state = self.lock();
        let port = state.port(self.id)?;
        port.check()?;
        let connected = port.pair(pair)?;
        if !matches!(connected.state, State::ReadyToSend | State::Error) {
            return Err(DeviceError::State { number: pair.number, state: connected.state, asked: "a post" });
        }
        let mut taken = Ok(works.len());
        for (at, work) in works.iter().enumerate() {
            // SAFETY: the caller's promise.
            let entry = match unsafe { Entry::new(work, &self.limits) } {
                Ok(entry) => entry,
                Err(why) => {
                    taken = Err(DeviceError::Work { at, id: work.id, why });
                    break;
                }
            };
            if !connected.post(entry) {
                taken = Ok(at);
                break;
            }
        }
        drop(self.shared.advance(state, self.place(pair)));
        taken
    }

    unsafe fn post_receive(&self, queue: Queue, id: u64, piece: Piece) -> Result<()> {
        let mut state = self.lock();
        let port = state.port(self.id)?;
        port.check()?;
        let (receives, queue, depth) = match queue {
            Queue::Shared => (&mut port.shared, "the shared receive queue", self.limits.shared_receives),
            Queue::Datagram => (&mut port.datagrams, "the receive queue of datagrams", self.limits.datagram_receives),
        };
        if receives.len() == depth {
            return Err(DeviceError::Full { queue, depth });
        }
        receives.push_back(Receive::new(id, piece));
        Ok(())
    }

    fn handle(&self, to: &Address) -> Result<Handle> {
        Ok(Handle { id: self.lock().port(self.id)?.handles.add(*to) })
    }

    fn release(&self, handle: Handle) -> Result<()> {
        let released = self.lock().port(self.id)?.handles.remove(handle.id);
        released.map(|_| ()).ok_or(DeviceError::Unknown { what: "handle", id: handle.id })
    }

    unsafe fn post_datagram(&self, datagram: &Datagram) -> Result<()> {
        let Datagram { id, to, number, key, local, signaled, inline } = *datagram;
        let refuse = |why| DeviceError::Work { at: 0, id, why };
        let longest = if inline { self.limits.inline.min(self.limits.longest_datagram) } else { self.limits.longest_datagram };
        if local.len > longest {
            return Err(refuse(format!("a datagram of {} bytes; at most {longest} are allowed", local.len)));
        }
        let mut state = self.lock();
        let port = state.port(self.id)?;
        port.check()?;
        let to = port.handles.get(to.id).ok_or(DeviceError::Unknown { what: "handle", id: to.id })?;
        let to = port_of(&to.gid);
        let memory = port.keys.pin(By::Local, local.key, local.start.addr() as u64, local.len, Access::NONE);
        let bytes = match memory {
            _ if inline => local.start,
            Some(memory) => memory.start(),
            None => return Err(refuse("its key does not cover its memory".into())),
        };
        let depth = port.datagram_slots.depth;
        port.datagram_slots.take().ok_or(DeviceError::Full { queue: "the send queue of datagrams", depth })?;
        if let Ok(target) = state.port(to)
            && (number, key) == (DATAGRAM, datagram_key(to))
        {
            // SAFETY: the data are registered, or inline and readable by the caller's promise; receives are their poster's alone.
            unsafe { deliver(target, &route_header(self.id, to, local.len), bytes, local.len) };
        }
        let port = state.port(self.id)?;
        if let Some(frees) = port.datagram_slots.ended(signaled) {
            let completion = Completion { id, number: DATAGRAM, outcome: Ok(Done::Sent) };
            port.report(Report { completion, frees, life: 0 });
        }
        Ok(())
    }

    fn poll(&self, completions: &mut Vec<Completion>, most: usize) -> Result<()> {
        if self.shared.waiting.load(Ordering::Relaxed) == 0 && self.signs.reports.load(Ordering::Relaxed) == 0 {
            return Ok(());
        }
        let mut state = self.shared.advance_all(self.lock());
        let port = state.port(self.id)?;
        port.check()?;
        completions.extend(std::iter::from_fn(|| port.poll()).take(most));
        Ok(())
    }

    fn arm(&self) -> Result<()> {
        let mut state = self.lock();
        let port = state.port(self.id)?;
        port.armed = true;
        port.check()
    }

    fn wait(&self, limit: Duration) -> Result<bool> {
        let end = Instant::now().checked_add(limit);
        loop {
            let mut state = self.shared.advance_all(self.lock());
            let port = state.port(self.id)?;
            if std::mem::take(&mut port.fired) || !port.events.is_empty() {
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

    fn event(&self) -> Option<Event> {
        self.lock().port(self.id).ok()?.events.pop_front()
    }
}

impl Drop for SoftDevice {
    /// Returns when nobody reads or writes the device's memory any more.
    fn drop(&mut self) {
        let mut state = self.lock();
        if let Ok(port) = state.port(self.id) {
            port.die("it was closed");
        }
        let mut state = self.shared.wait_while(state, |state| state.port(self.id).is_ok_and(|port| port.is_in_use()));
        state.ports.remove(self.id);
        drop(self.shared.advance_all(state));
    }
}
