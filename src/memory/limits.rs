//! How much memory the node has left, and how long a file may be.
//!
//! These limits are read before pages are committed, because the OOM killer gives no error: `MemAvailable`, each enclosing cgroup
//! (version 1 and 2), and the caller's `GA_MEMORY`. The smallest binds.

use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
};

use rustix::process::{Resource, getrlimit};

/// What is left, and the limit that says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Available {
    pub(crate) bytes: u64,
    pub(crate) limit: Limit,
}

/// The limit that binds. The order is the code by which ranks tell each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    MemAvailable,
    Cgroup,
    Variable,
}

impl Limit {
    pub(crate) fn from_code(code: u64) -> Self {
        match code {
            0 => Limit::MemAvailable,
            1 => Limit::Cgroup,
            _ => Limit::Variable,
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Limit::MemAvailable => "MemAvailable of the kernel",
            Limit::Cgroup => "the memory limit of a cgroup",
            Limit::Variable => "GA_MEMORY",
        })
    }
}

/// Bytes that processes of this node can still take before something is killed.
pub(crate) fn available() -> Available {
    let free = fs::read_to_string("/proc/meminfo").ok().and_then(|text| mem_available(&text)).unwrap_or(u64::MAX);
    let mut least = Available { bytes: free, limit: Limit::MemAvailable };
    for (limit, used, reclaimable) in cgroups() {
        let left = limit.saturating_sub(used.saturating_sub(reclaimable));
        if left < least.bytes {
            least = Available { bytes: left, limit: Limit::Cgroup };
        }
    }
    least
}

/// Compares the length of a file with `RLIMIT_FSIZE`. A longer file, also one of memory, would end the process by `SIGXFSZ`.
///
/// # Errors
/// The file is too long; the error names both lengths and what to do.
pub(crate) fn check_file(bytes: u64) -> io::Result<()> {
    match getrlimit(Resource::Fsize).current {
        Some(limit) if limit < bytes => Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("a file of {bytes} bytes is needed, and a file may have {limit} bytes; lift the limit (ulimit -f unlimited)"),
        )),
        _ => Ok(()),
    }
}

/// All memory of the node in bytes.
pub(crate) fn total() -> usize {
    let all = rustix::system::sysinfo();
    (all.totalram as usize).saturating_mul(all.mem_unit as usize)
}

fn mem_available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find(|line| line.starts_with("MemAvailable:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib * 1024)
}

/// (limit, used, reclaimable) of every enclosing cgroup that has a limit.
fn cgroups() -> Vec<(u64, u64, u64)> {
    let Ok(membership) = fs::read_to_string("/proc/self/cgroup") else { return Vec::new() };
    let mut found = Vec::new();
    for line in membership.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else { continue };
        let (root, limit, used, cache): (&str, _, _, _) = if controllers.is_empty() {
            ("/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file ")
        } else if controllers.split(',').any(|c| c == "memory") {
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file ")
        } else {
            continue;
        };
        // Inside a container the path may be one of the host's; the root of the mount is then our own group.
        let mut folder = PathBuf::from(root).join(path.trim_start_matches('/'));
        if !folder.exists() {
            folder = PathBuf::from(root);
        }
        loop {
            let number = |name: &str| read_number(&folder.join(name));
            if let (Some(limit), Some(used)) = (number(limit), number(used)) {
                let stat = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
                let reclaimable = stat.lines().find_map(|l| l.strip_prefix(cache)?.trim().parse().ok()).unwrap_or(0);
                found.push((limit, used, reclaimable));
            }
            if folder == Path::new(root) || !folder.pop() {
                break;
            }
        }
    }
    found
}

/// A number in a file of its own; `max` is no limit.
fn read_number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_line_is_found_in_kibibytes() {
        assert_eq!(mem_available("MemTotal: 9 kB\nMemAvailable:    2048 kB\n"), Some(2048 * 1024));
        assert_eq!(mem_available("MemTotal: 9 kB\n"), None);
    }

    #[test]
    fn this_machine_has_something_left() {
        assert!(available().bytes > 0);
    }
}
