//! The fork and what a child does until its end.

use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

use super::{FAILED, own_pid};
use crate::comm::{
    kit::say::write_all,
    node::{Fabric, Member, keeping},
    start::{caught, life::conclude, settings::Settings},
};

/// Forks; the child runs `main` and ends with its result, never returning from here.
pub(super) fn fork(main: impl FnOnce() -> i32) -> io::Result<Pid> {
    let parent = own_pid();
    // SAFETY: the caller made sure that the process has one thread, so no lock of another thread is copied in a locked state
    // and everything may be called in the child.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            // From here on no way leads back into the caller: a panic that escaped would run the parent's code twice.
            let status = catch_unwind(AssertUnwindSafe(|| {
                // If the parent died before this call, nobody will: look.
                let told = set_parent_process_death_signal(Some(Signal::KILL));
                if told.is_err() || getppid() != Some(parent) { FAILED } else { main() }
            }))
            .unwrap_or(FAILED);
            let _ = write_all(io::stdout(), b"");
            let _ = write_all(io::stderr(), b"");
            // SAFETY: ends the process without the handlers that the parent registered for its own end.
            unsafe { libc::_exit(status) }
        }
        pid => Ok(Pid::from_raw(pid).expect("fork returns a positive number to the parent")),
    }
}

/// The life of a rank; the value is the status of its process.
pub(super) fn rank_process(
    rank: usize,
    settings: &Settings,
    fabric: &Arc<Fabric>,
    body: &(dyn Fn(Member) -> Result<(), String> + Sync),
) -> i32 {
    // Before the body can fork: a child of this process must not share what the ranks do.
    let outcome = match fabric.keep_from_children() {
        Err(error) => Err(format!("could not be started: {}", keeping(error))),
        Ok(()) => caught(|| {
            body(Member::new(fabric.clone(), settings.topology(rank), settings.cores, Some(1 + settings.threads_of_a_rank())))
        }),
    };
    if conclude(fabric, rank, rank, outcome) { 0 } else { FAILED }
}
