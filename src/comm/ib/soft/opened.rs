//! An opened software device: verbs' calls on a port of the fabric.

use std::{
    sync::{Arc, MutexGuard, atomic::Ordering},
    time::{Duration, Instant},
};

use super::{
    Shared,
    pair::{Connected, Path, Place},
    port::{DATAGRAM, Port, Receive, Signs, at_most, pin},
    traffic,
};
use crate::{
    comm::ib::device::{
        Access, Address, Completion, Datagram, Device, DeviceError, Done, Event, Failure, Handle, Limits, NUMBERS, Pair, Piece,
        Queue, ROUTE_HEADER, Region, Result, State, To, Wakes, Work,
    },
    memory::kernels,
};

/// A sleeper looks after what other devices left to be tried again, that often at least.
const SLICE: Duration = Duration::from_millis(10);

/// Packets have 1024 bytes, which only bounds datagrams.
const MTU: u8 = 3;

/// Where a GID has the number of its port, behind the prefix of addresses of one link.
const NUMBER_IN_GID: usize = 8;

/// See the module's essay.
#[derive(Debug)]
pub(in crate::comm::ib) struct SoftDevice {
    pub(super) shared: Arc<Shared>,
    pub(super) id: u64,
    pub(super) limits: Limits,
    pub(super) signs: Arc<Signs>,
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
    fn lock(&self) -> MutexGuard<'_, traffic::State> {
        self.shared.state.lock()
    }

    /// Does something to the port, unless the device has failed.
    fn with<R>(&self, act: impl FnOnce(&mut Port) -> Result<R>) -> Result<R> {
        let mut state = self.lock();
        let port = state.port(self.id)?;
        port.check()?;
        act(port)
    }

    fn place(&self, pair: Pair) -> Place {
        Place { port: self.id, number: pair.number }
    }

    /// Makes a step of a pair, but for what a reset forgets.
    fn step(&self, pair: &mut Connected, to: To<'_>) -> Result<()> {
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
                    peer: Some(Place { port: port_of(&peer.gid), number }),
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
    fn quiet(&self, pair: Pair) -> MutexGuard<'_, traffic::State> {
        let is_in_use =
            |state: &mut traffic::State| state.port(self.id).and_then(|port| port.pair(pair)).is_ok_and(|pair| pair.is_in_use());
        self.shared.wait_while(self.lock(), is_in_use)
    }
}

/// What a receiver finds in front of a datagram, as far as it says anything.
fn route_header(from: u64, to: u64) -> [u8; ROUTE_HEADER] {
    let mut header = [0; ROUTE_HEADER];
    header[8..24].copy_from_slice(&gid(from));
    header[24..].copy_from_slice(&gid(to));
    header
}

/// Puts a datagram into the next receive of a port, if there is one and it is long enough.
///
/// # Safety
/// `bytes` is readable for `len` bytes, and no receive's memory.
unsafe fn deliver(target: &mut Port, header: &[u8; ROUTE_HEADER], bytes: *const u8, len: usize) {
    if target.datagrams.front().is_none_or(|receive| receive.piece.len < ROUTE_HEADER + len) {
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
        let (key, answers) = (datagram_key(self.id), self.limits.answer_depth);
        Address { gid: gid(self.id), lid: 0, mtu: MTU, number: DATAGRAM, key, answers }
    }

    unsafe fn register(&self, start: *mut u8, len: usize, access: Access) -> Result<Region> {
        self.with(|port| port.keys.add(self.shared.number(), start, len, access))
    }

    fn deregister(&self, region: Region) -> Result<()> {
        let removed = self.lock().port(self.id)?.keys.remove(region.id)?;
        drop(self.shared.wait_while(self.lock(), |_| removed.is_in_use()));
        Ok(())
    }

    fn create(&self, depth: usize) -> Result<Pair> {
        self.with(|port| port.create(depth, self.shared.number().into()))
    }

    fn modify(&self, pair: Pair, to: To<'_>) -> Result<()> {
        self.with(|port| self.step(port.pair(pair)?, to))?;
        if to.state() == State::Reset {
            self.quiet(pair).port(self.id)?.pair(pair)?.reset(self.shared.number().into());
        }
        drop(self.shared.advance(self.lock(), self.place(pair)));
        Ok(())
    }

    fn destroy(&self, pair: Pair) -> Result<()> {
        self.lock().port(self.id)?.pair(pair)?.state = State::Reset;
        self.quiet(pair).port(self.id)?.remove(pair)?;
        drop(self.shared.advance(self.lock(), self.place(pair)));
        Ok(())
    }

    unsafe fn post(&self, pair: Pair, works: &[Work]) -> Result<usize> {
        let mut state = self.lock();
        // SAFETY: the caller's promise.
        let taken = unsafe { state.port(self.id)?.post(pair, works) };
        drop(self.shared.advance(state, self.place(pair)));
        taken
    }

    unsafe fn post_receive(&self, queue: Queue, id: u64, piece: Piece) -> Result<()> {
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
        if let Ok(target) = state.port(to)
            && (number, key) == (DATAGRAM, datagram_key(to))
        {
            // SAFETY: the data are registered, or inline and readable by the caller's promise; receives are their poster's alone.
            unsafe { deliver(target, &route_header(self.id, to), bytes, local.len) };
        }
        let port = state.port(self.id)?;
        if let Some(report) = port.datagram_pair()?.ended(id, signaled, Ok(Done::Sent)) {
            port.report(report);
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

    fn arm(&self, wakes: Wakes) -> Result<()> {
        self.with(|port| {
            port.armed = Some(wakes);
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

    fn event(&self) -> Option<Event> {
        self.lock().port(self.id).ok()?.take_event()
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
