//! With whom a rank shares a machine, and memory.
//!
//! Each rank says which machine it is on, and which numbers of processes mean something there: ranks that agree on both are a group. The
//! first of a group makes the memory file, which has no name; the others open it through the first one's descriptor in
//! `/proc`, and look that it is the same file. Where that is not allowed, each rank becomes a node. All agree on what must be
//! equal everywhere: the length of segments, the size of pages.
//!
//! That is a gathering of three words of each rank, a message to each member of a group, and one reduction. Each is waited for by looks that
//! let others run: at the start of a job ranks often outnumber the cores for a moment. MPI's own
//! `MPI_Comm_split_type` would tell less and wait longer. Settings of which each rank hears by its own environment are compared on the way.

use std::{
    fs::{self, File},
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

use rustix::{
    fd::{AsFd, AsRawFd, OwnedFd},
    fs::fstat,
    process::Pid,
    system::uname,
    thread::{CpuSet, sched_getaffinity},
};

use super::ffi::{Comm, MpiError, Result as MpiResult};
use crate::{
    comm::{Topology, layers::LAYERS, node::Fabric, settings::Settings},
    error::Error,
};

/// Shortest segment that is tried.
const LEAST: usize = 1 << 20;

/// What a first rank tells its group is sent under this tag: the frames' come later, from whom they may.
const START: i32 = 1;

pub(super) fn failed(what: &'static str) -> impl Fn(MpiError) -> Error {
    move |error| Error::Launch(format!("{what}: {error}"))
}

/// Where a rank is, and with whom it shares memory.
pub(super) struct Place {
    pub(super) topology: Topology,
    pub(super) fabric: Arc<Fabric>,
    /// Cores that the ranks of this node share.
    pub(super) cores: usize,
    /// On some machine ranks outnumber the cores.
    pub(super) crowded: bool,
    /// The launcher left each rank of this machine all its cores.
    pub(super) unbound: bool,
}

/// Why ranks could not map the memory of their group.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Refusal {
    None = 0,
    /// Address space or pages are missing: a smaller one may fit.
    TooLarge = 1,
    /// The file of the first rank cannot be opened here.
    Apart = 2,
}

/// Who is where: for each rank its machine, its group, its process, and what it was told that must be equal on all.
struct Everybody {
    machines: Vec<u64>,
    groups: Vec<u64>,
    pids: Vec<u32>,
    told: Vec<u32>,
}

/// Bit of what a rank was told: operations are counted.
const COUNTED: u32 = 1 << 31;
/// The first of the bits below: a bit for each layer on the network. Those below these are the ranks of a node, 0 for those of a machine.
const FIRST_LAYER: u32 = COUNTED.trailing_zeros() - LAYERS.len() as u32;

impl Everybody {
    /// Collective.
    fn find(comm: Comm, settings: &Settings) -> MpiResult<Self> {
        let [machine, group] = here();
        let per_node = settings.ranks_per_node.map_or(0, |most| most.min((1 << FIRST_LAYER) - 1) as u32);
        let layers = settings.layers.iter().fold(0, |bits, &layer| bits | 1 << (FIRST_LAYER + layer as u32));
        let told = per_node | layers | if settings.stats { COUNTED } else { 0 };
        let all = comm.all_gather([machine, group, u64::from(std::process::id()) | u64::from(told) << 32])?;
        Ok(Everybody {
            machines: all.iter().map(|words| words[0]).collect(),
            groups: all.iter().map(|words| words[1]).collect(),
            pids: all.iter().map(|words| words[2] as u32).collect(),
            told: all.iter().map(|words| (words[2] >> 32) as u32).collect(),
        })
    }

    /// What is wrong if ranks were told different things, the same words on all. They would wait for each other in vain.
    fn differ(&self) -> Option<String> {
        let first = self.told[0];
        let (rank, other) = self.told.iter().enumerate().find(|&(_, &other)| other != first)?;
        let name = match first ^ other {
            differ if differ & COUNTED != 0 => "GA_STATS",
            differ if differ >> FIRST_LAYER != 0 => "GA_NETWORK",
            _ => "GA_RANKS_PER_NODE",
        };
        Some(format!(
            "rank {rank} has another {name} than rank 0; the launcher must hand it on to all (Open MPI's does with -x {name})"
        ))
    }

    /// The ranks of a rank's group, ascending.
    fn group(&self, rank: usize) -> Vec<usize> {
        (0..self.groups.len()).filter(|&other| self.groups[other] == self.groups[rank]).collect()
    }

    /// No two ranks share memory.
    fn part(&mut self) {
        self.groups = (0..self.groups.len() as u64).collect();
    }

    /// How many ranks are on a rank's machine.
    fn together(&self, rank: usize) -> usize {
        self.machines.iter().filter(|&&machine| machine == self.machines[rank]).count()
    }

    /// The cores that a rank's group may use together, and those of this process.
    fn cores(&self, rank: usize) -> (usize, usize) {
        let of = |pid: Option<Pid>| sched_getaffinity(pid).unwrap_or_else(|_| CpuSet::new());
        let own = of(None);
        let group: Vec<CpuSet> = self.group(rank).into_iter().map(|rank| of(Pid::from_raw(self.pids[rank] as i32))).collect();
        let is_set = |cpu: &usize| own.is_set(*cpu) || group.iter().any(|set| set.is_set(*cpu));
        let all = (0..CpuSet::MAX_CPU).filter(is_set).count().max(1);
        (all, (own.count() as usize).max(1))
    }
}

/// This machine, and what its processes are numbered in.
fn here() -> [u64; 2] {
    let name = uname();
    let boot = fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let numbers = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    let mut hasher = DefaultHasher::new();
    (name.nodename().to_bytes(), boot).hash(&mut hasher);
    let machine = hasher.finish();
    numbers.hash(&mut hasher);
    [machine, hasher.finish()]
}

impl Place {
    /// Collective.
    pub(super) fn find(comm: Comm, rank: usize, settings: &Settings) -> Result<Self, Error> {
        let fail = failed("finding the ranks of this node");
        let mut everybody = Everybody::find(comm, settings).map_err(&fail)?;
        if let Some(differ) = everybody.differ() {
            return Err(Error::Launch(differ));
        }
        let (cores, own) = everybody.cores(rank);
        let together = everybody.together(rank);
        let (mut heap, mut large) = (settings.heap, settings.large_pages);
        let (fabric, crowded) = loop {
            match share(comm, &everybody.group(rank), rank, together > cores, heap, large).map_err(&fail)? {
                Shared::Yes { fabric, crowded } => break (fabric, crowded),
                Shared::Again { segment, large_pages } if segment > 0 => (heap, large) = (segment, large_pages),
                Shared::Again { .. } => {
                    return Err(Error::Launch("not even a small heap can be mapped on some node (ulimit -v)".into()));
                }
                Shared::Apart => {
                    if rank == 0 {
                        eprintln!(
                            "global-arrays: ranks of one machine cannot open each other's memory (another user's processes, or \
                             hidden ones); each is treated as a node of its own"
                        );
                    }
                    everybody.part();
                }
            }
        };
        let topology = settings.place(Topology::of_machines(rank, &everybody.groups));
        // Ranks that could not share memory share the cores all the same.
        let cores = (cores * fabric.ranks() / together).max(1);
        Ok(Place { topology, fabric: Arc::new(fabric), cores, crowded, unbound: own == cores })
    }
}

/// How an attempt to share memory ended, the same on all ranks.
enum Shared {
    Yes {
        fabric: Fabric,
        crowded: bool,
    },
    /// All must try with these values.
    Again {
        segment: usize,
        large_pages: bool,
    },
    Apart,
}

/// Maps the memory of each group, segments equally long everywhere. Collective.
fn share(comm: Comm, group: &[usize], rank: usize, crowded: bool, heap: usize, large: bool) -> MpiResult<Shared> {
    let made = if group[0] == rank { Fabric::new(group.len(), heap, large).ok() } else { None };
    let told = made.as_ref().and_then(|fabric| {
        let file = fstat(fabric.file()).ok()?;
        let descriptor = fabric.file().as_raw_fd() as u64;
        let (granule, segment) = (fabric.granule() as u64, fabric.segment_len() as u64);
        Some([u64::from(std::process::id()), descriptor, file.st_dev, file.st_ino, granule, segment])
    });
    let told = tell(comm, group, rank, told.unwrap_or_default())?;
    let [.., granule, segment] = told;
    let (fabric, refusal) = match made {
        _ if segment == 0 => (None, Refusal::TooLarge),
        Some(fabric) => (Some(fabric), Refusal::None),
        None => match open(told).map(|file| Fabric::attach(file, granule as usize, group.len(), segment as usize)) {
            Some(Ok(fabric)) => (Some(fabric), Refusal::None),
            Some(Err(_)) => (None, Refusal::TooLarge),
            None => (None, Refusal::Apart),
        },
    };
    let words = [refusal as u64, u64::from(crowded), segment, !segment, granule, !granule];
    let [refusal, crowded, longest, least, coarsest, finest] = comm.greatest(words)?;
    let (least, finest) = (!least, !finest);
    Ok(match fabric {
        _ if refusal == Refusal::Apart as u64 => Shared::Apart,
        Some(fabric) if refusal == 0 && least == longest && finest == coarsest => Shared::Yes { fabric, crowded: crowded != 0 },
        _ => {
            let half = (heap / 2).min(longest as usize);
            let segment = if refusal != 0 || least == longest && finest == coarsest { half } else { least as usize };
            Shared::Again { segment: if segment < LEAST { 0 } else { segment }, large_pages: large && finest == coarsest }
        }
    })
}

/// Words of a group's first rank, to the others.
fn tell(comm: Comm, group: &[usize], rank: usize, mut words: [u64; 6]) -> MpiResult<[u64; 6]> {
    let (bytes, len) = ((&raw mut words).cast::<u8>(), size_of_val(&words));
    if group[0] != rank {
        // SAFETY: the words live, and are looked at by nobody, until the request is complete.
        unsafe { comm.begin_receive(bytes, len, Some(group[0]), START) }?.finish()?;
        return Ok(words);
    }
    // SAFETY: the words live, unchanged, until all requests are complete.
    let sends: Vec<_> = group[1..].iter().map(|&to| unsafe { comm.begin_send(bytes, len, to, START) }).collect();
    for send in sends {
        send?.finish()?;
    }
    Ok(words)
}

/// The file of another process of this node.
fn open([pid, descriptor, device, inode, ..]: [u64; 6]) -> Option<OwnedFd> {
    let file = File::options().read(true).write(true).open(format!("/proc/{pid}/fd/{descriptor}")).ok()?;
    let found = fstat(file.as_fd()).ok()?;
    // Numbers of processes and descriptors may mean something else where this process lives.
    (found.st_dev == device && found.st_ino == inode).then(|| file.into())
}
