//! Machines for tests: ranks that are threads, each machine with its own mapping, and *cables* between them that deliver late.
//!
//! A cable delays the frames that hold a record of one kind, or bulk messages, and all that is sent behind them. So active messages and
//! supervisors run as between real machines, and a test chooses what is slow.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use crate::comm::{
    Conduit, LeaveStep, Network, Topology,
    am::{
        Am,
        frame::{Frame, Frames, RecordKind},
        wire::{Arrival, BulkId, BulkLimits, Class, Ended, Limits, Result, Tag, Wire},
    },
    node::{Fabric, Member, helper::Helper},
};

const LIMITS: Limits = Limits {
    frame: 1024,
    bulk: Some(BulkLimits { contiguous: 4 << 10, packed: 2 << 10, longest: 1 << 20 }),
    one_sided: None,
    by_agents: false,
};

/// A machine that is silent for this long is lost.
const SILENCE: Duration = Duration::from_secs(120);

/// A kind of record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record(RecordKind);

/// The delays of cables.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Slow {
    Nothing,
    Records(Record, Duration),
    Bulk(Duration),
    /// All that the first rank sends to the second.
    Way(usize, usize, Duration),
    /// Nothing arrives from this time on, counted from the start.
    Cut(Duration),
}

impl Slow {
    /// Everything that a cable can delay, by name.
    pub(crate) fn all(delay: Duration) -> Vec<(String, Slow)> {
        let records = RecordKind::ALL.map(|kind| (format!("{kind:?}"), Slow::Records(Record(kind), delay)));
        records.into_iter().chain([("bulk messages".into(), Slow::Bulk(delay))]).collect()
    }
}

/// Frames on their way, and their times of arrival.
type Queue = VecDeque<(Instant, Vec<u8>)>;

/// Messages by sender, receiver, kind and number.
type Messages = BTreeMap<(usize, usize, u8, u64), (Instant, Vec<u8>)>;

/// The cables of a job.
#[derive(Debug)]
struct Cables {
    slow: Slow,
    /// For each receiver, what is on its way from each sender, in each class.
    frames: Vec<Mutex<BTreeMap<(usize, Class), Queue>>>,
    bulk: Mutex<Messages>,
    by_agents: bool,
    /// Ranks whose bodies have ended well.
    finished: AtomicUsize,
    start: Instant,
}

impl Cables {
    fn new(ranks: usize, slow: Slow, by_agents: bool) -> Arc<Self> {
        let frames = (0..ranks).map(|_| Mutex::default()).collect();
        Arc::new(Cables { slow, frames, bulk: Mutex::default(), by_agents, finished: AtomicUsize::new(0), start: Instant::now() })
    }
}

/// Machines with their cables.
#[derive(Debug)]
pub(crate) struct Machines {
    /// The machine of each rank.
    names: Vec<usize>,
    per_node: usize,
    fabrics: Vec<Arc<Fabric>>,
    cables: Arc<Cables>,
    silence: Duration,
}

impl Machines {
    /// Machines by `names`, the machine of each rank.
    pub(crate) fn new(names: &[usize], slow: Slow) -> Self {
        const HEAP: usize = 64 << 20;
        let topology = Topology::of_machines(0, names);
        let ranks_of = |machine| (0..names.len()).filter(|&rank| topology.machine(rank) == machine).count();
        let fabric = |machine| Arc::new(Fabric::new(ranks_of(machine), HEAP, false).expect("memory for a machine"));
        let fabrics = (0..topology.machines()).map(fabric).collect();
        Machines {
            names: names.to_vec(),
            per_node: usize::MAX,
            fabrics,
            cables: Cables::new(names.len(), slow, false),
            silence: SILENCE,
        }
    }

    /// These machines, cut into nodes of `per_node` ranks.
    pub(crate) fn nodes_of(self, per_node: usize) -> Self {
        Machines { per_node, ..self }
    }

    /// These machines, where the first rank of a node answers for all of it.
    pub(crate) fn by_agents(self) -> Self {
        let cables = Cables::new(self.names.len(), self.cables.slow, true);
        Machines { cables, ..self }
    }

    /// These machines, where one that is silent for `silence` is lost.
    pub(crate) fn silence(self, silence: Duration) -> Self {
        Machines { silence, ..self }
    }

    pub(crate) fn ranks(&self) -> usize {
        self.names.len()
    }

    /// One rank's view of its machine, and its network, which no thread looks at yet.
    pub(in crate::comm) fn network(&self, rank: usize) -> (Member, Arc<Am<Cable>>) {
        let topology = Topology::of_machines(rank, &self.names);
        let fabric = self.fabrics[topology.machine(rank)].clone();
        // However many threads the process has, none acts for this rank.
        let member = Member::new(fabric, topology.with_ranks_per_node(self.per_node), 1, None);
        let am = Am::new(Cable::new(rank, self.cables.clone()), &member, true, false, Some(self.silence));
        (member, Arc::new(am))
    }

    /// One rank's conduit, and the rank's last steps when its body has ended well.
    pub(crate) fn conduit(&self, rank: usize) -> (Arc<Conduit>, impl FnOnce() + use<>) {
        let (member, am) = self.network(rank);
        let helper = Helper::answering(member.topology(), member.fabric(), am.clone()).expect("a thread");
        let conduit: Arc<Conduit> = Arc::new(Conduit::with_network(member, am.clone()));
        let (cables, ranks) = (self.cables.clone(), self.names.len());
        let leave = move || {
            am.leave(LeaveStep::Drain);
            cables.finished.fetch_add(1, Ordering::SeqCst);
            am.leave(LeaveStep::Serve(&|| cables.finished.load(Ordering::SeqCst) == ranks));
            drop(helper);
        };
        (conduit, leave)
    }
}

/// A rank's end of the cables.
#[derive(Debug)]
pub(in crate::comm) struct Cable {
    rank: usize,
    cables: Arc<Cables>,
    spare: Frames,
    wanted: Vec<Wanted>,
    ended: Vec<Ended>,
}

/// A bulk message to be received.
#[derive(Debug)]
struct Wanted {
    from: usize,
    tag: Tag,
    id: BulkId,
    to: Option<(*mut u8, usize)>,
}

// SAFETY: the pointer is that of `receive_bulk`, whose caller promises that the memory may be written until the end is reported.
unsafe impl Send for Wanted {}

impl Cable {
    fn new(rank: usize, cables: Arc<Cables>) -> Self {
        Cable { rank, cables, spare: Frames::new(LIMITS.frame, 8), wanted: Vec::new(), ended: Vec::new() }
    }
}

impl Wire for Cable {
    fn limits(&self) -> Limits {
        Limits { by_agents: self.cables.by_agents, ..LIMITS }
    }

    fn frame(&mut self) -> Frame {
        self.spare.take()
    }

    fn keep(&mut self, frame: Frame) {
        self.spare.give(frame);
    }

    fn send(&mut self, to: usize, class: Class, frame: Frame) -> Result<Option<Frame>> {
        let bytes = frame.sealed().to_vec();
        let records = frame.read(bytes.len()).map(|(.., records)| records);
        let delay = match self.cables.slow {
            Slow::Records(Record(kind), delay) if records.into_iter().flatten().any(|record| record.kind == kind) => delay,
            _ => Duration::ZERO,
        };
        let delay = match self.cables.slow {
            Slow::Way(from, other, delay) if (from, other) == (self.rank, to) => delay,
            Slow::Cut(after) if self.cables.start.elapsed() >= after => Duration::from_secs(3600),
            _ => delay,
        };
        let mut frames = self.cables.frames[to].lock().unwrap();
        frames.entry((self.rank, class)).or_default().push_back((Instant::now() + delay, bytes));
        drop(frames);
        self.spare.give(frame);
        Ok(None)
    }

    fn leaving(&self) -> usize {
        0
    }

    fn receive(&mut self) -> Result<Option<Arrival>> {
        let mut frames = self.cables.frames[self.rank].lock().unwrap();
        let now = Instant::now();
        for (&(from, _), queue) in frames.iter_mut() {
            if queue.front().is_some_and(|(due, _)| *due <= now)
                && let Some((_, bytes)) = queue.pop_front()
            {
                let mut frame = self.spare.take();
                frame.bytes_mut()[..bytes.len()].copy_from_slice(&bytes);
                return Ok(Some(Arrival { from, frame, len: bytes.len() }));
            }
        }
        Ok(None)
    }

    unsafe fn send_bulk(&mut self, to: usize, bytes: *const u8, len: usize, tag: Tag, id: BulkId) -> Result<()> {
        let delay = if let Slow::Bulk(delay) = self.cables.slow { delay } else { Duration::ZERO };
        let mut copy = vec![0; len];
        // SAFETY: the caller's promise.
        unsafe { crate::memory::kernels::copy(copy.as_mut_ptr(), bytes, len) };
        let key = (self.rank, to, tag.kind as u8, tag.number);
        self.cables.bulk.lock().unwrap().insert(key, (Instant::now() + delay, copy));
        self.ended.push(Ended { id, len: 0 });
        Ok(())
    }

    unsafe fn receive_bulk(&mut self, from: usize, bytes: *mut u8, len: usize, tag: Tag, id: BulkId) -> Result<()> {
        self.wanted.push(Wanted { from, tag, id, to: Some((bytes, len)) });
        Ok(())
    }

    fn cancel(&mut self, id: BulkId) {
        for wanted in self.wanted.iter_mut().filter(|wanted| wanted.id == id) {
            if wanted.to.take().is_some() {
                self.ended.push(Ended { id, len: 0 });
            }
        }
    }

    fn ended(&mut self, ended: &mut Vec<Ended>) -> Result<()> {
        ended.append(&mut self.ended);
        let mut bulk = self.cables.bulk.lock().unwrap();
        let now = Instant::now();
        self.wanted.retain(|wanted| {
            let key = (wanted.from, self.rank, wanted.tag.kind as u8, wanted.tag.number);
            if bulk.get(&key).is_none_or(|(due, _)| *due > now) {
                return true;
            }
            let (_, bytes) = bulk.remove(&key).expect("it was there");
            if let Some((to, room)) = wanted.to {
                let len = bytes.len().min(room);
                // SAFETY: the memory of the caller that asked for the message, as long as it said.
                unsafe { crate::memory::kernels::copy(to, bytes.as_ptr(), len) };
                ended.push(Ended { id: wanted.id, len });
            }
            false
        });
        Ok(())
    }

    fn arm(&mut self) -> bool {
        false
    }

    fn close(&mut self) {}
}
