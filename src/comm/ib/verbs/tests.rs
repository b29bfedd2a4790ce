//! On whatever device libibverbs finds: two of soft-RoCE if there are two, else one port opened twice. Where there is none, a line
//! says that the tests were skipped, and why.

use std::{
    alloc::{Layout, alloc_zeroed, dealloc},
    collections::HashSet,
    fs,
    io::{self, Write},
    sync::Once,
    thread,
    time::Duration,
};

use super::{
    super::device::{Done, Failure, Kind, NUMBERS, ROUTE_HEADER, Target},
    library::SYSFS,
    *,
};

type Refusable<T> = super::Result<T>;
type Result<T, E> = std::result::Result<T, E>;

/// Memory of each side.
const MEMORY: usize = 256 << 10;

/// Until a test gives up.
const WAITS: usize = 30;
const WAIT: Duration = Duration::from_secs(1);

const OPENING: Opening = Opening {
    depths: Depths { completions: 512, shared_receives: 64, datagram_receives: 16, datagram_sends: 16 },
    inline: 128,
    key: 0x8000_1234,
};

/// A device with registered memory.
struct End {
    region: Region,
    start: *mut u8,
    device: Verbs,
}

// SAFETY: the memory is the end's own.
unsafe impl Sync for End {}

impl End {
    fn new(choice: &Choice, access: Access) -> Result<Self, Unusable> {
        let device = Verbs::open(choice, &OPENING)?;
        // SAFETY: a size that is not zero.
        let start = unsafe { alloc_zeroed(layout()) };
        // SAFETY: given back after the device; nobody refers to it.
        let region = unsafe { device.register(start, MEMORY, access) }.expect("memory");
        Ok(End { region, start, device })
    }

    fn piece(&self, offset: usize, len: usize) -> Piece {
        Piece { start: self.start.wrapping_add(offset), len, key: self.region.local }
    }

    fn target(&self, offset: usize) -> Target {
        Target { start: self.start.expose_provenance() as u64 + offset as u64, key: self.region.remote }
    }

    fn word(&self, offset: usize) -> u64 {
        // SAFETY: inside the memory, which others change as well.
        unsafe { self.start.add(offset).cast::<u64>().read_volatile() }
    }

    fn set(&self, offset: usize, value: u64) {
        // SAFETY: as above.
        unsafe { self.start.add(offset).cast::<u64>().write_volatile(value) };
    }

    fn post(&self, pair: Pair, works: &[Work]) -> Refusable<usize> {
        // SAFETY: the memory of the works is the end's, which lives longer than its device.
        unsafe { self.device.post(pair, works) }
    }

    fn receive(&self, queue: Queue, id: u64, offset: usize, len: usize) {
        // SAFETY: as above.
        unsafe { self.device.post_receive(queue, id, self.piece(offset, len)) }.expect("a receive");
    }

    /// The next completions, so many; sleeps until they come.
    fn completions(&self, count: usize) -> Vec<Completion> {
        let mut found = Vec::new();
        for _ in 0..WAITS {
            self.device.arm().expect("armed");
            let left = count - found.len();
            self.device.poll(&mut found, left).expect("polled");
            if found.len() == count {
                return found;
            }
            self.device.wait(WAIT).expect("waited");
        }
        panic!("{count} completions were awaited, {found:?} came, event {:?}", self.device.event());
    }

    /// Posts one work and awaits it.
    fn done(&self, pair: Pair, kind: Kind, local: Piece) -> Result<Done, Failure> {
        assert_eq!(self.post(pair, &[Work { id: 77, kind, local, signaled: true, inline: false, fence: false }]), Ok(1));
        let [found] = self.completions(1)[..] else { unreachable!() };
        assert_eq!((found.id, found.number), (77, pair.number));
        found.outcome
    }
}

impl Drop for End {
    fn drop(&mut self) {
        self.device.deregister(self.region).expect("deregistered");
        // SAFETY: allocated so; the adapter has let go of it.
        unsafe { dealloc(self.start, layout()) };
    }
}

fn layout() -> Layout {
    Layout::from_size_align(MEMORY, 4096).expect("a layout")
}

/// Says what was seen, past libtest.
fn say(line: &str) {
    let _ = writeln!(io::stdout(), "\n{line}");
}

/// Two ends, or a line that says why not, once for all tests.
fn ends(access: Access) -> Option<(End, End)> {
    let mut soft: Vec<String> = fs::read_dir(SYSFS)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with("rxe"))
        .collect();
    soft.sort();
    let choices = match &soft[..] {
        [first, second, ..] => [first, second].map(|name| Choice::parse(Some(name), None).expect("a name")),
        _ => [Choice::default(), Choice::default()],
    };
    let [first, second] = choices.map(|choice| End::new(&choice, access));
    match (first, second) {
        (Ok(first), Ok(second)) => Some((first, second)),
        (Err(error), _) | (_, Err(error)) => {
            static SKIPPED: Once = Once::new();
            SKIPPED.call_once(|| say(&format!("skipped: libibverbs: {error}")));
            None
        }
    }
}

fn ready(from: &End, pair: Pair, to: &End, peer: Pair, access: Access) {
    let address = to.device.address();
    // Another one each way.
    let first_packet = |of: Pair| 1000 + 3 * of.number;
    let steps = [
        To::Init { access },
        To::ReadyToReceive {
            peer: &address,
            number: peer.number,
            first_packet: first_packet(peer),
            answer_depth: 4,
            receive_timer: 1,
        },
        To::ReadyToSend { first_packet: first_packet(pair), read_depth: 4, timeout: 14, retries: 6, receive_retries: 2 },
    ];
    for step in steps {
        from.device.modify(pair, step).expect("a step");
    }
}

fn connect(a: &End, b: &End, depth: usize) -> (Pair, Pair) {
    let (of_a, of_b) = (a.device.create(depth).expect("a pair"), b.device.create(depth).expect("a pair"));
    assert!(of_a.number < NUMBERS && of_b.number < NUMBERS);
    ready(a, of_a, b, of_b, Access::ALL);
    ready(b, of_b, a, of_a, Access::ALL);
    (of_a, of_b)
}

#[test]
fn bytes_move_both_ways() {
    let Some((a, b)) = ends(Access::ALL) else { return };
    say(&format!("{:?} and {:?}; {:?}", a.device.address(), b.device.address(), a.device.limits()));
    let (to_b, _) = connect(&a, &b, 16);
    for at in 0..4096 {
        a.set(8 * at, at as u64 + 1);
    }
    assert_eq!(a.done(to_b, Kind::Write { to: b.target(65536) }, a.piece(0, 32768)), Ok(Done::Written));
    assert!((0..4096).all(|at| b.word(65536 + 8 * at) == at as u64 + 1));
    assert_eq!(a.done(to_b, Kind::Read { from: b.target(65536) }, a.piece(32768, 32768)), Ok(Done::Read));
    assert!((0..4096).all(|at| a.word(32768 + 8 * at) == at as u64 + 1));
    assert_eq!(a.done(to_b, Kind::Write { to: b.target(0) }, a.piece(0, 0)), Ok(Done::Written), "of nothing");
    if a.device.limits().inline >= 8 {
        a.set(0, 99);
        let inline = Work {
            id: 1,
            kind: Kind::Write { to: b.target(8) },
            local: Piece { key: 0, ..a.piece(0, 8) },
            signaled: true,
            inline: true,
            fence: false,
        };
        assert_eq!(a.post(to_b, &[inline]), Ok(1));
        a.set(0, 0);
        assert_eq!(a.completions(1)[0].outcome, Ok(Done::Written));
        assert_eq!(b.word(8), 99, "the data left with the post");
    }
    say("write and read of 32 KiB, write of nothing, inline write: ok");
}

#[test]
fn sends_find_receives_of_the_shared_queue() {
    let Some((a, b)) = ends(Access::ALL) else { return };
    let ((to_b, of_b), (second, _)) = (connect(&a, &b, 16), connect(&a, &b, 16));
    b.receive(Queue::Shared, 41, 0, 100);
    b.receive(Queue::Shared, 42, 4096, 100);
    a.set(0, 0xfeed);
    assert_eq!(a.done(to_b, Kind::Send { immediate: Some(0x0102_0304) }, a.piece(0, 60)), Ok(Done::Sent));
    assert_eq!(a.done(second, Kind::Send { immediate: None }, a.piece(0, 8)), Ok(Done::Sent));
    let found = b.completions(2);
    let received = |len, immediate| Ok(Done::Received { len, immediate, from: None });
    assert_eq!((found[0].id, found[0].number, found[0].outcome), (41, of_b.number, received(60, Some(0x0102_0304))));
    assert_eq!((found[1].id, found[1].outcome), (42, received(8, None)));
    assert_eq!((b.word(0), b.word(4096)), (0xfeed, 0xfeed));
    assert_eq!(a.done(to_b, Kind::Send { immediate: None }, a.piece(0, 8)), Err(Failure::ReceiveRetryExceeded));
    let (to_b, _) = connect(&a, &b, 16);
    b.receive(Queue::Shared, 43, 0, 16);
    let long = a.done(to_b, Kind::Send { immediate: None }, a.piece(0, 64));
    let short = b.completions(1)[0];
    say(&format!("sends to two pairs with one receive queue: ok; a message of 64 to 16 bytes: {long:?}, {short:?}"));
    assert!(matches!(long, Err(Failure::RemoteInvalid | Failure::RemoteOperation)), "{long:?}");
    // Soft-RoCE does not say that it is the length.
    assert_eq!(short.id, 43);
    assert!(matches!(short.outcome, Err(Failure::LocalLength | Failure::Other(_))), "{short:?}");
}

#[test]
fn atomics_return_the_old_value() {
    let Some((a, b)) = ends(Access::ALL) else { return };
    let (to_b, _) = connect(&a, &b, 64);
    b.set(64, 1000);
    let at = b.target(64);
    let local = a.piece(0, 8);
    let step = |kind, old, new| {
        assert_eq!(a.done(to_b, kind, local), Ok(Done::Swapped));
        assert_eq!((a.word(0), b.word(64)), (old, new), "{kind:?}");
    };
    step(Kind::FetchAdd { at, operand: 5 }, 1000, 1005);
    step(Kind::FetchAdd { at, operand: u64::MAX }, 1005, 1004);
    step(Kind::CompareSwap { at, expected: 1004, value: 42 }, 1004, 42);
    step(Kind::CompareSwap { at, expected: 1004, value: 43 }, 42, 42);
    // Two pairs of two devices add to one word at once.
    let (also_b, _) = connect(&b, &b, 64);
    let add =
        |id, local, signaled| Work { id, kind: Kind::FetchAdd { at, operand: 1 }, local, signaled, inline: false, fence: false };
    for round in 0..50 {
        for (end, pair) in [(&a, to_b), (&b, also_b)] {
            let works: Vec<Work> = (0..10).map(|at| add(at, end.piece(128 + 8 * at as usize, 8), at == 9)).collect();
            assert_eq!(end.post(pair, &works), Ok(10), "round {round}");
        }
        for end in [&a, &b] {
            assert_eq!(end.completions(1)[0].outcome, Ok(Done::Swapped));
        }
    }
    assert_eq!(b.word(64), 42 + 1000);
    let odd = Work { kind: Kind::FetchAdd { at: b.target(68), operand: 1 }, ..add(9, local, true) };
    let odd = a.post(to_b, &[add(8, local, true), odd]);
    let before = a.completions(1)[0].outcome;
    say(&format!("atomics: ok; 1000 additions of two pairs: {}; at an odd address: {odd:?}", b.word(64)));
    assert_eq!(before, Ok(Done::Swapped), "what was posted in front of it");
    match odd {
        // An adapter asks its peer.
        Ok(taken) => assert_eq!((taken, a.completions(1)[0].outcome), (2, Err(Failure::RemoteInvalid))),
        Err(error) => assert!(matches!(error, DeviceError::Work { at: 1, id: 9, .. }), "{error}"),
    }
}

#[test]
fn datagrams_carry_the_senders_address() {
    let Some((a, b)) = ends(Access::ALL) else { return };
    let (here, there) = (a.device.address(), b.device.address());
    assert_eq!(there.key, 0x1234, "without the highest bit");
    let handle = a.device.handle(&there).expect("a handle");
    b.receive(Queue::Datagram, 51, 0, ROUTE_HEADER + 1024);
    a.set(0, 0xabcd);
    let datagram = Datagram {
        id: 5,
        to: handle,
        number: there.number,
        key: there.key,
        local: a.piece(0, 200),
        signaled: true,
        inline: false,
    };
    // SAFETY: the end's memory.
    let post = |datagram: &Datagram| unsafe { a.device.post_datagram(datagram) };
    assert_eq!(post(&datagram), Ok(()));
    assert_eq!(a.completions(1)[0].outcome, Ok(Done::Sent));
    let found = b.completions(1)[0];
    assert_eq!((found.id, found.number), (51, there.number));
    let done = Done::Received { len: ROUTE_HEADER + 200, immediate: None, from: Some(here.number) };
    assert_eq!(found.outcome, Ok(done));
    assert_eq!(b.word(ROUTE_HEADER), 0xabcd);
    // SAFETY: inside the memory; nobody writes there any more.
    let header = unsafe { std::slice::from_raw_parts(b.start, ROUTE_HEADER) }.to_vec();
    let from = if here.gid[..12] == [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff] {
        assert_eq!(header[32..36], here.gid[12..], "the sender's IPv4 address");
        "IPv4"
    } else {
        assert_eq!(header[8..24], here.gid, "the sender's GID");
        "GID"
    };
    // Dropped: another key, no receive. The next one arrives.
    b.receive(Queue::Datagram, 52, 0, ROUTE_HEADER + 1024);
    for lost in [Datagram { key: 0x9999, id: 6, ..datagram }, Datagram { number: there.number ^ 0x7000, id: 7, ..datagram }] {
        assert_eq!(post(&lost), Ok(()));
        assert_eq!(a.completions(1)[0].outcome, Ok(Done::Sent));
    }
    assert_eq!(post(&Datagram { id: 8, ..datagram }), Ok(()));
    assert_eq!((a.completions(1)[0].id, b.completions(1)[0].id), (8, 52));
    let long = post(&Datagram { local: a.piece(0, a.device.limits().longest_datagram + 1), ..datagram });
    assert!(matches!(long, Err(DeviceError::Work { id: 5, .. })), "{long:?}");
    a.device.release(handle).expect("released");
    assert!(matches!(post(&datagram), Err(DeviceError::Unknown { what: "handle", .. })));
    say(&format!("datagram of 200 bytes behind a route header with the sender's {from}, wrong Q_Key and number dropped: ok"));
}

#[test]
fn wrong_keys_fail_and_the_pair_comes_back() {
    let Some((a, b)) = ends(Access::LOCAL_WRITE | Access::REMOTE_READ) else { return };
    let (to_b, of_b) = connect(&a, &b, 16);
    let mut seen = Vec::new();
    let wrong_key = Target { key: b.region.remote ^ 0x5a_5a00, ..b.target(0) };
    let beyond = b.target(MEMORY - 4);
    for (what, kind, local) in [
        ("wrong key", Kind::Read { from: wrong_key }, a.piece(0, 8)),
        ("beyond the end", Kind::Read { from: beyond }, a.piece(0, 8)),
        ("no right to write", Kind::Write { to: b.target(0) }, a.piece(0, 8)),
        ("no right to add", Kind::FetchAdd { at: b.target(0), operand: 1 }, a.piece(0, 8)),
        ("wrong local key", Kind::Read { from: b.target(0) }, Piece { key: 0x77_7777, ..a.piece(0, 8) }),
    ] {
        let outcome = a.done(to_b, kind, local);
        let remote = what != "wrong local key";
        assert_eq!(outcome, Err(if remote { Failure::RemoteAccess } else { Failure::LocalProtection }), "{what}");
        let flushed = a.done(to_b, Kind::Read { from: b.target(0) }, a.piece(0, 8));
        assert_eq!(flushed, Err(Failure::Flushed), "{what}");
        let events: Vec<Event> = std::iter::from_fn(|| b.device.event()).collect();
        assert!(events.iter().all(|&event| event == Event::PairFailed(of_b.number)), "{events:?}");
        seen.push(format!("{what}: {outcome:?}, then {flushed:?}, peer's events {events:?}"));
        for (end, pair) in [(&a, to_b), (&b, of_b)] {
            end.device.modify(pair, To::Reset).expect("reset");
        }
        let _ = (a.device.event(), drain(&a), drain(&b));
        ready(&a, to_b, &b, of_b, Access::ALL);
        ready(&b, of_b, &a, to_b, Access::ALL);
        assert_eq!(a.done(to_b, Kind::Read { from: b.target(0) }, a.piece(0, 8)), Ok(Done::Read), "behind {what}");
    }
    assert_eq!((0..MEMORY / 8).filter(|at| b.word(8 * at) != 0).count(), 0, "nothing was written");
    say(&format!("{}; each pair worked again after a reset", seen.join("; ")));
}

#[test]
fn a_pair_may_allow_less_than_its_memory() {
    let Some((a, b)) = ends(Access::ALL) else { return };
    let (to_b, of_b) = (a.device.create(4).expect("a pair"), b.device.create(4).expect("a pair"));
    ready(&a, to_b, &b, of_b, Access::ALL);
    ready(&b, of_b, &a, to_b, Access::REMOTE_READ);
    b.set(0, 9);
    assert_eq!(a.done(to_b, Kind::Read { from: b.target(0) }, a.piece(0, 8)), Ok(Done::Read));
    assert_eq!(a.word(0), 9);
    let write = a.done(to_b, Kind::Write { to: b.target(8) }, a.piece(0, 8));
    assert!(matches!(write, Err(Failure::RemoteAccess | Failure::RemoteInvalid)), "{write:?}");
    assert_eq!(b.word(8), 0);
    // The other side, to which nothing was said.
    let back = b.done(of_b, Kind::Read { from: a.target(0) }, b.piece(0, 8));
    say(&format!("a write to a pair that allows reads: {write:?}; a read back by the other side: {back:?}"));
}

/// All completions that are there.
fn drain(end: &End) -> Vec<Completion> {
    let mut found = Vec::new();
    end.device.poll(&mut found, usize::MAX).expect("polled");
    found
}

#[test]
fn chains_are_taken_as_far_as_there_is_room() {
    let Some((a, b)) = ends(Access::ALL) else { return };
    let (to_b, _) = connect(&a, &b, 100);
    let write = |id: u64, signaled| Work {
        id,
        kind: Kind::Write { to: b.target(8 * id as usize) },
        local: a.piece(8 * id as usize, 8),
        signaled,
        inline: false,
        fence: false,
    };
    (0..100).for_each(|at| a.set(8 * at, 500 + at as u64));
    let works: Vec<Work> = (0..100).map(|id| write(id, id == 99)).collect();
    assert_eq!(a.post(to_b, &works), Ok(100), "a chain longer than a piece of it");
    let found = a.completions(1);
    assert_eq!((found[0].id, found[0].outcome), (99, Ok(Done::Written)));
    assert!((0..100).all(|at| b.word(8 * at) == 500 + at as u64));
    assert_eq!(drain(&a), [], "only the last was signaled");
    // A work in the middle that is refused: those in front of it were taken.
    let too_long = Work { inline: true, local: a.piece(0, 60_000), ..write(7, true) };
    let refused = a.post(to_b, &[write(5, true), write(6, true), too_long, write(8, true)]);
    assert!(matches!(refused, Err(DeviceError::Work { at: 2, id: 7, .. })), "{refused:?}");
    assert_eq!(a.completions(2).iter().map(|found| found.id).collect::<Vec<_>>(), [5, 6]);
    assert_eq!(drain(&a), []);
    // A pair whose peer does not answer keeps its works: its queue fills up.
    let alone = a.device.create(16).expect("a pair");
    let nobody = b.device.create(16).expect("a pair");
    ready(&a, alone, &b, nobody, Access::ALL);
    let mut taken = 0;
    let full = loop {
        let now = a.post(alone, &works[..10]).expect("posted");
        taken += now;
        if now < 10 || taken > 10_000 {
            break now;
        }
    };
    assert!((16..10_000).contains(&taken), "{taken}");
    let found = a.completions(taken);
    assert_eq!(found[0].outcome, Err(Failure::RetryExceeded));
    assert!(found[1..].iter().all(|found| found.outcome == Err(Failure::Flushed)));
    let ids: Vec<u64> = found.iter().map(|found| found.id).collect();
    assert_eq!(ids, (0..taken as u64).map(|at| at % 10).collect::<Vec<_>>(), "in order");
    assert_eq!(drain(&a), [], "no more were taken than was said");
    say(&format!(
        "chain of 100: ok; a send queue of 16 took {taken} (of the last 10: {full}), without a peer: 1 RetryExceeded, others Flushed"
    ));
}

#[test]
fn states_are_kept() {
    let Some((a, b)) = ends(Access::ALL) else { return };
    let pair = a.device.create(4).expect("a pair");
    let write =
        Work { id: 1, kind: Kind::Write { to: b.target(0) }, local: a.piece(0, 8), signaled: false, inline: false, fence: false };
    let state = |result, expected| assert!(matches!(result, Err(DeviceError::State { state, .. }) if state == expected));
    state(a.post(pair, &[write]).map(drop), State::Reset);
    let send = To::ReadyToSend { first_packet: 0, read_depth: 1, timeout: 14, retries: 6, receive_retries: 1 };
    state(a.device.modify(pair, send), State::Reset);
    a.device.modify(pair, To::Init { access: Access::ALL }).expect("init");
    state(a.device.modify(pair, To::Init { access: Access::ALL }), State::Init);
    state(a.post(pair, &[write]).map(drop), State::Init);
    // From any state, a new pair's as well, to the error state, where works are flushed though nobody asked for their completion.
    a.device.modify(pair, To::Reset).expect("reset");
    a.device.modify(pair, To::Error).expect("error");
    assert_eq!(a.post(pair, &[write, write]), Ok(2));
    assert!(a.completions(2).iter().all(|found| found.outcome == Err(Failure::Flushed)));
    a.device.modify(pair, To::Reset).expect("reset");
    a.device.destroy(pair).expect("destroyed");
    let unknown = |result| assert!(matches!(result, Err(DeviceError::Unknown { what: "queue pair", .. })));
    unknown(a.device.destroy(pair));
    unknown(a.device.modify(pair, To::Reset));
    unknown(a.post(pair, &[write]).map(drop));
    assert!(matches!(a.device.create(1 << 40), Err(DeviceError::Limit { .. })));
    let pairs: HashSet<u64> = (0..20).map(|_| a.device.create(4).expect("a pair").id).collect();
    assert_eq!(pairs.len(), 20);
    // SAFETY: refused.
    let contradiction = unsafe { a.device.register(a.start, 8, Access::REMOTE_WRITE) };
    assert!(matches!(contradiction, Err(DeviceError::Invalid(_))));
    say("states, unknown pairs and limits: ok");
}

#[test]
fn waits_end_by_completions_events_and_limits() {
    let Some((a, b)) = ends(Access::ALL) else { return };
    let (to_b, of_b) = connect(&a, &b, 16);
    let short = Duration::from_millis(20);
    a.device.arm().expect("armed");
    assert_eq!(a.device.wait(short), Ok(false), "nothing comes");
    let write = |signaled| Work {
        id: 1,
        kind: Kind::Write { to: b.target(0) },
        local: a.piece(0, 8),
        signaled,
        inline: false,
        fence: false,
    };
    // A completion from before the second call of `arm` wakes nobody.
    assert_eq!(a.post(to_b, &[write(true)]), Ok(1));
    assert_eq!(a.device.wait(WAIT), Ok(true));
    assert_eq!(a.device.wait(short), Ok(false), "not armed again");
    assert_eq!(drain(&a).len(), 1);
    a.device.arm().expect("armed");
    assert_eq!(a.post(to_b, &[write(true)]), Ok(1));
    while drain(&a).is_empty() {
        thread::yield_now();
    }
    a.device.arm().expect("armed");
    assert_eq!(a.device.wait(short), Ok(false), "what came before counts for nothing");
    // One thread sleeps, and another one's post wakes it.
    a.device.arm().expect("armed");
    let woken = thread::scope(|scope| {
        let sleeper = scope.spawn(|| a.device.wait(Duration::from_secs(30)));
        thread::sleep(short);
        assert_eq!(a.post(to_b, &[write(true)]), Ok(1));
        sleeper.join().expect("no panic")
    });
    assert_eq!((woken, drain(&a).len()), (Ok(true), 1));
    // The peer's pair fails: no completion says so there, as nothing was posted.
    let wrong = Work { kind: Kind::Write { to: Target { key: 1, ..b.target(0) } }, ..write(true) };
    b.device.arm().expect("armed");
    assert_eq!(a.post(to_b, &[wrong]), Ok(1));
    assert_eq!(a.completions(1)[0].outcome, Err(Failure::RemoteAccess));
    let woken = b.device.wait(Duration::from_millis(200)).expect("waited");
    let event = b.device.event();
    assert_eq!(woken, event.is_some());
    assert!(event.is_none_or(|event| event == Event::PairFailed(of_b.number)));
    say(&format!("waits: ok; the peer of a pair with a wrong key got the event {event:?}"));
}

#[test]
fn too_many_completions_are_fatal() {
    let Some((a, b)) = ends(Access::ALL) else { return };
    let mut pairs = Vec::new();
    let room = a.device.limits().completions;
    let nobody = b.device.create(4).expect("a pair");
    // Pairs in the error state flush what they get, and nobody polls.
    for _ in 0..=room / 64 {
        let pair = a.device.create(64).expect("a pair");
        ready(&a, pair, &b, nobody, Access::ALL);
        a.device.modify(pair, To::Error).expect("error");
        pairs.push(pair);
    }
    let write =
        Work { id: 1, kind: Kind::Write { to: b.target(0) }, local: a.piece(0, 8), signaled: true, inline: false, fence: false };
    let taken: usize = pairs.iter().map(|&pair| a.post(pair, &[write; 64]).expect("posted")).sum();
    assert!(taken > room, "{taken} of {room}");
    assert_eq!(a.device.wait(WAIT), Ok(true));
    assert_eq!(a.device.event(), Some(Event::Fatal));
    let failed = |result: Refusable<()>| assert!(matches!(result, Err(DeviceError::Fatal { .. })), "{result:?}");
    failed(a.device.poll(&mut Vec::new(), 1));
    failed(a.device.arm());
    failed(a.post(pairs[0], &[write]).map(drop));
    say(&format!("{taken} completions in a queue of {room}: Fatal"));
}

#[test]
fn choices_that_lead_nowhere_are_explained() {
    let open = |device, gid| Verbs::open(&Choice::parse(device, gid).expect("a choice"), &OPENING).map(drop);
    let Some((a, _)) = ends(Access::ALL) else { return };
    let Port { device, number, gid, .. } = &a.device.port;
    let port = format!("{device}:{number}");
    let index = gid.index.to_string();
    assert_eq!(open(Some(&port), Some(&index)), Ok(()));
    let lines: Vec<String> =
        [(Some("nobody0".to_owned()), None), (Some(format!("{device}:99")), None), (Some(port.clone()), Some("200"))]
            .iter()
            .map(|(device, gid)| open(device.as_deref(), *gid).expect_err("leads nowhere").to_string())
            .collect();
    for (line, said) in lines.iter().zip(["no such adapter; there is ", "has the ports 1 to ", "is empty; there is "]) {
        assert!(line.starts_with("GA_IB_") && line.contains(said) && !line.contains('\n'), "{line}");
    }
    say(&lines.join("\n"));
}

/// In a process whose memory may be pinned up to a limit.
#[test]
fn memory_beyond_the_limit_is_refused_with_a_reason() {
    let Some((a, _)) = ends(Access::ALL) else { return };
    let Some(limit) = getrlimit(Resource::Memlock).current.filter(|&limit| limit < 1 << 26) else {
        return say("skipped: libibverbs: pinned memory: ulimit -l allows more than is tried");
    };
    let layout = Layout::from_size_align(2 * limit as usize, 4096).expect("a layout");
    // SAFETY: a size that is not zero.
    let start = unsafe { alloc_zeroed(layout) };
    // SAFETY: given back after it was deregistered.
    match unsafe { a.device.register(start, layout.size(), Access::ALL) } {
        Ok(region) => {
            a.device.deregister(region).expect("deregistered");
            say("skipped: libibverbs: pinned memory: this user may pin beyond the limit");
        }
        Err(error) => {
            assert!(matches!(error, DeviceError::Memory { asked, .. } if asked == layout.size()), "{error}");
            assert!(error.to_string().contains("ulimit -l"), "{error}");
            say(&error.to_string());
        }
    }
    // SAFETY: allocated so; nobody uses it.
    unsafe { dealloc(start, layout) };
}
