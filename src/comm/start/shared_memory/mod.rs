//! Ranks that are processes of one machine: started by a launcher (`launched`), or forked under a parent that supervises them.
//!
//! The parent maps the fabric and forks, so every rank finds it at the same address. The first rank that fails ends the job: the
//! others get an `Err` from whatever they wait in, have [`GRACE`] to unwind, and are then killed. Children die with the parent,
//! also when it is killed (`PR_SET_PDEATHSIG`).
//!
//! A fork of a process with other threads would copy their locks in any state: it is refused.

mod launched;
mod output;
mod spawn;
mod statuses;

use std::{
    io,
    sync::Arc,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    fd::{AsFd, OwnedFd},
    process::{
        Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitOptions, kill_process, pidfd_open, pidfd_send_signal, waitid, waitpid,
    },
};

use self::{output::Forwarder, statuses::Statuses};
use super::{
    Body, MAPPING, Named, PACKETS, Processes, Ranks, Variant,
    bootstrap::launched::Launcher,
    life::{self, LocalRank},
    one_machine::{self, Joins, mapping, packets},
    settings::Settings,
};
use crate::{
    comm::{
        kit::{process, say::write_all},
        node::{Fabric, Member, ended_by, keeping},
    },
    error::Error,
};
pub(super) use launched::begin as begin_launched;

/// Ranks that are processes of one machine.
pub(super) const NETWORK: Named = Named {
    name: "shared_memory",
    variants: &[
        Variant { devices: MAPPING, ranks: Ranks::Children(|_| Ok(Box::new(PlainProcesses(mapping)))), threads: 0 },
        Variant { devices: PACKETS, ranks: Ranks::Children(|_| Ok(Box::new(PlainProcesses(packets)))), threads: 1 },
    ],
    options: &[],
    modelled: None,
};

/// Ranks of one machine, joined without a device.
struct PlainProcesses(Joins);

impl Processes for PlainProcesses {
    fn fork(&self, settings: &Settings, body: &Body<'_>) -> Result<(), Error> {
        run(settings, &|member| one_machine::join(settings, member, self.0)?.run(settings, body))
    }

    fn begin(&self, settings: &Settings, launcher: Arc<Launcher>) -> Result<LocalRank, Error> {
        let join = |(), settings: &Settings, member| one_machine::join(settings, member, self.0);
        begin_launched(launcher, settings, false, |_, _| Ok(()), join)
    }
}

/// The time that the other ranks have to unwind after the first one failed.
const GRACE: Duration = Duration::from_millis(500);

/// The longest that the kernel still shows a thread whose end a program has already seen.
const LAST_STEPS: Duration = Duration::from_millis(50);

/// The status of a rank's process whose body failed; the words are in its control page.
const FAILED: i32 = 101;

struct Child {
    rank: usize,
    handle: OwnedFd,
    output: Vec<Forwarder>,
    ended: bool,
}

/// Forks the ranks, supervises them and returns when all have ended.
pub(super) fn run(settings: &Settings, body: &(dyn Fn(Member) -> Result<(), String> + Sync)) -> Result<(), Error> {
    let others = other_threads()?;
    if others > 0 {
        return Err(Error::Launch(format!(
            "the shared-memory conduit forks, and this process has {others} other thread(s); call run before anything that starts \
             threads, use `harness = false` in integration tests, or choose the threads conduit (GA_NETWORK=threads)"
        )));
    }
    let fabric = life::fabric(settings)?;
    let statuses = Statuses::kept().map_err(|e| Error::system("asking for the ends of ranks", e))?;
    // What is buffered now would otherwise be printed by every child again.
    let _ = write_all(io::stdout(), b"");
    let mut children = Vec::with_capacity(settings.ranks);
    for rank in 0..settings.ranks {
        match fork_rank(rank, settings, &fabric, &statuses, body) {
            Ok(child) => children.push(child),
            Err(error) => {
                fabric.end(Some(rank), "could not be started");
                kill(&children);
                supervise(children, &fabric);
                return Err(match error.raw_os_error() {
                    Some(libc::EMFILE) => Error::Launch(format!(
                        "rank {rank} of {} could not be started: too many open files; a rank takes three while it runs (ulimit -n)",
                        settings.ranks
                    )),
                    _ => Error::system("forking a rank", error),
                });
            }
        }
    }
    // All ranks have it. Other children that this process forks while it supervises them are not ranks.
    let kept = fabric.keep_from_children().map_err(keeping);
    if kept.is_err() {
        fabric.end(None, "its memory could not be kept from children of the ranks' parent");
    }
    supervise(children, &fabric).map_or(kept, Err)
}

fn fork_rank(
    rank: usize,
    settings: &Settings,
    fabric: &Arc<Fabric>,
    statuses: &Statuses,
    body: &(dyn Fn(Member) -> Result<(), String> + Sync),
) -> io::Result<Child> {
    let (pipes, mut output) = output::pipes(rank)?;
    let pid = spawn::fork(|| {
        statuses.put_back();
        pipes.take_over();
        settings.pin(rank);
        spawn::rank_process(rank, settings, fabric, body)
    })?;
    drop(pipes);
    let handle = watch(pid, |pid| pidfd_open(pid, PidfdFlags::empty()))?;
    output.iter_mut().for_each(Forwarder::set_nonblocking);
    Ok(Child { rank, handle, output, ended: false })
}

/// Opens the handle by which a child is supervised. If that fails, the child is killed: nobody would see its end.
fn watch(pid: Pid, open: impl FnOnce(Pid) -> rustix::io::Result<OwnedFd>) -> io::Result<OwnedFd> {
    open(pid).map_err(|error| {
        // Nobody has reaped it, so the number is still its own.
        let _ = kill_process(pid, Signal::KILL);
        while matches!(waitpid(Some(pid), WaitOptions::empty()), Err(rustix::io::Errno::INTR)) {}
        error.into()
    })
}

/// Waits for all children; returns the first failure.
fn supervise(mut children: Vec<Child>, fabric: &Fabric) -> Option<Error> {
    let mut first: Option<Error> = None;
    let mut deadline: Option<Instant> = None;
    while children.iter().any(|child| !child.ended) {
        let timeout = match deadline {
            Some(at) => at.saturating_duration_since(Instant::now()),
            None => Duration::from_secs(3600),
        };
        for at in wait_for_something(&children, timeout) {
            let child = &mut children[at];
            child.output.iter_mut().for_each(Forwarder::forward);
            if child.ended {
                continue;
            }
            let Some(end) = reap(child) else { continue };
            child.ended = true;
            child.output.iter_mut().for_each(Forwarder::finish);
            if let Err(cause) = end.explain(fabric, child.rank)
                && first.is_none()
            {
                fabric.end(Some(child.rank), &cause);
                // The rank that ended the job is the culprit, not the one seen to end first: others fail because they hear of it.
                first = Some(match fabric.failure() {
                    Some((Some(rank), cause)) => Error::RankFailed { rank, cause },
                    _ => Error::RankFailed { rank: child.rank, cause },
                });
                deadline = Some(Instant::now() + GRACE);
            }
        }
        if deadline.is_some_and(|at| Instant::now() >= at) {
            kill(&children);
            deadline = None;
        }
    }
    first.or_else(|| {
        let lost = children.iter_mut().flat_map(|child| &mut child.output).find_map(Forwarder::lost)?;
        Some(Error::system("writing what the ranks printed", lost))
    })
}

/// The children that have printed something or ended; none if the time is over. Looking at all of them each time would make the
/// end of thousands of ranks a matter of minutes.
fn wait_for_something(children: &[Child], timeout: Duration) -> Vec<usize> {
    let (mut watched, mut whose) = (Vec::new(), Vec::new());
    for (at, child) in children.iter().enumerate() {
        if !child.ended {
            watched.push(PollFd::new(&child.handle, PollFlags::IN));
            whose.push(at);
        }
        for pipe in child.output.iter().filter_map(Forwarder::pipe) {
            watched.push(PollFd::from_borrowed_fd(pipe, PollFlags::IN));
            whose.push(at);
        }
    }
    let timeout = rustix::event::Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: i64::from(timeout.subsec_nanos()) };
    if poll(&mut watched, Some(&timeout)).is_err() {
        // Interrupted: nothing was looked at.
        return Vec::new();
    }
    let mut ready: Vec<usize> =
        watched.iter().zip(whose).filter(|(watched, _)| !watched.revents().is_empty()).map(|(_, at)| at).collect();
    ready.dedup();
    ready
}

fn kill(children: &[Child]) {
    for child in children.iter().filter(|child| !child.ended) {
        // It may have ended meanwhile.
        let _ = pidfd_send_signal(&child.handle, Signal::KILL);
    }
}

enum ChildEnd {
    Exit(i32),
    Signal(i32),
}

impl ChildEnd {
    fn explain(&self, fabric: &Fabric, rank: usize) -> Result<(), String> {
        match *self {
            ChildEnd::Exit(0) if fabric.finished(rank) => Ok(()),
            ChildEnd::Exit(FAILED) => Err(fabric.last_words(rank).unwrap_or_else(|| "failed without a word".into())),
            ChildEnd::Exit(status) => Err(format!("called exit({status}) inside the job")),
            ChildEnd::Signal(number) => Err(ended_by(number)),
        }
    }
}

fn reap(child: &Child) -> Option<ChildEnd> {
    match waitid(WaitId::PidFd(child.handle.as_fd()), WaitIdOptions::EXITED | WaitIdOptions::NOHANG) {
        Ok(Some(status)) => Some(match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => ChildEnd::Exit(code),
            (None, signal) => ChildEnd::Signal(signal.unwrap_or(0)),
        }),
        Ok(None) => None,
        // Another part of the process reaped it: its last words are all that is left.
        Err(rustix::io::Errno::CHILD) => Some(ChildEnd::Exit(FAILED)),
        Err(_) => None,
    }
}

/// Threads of this process besides the calling one, once those that have only to leave have left.
fn other_threads() -> Result<usize, Error> {
    let deadline = Instant::now() + LAST_STEPS;
    loop {
        let threads = process::threads().map_err(|e| Error::system("counting the threads of this process", e))?;
        let others = threads.saturating_sub(1);
        if others == 0 || Instant::now() >= deadline {
            return Ok(others);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Kept for `spawn`: the parent that a child must still have.
fn own_pid() -> Pid {
    rustix::process::getpid()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_that_cannot_be_watched_is_killed_and_reaped() {
        // Dropping the handle neither ends nor reaps it.
        let nowhere = || std::process::Stdio::null();
        let mut sleep = std::process::Command::new("sleep");
        let pid = sleep.arg("10").stdout(nowhere()).stderr(nowhere()).spawn().expect("a child").id();
        let pid = Pid::from_raw(pid as i32).expect("a number");
        let refused = watch(pid, |_| Err(rustix::io::Errno::NOSYS)).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::ENOSYS));
        assert_eq!(waitpid(Some(pid), WaitOptions::NOHANG).unwrap_err(), rustix::io::Errno::CHILD, "nobody is left");
    }
}
