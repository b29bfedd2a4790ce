//! Signals, as something that a loop can wait for.

use std::{
    ffi::c_int,
    fs, io,
    os::{
        fd::{AsFd, BorrowedFd},
        unix::net::UnixStream,
    },
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use signal_hook::{flag, low_level::pipe};

/// Signals of this process that do not do what they do by themselves.
#[derive(Debug)]
pub(crate) struct Signals {
    waker: UnixStream,
    come: Vec<(c_int, Arc<AtomicBool>)>,
}

impl Signals {
    /// Takes signals over, but those that are to do nothing, as SIGHUP under `nohup`.
    pub(crate) fn take(signals: &[c_int]) -> io::Result<Signals> {
        let (waker, wakes) = UnixStream::pair()?;
        waker.set_nonblocking(true)?;
        let mut come = Vec::new();
        for &signal in signals.iter().filter(|&&signal| !is_ignored(signal)) {
            let flag = Arc::new(AtomicBool::new(false));
            // In this order: the loop that wakes finds the flag.
            flag::register(signal, flag.clone())?;
            pipe::register(signal, wakes.try_clone()?)?;
            come.push((signal, flag));
        }
        Ok(Signals { waker, come })
    }

    /// Those that have come.
    pub(crate) fn take_all(&self) -> Vec<c_int> {
        while rustix::io::read(&self.waker, &mut [0; 64]).is_ok_and(|count| count > 0) {}
        self.come.iter().filter(|(_, flag)| flag.swap(false, Ordering::Relaxed)).map(|&(signal, _)| signal).collect()
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.waker.as_fd()
    }
}

fn is_ignored(signal: c_int) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    // That of ended children is always taken over: whoever ignores it hears of no status.
    signal != signal_hook::consts::SIGCHLD && ignored.is_some_and(|signals| signals >> (signal - 1) & 1 == 1)
}
