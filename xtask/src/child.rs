//! Programs that we start: each under a time limit, in a process group of its own, and nothing
//! of it left behind.
//!
//! A program may start others that leave its process group (`mpirun` does that with its ranks). We
//! therefore ask the kernel to hand us every orphan among our descendants; whatever is still there
//! when the program itself has ended is killed and reported. One program runs at a time.

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, kill_process_group, set_child_subreaper, waitpid};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::fmt;
use std::fs;
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Set once, by a signal: nothing is started any more.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Between asking a program to end and ending it.
const GRACE: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(2);

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Exit(i32),
    Signal(i32),
    TimedOut(Duration),
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            End::Exit(code) => write!(f, "exit status {code}"),
            End::Signal(signal) => write!(f, "killed by signal {signal}"),
            End::TimedOut(limit) => write!(f, "still running after {} s, killed", limit.as_secs()),
        }
    }
}

/// What a program did.
#[derive(Debug)]
pub struct Outcome {
    pub end: End,
    pub stdout: String,
    pub stderr: String,
    pub elapsed: Duration,
    /// Command lines of the processes that outlived it.
    pub left_behind: Vec<String>,
}

impl Outcome {
    pub fn success(&self) -> bool {
        self.end == End::Exit(0)
    }

    /// The same if it ended well.
    ///
    /// # Errors
    /// What it was, how it ended, and the last lines of what it printed.
    pub fn succeeded(self, what: impl fmt::Display) -> Result<Outcome> {
        ensure!(self.success(), "{what}: {}\n{}", self.end, self.tail(10));
        Ok(self)
    }

    /// The last lines of what it printed, for a message about a failure.
    pub fn tail(&self, lines: usize) -> String {
        let all: Vec<&str> = self.stdout.lines().chain(self.stderr.lines()).collect();
        all[all.len().saturating_sub(lines)..].join("\n")
    }
}

/// Adopt orphans, and take everything down when we are interrupted ourselves.
pub fn guard() -> Result<()> {
    set_child_subreaper(Some(getpid())).context("cannot adopt orphaned processes")?;
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            INTERRUPTED.store(true, Ordering::SeqCst);
            for (pid, _) in descendants(getpid()) {
                let _ = kill_process(pid, Signal::TERM);
            }
            kill_orphans();
            std::process::exit(128 + signal);
        }
    });
    Ok(())
}

/// Run `command` to its end or to the limit, with no standard input; both outputs are captured.
pub fn run(command: &mut Command, limit: Duration) -> Result<Outcome> {
    command.stderr(Stdio::piped());
    wait(command, limit, None)
}

/// Runs `command` and sends SIGINT to its process group after a while, as Ctrl-C does.
pub fn interrupt(command: &mut Command, after: Duration, limit: Duration) -> Result<Outcome> {
    command.stderr(Stdio::piped());
    wait(command, limit, Some(after))
}

/// Runs `command` to its end or to the limit; errors go to our own error stream as they come.
pub fn run_showing_errors(command: &mut Command, limit: Duration) -> Result<Outcome> {
    command.stderr(Stdio::inherit());
    wait(command, limit, None)
}

fn wait(command: &mut Command, limit: Duration, interrupt: Option<Duration>) -> Result<Outcome> {
    while INTERRUPTED.load(Ordering::SeqCst) {
        thread::park();
    }
    let start = Instant::now();
    let name = command.get_program().to_string_lossy().into_owned();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).process_group(0);
    let mut child = command.spawn().with_context(|| format!("cannot start {name}"))?;
    let stdout = child.stdout.take().map(collect);
    let stderr = child.stderr.take().map(collect);
    if let Some(after) = interrupt
        && wait_until(&mut child, start + after)?.is_none()
    {
        kill_process_group(Pid::from_child(&child), Signal::INT)?;
    }
    let end = match wait_until(&mut child, start + limit)? {
        Some(status) => end_of(status),
        None => {
            take_down(&mut child)?;
            End::TimedOut(limit)
        }
    };
    let elapsed = start.elapsed();
    let left_behind = kill_orphans();
    let text = |reader: Option<JoinHandle<Vec<u8>>>| {
        let bytes = reader.and_then(|r| r.join().ok()).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    Ok(Outcome { end, stdout: text(stdout), stderr: text(stderr), elapsed, left_behind })
}

fn collect(mut pipe: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.read_to_end(&mut bytes);
        bytes
    })
}

fn end_of(status: ExitStatus) -> End {
    match status.code() {
        Some(code) => End::Exit(code),
        None => End::Signal(status.signal().unwrap_or(0)),
    }
}

fn wait_until(child: &mut Child, deadline: Instant) -> Result<Option<ExitStatus>> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= deadline {
            return Ok(None);
        }
        thread::sleep(POLL);
    }
}

fn take_down(child: &mut Child) -> Result<()> {
    let group = Pid::from_child(child);
    let _ = kill_process_group(group, Signal::TERM);
    if wait_until(child, Instant::now() + GRACE)?.is_none() {
        let _ = kill_process_group(group, Signal::KILL);
        child.wait()?;
    }
    Ok(())
}

/// Nothing of ours runs any more: every descendant is an orphan. A process that is just ending gets
/// a moment to do so; those that had to be killed are named.
fn kill_orphans() -> Vec<String> {
    let start = Instant::now();
    let mut killed = Vec::new();
    loop {
        while let Ok(Some(_)) = waitpid(None, WaitOptions::NOHANG) {}
        let alive = descendants(getpid());
        if alive.is_empty() || start.elapsed() > 2 * GRACE {
            return killed;
        }
        if start.elapsed() > Duration::from_secs(1) {
            for (pid, name) in alive {
                if kill_process(pid, Signal::KILL).is_ok() && !killed.contains(&name) {
                    killed.push(name);
                }
            }
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// Process ids and command lines of all living descendants.
fn descendants(root: Pid) -> Vec<(Pid, String)> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let processes: Vec<(Pid, Pid)> = entries
        .flatten()
        .filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?))
        .filter_map(|pid| Some((pid, parent_of(pid)?)))
        .collect();
    let mut found: Vec<Pid> = vec![root];
    let mut seen = 0;
    while seen < found.len() {
        let parent = found[seen];
        found.extend(processes.iter().filter(|(_, p)| *p == parent).map(|(pid, _)| *pid));
        seen += 1;
    }
    found[1..].iter().map(|pid| (*pid, command_line(*pid))).collect()
}

/// `None` for a process that has ended and only waits to be reaped.
fn parent_of(pid: Pid) -> Option<Pid> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    let mut fields = stat[stat.rfind(')')? + 1..].split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    if state == "Z" { None } else { Pid::from_raw(parent) }
}

fn command_line(pid: Pid) -> String {
    let bytes = fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).unwrap_or_default();
    String::from_utf8_lossy(&bytes).replace('\0', " ").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    // One test: the orphans of two programs running at once could not be told apart.
    #[test]
    fn a_program_is_waited_for_limited_and_swept_up_after() -> Result<()> {
        set_child_subreaper(Some(getpid()))?;
        let quick = run(&mut shell("echo out; echo err >&2; exit 3"), Duration::from_secs(10))?;
        assert_eq!((quick.end, quick.stdout.trim(), quick.stderr.trim()), (End::Exit(3), "out", "err"));
        assert!(quick.left_behind.is_empty());

        let limit = Duration::from_millis(200);
        let hanging = run(&mut shell("sleep 60 & sleep 60"), limit)?;
        assert_eq!(hanging.end, End::TimedOut(limit));
        assert!(hanging.elapsed < Duration::from_secs(20));

        let littering = run(&mut shell("setsid sleep 60 & exit 0"), Duration::from_secs(10))?;
        assert!(littering.success());
        assert_eq!(littering.left_behind, ["sleep 60"]);
        assert!(descendants(getpid()).is_empty());
        Ok(())
    }
}
