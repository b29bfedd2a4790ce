//! What the tests of the device share: devices with memory, and pairs between them.

mod events;
mod far;
mod faults;
mod model;
mod refused;
mod rules;
mod service;

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use super::{Rules, SoftDevice, SoftFabric, port::port_of};
use crate::{
    comm::ib::device::{
        Access, Completion, Depths, Device, DeviceLimits, DeviceRegion, Done, Opcode, Pair, Queue, Result, Target, To, Wakes,
        Work, WorkFailure, WorkPiece,
    },
    comm::soft::fabric::is_far,
    memory::kernels,
};

/// No test waits that long.
const LONG: Duration = Duration::from_secs(20);

const DEPTHS: Depths = Depths { completions: 1024, shared_receives: 256, datagram_receives: 16, datagram_sends: 16 };

fn fabric(seed: u64) -> SoftFabric {
    SoftFabric::new(Rules { seed, ..Rules::default() })
}

/// Memory that adapters change: nobody has references to it but as atomics.
#[derive(Debug)]
struct Memory(Box<[AtomicU64]>);

impl Memory {
    fn new(bytes: usize) -> Self {
        Memory((0..bytes.div_ceil(8)).map(|_| AtomicU64::new(0)).collect())
    }

    fn len(&self) -> usize {
        8 * self.0.len()
    }

    fn start(&self) -> *mut u8 {
        self.0.as_ptr().cast_mut().cast()
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        &self.0[at / 8]
    }

    fn write(&self, at: usize, bytes: &[u8]) {
        assert!(at + bytes.len() <= self.len());
        // SAFETY: within the memory, of which only atomics are borrowed.
        unsafe { kernels::copy(self.start().wrapping_add(at), bytes.as_ptr(), bytes.len()) };
    }

    fn read(&self, at: usize, len: usize) -> Vec<u8> {
        assert!(at + len <= self.len());
        let mut bytes = vec![0; len];
        // SAFETY: within the memory, of which only atomics are borrowed; the vector is private.
        unsafe { kernels::copy(bytes.as_mut_ptr(), self.start().wrapping_add(at), len) };
        bytes
    }
}

/// What devices reach each other by.
#[derive(Clone, Debug)]
enum Hub {
    Threads(SoftFabric),
    /// Those of processes; here all are in one.
    Sockets(Rules),
}

fn hubs(seed: u64) -> [Hub; 2] {
    [Hub::Threads(fabric(seed)), Hub::Sockets(Rules { seed, ..Rules::default() })]
}

impl Hub {
    fn open(&self) -> SoftDevice {
        match self {
            Hub::Threads(fabric) => fabric.open(DEPTHS),
            Hub::Sockets(rules) => SoftFabric::open_far(crate::comm::kit::random::secret().unwrap(), *rules, DEPTHS),
        }
        .unwrap()
    }

    fn end(&self, bytes: usize) -> BareEnd {
        BareEnd::with(self.open(), bytes)
    }

    fn two_ends(&self, bytes: usize) -> ([BareEnd; 2], [Pair; 2]) {
        let ends = [(); 2].map(|()| self.end(bytes));
        let pairs = connect(&ends[0], &ends[1], MANNER);
        (ends, pairs)
    }
}

fn getrandom() -> u64 {
    let [number] = crate::comm::kit::random::secret().unwrap();
    number
}

/// Two connected ends of each sort.
fn both(seed: u64, bytes: usize) -> [([BareEnd; 2], [Pair; 2]); 2] {
    hubs(seed).map(|hub| hub.two_ends(bytes))
}

/// A device with memory that is open to all.
#[derive(Debug)]
struct BareEnd<D = SoftDevice> {
    /// Closed before the memory is freed.
    device: D,
    region: DeviceRegion,
    memory: Memory,
}

impl BareEnd {
    fn new(fabric: &SoftFabric, bytes: usize) -> Self {
        Self::with(fabric.open(DEPTHS).unwrap(), bytes)
    }
}

impl<D: Device> BareEnd<D> {
    fn with(device: D, bytes: usize) -> Self {
        let memory = Memory::new(bytes);
        // SAFETY: the memory is freed after the device is closed, and nobody has references to it but as atomics.
        let region = unsafe { device.register(memory.start(), memory.len(), Access::ALL) }.unwrap();
        BareEnd { device, region, memory }
    }

    fn piece(&self, at: usize, len: usize) -> WorkPiece {
        WorkPiece { start: self.memory.start().wrapping_add(at), len, key: self.region.local }
    }

    fn target(&self, at: usize) -> Target {
        Target { start: self.memory.start().addr() as u64 + at as u64, key: self.region.remote }
    }

    /// A signaled work on `len` bytes of the own memory.
    fn work(&self, id: u64, kind: Opcode, at: usize, len: usize) -> Work {
        Work { id, kind, local: self.piece(at, len), signaled: true, inline: false, fence: false }
    }

    fn try_post(&self, pair: Pair, works: &[Work]) -> Result<usize> {
        // SAFETY: the works name memory of ends that live as long as their devices. Nobody reads it for what it holds before the works
        // are reported.
        unsafe { self.device.post(pair, works) }
    }

    fn post(&self, pair: Pair, works: &[Work]) {
        assert_eq!(self.try_post(pair, works), Ok(works.len()));
    }

    fn receive(&self, id: u64, at: usize, len: usize) {
        // SAFETY: as in `try_post`.
        unsafe { self.device.post_receive(Queue::Shared, id, self.piece(at, len)) }.unwrap();
    }

    /// All that can be polled now.
    fn poll(&self) -> Vec<Completion> {
        let mut completions = Vec::new();
        self.device.poll(&mut completions, usize::MAX).unwrap();
        completions
    }

    /// The next `count` completions, and no more.
    fn completions(&self, count: usize) -> Vec<Completion> {
        let (mut completions, start) = (Vec::new(), Instant::now());
        while completions.len() < count {
            assert!(start.elapsed() < LONG, "{count} completions are awaited; {completions:?}");
            completions.extend(self.poll());
        }
        assert_eq!(completions.len(), count, "{completions:?}");
        completions
    }

    /// The outcomes of `count` completions, by their ids.
    fn outcomes(&self, count: usize) -> Vec<(u64, std::result::Result<Done, WorkFailure>)> {
        self.completions(count).into_iter().map(|completion| (completion.id, completion.outcome)).collect()
    }
}

/// The access to a pair, its depths of reads, and its retries.
#[derive(Clone, Copy, Debug)]
struct Manner {
    access: Access,
    read_depth: u8,
    answer_depth: u8,
    receive_retries: u8,
}

/// Short waits.
const MANNER: Manner = Manner { access: Access::ALL, read_depth: 16, answer_depth: 16, receive_retries: 3 };

/// The numbers of first packets of a side.
fn first_packet(pair: Pair) -> u32 {
    0xFF_FFF0 + pair.number % 16
}

fn steps<'a>(own: Pair, peer: &'a crate::comm::ib::device::Address, other: Pair, manner: Manner) -> [To<'a>; 3] {
    let Manner { access, read_depth, answer_depth, receive_retries } = manner;
    let first = first_packet(other);
    // Processes answer when they have their turn.
    let timeout = if is_far(port_of(&peer.gid)) { 14 } else { 1 };
    [
        To::Init { access },
        To::ReadyToReceive { peer, number: other.number, first_packet: first, answer_depth, receive_timer: 1 },
        To::ReadyToSend { first_packet: first_packet(own), read_depth, timeout, retries: 6, receive_retries },
    ]
}

fn connect_side<D: Device>(own: &BareEnd<D>, pair: Pair, peer: &BareEnd<D>, other: Pair, manner: Manner) {
    for step in steps(pair, &peer.device.address(), other, manner) {
        own.device.modify(pair, step).unwrap();
    }
}

fn connect<D: Device>(one: &BareEnd<D>, two: &BareEnd<D>, manner: Manner) -> [Pair; 2] {
    let pairs = [one, two].map(|end| end.device.create(16).unwrap());
    connect_side(one, pairs[0], two, pairs[1], manner);
    connect_side(two, pairs[1], one, pairs[0], manner);
    pairs
}

/// Two connected ends with `bytes` bytes of memory each.
fn two_ends(seed: u64, bytes: usize) -> ([BareEnd; 2], [Pair; 2]) {
    Hub::Threads(fabric(seed)).two_ends(bytes)
}

/// Bytes that can be told from others.
fn pattern(seed: u8, len: usize) -> Vec<u8> {
    (0..len).map(|k| (k as u8).wrapping_mul(31).wrapping_add(seed) | 1).collect()
}

fn add(target: Target, operand: u64) -> Opcode {
    Opcode::FetchAdd { at: target, operand }
}

fn load(end: &BareEnd, at: usize) -> u64 {
    end.memory.word(at).load(Ordering::Relaxed)
}

/// The rules with other limits.
fn limited(change: impl Fn(&mut DeviceLimits)) -> SoftFabric {
    let mut rules = Rules::default();
    change(&mut rules.limits);
    SoftFabric::new(rules)
}
