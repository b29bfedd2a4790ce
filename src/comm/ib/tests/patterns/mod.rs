//! Connections that the patterns of programs take: Table 2 of MVICH, and in `agents` the tables of ARMCI-ODCM.
//!
//! Each rank is a wire over its own software device. For each edge of a pattern both ranks send a frame, and nothing else is sent.
//!
//! The paper does not give its patterns. These are those of the MPI library and of the NAS benchmarks of that time. Barriers exchange in a
//! hypercube; ranks beyond a power of two have one partner. CG, SP and BT use barriers too. CG also exchanges with the transpose of a grid
//! of ranks, SP and BT with six neighbors on a square.

mod agents;

use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, Instant},
};

use super::faulty::{Faulty, Posted, Rates};
use crate::comm::{
    am::{
        frame::RecordKind,
        wire::{Class, Wire},
    },
    ib::{
        device::Device,
        links::{DEPTHS, Links},
        soft::{Rules, SoftFabric},
    },
    protocol::connection::{ConnectionSettings, SetupWay},
    start::devices::directory::Directory,
};

/// Pairs of ranks that exchange something, the lower one first.
type Edges = BTreeSet<(usize, usize)>;

fn edge(one: usize, other: usize) -> Option<(usize, usize)> {
    (one != other).then_some((one.min(other), one.max(other)))
}

fn hypercube(ranks: usize) -> Edges {
    let most = 1_usize << ranks.ilog2();
    let exchange = (0..most.ilog2()).flat_map(|bit| (0..most).filter_map(move |rank| edge(rank, rank ^ 1 << bit)));
    exchange.chain((most..ranks).filter_map(|rank| edge(rank, rank - most))).collect()
}

fn ring(ranks: usize) -> Edges {
    (0..ranks).filter_map(|rank| edge(rank, (rank + 1) % ranks)).collect()
}

fn all(ranks: usize) -> Edges {
    (0..ranks).flat_map(|rank| (0..rank).filter_map(move |other| edge(rank, other))).collect()
}

/// An n by n grid of ranks, or of pairs of ranks.
fn transpose(ranks: usize) -> Edges {
    let n = 1_usize << (ranks.ilog2() / 2);
    let width = ranks / (n * n);
    let other = |rank: usize| width * (rank / width % n * n + rank / width / n) + rank % width;
    (0..ranks).filter_map(|rank| edge(rank, other(rank))).collect()
}

/// Those beside, above and on one diagonal, each way.
fn six_neighbors(ranks: usize) -> Edges {
    let n = ranks.isqrt();
    let at = |column: usize, row: usize| column % n + row % n * n;
    let to = |rank: usize| [(1, 0), (0, 1), (1, n - 1)].map(|(right, up)| at(rank % n + right, rank / n + up));
    (0..ranks).flat_map(|rank| to(rank).into_iter().filter_map(move |other| edge(rank, other))).collect()
}

fn wires(ranks: usize, budget: usize, way: SetupWay) -> Vec<Links<Faulty<impl Device>>> {
    let fabric = SoftFabric::new(Rules::default());
    let directory = Arc::new(Directory::shared(ranks).unwrap());
    let wire = |endpoint| {
        let settings = ConnectionSettings { endpoint, endpoints: ranks, token: 7, way, budget };
        let device = Faulty::new(fabric.open(DEPTHS).unwrap(), Rates::default(), 0);
        Links::new(device, directory.clone(), settings).unwrap()
    };
    (0..ranks).map(wire).collect()
}

/// A frame from one rank to another.
fn send(wire: &mut Links<impl Device>, to: usize) -> bool {
    let mut frame = wire.frame();
    frame.push(RecordKind::Flush, 0, &[0], &[], 0);
    frame.seal(0, true);
    let back = wire.send(to, Class::Request, frame).unwrap();
    let sent = back.is_none();
    back.into_iter().for_each(|frame| wire.keep(frame));
    sent
}

/// Sends frames from ranks to others, and returns when all have come. No rank ever holds more than `budget` connections.
fn exchange(wires: &mut [Links<impl Device>], budget: usize, frames: &[(usize, usize)]) {
    let mut to_send = frames.to_vec();
    let mut awaited = to_send.len();
    let start = Instant::now();
    while awaited > 0 {
        assert!(start.elapsed() < Duration::from_secs(100), "{awaited} of {} frames have not come", frames.len());
        to_send.retain(|&(from, to)| !send(&mut wires[from], to));
        for wire in wires.iter_mut() {
            while let Some(arrival) = wire.receive().unwrap() {
                awaited -= 1;
                wire.keep(arrival.frame);
            }
            assert!(wire.partners().len() <= budget, "{} connections", wire.partners().len());
        }
    }
}

/// The mean number of connections of a rank after all pairs of a pattern have exchanged a frame.
fn connections(ranks: usize, pattern: &Edges) -> f64 {
    let mut wires = wires(ranks, ranks, SetupWay::Overlapped);
    let frames: Vec<(usize, usize)> = pattern.iter().flat_map(|&(one, other)| [(one, other), (other, one)]).collect();
    exchange(&mut wires, ranks, &frames);
    let mut opened = 0;
    for (rank, wire) in wires.iter().enumerate() {
        let counts = wire.connections().unwrap();
        let partners = pattern.iter().filter(|&&(one, other)| one == rank || other == rank).count() as u64;
        assert_eq!((counts.opened, counts.reopened, counts.live), (partners, 0, partners), "rank {rank}");
        opened += counts.opened;
    }
    opened as f64 / ranks as f64
}

/// A pattern; ranks, and the mean connections of each of them in the paper.
type Row = (&'static str, fn(usize) -> Edges, [(usize, f64); 2]);

/// Integer sort and multigrid exchange with all.
const TABLE: [Row; 6] = [
    ("ring", ring, [(16, 2.0), (32, 2.0)]),
    ("barrier, broadcast, all-reduce", hypercube, [(16, 4.0), (32, 5.0)]),
    ("all-gather", |ranks| &hypercube(ranks) | &ring(ranks), [(16, 5.0), (32, 6.0)]),
    ("all-to-all, IS, MG", all, [(16, 15.0), (32, 31.0)]),
    ("CG", |ranks| &hypercube(ranks) | &transpose(ranks), [(16, 4.75), (32, 5.78)]),
    ("SP, BT", |ranks| &hypercube(ranks) | &six_neighbors(ranks), [(16, 8.0), (36, 9.83)]),
];

/// MVICH, Table 2: each rank connects with its partners in a pattern and with nobody else. Prints a line for each row, and their
/// number.
#[test]
#[expect(clippy::print_stdout, reason = "`cargo xtask papers` reads it")]
fn patterns_connect_as_many_as_they_need() {
    for (name, pattern, rows) in TABLE {
        for (ranks, published) in rows {
            let ours = connections(ranks, &pattern(ranks));
            // The harness may have begun the line.
            println!("\nconnections;{name};{ranks};{published};{ours}");
        }
    }
    println!("connections;end;{}", 2 * TABLE.len());
}

/// Works and datagrams that a rank posts for `frames` frames over a connection that stands.
fn posted(frames: usize, is_static: bool) -> Posted {
    let mut wires = wires(3, 3, SetupWay::Overlapped);
    if is_static {
        (0..3).for_each(|rank| wires[rank].connect_with((0..3).filter(|&other| other != rank)).unwrap());
    }
    let start = Instant::now();
    let mut before = None;
    let mut sent = 0;
    while sent < frames {
        assert!(start.elapsed() < Duration::from_secs(100), "{sent} frames have been sent");
        let has_sent = send(&mut wires[0], 1);
        sent += usize::from(has_sent && before.is_some());
        for wire in &mut wires {
            while let Some(arrival) = wire.receive().unwrap() {
                wire.keep(arrival.frame);
            }
        }
        // The first frame has gone over the connection, and none is being made any more.
        let stand = if is_static { 2 } else { 1 };
        if has_sent && before.is_none() && wires[..2].iter().all(|wire| wire.connections().unwrap().live == stand) {
            before = Some(wires[0].device().posted());
        }
    }
    assert_eq!(wires[2].connections().unwrap().opened, if is_static { 2 } else { 0 });
    let (before, after) = (before.unwrap(), wires[0].device().posted());
    after.since(before)
}

/// Once a connection stands, it does not matter how it was made: each frame is one work, and there are no datagrams.
#[test]
fn a_connection_costs_the_same_however_it_was_made() {
    const FRAMES: usize = 200;
    for is_static in [false, true] {
        let posted = (0..5).map(|_| posted(FRAMES, is_static)).inspect(|posted| assert_eq!(posted.works, FRAMES));
        // A run in which the thread had no processor for some time may answer a late one.
        let with_datagrams = posted.filter(|posted| posted.datagrams > 0).count();
        assert!(with_datagrams <= 1, "static: {is_static}: {with_datagrams} of 5 runs sent datagrams");
    }
}

/// One end after the other takes a datagram less than both at once, and more time.
#[test]
fn the_serial_way_sends_fewer_datagrams() {
    let datagrams = |way| {
        // What is sent again, because the thread had no processor, comes on top.
        let set_up = |_| {
            let mut wires = wires(2, 2, way);
            let start = Instant::now();
            let (mut sent, mut come) = (false, false);
            while !come {
                assert!(start.elapsed() < Duration::from_secs(100), "{way:?}: no connection");
                sent = sent || send(&mut wires[0], 1);
                for wire in &mut wires {
                    come |= wire.receive().unwrap().is_some();
                }
            }
            wires.iter().map(|wire| wire.device().posted().datagrams).sum::<usize>()
        };
        (0..20).map(set_up).min().unwrap()
    };
    assert_eq!((datagrams(SetupWay::Serial), datagrams(SetupWay::Overlapped)), (4, 5));
}
