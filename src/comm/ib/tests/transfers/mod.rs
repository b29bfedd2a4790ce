//! Puts and gets as writes and reads of the adapter: their cost, and that broken connections change nothing.
//!
//! One thread drives two ranks, each on its own machine, with all of the active messages above them.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use super::faulty::{Faulty, Posted, Rates};
use crate::{
    comm::{
        Atomic, AtomicOp, Awaited, Conduit, Connections, Event, Issued, Local, Operation, Remote, Scale, SignalOp, SignalWord,
        Strided, Token, Topology,
        am::Am,
        ib::{
            device::Device,
            links::{DEPTHS, Links},
            soft::{Rules, SoftFabric},
            verbs,
        },
        kit::random::Random,
        node::{self, Member},
        protocol::connection::{ConnectionSettings, SetupWay},
        start::devices::directory::Directory,
    },
    index::Loops,
    memory::kernels,
};

mod given_up;

/// Bytes of a segment that are open to the other rank, and words of them behind those that the library needs.
const OPEN: usize = 2 << 20;
const DATA: usize = 1 << 16;
const WORDS: usize = (OPEN - DATA) / 8;

struct Rank {
    conduit: Box<Conduit>,
    posted: Box<dyn Fn() -> Posted>,
    events: Vec<Event>,
}

fn ranks(rates: Rates, seed: u64) -> [Rank; 2] {
    ranks_whose_waits_end(false, rates, seed)
}

/// Two ranks of a job with a timeout or not.
fn ranks_whose_waits_end(may_give_up: bool, rates: Rates, seed: u64) -> [Rank; 2] {
    let fabric = SoftFabric::new(Rules { seed, ..Rules::default() });
    ranks_over([0, 1].map(|_| fabric.open(DEPTHS).unwrap()), may_give_up, rates, seed)
}

fn ranks_over<D: Device + 'static>(devices: [D; 2], may_give_up: bool, rates: Rates, seed: u64) -> [Rank; 2] {
    let directory = Arc::new(Directory::shared(2).unwrap());
    let mut endpoint = 0;
    devices.map(|device| {
        let device = Faulty::new(device, rates, seed + endpoint as u64);
        let posted = Box::new(device.counter());
        let settings = ConnectionSettings { endpoint, endpoints: 2, token: 7, way: SetupWay::Overlapped, budget: 2 };
        let wire = Links::new(device, directory.clone(), settings).unwrap();
        let machine = Arc::new(node::Fabric::new(1, 16 << 20, false).unwrap());
        let member = Member::new(machine, Topology::of_machines(endpoint, &[0, 1]), 1, None);
        let am = Arc::new(Am::new(wire, &member, true, may_give_up, None));
        let conduit = Box::new(Conduit::with_network(member, am));
        // As arrays come: what lies in two ranges is written in two pieces.
        conduit.commit(0..OPEN / 2).unwrap();
        conduit.commit(OPEN / 2..OPEN).unwrap();
        endpoint += 1;
        Rank { conduit, posted, events: Vec::new() }
    })
}

impl Rank {
    /// A word of this rank's own segment.
    fn word(&self, at: usize) -> u64 {
        let word = self.conduit.segment().as_ptr().wrapping_add(DATA + 8 * at);
        // SAFETY: committed, aligned, and accessed by kernels.
        unsafe { kernels::load(word.cast()) }
    }
}

/// Lets both ranks go on until `done` finds what it looks for among the events of one of them.
fn until<T>(ranks: &mut [Rank; 2], at: usize, mut done: impl FnMut(&Event) -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        for rank in ranks.iter_mut() {
            rank.conduit.poll(&mut rank.events);
        }
        if let Some(k) = ranks[at].events.iter().position(|event| done(event).is_some()) {
            return done(&ranks[at].events.swap_remove(k)).unwrap();
        }
        assert!(start.elapsed() < Duration::from_secs(60), "{:?}; {:?}", ranks[0].conduit, ranks[1].conduit);
    }
}

fn flush(ranks: &mut [Rank; 2], at: usize) {
    let token = Token(900 + at as u64);
    // SAFETY: a flush touches no memory of the caller.
    let _ = unsafe { ranks[at].conduit.issue(&Operation::Flush { rank: 1 - at }, token) };
    until(ranks, at, |event| matches!(event, Event::RemoteDone(done) if *done == token).then_some(()));
}

/// Returns true if all that rank 0 has put to rank 1 is known to be visible.
fn is_flushed(ranks: &[Rank; 2]) -> bool {
    ranks[0].conduit.is_complete(Awaited::Puts(1))
}

fn put(ranks: &[Rank; 2], at: usize, word: usize, values: &[u64], token: Token) -> Issued {
    let local = Local { ptr: values.as_ptr().cast_mut().cast(), len: size_of_val(values) };
    // SAFETY: the values live until the completion is polled; the words are committed.
    unsafe { ranks[at].conduit.put(Remote { rank: 1 - at, offset: DATA + 8 * word }, local, token) }
}

/// The token of the only operation of its kind that is under way.
const TOKEN: Token = Token(1);

fn is_done(event: &Event) -> Option<()> {
    matches!(event, Event::LocalDone(TOKEN)).then_some(())
}

fn finish(ranks: &mut [Rank; 2], at: usize, issued: Issued) {
    if issued == Issued::Pending {
        until(ranks, at, is_done);
    }
}

fn get(ranks: &mut [Rank; 2], at: usize, word: usize, values: &mut [u64]) {
    let local = Local { ptr: values.as_mut_ptr().cast(), len: size_of_val(values) };
    // SAFETY: the values are there, and nobody touches them, until the completion is polled.
    let issued = unsafe { ranks[at].conduit.get(Remote { rank: 1 - at, offset: DATA + 8 * word }, local, TOKEN) };
    finish(ranks, at, issued);
}

/// Puts values, and waits until they may be changed.
fn put_all(ranks: &mut [Rank; 2], at: usize, word: usize, values: &[u64]) {
    let issued = put(ranks, at, word, values, TOKEN);
    finish(ranks, at, issued);
}

fn put_block(ranks: &mut [Rank; 2], at: usize, loops: &Loops, values: &[u64]) {
    // SAFETY: as in `put`.
    let issued = unsafe {
        let block = Strided { loops, local: values.as_ptr().cast_mut().cast() };
        ranks[at].conduit.issue(&Operation::PutBlock { to: Remote { rank: 1 - at, offset: DATA }, block }, TOKEN)
    };
    finish(ranks, at, issued);
}

/// Polls both ranks for long enough that pending acknowledgements arrive, and that each knows which memory the other has opened.
fn settle(ranks: &mut [Rank; 2]) {
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(5) {
        ranks.iter_mut().for_each(|rank| rank.conduit.poll(&mut rank.events));
    }
}

/// What rank 0 posts for something and what has to follow until it is at its target, when the regions are known and a connection stands.
fn cost(act: impl Fn(&mut [Rank; 2])) -> Posted {
    let mut ranks = ranks(Rates::default(), 3);
    for _ in 0..2 {
        put_all(&mut ranks, 0, 0, &[1]);
        flush(&mut ranks, 0);
    }
    settle(&mut ranks);
    let before = (ranks[0].posted)();
    act(&mut ranks);
    (ranks[0].posted)().since(before)
}

#[test]
fn operations_are_as_few_works_as_can_be() {
    let works = |act: fn(&mut [Rank; 2])| {
        let Posted { works, chains, signaled, .. } = cost(act);
        assert_eq!(signaled, chains, "a chain has one completion");
        (works, chains)
    };
    // With the flush, which takes no message.
    let short = works(|ranks| {
        put_all(ranks, 0, 5, &[42]);
        flush(ranks, 0);
        assert_eq!(ranks[1].word(5), 42);
    });
    assert_eq!(short, (1, 1), "a put of a word");
    let long = works(|ranks| {
        let values = vec![7; 1 << 14];
        put_all(ranks, 0, 0, &values);
        flush(ranks, 0);
        assert_eq!((ranks[1].word(0), ranks[1].word((1 << 14) - 1), ranks[1].word(1 << 14)), (7, 7, 0));
    });
    assert_eq!(long, (1, 1), "a put of 128 KiB");
    for count in [1, 512, 1 << 14] {
        let get = cost(|ranks| get(ranks, 0, 0, &mut vec![0; count]));
        assert_eq!((get.works, get.chains), (1, 1), "a get of {count} words");
    }
    let strided = works(|ranks| {
        // Ten runs of 1 KiB, every other KiB.
        let loops = Loops::new(&[10, 128], &[256, 1], &[128, 1], 8);
        let values: Vec<u64> = (0..1280).collect();
        put_block(ranks, 0, &loops, &values);
        flush(ranks, 0);
        assert_eq!((ranks[1].word(256 * 9 + 5), ranks[1].word(256 * 8 + 130)), (128 * 9 + 5, 0));
    });
    assert_eq!(strided, (10, 1), "a patch of ten runs");
    let short_runs = works(|ranks| {
        let loops = Loops::new(&[16, 8], &[16, 1], &[8, 1], 8);
        let values: Vec<u64> = (0..128).collect();
        put_block(ranks, 0, &loops, &values);
        flush(ranks, 0);
        assert_eq!((ranks[1].word(16 * 15 + 7), ranks[1].word(8)), (127, 0));
    });
    assert_eq!(short_runs, (1, 1), "a patch of 16 runs of 64 bytes, which are one frame with the flush");
    let signal = works(|ranks| {
        let values = vec![9_u64; 1 << 14];
        let local = Local { ptr: values.as_ptr().cast_mut().cast(), len: size_of_val(&values[..]) };
        let signal = SignalWord { offset: 64, op: SignalOp::Set, value: 3, patient: false };
        // SAFETY: as in `put`; the word is committed.
        let issued = unsafe {
            ranks[0].conduit.issue(&Operation::PutSignal { to: Remote { rank: 1, offset: DATA }, local, signal }, TOKEN)
        };
        finish(ranks, 0, issued);
        let start = Instant::now();
        loop {
            ranks.iter_mut().for_each(|rank| rank.conduit.poll(&mut rank.events));
            // SAFETY: committed, and accessed by kernels.
            if unsafe { kernels::load(ranks[1].conduit.segment().as_ptr().wrapping_add(64).cast::<u32>()) } == 3 {
                break;
            }
            assert!(start.elapsed() < Duration::from_secs(60), "no signal");
        }
        assert_eq!(ranks[1].word((1 << 14) - 1), 9);
    });
    assert_eq!(signal, (2, 2), "a put of 128 KiB with a signal");
}

/// What is known of a rank without asking it: all that was put there has landed, or not.
#[test]
fn a_fence_asks_only_what_is_not_known() {
    let mut ranks = ranks(Rates::default(), 1);
    // A record: what is open at the other rank is not known yet.
    put_all(&mut ranks, 0, 0, &[1]);
    assert!(!is_flushed(&ranks), "nobody has handled the record");
    flush(&mut ranks, 0);
    settle(&mut ranks);
    // Transfers, which the device has done.
    for value in 3..100 {
        let issued = put(&ranks, 0, 0, &[value], TOKEN);
        assert!(issued == Issued::Complete && is_flushed(&ranks));
        assert_eq!(ranks[1].word(0), value);
    }
    // A record again, behind which transfers wait.
    let add = Atomic { op: AtomicOp::Add, width: 8, operand: 1, comparand: 0 };
    // SAFETY: the word is committed.
    let _ = unsafe { ranks[0].conduit.issue(&Operation::Atomic { word: Remote { rank: 1, offset: DATA }, atomic: add }, TOKEN) };
    assert!(!is_flushed(&ranks), "nobody has handled the addition");
    flush(&mut ranks, 0);
    settle(&mut ranks);
    assert!(is_flushed(&ranks));
    assert_eq!(ranks[1].word(0), 100);
}

/// Few completions are asked for. None that a rank waits for is missing, whether it flushes or only polls.
#[test]
fn puts_in_a_row_have_few_completions() {
    const PUTS: usize = 1000;
    let values: Vec<u64> = (1..=PUTS as u64).collect();
    let put_all = |ranks: &mut [Rank; 2]| {
        for (word, value) in values.iter().enumerate() {
            let issued = put(ranks, 0, word, std::slice::from_ref(value), TOKEN);
            finish(ranks, 0, issued);
        }
    };
    let flushed = cost(|ranks| {
        put_all(ranks);
        assert!(is_flushed(ranks), "the device has done all");
        flush(ranks, 0);
        assert_eq!([0, PUTS - 1].map(|word| ranks[1].word(word)), [1, PUTS as u64]);
    });
    // The first of each row has one, the last of sixteen, and the mark behind all.
    assert!(flushed.works == PUTS + 1 && flushed.signaled < PUTS / 10, "{flushed:?}");
    let polled = cost(|ranks| {
        put_all(ranks);
        settle(ranks);
        assert_eq!([0, PUTS - 1].map(|word| ranks[1].word(word)), [1, PUTS as u64]);
    });
    assert!(polled.works == PUTS + 1 && polled.signaled < PUTS / 10, "{polled:?}");
}

/// A short get is waited for alone, and that does not keep what has come from others.
#[test]
fn a_short_get_ends_soon() {
    let mut ranks = ranks(Rates::default(), 1);
    put_all(&mut ranks, 0, 0, &[7]);
    flush(&mut ranks, 0);
    settle(&mut ranks);
    let mut word = [0_u64];
    let read = |ranks: &[Rank; 2], word: &mut [u64; 1]| {
        let local = Local { ptr: word.as_mut_ptr().cast(), len: 8 };
        // SAFETY: the word lives until the completion is polled.
        unsafe { ranks[0].conduit.get(Remote { rank: 1, offset: DATA }, local, TOKEN) }
    };
    assert!(!ranks[0].conduit.is_complete(Awaited::Get(TOKEN)), "nothing is read");
    for value in 10..100 {
        assert_eq!(read(&ranks, &mut word), Issued::Pending);
        assert!(ranks[0].conduit.is_complete(Awaited::Get(TOKEN)) && word[0] == if value == 10 { 7 } else { value - 1 });
        let _ = put(&ranks, 0, 0, &[value], Token(2));
    }
    let mut events = Vec::new();
    ranks[0].conduit.poll(&mut events);
    assert!(!events.iter().any(|event| is_done(event).is_some()), "{events:?}");
    // A signal of the other rank is there: a look has to follow.
    let signal = SignalWord { offset: DATA, op: SignalOp::Set, value: 5, patient: false };
    let operation = Operation::PutSignal { to: Remote { rank: 0, offset: DATA }, local: Local::of(&[]), signal };
    // SAFETY: it puts no bytes, and the word is committed.
    let _ = unsafe { ranks[1].conduit.issue(&operation, Token::NOBODY) };
    let mut sent = Vec::new();
    ranks[1].conduit.poll(&mut sent);
    assert_eq!(read(&ranks, &mut word), Issued::Pending);
    assert!(!ranks[0].conduit.is_complete(Awaited::Get(TOKEN)));
    ranks[0].conduit.poll(&mut events);
    let has = |is: fn(&Event) -> bool| events.iter().any(is);
    assert!(has(|event| is_done(event).is_some()));
    assert_eq!(ranks[0].word(0) as u32, 5);
    assert_eq!(word, [99]);
}

/// A fence takes completions out of the device. One that is a refusal is not reported again, so the fence must pass it on.
#[test]
fn a_fence_that_meets_a_refusal_ends_the_job() {
    let mut ranks = ranks(Rates { wrong_key: 1000, ..Rates::default() }, 1);
    put_all(&mut ranks, 0, 0, &[1]);
    flush(&mut ranks, 0);
    settle(&mut ranks);
    put_all(&mut ranks, 0, 0, &[2]);
    assert!(!is_flushed(&ranks));
    let cause = ranks[0].conduit.over_cause();
    assert!(cause.contains("rank 1 refuses a transfer: the peer's memory does not allow this access"), "{cause}");
    assert_eq!(ranks[1].word(0), 1);
}

/// All kinds of operations, both ways, over connections that break: what each rank finds is what one memory would hold after its operations in
/// their order.
#[test]
fn operations_keep_their_order_over_connections_that_break() {
    let (mut unbroken, mut reopened) = (0, 0);
    for seed in 0..if std::env::var_os("GA_TEST_LONG").is_some() { 400 } else { 16 } {
        let rates = Rates { break_pair: if seed % 4 == 0 { 0 } else { 30 }, lose: 50, blind: 300, ..Rates::default() };
        let counts = operations_keep_their_order(ranks(rates, seed), seed);
        if rates.break_pair == 0 {
            unbroken += counts.reopened;
        } else {
            reopened += counts.reopened;
        }
    }
    assert!(unbroken == 0 && reopened > 50, "{unbroken} connections reopened that did not break, {reopened} others");
}

/// The test above, on whatever device libibverbs finds: pairs are taken to the error state under it.
#[test]
fn operations_keep_their_order_over_pairs_of_libibverbs_that_fail() {
    let mut reopened = 0;
    for seed in 0..3 {
        let rates = Rates { break_pair: if seed == 0 { 0 } else { 15 }, lose: 50, ..Rates::default() };
        let Some(devices) = verbs::tests::two(DEPTHS) else { return };
        reopened += operations_keep_their_order(ranks_over(devices, false, rates, seed), seed).reopened;
    }
    assert!(reopened > 2, "{reopened} connections reopened");
}

fn operations_keep_their_order(mut ranks: [Rank; 2], seed: u64) -> Connections {
    let mut random = Random::new(seed);
    let mut models = [vec![0_u64; WORDS], vec![0_u64; WORDS]];
    let mut buffers: Vec<Vec<u64>> = Vec::new();
    for _ in 0..200 {
        let at = random.below(2);
        let model = &mut models[1 - at];
        let longest = [1, 1, 8, 600, 3000, 20_000][random.below(6)];
        let count = 1 + random.below(longest);
        // Near each other, and where two ranges meet.
        let near = [0, WORDS / 2 - 4096 - 500][random.below(2)];
        let word = (near + random.below(1000)).min(WORDS - count);
        let values: Vec<u64> = (0..count).map(|_| random.below(1 << 30) as u64).collect();
        match random.below(6) {
            0 | 1 => {
                model[word..word + count].copy_from_slice(&values);
                // It ends at some time.
                let _ = put(&ranks, at, word, &values, Token(2));
                // Now and then many in a row, of a word each: most are silent.
                for value in 0..[0, 0, 0, 70][random.below(4)] {
                    let (word, value) = (near + random.below(8), vec![value]);
                    model[word] = value[0];
                    let _ = put(&ranks, at, word, &value, Token(2));
                    buffers.push(value);
                }
            }
            2 => {
                let mut values = vec![0; count];
                get(&mut ranks, at, word, &mut values);
                assert!(values == models[1 - at][word..word + count], "seed {seed}: {count} words from {word} on");
            }
            3 => {
                let operand = values[0];
                let atomic = Atomic { op: AtomicOp::Add, width: 8, operand, comparand: 0 };
                // SAFETY: a committed, aligned word.
                let _ = unsafe {
                    ranks[at]
                        .conduit
                        .issue(&Operation::Atomic { word: Remote { rank: 1 - at, offset: DATA + 8 * word }, atomic }, TOKEN)
                };
                let value = |event: &Event| if let Event::Value(TOKEN, value) = event { Some(*value) } else { None };
                assert_eq!(until(&mut ranks, at, value), models[1 - at][word], "seed {seed}: word {word}");
                models[1 - at][word] += operand;
            }
            kind => {
                let (rows, run) = (1 + random.below(6), 1 + random.below(300));
                let stride = run + random.below(400);
                let word = word.min(WORDS - rows * stride);
                let values: Vec<u64> = (0..rows * run).map(|_| random.below(1 << 30) as u64).collect();
                let loops = Loops::new(&[rows, run], &[stride as isize, 1], &[run as isize, 1], 8);
                let to = Remote { rank: 1 - at, offset: DATA + 8 * word };
                let block = Strided { loops: &loops, local: values.as_ptr().cast_mut().cast() };
                // SAFETY: as in `put`; the lock's word is committed.
                let _ = unsafe {
                    match kind {
                        4 => ranks[at].conduit.issue(&Operation::PutBlock { to, block }, Token(2)),
                        _ => {
                            let scale = &Scale::of::<u64>(1).unwrap();
                            ranks[at].conduit.issue(&Operation::Accumulate { to, block, scale, lock: 0 }, Token(2))
                        }
                    }
                };
                for (k, value) in values.iter().enumerate() {
                    let word = &mut model[word + k / run * stride + k % run];
                    *word = if kind == 4 { *value } else { *word + value };
                }
                buffers.push(values);
                continue;
            }
        }
        buffers.push(values);
    }
    flush(&mut ranks, 0);
    flush(&mut ranks, 1);
    for (at, model) in models.iter().enumerate() {
        for (word, value) in model.iter().enumerate() {
            assert_eq!(ranks[at].word(word), *value, "seed {seed}: word {word} of rank {at}");
        }
    }
    ranks[0].conduit.connections().unwrap()
}

/// Memory is given back while the other rank knows it, and uses what lies beside it.
#[test]
fn memory_is_given_back_while_its_neighbor_is_used() {
    for seed in 0..8 {
        let rates = Rates { break_pair: 10 * (seed as usize % 2), ..Rates::default() };
        let mut ranks = ranks(rates, seed);
        let (count, half) = (4096, OPEN / 2);
        for round in 0..6_u64 {
            let values = vec![round + 1; count];
            for word in [0, WORDS - count] {
                let _ = put(&ranks, 0, word, &values, Token(2));
            }
            // The other rank answers meanwhile, as its helper would.
            let done = std::sync::atomic::AtomicBool::new(false);
            let [one, other] = &mut ranks;
            std::thread::scope(|scope| {
                let (done, conduit, events) = (&done, &one.conduit, &mut one.events);
                scope.spawn(move || {
                    while !done.load(std::sync::atomic::Ordering::Relaxed) {
                        conduit.poll(events);
                    }
                });
                // A hole in the middle of a region, and then what was there before.
                let hole = half + (1 << 16)..half + (1 << 17);
                other.conduit.release(hole.clone()).unwrap();
                other.conduit.commit(hole).unwrap();
                done.store(true, std::sync::atomic::Ordering::Relaxed);
            });
            let into_hole = vec![100 + round; 64];
            let word = (half + (1 << 16) - DATA) / 8;
            let _ = put(&ranks, 0, word, &into_hole, Token(2));
            flush(&mut ranks, 0);
            assert_eq!(
                [0, WORDS - 1, word, word + 63].map(|word| ranks[1].word(word)),
                [round + 1, round + 1, 100 + round, 100 + round]
            );
        }
    }
}
