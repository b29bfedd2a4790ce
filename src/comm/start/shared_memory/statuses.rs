//! Keeps the status of each rank's process readable, whatever this process does when a child ends.
//!
//! If a process ignores `SIGCHLD`, or has `SA_NOCLDWAIT`, perhaps by inheritance, the kernel reaps its children. A handler of the
//! program may wait for all children, and take their statuses.

use std::{io, mem, ptr};

/// Keeps the statuses of children for `waitid` until it is dropped. No handler of the program runs meanwhile.
pub(super) struct Statuses {
    /// What a `SIGCHLD` did before.
    action: libc::sigaction,
    /// Signals that were blocked before.
    mask: libc::sigset_t,
}

impl Statuses {
    /// # Errors
    /// The kernel's refusal.
    pub(super) fn kept() -> io::Result<Self> {
        // SAFETY: zeros are a `sigaction` and a set of signals.
        let (mut action, mut mask): (libc::sigaction, libc::sigset_t) = unsafe { (mem::zeroed(), mem::zeroed()) };
        // SAFETY: changes nothing but the value.
        checked(unsafe { libc::sigaction(libc::SIGCHLD, ptr::null(), &raw mut action) })?;
        let mut leaves = action;
        leaves.sa_flags &= !libc::SA_NOCLDWAIT;
        if action.sa_sigaction == libc::SIG_IGN {
            leaves.sa_sigaction = libc::SIG_DFL;
        }
        // SAFETY: as above.
        let mut ends: libc::sigset_t = unsafe { mem::zeroed() };
        // SAFETY: the set lives, and there is such a signal.
        unsafe { libc::sigaddset(&raw mut ends, libc::SIGCHLD) };
        // SAFETY: changes the mask of the only thread and the set, which both live.
        checked(unsafe { libc::sigprocmask(libc::SIG_BLOCK, &raw const ends, &raw mut mask) })?;
        let statuses = Statuses { action, mask };
        // SAFETY: the handler is the program's own or none.
        checked(unsafe { libc::sigaction(libc::SIGCHLD, &raw const leaves, ptr::null_mut()) })?;
        Ok(statuses)
    }

    /// All is as it was; in a child, which has this value too, for the child. A handler hears of the ends now.
    pub(super) fn put_back(&self) {
        // SAFETY: what the kernel has given out before.
        unsafe { libc::sigaction(libc::SIGCHLD, &raw const self.action, ptr::null_mut()) };
        // SAFETY: as above.
        unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const self.mask, ptr::null_mut()) };
    }
}

impl Drop for Statuses {
    fn drop(&mut self) {
        self.put_back();
    }
}

fn checked(answer: libc::c_int) -> io::Result<()> {
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
