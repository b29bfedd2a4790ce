//! How a rank of a job under MPI starts and ends.
//!
//! The launcher started the processes. Here they find out who shares a node, map its memory, and agree on what must be equal on all: the
//! length of segments, the size of pages. The first rank of a node makes the memory file, which has no name; the others open it through
//! the first one's descriptor in `/proc`, and look that it is the same file. Where that is not allowed (processes in containers of their
//! own), each rank becomes a node.
//!
//! All messages of a job travel in a copy of the communicator that it was made from, so they never meet the program's own.
//!
//! # The end
//!
//! A rank whose body returned well waits for all others, then gives the communicator back. A rank that fails tells the others;
//! they wait for a moment for the launcher to end them, so that one message is seen and not one from each rank. MPI
//! is finalised when the process ends, if it was initialised here; after a failure it is not, since ranks that are gone cannot take part,
//! and the launcher takes that as the failure that it is.

use std::{
    fs::File,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use mpi::ffi::MPI_Comm;
use rustix::{
    fd::{AsFd, AsRawFd, OwnedFd},
    fs::fstat,
    thread::{CpuSet, sched_getaffinity},
};

use super::{
    Mpi,
    ffi::{self, Combine, Comm, MpiError, Threads},
    memory::{Over, Segment},
    net::Net,
    nodes::Nodes,
    progress::{Helper, Neighbour},
};
use crate::{
    comm::{
        Conduit,
        node::{Fabric, Member, threads_of_this_process},
    },
    error::Error,
    job::launch::Start,
};

/// How long a rank that hears of a failure leaves the word to the one that failed.
const GRACE: Duration = Duration::from_secs(2);

/// A job failed in this process: MPI cannot be finalised. MPI itself is one for the process.
static FAILED: AtomicBool = AtomicBool::new(false);

/// A rank of a job, from its start to its end.
#[derive(Debug)]
pub(crate) struct Rank {
    mpi: Arc<Mpi>,
    comm: Comm,
    helper: Option<Helper>,
    /// Cores that the ranks of this node share.
    pub(crate) cores: usize,
}

fn failed(what: &'static str) -> impl Fn(MpiError) -> Error {
    move |error| Error::Launch(format!("{what}: {error}"))
}

/// The communicator of all processes that the launcher started; initialises MPI if nobody has.
pub(crate) fn world() -> Result<MPI_Comm, Error> {
    if ffi::is_finalised() {
        return Err(Error::Launch("MPI was finalised in this process and cannot be started again: run jobs before that".into()));
    }
    check_library()?;
    if !ffi::is_running() {
        ffi::initialise().map_err(failed("starting MPI"))?;
        // SAFETY: the function takes and returns nothing.
        unsafe { libc::atexit(finalise) };
    }
    Ok(Comm::world())
}

/// How many processes MPI knows of.
pub(crate) fn world_size() -> Result<usize, Error> {
    Comm::size_of_world().map_err(failed("asking MPI for the number of ranks"))
}

/// At the end of the process.
extern "C" fn finalise() {
    if ffi::is_running() && !FAILED.load(Ordering::Relaxed) {
        ffi::finalise();
    }
}

/// That the library at run time is of the family that the program was built with: their handles differ.
fn check_library() -> Result<(), Error> {
    // Handles of the MPICH family are numbers of four bytes, those of Open MPI are pointers.
    let built = if size_of::<MPI_Comm>() == 4 { "MPICH" } else { "Open MPI" };
    let found = ffi::library_version();
    if found.contains("Open MPI") == (built == "Open MPI") {
        return Ok(());
    }
    Err(Error::Launch(format!(
        "this program was built with {built}, but the MPI library that it finds at run time is \"{}\"; run it with the library it was \
         built with, or build it again (MPICC)",
        found.lines().next().unwrap_or(&found)
    )))
}

impl Rank {
    /// Collective over the communicator, which stays the caller's.
    pub(crate) fn start(comm: MPI_Comm, start: &Start, wanted: Option<usize>) -> Result<Self, Error> {
        let fail = failed("starting a job on an MPI communicator");
        let comm = Comm::copy_of(comm).map_err(&fail)?;
        let (rank, size) = (comm.rank().map_err(&fail)?, comm.size().map_err(&fail)?);
        if let Some(wanted) = wanted.filter(|&wanted| wanted != size) {
            comm.free();
            return Err(Error::Launch(format!(
                "{wanted} ranks were asked for, but the MPI launcher started {size}; the number of ranks is the launcher's (mpirun -n)"
            )));
        }
        let machine = comm.split_by_machine().map_err(&fail)?;
        let place = Place::find(comm, machine, rank, size, start)?;
        let answers = !place.alone;
        let threads = ffi::threads().map_err(&fail)?;
        let has_thread = threads == Threads::Multiple;
        if answers && !has_thread && rank == 0 {
            eprintln!(
                "global-arrays: MPI was initialised without MPI_THREAD_MULTIPLE; ranks of other nodes are answered only while this \
                 program calls the crate"
            );
        }
        let known = threads_of_this_process().map_err(|e| Error::system("counting the threads of this process", e))? + 1;
        let together = place.fabric.ranks();
        let patient = if place.crowded { 0 } else { together };
        let local = place.machines.local(rank);
        let node = Member::new("mpi", place.fabric.clone(), local, patient, known).named(rank, size);
        let capabilities = Mpi::capabilities_of(&node, place.alone, place.crowded, has_thread);
        let segment = Segment::new(node.segment(), node.segment_len());
        let net = Net::new(comm, segment, Over::new(place.fabric.over())).map_err(&fail)?;
        // A launcher that bound its processes knew what it did.
        if place.unbound {
            start.pin_among(local, together);
        }
        let mpi = Arc::new(Mpi {
            rank,
            size,
            alone: place.alone,
            nodes: place.nodes,
            machines: place.machines,
            node,
            fabric: place.fabric,
            capabilities,
            net: Mutex::new(net),
            looks: AtomicU64::new(0),
            closed: AtomicBool::new(false),
            start: Instant::now(),
        });
        let next = (local + 1) % together;
        let neighbour =
            place.pids.get(next).filter(|_| next != local).and_then(|&pid| Neighbour::new(next, mpi.machine_ranks()[next], pid));
        let helper = if (answers && has_thread) || neighbour.is_some() {
            let helper = Helper::start(mpi.clone(), answers && has_thread, neighbour);
            Some(helper.map_err(|e| Error::system("starting the thread that makes progress", e))?)
        } else {
            None
        };
        Ok(Rank { mpi, comm, helper, cores: place.cores })
    }

    pub(crate) fn conduit(&self) -> Arc<dyn Conduit> {
        self.mpi.clone()
    }

    pub(crate) fn size(&self) -> usize {
        self.mpi.size
    }

    /// The end of the rank, with the words of its failure if it failed.
    pub(crate) fn end(self, outcome: Result<(), String>) -> Result<(), Error> {
        let mpi = &self.mpi;
        let local = mpi.machines.local(mpi.rank);
        match outcome {
            Ok(()) => {
                mpi.fabric.set_finished(local);
                if self.close() {
                    return Ok(());
                }
            }
            Err(words) => {
                mpi.fabric.set_last_words(local, &words);
                if mpi.fabric.failure().is_none() {
                    mpi.end(&words);
                }
            }
        }
        FAILED.store(true, Ordering::Relaxed);
        let (rank, cause) = match mpi.fabric.failure() {
            Some((Some(rank), cause)) => (rank, cause),
            Some((None, cause)) => (mpi.rank, cause),
            None => (mpi.rank, "failed without a word".into()),
        };
        if rank != mpi.rank {
            std::thread::sleep(GRACE);
        }
        // Others may still ask for the reason: what answers them goes on until the process ends.
        std::mem::forget(self);
        Err(Error::RankFailed { rank, cause })
    }

    /// Sees everything acknowledged, waits for all, gives the network back. False if the job failed meanwhile.
    fn close(&self) -> bool {
        let mpi = &*self.mpi;
        let step = |what: &mut dyn FnMut(&mut Net) -> super::Result<bool>| {
            // Ranks of this node that have come to their end say so too: that is no failure.
            while !matches!(mpi.fabric.failure(), Some((Some(_), _))) {
                let mut net = mpi.net();
                mpi.look(&mut net);
                net.events.clear();
                match what(&mut net) {
                    Ok(true) => return true,
                    Ok(false) => {}
                    Err(error) => mpi.told(Err(error)),
                }
                drop(net);
                std::thread::yield_now();
            }
            false
        };
        let unquiet = mpi.net().unquiet();
        unquiet.into_iter().for_each(|rank| mpi.flush(rank, crate::comm::Token(u64::MAX)));
        if !step(&mut |net| Ok(net.is_quiet())) {
            return false;
        }
        let mut barrier = match self.comm.begin_barrier() {
            Ok(barrier) => barrier,
            Err(error) => {
                mpi.told(Err(error));
                return false;
            }
        };
        if !step(&mut |_| barrier.test()) {
            return false;
        }
        mpi.closed.store(true, Ordering::Relaxed);
        true
    }
}

impl Drop for Rank {
    /// After an orderly end.
    fn drop(&mut self) {
        drop(self.helper.take());
        self.mpi.net().close();
        self.comm.free();
        // Arrays that outlive the job hear of its end.
        self.mpi.fabric.end(None, "it has ended");
    }
}

/// Where a rank is, and with whom it shares memory.
struct Place {
    nodes: Nodes,
    machines: Nodes,
    fabric: Arc<Fabric>,
    /// Processes of the ranks of this machine.
    pids: Vec<u32>,
    cores: usize,
    crowded: bool,
    alone: bool,
    /// The launcher left each rank of this machine all its cores.
    unbound: bool,
}

/// Why ranks could not map the memory of their node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Refusal {
    None = 0,
    /// Address space or pages are missing: a smaller one may fit.
    TooLarge = 1,
    /// The file of the first rank cannot be opened here.
    Apart = 2,
}

impl Place {
    /// Collective.
    fn find(comm: Comm, machine: Comm, rank: usize, size: usize, start: &Start) -> Result<Self, Error> {
        let fail = failed("finding the ranks of this node");
        let (cores, own) = cores(machine).map_err(&fail)?;
        let together = machine.size().map_err(&fail)?;
        let [crowded] = comm.all_reduce([u64::from(together > cores)], Combine::Max).map_err(&fail)?;
        let mut group = machine;
        let (mut heap, mut large) = (start.heap, start.large_pages);
        let fabric = loop {
            match share(comm, group, heap, large).map_err(&fail)? {
                Shared::Yes(fabric) => break fabric,
                Shared::Again { segment, large_pages } if segment > 0 => (heap, large) = (segment, large_pages),
                Shared::Again { .. } => {
                    return Err(Error::Launch("not even a small heap can be mapped on some node (ulimit -v)".into()));
                }
                Shared::Apart => {
                    if rank == 0 {
                        eprintln!(
                            "global-arrays: ranks of one machine cannot open each other's memory (separate containers, or another \
                             user's processes); each is treated as a node of its own"
                        );
                    }
                    group.free();
                    group = comm.split(rank).map_err(&fail)?;
                }
            }
        };
        let [lowest] = group.all_reduce([rank as u64], Combine::Min).map_err(&fail)?;
        let machines = Nodes::new(&comm.all_gather(lowest as u32).map_err(&fail)?);
        let pids = group.all_gather(std::process::id()).map_err(&fail)?;
        group.free();
        let nodes = match start.ranks_per_node {
            None => machines.clone(),
            Some(most) => machines.split(size, most),
        };
        // Ranks that could not share memory share the cores all the same.
        let cores = (cores * fabric.ranks() / together).max(1);
        let alone = nodes.leaders().len() == 1;
        Ok(Place { nodes, machines, fabric: Arc::new(fabric), pids, cores, crowded: crowded != 0, alone, unbound: own == cores })
    }
}

/// How an attempt to share memory ended, the same on all ranks.
enum Shared {
    Yes(Fabric),
    /// All must try with these values.
    Again {
        segment: usize,
        large_pages: bool,
    },
    Apart,
}

/// Maps the memory of each node, segments equally long everywhere. Collective.
fn share(comm: Comm, node: Comm, heap: usize, large: bool) -> super::Result<Shared> {
    const LEAST: usize = 1 << 20;
    let (ranks, first) = (node.size()?, node.rank()? == 0);
    let made = if first { Fabric::new(ranks, heap, large).ok() } else { None };
    let told = made.as_ref().and_then(|fabric| {
        let file = fstat(fabric.file()).ok()?;
        let descriptor = fabric.file().as_raw_fd() as u64;
        let (granule, segment) = (fabric.granule() as u64, fabric.segment_len() as u64);
        Some([u64::from(std::process::id()), descriptor, file.st_dev, file.st_ino, granule, segment])
    });
    let told = node.broadcast(told.unwrap_or_default())?;
    let [.., granule, segment] = told;
    let (fabric, refusal) = match made {
        _ if segment == 0 => (None, Refusal::TooLarge),
        Some(fabric) => (Some(fabric), Refusal::None),
        None => match open(told).map(|file| Fabric::attach(file, granule as usize, ranks, segment as usize)) {
            Some(Ok(fabric)) => (Some(fabric), Refusal::None),
            Some(Err(_)) => (None, Refusal::TooLarge),
            None => (None, Refusal::Apart),
        },
    };
    let [refusal] = comm.all_reduce([refusal as u64], Combine::Max)?;
    let [least, finest] = comm.all_reduce([segment, granule], Combine::Min)?;
    let [longest, coarsest] = comm.all_reduce([segment, granule], Combine::Max)?;
    Ok(match fabric {
        _ if refusal == Refusal::Apart as u64 => Shared::Apart,
        Some(fabric) if refusal == 0 && least == longest && finest == coarsest => Shared::Yes(fabric),
        _ => {
            let half = (heap / 2).min(longest as usize);
            let segment = if refusal != 0 || least == longest && finest == coarsest { half } else { least as usize };
            Shared::Again { segment: if segment < LEAST { 0 } else { segment }, large_pages: large && finest == coarsest }
        }
    })
}

/// The file of another process of this node.
fn open([pid, descriptor, device, inode, ..]: [u64; 6]) -> Option<OwnedFd> {
    let file = File::options().read(true).write(true).open(format!("/proc/{pid}/fd/{descriptor}")).ok()?;
    let found = fstat(file.as_fd()).ok()?;
    // Numbers of processes and descriptors may mean something else where this process lives.
    (found.st_dev == device && found.st_ino == inode).then(|| file.into())
}

/// Cores of this machine that its ranks may use together, and those of this one. Collective.
fn cores(machine: Comm) -> super::Result<(usize, usize)> {
    const WORDS: usize = CpuSet::MAX_CPU / 64;
    let mut words = [0_u64; WORDS];
    if let Ok(set) = sched_getaffinity(None) {
        (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).for_each(|cpu| words[cpu / 64] |= 1 << (cpu % 64));
    }
    let all = machine.all_reduce(words, Combine::Or)?;
    let count = |words: &[u64]| words.iter().map(|word| word.count_ones() as usize).sum::<usize>().max(1);
    Ok((count(&all), count(&words)))
}
