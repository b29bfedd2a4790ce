//! The root of a launcher: it listens before it starts the ranks, and reports how their processes end.
//!
//! A connection closes a moment before its process is gone. So the thread waits for [`ENDS`] for the report, which has a better cause.
//! The launcher learns from the thread what no end of a process shows: a rank that left the meeting, and one that never came.

use std::{
    fmt, io,
    net::{Ipv4Addr, TcpListener},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::Arc,
    time::Duration,
};

use rustix::event::{EventfdFlags, eventfd};

use super::{Root, hex, listen, nonce};
use crate::comm::{kit::mutex::Mutex, start::launcher};

/// From the end of a connection to the report of the end of its process, at most.
pub(super) const ENDS: Duration = Duration::from_millis(800);

/// Where the ranks of a launcher meet.
pub struct LauncherMeeting {
    link: Arc<Link>,
    port: u16,
    ranks: usize,
    secret: String,
}

/// Between a launcher and its thread.
#[derive(Debug)]
pub(super) struct Link {
    /// Processes that have ended, and why if not well; `to_thread` says that there are some.
    ended: Mutex<Vec<(usize, Option<String>)>>,
    to_thread: OwnedFd,
    /// Why the meeting has ended, and the rank if that is one's fault; `to_launcher` says that it has.
    lost: Mutex<Option<(Option<usize>, String)>>,
    to_launcher: OwnedFd,
}

impl LauncherMeeting {
    /// Listens at a free port: on all addresses, or to processes of this machine only. The secret of the job is new.
    ///
    /// # Errors
    /// What the system says.
    pub fn open(ranks: usize, everywhere: bool) -> io::Result<LauncherMeeting> {
        let listener = if everywhere {
            listen("[::]:0").map_err(|refused| io::Error::other(refused.to_string()))?
        } else {
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?
        };
        listener.set_nonblocking(true)?;
        let signal = || eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let (to_thread, to_launcher) = (signal()?, signal()?);
        let link = Arc::new(Link { ended: Mutex::default(), to_thread, lost: Mutex::default(), to_launcher });
        let (port, secret) = (listener.local_addr()?.port(), hex(&[nonce()?, nonce()?].concat()));
        let root = Root::new(listener, secret.clone().into_bytes(), ranks, Some(link.clone()));
        std::thread::Builder::new().name("meeting".into()).spawn(move || root.serve())?;
        Ok(LauncherMeeting { link, port, ranks, secret })
    }

    /// The variables of all ranks that reach this machine as `host`. Each has its rank too, as `GA_RANK`.
    pub fn variables(&self, host: &str) -> [(&'static str, String); 4] {
        [
            ("GA_ROOT", format!("{host}:{}", self.port)),
            ("GA_RANKS", self.ranks.to_string()),
            ("GA_TOKEN", self.secret.clone()),
            (launcher::LISTENS, "ga-run".into()),
        ]
    }

    /// The process of a rank has ended, well or for a reason.
    pub fn ended(&self, rank: usize, why: Option<String>) {
        self.link.ended.lock().push((rank, why));
        wake(&self.link.to_thread);
    }

    /// Why the meeting has ended, and the rank if that is one's fault. The descriptor is readable then.
    pub fn lost(&self) -> Option<(Option<usize>, String)> {
        self.link.lost.lock().clone()
    }
}

impl fmt::Debug for LauncherMeeting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LauncherMeeting").field("port", &self.port).field("ranks", &self.ranks).finish_non_exhaustive()
    }
}

impl AsFd for LauncherMeeting {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.link.to_launcher.as_fd()
    }
}

impl Link {
    /// Readable while there are reports.
    pub(super) fn reports(&self) -> &OwnedFd {
        &self.to_thread
    }

    pub(super) fn take_reports(&self) -> Vec<(usize, Option<String>)> {
        // Nothing to be read is no report.
        let _ = rustix::io::read(&self.to_thread, &mut [0; 8]);
        std::mem::take(&mut *self.ended.lock())
    }

    /// The end of the meeting.
    pub(super) fn hears_of(&self, rank: Option<usize>, why: String) {
        *self.lost.lock() = Some((rank, why));
        wake(&self.to_launcher);
    }
}

fn wake(signal: &OwnedFd) {
    // It fails where the count is full: then there is a signal.
    let _ = rustix::io::write(signal, &1_u64.to_ne_bytes());
}
