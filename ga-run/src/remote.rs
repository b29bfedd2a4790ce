//! The agent of a host, as `ga-run` sees it: a process here, or the remote shell that started it there.

use std::{
    env, io,
    io::{ErrorKind, Read},
    os::unix::process::CommandExt,
    process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use rustix::{
    fs::{OFlags, fcntl_setfl},
    pipe::fcntl_setpipe_size,
    process::{Pid, Signal, kill_process_group},
};

use crate::{
    AGENT,
    hosts::Host,
    wire::{Frame, Frames, Kind, send},
};

/// What an agent, or its shell, takes to end once it has closed its output.
const LAST_STEPS: Duration = Duration::from_millis(500);

/// A pipe has this much room. A plan is written before anybody reads it.
const ROOM: usize = 1 << 16;

/// The agent of a host.
#[derive(Debug)]
pub(crate) struct RemoteAgent {
    pub(crate) host: Host,
    /// What was started, for people.
    command: String,
    child: Child,
    orders: Option<ChildStdin>,
    /// `None` once it has ended.
    pub(crate) reports: Option<ChildStdout>,
    frames: Frames,
    greeted: bool,
    /// What the remote shell has to say. It is repeated only if the host is lost.
    complaints: ChildStderr,
    /// Ranks that have not ended.
    pub(crate) left: Vec<usize>,
}

impl RemoteAgent {
    /// Starts it, by a remote shell if the host is another one.
    pub(crate) fn start(host: Host, shell: &[String]) -> io::Result<RemoteAgent> {
        let own = env::current_exe()?;
        let mut command = match &host.name {
            None => Command::new(&own),
            Some(name) => {
                let (program, options) = shell.split_first().ok_or(ErrorKind::InvalidInput)?;
                let mut command = Command::new(program);
                command.args(options).args([name, &quoted(&own.to_string_lossy())]);
                command
            }
        };
        command.arg(AGENT).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // A group of its own: the terminal sends its signals to `ga-run` only, which hands them on.
        let mut child = command.process_group(0).spawn()?;
        let (orders, reports, complaints) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let complaints = complaints.ok_or(ErrorKind::BrokenPipe)?;
        fcntl_setfl(&complaints, OFlags::NONBLOCK)?;
        let command = host.name.as_ref().map_or_else(String::new, |name| format!("{} {name}", shell.join(" ")));
        let (frames, left) = (Frames::default(), host.ranks.clone());
        Ok(RemoteAgent { host, command, child, orders, reports, frames, greeted: false, complaints, left })
    }

    /// Sends it a frame. One that does not take it has ended, which its output shows.
    pub(crate) fn order(&mut self, kind: Kind, number: u32, bytes: &[u8]) {
        if bytes.len() >= ROOM {
            // Failing that, it waits for the shell.
            let _ = self.orders.as_ref().map(|orders| fcntl_setpipe_size(orders, 2 * bytes.len()));
        }
        if self.orders.as_ref().is_some_and(|orders| send(orders, kind, number, bytes).is_err()) {
            self.orders = None;
        }
    }

    /// Reads what has come. The output is closed where nothing more will come, and behind what is no frame, which comes from no agent.
    pub(crate) fn hear(&mut self) -> Vec<Frame> {
        let mut heard = Vec::new();
        let Some(reports) = &mut self.reports else { return heard };
        let mut goes_on = self.frames.read(reports).unwrap_or(false);
        self.greeted = self.greeted || self.frames.greeted();
        while self.greeted {
            match self.frames.next() {
                Ok(Some(frame)) => heard.push(frame),
                Ok(None) => break,
                Err(_) => {
                    goes_on = false;
                    break;
                }
            }
        }
        if !goes_on {
            self.reports = None;
        }
        heard
    }

    /// Why an agent has ended before its ranks, for people.
    pub(crate) fn why_lost(&mut self) -> String {
        let status =
            self.end(Instant::now() + LAST_STEPS).map_or_else(|| "does not end".into(), |status| format!("ended with {status}"));
        let mut said = Vec::new();
        // An error is that nothing more has come.
        let _ = (&mut self.complaints).take(1 << 16).read_to_end(&mut said);
        let said = String::from_utf8_lossy(&said);
        let last =
            said.lines().map(str::trim).rfind(|line| !line.is_empty()).map_or_else(String::new, |line| format!(": {line}"));
        match (&self.host.name, self.greeted) {
            (None, _) => format!("the agent of this machine {status}{last}"),
            (Some(name), false) => format!("no ranks could be started on {name}: `{}` {status}{last}", self.command),
            (Some(name), true) => format!("the connection to {name} is lost: `{}` {status}{last}", self.command),
        }
    }

    /// The status of the process, which is killed if it does not end in time.
    pub(crate) fn end(&mut self, until: Instant) -> Option<ExitStatus> {
        self.orders = None;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if Instant::now() < until => thread::sleep(Duration::from_micros(100)),
                _ => break,
            }
        }
        // With what a shell has started. It has not been waited for, so the number is its own.
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.wait();
        None
    }
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_one_word() {
        let word = "/a b/$HOME/it's \"here\"\\";
        let said = Command::new("sh").arg("-c").arg(format!("printf %s {}", quoted(word))).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&said.stdout), word);
    }
}
