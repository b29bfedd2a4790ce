//! The ranks with which a rank shares a machine, and memory.
//!
//! Each rank names its machine, and its namespace of process numbers; ranks that agree on both are a group. The first of a group makes
//! the memory file, which has no name. The others open it through the first one's descriptor in `/proc`, and check the token of their
//! job. Where that is not allowed, each rank becomes a node. All agree on the length of segments and the size of pages, and compare
//! settings that must be equal. If the launcher has given the nodes, a gathering in each node replaces a gathering of all.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    hash::{DefaultHasher, Hash, Hasher},
    os::unix::fs::FileExt,
    sync::Arc,
};

use rustix::{process::Pid, system::uname};

use super::Bootstrap;
use crate::{
    comm::{
        Spot, Spots, Topology,
        kit::{cores, random, say::say},
        layers::LAYERS,
        node::Fabric,
        start::settings::Settings,
    },
    error::Error,
};

/// The shortest segment to try.
const LEAST: usize = 1 << 20;

/// Where a rank is, and the memory that it shares.
pub(crate) struct Place {
    pub(crate) topology: Topology,
    pub(crate) fabric: Arc<Fabric>,
    /// Cores that the ranks of this node share.
    pub(crate) cores: usize,
    /// On some machine ranks outnumber the cores.
    pub(crate) crowded: bool,
    /// The launcher left each rank of this machine all its cores.
    pub(crate) unbound: bool,
    /// The token of the job.
    pub(crate) token: u128,
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

/// The machine and the group of each rank. The cores that the caller's group may use together, and those of this process.
struct Everybody {
    machines: Vec<u64>,
    groups: Vec<u64>,
    cores: (usize, usize),
}

/// A number that one job has and no other.
type JobToken = [u64; 2];

/// Bit of a rank's settings: operations are counted.
const COUNTED: u32 = 1 << 31;
/// The first of the bits below: a bit for each layer on the network. The bits below that are the ranks of a node, 0 for those of
/// a machine.
const FIRST_LAYER: u32 = COUNTED.trailing_zeros() - LAYERS.len() as u32;

/// The words of a rank: its machine, its group and its process. The settings that must be equal on all are with its process; rank
/// 0 adds the token.
type Words = [u64; 5];

fn process_of(words: &Words) -> Option<Pid> {
    Pid::from_raw(words[2] as u32 as i32)
}

fn told_of(words: &Words) -> u32 {
    (words[2] >> 32) as u32
}

impl Everybody {
    /// Finds the place of every rank, and the token of the job.
    fn find(bootstrap: &mut impl Bootstrap, settings: &Settings, has_network: bool) -> Result<(Self, JobToken), Error> {
        let [machine, group] = here();
        // If there is no token, all ranks learn so.
        let [first, second] = if bootstrap.rank() == 0 { random::secret().unwrap_or_default() } else { [0; 2] };
        let per_node = settings.ranks_per_node.map_or(0, |most| most.min((1 << FIRST_LAYER) - 1) as u32);
        let layers = settings.layers.iter().fold(0, |bits, &layer| bits | 1 << (FIRST_LAYER + layer as u32));
        let told = per_node | layers | if settings.stats { COUNTED } else { 0 };
        let process = u64::from(std::process::id()) | u64::from(told) << 32;
        let words = [machine, group, process, first, second];
        let nodes = bootstrap.nodes()?;
        // A launcher may take one machine for several hosts. Without a network its ranks must be found to be on one.
        let nodes = nodes.filter(|nodes| has_network || nodes.iter().all(|&node| node == nodes[0]));
        let found = nodes.map_or(Ok(None), |nodes| Self::by_nodes(bootstrap, &nodes, words))?;
        let (everybody, token) = found.map_or_else(|| Self::by_words(bootstrap, words), Ok)?;
        if token == [0; 2] {
            return Err(Error::Launch("rank 0 could not draw random numbers for the token of the job (getrandom)".into()));
        }
        Ok((everybody, token))
    }

    /// By the nodes that the launcher has given. Returns none on all ranks if ranks of a node do not agree that they are on one
    /// machine, or if settings differ.
    fn by_nodes(bootstrap: &mut impl Bootstrap, nodes: &[u32], words: Words) -> Result<Option<(Self, JobToken)>, Error> {
        let own = nodes[bootstrap.rank()];
        let group: Vec<usize> = (0..nodes.len()).filter(|&rank| nodes[rank] == own).collect();
        let near = bootstrap.near(&group, words)?;
        let split = near.iter().any(|other| other[..2] != words[..2]);
        let (told, [.., first, second]) = (u64::from(told_of(&words)), words);
        let [split, most, least, first, second] = bootstrap.greatest([split.into(), told, !told, first, second])?;
        if split != 0 || most != !least {
            return Ok(None);
        }
        let [all] = bootstrap.tell(&group, [cores_of(near.iter().map(process_of)) as u64])?;
        let groups: Vec<u64> = nodes.iter().map(|&node| node.into()).collect();
        let cores = (all as usize, cores_of([None].into_iter()));
        Ok(Some((Everybody { machines: groups.clone(), groups, cores }, [first, second])))
    }

    /// By the words of all ranks.
    fn by_words(bootstrap: &mut impl Bootstrap, words: Words) -> Result<(Self, JobToken), Error> {
        let all = bootstrap.gather(words)?;
        if let Some(differ) = differ(&all) {
            return Err(Error::Launch(differ));
        }
        let group = all.iter().filter(|other| other[1] == words[1]).map(process_of);
        let everybody = Everybody {
            machines: all.iter().map(|words| words[0]).collect(),
            groups: all.iter().map(|words| words[1]).collect(),
            cores: (cores_of(group.chain([None])), cores_of([None].into_iter())),
        };
        Ok((everybody, [all[0][3], all[0][4]]))
    }

    /// Refuses ranks of several machines. Only rank 0 adds advice.
    fn refuse_machines(&self, rank: usize) -> Result<(), Error> {
        let Some(far) = self.machines.iter().position(|&machine| machine != self.machines[0]) else { return Ok(()) };
        let advice = if rank == 0 {
            "; GA_NETWORK=ib joins them over InfiniBand, and GA_NETWORK=mpi does in a program that is built with `--features mpi` and started \
             by the mpirun of that MPI (docs/cluster.md)"
        } else {
            ""
        };
        Err(Error::Launch(format!(
            "ranks 0 and {far} are on different machines, and \"shared_memory\" joins ranks of one machine only{advice}"
        )))
    }

    /// The ranks of a rank's group, ascending.
    fn group(&self, rank: usize) -> Vec<usize> {
        (0..self.groups.len()).filter(|&other| self.groups[other] == self.groups[rank]).collect()
    }

    /// Separates all ranks: no two share memory.
    fn part(&mut self) {
        self.groups = (0..self.groups.len() as u64).collect();
    }

    /// The number of ranks on a rank's machine.
    fn together(&self, rank: usize) -> usize {
        self.machines.iter().filter(|&&machine| machine == self.machines[rank]).count()
    }
}

/// The error if ranks have different settings, in the same words on all. They would wait for each other in vain.
fn differ(all: &[Words]) -> Option<String> {
    let first = told_of(&all[0]);
    let (rank, other) = all.iter().map(told_of).enumerate().find(|&(_, other)| other != first)?;
    let name = match first ^ other {
        differ if differ & COUNTED != 0 => "GA_STATS or GA_TRACE",
        differ if differ >> FIRST_LAYER != 0 => "GA_NETWORK",
        _ => "GA_RANKS_PER_NODE",
    };
    Some(format!(
        "rank {rank} has another {name} than rank 0; the launcher must hand it on to all (Open MPI's does with -x {name})"
    ))
}

/// The number of cores that processes may use together, at least 1. `None` is this process.
fn cores_of(processes: impl Iterator<Item = Option<Pid>>) -> usize {
    let all: BTreeSet<usize> = processes.flat_map(|process| cores::allowed(process).unwrap_or_default()).collect();
    all.len().max(1)
}

/// This machine, and the namespace of its process numbers.
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
    pub(crate) fn find(bootstrap: &mut impl Bootstrap, settings: &Settings, has_network: bool) -> Result<Self, Error> {
        let rank = bootstrap.rank();
        let (mut everybody, token) = Everybody::find(bootstrap, settings, has_network)?;
        if !has_network {
            everybody.refuse_machines(rank)?;
        }
        let (cores, own) = everybody.cores;
        let together = everybody.together(rank);
        let (mut heap, mut large) = (settings.heap, settings.large_pages);
        let (fabric, crowded, topology) = loop {
            let topology = settings.place(Topology::of_machines(rank, &everybody.groups));
            let memory = GroupMemory { heap, large, tables: topology.tables() };
            match share(bootstrap, &everybody.group(rank), token, together > cores, &memory)? {
                Sharing::Yes { fabric, crowded } => break (fabric, crowded, topology),
                Sharing::Again { segment, large_pages } if segment > 0 => (heap, large) = (segment, large_pages),
                Sharing::Again { .. } => {
                    return Err(Error::Launch("not even a small heap can be mapped on some node; lift the limits of its address space and of its files (ulimit -v unlimited, ulimit -f unlimited)".into()));
                }
                Sharing::Apart if !has_network => {
                    return Err(Error::Launch(
                        "ranks of one machine cannot open each other's memory (another user's processes, or hidden ones, as in \
                         containers of their own), and no network joins them; GA_NETWORK=mpi would, in a binary with the feature `mpi`"
                            .into(),
                    ));
                }
                Sharing::Apart => {
                    if rank == 0 {
                        say("ranks of one machine cannot open each other's memory (another user's processes, or \
                             hidden ones); each is treated as a node of its own");
                    }
                    everybody.part();
                }
            }
        };
        // One copy of what every rank of the group would have.
        let topology = topology.with_tables(&(fabric.clone() as Spots));
        // Ranks that could not share memory share the cores all the same.
        let cores = (cores * fabric.ranks() / together).max(1);
        let token = u128::from(token[0]) << 64 | u128::from(token[1]);
        Ok(Place { topology, fabric, cores, crowded, unbound: own == cores, token })
    }
}

/// The end of an attempt to share memory, equal on all ranks.
enum Sharing {
    Yes {
        fabric: Arc<Fabric>,
        crowded: bool,
    },
    /// All must try with these values.
    Again {
        segment: usize,
        large_pages: bool,
    },
    Apart,
}

/// The memory of a group: segments of `heap` bytes, of large pages or not, and the tables of the topology.
struct GroupMemory {
    heap: usize,
    large: bool,
    tables: Vec<Spot>,
}

/// Maps the memory of each group, segments equally long everywhere. Collective.
fn share(
    bootstrap: &mut impl Bootstrap,
    group: &[usize],
    token: JobToken,
    crowded: bool,
    memory: &GroupMemory,
) -> Result<Sharing, Error> {
    let &GroupMemory { heap, large, ref tables } = memory;
    let made = || Fabric::with_tables(group.len(), heap, large, tables).ok();
    let made = if group[0] == bootstrap.rank() { made() } else { None };
    let told = made.as_ref().map(|fabric| {
        fabric.set_token(token);
        let descriptor = fabric.descriptor() as u64;
        [u64::from(std::process::id()), descriptor, fabric.granule() as u64, fabric.segment_len() as u64]
    });
    let told = bootstrap.tell(group, told.unwrap_or_default())?;
    let [.., granule, segment] = told;
    let (fabric, refusal) = match made {
        _ if segment == 0 => (None, Refusal::TooLarge),
        Some(fabric) => (Some(fabric), Refusal::None),
        None => {
            let attach = |file: File| Fabric::attach(file.into(), granule as usize, group.len(), tables.len(), segment as usize);
            match open(told, token).map(attach) {
                Some(Ok(fabric)) => (Some(fabric), Refusal::None),
                Some(Err(_)) => (None, Refusal::TooLarge),
                None => (None, Refusal::Apart),
            }
        }
    };
    let words = [refusal as u64, u64::from(crowded), segment, !segment, granule, !granule];
    let [refusal, crowded, longest, least, coarsest, finest] = bootstrap.greatest(words)?;
    let (least, finest) = (!least, !finest);
    Ok(match fabric {
        _ if refusal == Refusal::Apart as u64 => Sharing::Apart,
        Some(fabric) if refusal == 0 && least == longest && finest == coarsest => {
            Sharing::Yes { fabric: Arc::new(fabric), crowded: crowded != 0 }
        }
        _ => {
            let half = (heap / 2).min(longest as usize);
            let segment = if refusal != 0 || least == longest && finest == coarsest { half } else { least as usize };
            Sharing::Again { segment: if segment < LEAST { 0 } else { segment }, large_pages: large && finest == coarsest }
        }
    })
}

/// The file of another process of this node.
fn open([pid, descriptor, ..]: [u64; 4], token: JobToken) -> Option<File> {
    let file = File::options().read(true).write(true).open(format!("/proc/{pid}/fd/{descriptor}")).ok()?;
    // Numbers of processes and descriptors may mean something else where this process lives.
    let mut found = [0; size_of::<JobToken>()];
    file.read_exact_at(&mut found, 0).ok()?;
    (found == Fabric::token_bytes(token)).then_some(file)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use rustix::fd::AsRawFd;

    use super::*;

    #[test]
    fn a_rank_opens_the_memory_of_its_own_job_only() {
        let fabric = Fabric::new(1, 1 << 20, false).unwrap();
        fabric.set_token([1, 2]);
        let told = [u64::from(std::process::id()), fabric.descriptor() as u64, 0, 0];
        assert!(open(told, [1, 2]).is_some());
        assert!(open(told, [1, 3]).is_none() && open(told, [0, 2]).is_none());
        // A descriptor that is something else where this process lives.
        let other = File::open("/proc/self/stat").unwrap();
        assert!(open([told[0], other.as_raw_fd() as u64, 0, 0], [1, 2]).is_none());
    }
}
