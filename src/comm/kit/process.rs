//! The process of this rank, as the kernel counts it.

use std::io;

/// The number of threads of this process, which the kernel keeps. A list of them would take each of many waiting ranks a
/// millisecond.
///
/// # Errors
/// `/proc` cannot be read, and there is more than one.
pub(crate) fn threads() -> io::Result<usize> {
    let status = match std::fs::read_to_string("/proc/self/status") {
        Ok(status) => status,
        // Does nothing in a process of one thread, and is refused in any other.
        // SAFETY: a system call without pointers.
        Err(_) if unsafe { libc::unshare(libc::CLONE_THREAD) } == 0 => return Ok(1),
        Err(error) => {
            let what = format!("/proc/self/status: {error}; mount /proc, or make the ranks threads (GA_NETWORK=threads)");
            return Err(io::Error::new(error.kind(), what));
        }
    };
    let threads = status.lines().find_map(|line| line.strip_prefix("Threads:")?.trim().parse().ok());
    threads.ok_or_else(|| io::Error::other("no number of threads in /proc/self/status"))
}
