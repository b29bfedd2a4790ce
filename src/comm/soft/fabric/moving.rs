//! Adapters that move memory between the ranks of one process, without connections: works end in any order, and take effect later.
//!
//! A port belongs to one thread, which carries out its works when it looks. Unless the rules are strict, a write has ended when its bytes have left,
//! and lands at any later time; a read of the same rank comes behind all that has ended before.
//! The next work is any of the first eight, and nothing moves while its rank computes. In virtual time works travel by cables (`modelled`).

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering, fence},
    },
};

use super::{
    held::HeldWords,
    landing::land,
    memory::{Closed, OpenMemory, Pinned},
    travelling::OnCables,
    works::{Move, Moved, MovingWork},
};
use crate::comm::{
    Atomic,
    kit::{mutex::Mutex, random::Random},
    soft::Cables,
};

/// Works among which the next one is chosen.
const AHEAD: usize = 8;

/// What a fabric promises of its works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::comm) enum MovingRules {
    /// Any order. What has ended has landed.
    Strict,
    /// Any order, also of what lands.
    Relaxed,
    /// To each rank the order of their posts, and of what lands there; what has ended may land later.
    InOrder,
}

/// Adapters that reach each other.
#[derive(Debug)]
pub(in crate::comm) struct MovingFabric {
    pub(super) rules: MovingRules,
    pub(super) seed: u64,
    /// The memory of each rank, and true if peers may use it.
    memory: Mutex<BTreeMap<usize, OpenMemory<bool>>>,
    /// Writes that have ended and not landed.
    landing: Mutex<Vec<LandingWrite>>,
    held: HeldWords,
    numbers: AtomicU64,
    packets: Mutex<BTreeMap<usize, PacketBox>>,
    pub(super) on_cables: Option<OnCables>,
}

/// Packets at a rank, which it takes in the order of their arrival, each with its sender.
#[derive(Debug, Default)]
struct PacketBox {
    arrived: VecDeque<(usize, Vec<u8>)>,
    /// Those that have arrived, and in virtual time those that are on their way.
    count: usize,
    /// Ranks that found no room, in their order.
    refused: VecDeque<usize>,
}

/// Packets that a rank has room for: few, so that many are refused; and in virtual time as many as fill 256 KiB by slots of 64 bytes.
const PACKETS: usize = 128;
const MODELLED_PACKETS: usize = 4096;

/// A write that has ended and has not landed.
#[derive(Debug)]
pub(super) struct LandingWrite {
    by: usize,
    to: usize,
    from: Pinned,
    place: Pinned,
    there: u64,
    len: usize,
}

/// The adapter of a rank.
#[derive(Debug)]
pub(in crate::comm) struct MovingPort {
    fabric: Arc<MovingFabric>,
    rank: usize,
    random: Random,
    open: Vec<MovingWork>,
    /// In virtual time, works that have not ended.
    travelling: usize,
    ended: BTreeMap<u64, Moved>,
}

impl MovingFabric {
    /// The order of works and of what lands comes from a seed.
    pub(in crate::comm) fn new(rules: MovingRules, seed: u64) -> Arc<Self> {
        Self::with(rules, seed, None)
    }

    /// Adapters in virtual time.
    pub(in crate::comm) fn on_cables(rules: MovingRules, seed: u64, cables: Arc<dyn Cables>) -> Arc<Self> {
        Self::with(rules, seed, Some(OnCables::new(cables)))
    }

    fn with(rules: MovingRules, seed: u64, on_cables: Option<OnCables>) -> Arc<Self> {
        let (memory, landing, held, packets) = (Mutex::default(), Mutex::default(), HeldWords::default(), Mutex::default());
        Arc::new(MovingFabric { rules, seed, memory, landing, held, numbers: AtomicU64::new(1), packets, on_cables })
    }

    /// Opens the adapter of a rank.
    pub(in crate::comm) fn open(self: &Arc<Self>, rank: usize) -> MovingPort {
        self.memory.lock().insert(rank, OpenMemory::new(usize::MAX));
        self.packets.lock().insert(rank, PacketBox::default());
        let random = Random::new(self.seed.wrapping_add(rank as u64));
        MovingPort { fabric: self.clone(), rank, random, open: Vec::new(), travelling: 0, ended: BTreeMap::new() }
    }

    pub(super) fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// Works that were begun, and memory that was registered.
    #[cfg(all(test, not(loom)))]
    pub(in crate::comm) fn begun(&self) -> u64 {
        self.numbers.load(Ordering::Relaxed)
    }

    /// Lands some of the writes that have not landed. Returns true if there were any.
    fn land(&self, which: impl Fn(&LandingWrite) -> bool) -> bool {
        let mut landing = self.landing.lock();
        let before = landing.len();
        for write in landing.extract_if(.., |write| which(write)) {
            self.lands(write, 0);
        }
        landing.len() < before
    }

    /// Lands the oldest write of a rank to another, if that has not landed.
    pub(super) fn land_next(&self, by: usize, to: usize) {
        let mut landing = self.landing.lock();
        let next = landing.iter().position(|write| (write.by, write.to) == (by, to));
        next.into_iter().for_each(|at| self.lands(landing.remove(at), 0));
    }

    fn lands(&self, LandingWrite { to, from, place, there, len, .. }: LandingWrite, random: usize) {
        // An atomic operation that was disturbed says so at its own end.
        let _ = self.held.write_back(to, there..there + len as u64);
        fence(Ordering::SeqCst);
        // SAFETY: a copy, and memory that is pinned.
        unsafe { land(place.start(), from.start(), len, random) };
    }

    /// The memory of a work at its target.
    fn pinned(&self, &MovingWork { to, key, there, len, .. }: &MovingWork) -> Result<Pinned, String> {
        let pinned = self.memory.lock().get(&to).and_then(|memory| match key {
            Some(key) => memory.pin(key, there, len, |is_open| is_open),
            None => memory.find(there, len, |is_open| is_open),
        });
        pinned.ok_or_else(|| format!("{len} bytes at {there:#x} are not in the memory that rank {to} has opened"))
    }

    /// An adapter changes a word, and holds it. Returns its old value.
    fn hold(&self, work: &MovingWork, atomic: Atomic) -> Result<u64, String> {
        let place = self.pinned(work)?;
        // SAFETY: the device has checked length and alignment.
        Ok(unsafe { self.held.change(work.to, work.there, place, atomic) })
    }

    /// Moves what a work moves; what is not strict lands later. Returns true if memory of its target has changed.
    ///
    /// # Safety
    /// The poster's promise for memory here.
    pub(super) unsafe fn carry_out(&self, by: usize, work: &MovingWork, random: usize) -> Result<bool, String> {
        let &MovingWork { what, to, there, len, .. } = work;
        let old = match (what, work.old) {
            (Move::Change(atomic, _), None) => self.hold(work, atomic)?,
            (_, old) => old.unwrap_or_default(),
        };
        let place = self.pinned(work)?;
        self.held.write_back(to, there..there + len as u64)?;
        // What is behind this comes behind what has landed, for those who see it.
        fence(Ordering::SeqCst);
        // SAFETY: the caller's promise for memory here; there it is pinned.
        let has_changed = unsafe {
            match what {
                Move::Write(from) if self.rules == MovingRules::Strict => {
                    land(place.start(), from, len, random);
                    true
                }
                Move::Write(from) => {
                    let write = LandingWrite { by, to, from: Pinned::copy_of(from, len), place, there, len };
                    self.landing.lock().push(write);
                    false
                }
                Move::Read(here) => {
                    let has_landed = self.land(|write| (write.by, write.to) == (by, to));
                    land(here, place.start(), len, random);
                    has_landed
                }
                Move::Change(_, here) => {
                    land(here, (&raw const old).cast(), len, random);
                    true
                }
            }
        };
        Ok(has_changed)
    }

    /// A packet has arrived.
    pub(super) fn packet_arrives(&self, from: usize, to: usize, packet: Vec<u8>) {
        if let Some(packets) = self.packets.lock().get_mut(&to) {
            packets.arrived.push_back((from, packet));
        }
    }

    /// Waits until no work uses memory of a rank that nobody can name any more.
    fn settle(&self, rank: usize, is_in_use: impl Fn() -> bool) {
        let land = || {
            self.land(|write| write.to == rank);
            // As in `lands`.
            let _ = self.held.write_back(rank, 0..u64::MAX);
        };
        land();
        while is_in_use() {
            std::thread::yield_now();
            land();
        }
        fence(Ordering::Acquire);
    }
}

impl MovingPort {
    pub(in crate::comm) fn is_strict(&self) -> bool {
        self.fabric.rules == MovingRules::Strict
    }

    /// Makes memory known, open to peers or not, and returns its key, which no other memory has.
    ///
    /// # Safety
    /// As [`OpenMemory::open`].
    pub(in crate::comm) unsafe fn register(&mut self, start: *mut u8, len: usize, is_open: bool) -> u64 {
        let key = self.fabric.number();
        let mut memory = self.fabric.memory.lock();
        let own = memory.entry(self.rank).or_insert_with(|| OpenMemory::new(usize::MAX));
        // SAFETY: the caller's promise. All of memory may be pinned.
        let _ = unsafe { own.open(key, start, len, is_open) };
        key
    }

    /// Closes memory. Nobody uses it any more on return.
    pub(in crate::comm) fn unregister(&mut self, key: u64) {
        let closed = self.fabric.memory.lock().get_mut(&self.rank).and_then(|own| own.close(key));
        self.fabric.settle(self.rank, || closed.as_ref().is_some_and(Closed::is_in_use));
    }

    /// The bytes at an address of memory that this rank has opened.
    pub(in crate::comm) fn own(&self, address: u64, len: usize) -> Option<*mut u8> {
        let memory = self.fabric.memory.lock();
        memory.get(&self.rank)?.find(address, len, |_| true).map(|pinned| pinned.start())
    }

    /// Begins a work of `len` bytes, and returns its number. Without a key it may use all memory there that is open to peers.
    ///
    /// # Safety
    /// Memory here is as the work needs it until [`test`](Self::test) says that it has ended.
    pub(in crate::comm) unsafe fn begin(&mut self, what: Move, to: usize, key: Option<u64>, there: u64, len: usize) -> u64 {
        let number = self.fabric.number();
        let work = MovingWork { what, to, key, there, len, number, old: None };
        match &self.fabric.on_cables {
            None => self.open.push(work),
            Some(cables) => {
                self.travelling += 1;
                cables.sends(self.rank, work);
            }
        }
        number
    }

    /// Works that have not ended.
    pub(in crate::comm) fn under_way(&self) -> usize {
        self.open.len() + self.travelling
    }

    /// Goes on, and says what became of a work. It is forgotten once it has ended.
    pub(in crate::comm) fn test(&mut self, number: u64) -> Moved {
        if let Some(cables) = &self.fabric.on_cables {
            let ended = cables.take_ended(number);
            self.travelling -= usize::from(ended.is_some());
            return ended.unwrap_or(Moved::NotYet);
        }
        if !self.ended.contains_key(&number) {
            self.step();
        }
        self.ended.remove(&number).unwrap_or(Moved::NotYet)
    }

    /// Returns true at random, once in `one_of` calls: something is late. In virtual time only cables delay.
    pub(in crate::comm) fn is_late(&mut self, one_of: usize) -> bool {
        self.fabric.on_cables.is_none() && self.random.below(one_of) == 0
    }

    /// Sends a packet. False if its target has no room now.
    ///
    /// # Errors
    /// The target is not there.
    pub(in crate::comm) fn send_packet(&mut self, to: usize, packet: &[u8]) -> Result<bool, String> {
        let mut packets = self.fabric.packets.lock();
        let target = packets.get_mut(&to).ok_or_else(|| format!("rank {to} has no mailbox"))?;
        let room = if self.fabric.on_cables.is_some() { MODELLED_PACKETS } else { PACKETS };
        if target.count >= room {
            if self.fabric.on_cables.is_some() && !target.refused.contains(&self.rank) {
                target.refused.push_back(self.rank);
            }
            return Ok(false);
        }
        target.count += 1;
        match &self.fabric.on_cables {
            None => target.arrived.push_back((self.rank, packet.to_vec())),
            Some(cables) => {
                drop(packets);
                cables.sends_packet(self.fabric.number(), self.rank, to, packet.to_vec());
            }
        }
        Ok(true)
    }

    /// Takes the next packet. Its sender comes first.
    pub(in crate::comm) fn take_packet(&mut self) -> Option<(usize, Vec<u8>)> {
        let mut packets = self.fabric.packets.lock();
        let own = packets.get_mut(&self.rank)?;
        let taken = own.arrived.pop_front()?;
        own.count -= 1;
        // One for each place that is free, and all when there is nobody who would free another.
        let rung = own.refused.len().min(if own.count == 0 { usize::MAX } else { 1 });
        let rung: Vec<usize> = own.refused.drain(..rung).collect();
        drop(packets);
        if let Some(cables) = self.fabric.on_cables.as_ref().filter(|_| !rung.is_empty()) {
            cables.ring(self.rank, rung);
        }
        Some(taken)
    }

    /// A write that has ended lands now and then, whoever looks.
    pub(in crate::comm) fn land_one(&mut self) {
        if self.is_strict() || !self.is_late(2) {
            return;
        }
        let mut landing = self.fabric.landing.lock();
        if !landing.is_empty() {
            let mut at = self.random.below(landing.len());
            if self.fabric.rules == MovingRules::InOrder {
                let (by, to) = (landing[at].by, landing[at].to);
                at = landing.iter().position(|write| (write.by, write.to) == (by, to)).unwrap_or(at);
            }
            self.fabric.lands(landing.remove(at), self.random.below(usize::MAX));
        }
    }

    /// Something goes on, anything that may.
    fn step(&mut self) {
        if self.open.is_empty() {
            return;
        }
        let mut at = self.random.below(self.open.len().min(AHEAD));
        if self.fabric.rules == MovingRules::InOrder {
            let to = self.open[at].to;
            at = self.open.iter().position(|work| work.to == to).unwrap_or(at);
        }
        let work = &mut self.open[at];
        if let (Move::Change(atomic, _), None) = (work.what, work.old)
            && let Ok(old) = self.fabric.hold(work, atomic)
        {
            work.old = Some(old);
            return;
        }
        let work = self.open.remove(at);
        let random = self.random.below(usize::MAX);
        // SAFETY: the poster's promise.
        let ended = unsafe { self.fabric.carry_out(self.rank, &work, random) };
        self.ended.insert(work.number, Moved::of(ended));
    }

    /// Closes the port: what is under way ends, unseen.
    pub(in crate::comm) fn close(&mut self) {
        self.open.clear();
        self.fabric.on_cables.iter().for_each(|cables| cables.forget(self.rank));
        self.fabric.packets.lock().remove(&self.rank);
        let own = self.fabric.memory.lock().remove(&self.rank);
        self.fabric.settle(self.rank, || own.as_ref().is_some_and(OpenMemory::is_in_use));
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::comm::AtomicOp;

    fn end(port: &mut MovingPort, number: u64) -> Result<(), String> {
        for _ in 0..1000 {
            match port.test(number) {
                Moved::NotYet => {}
                Moved::Well => return Ok(()),
                Moved::Failed(why) => return Err(why),
            }
        }
        panic!("it does not end")
    }

    #[test]
    fn a_read_comes_behind_writes_that_have_ended() {
        for (seed, rules) in (0..300).zip([MovingRules::Strict, MovingRules::Relaxed, MovingRules::InOrder].into_iter().cycle()) {
            let fabric = MovingFabric::new(rules, seed);
            let (mut one, mut other) = (fabric.open(0), fabric.open(1));
            let (mut memory, from, mut read) = (vec![0_u64; 64], vec![7_u64; 64], [0_u64; 64]);
            let there = memory.as_mut_ptr().expose_provenance() as u64;
            // SAFETY: the vectors outlive the ports.
            unsafe {
                let key = other.register(memory.as_mut_ptr().cast(), 512, true);
                let wrote = one.begin(Move::Write(from.as_ptr().cast()), 1, Some(key), there, 512);
                end(&mut one, wrote).unwrap();
                let got = one.begin(Move::Read(read.as_mut_ptr().cast()), 1, Some(key), there, 512);
                end(&mut one, got).unwrap();
                assert_eq!(read, *from, "seed {seed}");
                let outside = one.begin(Move::Read(read.as_mut_ptr().cast()), 1, Some(key), there + 8, 512);
                assert!(end(&mut one, outside).unwrap_err().contains("rank 1"));
                other.unregister(key);
                let late = one.begin(Move::Write(from.as_ptr().cast()), 1, Some(key), there, 8);
                assert!(end(&mut one, late).is_err(), "memory that was closed");
            }
            one.close();
            other.close();
        }
    }

    /// An adapter holds a word from the moment that it looks at it until the end; others that change it meanwhile do so there.
    #[test]
    fn a_processor_that_writes_a_held_word_is_caught() {
        let fabric = MovingFabric::new(MovingRules::Strict, 1);
        let (mut one, mut other) = (fabric.open(0), fabric.open(1));
        let (mut words, mut old) = ([5_u64; 2], [0_u64; 2]);
        let [first, second] = [0, 1].map(|at| (&raw mut words[at]).expose_provenance() as u64);
        let add = |here: *mut u64| Move::Change(Atomic { op: AtomicOp::Add, width: 8, operand: 3, comparand: 0 }, here.cast());
        // SAFETY: the arrays outlive the ports, and only pointers lead to them until these are closed.
        unsafe {
            let key = other.register((&raw mut words).cast(), 16, true);
            let numbers = [
                one.begin(add(&raw mut old[0]), 1, Some(key), first, 8),
                other.begin(add(&raw mut old[1]), 1, Some(key), first, 8),
            ];
            assert!(matches!(one.test(numbers[0]), Moved::NotYet));
            assert!(matches!(other.test(numbers[1]), Moved::NotYet));
            assert_eq!((&raw const words[0]).read_volatile(), 5, "it is held");
            end(&mut one, numbers[0]).unwrap();
            assert_eq!((&raw const words[0]).read_volatile(), 11, "one writes back for both");
            end(&mut other, numbers[1]).unwrap();
            let number = one.begin(add(&raw mut old[0]), 1, Some(key), second, 8);
            assert!(matches!(one.test(number), Moved::NotYet));
            (&raw mut words[1]).write_volatile(7);
            let said = end(&mut one, number).unwrap_err();
            assert!(said.contains(&format!("the word at {second:#x} of rank 1")), "{said}");
        }
        one.close();
        other.close();
        assert_eq!(words, [11, 7]);
    }
}
