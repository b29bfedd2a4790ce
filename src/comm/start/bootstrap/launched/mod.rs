//! How ranks meet through their launcher, which stores words under keys. After a fence, every rank can read what any rank put before
//! it.
//!
//! With at most [`FEW`] ranks, each rank reads the words of all. With more, the first rank of each node reads the words of its node,
//! rank 0 reads those of the first ranks, and every rank reads the result. So other ranks put and get only a few times. Rank 0 asks the
//! launcher for the node of each rank; without an answer, it reads the words of all.
//!
//! A process has one static connection to its launcher ([`LAUNCHER`]), for all its jobs. If all ended well, the process says so at
//! its exit. The launcher takes any other exit for a failure and ends the other processes.

#[cfg(test)]
mod tests;

use std::{
    collections::HashSet,
    ffi::c_int,
    fmt,
    io::{self, ErrorKind},
    os::fd::{BorrowedFd, RawFd},
    sync::{Arc, Mutex, MutexGuard, Once, OnceLock, PoisonError, Weak},
    time::{Duration, Instant},
};

use rustix::fs::{FileType, fstat};

use super::{
    Bootstrap, exit,
    key_values::{Idle, KeyValues, Meet, Refused, Result, get_words, put_words},
    line::Line,
    mapping,
    meeting::{Meeting, MeetingKeys},
    patience::LauncherWait,
    pmi1, pmi2, pmix, root,
};
use crate::{
    comm::{
        kit::say::say,
        node::Fabric,
        start::{
            launcher::{self, Protocol, Started},
            settings::Settings,
        },
    },
    error::Error,
};

/// Up to this many ranks each read the words of all: as many questions take less time than another fence.
const FEW: usize = 8;

/// Within this, a launcher answers a question that waits for no other process.
const ANSWERED: Duration = Duration::from_secs(1);

/// Within this, a launcher answers the last words of a process: it does so at once.
const ACKNOWLEDGED: Duration = Duration::from_secs(10);

/// The connection of a process to its launcher, by which the ranks of a job meet.
pub(crate) struct Connection {
    launcher: Box<dyn KeyValues>,
    started: Started,
    size: usize,
    nodes: Option<Nodes>,
    /// The longest that a rank waits for others, in seconds.
    limit: Option<f64>,
    /// The process that made it: a child that it forks has none.
    process: u32,
    /// The number of fences, equal on all ranks. Part of keys, none of which is used twice.
    step: u64,
    /// Something failed, and the other ranks do not know of it.
    broken: bool,
    /// This rank has said that it waits.
    said: bool,
}

/// The ranks of nodes, as the launcher gives them.
struct Nodes {
    /// The ranks of this one's node, ascending.
    group: Vec<usize>,
    /// The first rank of each node, ascending.
    firsts: Vec<usize>,
}

impl Nodes {
    fn new(nodes: &[u32], own: usize) -> Self {
        let group = (0..nodes.len()).filter(|&rank| nodes[rank] == nodes[own]).collect();
        let mut seen = HashSet::new();
        let firsts = (0..nodes.len()).filter(|&rank| seen.insert(nodes[rank])).collect();
        Nodes { group, firsts }
    }
}

/// The state of the connection of this process.
enum LauncherState {
    /// No job has asked for it.
    New,
    /// The ranks of a job meet, or could not.
    Meets,
    /// A job runs, or has failed. Its mapping shows which.
    Runs(Connection, Weak<Fabric>),
    /// All jobs until now have ended well.
    Free(Connection),
}

/// What started the ranks, as one of them sees it, for all its jobs.
pub(crate) struct Launcher {
    started: Started,
    state: Mutex<LauncherState>,
}

/// The launcher of this process.
static LAUNCHER: OnceLock<Arc<Launcher>> = OnceLock::new();

/// A job whose ranks have met. Unless it ends well, the launcher hears of no good end of this process.
#[derive(Debug)]
pub(crate) struct Running(Arc<Launcher>);

impl Running {
    /// The job has ended well on all ranks.
    pub(crate) fn ends_well(&self) {
        let mut state = self.0.state();
        *state = match std::mem::replace(&mut *state, LauncherState::Meets) {
            LauncherState::Runs(connection, _) => LauncherState::Free(connection),
            other => other,
        };
    }

    /// Returns true if the program has brought the ranks together.
    pub(crate) fn has_no_launcher(&self) -> bool {
        self.0.started.protocol().is_none()
    }

    /// Returns true if the launcher has gone.
    pub(crate) fn is_gone(&self) -> bool {
        match &*self.0.state() {
            LauncherState::Runs(connection, _) | LauncherState::Free(connection) => connection.launcher.is_gone(),
            LauncherState::New | LauncherState::Meets => false,
        }
    }
}

impl Launcher {
    /// The launcher that started this process.
    pub(crate) fn of_process(started: Started) -> Arc<Self> {
        LAUNCHER.get_or_init(|| Arc::new(Launcher { started, state: Mutex::new(LauncherState::New) })).clone()
    }

    /// The program, which has a meeting of its own, in the place of a launcher. For one job.
    pub(crate) fn of_meeting(started: Started, meeting: Box<dyn Meeting>) -> Arc<Self> {
        let launcher = Box::new(MeetingKeys::new(meeting));
        let (size, process) = (launcher.size().unwrap_or(1), std::process::id());
        let connection =
            Connection { launcher, started, size, nodes: None, limit: None, process, step: 0, broken: false, said: false };
        Arc::new(Launcher { started, state: Mutex::new(LauncherState::Free(connection)) })
    }

    fn state(&self) -> MutexGuard<'_, LauncherState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Once the launcher has gone: the rank whose end it gave as the reason, and the reason.
    pub(crate) fn gone(&self) -> Option<(Option<usize>, String)> {
        let state = self.state();
        let (LauncherState::Runs(connection, _) | LauncherState::Free(connection)) = &*state else { return None };
        let launcher = &connection.launcher;
        launcher.is_gone().then(|| match launcher.last_words() {
            Some((rank, why)) if rank < connection.size => (Some(rank), why),
            _ => (None, "the launcher of the job has ended, or was ended".into()),
        })
    }

    /// Connects to the launcher, unless an earlier job has.
    ///
    /// # Errors
    /// It does not answer as its protocol says; this process has no launcher, or lost what ties it to the others.
    pub(crate) fn connect(&self, settings: &Settings) -> std::result::Result<Connection, Error> {
        let (own, limit, started) = (std::process::id(), settings.timeout, self.started);
        let mut state = self.state();
        match std::mem::replace(&mut *state, LauncherState::Meets) {
            LauncherState::New => {
                let mut said = false;
                let mut patience = LauncherWait::new(&started, limit, &mut said);
                let meet = settings.meet.zip(settings.started.as_ref());
                let launcher = connect(started, meet, &mut || patience.look()).map_err(|refused| {
                    if started.protocol() == Some(Protocol::Root) {
                        // Nobody counts this process as a rank yet.
                        *state = LauncherState::New;
                    }
                    failed(&started, &refused)
                })?;
                let size = started.size().or_else(|| launcher.size()).ok_or_else(|| {
                    failed(&started, &Refused::Said("nothing, when it was asked for the number of ranks".into()))
                })?;
                at_exit();
                Ok(Connection { launcher, started, size, nodes: None, limit, process: own, step: 0, broken: false, said })
            }
            LauncherState::Free(connection) if connection.is_own() => Ok(Connection { limit, said: false, ..connection }),
            // A child that a rank forked does not come here: it counts as started by no launcher.
            _ => Err(Error::Launch(
                "an earlier job of this process failed, and its launcher may be ending the others for that".into(),
            )),
        }
    }

    /// The ranks could not meet. A cause that all of them found out alike is no failure of this process: it may start another
    /// job, or end well. The others do not know of any other cause, and would wait: the launcher is asked to end them.
    pub(crate) fn give_up(&self, mut connection: Connection, why: &Error) {
        if connection.broken {
            connection.launcher.abort(&why.to_string());
        } else {
            *self.state() = LauncherState::Free(connection);
        }
    }

    /// The ranks have met, and their job begins.
    pub(crate) fn begin(self: &Arc<Self>, mut connection: Connection, fabric: &Arc<Fabric>) -> Running {
        connection.nodes = None;
        *self.state() = LauncherState::Runs(connection, Arc::downgrade(fabric));
        Running(self.clone())
    }

    /// The words that a rank published under a key. None if the launcher does not give them now.
    pub(crate) fn ask(&self, rank: usize, key: &str) -> Option<Vec<u64>> {
        let start = Instant::now();
        let mut idle = || if start.elapsed() < ANSWERED { Ok(()) } else { Err(ErrorKind::TimedOut.into()) };
        match &mut *self.state() {
            LauncherState::Runs(connection, _) => {
                get_words(&mut *connection.launcher, rank, &format!("{key}-{rank}"), &mut idle).ok()
            }
            _ => None,
        }
    }

    /// Returns when all ranks have called it. Threads of this process go on meanwhile, but cannot [`ask`](Self::ask).
    ///
    /// # Errors
    /// The job is over, or the launcher is lost.
    pub(crate) fn await_all(&self, is_over: &impl Fn() -> bool) -> std::result::Result<(), Error> {
        let (mut connection, fabric) = match std::mem::replace(&mut *self.state(), LauncherState::Meets) {
            LauncherState::Runs(connection, fabric) => (connection, fabric),
            other => {
                *self.state() = other;
                return Err(Error::Launch("waiting for the others at the end: no job of a launcher runs".into()));
            }
        };
        let mut idle = || if is_over() { Err(io::Error::new(ErrorKind::Interrupted, "the job is over")) } else { Ok(()) };
        let met = connection.launcher.fence(&mut idle).map_err(|refused| failed(&connection.started, &refused));
        connection.step += 1;
        *self.state() = LauncherState::Runs(connection, fabric);
        met
    }
}

impl fmt::Debug for Launcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Launcher").field("started", &self.started).finish_non_exhaustive()
    }
}

impl Connection {
    /// Publishes words for [`ask`](Launcher::ask), unless this rank has `failed`: then all ranks learn that one has. Collective.
    ///
    /// # Errors
    /// A rank, or the launcher, is lost.
    pub(crate) fn publish(&mut self, words: &[u64], failed: bool) -> std::result::Result<Published, Error> {
        let own = self.started.rank() as u64;
        let [failed] = self.greatest([if failed { own + 1 } else { 0 }])?;
        let key = self.exchange(Some(words), |_, prefix, _| Ok(prefix.to_owned()))?;
        Ok(Published { key, failed: failed.checked_sub(1).map(|rank| rank as usize) })
    }

    fn is_own(&self) -> bool {
        self.process == std::process::id()
    }

    /// Threads that a library made to speak with the launcher.
    pub(crate) fn threads(&self) -> usize {
        self.launcher.threads()
    }

    /// One fence, with the words of each rank. Reads the words of the ranks `from`.
    fn exchange_some<const N: usize>(
        &mut self,
        words: Option<[u64; N]>,
        from: &[usize],
    ) -> std::result::Result<Vec<[u64; N]>, Error> {
        self.exchange(words.as_ref().map(|words| &words[..]), |launcher, prefix, idle| {
            from.iter().map(|from| fixed(get_words(launcher, *from, &format!("{prefix}-{from}"), idle)?)).collect()
        })
    }

    /// Tells the launcher of a good end of this process.
    fn leave(&mut self) {
        let start = Instant::now();
        let mut idle = || if start.elapsed() < ACKNOWLEDGED { Ok(()) } else { Err(ErrorKind::TimedOut.into()) };
        if let Err(refused) = self.launcher.finish(&mut idle) {
            say(format_args!("the launcher did not take the leave of {}: {refused}", self.started));
        }
    }

    /// One fence: each rank puts words before it and reads after it.
    fn exchange<T>(
        &mut self,
        put: Option<&[u64]>,
        read: impl FnOnce(&mut dyn KeyValues, &str, Idle<'_>) -> Result<T>,
    ) -> std::result::Result<T, Error> {
        let Connection { launcher, started, limit, step, broken, said, .. } = self;
        let mut patience = LauncherWait::new(started, *limit, said);
        let rank = started.rank();
        let prefix = format!("ga-{step}");
        *step += 1;
        let exchange = || {
            if let Some(words) = put {
                put_words(&mut **launcher, &format!("{prefix}-{rank}"), words, &mut || patience.look())?;
            }
            launcher.fence(&mut || patience.look())?;
            read(&mut **launcher, &prefix, &mut || patience.look())
        };
        exchange().map_err(|refused| {
            *broken = true;
            failed(started, &refused)
        })
    }

    /// Makes something of the words of all, equal on all ranks.
    fn reduce<const N: usize>(
        &mut self,
        words: [u64; N],
        reduce: impl FnOnce(Vec<[u64; N]>) -> Vec<u64>,
    ) -> std::result::Result<Vec<u64>, Error> {
        let (rank, size) = (self.started.rank(), self.size);
        let reads = rank == 0 || size <= FEW;
        let all = self.exchange_some(Some(words), &Vec::from_iter(if reads { 0..size } else { 0..0 }))?;
        let reduced = if reads { reduce(all) } else { Vec::new() };
        if size <= FEW {
            return Ok(reduced);
        }
        self.exchange((rank == 0).then_some(&reduced[..]), |launcher, prefix, idle| {
            get_words(launcher, 0, &format!("{prefix}-0"), idle)
        })
    }
}

/// The words that ranks have published.
#[derive(Debug)]
pub(crate) struct Published {
    /// The key for [`ask`](Launcher::ask).
    pub(crate) key: String,
    /// A rank that has failed.
    pub(crate) failed: Option<usize>,
}

impl Bootstrap for Connection {
    fn rank(&self) -> usize {
        self.started.rank()
    }

    fn size(&self) -> usize {
        self.size
    }

    fn gather<const N: usize>(&mut self, words: [u64; N]) -> std::result::Result<Vec<[u64; N]>, Error> {
        let all = self.reduce(words, |all| all.concat())?;
        Ok(all.chunks_exact(N).map(|words| std::array::from_fn(|k| words[k])).collect())
    }

    /// Up to [`FEW`] ranks each read the words of all.
    fn nodes(&mut self) -> std::result::Result<Option<Vec<u32>>, Error> {
        if self.size <= FEW {
            return Ok(None);
        }
        let (rank, started) = (self.rank(), self.started);
        let mut words = None;
        if rank == 0 {
            let mut patience = LauncherWait::new(&self.started, self.limit, &mut self.said);
            let nodes = self.launcher.nodes(self.size, &mut || patience.look()).map_err(|refused| {
                self.broken = true;
                failed(&started, &refused)
            })?;
            words = Some(nodes.map_or_else(Vec::new, |nodes| mapping::to_words(&nodes)));
        }
        let told =
            self.exchange(words.as_deref(), |launcher, prefix, idle| get_words(launcher, 0, &format!("{prefix}-0"), idle))?;
        let nodes = Some(mapping::of_words(&told)).filter(|nodes| nodes.len() == self.size);
        self.nodes = nodes.as_ref().map(|nodes| Nodes::new(nodes, rank));
        Ok(nodes)
    }

    fn near<const N: usize>(&mut self, group: &[usize], words: [u64; N]) -> std::result::Result<Vec<[u64; N]>, Error> {
        self.exchange_some(Some(words), if group[0] == self.rank() { group } else { &[] })
    }

    fn greatest<const N: usize>(&mut self, words: [u64; N]) -> std::result::Result<[u64; N], Error> {
        let greatest = |all: Vec<[u64; N]>| std::array::from_fn(|k| all.iter().map(|words| words[k]).max().unwrap_or(0));
        let (rank, started) = (self.rank(), self.started);
        let Some(Nodes { group, firsts }) = &self.nodes else {
            let all = self.reduce(words, |all| Vec::from(greatest(all)))?;
            return fixed(all).map_err(|refused| failed(&started, &refused));
        };
        let (group, firsts) = (group.clone(), firsts.clone());
        let of_node = greatest(self.near(&group, words)?);
        let of_all = greatest(self.exchange_some((rank == group[0]).then_some(of_node), if rank == 0 { &firsts } else { &[] })?);
        Ok(greatest(self.exchange_some((rank == 0).then_some(of_all), &[0])?))
    }

    fn tell<const N: usize>(&mut self, group: &[usize], words: [u64; N]) -> std::result::Result<[u64; N], Error> {
        let first = group[0];
        let own = first == self.started.rank();
        self.exchange(own.then_some(&words[..]), |launcher, prefix, idle| {
            fixed(get_words(launcher, first, &format!("{prefix}-{first}"), idle)?)
        })
    }
}

/// Speaks to the launcher for the first time.
fn connect(started: Started, meet: Option<(Meet, &Started)>, idle: Idle<'_>) -> Result<Box<dyn KeyValues>> {
    match started.protocol() {
        Some(Protocol::Pmix) => Ok(Box::new(pmix::Pmix::start()?)),
        Some(Protocol::Mpi) => meet.map_or_else(|| Err(Refused::Said("no MPI".into())), |(meet, started)| meet(started, idle)),
        Some(Protocol::Root) => {
            let secret = launcher::secret().map_err(|why| Refused::System(io::Error::other(why)))?;
            let (Some(root), Some(ranks)) = (launcher::root(), started.size()) else {
                return Err(Refused::Said("no GA_ROOT".into()));
            };
            let (rank, by_launcher) = (started.rank(), launcher::listens());
            let meeting = root::RootMeeting { root: &root, secret: &secret, rank, ranks, by_launcher };
            let line = meeting.join(&mut *idle)?;
            Ok(Box::new(pmi1::Pmi1::start(line, idle)?))
        }
        Some(Protocol::Pmi { descriptor }) => {
            let line = checked(descriptor)?;
            // A launcher that speaks both goes on in the version that it was greeted in.
            let versions = if started.in_slurm() { [2, 1] } else { [1, 2] };
            for version in versions {
                if pmi1::greet(&line, version, &mut *idle)? {
                    return Ok(match version {
                        1 => Box::new(pmi1::Pmi1::start(line, idle)?),
                        _ => Box::new(pmi2::Pmi2::start(line, &launcher::job(), started.rank(), idle)?),
                    });
                }
            }
            Err(Refused::Said("that it speaks neither PMI-1 nor PMI-2".into()))
        }
        None => Err(Refused::Said("no PMI".into())),
    }
}

/// The launcher's descriptor, kept from the programs that this process starts: they would speak in its name.
fn checked(descriptor: RawFd) -> Result<Line> {
    // SAFETY: looks whether there is such a descriptor; if there is none, the number is not used any more.
    let is_socket = fstat(unsafe { BorrowedFd::borrow_raw(descriptor) })
        .is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Socket);
    if !is_socket {
        return Err(Refused::System(io::Error::other(format!(
            "PMI_FD={descriptor} is no connection: a process that a rank started is no rank; start its job by a fork (GA_BOOTSTRAP=fork)"
        ))));
    }
    // SAFETY: the launcher gave this process the descriptor, open for its life; the lock of the connection is held.
    let line = unsafe { Line::new(descriptor) };
    line.keep()?;
    Ok(line)
}

fn failed(started: &Started, refused: &Refused) -> Error {
    Error::Launch(format!("meeting the other ranks, as {started}: {refused}"))
}

fn fixed<const N: usize>(words: Vec<u64>) -> Result<[u64; N]> {
    <[u64; N]>::try_from(words).map_err(|words| Refused::Said(format!("{} words, not {N}", words.len())))
}

/// Takes leave of the launcher when the process exits, if no job failed or runs.
fn at_exit() {
    extern "C" fn leave(status: c_int) {
        let Some(launcher) = LAUNCHER.get() else { return };
        match &mut *launcher.state() {
            LauncherState::Free(connection) if connection.is_own() => connection.leave(),
            LauncherState::Runs(connection, fabric) if connection.is_own() => {
                let Some(fabric) = fabric.upgrade().filter(|fabric| fabric.failure().is_none()) else { return };
                exit::end_job(&fabric, connection.rank(), status);
                exit::end_process(status)
            }
            _ => {}
        }
    }
    static ONCE: Once = Once::new();
    ONCE.call_once(|| exit::at_exit(leave));
}
