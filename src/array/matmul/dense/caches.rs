//! The cache sizes of this machine.

use std::{fs, path::Path, sync::OnceLock};

/// Bytes that one core may take of each level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Caches {
    pub(super) first: usize,
    pub(super) second: usize,
    pub(super) last: usize,
}

/// What nearly every processor of the last ten years has at least.
const LEAST: Caches = Caches { first: 32 << 10, second: 256 << 10, last: 1 << 20 };

/// Read once: all cores are taken to be alike.
pub(super) fn of_this_core() -> Caches {
    static CACHES: OnceLock<Caches> = OnceLock::new();
    *CACHES.get_or_init(|| read(Path::new("/sys/devices/system/cpu/cpu0/cache")).unwrap_or(LEAST))
}

/// The kernel's description of a core's caches. A cache that several cores share counts in equal parts.
fn read(folder: &Path) -> Option<Caches> {
    let mut caches = LEAST;
    for index in 0.. {
        let cache = folder.join(format!("index{index}"));
        let text = |name: &str| Some(fs::read_to_string(cache.join(name)).ok()?.trim().to_owned());
        let Some(level) = text("level") else { break };
        if text("type")? == "Instruction" {
            continue;
        }
        let size: usize = text("size")?.strip_suffix('K')?.parse().ok()?;
        let share = (size << 10) / cores(&text("shared_cpu_list")?)?;
        match level.as_str() {
            "1" => caches.first = share.max(LEAST.first),
            "2" => (caches.second, caches.last) = (share.max(LEAST.second), caches.last.max(share)),
            _ => caches.last = share.max(caches.second),
        }
    }
    Some(caches)
}

/// The number of cores in a list such as `0-3,8`.
fn cores(list: &str) -> Option<usize> {
    list.split(',').try_fold(0, |sum, range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (first.parse::<usize>().ok()?, last.parse::<usize>().ok()?);
        Some(sum + last.checked_sub(first)? + 1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shared_cache_counts_in_parts() {
        let folder = std::env::temp_dir().join(format!("caches-{}", std::process::id()));
        let all = [
            ("1", "Data", "48K", "0"),
            ("1", "Instruction", "32K", "0"),
            ("2", "Unified", "2048K", "0"),
            ("3", "Unified", "32768K", "0-2,8"),
        ];
        for (index, (level, kind, size, cores)) in all.into_iter().enumerate() {
            let cache = folder.join(format!("index{index}"));
            fs::create_dir_all(&cache).unwrap();
            for (name, text) in [("level", level), ("type", kind), ("size", size), ("shared_cpu_list", cores)] {
                fs::write(cache.join(name), format!("{text}\n")).unwrap();
            }
        }
        let caches = read(&folder);
        fs::write(folder.join("index3/shared_cpu_list"), "2-1").unwrap();
        let broken = read(&folder);
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(caches, Some(Caches { first: 48 << 10, second: 2 << 20, last: 8 << 20 }));
        assert_eq!(broken, None);
        assert_eq!(read(&folder), Some(LEAST), "no description");
    }
}
