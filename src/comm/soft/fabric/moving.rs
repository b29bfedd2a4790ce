//! Adapters that move memory between the ranks of one process, without connections: works end in any order, and take effect later.
//!
//! A port belongs to one thread, which carries out its works when it looks. Unless the rules are strict, a write has ended when its bytes have left,
//! and lands at any later time; a read of the same rank comes behind all that has ended before.
//! The next work is any of the first eight, and nothing moves while its rank computes.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering, fence},
    },
};

use super::{
    landing::{atomic, land},
    memory::{Closed, OpenMemory, Pinned},
};
use crate::comm::kit::{mutex::Mutex, random::Random};

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
    rules: MovingRules,
    seed: u64,
    /// The memory of each rank, and true if peers may use it.
    memory: Mutex<BTreeMap<usize, OpenMemory<bool>>>,
    /// Writes that have ended and not landed.
    landing: Mutex<Vec<LandingWrite>>,
    /// Atomic operations of all adapters, one at a time.
    atomics: Mutex<()>,
    numbers: AtomicU64,
}

/// What a work does. `Write` and `Read` name memory here.
#[derive(Clone, Copy, Debug)]
pub(in crate::comm) enum Move {
    Write(*const u8),
    Read(*mut u8),
    /// Adds to a word; the old value lands here.
    Add(u64, *mut u8),
}

/// The state of a work.
#[derive(Debug)]
pub(in crate::comm) enum Moved {
    NotYet,
    Well,
    Failed(String),
}

#[derive(Debug)]
struct MovingWork {
    what: Move,
    to: usize,
    key: Option<u64>,
    there: u64,
    len: usize,
    number: u64,
}

// SAFETY: addresses, which the port's thread uses as the poster has promised.
unsafe impl Send for MovingWork {}

/// A write that has ended and has not landed.
#[derive(Debug)]
struct LandingWrite {
    by: usize,
    to: usize,
    from: Pinned,
    place: Pinned,
    len: usize,
}

/// The adapter of a rank.
#[derive(Debug)]
pub(in crate::comm) struct MovingPort {
    fabric: Arc<MovingFabric>,
    rank: usize,
    random: Random,
    open: Vec<MovingWork>,
    ended: BTreeMap<u64, Moved>,
}

impl MovingFabric {
    /// The order of works and of what lands comes from a seed.
    pub(in crate::comm) fn new(rules: MovingRules, seed: u64) -> Arc<Self> {
        let (memory, landing, atomics) = (Mutex::default(), Mutex::default(), Mutex::default());
        Arc::new(MovingFabric { rules, seed, memory, landing, atomics, numbers: AtomicU64::new(1) })
    }

    /// Opens the adapter of a rank.
    pub(in crate::comm) fn open(self: &Arc<Self>, rank: usize) -> MovingPort {
        self.memory.lock().insert(rank, OpenMemory::new(usize::MAX));
        let random = Random::new(self.seed.wrapping_add(rank as u64));
        MovingPort { fabric: self.clone(), rank, random, open: Vec::new(), ended: BTreeMap::new() }
    }

    fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// Lands some of the writes that have not landed.
    fn land(&self, which: impl Fn(&LandingWrite) -> bool) {
        if self.rules == MovingRules::Strict {
            return;
        }
        let mut landing = self.landing.lock();
        for write in landing.extract_if(.., |write| which(write)) {
            write.land(0);
        }
    }

    /// Waits until no work uses memory of a rank that nobody can name any more.
    fn settle(&self, rank: usize, is_in_use: impl Fn() -> bool) {
        self.land(|write| write.to == rank);
        while is_in_use() {
            std::thread::yield_now();
            self.land(|write| write.to == rank);
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
        self.open.push(MovingWork { what, to, key, there, len, number });
        number
    }

    /// Works that have not ended.
    pub(in crate::comm) fn under_way(&self) -> usize {
        self.open.len()
    }

    /// Goes on, and says what became of a work. It is forgotten once it has ended.
    pub(in crate::comm) fn test(&mut self, number: u64) -> Moved {
        if !self.ended.contains_key(&number) {
            self.step();
        }
        self.ended.remove(&number).unwrap_or(Moved::NotYet)
    }

    /// A write that has ended lands now and then, whoever looks.
    pub(in crate::comm) fn land_one(&mut self) {
        if self.is_strict() || self.random.below(2) == 0 {
            return;
        }
        let mut landing = self.fabric.landing.lock();
        if !landing.is_empty() {
            let mut at = self.random.below(landing.len());
            if self.fabric.rules == MovingRules::InOrder {
                let (by, to) = (landing[at].by, landing[at].to);
                at = landing.iter().position(|write| (write.by, write.to) == (by, to)).unwrap_or(at);
            }
            landing.remove(at).land(self.random.below(usize::MAX));
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
        let work = self.open.remove(at);
        let ended = match self.carry_out(&work) {
            Ok(()) => Moved::Well,
            Err(why) => Moved::Failed(why),
        };
        self.ended.insert(work.number, ended);
    }

    fn carry_out(&mut self, work: &MovingWork) -> Result<(), String> {
        let &MovingWork { what, to, key, there, len, .. } = work;
        let pinned = self.fabric.memory.lock().get(&to).and_then(|memory| match key {
            Some(key) => memory.pin(key, there, len, |is_open| is_open),
            None => memory.find(there, len, |is_open| is_open),
        });
        let place = pinned.ok_or_else(|| format!("{len} bytes at {there:#x} are not in the memory that rank {to} has opened"))?;
        let random = self.random.below(usize::MAX);
        // What is behind this comes behind what has landed, for those who see it.
        fence(Ordering::SeqCst);
        // SAFETY: the poster's promise for memory here; there it is pinned.
        unsafe {
            match what {
                Move::Write(from) if self.is_strict() => land(place.start(), from, len, random),
                Move::Write(from) => {
                    let write = LandingWrite { by: self.rank, to, from: Pinned::copy_of(from, len), place, len };
                    self.fabric.landing.lock().push(write);
                }
                Move::Read(here) => {
                    self.fabric.land(|write| (write.by, write.to) == (self.rank, to));
                    land(here, place.start(), len, random);
                }
                Move::Add(operand, here) => {
                    atomic(&self.fabric.atomics, place.start().cast(), here, |old| Some(old.wrapping_add(operand)));
                }
            }
        }
        Ok(())
    }

    /// Closes the port: what is under way ends, unseen.
    pub(in crate::comm) fn close(&mut self) {
        self.open.clear();
        let own = self.fabric.memory.lock().remove(&self.rank);
        self.fabric.settle(self.rank, || own.as_ref().is_some_and(OpenMemory::is_in_use));
    }
}

impl LandingWrite {
    fn land(self, random: usize) {
        fence(Ordering::SeqCst);
        // SAFETY: a copy, and memory that is pinned.
        unsafe { land(self.place.start(), self.from.start(), self.len, random) };
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

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
}
