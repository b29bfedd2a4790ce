//! Wires of several ranks that one thread drives.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use crate::comm::{
    am::wire::{Broken, OneSided, Opened, Piece, Wire},
    rma::{
        adapter::RmaAdapter,
        road::FrameRoad,
        wire::{RmaSettings, RmaWire},
    },
    start::devices::directory::Directory,
};

/// Wires over adapters and their roads.
pub(in crate::comm) fn wires<A: RmaAdapter, R: FrameRoad<A>>(ranks: usize, make: impl Fn(usize) -> (A, R)) -> Vec<RmaWire<A, R>> {
    let directory = Arc::new(Directory::shared(ranks).unwrap());
    let wire = |rank| {
        let (adapter, road) = make(rank);
        let settings = RmaSettings { rank, ..RmaSettings::default() };
        RmaWire::new(adapter, road, directory.clone(), settings).unwrap()
    };
    (0..ranks).map(wire).collect()
}

/// Bytes at a peer are written; some that are not open there are not, and the job ends with the peer's number. Returns what is said then.
pub(in crate::comm) fn outside_is_refused<A: RmaAdapter, R: FrameRoad<A>>(mut wires: Vec<RmaWire<A, R>>) -> String {
    let mut memory = vec![0_u8; 256];
    // SAFETY: the vector outlives the wires.
    let Opened { address, key, .. } = unsafe { wires[1].one_sided().unwrap().open(memory.as_mut_ptr(), 128) }.unwrap();
    let bytes = [7_u8; 64];
    let mut write = |there: u64, len: usize| {
        let piece = Piece { there: address + there, key, here: bytes.as_ptr().cast_mut(), len };
        // SAFETY: bytes of this test.
        assert_eq!(unsafe { wires[0].write(1, &[piece]) }.unwrap(), 1);
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(10) {
            if wires[0].have_ended(1)? {
                return Ok(());
            }
        }
        Err(Broken("it does not end".to_owned()))
    };
    write(3, 41).unwrap();
    let Broken(refused) = write(100, 40).unwrap_err();
    assert!(refused.starts_with("rank 1 cannot be reached: "), "{refused}");
    drop(wires);
    assert!(memory[3..44].iter().all(|&byte| byte == 7));
    assert!(memory[..3].iter().chain(&memory[44..]).all(|&byte| byte == 0));
    refused
}
