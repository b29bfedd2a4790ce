//! The wire keeps the order, whatever its adapter keeps.

use std::sync::{Arc, Mutex};

use super::{
    adapter::RmaLimits,
    fake::{FakeWire, ItemWork, RANKS, World, wires},
};
use crate::comm::{
    Atomic, AtomicOp,
    am::{
        frame::{Frame, RecordKind},
        wire::{Arrival, Broken, BulkId, Class, Key, Piece, Wire},
    },
    kit::random::Random,
};

/// Words of a rank that each other rank writes, apart from those of others.
const WORDS: usize = 8;

/// What a rank has written into its words of another.
type Model = [u64; WORDS];

/// A program of one seed. The value of a word is the number of the write, so a word that is older than it must be has a lesser value.
struct Program {
    seed: u64,
    random: Random,
    world: Arc<Mutex<World>>,
    wires: Vec<FakeWire>,
    /// Of each rank. Only pointers refer to it.
    memory: Vec<*mut u64>,
    keys: Vec<(u64, Key)>,
    model: [[Model; RANKS]; RANKS],
    writes: u64,
    /// A frame that had no room: active messages begin no transfer with its target before it has left.
    waiting: [[Option<Frame>; RANKS]; RANKS],
    /// What was written before each frame, and the number of frames received of those sent.
    before_frame: [[Vec<Model>; RANKS]; RANKS],
    received: [[usize; RANKS]; RANKS],
    /// What was written before each read or atomic operation, which reads just that: target, first word.
    before_read: Vec<(usize, usize, Model, bool)>,
    /// Memory of straight writes.
    lent: Vec<Box<[u64]>>,
    straight: usize,
}

impl Program {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut flag = || random.below(2) == 0;
        let marks = flag();
        let limits = RmaLimits {
            inline: if marks && flag() { 16 } else { 0 },
            longest: 64,
            unit: [1, 16][usize::from(flag())],
            local_regions: flag(),
            marks,
            put_put: flag(),
            put_get: flag(),
            frame_behind_write: flag(),
            atomics: true,
        };
        let (world, mut wires) = wires(limits, seed);
        let memory: Vec<*mut u64> =
            (0..RANKS).map(|_| Box::leak(vec![0_u64; RANKS * WORDS].into_boxed_slice()).as_mut_ptr()).collect();
        let open = |(wire, start): (&mut FakeWire, &*mut u64)| {
            // SAFETY: freed behind the wires.
            let opened = unsafe { wire.one_sided().unwrap().open(start.cast(), 8 * RANKS * WORDS) }.unwrap();
            (opened.address, opened.key)
        };
        let keys = wires.iter_mut().zip(&memory).map(open).collect();
        Program {
            seed,
            random,
            world,
            wires,
            memory,
            keys,
            model: Default::default(),
            writes: 0,
            waiting: Default::default(),
            before_frame: Default::default(),
            received: Default::default(),
            before_read: Vec::new(),
            lent: Vec::new(),
            straight: 0,
        }
    }

    /// A piece of a few words at a rank, which may begin at any byte.
    fn piece(&mut self, from: usize, to: usize, here: *mut u64) -> (Piece, usize, usize) {
        let first = self.random.below(WORDS);
        let count = 1 + self.random.below(3.min(WORDS - first));
        let (address, key) = self.keys[to];
        let there = address + 8 * (from * WORDS + first) as u64;
        (Piece { there, key, here: here.cast(), len: 8 * count }, first, count)
    }

    fn begin(&mut self, from: usize, to: usize) {
        if self.waiting[from][to].is_some() {
            return;
        }
        let what = self.random.below(10);
        let mut buffer = vec![self.writes + 1; 3].into_boxed_slice();
        let (piece, first, count) = self.piece(from, to, buffer.as_mut_ptr());
        let before = self.model[from][to];
        let (origin, operand) = (self.before_read.len() as u64, self.writes + 1);
        let (op, operand) = match self.random.below(4) {
            0 => (AtomicOp::Swap, operand),
            1 => (AtomicOp::MaxUnsigned, operand),
            2 => (AtomicOp::Add, operand - before[first]),
            _ => (AtomicOp::CompareSwap, operand),
        };
        let (word, atomic) = (Piece { len: 8, ..piece }, Atomic { op, width: 8, operand, comparand: before[first] });
        let wire = self.wires[from].one_sided().unwrap();
        // SAFETY: memory that is open, and a buffer that lives until the end.
        let (writes, begun) = unsafe {
            match what {
                0..3 => (true, wire.write(to, &[piece]).unwrap() == 1),
                3 => (true, wire.go_straight(to, false, piece, BulkId(self.writes)).unwrap()),
                4..6 => (false, wire.read(to, &[piece], origin, 0).unwrap() == 1),
                6..8 => (false, wire.change(to, word, atomic, origin).unwrap()),
                _ => return self.send(from, to),
            }
        };
        match (writes, begun) {
            (_, false) => {}
            (true, true) => {
                self.writes += 1;
                self.straight += usize::from(what == 3);
                self.model[from][to][first..first + count].fill(self.writes);
                self.lent.extend((what == 3).then_some(buffer));
            }
            // Nobody else writes the word, so the old value is known.
            (false, true) if what >= 6 => {
                self.writes += 1;
                self.before_read.push((to, first, before, true));
                self.model[from][to][first] = self.writes;
            }
            (false, true) => self.before_read.push((to, first, before, false)),
        }
    }

    fn send(&mut self, from: usize, to: usize) {
        let mut frame = self.wires[from].frame();
        let number = self.before_frame[from][to].len();
        self.before_frame[from][to].push(self.model[from][to]);
        frame.push(RecordKind::Put, 0, &[number as u64], &[], 0);
        frame.seal(0, true);
        self.waiting[from][to] = Some(frame);
        self.try_again(from, to);
    }

    fn try_again(&mut self, from: usize, to: usize) {
        if let Some(frame) = self.waiting[from][to].take() {
            self.waiting[from][to] = self.wires[from].send(to, Class::Request, frame).unwrap();
        }
    }

    /// The words of one rank at another, now.
    fn words(&self, from: usize, to: usize) -> Model {
        // SAFETY: it lives, and nobody writes it meanwhile.
        std::array::from_fn(|word| unsafe { self.memory[to].add(from * WORDS + word).read() })
    }

    fn look(&mut self, at: usize) {
        let seed = self.seed;
        while let Some(Arrival { from, frame, len }) = self.wires[at].receive().unwrap() {
            let (.., mut records) = frame.read(len).unwrap();
            let number = records.next().unwrap().words[0] as usize;
            assert_eq!(number, self.received[from][at], "seed {seed}: frames from {from} to {at}");
            self.received[from][at] += 1;
            let (now, before) = (self.words(from, at), self.before_frame[from][at][number]);
            let has_come = now.iter().zip(before).all(|(now, before)| *now >= before);
            assert!(has_come, "seed {seed}: frame {number} from {from} to {at} before writes: {before:?}, there is {now:?}");
            self.wires[at].keep(frame);
        }
        let (before_read, model) = (&self.before_read, &self.model);
        self.wires[at].one_sided().unwrap().take_read(&mut |origin, _, bytes| {
            let (from, first, before, is_exact) = before_read[origin as usize];
            let words: Vec<u64> = bytes.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap())).collect();
            for (k, &word) in words.iter().enumerate() {
                let least = before[first + k];
                let most = if is_exact { least } else { model[at][from][first + k] };
                assert!((least..=most).contains(&word), "seed {seed}: {at} read {word} from {from}, not {least} to {most}");
            }
        });
        let mut ended = Vec::new();
        self.wires[at].ended(&mut ended).unwrap();
        self.straight -= ended.len();
        let to = self.random.below(RANKS);
        if to != at && self.wires[at].one_sided().unwrap().have_ended(to).unwrap() {
            assert_eq!(self.words(at, to), self.model[at][to], "seed {seed}: what {at} has written is not visible to {to}");
        }
    }

    fn run(mut self) {
        for _ in 0..120 {
            let (from, to) = (self.random.below(RANKS), self.random.below(RANKS));
            match self.random.below(4) {
                0 if from != to => self.begin(from, to),
                1 => self.try_again(from, to),
                2 => self.look(from),
                _ => self.world.lock().unwrap().step(),
            }
        }
        let seed = self.seed;
        for turn in 0.. {
            assert!(turn < 5000, "seed {seed}: something does not end");
            let mut is_quiet = self.straight == 0;
            for from in 0..RANKS {
                for to in (0..RANKS).filter(|&to| to != from) {
                    self.try_again(from, to);
                    is_quiet &= self.received[from][to] == self.before_frame[from][to].len();
                    is_quiet &= self.wires[from].one_sided().unwrap().have_ended(to).unwrap();
                }
                self.look(from);
            }
            (0..4).for_each(|_| self.world.lock().unwrap().step());
            if is_quiet {
                break;
            }
        }
        for (from, to) in (0..RANKS).flat_map(|from| (0..RANKS).map(move |to| (from, to))) {
            assert_eq!(self.words(from, to), self.model[from][to], "seed {seed}: from {from} to {to}");
        }
        drop(self.wires);
        // SAFETY: of boxes of that length, which nobody refers to any more.
        self.memory
            .iter()
            .for_each(|&start| drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(start, RANKS * WORDS)) }));
    }
}

/// Writes, reads and frames of three ranks, over adapters that keep no order, or some.
#[test]
fn order_is_kept_whatever_the_adapter_keeps() {
    let seeds = if std::env::var_os("GA_TEST_LONG").is_some() { 100_000 } else { 5_000 };
    (0..seeds).for_each(|seed| Program::new(seed).run());
}

/// An adapter that keeps all orders, and has marks.
const ORDERED: RmaLimits = RmaLimits {
    inline: 0,
    longest: 64,
    unit: 1,
    local_regions: false,
    marks: true,
    put_put: true,
    put_get: true,
    frame_behind_write: true,
    atomics: false,
};

/// A look sets one mark for all writes to a peer, and a flush without writes takes nothing.
#[test]
fn a_flush_takes_one_mark() {
    let (world, mut wires) = wires(ORDERED, 1);
    let mut there = [0_u64; 8];
    // SAFETY: it outlives the wires' use.
    let opened = unsafe { wires[1].open_for_test(there.as_mut_ptr().cast(), 64) };
    let marks = || world.lock().unwrap().under_way[0][1].iter().filter(|item| item.what == ItemWork::Mark).count();
    assert!(wires[0].one_sided().unwrap().have_ended(1).unwrap());
    assert_eq!(marks(), 0);
    let here = [7_u64];
    for word in 0..3 {
        let piece = Piece { there: opened.0 + 8 * word, key: opened.1, here: here.as_ptr().cast_mut().cast(), len: 8 };
        // SAFETY: both live.
        while unsafe { wires[0].one_sided().unwrap().write(1, &[piece]) }.unwrap() == 0 {}
    }
    while marks() == 0 {
        assert!(!wires[0].one_sided().unwrap().have_ended(1).unwrap());
    }
    for _ in 0..20 {
        assert!(!wires[0].one_sided().unwrap().have_ended(1).unwrap());
        assert_eq!(marks(), 1);
    }
    while !wires[0].one_sided().unwrap().have_ended(1).unwrap() {
        world.lock().unwrap().step();
    }
    assert_eq!((marks(), there[..3].to_vec()), (0, vec![7; 3]));
}

/// A write into memory that is not open ends the job after a moment, with the rank's number, and changes nothing.
#[test]
fn a_wrong_key_is_an_error_with_the_rank() {
    let (world, mut wires) = wires(ORDERED, 1);
    let mut there = [0_u64; 8];
    // SAFETY: it outlives the wires' use.
    let (address, key) = unsafe { wires[2].open_for_test(there.as_mut_ptr().cast(), 32) };
    let here = [7_u64; 2];
    let wrong = Key([key.0[0] + 1, 0]);
    for (there, key) in [(address, wrong), (address + 24, key)] {
        let piece = Piece { there, key, here: here.as_ptr().cast_mut().cast(), len: 16 };
        // SAFETY: both live.
        while unsafe { wires[0].one_sided().unwrap().write(2, &[piece]) }.unwrap() == 0 {}
    }
    let error = loop {
        world.lock().unwrap().step();
        assert!(!matches!(wires[0].one_sided().unwrap().have_ended(2), Ok(true)), "what has failed is visible");
        if let Err(Broken(why)) = wires[0].receive() {
            break why;
        }
    };
    assert_eq!(error, "rank 2 cannot be reached: a region that is not open");
    assert_eq!(there, [0; 8]);
}

impl FakeWire {
    /// # Safety
    /// As [`open`](crate::comm::am::wire::OneSided::open).
    unsafe fn open_for_test(&mut self, start: *mut u8, len: usize) -> (u64, Key) {
        // SAFETY: the caller's promise.
        let opened = unsafe { self.one_sided().unwrap().open(start, len) }.unwrap();
        (opened.address, opened.key)
    }
}
