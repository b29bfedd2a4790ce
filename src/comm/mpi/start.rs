//! How a rank of a job under MPI starts and ends.
//!
//! The ranks find out which of them share a node (`bootstrap::place`). All messages of a job travel in a copy of its communicator, so they
//! never meet the program's own.
//!
//! A rank whose body returned well waits for all others, then gives the communicator back. A rank that fails tells the others. They give
//! the launcher a moment to end them, so that users see one message and not one from each rank. After a failure MPI is not finalised
//! (`exit`), which shows the launcher the failure.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use mpi::ffi::MPI_Comm;

use super::{
    Mpi,
    communicator::{CommunicatorRanks, failed},
    exit,
    ffi::{self, Comm, Threads},
    wire::MpiWire,
};
use crate::{
    comm::{
        Conduit,
        am::Am,
        kit::{process, say::say},
        layers::{self, Layer, WITHOUT_EFFECT},
        node::{
            Fabric,
            helper::{Answers, Helper},
        },
        start::{
            bootstrap::{Bootstrap, place::Place},
            launcher::Started,
            life::{Ending, LocalRank, Rank},
            settings::Settings,
        },
    },
    error::Error,
};

/// Threads that MPI made when it was initialised here.
pub(super) static THREADS_OF_MPI: AtomicUsize = AtomicUsize::new(0);

/// How a rank leaves the others.
#[derive(Debug)]
struct Barrier {
    mpi: Arc<Mpi>,
    conduit: Arc<Conduit>,
    comm: Comm,
    /// The program uses MPI by itself, and goes on with it.
    guest: bool,
}

/// Makes this process a rank of a job of all processes that the launcher started. Collective.
pub(super) fn begin(settings: &Settings) -> Result<LocalRank, Error> {
    begin_on(world_of(settings.started.as_ref())?, settings, false)
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

/// Makes this process a rank of a job on a communicator, which stays the caller's; a `guest` is a job in a program that uses MPI by
/// itself. Collective.
pub(crate) fn begin_on(comm: MPI_Comm, settings: &Settings, guest: bool) -> Result<LocalRank, Error> {
    let (rank, barrier) = start(comm, settings, guest)?;
    Ok(LocalRank::new(barrier.conduit.clone(), rank.cores, move |outcome, grace| rank.end(outcome, grace, barrier)))
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

/// Collective over the communicator, which stays the caller's; a `guest` is a job in a program that uses MPI by itself. All ranks
/// start, or none does.
fn start(comm: MPI_Comm, settings: &Settings, guest: bool) -> Result<(Rank, Barrier), Error> {
    let fail = failed("starting a job on an MPI communicator");
    refuse_children()?;
    exit::starts();
    let comm = Comm::copy_of(comm).map_err(&fail)?;
    let mut meeting = CommunicatorRanks::new(comm)?;
    let size = meeting.size();
    if let Err(refused) = settings.check_ranks(size) {
        comm.free();
        exit::ends_well();
        return Err(refused);
    }
    let place = Place::find(&mut meeting, settings, true)?;
    let made = answer(comm, place, settings, guest);
    let [refused] = meeting.greatest([u64::from(made.is_err())])?;
    match made {
        Ok(_) if refused != 0 => Err(Error::Launch("another rank of the job could not start; see what it said".into())),
        Ok(made) => Ok(made),
        Err(error) => {
            // The others give the communicator back too.
            comm.free();
            exit::ends_well();
            Err(error)
        }
    }
}

fn answer(comm: Comm, place: Place, settings: &Settings, guest: bool) -> Result<(Rank, Barrier), Error> {
    let fail = failed("starting a job on an MPI communicator");
    let topology = place.topology.clone();
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
    let together = place.fabric.ranks();
    let has_helper = (answers && has_thread) || together > 1;
    // MPI's threads, and those made below. Any other may act for the rank.
    let known = THREADS_OF_MPI.load(Ordering::Relaxed) + if has_helper { Helper::threads(together) } else { 0 };
    let (mut started, member) = Rank::start(place, settings, known)?;
    let wire = MpiWire::new(comm).map_err(|broken| Error::Launch(format!("starting a job on an MPI communicator: {broken}")))?;
    let mpi = Arc::new(Am::new(wire, &member, has_thread, settings.may_give_up(), settings.silence));
    let conduit: Arc<Conduit> = if !answers {
        Arc::new(Conduit::mapped(member))
    } else if settings.layers.iter().any(|&layer| layer != Layer::Hidden) {
        Arc::new(Conduit::with_network(member, layers::stack(&settings.layers, rank, mpi.clone())))
    } else {
        Arc::new(Conduit::with_network(member, mpi.clone()))
    };
    exit::begins(&mpi, comm, guest);
    if has_helper {
        // Without threads in MPI only the program may use the wire.
        started.watch(&topology, (answers && has_thread).then(|| mpi.clone() as Arc<dyn Answers>), None)?;
    }
    Ok((started, Barrier { mpi, conduit, comm, guest }))
}

impl Ending for Barrier {
    /// Sees everything acknowledged, waits for all, and closes the network.
    fn await_all(&self, fabric: &Fabric) -> bool {
        if !self.mpi.settle() {
            return false;
        }
        let mut barrier = match self.comm.begin_barrier() {
            Ok(barrier) => barrier,
            Err(error) => {
                fabric.end(Some(self.mpi.rank()), &format!("lost its connection to others: {error}"));
                return false;
            }
        };
        let met = self.mpi.serve_while_waiting(|| Ok(barrier.test()?));
        if met {
            self.mpi.set_closed();
        }
        met
    }

    fn is_deserted(&self) -> bool {
        self.mpi.fabric().has_lost()
    }

    fn tell_failure(&self, rank: usize, cause: &str) {
        self.mpi.tell_end(rank, cause);
    }

    /// Others may still ask for the reason, so what answers them goes on until the process ends, but not where the program goes on
    /// with MPI: it may finalise it, and nothing of ours may be in it then. The communicator cannot be given back without the others.
    fn give_up(self, rank: Rank) {
        rank.abandon(!self.guest);
        if self.guest {
            self.mpi.close();
        }
        std::mem::forget(self);
    }
}

impl Drop for Barrier {
    /// After an orderly end, or a start that did not come about.
    fn drop(&mut self) {
        self.mpi.close();
        self.comm.free();
        exit::ends_well();
    }
}
