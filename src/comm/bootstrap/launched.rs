//! How ranks meet through their launcher, which stores words under keys. After a fence, every rank can read what any rank put before it.
//!
//! With at most [`FEW`] ranks, each rank reads the words of all. With more, rank 0 reads them and puts the result, which every rank reads.
//!
//! A process has one connection to its launcher. It lasts until the process exits, and several jobs may use it one after the other. So it
//! belongs to the process and is static ([`CONNECTION`]). If all jobs ended well, the process tells the launcher so when it exits. The
//! launcher takes any other exit for a failure and ends the other processes.

use std::{
    ffi::c_int,
    io::{self, ErrorKind},
    os::fd::{BorrowedFd, RawFd},
    sync::{Arc, Mutex, MutexGuard, Once, PoisonError, Weak},
    time::{Duration, Instant},
};

use rustix::fs::{FileType, fstat};

use super::{
    Bootstrap,
    key_values::{Idle, KeyValues, Refused, Result, get_words, put_words},
    line::Line,
    patience::Patience,
    pmi1, pmi2, pmix,
};
use crate::{
    comm::{
        launcher::{self, Protocol, Started},
        node::Fabric,
        say::say,
        settings::Settings,
    },
    error::Error,
};

/// So many ranks each read the words of all: as many questions to the launcher, which take less time than another fence.
const FEW: usize = 8;

/// A launcher answers a question, which waits for no other process, within this.
const ANSWERED: Duration = Duration::from_secs(1);

/// A launcher answers the last words of a process at once.
const ACKNOWLEDGED: Duration = Duration::from_secs(10);

/// The connection of a process to its launcher, by which the ranks of a job meet.
pub(crate) struct Connection {
    launcher: Box<dyn KeyValues>,
    started: Started,
    size: usize,
    /// Seconds that a rank waits for others at most.
    limit: Option<f64>,
    /// The process: a child that it forks has none.
    process: u32,
    /// Fences so far, the same on all ranks. Part of keys, none of which is used twice.
    step: u64,
    /// Something failed that the other ranks do not know of.
    broken: bool,
    /// This rank has said that it waits.
    said: bool,
}

/// What has become of the connection of this process.
enum State {
    /// No job has asked for it.
    New,
    /// The ranks of a job meet, or could not.
    Meets,
    /// A job runs, or has failed. Its mapping tells which.
    Runs(Connection, Weak<Fabric>),
    /// All jobs so far have ended well.
    Free(Connection),
}

static CONNECTION: Mutex<State> = Mutex::new(State::New);

fn state() -> MutexGuard<'static, State> {
    CONNECTION.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A job whose ranks have met. Unless it ends well, the launcher hears of no good end of this process.
#[derive(Debug)]
pub(crate) struct Running(());

impl Running {
    /// The job has ended well on all ranks.
    pub(crate) fn ends_well(self) {
        let mut state = state();
        *state = match std::mem::replace(&mut *state, State::Meets) {
            State::Runs(connection, _) => State::Free(connection),
            other => other,
        };
    }
}

/// Whether the launcher of this process has gone.
pub(crate) fn is_gone() -> bool {
    match &*state() {
        State::Runs(connection, _) | State::Free(connection) => connection.launcher.is_gone(),
        State::New | State::Meets => false,
    }
}

impl Connection {
    /// Connects to the launcher that started this process, unless an earlier job has.
    ///
    /// # Errors
    /// It does not answer as its protocol says; this process has no launcher, or lost what ties it to the others.
    pub(crate) fn new(started: Started, settings: &Settings) -> std::result::Result<Self, Error> {
        let (own, limit) = (std::process::id(), settings.timeout);
        match std::mem::replace(&mut *state(), State::Meets) {
            State::New => {
                let mut said = false;
                let mut patience = Patience::new(&started, limit, &mut said);
                let launcher = connect(started, &mut || patience.look()).map_err(|refused| failed(&started, &refused))?;
                let size = started.size().or_else(|| launcher.size()).ok_or_else(|| {
                    failed(&started, &Refused::Said("nothing, when it was asked for the number of ranks".into()))
                })?;
                at_exit();
                Ok(Connection { launcher, started, size, limit, process: own, step: 0, broken: false, said })
            }
            State::Free(connection) if connection.is_own() => Ok(Connection { limit, said: false, ..connection }),
            // A child that a rank forked does not come here: to it, nobody is its launcher.
            _ => Err(Error::Launch(
                "an earlier job of this process failed, and its launcher may be ending the others for that".into(),
            )),
        }
    }

    /// The ranks could not meet. What all of them found out alike is no failure of this process: it may start another job, or end well. Of
    /// anything else the others do not know, and would wait: the launcher is asked to end them.
    pub(crate) fn give_up(mut self) {
        if self.broken {
            self.launcher.abort();
        } else {
            *state() = State::Free(self);
        }
    }

    /// Publishes words for [`ask`], unless this rank has `failed`: then all ranks learn that one has. Collective.
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

    /// Tells the launcher of a good end of this process.
    fn leave(&mut self) {
        let start = Instant::now();
        let mut idle = || if start.elapsed() < ACKNOWLEDGED { Ok(()) } else { Err(ErrorKind::TimedOut.into()) };
        if let Err(refused) = self.launcher.finish(&mut idle) {
            say(format_args!("the launcher did not take the leave of {}: {refused}", self.started));
        }
    }

    /// The ranks have met, and their job begins.
    pub(crate) fn begin(self, fabric: &Arc<Fabric>) -> Running {
        *state() = State::Runs(self, Arc::downgrade(fabric));
        Running(())
    }

    /// One fence, with what each rank puts before it and reads after it.
    fn exchange<T>(
        &mut self,
        put: Option<&[u64]>,
        read: impl FnOnce(&mut dyn KeyValues, &str, Idle<'_>) -> Result<T>,
    ) -> std::result::Result<T, Error> {
        let Connection { launcher, started, limit, step, broken, said, .. } = self;
        let mut patience = Patience::new(started, *limit, said);
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

    /// What is made of the words of all, the same on all ranks.
    fn reduce<const N: usize>(
        &mut self,
        words: [u64; N],
        reduce: impl FnOnce(Vec<[u64; N]>) -> Vec<u64>,
    ) -> std::result::Result<Vec<u64>, Error> {
        let (rank, size) = (self.started.rank(), self.size);
        let reads = rank == 0 || size <= FEW;
        let all = self.exchange(Some(&words), |launcher, prefix, idle| {
            let ranks = if reads { 0..size } else { 0..0 };
            ranks.map(|from| fixed(get_words(launcher, from, &format!("{prefix}-{from}"), idle)?)).collect::<Result<Vec<_>>>()
        })?;
        let reduced = if reads { reduce(all) } else { Vec::new() };
        if size <= FEW {
            return Ok(reduced);
        }
        self.exchange((rank == 0).then_some(&reduced[..]), |launcher, prefix, idle| {
            get_words(launcher, 0, &format!("{prefix}-0"), idle)
        })
    }
}

/// What ranks have published.
#[derive(Debug)]
pub(crate) struct Published {
    /// What it is asked for by.
    pub(crate) key: String,
    /// A rank that has failed.
    pub(crate) failed: Option<usize>,
}

/// What a rank published under a key. None if the launcher does not say it now.
pub(crate) fn ask(rank: usize, key: &str) -> Option<Vec<u64>> {
    let start = Instant::now();
    let mut idle = || if start.elapsed() < ANSWERED { Ok(()) } else { Err(ErrorKind::TimedOut.into()) };
    match &mut *state() {
        State::Runs(connection, _) => get_words(&mut *connection.launcher, rank, &format!("{key}-{rank}"), &mut idle).ok(),
        _ => None,
    }
}

/// Returns when all ranks have called it. Threads of this process go on meanwhile, but cannot [`ask`].
///
/// # Errors
/// The job is over, or the launcher is lost.
pub(crate) fn await_all(is_over: impl Fn() -> bool) -> std::result::Result<(), Error> {
    let (mut connection, fabric) = match std::mem::replace(&mut *state(), State::Meets) {
        State::Runs(connection, fabric) => (connection, fabric),
        other => {
            *state() = other;
            return Err(Error::Launch("waiting for the others at the end: no job of a launcher runs".into()));
        }
    };
    let mut idle = || if is_over() { Err(io::Error::new(ErrorKind::Interrupted, "the job is over")) } else { Ok(()) };
    let met = connection.launcher.fence(&mut idle).map_err(|refused| failed(&connection.started, &refused));
    connection.step += 1;
    *state() = State::Runs(connection, fabric);
    met
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

    fn greatest<const N: usize>(&mut self, words: [u64; N]) -> std::result::Result<[u64; N], Error> {
        let greatest = |all: Vec<[u64; N]>| (0..N).map(|k| all.iter().map(|words| words[k]).max().unwrap_or(0)).collect();
        let started = self.started;
        fixed(self.reduce(words, greatest)?).map_err(|refused| failed(&started, &refused))
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
fn connect(started: Started, idle: Idle<'_>) -> Result<Box<dyn KeyValues>> {
    match started.protocol() {
        Some(Protocol::Pmix) => Ok(Box::new(pmix::Pmix::start()?)),
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
        match &mut *state() {
            State::Free(connection) if connection.is_own() => connection.leave(),
            State::Runs(connection, fabric) if connection.is_own() => {
                let Some(fabric) = fabric.upgrade().filter(|fabric| fabric.failure().is_none()) else { return };
                let (rank, cause) = (connection.rank(), format!("called exit({status}) before the job did end"));
                if fabric.end(Some(rank), &cause) {
                    say(format_args!("rank {rank} {cause}"));
                }
                // The memory that other threads still use goes with the process. And not all launchers take this end for a failure.
                // SAFETY: ends the process.
                unsafe { libc::_exit(if status == 0 { 1 } else { status }) }
            }
            _ => {}
        }
    }
    static ONCE: Once = Once::new();
    ONCE.call_once(|| super::exit::at_exit(leave));
}

#[cfg(test)]
mod tests {
    use std::{
        collections::HashMap,
        os::{fd::AsRawFd, unix::net::UnixStream},
        sync::{Arc, Barrier},
    };

    use super::*;

    /// A launcher's side of the lines to its processes, as far as meetings go.
    struct Fake {
        values: Mutex<HashMap<String, String>>,
        /// Without one, it waits for a process that never comes.
        fence: Option<Barrier>,
        longest: usize,
        /// The version that it speaks.
        version: usize,
    }

    impl Fake {
        /// Answers one process until it takes its leave or is gone.
        fn serve(&self, stream: &UnixStream) {
            // SAFETY: the stream is open during this call, and only this thread uses it.
            let line = unsafe { Line::new(stream.as_raw_fd()) };
            let field = |text: &str, name: &str| {
                let found = text.split([' ', ';']).find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
                found.unwrap_or_default().to_owned()
            };
            let mut framed = false;
            while let Some(asked) = if framed { read_framed(&line) } else { line.read_line(|| Ok(())).ok() } {
                let (key, value) = (field(&asked, "key"), field(&asked, "value"));
                let answer = match field(&asked, "cmd").as_str() {
                    "init" => {
                        let speaks = field(&asked, "pmi_version") == self.version.to_string();
                        let rc = if speaks { 0 } else { -1 };
                        line.write(
                            format!("cmd=response_to_init pmi_version={} pmi_subversion=0 rc={rc}\n", self.version).as_bytes(),
                        )
                        .unwrap();
                        framed = speaks && self.version == 2;
                        continue;
                    }
                    "get_maxes" => format!("cmd=maxes kvsname_max=64 keylen_max=64 vallen_max={}", self.longest),
                    "get_my_kvsname" => "cmd=my_kvsname kvsname=job".into(),
                    "fullinit" => "cmd=fullinit-response;rank=0;size=2;rc=0;".into(),
                    put @ ("put" | "kvs-put") => {
                        assert!(key.len() < 64 && value.len() < self.longest, "{key}={value}");
                        assert_eq!(self.values.lock().unwrap().insert(key, value), None, "a key is used once");
                        if put == "put" {
                            "cmd=put_result rc=0 msg=success".into()
                        } else {
                            "cmd=kvs-put-response;rc=0;".to_owned()
                        }
                    }
                    "get" => match self.values.lock().unwrap().get(&key) {
                        Some(value) => format!("cmd=get_result rc=0 msg=success value={value}"),
                        None => "cmd=get_result rc=-1 msg=key_not_found value=unknown".into(),
                    },
                    "kvs-get" => match self.values.lock().unwrap().get(&key) {
                        Some(value) => format!("cmd=kvs-get-response;rc=0;found=TRUE;value={value};"),
                        None => "cmd=kvs-get-response;rc=0;found=FALSE;".into(),
                    },
                    "barrier_in" | "kvs-fence" => {
                        let Some(fence) = &self.fence else { continue };
                        fence.wait();
                        if framed { "cmd=kvs-fence-response;rc=0;" } else { "cmd=barrier_out" }.into()
                    }
                    "finalize" if framed => "cmd=finalize-response;rc=0;".into(),
                    "finalize" => "cmd=finalize_ack".into(),
                    other => panic!("asked {other}"),
                };
                let answer = if framed { format!("{:6}{answer}", answer.len()) } else { format!("{answer}\n") };
                if line.write(answer.as_bytes()).is_err() {
                    return;
                }
            }
        }
    }

    fn read_framed(line: &Line) -> Option<String> {
        let mut len = [0; 6];
        line.read(&mut len, || Ok(())).ok()?;
        let mut text = vec![0; std::str::from_utf8(&len).ok()?.trim().parse().ok()?];
        line.read(&mut text, || Ok(())).ok()?;
        String::from_utf8(text).ok()
    }

    /// Lets each of so many ranks do something with a connection of its own.
    fn meet<T: Send>(ranks: usize, version: usize, longest: usize, body: impl Fn(Connection) -> T + Sync) -> Vec<T> {
        let fake = Arc::new(Fake { values: Mutex::default(), fence: Some(Barrier::new(ranks)), longest, version });
        std::thread::scope(|scope| {
            let rank = |rank| {
                let (ours, theirs) = UnixStream::pair().unwrap();
                let (fake, body) = (fake.clone(), &body);
                scope.spawn(move || fake.serve(&theirs));
                scope.spawn(move || {
                    let started = Started::by_pmi(rank, ranks, ours.as_raw_fd());
                    let launcher = connect(started, &mut || Ok(())).unwrap();
                    body(Connection {
                        launcher,
                        started,
                        size: ranks,
                        limit: None,
                        process: 0,
                        step: 0,
                        broken: false,
                        said: false,
                    })
                })
            };
            let ranks: Vec<_> = (0..ranks).map(rank).collect();
            ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
        })
    }

    /// Both ways of a reduction, and values of more than one part.
    #[test]
    fn ranks_meet_by_either_version() {
        for (ranks, version, longest) in [(1, 1, 1024), (3, 1, 20), (3, 2, 1024), (FEW + 3, 1, 64), (FEW + 3, 2, 1024)] {
            let all = meet(ranks, version, longest, |mut connection| {
                let own = connection.rank() as u64;
                let gathered = connection.gather([own, u64::MAX - own]).unwrap();
                let greatest = connection.greatest([own, !own]).unwrap();
                let group = if own < 2 { vec![0, 1] } else { (2..ranks).collect() };
                let told = connection.tell(&group[..group.len().min(ranks)], [own + 7]).unwrap();
                connection.launcher.finish(&mut || Ok(())).unwrap();
                (gathered, greatest, told)
            });
            let last = ranks as u64 - 1;
            for (rank, (gathered, greatest, told)) in all.into_iter().enumerate() {
                assert_eq!(gathered, (0..=last).map(|rank| [rank, u64::MAX - rank]).collect::<Vec<_>>());
                assert_eq!(greatest, [last, !0]);
                assert_eq!(told, [if rank < 2 { 7 } else { 9 }]);
            }
        }
    }

    fn refusal(refused: impl FnOnce(Connection) -> std::result::Result<(), Error> + Sync + Clone + Send) -> String {
        let mut said = meet(1, 1, 1024, |connection| refused.clone()(connection).unwrap_err().to_string());
        said.remove(0)
    }

    #[test]
    fn what_the_launcher_does_not_do_is_an_error_that_names_it() {
        let started = Started::by_pmi(1, 4, 99);
        // No such descriptor, as a program that a rank starts finds it.
        let Err(none) = connect(started, &mut || Ok(())) else { panic!("a descriptor 99") };
        assert!(failed(&started, &none).to_string().contains("GA_BOOTSTRAP=fork"), "{none}");
        // It ends while ranks wait.
        let (ours, theirs) = UnixStream::pair().unwrap();
        drop(theirs);
        let Err(gone) = connect(Started::by_pmi(1, 4, ours.as_raw_fd()), &mut || Ok(())) else { panic!("nobody is there") };
        let gone = failed(&started, &gone).to_string();
        assert!(gone.contains("rank 1 of 4") && gone.contains("its connection is closed"), "{gone}");
        // A launcher that keeps next to nothing, and one that does not know a key.
        let short = meet(1, 1, 10, |mut connection| connection.gather([1]).unwrap_err().to_string());
        assert!(short[0].contains("values of 9 bytes at most"), "{short:?}");
        let unknown =
            refusal(|mut connection| connection.exchange(None, |launcher, prefix, idle| launcher.get(0, prefix, idle)).map(drop));
        assert!(unknown.contains("key_not_found"), "{unknown}");
    }

    #[test]
    fn a_rank_that_never_comes_is_waited_for_until_the_limit() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let fake = Fake { values: Mutex::default(), fence: None, longest: 1024, version: 1 };
        std::thread::scope(|scope| {
            scope.spawn(|| fake.serve(&theirs));
            let started = Started::by_pmi(0, 2, ours.as_raw_fd());
            let launcher = connect(started, &mut || Ok(())).unwrap();
            let mut connection =
                Connection { launcher, started, size: 2, limit: Some(0.05), process: 0, step: 0, broken: false, said: false };
            let late = connection.gather([1]).unwrap_err().to_string();
            assert!(late.contains("the limit of 0.05 s (GA_TIMEOUT) is over") && late.contains("rank 0 of 2"), "{late}");
            // The launcher ends too.
            ours.shutdown(std::net::Shutdown::Both).unwrap();
        });
    }
}
