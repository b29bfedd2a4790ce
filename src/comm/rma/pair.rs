//! Two ranks of a software device, for a bench: transfers by the device alone, and by the layers over it.

use std::{fmt, sync::Arc};

use super::{
    adapter::RmaAdapter,
    road::FrameRoad,
    wire::{RmaSettings, RmaWire},
};
use crate::comm::{
    am::wire::{BulkId, OneSided, Opened, Piece, Wire},
    start::devices::directory::Directory,
};

/// Bytes of the longest transfer.
const LONGEST: usize = 1 << 20;

/// Memory of one of them, from a line of the cache on.
#[derive(Debug)]
pub(in crate::comm) struct PairMemory(Vec<[u64; 8]>);

impl PairMemory {
    pub(in crate::comm) fn new() -> Self {
        PairMemory(vec![[0; 8]; LONGEST / 64 + 1])
    }

    pub(in crate::comm) fn start(&mut self) -> (*mut u8, usize) {
        (self.0.as_mut_ptr().cast::<u8>().map_addr(|at| at.next_multiple_of(64)), LONGEST)
    }
}

/// What moves bytes between the memory of both.
pub(in crate::comm) trait MovesBytes: fmt::Debug {
    /// Puts or gets some bytes. Returns true when they are visible, or here.
    fn moves(&mut self, len: usize, reads: bool) -> bool;
}

/// Two ranks of a software device.
#[derive(Debug)]
pub struct SoftPair {
    alone: Box<dyn MovesBytes>,
    layered: Box<dyn MovesBytes>,
}

impl SoftPair {
    /// By a device alone, and by wires over another of its kind.
    pub(in crate::comm) fn new<A: RmaAdapter, R: FrameRoad<A>>(
        alone: impl MovesBytes + 'static,
        make: impl Fn(usize) -> (A, R),
    ) -> Self {
        let directory = Arc::new(Directory::shared(2).expect("a directory"));
        let [first, second] = [0, 1].map(|rank| {
            let (adapter, road) = make(rank);
            RmaWire::new(adapter, road, directory.clone(), RmaSettings { rank, ..RmaSettings::default() }).expect("a wire")
        });
        SoftPair { alone: Box::new(alone), layered: Box::new(Layered::new(first, second)) }
    }

    /// Puts or gets bytes by the calls of the device. Returns true when they are visible, or here.
    pub fn alone(&mut self, len: usize, reads: bool) -> bool {
        self.alone.moves(len, reads)
    }

    /// The same by a wire.
    pub fn layered(&mut self, len: usize, reads: bool) -> bool {
        self.layered.moves(len, reads)
    }
}

/// The wires are in front of their memory.
#[derive(Debug)]
struct Layered<A: RmaAdapter, R> {
    wire: RmaWire<A, R>,
    _other: RmaWire<A, R>,
    opened: Opened,
    here: PairMemory,
    _there: PairMemory,
}

impl<A: RmaAdapter, R: FrameRoad<A>> Layered<A, R> {
    fn new(wire: RmaWire<A, R>, mut other: RmaWire<A, R>) -> Self {
        let mut there = PairMemory::new();
        let (start, len) = there.start();
        // SAFETY: it outlives the wires.
        let opened = unsafe { OneSided::open(&mut other, start, len) }.expect("open memory");
        Layered { wire, _other: other, opened, here: PairMemory::new(), _there: there }
    }
}

impl<A: RmaAdapter, R: FrameRoad<A>> MovesBytes for Layered<A, R> {
    fn moves(&mut self, len: usize, reads: bool) -> bool {
        let Opened { address: there, key, .. } = self.opened;
        let (here, _) = self.here.start();
        let piece = Piece { there, key, here, len };
        let is_straight = self.wire.limits().one_sided.is_some_and(|limits| len >= limits.straight);
        // SAFETY: open memory, and memory of this value.
        let begun = unsafe {
            match (is_straight, reads) {
                (true, _) => self.wire.go_straight(1, reads, piece, BulkId(0)),
                (false, true) => self.wire.read(1, &[piece], 0, 0).map(|begun| begun == 1),
                (false, false) => self.wire.write(1, &[piece]).map(|begun| begun == 1),
            }
        };
        if !matches!(begun, Ok(true)) {
            return false;
        }
        let mut ended = Vec::new();
        loop {
            if reads && !is_straight {
                let Ok(_) = self.wire.look_for_read() else { return false };
                // SAFETY: memory of this value, where bytes of the slot go.
                self.wire.take_read(&mut |_, at, bytes| unsafe { here.add(at).copy_from(bytes.as_ptr(), bytes.len()) });
            }
            match self.wire.have_ended(1) {
                Ok(true) => return !is_straight || self.wire.ended(&mut ended).is_ok() && ended.len() == 1,
                Ok(false) => {}
                Err(_) => return false,
            }
        }
    }
}
