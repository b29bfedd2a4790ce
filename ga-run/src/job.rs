//! The job from its start to its end, as the loop of `ga-run` sees it.
//!
//! Nothing in the loop waits for a reader of what ranks print or for a rank, and half a second at most for a host that is lost. Once a rank has failed or a signal wants the
//! end, the others have [`GRACE`]; then they are killed, and agents that do not report that within [`LAST`] too.
//!
//! The status is that of the first rank that failed. A line names it, unless the library or the program has.

use std::{
    ffi::{OsString, c_int},
    io::{self, Read},
    os::fd::AsFd,
    process::ExitCode,
    time::{Duration, Instant},
};

use global_arrays::launcher::{LauncherMeeting, ended_by};
use rustix::{
    event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll},
    fd::OwnedFd,
    process::{Signal, getpgrp, getpid, kill_process},
    termios::tcgetpgrp,
};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2};

use crate::{
    hosts::Host,
    printer::Printer,
    remote::RemoteAgent,
    signals::Signals,
    wire::{Frame, Kind, Plan},
};

/// The time that ranks have to end by themselves after a failure or a signal.
const GRACE: Duration = Duration::from_secs(2);

/// The time that agents have to report the ends of killed ranks, and a reader has for the rest after a failure.
const LAST: Duration = Duration::from_secs(1);

/// Signals that want the end.
const ENDING: [c_int; 4] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT];

/// Signals that ranks get too.
const OTHERS: [c_int; 4] = [SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT];

/// The longest part of standard input that is read before rank 0 wants more, and the end of standard error that is searched for the
/// failed rank.
const PART: usize = 1 << 14;
const SEARCHED: usize = 1 << 16;

/// What the user asks for.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(crate) hosts: Vec<Host>,
    pub(crate) program: Vec<OsString>,
    pub(crate) folder: OsString,
    /// Of all ranks.
    pub(crate) variables: Vec<(OsString, OsString)>,
    /// By which name other machines reach this one.
    pub(crate) address: String,
    pub(crate) shell: Vec<String>,
    pub(crate) tag: bool,
}

/// Where the job stands.
#[derive(Clone, Copy, Debug)]
enum Stage {
    Runs,
    /// Ranks end by themselves until then.
    Ends(Instant),
    /// They are killed, and their agents at that time.
    Killed(Instant),
}

/// The first failure.
#[derive(Debug)]
struct Failure {
    rank: Option<usize>,
    /// Not known where the meeting has ended because of a rank whose process has not.
    status: Option<u8>,
    words: String,
}

struct JobRun {
    agents: Vec<RemoteAgent>,
    meeting: LauncherMeeting,
    signals: Signals,
    output: Printer,
    errors: Printer,
    /// Readable when a printer has written something.
    written: OwnedFd,
    tag: bool,
    stage: Stage,
    failure: Option<Failure>,
    /// The first signal that wants the end.
    signal: Option<c_int>,
    /// A rank has not ended well.
    any_bad: bool,
    /// The end of what the ranks have printed to standard error.
    last_errors: Vec<u8>,
    /// The agent whose rank 0 wants input.
    wants: Option<usize>,
}

/// Runs a job. Returns the status of `ga-run`.
pub(crate) fn run(wanted: Wanted) -> Result<ExitCode, String> {
    let system = |what: &'static str| move |error: io::Error| format!("{what}: {error}");
    let signals = Signals::take(&[ENDING, OTHERS].concat()).map_err(system("taking signals over"))?;
    let ranks = wanted.hosts.iter().map(|host| host.ranks.len()).sum();
    let is_alone = wanted.hosts.iter().all(|host| host.name.is_none());
    let meeting = LauncherMeeting::open(ranks, !is_alone).map_err(system("listening for the ranks"))?;
    let agents: Result<Vec<_>, String> = wanted.hosts.iter().map(|host| start_agent(host, &wanted, &meeting)).collect();
    let printers = || {
        let written = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let output = Printer::start(raw(io::stdout())?, written.try_clone()?)?;
        Ok((output, Printer::start(raw(io::stderr())?, written.try_clone()?)?, written))
    };
    let (output, errors, written) = printers().map_err(system("preparing to print"))?;
    let mut job = JobRun {
        agents: agents?,
        meeting,
        signals,
        output,
        errors,
        written,
        tag: wanted.tag,
        stage: Stage::Runs,
        failure: None,
        signal: None,
        any_bad: false,
        last_errors: Vec::new(),
        wants: None,
    };
    job.serve().map_err(system("waiting for the ranks"))?;
    Ok(job.end())
}

/// Writes that nothing buffers.
fn raw(out: impl AsFd) -> io::Result<std::fs::File> {
    Ok(out.as_fd().try_clone_to_owned()?.into())
}

fn start_agent(host: &Host, wanted: &Wanted, meeting: &LauncherMeeting) -> Result<RemoteAgent, String> {
    let mut agent = RemoteAgent::start(host.clone(), &wanted.shell).map_err(|error| match &host.name {
        Some(name) => format!("no ranks could be started on {name}: {}: {error}", wanted.shell.join(" ")),
        None => format!("the agent of this machine could not be started: {error}"),
    })?;
    let own = meeting.variables(if host.name.is_some() { &wanted.address } else { "127.0.0.1" });
    let own = own.map(|(name, value)| (OsString::from(name), OsString::from(value)));
    let plan = Plan {
        folder: wanted.folder.clone(),
        ranks: host.ranks.clone(),
        variables: wanted.variables.iter().cloned().chain(own).collect(),
        program: wanted.program.clone(),
    };
    agent.order(Kind::Start, 0, &plan.to_bytes());
    Ok(agent)
}

impl JobRun {
    /// Returns when all agents have ended and what ranks printed is written, as far as somebody reads it.
    fn serve(&mut self) -> io::Result<()> {
        let mut is_said = false;
        loop {
            let are_gone = self.agents.iter().all(|agent| agent.reports.is_none());
            if are_gone && !is_said {
                is_said = true;
                self.say_failure();
                if let Stage::Ends(_) | Stage::Killed(_) = self.stage {
                    self.stage = Stage::Killed(Instant::now() + LAST);
                }
            }
            if are_gone && self.output.is_idle() && self.errors.is_idle() {
                return Ok(());
            }
            match self.stage {
                Stage::Ends(until) if until <= Instant::now() => self.kill(),
                Stage::Killed(until) if until <= Instant::now() => {
                    if !is_said {
                        self.say_failure();
                    }
                    return Ok(());
                }
                _ => {}
            }
            self.step()?;
        }
    }

    /// Waits for something, and does what it asks for.
    fn step(&mut self) -> io::Result<()> {
        let stdin = io::stdin();
        let may_read = self.wants.is_some() && is_in_foreground();
        let mut looked = vec![PollFd::new(&self.signals, PollFlags::IN), PollFd::new(&self.written, PollFlags::IN)];
        // Once it has ended, its descriptor stays readable.
        let meeting = if self.failure.is_none() { PollFlags::IN } else { PollFlags::empty() };
        looked.push(PollFd::new(&self.meeting, meeting));
        let heard: Vec<usize> = (0..self.agents.len()).filter(|&at| self.agents[at].reports.is_some()).collect();
        looked.extend(heard.iter().filter_map(|&at| self.agents[at].reports.as_ref()).map(|of| PollFd::new(of, PollFlags::IN)));
        if may_read {
            // Not before: its end would be seen at every look.
            looked.push(PollFd::new(&stdin, PollFlags::IN));
        }
        match poll(&mut looked, self.timeout(may_read).as_ref()) {
            Err(rustix::io::Errno::INTR) => return Ok(()),
            found => found?,
        };
        let ready: Vec<bool> = looked.iter().map(|one| !one.revents().is_empty()).collect();
        if ready[0] {
            self.signals.take_all().into_iter().for_each(|signal| self.take_signal(signal));
        }
        if ready[1] {
            // Both printers look at the same count.
            let _ = rustix::io::read(&self.written, &mut [0; 8]);
            for (agent, bytes) in [self.output.take_done(), self.errors.take_done()].concat() {
                if let Some(agent) = self.agents.get_mut(agent) {
                    agent.order(Kind::Credit, bytes as u32, b"");
                }
            }
        }
        for (_, at) in ready[3..].iter().zip(heard).filter(|(ready, _)| **ready) {
            self.hear(at);
        }
        if ready[2]
            && self.failure.is_none()
            && let Some((rank, why)) = self.meeting.lost()
        {
            self.fail(rank, None, why);
        }
        if may_read && ready.last() == Some(&true) {
            self.feed();
        }
        Ok(())
    }

    fn timeout(&self, may_read: bool) -> Option<Timespec> {
        let until = match self.stage {
            Stage::Runs => None,
            Stage::Ends(until) | Stage::Killed(until) => Some(until.saturating_duration_since(Instant::now())),
        };
        // A job in the background may come to the foreground.
        let looks = (self.wants.is_some() && !may_read).then_some(Duration::from_millis(200));
        let rest = until.into_iter().chain(looks).min()?;
        // A deadline is over after it, not before it.
        Some(Timespec { tv_sec: rest.as_secs() as i64, tv_nsec: i64::from(rest.subsec_nanos()) })
    }

    fn hear(&mut self, at: usize) {
        self.agents[at].hear().into_iter().for_each(|frame| self.take(at, frame));
        let agent = &mut self.agents[at];
        if agent.reports.is_none() && !agent.left.is_empty() {
            let (why, left) = (agent.why_lost(), std::mem::take(&mut agent.left));
            self.any_bad = true;
            for &rank in &left {
                self.meeting.ended(rank, Some("is lost with its machine".into()));
            }
            self.fail(None, Some(1), why);
        }
    }

    /// Does what an agent says.
    fn take(&mut self, at: usize, frame: Frame) {
        let rank = frame.number as usize;
        let number = || <[u8; 4]>::try_from(&*frame.bytes).map_or(0, i32::from_le_bytes);
        match frame.kind {
            Kind::Output => self.output.print((at, frame.bytes.len()), self.tagged(rank, &frame.bytes)),
            Kind::Errors => {
                self.last_errors.extend_from_slice(&frame.bytes);
                let old = self.last_errors.len().saturating_sub(SEARCHED);
                self.last_errors.drain(..old);
                self.errors.print((at, frame.bytes.len()), self.tagged(rank, &frame.bytes));
            }
            Kind::Exit if number() == 0 => self.ended(at, rank, None),
            Kind::Exit => self.ended(at, rank, Some((number() as u8, format!("ended with status {}", number())))),
            Kind::Killed => self.ended(at, rank, Some((128 + number() as u8, ended_by(number())))),
            Kind::Refused => {
                let agent = &mut self.agents[at];
                agent.left.clear();
                let host = agent.host.name.as_ref().map_or_else(String::new, |name| format!("{name}: "));
                self.any_bad = true;
                self.fail(None, Some(frame.number as u8), host + &String::from_utf8_lossy(&frame.bytes));
            }
            Kind::Wants => self.wants = Some(at),
            Kind::Start | Kind::Signal | Kind::Input | Kind::Credit => {}
        }
    }

    /// A rank has ended, well or with a status and a cause.
    fn ended(&mut self, at: usize, rank: usize, bad: Option<(u8, String)>) {
        let agent = &mut self.agents[at];
        let Some(found) = agent.left.iter().position(|&left| left == rank) else { return };
        agent.left.swap_remove(found);
        if rank == 0 {
            self.wants = None;
        }
        self.meeting.ended(rank, bad.as_ref().map(|(_, why)| why.clone()));
        let Some((status, why)) = bad else { return };
        self.any_bad = true;
        match &mut self.failure {
            Some(failure) if failure.rank == Some(rank) && failure.status.is_none() => failure.status = Some(status),
            _ => {
                let host = agent.host.name.as_ref().map_or_else(String::new, |name| format!(" on {name}"));
                self.fail(Some(rank), Some(status), why + &host);
            }
        }
    }

    /// Notes a failure if it is the first, and has the others end.
    fn fail(&mut self, rank: Option<usize>, status: Option<u8>, words: String) {
        if self.signal.is_none() && self.failure.is_none() {
            self.failure = Some(Failure { rank, status, words });
        }
        if let Stage::Runs = self.stage {
            self.stage = Stage::Ends(Instant::now() + GRACE);
        }
    }

    fn kill(&mut self) {
        self.hand_on(Signal::KILL.as_raw());
        self.any_bad = true;
        self.stage = Stage::Killed(Instant::now() + LAST);
    }

    fn take_signal(&mut self, signal: c_int) {
        match signal {
            SIGTSTP => {
                // Nobody of a group of its own takes SIGTSTP.
                self.hand_on(Signal::STOP.as_raw());
                // It returns when somebody continues this process.
                let _ = kill_process(getpid(), Signal::STOP);
            }
            signal if !ENDING.contains(&signal) => self.hand_on(signal),
            signal if matches!(self.stage, Stage::Runs) => {
                self.signal = Some(signal);
                self.hand_on(signal);
                self.stage = Stage::Ends(Instant::now() + GRACE);
            }
            // A second signal wants the end now.
            _ => self.kill(),
        }
    }

    fn hand_on(&mut self, signal: c_int) {
        self.agents.iter_mut().for_each(|agent| agent.order(Kind::Signal, signal as u32, b""));
    }

    /// Reads a part of standard input for rank 0; at its end, nothing.
    fn feed(&mut self) {
        let mut part = [0; PART];
        let count = match io::stdin().lock().read(&mut part) {
            Err(error) if matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) => return,
            read => read.unwrap_or(0),
        };
        if let Some(at) = self.wants.take() {
            self.agents[at].order(Kind::Input, 0, &part[..count]);
        }
    }

    /// Lines of a rank, each behind its number if the user wants that.
    fn tagged(&self, rank: usize, text: &[u8]) -> Vec<u8> {
        if !self.tag {
            return text.to_vec();
        }
        let text = text.strip_suffix(b"\n").unwrap_or(text);
        text.split(|&byte| byte == b'\n').flat_map(|line| [format!("[{rank}] ").as_bytes(), line, b"\n"].concat()).collect()
    }

    /// One line for the cause, unless standard error has it.
    fn say_failure(&mut self) {
        let line = match (&self.failure, self.signal) {
            (Some(Failure { rank: Some(rank), words, .. }), _) => {
                let said = |name: String| self.last_errors.windows(name.len()).any(|text| text == name.as_bytes());
                if said(format!("global-arrays: rank {rank} ")) || said(format!("Error: rank {rank} ")) {
                    return;
                }
                format!("rank {rank} {words}")
            }
            (Some(Failure { words, .. }), _) => words.clone(),
            (None, Some(signal)) if self.any_bad => format!("the job {}", ended_by(signal)),
            _ => return,
        };
        self.errors.print((usize::MAX, 0), format!("ga-run: {line}\n").into_bytes());
    }

    /// The status.
    fn end(mut self) -> ExitCode {
        let until = Instant::now() + LAST / 4;
        for agent in &mut self.agents {
            agent.end(until);
        }
        let lost = self.output.lost();
        if let Some(why) = &lost {
            self.errors
                .print((usize::MAX, 0), format!("ga-run: what the ranks printed could not be written: {why}\n").into_bytes());
            let start = Instant::now();
            while !self.errors.is_idle() && start.elapsed() < LAST {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        match (self.failure, self.signal) {
            (Some(failure), _) => failure.status.unwrap_or(1).into(),
            (None, Some(signal)) if self.any_bad => (128 + signal as u8).into(),
            _ if lost.is_some() => ExitCode::FAILURE,
            _ => ExitCode::SUCCESS,
        }
    }
}

/// Returns false if reading would stop this process: it is in the background of the terminal that is its standard input.
fn is_in_foreground() -> bool {
    tcgetpgrp(io::stdin()).map_or(true, |group| group == getpgrp())
}
