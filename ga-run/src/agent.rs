//! The ranks of one host: `ga-run --agent`, which `ga-run` starts on each, by a remote shell or here.
//!
//! It starts the ranks, passes on what they print in whole lines, hands signals on, and reports how they end. It lives as long as its
//! standard input: when that closes, because `ga-run` or the connection is gone, it kills the ranks and all their children that are in
//! the process groups of the ranks. If it is killed itself, the kernel kills the ranks.

use std::{
    env,
    fs::File,
    io::{self, ErrorKind, Read, Write},
    os::{
        fd::{AsFd, OwnedFd},
        unix::process::CommandExt,
    },
    path::Path,
    process::{Child, ChildStdin, Command, Stdio},
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    fs::{OFlags, fcntl_setfl},
    process::{
        Pid, Resource, Rlimit, Signal, WaitId, WaitIdOptions, WaitIdStatus, getpid, getppid, kill_process_group,
        set_parent_process_death_signal, setrlimit, waitid,
    },
};
use signal_hook::consts::SIGCHLD;

use crate::{
    signals::Signals,
    wire::{Frame, Frames, HELLO, Kind, Plan, WINDOW, is_ours, send},
};

/// A line longer than this is passed on in parts.
const LONGEST_LINE: usize = 1 << 16;

/// Reads after which a pipe was full at the end of its rank, whose pages were large: 1 MiB.
const FULL_PIPE: usize = 64;

/// Beginnings of names of variables by which other launchers tell a process that it is a rank of theirs.
const OF_LAUNCHERS: [&str; 7] = ["PMI_", "PMIX_", "OMPI_", "PRTE_", "SLURM_STEP_", "SLURM_PROCID", "SLURM_LOCALID"];

/// The status where there is no such program, and where it cannot be run, as shells have them.
const NO_PROGRAM: u32 = 127;
const NOT_RUN: u32 = 126;

/// A process of a rank.
struct RankProcess {
    rank: usize,
    child: Child,
    pipes: [RankPipe; 2],
    ended: bool,
}

/// What a rank prints.
struct RankPipe {
    kind: Kind,
    end: Option<File>,
    /// What is not yet a whole line.
    line: Vec<u8>,
}

/// The standard input of rank 0.
struct Input {
    end: ChildStdin,
    /// What has come and does not fit yet.
    waiting: Vec<u8>,
}

struct Agent {
    processes: Vec<RankProcess>,
    input: Option<Input>,
    /// Bytes that may still be sent. The ends of ranks may take more.
    credit: isize,
    /// The limit of open files of ranks.
    files: Rlimit,
}

/// All of an agent.
pub(crate) fn main(files: Rlimit) -> io::Result<()> {
    let signals = Signals::take(&[SIGCHLD])?;
    let (mut stdin, mut frames) = (File::from(io::stdin().as_fd().try_clone_to_owned()?), Frames::default());
    io::stdout().write_all(HELLO)?;
    let mut agent = Agent { processes: Vec::new(), input: None, credit: WINDOW as isize, files };
    let ended = agent.serve(&signals, &mut stdin, &mut frames);
    agent.signal(Signal::KILL);
    for process in &mut agent.processes {
        process.child.wait()?;
    }
    ended
}

impl Agent {
    /// Returns when the last rank has ended, or `ga-run` is gone.
    fn serve(&mut self, signals: &Signals, stdin: &mut File, frames: &mut Frames) -> io::Result<()> {
        loop {
            let [commanded, signaled] = self.wait(signals, stdin)?;
            if commanded {
                if !frames.read(&mut *stdin)? {
                    return Ok(());
                }
                while let Some(frame) = frames.next()? {
                    self.obey(&frame)?;
                }
            }
            self.feed()?;
            if self.credit > 0 {
                for process in &mut self.processes {
                    self.credit -= process.forward()?;
                }
            }
            if signaled && !signals.take_all().is_empty() {
                self.report_ends()?;
                if self.processes.iter().all(|process| process.ended) {
                    return Ok(());
                }
            }
        }
    }

    /// Waits for something. The first answer is true if a frame has come, the second if a signal has.
    fn wait(&self, signals: &Signals, stdin: &File) -> io::Result<[bool; 2]> {
        let mut looked = vec![PollFd::new(stdin, PollFlags::IN), PollFd::new(signals, PollFlags::IN)];
        if self.credit > 0 {
            let pipes = self.processes.iter().flat_map(|process| &process.pipes).filter_map(|pipe| pipe.end.as_ref());
            looked.extend(pipes.map(|end| PollFd::new(end, PollFlags::IN)));
        }
        if let Some(input) = self.input.as_ref().filter(|input| !input.waiting.is_empty()) {
            looked.push(PollFd::new(&input.end, PollFlags::OUT));
        }
        match poll(&mut looked, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok([0, 1].map(|at| !looked[at].revents().is_empty())),
            Err(error) => Err(error.into()),
        }
    }

    fn obey(&mut self, frame: &Frame) -> io::Result<()> {
        match frame.kind {
            Kind::Start => {
                let plan = Plan::of_bytes(&frame.bytes).ok_or(ErrorKind::InvalidData)?;
                if let Err((status, why)) = self.start(&plan) {
                    send(io::stdout(), Kind::Refused, status, why.as_bytes())?;
                    return Err(io::Error::other(why));
                }
                if self.input.is_some() {
                    send(io::stdout(), Kind::Wants, 0, b"")?;
                }
            }
            Kind::Signal => {
                if let Some(signal) = Signal::from_named_raw(frame.number as i32) {
                    self.signal(signal);
                }
            }
            Kind::Input if frame.bytes.is_empty() => self.input = None,
            Kind::Input => {
                if let Some(input) = &mut self.input {
                    input.waiting.extend_from_slice(&frame.bytes);
                }
            }
            Kind::Credit => self.credit += frame.number as isize,
            _ => return Err(ErrorKind::InvalidData.into()),
        }
        Ok(())
    }

    /// Starts all ranks. Else says why not, and with which status to end.
    fn start(&mut self, plan: &Plan) -> Result<(), (u32, String)> {
        let folder = Path::new(&plan.folder);
        env::set_current_dir(folder).map_err(|error| (NOT_RUN, format!("{}: {error}", folder.display())))?;
        let foreign = |name: &str| OF_LAUNCHERS.iter().any(|of| name.starts_with(of));
        for &rank in &plan.ranks {
            let mut command = Command::new(&plan.program[0]);
            command.args(&plan.program[1..]).process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped());
            command.stdin(if rank == 0 { Stdio::piped() } else { Stdio::null() });
            for (name, _) in env::vars_os().filter(|(name, _)| is_ours(name) || name.to_str().is_some_and(foreign)) {
                command.env_remove(name);
            }
            command.envs(plan.variables.iter().map(|(name, value)| (name, value))).env("GA_RANK", rank.to_string());
            let started = prepared(&mut command, self.files).spawn().and_then(|child| self.add(rank, child));
            started.map_err(|error| {
                let status = if error.kind() == ErrorKind::NotFound { NO_PROGRAM } else { NOT_RUN };
                (status, format!("{} cannot be run: {error}", Path::new(&plan.program[0]).display()))
            })?;
        }
        Ok(())
    }

    fn add(&mut self, rank: usize, mut child: Child) -> io::Result<()> {
        let ends = (child.stdout.take().map(OwnedFd::from), child.stderr.take().map(OwnedFd::from));
        if let Some(end) = child.stdin.take() {
            fcntl_setfl(&end, OFlags::NONBLOCK)?;
            self.input = Some(Input { end, waiting: Vec::new() });
        }
        let pipe = |kind, end: Option<OwnedFd>| RankPipe { kind, end: end.map(File::from), line: Vec::new() };
        let pipes = [pipe(Kind::Output, ends.0), pipe(Kind::Errors, ends.1)];
        let nonblocking =
            pipes.iter().filter_map(|pipe| pipe.end.as_ref()).try_for_each(|end| fcntl_setfl(end, OFlags::NONBLOCK));
        self.processes.push(RankProcess { rank, child, pipes, ended: false });
        Ok(nonblocking?)
    }

    /// Sends a signal to all ranks that run, and to what they have started.
    fn signal(&self, signal: Signal) {
        for process in self.processes.iter().filter(|process| !process.ended) {
            process.signal(signal);
        }
    }

    /// Hands on to rank 0 what it takes, and asks for more.
    fn feed(&mut self) -> io::Result<()> {
        let Some(input) = self.input.as_mut().filter(|input| !input.waiting.is_empty()) else { return Ok(()) };
        match input.end.write(&input.waiting) {
            Ok(count) => {
                input.waiting.drain(..count);
                if input.waiting.is_empty() { send(io::stdout(), Kind::Wants, 0, b"") } else { Ok(()) }
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(()),
            Err(_) => {
                // It reads no more.
                self.input = None;
                Ok(())
            }
        }
    }

    /// Reports ranks that have ended, first those that a signal has ended: others may have ended because of them.
    fn report_ends(&mut self) -> io::Result<()> {
        let mut ended = Vec::new();
        for (at, process) in self.processes.iter_mut().enumerate().filter(|(_, process)| !process.ended) {
            ended.extend(process.end()?.map(|status| (status.exit_status(), status.terminating_signal(), at)));
        }
        ended.sort_unstable();
        for (code, signal, at) in ended {
            let process = &mut self.processes[at];
            self.credit -= process.forward()? + process.finish()?;
            let (kind, number) = match code {
                Some(code) => (Kind::Exit, code),
                None => (Kind::Killed, signal.unwrap_or(0)),
            };
            send(io::stdout(), kind, process.rank as u32, &number.to_le_bytes())?;
            if process.rank == 0 {
                self.input = None;
            }
        }
        Ok(())
    }
}

impl RankProcess {
    /// How it has ended, if it has. Nothing is left of its process group then. It is not reaped before the job is over: other ranks look
    /// at its status, and nobody else gets its number.
    fn end(&mut self) -> io::Result<Option<WaitIdStatus>> {
        let looks = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let status = waitid(WaitId::Pid(self.pid()), looks)?;
        if status.is_some() {
            self.signal(Signal::KILL);
            self.ended = true;
        }
        Ok(status)
    }

    fn signal(&self, signal: Signal) {
        // There may be nobody any more.
        let _ = kill_process_group(self.pid(), signal);
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Passes on what it has printed, in whole lines. Returns how many bytes.
    fn forward(&mut self) -> io::Result<isize> {
        let mut sent = 0;
        for pipe in &mut self.pipes {
            sent += pipe.forward(self.rank)?;
        }
        Ok(sent)
    }

    /// Passes on what is left after its end, and no more, even if somebody else still holds the pipe.
    fn finish(&mut self) -> io::Result<isize> {
        let mut sent = 0;
        for pipe in &mut self.pipes {
            let mut reads = 0..FULL_PIPE;
            while reads.next().is_some() && pipe.grows()? {}
            pipe.end = None;
            sent += pipe.send(self.rank, pipe.line.len())?;
        }
        Ok(sent)
    }
}

impl RankPipe {
    /// Reads once, and passes on the lines that are whole. Returns how many bytes they have.
    fn forward(&mut self, rank: usize) -> io::Result<isize> {
        self.grows()?;
        let whole = self.line.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        let whole = if whole == 0 && self.line.len() >= LONGEST_LINE { LONGEST_LINE } else { whole };
        self.send(rank, whole)
    }

    /// Reads once. Returns true if there was something.
    fn grows(&mut self) -> io::Result<bool> {
        let Some(end) = &mut self.end else { return Ok(false) };
        let mut buffer = [0; 1 << 14];
        match end.read(&mut buffer) {
            Ok(0) => self.end = None,
            Ok(count) => self.line.extend_from_slice(&buffer[..count]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => return Ok(false),
            Err(error) => return Err(error),
        }
        Ok(self.end.is_some())
    }

    fn send(&mut self, rank: usize, count: usize) -> io::Result<isize> {
        if count > 0 {
            let text: Vec<u8> = self.line.drain(..count).collect();
            send(io::stdout(), self.kind, rank as u32, &text)?;
        }
        Ok(count as isize)
    }
}

/// Has the kernel kill the process when this one ends, however it ends; and gives it the limit of open files of others.
#[expect(unsafe_code, reason = "what runs between fork and exec")]
fn prepared(command: &mut Command, files: Rlimit) -> &mut Command {
    let own = getpid();
    let arrange = move || {
        setrlimit(Resource::Nofile, files)?;
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // If this process has ended before that call, nobody kills the child: look.
        if getppid() == Some(own) { Ok(()) } else { Err(ErrorKind::NotFound.into()) }
    };
    // SAFETY: `arrange` makes three system calls, and neither allocates nor takes a lock.
    unsafe { command.pre_exec(arrange) }
}
