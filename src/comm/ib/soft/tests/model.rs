//! Four threads, all kinds of works, 200 seeds, against a model: what each rank's memory holds in the end, and what each read brings.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::atomic::{AtomicBool, AtomicUsize},
};

use super::*;
use crate::comm::kit::random::Random;

const RANKS: usize = 4;
const SEEDS: u64 = 200;
/// Chains that each rank posts.
const CHAINS: usize = 40;
/// Of a send queue.
const DEPTH: usize = 16;

/// A rank's memory: a word that all add to, one that each rank swaps; an area that each rank writes; where reads and old values land, a slot
/// for each work under way at each peer; what is written from; receives.
const SWAPPED: usize = 64;
const AREAS: usize = 1024;
const AREA: usize = 600;
const LANDINGS: usize = AREAS + RANKS * 1024;
const SOURCES: usize = LANDINGS + RANKS * DEPTH * 1024;
const RECEIVES: usize = SOURCES + RANKS * DEPTH * 1024;
const RECEIVE: usize = 128;
const POSTED: usize = 8;
const BYTES: usize = RECEIVES + POSTED * RECEIVE;

/// What a rank expects of a work under way.
enum Expected {
    Nothing,
    /// These bytes have been read.
    Bytes(Vec<u8>),
    /// The old value of the word that only this rank swaps.
    Old(u64),
    /// An old value of the word that all add to.
    Added,
}

/// What a rank knows of one peer.
struct Peer {
    pair: Pair,
    /// What its area for this rank holds when all posted works are done.
    area: Vec<u8>,
    swapped: u64,
    /// Works under way, oldest first: id, landing slot, true if it is reported, and what is expected.
    works: VecDeque<(u64, usize, bool, Expected)>,
    /// Reads and atomics among them.
    reads: usize,
    posted: u64,
    sent: u64,
    added: u64,
    olds: Vec<u64>,
}

struct Rank<'a> {
    me: usize,
    ends: &'a [BareEnd],
    random: Random,
    peers: Vec<Peer>,
    /// Messages that have come, by the number of the pair.
    received: BTreeMap<u32, u64>,
}

impl Rank<'_> {
    fn end(&self) -> &BareEnd {
        &self.ends[self.me]
    }

    fn landing(peer: usize, slot: usize) -> usize {
        LANDINGS + (peer * DEPTH + slot) * 1024
    }

    fn source(peer: usize, slot: usize) -> usize {
        SOURCES + (peer * DEPTH + slot) * 1024
    }

    /// A work for a peer, and what it should do.
    fn work(&mut self, to: usize) -> (Work, Expected) {
        let (end, target) = (&self.ends[self.me], &self.ends[to]);
        let id = self.peers[to].posted;
        self.peers[to].posted += 1;
        let slot = id as usize % DEPTH;
        let (landing, source) = (Self::landing(to, slot), Self::source(to, slot));
        let peer = &mut self.peers[to];
        let (at, kind) = (self.random.below(AREA), self.random.below(6));
        let len = self.random.below(AREA - at + 1);
        let area = AREAS + 1024 * self.me;
        let mut work = end.work(id, Opcode::Read { from: target.target(area + at) }, landing, len);
        work.signaled = self.random.below(3) == 0;
        let mut expected = Expected::Nothing;
        match kind {
            0 | 1 => {
                let bytes: Vec<u8> = (0..len).map(|_| self.random.below(256) as u8).collect();
                end.memory.write(source, &bytes);
                peer.area[at..at + len].copy_from_slice(&bytes);
                work.kind = Opcode::Write { to: target.target(area + at) };
                work.local = end.piece(source, len);
                work.inline = len <= end.device.limits().inline && self.random.below(2) == 0;
                // A read would see it or not.
                work.fence = peer.reads > 0;
            }
            2 => {
                let message = [self.me as u64, peer.sent];
                end.memory.write(source, &message.map(u64::to_le_bytes).concat());
                work.kind = Opcode::Send { immediate: Some(peer.sent as u32) };
                work.local = end.piece(source, 16);
                work.fence = self.random.below(2) == 0;
                peer.sent += 1;
            }
            3 => expected = Expected::Bytes(peer.area[at..at + len].to_vec()),
            4 => {
                let operand = 1 + self.random.below(9) as u64;
                peer.added += operand;
                work.kind = add(target.target(0), operand);
                work.local.len = 8;
                expected = Expected::Added;
            }
            _ => {
                let is_right = self.random.below(2) == 0;
                let (old, value) = (peer.swapped, self.random.below(1000) as u64);
                let expected_there = if is_right { old } else { old + 1 };
                work.kind = Opcode::CompareSwap { at: target.target(SWAPPED + 8 * self.me), expected: expected_there, value };
                work.local.len = 8;
                peer.swapped = if is_right { value } else { old };
                expected = Expected::Old(old);
            }
        }
        if !matches!(expected, Expected::Nothing) {
            peer.reads += 1;
        }
        (work, expected)
    }

    /// Posts a chain to a peer, as long as there is room; the last work is signaled, so that room comes again.
    fn post_chain(&mut self, to: usize) {
        let room = DEPTH - self.peers[to].works.len();
        let len = self.random.below(room.min(5) + 1);
        let mut chain = Vec::new();
        for k in 0..len {
            let (mut work, expected) = self.work(to);
            work.signaled |= k + 1 == len;
            self.peers[to].works.push_back((work.id, (work.id as usize) % DEPTH, work.signaled, expected));
            chain.push(work);
        }
        self.end().post(self.peers[to].pair, &chain);
    }

    /// A work has ended, reported or covered by a later report.
    fn ended(&mut self, from: usize, slot: usize, expected: Expected) {
        let landing = Self::landing(from, slot);
        let reads = !matches!(expected, Expected::Nothing);
        match expected {
            Expected::Nothing => {}
            Expected::Bytes(bytes) => assert_eq!(self.end().memory.read(landing, bytes.len()), bytes),
            Expected::Old(old) => assert_eq!(load(self.end(), landing), old),
            Expected::Added => {
                let old = load(self.end(), landing);
                self.peers[from].olds.push(old);
            }
        }
        self.peers[from].reads -= usize::from(reads);
    }

    fn poll(&mut self) {
        for completion in self.end().poll() {
            let done = completion.outcome.unwrap();
            let from = self.peers.iter().position(|peer| peer.pair.number == completion.number).unwrap();
            if let Done::Received { len, immediate, from: None } = done {
                let at = RECEIVES + completion.id as usize * RECEIVE;
                let count = self.received.entry(completion.number).or_default();
                let words: Vec<u64> = (0..2).map(|k| load(&self.ends[self.me], at + 8 * k)).collect();
                assert_eq!((len, immediate, words), (16, Some(*count as u32), vec![from as u64, *count]), "messages in order");
                *count += 1;
                self.end().receive(completion.id, at, RECEIVE);
                continue;
            }
            loop {
                let (id, slot, signaled, expected) = self.peers[from].works.pop_front().expect("a report of nothing");
                self.ended(from, slot, expected);
                if id == completion.id {
                    assert!(signaled);
                    break;
                }
                assert!(!signaled, "works are reported in order");
            }
        }
    }

    fn run(&mut self) {
        for _ in 0..CHAINS {
            let to = self.random.below(RANKS);
            self.post_chain(to);
            if self.random.below(2) == 0 {
                self.poll();
            }
        }
    }

    fn is_done(&self) -> bool {
        self.peers.iter().all(|peer| peer.works.is_empty())
    }
}

/// Tells the others that a thread panics, so that they do not wait for it.
struct Alarm<'a>(&'a AtomicBool);

impl Alarm<'_> {
    /// Returns when `ready`, and lets the rank answer until then.
    fn wait(&self, rank: &mut Rank<'_>, mut ready: impl FnMut(&Rank<'_>) -> bool) {
        let start = Instant::now();
        while !ready(rank) {
            assert!(!self.0.load(Ordering::Relaxed), "another rank has failed");
            assert!(start.elapsed() < LONG, "rank {} waits", rank.me);
            rank.poll();
            std::thread::yield_now();
        }
    }
}

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        self.0.fetch_or(std::thread::panicking(), Ordering::Relaxed);
    }
}

fn run(hub: &Hub, seed: u64) {
    let ends: Vec<BareEnd> = (0..RANKS).map(|_| hub.end(BYTES)).collect();
    // Each rank has a pair to each, itself too: that one is connected to itself.
    let pairs: Vec<Vec<Pair>> = ends.iter().map(|end| (0..RANKS).map(|_| end.device.create(DEPTH).unwrap()).collect()).collect();
    // Some answer as many reads as they like; retries of receives are without end.
    let manner = Manner { read_depth: 1 + (seed % 4) as u8, answer_depth: 4, receive_retries: 7, ..MANNER };
    for (one, two) in (0..RANKS).flat_map(|one| (0..RANKS).map(move |two| (one, two))) {
        connect_side(&ends[one], pairs[one][two], &ends[two], pairs[two][one], manner);
    }
    let sent: Vec<AtomicUsize> = (0..RANKS * RANKS).map(|_| AtomicUsize::new(0)).collect();
    let (failed, all_sent, finished) = (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
    let ranks: Vec<Rank> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..RANKS)
            .map(|me| {
                let (ends, pairs, sent, failed, all_sent, finished) = (&ends, &pairs, &sent, &failed, &all_sent, &finished);
                scope.spawn(move || {
                    let alarm = Alarm(failed);
                    let peers = pairs[me].iter().map(|&pair| Peer {
                        pair,
                        area: vec![0; AREA],
                        swapped: 0,
                        works: VecDeque::new(),
                        reads: 0,
                        posted: 0,
                        sent: 0,
                        added: 0,
                        olds: Vec::new(),
                    });
                    let random = Random::new(seed << 8 | me as u64);
                    let mut rank = Rank { me, ends, random, peers: peers.collect(), received: BTreeMap::new() };
                    (0..POSTED).for_each(|k| rank.end().receive(k as u64, RECEIVES + k * RECEIVE, RECEIVE));
                    rank.run();
                    for (to, peer) in rank.peers.iter().enumerate() {
                        sent[me * RANKS + to].store(peer.sent as usize, Ordering::Relaxed);
                    }
                    all_sent.fetch_add(1, Ordering::AcqRel);
                    alarm.wait(&mut rank, |_| all_sent.load(Ordering::Acquire) == RANKS);
                    let expected: u64 = (0..RANKS).map(|from| sent[from * RANKS + me].load(Ordering::Relaxed) as u64).sum();
                    alarm.wait(&mut rank, |rank| rank.is_done() && rank.received.values().sum::<u64>() == expected);
                    finished.fetch_add(1, Ordering::AcqRel);
                    alarm.wait(&mut rank, |_| finished.load(Ordering::Acquire) == RANKS);
                    rank
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for (to, end) in ends.iter().enumerate() {
        for rank in &ranks {
            assert_eq!(end.memory.read(AREAS + 1024 * rank.me, AREA), rank.peers[to].area, "area of {} at {to}", rank.me);
            assert_eq!(load(end, SWAPPED + 8 * rank.me), rank.peers[to].swapped);
        }
        assert_eq!(load(end, 0), ranks.iter().map(|rank| rank.peers[to].added).sum::<u64>());
        let mut olds: Vec<u64> = ranks.iter().flat_map(|rank| rank.peers[to].olds.clone()).collect();
        let count = olds.len();
        olds.sort_unstable();
        olds.dedup();
        assert_eq!(olds.len(), count, "two additions saw one value");
    }
}

#[test]
fn four_threads_with_all_kinds_of_works_do_what_a_model_does() {
    for seed in 0..SEEDS {
        let [threads, sockets] = hubs(seed);
        run(&threads, seed);
        if seed % 10 == 0 {
            run(&sockets, seed);
        }
    }
}
