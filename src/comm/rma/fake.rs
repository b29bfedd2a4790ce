//! An adapter that keeps no order but what it is told to keep, and frames on it.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use super::{
    adapter::{RmaAccess, RmaAdapter, RmaDone, RmaLimits, RmaRegion, RmaWork},
    road::{FrameRoad, OF_ROAD},
    wire::{RmaSettings, RmaWire},
};
use crate::{
    comm::{
        Atomic,
        AtomicOp::{Add, And, CompareSwap, Load, Or, Xor},
        am::wire::{Class, Key, Result},
        kit::random::Random,
        start::devices::directory::{Directory, Words},
    },
    memory::atomic_op::changed,
};

pub(super) const RANKS: usize = 3;
const FRAME: usize = 512;

/// What is under way between two ranks.
pub(super) struct Item {
    id: u64,
    pub(super) what: ItemWork,
    there: u64,
    len: usize,
    key: u64,
    here: *mut u8,
    /// The bytes of a write whose memory is free, or of a frame.
    taken: Option<Vec<u8>>,
}

// SAFETY: one thread uses all of it.
unsafe impl Send for Item {}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum ItemWork {
    Write,
    Change(Atomic),
    Read,
    Mark,
    Frame,
}

impl Item {
    fn meets(&self, other: &Item) -> bool {
        self.there < other.there + other.len as u64 && other.there < self.there + self.len as u64
    }
}

/// All ranks.
pub(super) struct World {
    limits: RmaLimits,
    random: Random,
    /// From each rank to each other.
    pub(super) under_way: [[Vec<Item>; RANKS]; RANKS],
    done: [Vec<RmaDone>; RANKS],
    arrived: [VecDeque<(usize, Vec<u8>)>; RANKS],
    /// Memory that is open: rank, start, bytes, key.
    open: Vec<(usize, u64, usize, u64)>,
    keys: u64,
}

impl World {
    /// Returns true if the item at a place may go on before those in front of it.
    fn may_go(&self, queue: &[Item], at: usize) -> bool {
        let RmaLimits { put_put, put_get, frame_behind_write, .. } = self.limits;
        let item = &queue[at];
        queue[..at].iter().all(|before| match (before.what, item.what) {
            (ItemWork::Write, ItemWork::Write | ItemWork::Change(_)) => !put_put || !item.meets(before),
            (ItemWork::Write, ItemWork::Read) => !put_get || !item.meets(before),
            (ItemWork::Write, ItemWork::Frame) => !frame_behind_write,
            (ItemWork::Write, ItemWork::Mark) | (ItemWork::Frame, ItemWork::Frame) => false,
            _ => true,
        })
    }

    /// Something goes on, anything that may.
    pub(super) fn step(&mut self) {
        let (from, to) = (self.random.below(RANKS), self.random.below(RANKS));
        let queue = std::mem::take(&mut self.under_way[from][to]);
        let possible: Vec<usize> = (0..queue.len()).filter(|&at| self.may_go(&queue, at)).collect();
        self.under_way[from][to] = queue;
        if possible.is_empty() {
            return;
        }
        let at = possible[self.random.below(possible.len())];
        let item = &mut self.under_way[from][to][at];
        if self.limits.marks && item.what == ItemWork::Write && item.taken.is_none() {
            // SAFETY: readable until its end is reported, which is now.
            item.taken = Some(unsafe { std::slice::from_raw_parts(item.here, item.len) }.to_vec());
            self.done[from].push(RmaDone::Ends { id: item.id, len: item.len });
            return;
        }
        let item = self.under_way[from][to].remove(at);
        let Item { id, what, there, len, key, here, taken } = item;
        let is_inside = |&(rank, start, bytes, open): &(usize, u64, usize, u64)| {
            (rank, open) == (to, key) && start <= there && there + len as u64 <= start + bytes as u64
        };
        if matches!(what, ItemWork::Write | ItemWork::Change(_) | ItemWork::Read) && !self.open.iter().any(is_inside) {
            let why = "a region that is not open".to_owned();
            return self.done[from].push(RmaDone::Fails { id: Some(id), peer: Some(to), why });
        }
        let place = std::ptr::with_exposed_provenance_mut::<u8>(there as usize);
        match what {
            // SAFETY: inside open memory; the bytes here live until the end is reported.
            ItemWork::Read => unsafe { std::ptr::copy(place, here, len) },
            ItemWork::Write => {
                let from = taken.as_ref().map_or(here.cast_const(), |bytes| bytes.as_ptr());
                // SAFETY: as above.
                unsafe { std::ptr::copy(from, place, len) };
            }
            // SAFETY: as above.
            ItemWork::Change(Atomic { op, operand, comparand, .. }) => unsafe {
                let (word, here) = (place.cast::<u64>(), here.cast::<u64>());
                assert!(len == 8 && word.is_aligned() && here.is_aligned());
                assert!(matches!(op, Load | Add | And | Or | Xor | CompareSwap), "an operation that no adapter has");
                here.write(word.read());
                changed(op, word.read(), operand, comparand).into_iter().for_each(|new| word.write(new));
            },
            ItemWork::Frame => return self.arrived[to].push_back((from, taken.unwrap())),
            ItemWork::Mark => {}
        }
        if what != ItemWork::Write || !self.limits.marks {
            self.done[from].push(RmaDone::Ends { id, len });
        }
    }
}

/// A port of the world.
pub(super) struct Fake {
    rank: usize,
    limits: RmaLimits,
    world: Arc<Mutex<World>>,
}

impl std::fmt::Debug for Fake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Fake({})", self.rank)
    }
}

impl Fake {
    fn begin(&mut self, to: usize, what: ItemWork, work: &RmaWork) -> Result<bool> {
        let mut world = self.world.lock().unwrap();
        if world.under_way[self.rank][to].len() > 6 || world.random.below(8) == 0 {
            return Ok(false);
        }
        let RmaWork { here, len, local, there, key, inline, id } = *work;
        assert!(inline || !self.limits.local_regions || local.is_some(), "memory that the adapter does not know");
        // SAFETY: the caller's promise.
        let taken = inline.then(|| unsafe { std::slice::from_raw_parts(here, len) }.to_vec());
        world.under_way[self.rank][to].push(Item { id, what, there, len, key: key.0[0], here, taken });
        Ok(true)
    }
}

impl RmaAdapter for Fake {
    fn limits(&self) -> &RmaLimits {
        &self.limits
    }

    fn address(&self) -> Words {
        [self.rank as u64; 8]
    }

    fn meet(&mut self, peer: usize, at: &Words) -> Result<()> {
        assert_eq!(*at, [peer as u64; 8]);
        Ok(())
    }

    unsafe fn register(&mut self, start: *mut u8, len: usize, access: RmaAccess) -> std::result::Result<RmaRegion, String> {
        let mut world = self.world.lock().unwrap();
        world.keys += 1;
        let (address, id) = (start.expose_provenance() as u64, world.keys);
        if access == RmaAccess::Remote {
            world.open.push((self.rank, address, len, id));
        }
        Ok(RmaRegion { address, key: Key([id, 0]), id })
    }

    fn deregister(&mut self, region: u64) -> Result<()> {
        self.world.lock().unwrap().open.retain(|open| open.3 != region);
        Ok(())
    }

    unsafe fn write(&mut self, to: usize, work: &RmaWork) -> Result<bool> {
        self.begin(to, ItemWork::Write, work)
    }

    unsafe fn read(&mut self, from: usize, work: &RmaWork) -> Result<bool> {
        self.begin(from, ItemWork::Read, work)
    }

    unsafe fn change(&mut self, peer: usize, work: &RmaWork, atomic: Atomic) -> Result<bool> {
        self.begin(peer, ItemWork::Change(atomic), work)
    }

    fn mark(&mut self, peer: usize, id: u64) -> Result<bool> {
        let here = std::ptr::null_mut();
        self.begin(peer, ItemWork::Mark, &RmaWork { here, len: 0, local: Some(0), there: 0, key: Key([0; 2]), inline: false, id })
    }

    fn poll(&mut self, done: &mut Vec<RmaDone>) -> Result<()> {
        done.append(&mut self.world.lock().unwrap().done[self.rank]);
        Ok(())
    }

    fn close(&mut self) {}
}

/// Frames as items of the world.
pub(super) struct FakeRoad {
    rank: usize,
    world: Arc<Mutex<World>>,
}

impl std::fmt::Debug for FakeRoad {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "FakeRoad({})", self.rank)
    }
}

impl FrameRoad<Fake> for FakeRoad {
    fn longest(&self) -> usize {
        FRAME
    }

    fn send(&mut self, adapter: &mut Fake, to: usize, _: Class, frame: &[u8]) -> Result<bool> {
        let (here, len) = (frame.as_ptr().cast_mut(), frame.len());
        let work = RmaWork { here, len, local: None, there: 0, key: Key([0; 2]), inline: true, id: OF_ROAD };
        adapter.begin(to, ItemWork::Frame, &work)
    }

    fn receive(&mut self, _: &mut Fake, frame: &mut [u8]) -> Result<Option<(usize, usize)>> {
        let Some((from, bytes)) = self.world.lock().unwrap().arrived[self.rank].pop_front() else { return Ok(None) };
        frame[..bytes.len()].copy_from_slice(&bytes);
        Ok(Some((from, bytes.len())))
    }

    fn ends(&mut self, _: &RmaDone) -> bool {
        false
    }

    fn tend(&mut self, _: &mut Fake) -> Result<bool> {
        Ok(false)
    }

    fn has_arrivals(&self) -> bool {
        !self.world.lock().unwrap().arrived[self.rank].is_empty()
    }

    fn leaving(&self) -> usize {
        0
    }
}

pub(super) type FakeWire = RmaWire<Fake, FakeRoad>;

pub(super) fn wires(limits: RmaLimits, seed: u64) -> (Arc<Mutex<World>>, Vec<FakeWire>) {
    let world = Arc::new(Mutex::new(World {
        limits,
        random: Random::new(seed),
        under_way: Default::default(),
        done: Default::default(),
        arrived: Default::default(),
        open: Vec::new(),
        keys: 0,
    }));
    let directory = Arc::new(Directory::shared(RANKS).unwrap());
    let wire = |rank| {
        let settings = RmaSettings { rank, ..RmaSettings::default() };
        let road = FakeRoad { rank, world: world.clone() };
        RmaWire::new(Fake { rank, limits, world: world.clone() }, road, directory.clone(), settings).unwrap()
    };
    let wires = (0..RANKS).map(wire).collect();
    (world, wires)
}
