//! What programs must not leave behind: files in `/dev/shm` and `/tmp` that nobody has open, and processes.
//!
//! MPI libraries keep segments and sockets there. Other programs of the machine do so too, meanwhile: only a file that is new, has a
//! name of one of the libraries or of ours, and that no process maps or has open is left behind. Files of cases must have other names: cases
//! run at the same time.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// Parts of the names that Open MPI, PMIx, MPICH, UCX and this crate give.
const NAMES: [&str; 8] = ["ompi", "openmpi", "vader", "pmix", "mpich", "ucx", "hydra", "global-arrays"];
/// Long enough for a launcher's agents to tidy up after it.
const PATIENCE: Duration = Duration::from_secs(3);

/// The files that are there now.
pub(crate) fn files() -> BTreeSet<PathBuf> {
    let mut all = BTreeSet::new();
    for folder in ["/dev/shm", "/tmp"] {
        let named = |path: &Path| {
            let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
            NAMES.iter().any(|part| name.contains(part))
        };
        let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        for path in entries.filter(|path| named(path)) {
            // Open MPI has one folder for each user, and one for each launcher inside.
            all.extend(fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()));
            all.insert(path);
        }
    }
    all
}

/// Panics if there are new ones that nobody uses.
pub(crate) fn none_but(before: &BTreeSet<PathBuf>) {
    let begin = Instant::now();
    loop {
        let left: Vec<PathBuf> = files().difference(before).filter(|path| is_a_launchers_or_unused(path)).cloned().collect();
        if left.is_empty() {
            return;
        }
        assert!(begin.elapsed() < PATIENCE, "left behind: {left:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Removes the new ones that nobody uses, and names them: what a launcher that was killed has left, and the library of its ranks.
pub(crate) fn remove_all_but(before: &BTreeSet<PathBuf>) -> Vec<PathBuf> {
    remove_but(before, "")
}

/// The same of those that have some words in their path.
pub(crate) fn remove_but(before: &BTreeSet<PathBuf>, words: &str) -> Vec<PathBuf> {
    let is_left = |path: &&PathBuf| path.to_string_lossy().contains(words) && is_a_launchers_or_unused(path);
    let left: Vec<PathBuf> = files().difference(before).filter(is_left).cloned().collect();
    for path in &left {
        let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    }
    left
}

/// A folder of a launcher is named by its process, the user's stays; a file is used by whoever maps it or has it open.
fn is_a_launchers_or_unused(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    if let Some(pid) = name.strip_prefix("pid.") {
        return !Path::new("/proc").join(pid).exists();
    }
    path.is_file() && !is_used(path)
}

fn is_used(path: &Path) -> bool {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.path());
    processes.filter(|process| process.join("maps").exists()).any(|process| {
        let maps = fs::read_to_string(process.join("maps")).unwrap_or_default();
        let open = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
        maps.lines().any(|line| line.ends_with(&*path.to_string_lossy()))
            || open.filter_map(|entry| fs::read_link(entry.path()).ok()).any(|target| target == path)
    })
}

/// Processes that have a mark in their environment. Those that ended and wait for their parent have none.
pub(crate) fn marked(mark: &str) -> Vec<String> {
    let entry = format!("GA_TEST_MARK={mark}\0");
    let has =
        |path: &Path| fs::read(path.join("environ")).is_ok_and(|all| all.windows(entry.len()).any(|w| w == entry.as_bytes()));
    let all = fs::read_dir("/proc").expect("the processes").filter_map(Result::ok).map(|process| process.path());
    all.filter(|path| has(path)).map(|path| path.display().to_string()).collect()
}

pub(crate) fn gone(mark: &str) {
    let begin = Instant::now();
    while !marked(mark).is_empty() {
        assert!(begin.elapsed() < Duration::from_secs(1), "left behind: {:?}", marked(mark));
        std::thread::sleep(Duration::from_millis(5));
    }
}
