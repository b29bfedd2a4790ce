//! Tests on whatever device libibverbs finds.

mod refused;
mod traffic;

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
    super::device::{Done, NUMBERS, Opcode, ROUTE_HEADER, Target, WorkFailure},
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
struct BareEnd {
    region: DeviceRegion,
    start: *mut u8,
    device: Verbs,
}

// SAFETY: the memory is the end's own.
unsafe impl Sync for BareEnd {}

impl BareEnd {
    fn new(choice: &PortChoice, access: Access) -> Result<Self, Unusable> {
        let device = Verbs::open(choice, &OPENING)?;
        // SAFETY: a size that is not zero.
        let start = unsafe { alloc_zeroed(layout()) };
        // SAFETY: given back after the device; nobody refers to it.
        let region = unsafe { device.register(start, MEMORY, access) }.expect("memory");
        Ok(BareEnd { region, start, device })
    }

    fn piece(&self, offset: usize, len: usize) -> WorkPiece {
        WorkPiece { start: self.start.wrapping_add(offset), len, key: self.region.local }
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

    /// Sleeps until the next `count` completions come. Returns them.
    fn completions(&self, count: usize) -> Vec<Completion> {
        let mut found = Vec::new();
        for _ in 0..WAITS {
            self.device.arm(Wakes::All).expect("armed");
            let left = count - found.len();
            self.device.poll(&mut found, left).expect("polled");
            if found.len() == count {
                return found;
            }
            self.device.wait(WAIT).expect("waited");
        }
        panic!("{count} completions were awaited, {found:?} came, event {:?}", self.device.event());
    }

    fn done(&self, pair: Pair, kind: Opcode, local: WorkPiece) -> Result<Done, WorkFailure> {
        assert_eq!(self.post(pair, &[Work { id: 77, kind, local, signaled: true, inline: false, fence: false }]), Ok(1));
        let [found] = self.completions(1)[..] else { unreachable!() };
        assert_eq!((found.id, found.number), (77, pair.number));
        found.outcome
    }
}

impl Drop for BareEnd {
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

/// What two ends open: two devices of soft-RoCE if there are two, else the best port.
fn choices() -> [PortChoice; 2] {
    let mut soft: Vec<String> = fs::read_dir(SYSFS)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with("rxe"))
        .collect();
    soft.sort();
    match &soft[..] {
        [first, second, ..] => [first, second].map(|name| PortChoice::parse(Some(name), None).expect("a name")),
        _ => [PortChoice::default(), PortChoice::default()],
    }
}

/// Two devices, or none and a line that says why.
pub(in super::super) fn two(depths: Depths) -> Option<[Verbs; 2]> {
    let [first, second] = choices().map(|choice| Verbs::open(&choice, &Opening { depths, ..OPENING }));
    or_skip(first, second).map(|(first, second)| [first, second])
}

/// Two ends, or a line that says why not, once for all tests.
fn ends(access: Access) -> Option<(BareEnd, BareEnd)> {
    let [first, second] = choices().map(|choice| BareEnd::new(&choice, access));
    or_skip(first, second)
}

fn or_skip<T>(first: Result<T, Unusable>, second: Result<T, Unusable>) -> Option<(T, T)> {
    match (first, second) {
        (Ok(first), Ok(second)) => Some((first, second)),
        (Err(error), _) | (_, Err(error)) => {
            static SKIPPED: Once = Once::new();
            SKIPPED.call_once(|| say(&format!("skipped: libibverbs: {error}")));
            None
        }
    }
}

fn ready(from: &BareEnd, pair: Pair, to: &BareEnd, peer: Pair, access: Access) {
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

fn connect(a: &BareEnd, b: &BareEnd, depth: usize) -> (Pair, Pair) {
    let (of_a, of_b) = (a.device.create(depth).expect("a pair"), b.device.create(depth).expect("a pair"));
    assert!(of_a.number < NUMBERS && of_b.number < NUMBERS);
    ready(a, of_a, b, of_b, Access::ALL);
    ready(b, of_b, a, of_a, Access::ALL);
    (of_a, of_b)
}

fn drain(end: &BareEnd) -> Vec<Completion> {
    let mut found = Vec::new();
    end.device.poll(&mut found, usize::MAX).expect("polled");
    found
}
