//! How a rank of a job under MPI starts and ends.
//!
//! The ranks find out which of them share a node (`bootstrap::place`). All messages of a job travel in a copy of its communicator, so they
//! never meet the program's own.
//!
//! A rank whose body returned well waits for all others, then gives the communicator back. A rank that fails tells the others. They give
//! the launcher a moment to end them, so that users see one message and not one from each rank. After a failure MPI is not finalised
//! (`exit`), which shows the launcher the failure.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use mpi::ffi::MPI_Comm;

use super::{
    Mpi,
    communicator::{Meeting, failed},
    exit,
    ffi::{self, Comm, Threads},
    wire::MpiWire,
};
use crate::{
    comm::{
        Conduit,
        am::Am,
        kit::{cores, process, say::say},
        layers::{self, Layer, WITHOUT_EFFECT},
        node::{
            Held, Member,
            agent::{Agent, Answers},
            keeping,
        },
        start::{
            Body,
            bootstrap::{Bootstrap, place::Place},
            contain,
            launcher::Started,
            settings::Settings,
        },
    },
    error::Error,
};

/// The time that a rank which hears of a failure leaves to the failed rank to report it.
const GRACE: Duration = Duration::from_secs(2);

/// Threads that MPI made when it was initialised here.
pub(super) static THREADS_OF_MPI: AtomicUsize = AtomicUsize::new(0);

/// A rank of a job, from its start to its end.
#[derive(Debug)]
struct Rank {
    mpi: Arc<Mpi>,
    conduit: Arc<Conduit>,
    comm: Comm,
    agent: Option<Agent>,
    /// Tells a neighbour that this process lives.
    held: Option<Held>,
    /// Cores that the ranks of this node share.
    cores: usize,
    /// Cores that the calling thread had before it was pinned.
    before: Option<Vec<usize>>,
    /// The program uses MPI by itself, and goes on with it.
    guest: bool,
}

/// Runs a body as a rank of a job of all processes that the launcher started.
pub(super) fn run(settings: &Settings, body: &Body<'_>) -> Result<(), Error> {
    run_on(world_of(settings.started.as_ref())?, settings, false, body)
}

/// The communicator of all processes that the launcher started; initialises MPI if nobody has.
pub(super) fn world_of(started: Option<&Started>) -> Result<MPI_Comm, Error> {
    if let Some(hint) = started.and_then(Started::hint_for_open_mpi).filter(|_| starts_open_mpi()) {
        say(hint);
    }
    let (world, size) = (world()?, world_size()?);
    match started.and_then(|started| started.differs(size)) {
        Some(differs) => Err(Error::Launch(differs)),
        None => Ok(world),
    }
}

/// Runs a body as a rank of a job on a communicator, which stays the caller's; a `guest` is a job in a program that uses MPI by itself.
/// Collective.
pub(crate) fn run_on(
    comm: MPI_Comm,
    settings: &Settings,
    guest: bool,
    body: impl FnOnce(Arc<Conduit>, usize) -> Result<(), String>,
) -> Result<(), Error> {
    let rank = Rank::start(comm, settings, guest)?;
    let outcome = contain(|| body(rank.conduit.clone(), rank.cores));
    rank.end(outcome)
}

/// The communicator of all processes that MPI knows of; initialises MPI if nobody has.
fn world() -> Result<MPI_Comm, Error> {
    if ffi::is_finalised() {
        return Err(Error::Launch("MPI was finalised in this process and cannot be started again: run jobs before that".into()));
    }
    refuse_children()?;
    check_library()?;
    if !ffi::is_running() {
        let before = process::threads().unwrap_or(0);
        ffi::initialise().map_err(failed("starting MPI"))?;
        let threads = process::threads().unwrap_or(0).saturating_sub(before);
        THREADS_OF_MPI.store(threads, Ordering::Relaxed);
        exit::is_ours();
    }
    Ok(Comm::world())
}

/// That MPI is this process's own. A child that a rank forks has the connections of the rank, and whatever it sent would come as the
/// rank's.
fn refuse_children() -> Result<(), Error> {
    if !exit::is_inherited() {
        return Ok(());
    }
    Err(Error::Launch(
        "this process was forked by a rank whose MPI it cannot use; start the job with another network (GA_NETWORK=shared_memory), or \
         run a program of its own"
            .into(),
    ))
}

/// Returns true if [`world`] is to initialise MPI and that is Open MPI.
fn starts_open_mpi() -> bool {
    IS_OPEN_MPI && !ffi::is_running() && !ffi::is_finalised()
}

/// Handles of the MPICH family are numbers of four bytes, those of Open MPI are pointers.
const IS_OPEN_MPI: bool = size_of::<MPI_Comm>() != 4;

/// The number of processes that MPI knows of.
fn world_size() -> Result<usize, Error> {
    Comm::size_of_world().map_err(failed("asking MPI for the number of ranks"))
}

/// That the library at run time is of the family that the program was built with: their handles differ.
fn check_library() -> Result<(), Error> {
    let built = if IS_OPEN_MPI { "Open MPI" } else { "MPICH" };
    let found = ffi::library_version();
    if found.contains("Open MPI") == IS_OPEN_MPI {
        return Ok(());
    }
    Err(Error::Launch(format!(
        "this program was built with {built}, but the MPI library that it finds at run time is \"{}\"; run it with the library it was \
         built with, or build it again (MPICC)",
        found.lines().next().unwrap_or(&found)
    )))
}

impl Rank {
    /// Collective over the communicator, which stays the caller's; a `guest` is a job in a program that uses MPI by itself. All ranks
    /// start, or none does.
    fn start(comm: MPI_Comm, settings: &Settings, guest: bool) -> Result<Self, Error> {
        let fail = failed("starting a job on an MPI communicator");
        refuse_children()?;
        exit::starts();
        let comm = Comm::copy_of(comm).map_err(&fail)?;
        let mut meeting = Meeting::new(comm)?;
        let size = meeting.size();
        if let Err(refused) = settings.check_ranks(size) {
            comm.free();
            exit::ends_well();
            return Err(refused);
        }
        let place = Place::find(&mut meeting, settings, true)?;
        let made = Self::answer(comm, place, settings, guest);
        let [refused] = meeting.greatest([u64::from(made.is_err())])?;
        match made {
            Ok(_) if refused != 0 => Err(Error::Launch("another rank of the job could not start; see what it said".into())),
            made => made,
        }
    }

    fn answer(comm: Comm, place: Place, settings: &Settings, guest: bool) -> Result<Self, Error> {
        let fail = failed("starting a job on an MPI communicator");
        let Place { topology, fabric, cores, crowded, unbound, .. } = place;
        fabric.keep_from_children().map_err(keeping)?;
        let (rank, answers) = (topology.rank(), !topology.is_all_mapped());
        if !answers && !settings.layers.is_empty() && settings.ranks_per_node.is_none() {
            return Err(Error::Launch(format!("the layers on \"mpi\" would do nothing: {WITHOUT_EFFECT}")));
        }
        let threads = ffi::threads().map_err(&fail)?;
        let has_thread = threads == Threads::Multiple;
        if answers && !has_thread && rank == 0 {
            say(
                "MPI was initialised without MPI_THREAD_MULTIPLE; ranks of other nodes are answered only while this program calls the \
                 crate",
            );
        }
        let together = fabric.ranks();
        let local = topology.local(rank);
        let has_agent = (answers && has_thread) || together > 1;
        // This thread, MPI's, and those made below. Any other may act for the rank.
        let agents = if has_agent { Agent::threads(together) } else { 0 };
        let known = 1 + THREADS_OF_MPI.load(Ordering::Relaxed) + agents;
        let patient = if crowded { 0 } else { together };
        let member = Member::new(fabric.clone(), topology.clone(), patient, Some(known));
        let wire =
            MpiWire::new(comm).map_err(|broken| Error::Launch(format!("starting a job on an MPI communicator: {broken}")))?;
        let mpi = Arc::new(Am::new(wire, &member, has_thread, settings.may_give_up(), settings.silence));
        // A launcher that bound its processes knew what it did.
        let before = if unbound { cores::allowed(None).ok() } else { None };
        if before.is_some() {
            settings.pin_among(local, together);
        }
        let conduit: Arc<Conduit> = if !answers {
            Arc::new(Conduit::mapped(member))
        } else if settings.layers.iter().any(|&layer| layer != Layer::Hidden) {
            Arc::new(Conduit::with_network(member, layers::stack(&settings.layers, rank, mpi.clone())))
        } else {
            Arc::new(Conduit::with_network(member, mpi.clone()))
        };
        exit::begins(&mpi, guest);
        let held = mpi.fabric().hold(local).map_err(|e| Error::system("making the lock of a rank", e))?;
        let agent = if has_agent {
            // Without threads in MPI only the program may use the wire.
            let network = if answers && has_thread { Some(mpi.clone() as Arc<dyn Answers>) } else { None };
            let agent = Agent::watching(mpi.topology(), mpi.fabric(), network, None);
            Some(agent.map_err(|e| Error::system("starting the thread that makes progress", e))?)
        } else {
            None
        };
        Ok(Rank { mpi, conduit, comm, agent, held: Some(held), cores, before, guest })
    }

    /// The end of the rank, with the words of its failure if it failed.
    fn end(self, outcome: Result<(), String>) -> Result<(), Error> {
        if self.mpi.fabric().is_inherited() {
            return Err(self.disown());
        }
        let mpi = &self.mpi;
        let local = mpi.topology().local(mpi.rank());
        match outcome {
            Ok(()) => {
                mpi.fabric().set_finished(local);
                if self.close() {
                    return Ok(());
                }
            }
            Err(words) => {
                mpi.fabric().set_last_words(local, &words);
                if mpi.fabric().failure().is_none() {
                    self.conduit.end(&words);
                }
            }
        }
        let (rank, cause) = match mpi.fabric().failure() {
            Some((Some(rank), cause)) => (rank, cause),
            Some((None, cause)) => (mpi.rank(), cause),
            None => (mpi.rank(), "failed without a word".into()),
        };
        if rank == mpi.rank() {
            mpi.tell_end(rank, &cause);
        } else if !mpi.fabric().has_lost() {
            std::thread::sleep(GRACE);
        }
        self.give_up();
        Err(Error::RankFailed { rank, cause })
    }

    /// The end after a failure. Others may still ask for the reason, so what answers them goes on until the process ends, but not where
    /// the program goes on with MPI: it may finalise it, and nothing of ours may be in it then. The communicator cannot be given
    /// back without the others.
    fn give_up(mut self) {
        self.unpin();
        if self.guest {
            drop(self.agent.take());
            self.mpi.close();
        }
        std::mem::forget(self);
    }

    /// A child that was forked by the rank's process came out of the body. MPI, its communicator and the threads are the parent's.
    fn disown(self) -> Error {
        let cause = self.mpi.fabric().cause();
        std::mem::forget(self);
        Error::JobEnded { operation: "run".into(), cause }
    }

    fn unpin(&mut self) {
        if let Some(before) = self.before.take() {
            let _ = cores::confine(&before);
        }
    }

    /// Sees everything acknowledged, waits for all, gives the network back. False if the job failed meanwhile.
    fn close(&self) -> bool {
        if !self.mpi.settle() {
            return false;
        }
        let mut barrier = match self.comm.begin_barrier() {
            Ok(barrier) => barrier,
            Err(error) => {
                self.conduit.end(&format!("lost its connection to others: {error}"));
                return false;
            }
        };
        if !self.mpi.serve_while_waiting(|| Ok(barrier.test()?)) {
            return false;
        }
        self.mpi.set_closed();
        true
    }
}

impl Drop for Rank {
    /// After an orderly end, or a start that did not come about.
    fn drop(&mut self) {
        self.unpin();
        // A neighbour's thread ends by that, as this rank's by the next one's.
        drop(self.held.take());
        drop(self.agent.take());
        // Arrays that outlive the job hear of its end.
        self.mpi.fabric().end_of(self.mpi.topology().local(self.mpi.rank()));
        self.mpi.close();
        self.comm.free();
        exit::ends_well();
    }
}
