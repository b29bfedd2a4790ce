//! Ranks that meet at one of them, where no launcher speaks a protocol: started by ssh, by PBS, by a script.
//!
//! A thread of rank 0 listens at the host and port that `GA_ROOT` names, and keeps the words of the ranks. After the greeting it speaks
//! PMI-1. Under `ga-run`, which sets `GA_LAUNCHER`, a thread of the launcher listens in place of that of rank 0 ([`meeting`]).
//!
//! # Access
//!
//! A rank needs the secret: `GA_TOKEN`, or the file that `GA_TOKEN_FILE` names, which nobody else may read. Both sides prove that they
//! know it, over numbers that the other one has drawn; it never travels:
//!
//! ```text
//!  rank 0:  ga-root 1 <its number>
//!  rank:    ga-rank <rank> <ranks> <its number> <HMAC of "rank", both numbers, rank and ranks>
//!  rank 0:  ga-welcome <HMAC of "root" and the rank's HMAC>    or  ga-refused <why>
//! ```
//!
//! A caller without proof within [`GREETING`] is sent away, and learns nothing. What follows is neither secret nor protected against
//! changes on its way.
//!
//! # The end
//!
//! If a rank goes without taking its leave, the job ends: the thread names that rank to the others and closes all connections. Rank 0
//! leaves last, unless a launcher listens.

mod meeting;

use std::{
    collections::HashMap,
    io::{self, ErrorKind, Read, Write},
    net::{TcpListener, TcpStream, ToSocketAddrs},
    os::fd::IntoRawFd,
    sync::Arc,
    time::{Duration, Instant},
};

use hmac_sha256::HMAC;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    rand::{GetRandomFlags, getrandom},
};

use super::{
    key_values::{Idle, Refused, Result},
    line::{Line, farewell},
};
use crate::comm::kit::say::say;
pub use meeting::LauncherMeeting;
use meeting::{ENDS, Link};

/// The time that a rank has to prove that it belongs to the job.
const GREETING: Duration = Duration::from_secs(10);

/// The pause between tries to reach rank 0, which may not have started yet; and the longest time of one.
const AGAIN: Duration = Duration::from_millis(100);
const TRY: Duration = Duration::from_secs(2);

/// The longest line of a rank, and of a caller before its proof.
const LONGEST_LINE: usize = 4096;
const LONGEST_GREETING: usize = 256;

/// Bytes of a value, and one.
const LONGEST_VALUE: usize = 1024;

/// Connections beyond those of the ranks, which have not proved anything.
const STRANGERS: usize = 64;

/// A number that one side draws.
type Nonce = [u8; 16];

/// Where ranks meet.
pub(super) struct RootMeeting<'m> {
    /// `host:port`
    pub(super) root: &'m str,
    pub(super) secret: &'m [u8],
    pub(super) rank: usize,
    pub(super) ranks: usize,
    /// A launcher listens there, and has since before it started the ranks.
    pub(super) by_launcher: bool,
}

impl RootMeeting<'_> {
    /// A line to the root, which has proved that it is the root. Rank 0 listens first, unless a launcher does.
    pub(super) fn join(&self, idle: Idle<'_>) -> Result<Line> {
        if self.rank == 0 && !self.by_launcher {
            let listener = listen(self.root)?;
            let (secret, ranks) = (self.secret.to_vec(), self.ranks);
            let thread = std::thread::Builder::new().name("global-arrays".into()).stack_size(256 << 10);
            thread.spawn(move || Root::new(listener, secret, ranks, None).serve())?;
        }
        let stream = self.reach(&mut *idle)?;
        stream.set_nodelay(true)?;
        // SAFETY: the descriptor is open for the rest of the process, and the caller's only.
        let line = unsafe { Line::new(stream.into_raw_fd()) };
        line.keep()?;
        let hello = line.read_line(&mut *idle)?;
        let theirs = hello.strip_prefix("ga-root 1 ").and_then(of_hex::<16>);
        let theirs = theirs.ok_or_else(|| Refused::Said(format!("{hello:?}, so {} is not where a job meets", self.root)))?;
        let (own, rank, ranks) = (nonce()?, self.rank, self.ranks);
        let proof = proof_of_rank(self.secret, &theirs, &own, rank, ranks);
        line.write(format!("ga-rank {rank} {ranks} {} {}\n", hex(&own), hex(&proof)).as_bytes())?;
        let answer = line.read_line(idle).map_err(|error| match Refused::from(error) {
            Refused::Gone => Refused::Said("nothing: most likely its secret is another one (GA_TOKEN)".into()),
            other => other,
        })?;
        let theirs = answer.strip_prefix("ga-welcome ").and_then(of_hex::<32>);
        match theirs {
            Some(theirs) if root_proves(self.secret, &theirs, &proof) => Ok(line),
            Some(_) => {
                Err(Refused::Said(format!("that ranks meet there, but {} does not know the secret (GA_TOKEN)", self.root)))
            }
            None => Err(Refused::Said(answer.strip_prefix("ga-refused ").unwrap_or(&answer).to_owned())),
        }
    }

    /// Tries until rank 0 listens. A launcher listens already.
    fn reach(&self, idle: Idle<'_>) -> Result<TcpStream> {
        loop {
            let addresses = self.root.to_socket_addrs().map_err(|error| at_root(self.root, &error))?;
            let mut last = None;
            for address in addresses {
                match TcpStream::connect_timeout(&address, TRY) {
                    Ok(stream) => return Ok(stream),
                    Err(error) => last = Some(error),
                }
            }
            if let Some(error) = last.filter(|_| self.by_launcher) {
                return Err(at_root(self.root, &error));
            }
            idle()?;
            std::thread::sleep(AGAIN);
        }
    }
}

fn at_root(root: &str, error: &io::Error) -> Refused {
    Refused::System(io::Error::new(error.kind(), format!("GA_ROOT={root}: {error}")))
}

/// Listens at the port of the root, on all addresses: a host may know itself by one that others do not reach.
fn listen(root: &str) -> Result<TcpListener> {
    let port = root.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
    let port =
        port.ok_or_else(|| at_root(root, &io::Error::new(ErrorKind::InvalidInput, "no host and port, as in node07:29400")))?;
    let listener = TcpListener::bind(("::", port)).or_else(|error| match error.kind() {
        ErrorKind::AddrInUse => Err(error),
        _ => TcpListener::bind(("0.0.0.0", port)),
    });
    let listener = listener.map_err(|error| at_root(root, &error))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

fn nonce() -> io::Result<Nonce> {
    let mut bytes = [0; 16];
    // So few bytes come at once.
    getrandom(&mut bytes[..], GetRandomFlags::empty())?;
    Ok(bytes)
}

fn proof_of_rank(secret: &[u8], root: &Nonce, own: &Nonce, rank: usize, ranks: usize) -> [u8; 32] {
    HMAC::mac(claim(root, own, rank, ranks), secret)
}

/// The message of a rank's proof.
fn claim(root: &Nonce, own: &Nonce, rank: usize, ranks: usize) -> Vec<u8> {
    [&b"rank"[..], root, own, &(rank as u64).to_le_bytes(), &(ranks as u64).to_le_bytes()].concat()
}

/// Rank 0 answers the proof of a rank, which nobody can make again.
fn proof_of_root(secret: &[u8], proof: &[u8; 32]) -> [u8; 32] {
    HMAC::mac([&b"root"[..], proof].concat(), secret)
}

fn root_proves(secret: &[u8], theirs: &[u8; 32], proof: &[u8; 32]) -> bool {
    HMAC::verify([&b"root"[..], proof].concat(), secret, theirs)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn of_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits: Vec<u8> = text.trim().chars().map(|digit| digit.to_digit(16).map(|digit| digit as u8)).collect::<Option<_>>()?;
    (digits.len() == 2 * N).then(|| std::array::from_fn(|k| digits[2 * k] << 4 | digits[2 * k + 1]))
}

/// The state of a connection.
#[derive(Debug)]
enum ConnectionStage {
    /// It was sent this number, at this time, and has to prove that it belongs to the job.
    Stranger(Nonce, Instant),
    Rank(usize),
    /// It has taken its leave.
    Left(usize),
}

#[derive(Debug)]
struct Caller {
    stream: TcpStream,
    stage: ConnectionStage,
    /// A line that has not come whole.
    begun: Vec<u8>,
}

/// How the meeting ended.
enum MeetingEnd {
    /// All ranks have left.
    Well,
    /// A rank is lost: the rank, and why.
    Lost(usize, String),
}

/// Where a rank is, as far as the root has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Presence {
    Away,
    Here,
    Left,
}

/// The thread of rank 0, or of a launcher.
struct Root {
    listener: TcpListener,
    secret: Vec<u8>,
    ranks: usize,
    callers: Vec<Caller>,
    values: HashMap<String, String>,
    /// Ranks that have come to the fence.
    fenced: usize,
    presence: Vec<Presence>,
    left: usize,
    /// The launcher whose thread this is.
    launcher: Option<Arc<Link>>,
    /// A rank whose connection is lost, and since when: the launcher may know more of its process.
    suspect: Option<(usize, String, Instant)>,
    /// A rank whose process has ended well without coming.
    absent: Option<usize>,
}

impl Root {
    fn new(listener: TcpListener, secret: Vec<u8>, ranks: usize, launcher: Option<Arc<Link>>) -> Self {
        let (callers, values, presence) = (Vec::new(), HashMap::new(), vec![Presence::Away; ranks]);
        Root { listener, secret, ranks, callers, values, fenced: 0, presence, left: 0, launcher, suspect: None, absent: None }
    }

    fn serve(mut self) {
        loop {
            match self.look() {
                Ok(None) => {}
                Ok(Some(MeetingEnd::Well)) => return,
                Ok(Some(MeetingEnd::Lost(rank, why))) => {
                    self.say_to_all(&farewell(rank, &why));
                    if let Some(launcher) = &self.launcher {
                        return launcher.hears_of(Some(rank), why);
                    }
                    return say(format_args!("rank {rank} {why}, so the job is over for the others too (GA_ROOT)"));
                }
                Err(error) => {
                    let why = format!("the ranks cannot be listened to any more: {error} (GA_ROOT)");
                    return self.launcher.as_ref().map_or_else(|| say(&why), |launcher| launcher.hears_of(None, why.clone()));
                }
            }
        }
    }

    /// Waits for what comes, and answers.
    fn look(&mut self) -> io::Result<Option<MeetingEnd>> {
        let timeout = if self.suspect.is_some() { ENDS / 4 } else { Duration::from_secs(1) };
        let timeout = Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: i64::from(timeout.subsec_nanos()) };
        let mut looked: Vec<PollFd<'_>> = self.callers.iter().map(|caller| PollFd::new(&caller.stream, PollFlags::IN)).collect();
        looked.extend(self.launcher.iter().map(|launcher| PollFd::new(launcher.reports(), PollFlags::IN)));
        looked.push(PollFd::new(&self.listener, PollFlags::IN));
        match poll(&mut looked, Some(&timeout)) {
            Err(rustix::io::Errno::INTR) => return Ok(None),
            found => found?,
        };
        let ready: Vec<bool> = looked.iter().map(|one| !one.revents().is_empty()).collect();
        let mut gone = Vec::new();
        for (at, _) in ready[..self.callers.len()].iter().enumerate().filter(|(_, ready)| **ready) {
            match self.hear(at) {
                Ok(Some(over)) => return Ok(Some(over)),
                Ok(None) => {}
                Err(error) => gone.push((at, error)),
            }
        }
        for (at, error) in gone.into_iter().rev() {
            if let ConnectionStage::Rank(rank) = self.callers.swap_remove(at).stage {
                let why = match error.kind() {
                    ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => {
                        "has closed its connection before the end of the job".into()
                    }
                    ErrorKind::InvalidData => "has sent what no rank sends".into(),
                    _ => format!("has lost its connection: {error}"),
                };
                if self.launcher.is_none() {
                    return Ok(Some(MeetingEnd::Lost(rank, why)));
                }
                self.suspect.get_or_insert((rank, why, Instant::now()));
            }
        }
        self.callers.retain(|caller| !matches!(caller.stage, ConnectionStage::Stranger(_, since) if since.elapsed() > GREETING));
        if ready.last() == Some(&true) {
            self.accept()?;
        }
        Ok(self.ended_processes())
    }

    /// What follows from the ends of processes, which a launcher reports.
    fn ended_processes(&mut self) -> Option<MeetingEnd> {
        for (rank, why) in self.launcher.as_ref()?.take_reports() {
            let suspicion = self.suspect.as_ref().filter(|suspect| suspect.0 == rank).map(|suspect| suspect.1.clone());
            match (why.or(suspicion), self.presence[rank]) {
                (Some(why), _) => return Some(MeetingEnd::Lost(rank, why)),
                (None, Presence::Away) => self.absent = Some(rank),
                (None, Presence::Here | Presence::Left) => {}
            }
        }
        if let Some((rank, why, _)) = self.suspect.take_if(|suspect| suspect.2.elapsed() >= ENDS) {
            return Some(MeetingEnd::Lost(rank, why));
        }
        let rank = self.absent.filter(|_| self.presence.iter().any(|&presence| presence != Presence::Away))?;
        Some(MeetingEnd::Lost(rank, "has ended and never came to the job; each process must call `run` or `start`".into()))
    }

    fn accept(&mut self) -> io::Result<()> {
        let (mut stream, _) = match self.listener.accept() {
            Ok(accepted) => accepted,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::ConnectionAborted) => return Ok(()),
            Err(error) => return Err(error),
        };
        let is_stranger = |caller: &Caller| matches!(caller.stage, ConnectionStage::Stranger(..));
        if self.callers.iter().filter(|caller| is_stranger(caller)).count() >= self.ranks + STRANGERS {
            // The one that has waited for the longest time makes room.
            let oldest = self.callers.iter().position(is_stranger);
            oldest.map(|at| self.callers.remove(at));
        }
        let nonce = nonce()?;
        // What is written is short, and waits in the socket. A rank that does not read for this time is lost.
        let greeted = stream.set_nonblocking(false).and_then(|()| stream.set_write_timeout(Some(GREETING)));
        let greeted = greeted.and_then(|()| stream.set_nodelay(true));
        if greeted.and_then(|()| stream.write_all(format!("ga-root 1 {}\n", hex(&nonce)).as_bytes())).is_ok() {
            self.callers.push(Caller { stream, stage: ConnectionStage::Stranger(nonce, Instant::now()), begun: Vec::new() });
        }
        Ok(())
    }

    /// Reads what a caller has sent, and answers its lines. An error if the caller is gone, or has to go.
    fn hear(&mut self, at: usize) -> io::Result<Option<MeetingEnd>> {
        let caller = &mut self.callers[at];
        let mut bytes = [0; 4096];
        let count = caller.stream.read(&mut bytes)?;
        if count == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        caller.begun.extend_from_slice(&bytes[..count]);
        while let Some(end) = self.callers[at].begun.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = self.callers[at].begun.drain(..=end).collect();
            let line = String::from_utf8(line).map_err(|_| ErrorKind::InvalidData)?;
            if let Some(over) = self.answer(at, line.trim_end())? {
                return Ok(Some(over));
            }
        }
        let caller = &self.callers[at];
        let longest = if matches!(caller.stage, ConnectionStage::Stranger(..)) { LONGEST_GREETING } else { LONGEST_LINE };
        if caller.begun.len() > longest { Err(ErrorKind::InvalidData.into()) } else { Ok(None) }
    }

    fn answer(&mut self, at: usize, line: &str) -> io::Result<Option<MeetingEnd>> {
        let rank = match self.callers[at].stage {
            ConnectionStage::Stranger(nonce, _) => return self.greet(at, &nonce, line).map(|()| None),
            ConnectionStage::Left(_) => return Err(ErrorKind::InvalidData.into()),
            ConnectionStage::Rank(rank) => rank,
        };
        let field = |name: &str| line.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        let answer = match field("cmd") {
            Some("get_maxes") => format!("cmd=maxes kvsname_max=64 keylen_max=64 vallen_max={LONGEST_VALUE}"),
            Some("get_my_kvsname") => "cmd=my_kvsname kvsname=job".into(),
            Some("put") => match (field("key"), field("value")) {
                (Some(key), Some(value)) => {
                    self.values.insert(key.to_owned(), value.to_owned());
                    "cmd=put_result rc=0".into()
                }
                _ => "cmd=put_result rc=-1".into(),
            },
            Some("get") => match field("key").and_then(|key| self.values.get(key)) {
                Some(value) => format!("cmd=get_result rc=0 value={value}"),
                None => "cmd=get_result rc=-1 msg=key_not_found".into(),
            },
            Some("barrier_in") => {
                self.fenced += 1;
                if self.fenced < self.ranks {
                    return Ok(None);
                }
                self.fenced = 0;
                self.say_to_all("cmd=barrier_out");
                return Ok(None);
            }
            Some("finalize") => {
                self.callers[at].stage = ConnectionStage::Left(rank);
                self.presence[rank] = Presence::Left;
                self.left += 1;
                return Ok(self.see_out(rank));
            }
            Some("abort") => return Ok(Some(MeetingEnd::Lost(rank, "could not meet the others".into()))),
            _ => return Err(ErrorKind::InvalidData.into()),
        };
        self.callers[at].say(&answer)?;
        Ok(None)
    }

    /// A stranger names its rank.
    fn greet(&mut self, at: usize, root: &Nonce, line: &str) -> io::Result<()> {
        let words: Vec<&str> = line.split(' ').collect();
        let &["ga-rank", rank, ranks, own, proof] = &words[..] else { return Err(ErrorKind::InvalidData.into()) };
        let number = |word: &str| word.parse::<usize>().map_err(|_| ErrorKind::InvalidData);
        let (rank, ranks) = (number(rank)?, number(ranks)?);
        let (Some(own), Some(proof)) = (of_hex::<16>(own), of_hex::<32>(proof)) else {
            return Err(ErrorKind::InvalidData.into());
        };
        if !HMAC::verify(claim(root, &own, rank, ranks), &self.secret, &proof) {
            // The output of a launcher is not this thread's.
            if self.launcher.is_none() {
                say(format_args!(
                    "a process that does not know the secret of the job wanted to be rank {rank} (GA_ROOT, GA_TOKEN)"
                ));
            }
            return Err(ErrorKind::PermissionDenied.into());
        }
        let refused = if ranks != self.ranks {
            Some(format!("that the job has {} ranks (GA_RANKS)", self.ranks))
        } else if self.presence.get(rank) != Some(&Presence::Away) {
            Some(format!(
                "that rank {rank} is there already (GA_RANK); a program that a rank starts is no rank: start its job by a fork (GA_BOOTSTRAP=fork)"
            ))
        } else {
            None
        };
        if let Some(why) = refused {
            self.callers[at].say(&format!("ga-refused {why}"))?;
            return Err(ErrorKind::PermissionDenied.into());
        }
        self.presence[rank] = Presence::Here;
        self.callers[at].stage = ConnectionStage::Rank(rank);
        self.callers[at].say(&format!("ga-welcome {}", hex(&proof_of_root(&self.secret, &proof))))
    }

    /// A rank has taken its leave. If the end of rank 0 is that of this thread, rank 0 waits for the others, and hears last.
    fn see_out(&mut self, rank: usize) -> Option<MeetingEnd> {
        let all = self.left == self.ranks;
        if rank != 0 || self.launcher.is_some() {
            self.bid_farewell(rank);
        }
        if all {
            self.bid_farewell(0);
        }
        all.then_some(MeetingEnd::Well)
    }

    fn bid_farewell(&mut self, rank: usize) {
        for caller in self.callers.iter_mut().filter(|caller| matches!(caller.stage, ConnectionStage::Left(of) if of == rank)) {
            // A rank that does not hear of it leaves all the same.
            let _ = caller.say("cmd=finalize_ack");
        }
    }

    fn say_to_all(&mut self, line: &str) {
        for caller in self.callers.iter_mut().filter(|caller| matches!(caller.stage, ConnectionStage::Rank(_))) {
            // A later read shows that the rank is gone.
            let _ = caller.say(line);
        }
    }
}

impl Caller {
    fn say(&mut self, line: &str) -> io::Result<()> {
        self.stream.write_all(format!("{line}\n").as_bytes())
    }
}

#[cfg(test)]
mod tests;
