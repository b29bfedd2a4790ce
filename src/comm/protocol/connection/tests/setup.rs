//! The time and the datagrams that it takes to connect a pair when nothing is lost.

use super::super::SetupWay;
use super::world::{Conditions, World};
use crate::comm::protocol::simulation::Random;

/// ARMCI-ODCM §III-B2: to create a queue pair and bring it to INIT; to RTR and RTS. Microseconds.
const PREPARE: u64 = 367;
const CONNECT: u64 = 105;

/// ARMCI-ODCM §III-B2 too: a message costs less than this.
const MESSAGE: u64 = 10;

/// Microseconds until the end that wants to may post, and datagrams.
fn set_up(way: SetupWay, both: bool) -> (u64, usize) {
    let steps = ([PREPARE, CONNECT, PREPARE], 0);
    let conditions = Conditions { endpoints: 2, budget: 1, way, lost: 0, doubled: 0, failing: 0, delay: (MESSAGE, 0), steps };
    let mut world = World::new(conditions, Random::new(1));
    world.want(0, 0, 1);
    if both {
        world.want(0, 1, 0);
    }
    while world.step() {}
    let (ready, epoch) = world.link(0, 1).ready.unwrap();
    assert_eq!((world.missing, epoch), (0, 0));
    (ready, world.datagrams)
}

#[test]
fn the_overlapped_way_takes_at_most_61_percent_of_the_serial_one() {
    let ((overlapped, some), (serial, fewer)) = (set_up(SetupWay::Overlapped, false), set_up(SetupWay::Serial, false));
    let ratio = overlapped as f64 / serial as f64;
    eprintln!("overlapped {overlapped} us, serial {serial} us: {ratio:.3}");
    assert!(ratio <= 0.61, "{overlapped} us : {serial} us");
    assert_eq!((overlapped, serial), (PREPARE + CONNECT + 2 * MESSAGE, 2 * PREPARE + CONNECT + 2 * MESSAGE));
    // Initialized and Connected of both; the request of Fig. 4.
    assert_eq!((fewer, some), (4, 5));
    // Both at once: nobody waits for the other to begin.
    for way in [SetupWay::Overlapped, SetupWay::Serial] {
        assert_eq!(set_up(way, true).0, PREPARE + MESSAGE + CONNECT + MESSAGE);
    }
}
