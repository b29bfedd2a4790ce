//! Rules between the layers that the compiler does not check:
//!
//! * `unsafe` stands only where `ARCHITECTURE.md` says so;
//! * nothing above `src/comm` names a conduit, but `src/job/on_mpi.rs`, which is about one, and tests of `src/job/launch.rs`;
//! * `index` and `distribution` are arithmetic: no `unsafe`, nothing of `memory` or `comm`;
//! * `comm` names nothing of `sync`, `array` or `job`, and `sync` nothing of `array` or `job`;
//! * no siblings in a folder of `src` import each other in a circle, and a floor of `src/comm` names nothing of the floors above it;
//! * no two types of `src/comm` have the same name;
//! * `src/comm/protocol` is pure: no `unsafe`, no clock, no lock, no atomic;
//! * no source file has more than 800 lines, and neither a folder of `src` nor `xtask` or `ga-run` more lines of code than its budget;
//! * every test file is a target of the package of the suites, which lists them;
//! * the files and folders that the documents name are there;
//! * the guide answers every operation of Global Arrays, and each answer has the operation's name as an alias.

mod code;
mod cycles;
mod lines;
mod names;
mod operations;
mod source;

use crate::cargo;
use anyhow::{Context, Result};
use clap::Args;
use source::Source;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Where `unsafe` may stand, as the paths are written in `ARCHITECTURE.md`; `*` is one folder.
const UNSAFE_ALLOWED: &[&str] = &[
    "src/memory/",
    "src/comm/*.rs",
    "src/comm/*/",
    "ffi.rs",
    "src/file/libhdf5/",
    "src/array/epoch.rs",
    "src/message/channel/slot.rs",
    "src/array/matmul/blas.rs",
    "src/array/matmul/dense/",
    "src/linalg/lapack.rs",
];
const PURE: &[&str] = &["src/index/", "src/distribution/"];
const FORBIDDEN_IN_PURE: &[&str] = &["memory", "comm", "sync", "array", "job"];
/// Layers, and those above that they must not use.
const LAYERS: &[(&str, &[&str])] = &[
    ("comm", &["sync", "message", "array", "linalg", "sparse", "file", "job"]),
    ("sync", &["message", "array", "linalg", "sparse", "file", "job"]),
    ("message", &["array", "linalg", "sparse", "file", "job"]),
    ("array", &["linalg", "sparse", "file"]),
    ("linalg", &["sparse", "file", "job"]),
    ("sparse", &["linalg", "file", "job"]),
    ("file", &["linalg", "sparse", "job"]),
];
/// State machines: their caller gives them the time, and one thread at a time runs them.
const PROTOCOLS: &str = "src/comm/protocol/";
const FORBIDDEN_IN_PROTOCOLS: &[&str] =
    &["unsafe", "Instant", "SystemTime", "Mutex", "RwLock", "Condvar", "Once", "OnceLock", "LazyLock"];
/// The floors of `src/comm`, each above those that it uses. Every other folder there is a network, above all of them.
const FLOORS: &[&str] = &["kit", "waist", "protocol", "node", "engine", "layers", "soft", "am", "start", "testing"];
/// Folders of `src/comm/start` that start ranks and have no network.
const STARTS: &[&str] = &["shared_memory", "threads"];
/// Jobs on communicators of MPI, and communicators of groups; and tests that start threads.
const OF_CONDUITS: &[&str] = &["src/job/on_mpi.rs", "src/job/launch.rs"];
const MOST_LINES: usize = 800;
const FOLDERS: &[&str] = &["src", "ga-run", "tests", "benches", "examples", "xtask"];
/// They name files and folders of the repository.
const DOCUMENTS: &[&str] = &["ARCHITECTURE.md", "CONTRIBUTING.md", "README.md"];

#[derive(Args)]
pub struct Options {
    /// Check nothing; print the lines of code of each folder of src, of ga-run and of xtask, beside its budget
    #[arg(long)]
    lines: bool,
}

/// `Ok(true)` when every rule holds; otherwise each breach is printed.
pub fn run(options: &Options) -> Result<bool> {
    if options.lines {
        return lines::report();
    }
    let root = cargo::root();
    let networks = networks(folders_of(&root.join("src/comm")));
    let mut breaches = undocumented(&root);
    breaches.extend(unlisted(&root.join("tests"))?);
    breaches.extend(operations::breaches(&root)?);
    for document in DOCUMENTS {
        let text = fs::read_to_string(root.join(document)).with_context(|| format!("reading {document}"))?;
        breaches.extend(dead(document, &text, |path| root.join(path).exists()));
    }
    let mut files = 0;
    for folder in FOLDERS {
        let sources = source::read_all(&root, folder)?;
        files += sources.len();
        breaches.extend(sources.iter().flat_map(|source| breaches_of(source, &networks)));
        if !lines::FOLDERS.contains(folder) {
            continue;
        }
        let product = lines::product(&sources);
        breaches.extend(lines::over(&lines::rows(&product)));
        if *folder != "src" {
            continue;
        }
        breaches.extend(cycles::breaches(&product));
        breaches.extend(names::breaches(&product));
        breaches.extend(
            cycles::upward(&product)
                .iter()
                .map(|(floor, above)| format!("src/comm/{floor} must not use {above}, a floor above it")),
        );
    }
    for breach in &breaches {
        println!("{breach}");
    }
    println!("lint: {files} files, {} breaches", breaches.len());
    Ok(breaches.is_empty())
}

fn folders_of(path: &Path) -> Vec<String> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries.filter(|e| e.path().join("mod.rs").is_file()).filter_map(|e| e.file_name().into_string().ok()).collect()
}

/// The networks, of the folders of `src/comm`.
fn networks(folders: Vec<String>) -> Vec<String> {
    folders.into_iter().filter(|name| !FLOORS.contains(&name.as_str())).collect()
}

/// Test files that cargo would not build, because the manifest beside them does not name them.
fn unlisted(tests: &Path) -> Result<Vec<String>> {
    let manifest = fs::read_to_string(tests.join("Cargo.toml")).context("reading tests/Cargo.toml")?;
    let mut missing = Vec::new();
    for entry in fs::read_dir(tests).context("listing tests")? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let target = if tests.join(&name).join("main.rs").exists() { format!("{name}/main.rs") } else { name };
        if target.ends_with(".rs") && !manifest.contains(&format!("path = \"{target}\"")) {
            missing.push(format!("tests/{target}: is not a target of tests/Cargo.toml"));
        }
    }
    Ok(missing)
}

/// Paths between backticks in a document that are not there. `<name>` and `*` stand for others.
fn dead(document: &str, text: &str, exists: impl Fn(&str) -> bool) -> Vec<String> {
    let is_path = |word: &&str| {
        let (folder, rest) = word.split_once('/').unwrap_or_default();
        FOLDERS.contains(&folder) && !rest.contains(|c: char| !c.is_ascii_alphanumeric() && !"/._-".contains(c))
    };
    let dead = text.split('`').skip(1).step_by(2).filter(is_path).filter(|path| !exists(path));
    dead.map(|path| format!("{document}: there is no `{path}`")).collect()
}

/// Both lists of the homes of `unsafe`, here and in the document, are one.
fn undocumented(root: &Path) -> Vec<String> {
    let Ok(document) = fs::read_to_string(root.join("ARCHITECTURE.md")) else { return Vec::new() };
    let missing = UNSAFE_ALLOWED.iter().filter(|home| !document.contains(&format!("`{home}")) && !document.contains(**home));
    missing.map(|home| format!("ARCHITECTURE.md: does not list `{home}` among the homes of unsafe")).collect()
}

fn breaches_of(source: &Source, networks: &[String]) -> Vec<String> {
    let path = source.path.as_str();
    let mut breaches = Vec::new();
    let mut breach = |line: usize, what: String| breaches.push(format!("{path}:{line}: {what}"));
    if source.lines > MOST_LINES {
        breach(source.lines, format!("{} lines, more than {MOST_LINES}", source.lines));
    }
    if path.starts_with("src/") && !UNSAFE_ALLOWED.iter().any(|home| matches(path, home)) {
        for &line in &source.unsafe_lines {
            breach(line, "unsafe outside its homes".to_owned());
        }
    }
    if path.starts_with("src/") && !path.starts_with("src/comm/") && !OF_CONDUITS.contains(&path) {
        let network = source.members_of("comm").filter(|(_, name)| networks.contains(name));
        let start = source.members_of("start").filter(|(_, name)| STARTS.contains(&name.as_str()));
        for (line, name) in network.chain(start) {
            breach(line, format!("names the conduit {name}"));
        }
    }
    if path.starts_with(PROTOCOLS) {
        for (line, word) in impure(source) {
            breach(line, format!("a protocol must not use {word}"));
        }
    }
    let mut forbid = |names: &[&str], why: &str| {
        for (line, name) in ["crate", "global_arrays"].into_iter().flat_map(|root| source.members_of(root)) {
            if names.contains(&name.as_str()) {
                breach(line, format!("{why} must not use {name}"));
            }
        }
    };
    if PURE.iter().any(|home| path.starts_with(home)) {
        forbid(FORBIDDEN_IN_PURE, "pure arithmetic");
    }
    for (layer, above) in LAYERS {
        if path.starts_with(&format!("src/{layer}/")) {
            forbid(above, layer);
        }
    }
    breaches
}

/// Lines and names of what is no business of a protocol.
fn impure(source: &Source) -> BTreeSet<(usize, String)> {
    let forbidden = |word: &str| FORBIDDEN_IN_PROTOCOLS.contains(&word) || is_atomic(word);
    let words = source.words.iter().filter(|(_, word)| forbidden(word)).cloned();
    let sync = ["std", "core"].into_iter().flat_map(|root| source.members_of(root)).filter(|(_, name)| name == "sync");
    let clocks = source.members_of("time").filter(|(_, name)| name != "Duration");
    words.chain(sync).chain(clocks).collect()
}

/// Whether a word is an atomic type of the standard library, as `AtomicBool`, `AtomicU32` and `AtomicUsize` are.
fn is_atomic(word: &str) -> bool {
    let is_integer = |of: &str| of.strip_prefix(['U', 'I']).is_some_and(|bits| bits == "size" || bits.parse::<u32>().is_ok());
    word.strip_prefix("Atomic").is_some_and(|of| of == "Bool" || of == "Ptr" || is_integer(of))
}

/// A home is a folder (`src/memory/`), the beginning of a path, or a file name in any folder (`ffi.rs`).
fn matches(path: &str, home: &str) -> bool {
    if let Some(folder) = home.strip_suffix("*.rs") {
        return path.strip_prefix(folder).is_some_and(|name| !name.contains('/') && name.ends_with(".rs"));
    }
    match home.split_once("*/") {
        Some((before, after)) => {
            path.strip_prefix(before).and_then(|rest| rest.split_once('/')).is_some_and(|(_, rest)| rest.starts_with(after))
        }
        None if home.contains('/') => path.starts_with(home),
        None => path.ends_with(&format!("/{home}")),
    }
}

/// All Rust files below a folder of the workspace.
fn rust_files(root: &Path, folder: &str) -> Result<Vec<String>> {
    let mut files = Vec::new();
    let path = root.join(folder);
    if !path.is_dir() {
        return Ok(files);
    }
    for entry in fs::read_dir(&path).with_context(|| format!("cannot read {}", path.display()))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let below = format!("{folder}/{name}");
        if root.join(&below).is_dir() {
            files.extend(rust_files(root, &below)?);
        } else if name.ends_with(".rs") {
            files.push(below);
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, text: &str) -> Vec<String> {
        let folders = ["am", "start", "layers", "node", "protocol", "mpi"].map(str::to_owned);
        breaches_of(&Source::parse(path, text).expect("Rust"), &networks(folders.to_vec()))
    }

    #[test]
    fn unsafe_is_found_outside_its_homes_only() {
        let text = "fn f() { unsafe { g() } }";
        for home in [
            "src/memory/heap.rs",
            "src/comm/start/threads/mod.rs",
            "src/comm/mpi/ffi.rs",
            "src/comm/engine/mod.rs",
            "src/array/matmul/blas.rs",
            "src/array/matmul/dense/",
        ] {
            assert!(check(home, text).is_empty(), "{home}");
        }
        for other in ["src/sync/protocol.rs", "src/array/patch.rs", "src/element.rs"] {
            assert_eq!(check(other, text).len(), 1, "{other}");
        }
        assert!(check("src/lib.rs", "#![deny(unsafe_code)] // unsafe\nconst A: &str = \"unsafe\";").is_empty());
        assert!(check("src/comm/mod.rs", "trait C { unsafe fn put(&self); fn g(f: unsafe fn(u8)); }").is_empty());
        assert!(check("src/sync/mod.rs", "trait C { unsafe fn put(&self); fn g(f: unsafe fn(u8)); }").is_empty());
        assert_eq!(check("src/sync/mod.rs", "trait C { unsafe fn put(&self) {} }").len(), 1);
    }

    #[test]
    fn conduits_and_lower_layers_are_found_in_paths() {
        assert_eq!(check("src/array/mod.rs", "use crate::comm::start::threads::Threads;").len(), 1);
        assert_eq!(check("src/array/mod.rs", "use crate::comm::{Conduit, mpi::Shared};").len(), 1);
        assert!(check("src/array/mod.rs", "fn f(job: &Job) { job.threads(); comm::flush() }").is_empty());
        assert!(check("src/job/launch.rs", "use crate::comm::start::threads::Threads;").is_empty());
        assert_eq!(check("src/job/mod.rs", "use crate::comm::start::{settings::Settings, threads::Threads};").len(), 1);
        assert_eq!(check("src/index/mod.rs", "use crate::{error::Error, memory};").len(), 1);
        assert!(check("src/index/mod.rs", "use crate::error::Error;").is_empty());
        assert_eq!(check("src/sync/group.rs", "use crate::{comm::Conduit, job::{JobInner, Kind}};").len(), 1);
        assert_eq!(check("src/sync/group.rs", "fn f(a: &crate::array::Array) {}").len(), 1);
        assert!(
            check("src/sync/group.rs", "use crate::{comm::Conduit, memory::heap::Heap}; fn f(job: &Job) { job.array() }")
                .is_empty()
        );
        assert!(check("src/job/mod.rs", "use crate::{array::GlobalArray, sync::Group};").is_empty());
        let upward = "use crate::{error::Error, job::launch::Launch};";
        for file in ["src/comm/engine/mod.rs", "src/comm/start/threads/mod.rs", "src/comm/am/mod.rs"] {
            assert_eq!(check(file, upward), [format!("{file}:1: comm must not use job")]);
        }
        assert_eq!(check("src/comm/mod.rs", "fn f(group: &crate::sync::Group) {}").len(), 1);
        assert!(check("src/comm/mod.rs", "use crate::{index::Loops, memory::heap}; /// See `crate::job`.\nfn f() {}").is_empty());
    }

    #[test]
    fn paths_of_documents_that_are_not_there_are_found() {
        let text =
            "`src/lib.rs` and `src/gone.rs`, `src/comm/<name>/`, `tests/*.rs`, src/not/quoted, `GA_RANKS` and `cargo run`.";
        assert_eq!(dead("README.md", text, |path| path == "src/lib.rs"), ["README.md: there is no `src/gone.rs`"]);
    }

    #[test]
    fn what_all_networks_share_is_no_conduit() {
        for folder in FLOORS {
            assert!(check("src/array/mod.rs", &format!("use crate::comm::{folder}::Thing;")).is_empty(), "{folder}");
        }
        let networks = networks(folders_of(&cargo::root().join("src/comm")));
        assert!(networks.iter().any(|network| network == "ib"), "{networks:?}");
    }

    #[test]
    fn protocols_have_no_clock_no_lock_and_no_unsafe_code() {
        const HOME: &str = "src/comm/protocol/credit.rs";
        for (text, word) in [
            ("fn f() { unsafe { g() } }", "unsafe"),
            ("trait T { unsafe fn f(&self); }", "unsafe"),
            ("use std::time::{Duration, Instant};", "Instant"),
            ("fn f(now: SystemTime) {}", "SystemTime"),
            ("use std::{fmt, time::UNIX_EPOCH};", "UNIX_EPOCH"),
            ("struct S(Mutex<u8>);", "Mutex"),
            ("fn f(a: &RwLock<u8>, b: u8) {}", "RwLock"),
            ("static A: OnceLock<u8> = new();", "OnceLock"),
            ("fn f(a: &AtomicBool) {}", "AtomicBool"),
            ("fn f(a: &AtomicUsize) {}", "AtomicUsize"),
            ("use std::sync::Arc;", "sync"),
            ("use core::{fmt, sync::atomic};", "sync"),
            ("#[cfg(test)] mod tests { fn f(a: Condvar) {} }", "Condvar"),
        ] {
            assert_eq!(check(HOME, text), [format!("{HOME}:1: a protocol must not use {word}")], "{text}");
            assert!(!check("src/sync/mod.rs", text).iter().any(|breach| breach.contains("protocol")), "{text}");
        }
        let pure = "use std::{collections::VecDeque, time::Duration};\n\
                    use crate::comm::AtomicOp;\n\
                    /// Not a Mutex, nor an Instant.\n\
                    fn on_event(now: Duration, op: AtomicOp) { panic!(\"unsafe\") }";
        assert_eq!(check(HOME, pure), [""; 0]);
    }
}
