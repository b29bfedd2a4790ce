//! Leaving a job without `MPI_Finalize`, where that hangs.
//!
//! `MPI_Finalize` of MPICH 4.0 over UCX (device `ch4:ucx`) sometimes waits forever when processes connected by TCP close their connections
//! at the same time. Programs in C hang too, one start in ten to one in four. A watchdog would only make the job fail. So a process of such
//! a job takes leave of the launcher by PMI-1, on the descriptor that MPICH uses:
//!
//! ```text
//!   us        cmd=barrier_in       launcher   cmd=barrier_out      all ranks have come
//!   us        cmd=finalize         launcher   cmd=finalize_ack     this process ends well
//! ```
//!
//! While it waits it drives the library: a last message of a job may still be in it, and its receiver has to leave the job before
//! it comes to the barrier. Behind the barrier nothing of MPI is under way, so nobody misses the connections.

use std::{
    env,
    io::{self, ErrorKind},
    os::fd::RawFd,
    time::{Duration, Instant},
};

use super::ffi;
use crate::comm::start::bootstrap::Line;

/// The launcher answers a process that ends at once; it waits for no other process.
const ACKNOWLEDGED: Duration = Duration::from_secs(10);

/// The launcher's descriptor, if processes of this library had better not finalise MPI.
pub(super) fn launcher() -> Option<RawFd> {
    let descriptor = env::var("PMI_FD").ok()?.trim().parse().ok().filter(|&descriptor| descriptor >= 0)?;
    may_hang(&ffi::library_version()).then_some(descriptor)
}

/// Returns true if `MPI_Finalize` of the library with this version text may hang.
fn may_hang(version: &str) -> bool {
    let says = |what: &str| version.lines().find_map(|line| line.strip_prefix(what)).map(str::trim);
    says("MPICH Version:").is_some_and(|version| version == "4.0" || version.starts_with("4.0."))
        && says("MPICH Device:").is_some_and(|device| device.starts_with("ch4:ucx"))
}

/// Waits for the other processes, and takes leave of the launcher. Collective over all processes that it started. Calls `drive` again
/// and again while it waits: that makes MPI's progress.
///
/// # Errors
/// When the launcher is gone, or does not answer as the protocol says: then it will not take the end for a good one.
pub(super) fn leave(launcher: RawFd, drive: impl Fn()) -> io::Result<()> {
    // SAFETY: the launcher gave this process the descriptor, open for its whole life. The library has nothing to say to the launcher
    // meanwhile: it does so in calls that start, connect or end processes.
    let line = unsafe { Line::new(launcher) };
    let driven = || {
        drive();
        Ok(())
    };
    // Others may compute for as long as they like before they come.
    line.ask("cmd=barrier_in\n", "cmd=barrier_out", driven)?;
    let start = Instant::now();
    line.ask("cmd=finalize\n", "cmd=finalize_ack", || {
        drive();
        if start.elapsed() < ACKNOWLEDGED { Ok(()) } else { Err(io::Error::new(ErrorKind::TimedOut, "no cmd=finalize_ack")) }
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{
        io::{BufRead, BufReader, Write},
        os::{fd::AsRawFd, unix::net::UnixStream},
    };

    use super::*;

    #[test]
    fn only_the_library_that_hangs_is_left_without_its_end() {
        let says = |version: &str, device: &str| may_hang(&format!("MPICH Version:\t{version}\nMPICH Device:\t{device}\n"));
        assert!(says("4.0.2", "ch4:ucx"));
        assert!(says("4.0", "ch4:ucx"));
        assert!(!says("4.0.2", "ch4:ofi"));
        assert!(!says("3.4.2", "ch4:ucx"));
        assert!(!says("4.02.1", "ch4:ucx"));
        assert!(!may_hang("Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4"));
        assert!(!may_hang("Intel(R) MPI Library 2021.9 for Linux* OS"));
    }

    /// Leaves a launcher that gives these answers. Returns the lines that it got, and the result.
    fn with_answers(answers: &'static [&'static str]) -> (Vec<String>, io::Result<()>) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let launcher = std::thread::spawn(move || {
            let mut lines = BufReader::new(theirs.try_clone().unwrap()).lines();
            let mut told = Vec::new();
            for answer in answers {
                told.push(lines.next().unwrap().unwrap());
                { &theirs }.write_all(answer.as_bytes()).unwrap();
            }
            told
        });
        let left = leave(ours.as_raw_fd(), || ());
        drop(ours);
        (launcher.join().unwrap(), left)
    }

    #[test]
    fn the_launcher_is_told_after_all_have_come() {
        let (told, left) = with_answers(&["cmd=barrier_out\n", "cmd=finalize_ack rc=0\n"]);
        assert_eq!(told, ["cmd=barrier_in", "cmd=finalize"]);
        left.unwrap();
    }

    #[test]
    fn a_launcher_that_says_something_else_or_nothing_is_an_error() {
        let (_, left) = with_answers(&["cmd=finalize_ack\n"]);
        assert!(left.unwrap_err().to_string().contains("instead of cmd=barrier_out"));
        let (told, left) = with_answers(&["cmd=barrier_out\n", ""]);
        assert_eq!((told.len(), left.unwrap_err().kind()), (2, ErrorKind::UnexpectedEof));
    }
}
