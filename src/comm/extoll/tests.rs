//! Wires of EXTOLL over the software engines, all driven by one thread.

use super::{
    adapter::ExtollAdapter,
    engines::{CommandBytes, Engines, LONGEST_COMMAND, PACKET},
    packets::{PacketDesign, VeloPackets},
    soft::SoftEngines,
};
use crate::comm::{
    am::{
        frame::RecordKind,
        wire::{Arrival, Class, OneSided, Opened, Piece, Wire},
    },
    kit::random::Random,
    rma::{adapter::RmaAccess, road::FrameRoad, wire::RmaWire},
    soft::fabric::{MovingFabric, MovingRules},
    testing::wires::{self, outside_is_refused},
};

fn wires(seed: u64, ranks: usize) -> Vec<RmaWire<ExtollAdapter<SoftEngines>, VeloPackets>> {
    let fabric = MovingFabric::new(MovingRules::InOrder, seed);
    wires::wires(ranks, |rank| (ExtollAdapter::new(SoftEngines::open(&fabric, rank)).unwrap(), VeloPackets::new(ranks)))
}

/// What the paper says of its messages of up to 16 arguments of four bytes, with data or not; the eight bytes of a header are in the first packet, or
/// in the first design go alone.
#[test]
fn frames_take_as_many_packets_as_in_the_paper() {
    for (design, numbers) in [(PacketDesign::Second, [1, 1, 2, 2, 147, 148]), (PacketDesign::First, [1, 2, 2, 3, 148, 149])] {
        let fabric = MovingFabric::new(MovingRules::InOrder, 7);
        let [mut one, mut other] = [0, 1].map(|rank| ExtollAdapter::new(SoftEngines::open(&fabric, rank)).unwrap());
        let mut packets = VeloPackets::new(2).of_design(design);
        for (arguments, data, number) in
            [0, 12, 13, 16, 0, 16].into_iter().zip([0, 0, 0, 0, 8192, 8192]).zip(numbers).map(|((a, d), n)| (a, d, n))
        {
            assert!(packets.send(&mut one, 1, Class::Request, &vec![7; 4 * arguments + data]).unwrap());
            let (mut found, mut bytes, mut nothing) = (0, 0, 0);
            while FrameRoad::<ExtollAdapter<SoftEngines>>::leaving(&packets) > 0 || nothing < 100 {
                packets.tend(&mut one).unwrap();
                match other.receive(&mut [0; PACKET]) {
                    Some((_, len)) => (found, bytes) = (found + 1, bytes + len),
                    None => nothing += 1,
                }
            }
            assert_eq!((found, bytes), (number, 8 + 4 * arguments + data), "{design:?}: {arguments} arguments, {data} bytes");
        }
    }
}

/// A queue that nobody empties overflows, and says so. Commands of a wrong length, or of memory that is not registered, are refused.
#[test]
fn notifications_that_nobody_takes_are_an_error() {
    let fabric = MovingFabric::new(MovingRules::InOrder, 3);
    let [mut one, mut other] = [0, 1].map(|rank| SoftEngines::open(&fabric, rank));
    let (mut near, mut far) = ([5_u64; 4], [0_u64; 4]);
    // SAFETY: the arrays outlive the engines, and only pointers lead to them meanwhile.
    let (here, there) = unsafe {
        let (_, here) = one.register(near.as_mut_ptr().cast(), 32, RmaAccess::Local).unwrap();
        (here, other.register(far.as_mut_ptr().cast(), 32, RmaAccess::Remote).unwrap().1)
    };
    let of = |here, len| CommandBytes { here, there, len };
    // SAFETY: as above.
    unsafe {
        assert!(one.put(1, of(here, 0)).unwrap_err().contains("0 bytes"));
        assert!(one.put(1, of(here, LONGEST_COMMAND + 1)).is_err());
        assert!(one.get(1, of(here + 8, 32)).unwrap_err().contains("not registered by rank 0"));
        for _ in 0..1 << 14 {
            one.put(1, of(here, 8)).unwrap();
        }
    }
    let overflown = (0..1 << 20).find_map(|_| {
        one.go_on();
        (one.waiting() >= 1 << 14).then(|| one.notification().unwrap_err())
    });
    assert!(overflown.unwrap().contains("overflown"));
    one.close();
    other.close();
    assert_eq!((far[0], far[1]), (5, 0));
}

/// Frames of all lengths from everybody to everybody, with packets that are late and mailboxes that are full.
#[test]
fn frames_arrive_whole_and_in_their_order() {
    const RANKS: usize = 5;
    const EACH: usize = 20;
    for seed in 0..20 {
        let (mut random, mut wires) = (Random::new(seed), wires(seed, RANKS));
        let (mut sent, mut heard) = ([[0; RANKS]; RANKS], [[0; RANKS]; RANKS]);
        let mut turns = 0_u64;
        while heard.as_flattened().iter().sum::<usize>() < RANKS * (RANKS - 1) * EACH {
            turns += 1;
            assert!(turns < 5_000_000, "seed {seed}: frames are lost");
            let (rank, to) = (random.below(RANKS), random.below(RANKS));
            if random.below(2) == 0 {
                if let Some(Arrival { from, frame, len }) = wires[rank].receive().unwrap() {
                    let number = heard[from][rank];
                    assert_eq!(frame.bytes()[..len].len(), len);
                    let words =
                        frame.bytes()[..len].chunks_exact(8).filter(|word| **word == (0xABCD_0000 + number as u64).to_le_bytes());
                    assert_eq!(words.count(), 1 + 10 * number, "seed {seed}: frame {number} of rank {from}");
                    heard[from][rank] += 1;
                    wires[rank].keep(frame);
                }
            } else if rank != to && sent[rank][to] < EACH {
                let number = sent[rank][to];
                let mut frame = wires[rank].frame();
                frame.direct(0);
                frame.push(RecordKind::Flush, 0, &vec![0xABCD_0000 + number as u64; 1 + 10 * number], &[], 0);
                match wires[rank].send(to, Class::Request, frame).unwrap() {
                    None => sent[rank][to] += 1,
                    Some(frame) => wires[rank].keep(frame),
                }
            }
        }
    }
}

#[test]
fn what_is_outside_of_open_memory_is_refused_with_the_rank() {
    let refused = outside_is_refused(wires(1, 2));
    assert!(refused.contains("40 bytes at 0x"), "{refused}");
}

/// Words go from one rank to places of several others, each from memory that is used again as soon as its put has left.
#[test]
fn puts_to_several_ranks_keep_their_bytes() {
    const RANKS: usize = 4;
    const WORDS: usize = 64;
    for seed in 0..20 {
        let (mut random, mut wires) = (Random::new(seed), wires(seed, RANKS));
        let mut memory = vec![vec![0_u64; WORDS]; RANKS];
        // SAFETY: the vectors outlive the wires, and are looked at behind them.
        let mut open =
            |rank: usize| unsafe { wires[rank].one_sided().unwrap().open(memory[rank].as_mut_ptr().cast(), 8 * WORDS) };
        let opened: Vec<Opened> = (0..RANKS).map(|rank| open(rank).unwrap()).collect();
        let mut model = vec![vec![0_u64; WORDS]; RANKS];
        for number in 1..4000_u64 {
            let (to, at) = (1 + random.below(RANKS - 1), random.below(WORDS));
            let there = opened[to].address + 8 * at as u64;
            let piece = Piece { there, key: opened[to].key, here: (&raw const number).cast_mut().cast(), len: 8 };
            // SAFETY: a word of this test, and one that is open.
            if unsafe { wires[0].write(to, &[piece]) }.unwrap() == 1 {
                model[to][at] = number;
            }
            if random.below(4) == 0 {
                let _ = wires[0].have_ended(to).unwrap();
            }
        }
        while !(1..RANKS).all(|to| wires[0].have_ended(to).unwrap()) {}
        drop(wires);
        assert_eq!(memory, model, "seed {seed}");
    }
}
