//! Wires of Gemini over the software device, all driven by one thread.

use std::sync::Arc;

use super::{
    adapter::GeminiAdapter,
    dmapp::{Dmapp, DmappRefusal, DmappSegment, Element, RemoteElements},
    mailboxes::Mailboxes,
    soft::SoftDmapp,
};
use crate::comm::{
    Atomic, AtomicOp,
    am::{
        frame::RecordKind,
        wire::{Arrival, Class, OneSided, Opened, Piece, Wire},
    },
    kit::random::Random,
    rma::wire::RmaWire,
    soft::fabric::{MovingFabric, MovingRules},
    testing::wires::{self, outside_is_refused},
};

const RULES: [MovingRules; 2] = [MovingRules::Strict, MovingRules::Relaxed];

type SoftWire = RmaWire<GeminiAdapter<SoftDmapp>, Mailboxes>;

fn wires(rules: MovingRules, seed: u64, ranks: usize) -> Vec<SoftWire> {
    wires_on(&MovingFabric::new(rules, seed), ranks)
}

fn wires_on(fabric: &Arc<MovingFabric>, ranks: usize) -> Vec<SoftWire> {
    wires::wires(ranks, |rank| {
        let mut adapter = GeminiAdapter::new(SoftDmapp::open(fabric, rank), ranks);
        let mailboxes = Mailboxes::new(&mut adapter, rank, ranks).unwrap();
        (adapter, mailboxes)
    })
}

/// Sends a frame that holds a number some times. False if there is no room.
fn send(wire: &mut SoftWire, to: usize, class: Class, number: u64, words: usize) -> bool {
    let mut frame = wire.frame();
    frame.direct(0);
    frame.push(RecordKind::Flush, 0, &vec![number; words], &[], 0);
    match wire.send(to, class, frame).unwrap() {
        None => true,
        Some(frame) => {
            wire.keep(frame);
            false
        }
    }
}

fn receive(wire: &mut SoftWire) -> Option<(usize, Vec<u8>)> {
    let Arrival { from, frame, len } = wire.receive().unwrap()?;
    let bytes = frame.bytes()[..len].to_vec();
    wire.keep(frame);
    Some((from, bytes))
}

/// More ranks than a door has cards meet one rank, and it them, at any time; all frames arrive once, whole and in their order.
#[test]
fn more_ranks_than_cards_meet_at_one_door() {
    const RANKS: usize = 80;
    const EACH: usize = 12;
    for seed in 0..6 {
        let (mut random, mut wires) = (Random::new(seed), wires(RULES[seed as usize % 2], seed, RANKS));
        let mut sent = [0; RANKS];
        let mut heard: Vec<Vec<Vec<u8>>> = vec![Vec::new(); RANKS];
        let (mut answered, mut answers) = ([0; RANKS], [0; RANKS]);
        let mut turns = 0_u64;
        while (1..RANKS).any(|rank| answers[rank] < EACH) {
            turns += 1;
            assert!(turns < 5_000_000, "seed {seed}: frames are lost");
            let rank = if random.below(4) == 0 { 0 } else { random.below(RANKS) };
            if let Some((from, bytes)) = receive(&mut wires[rank]) {
                match rank {
                    0 => heard[from].push(bytes),
                    _ => answers[rank] += 1,
                }
            } else if rank == 0 {
                let to = 1 + random.below(RANKS - 1);
                if answered[to] < heard[to].len() && send(&mut wires[0], to, Class::Reply, 0, 1) {
                    answered[to] += 1;
                }
            } else if sent[rank] < EACH && send(&mut wires[rank], 0, Class::Request, sent[rank] as u64, 10 * sent[rank]) {
                sent[rank] += 1;
            }
        }
        for heard in &heard[1..] {
            let lens: Vec<usize> = heard.iter().map(Vec::len).collect();
            assert!(lens.is_sorted() && lens.len() == EACH, "seed {seed}: {lens:?}");
        }
    }
}

/// Where what has ended is visible, a fence sends nothing. Elsewhere it sends one read to each peer that was written, whatever the number of ranks.
#[test]
fn a_fence_reads_once_from_each_peer_that_was_written() {
    const RANKS: usize = 9;
    for (rules, reads) in RULES.into_iter().zip([0, 3]) {
        let fabric = MovingFabric::new(rules, 5);
        let (mut wires, mut memory) = (wires_on(&fabric, RANKS), [[0_u64; 8]; RANKS]);
        let open = |(wire, words): (&mut SoftWire, &mut [u64; 8])| {
            // SAFETY: the arrays outlive the wires, and only pointers lead to them until these are gone.
            unsafe { wire.one_sided().unwrap().open(words.as_mut_ptr().cast(), 64) }.unwrap()
        };
        let opened: Vec<Opened> = wires.iter_mut().zip(&mut memory).map(open).collect();
        let (before, mut value) = (fabric.begun(), 7_u64);
        for to in [2, 3, 5] {
            let Opened { address, key, .. } = opened[to];
            for word in 0..4 {
                let piece = Piece { there: address + 16 * word, key, here: (&raw mut value).cast(), len: 8 };
                // SAFETY: open memory, and a word of this test.
                assert_eq!(unsafe { wires[0].write(to, &[piece]) }.unwrap(), 1);
            }
        }
        for to in 1..RANKS {
            while !wires[0].have_ended(to).unwrap() {}
        }
        assert_eq!(fabric.begun() - before, 3 * 4 + reads, "{rules:?}");
        drop(wires);
        assert!([2, 3, 5].iter().all(|&rank| memory[rank] == [7, 0, 7, 0, 7, 0, 7, 0]));
    }
}

/// The device refuses what DMAPP refuses, and says which rank and where.
#[test]
fn wrong_widths_places_and_operations_are_refused() {
    let fabric = MovingFabric::new(MovingRules::Strict, 1);
    let (mut one, mut other) = (SoftDmapp::open(&fabric, 0), SoftDmapp::open(&fabric, 1));
    let (mut far, mut near) = ([7_u64; 4], [9_u64; 4]);
    let here: *mut u8 = near.as_mut_ptr().cast();
    // SAFETY: the arrays outlive the devices, and only pointers lead to them meanwhile.
    let segment = unsafe { other.register(far.as_mut_ptr().cast(), 24) }.unwrap();
    let start = far.as_mut_ptr().expose_provenance() as u64;
    let at = |address, count, element| RemoteElements { pe: 1, segment, address, count, element };
    let atomic = Atomic { op: AtomicOp::Add, width: 8, operand: 1, comparand: 0 };
    // SAFETY: as above.
    let refused = unsafe {
        [
            one.put(at(start + 4, 1, Element::Word8), here),
            one.get(at(start, 1, Element::Word8), here.wrapping_add(4)),
            one.put(at(start, 0, Element::Word8), here),
            one.change(at(start + 4, 1, Element::Word8), atomic, here),
            one.change(at(start, 1, Element::Word8), Atomic { op: AtomicOp::Swap, ..atomic }, here),
            one.put(RemoteElements { segment: DmappSegment([1, 2]), ..at(start, 1, Element::Word8) }, here),
        ]
    };
    let words = ["ALIGNMENT", "ALIGNMENT", "INVALID_PARAM: 0 elements", "ALIGNMENT", "NOT_SUPPORTED", "INVALID_PARAM"];
    for (refused, word) in refused.into_iter().zip(words) {
        assert!(matches!(&refused, Err(DmappRefusal::Why(why)) if why.contains(word)), "{refused:?}");
    }
    // SAFETY: as above.
    let work = unsafe { one.put(at(start + 16, 2, Element::Word8), here) }.unwrap();
    let said = one.test(work).unwrap_err();
    assert!(said.contains(&format!("16 bytes at {:#x}", start + 16)) && said.contains("rank 1"), "{said}");
    drop((one, other));
    assert_eq!(far, [7; 4], "nothing is overwritten");
}

#[test]
fn what_is_outside_of_open_memory_is_refused_with_the_rank() {
    for rules in RULES {
        let refused = outside_is_refused(wires(rules, 1, 2));
        assert!(refused.contains("bytes at 0x"), "{refused}");
    }
}

/// Ranks change words of one of them, the owner too, by what the adapter can do and what it cannot: each finds a place among all.
#[test]
fn atomic_operations_of_all_ranks_exclude_each_other() {
    const RANKS: usize = 3;
    const EACH: u64 = 20;
    let of = |op, operand| Atomic { op, width: 8, operand, comparand: 0 };
    for seed in 0..60 {
        let (mut random, mut wires) = (Random::new(seed), wires(RULES[seed as usize % 2], seed, RANKS));
        let mut words = [0_u64; 3];
        // SAFETY: the array outlives the wires, and only pointers lead to it until these are gone.
        let Opened { address, key, .. } = unsafe { wires[0].one_sided().unwrap().open((&raw mut words).cast(), 24) }.unwrap();
        let (mut sent, mut seen, mut turns) = ([0; RANKS], vec![Vec::new(); 3], 0);
        while seen.iter().map(Vec::len).sum::<usize>() < RANKS * EACH as usize {
            turns += 1;
            assert!(turns < 1_000_000, "seed {seed}: some do not end");
            let (rank, word) = (random.below(RANKS), random.below(3));
            let one_sided = wires[rank].one_sided().unwrap();
            one_sided.look_for_read().unwrap();
            one_sided
                .take_read(&mut |origin, _, bytes| seen[origin as usize].push(u64::from_le_bytes(bytes.try_into().unwrap())));
            // No two of one rank are equal.
            let value = 1 + RANKS as u64 * sent[rank] + rank as u64;
            let atomic = [of(AtomicOp::Add, 1), of(AtomicOp::Swap, value), of(AtomicOp::MaxUnsigned, value)][word];
            let piece = Piece { there: address + 8 * word as u64, key, here: std::ptr::null_mut(), len: 8 };
            // SAFETY: an open word.
            sent[rank] += u64::from(sent[rank] < EACH && unsafe { one_sided.change(0, piece, atomic, word as u64) }.unwrap());
        }
        drop(wires);
        let [counts, swapped, most] = &mut seen[..] else { unreachable!() };
        counts.sort_unstable();
        assert_eq!(*counts, (0..words[0]).collect::<Vec<_>>(), "seed {seed}: each count once");
        swapped.push(words[1]);
        swapped.sort_unstable();
        assert!(swapped.windows(2).all(|pair| pair[0] < pair[1]), "seed {seed}: each value replaces one: {swapped:?}");
        assert!(most.iter().all(|old| *old <= words[2]), "seed {seed}");
    }
}
