//! `cargo xtask faults`: faults that were put into the sources by hand, one at a time, and whether a test finds each.
//!
//! `tests/faults.txt` lists them: what is wrong, where, and the tests of which one must fail. Everything is built in a copy of the
//! workspace below the target folder. A fault that no longer fits the sources, or does not compile, is a failure as well, and so are
//! tests that fail without it.

use crate::{cargo, child};
use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const LIST: &str = "tests/faults.txt";
/// Of the tests of one fault, which may hang.
const TEST_LIMIT: Duration = Duration::from_secs(300);
const BUILD_LIMIT: Duration = Duration::from_secs(1800);

#[derive(Args)]
pub struct Options {
    /// Only faults whose description contains one of these texts
    filters: Vec<String>,
}

/// A change of one file that must fail a test.
#[derive(Debug, Default, PartialEq, Eq)]
struct Fault {
    name: String,
    file: String,
    from: String,
    to: String,
    /// Arguments of `cargo test`, of each of its runs.
    tests: Vec<Vec<String>>,
}

/// How a run of `cargo test` ended.
enum Verdict {
    Passed,
    Failed,
    DoesNotCompile(String),
}

/// `Ok(true)` when a test fails for every fault.
pub fn run(options: &Options) -> Result<bool> {
    let root = cargo::root();
    let mut faults = parse(&fs::read_to_string(root.join(LIST)).context(LIST)?)?;
    faults.retain(|fault| options.filters.is_empty() || options.filters.iter().any(|filter| fault.name.contains(filter)));
    let copy = copy(&root, &cargo::target()?.join("faults"))?;
    let mut wrong = 0;
    let mut say = |what: &str, name: &str| {
        println!("{what:<12} {name}");
        wrong += usize::from(what != "found");
    };
    for tests in faults.iter().flat_map(|fault| &fault.tests).collect::<HashSet<_>>() {
        match verdict(&copy, tests)? {
            Verdict::Passed => {}
            _ => say("fails before", &tests.join(" ")),
        }
    }
    for fault in &faults {
        let path = copy.join(&fault.file);
        let sound = fs::read_to_string(&path).with_context(|| fault.file.clone())?;
        if sound.matches(&fault.from).count() != 1 {
            say("fits not once", &fault.name);
            continue;
        }
        fs::write(&path, sound.replacen(&fault.from, &fault.to, 1))?;
        let verdicts = fault.tests.iter().map(|tests| verdict(&copy, tests)).collect::<Result<Vec<_>>>();
        fs::write(&path, sound)?;
        let verdicts = verdicts?;
        if let Some(errors) =
            verdicts.iter().find_map(|v| if let Verdict::DoesNotCompile(errors) = v { Some(errors) } else { None })
        {
            say("no program", &fault.name);
            println!("{errors}");
        } else if verdicts.iter().any(|verdict| matches!(verdict, Verdict::Failed)) {
            say("found", &fault.name);
        } else {
            say("NOT FOUND", &fault.name);
        }
    }
    println!("faults: {} of {} found", faults.len() - wrong.min(faults.len()), faults.len());
    Ok(wrong == 0)
}

/// What git knows or would add, so that the sources are those of the working tree and nothing that was built comes along.
fn copy(root: &Path, to: &Path) -> Result<PathBuf> {
    let tree = to.join("tree");
    if tree.exists() {
        fs::remove_dir_all(&tree)?;
    }
    let listed = Command::new("git").args(["ls-files", "-z", "-co", "--exclude-standard"]).current_dir(root).output()?;
    ensure!(listed.status.success(), "git ls-files: {}", String::from_utf8_lossy(&listed.stderr));
    for name in String::from_utf8(listed.stdout)?.split_terminator('\0') {
        let (from, to) = (root.join(name), tree.join(name));
        if from.is_file() {
            fs::create_dir_all(to.parent().context("a file in no folder")?)?;
            fs::copy(from, to)?;
        }
    }
    Ok(tree)
}

fn verdict(copy: &Path, tests: &[String]) -> Result<Verdict> {
    let test = |more: &[&str], limit| {
        let mut command = cargo::command(&["test", "--quiet", "--target-dir"]);
        let options = tests.iter().take_while(|argument| more.is_empty() || *argument != "--");
        // A fault may leave warnings behind, which are of no interest.
        command.current_dir(copy).arg(copy.with_file_name("build")).args(more).args(options).env("RUSTFLAGS", "-Awarnings");
        child::run(&mut command, limit)
    };
    let built = test(&["--no-run"], BUILD_LIMIT)?;
    if !built.success() {
        return Ok(Verdict::DoesNotCompile(built.tail(20)));
    }
    let outcome = test(&[], TEST_LIMIT)?;
    // A filter that matches nothing finds nothing: that is a mistake of the list.
    ensure!(outcome.stdout.lines().any(|line| line.starts_with("running ") && line != "running 0 tests"), "no test: {tests:?}");
    Ok(if outcome.success() { Verdict::Passed } else { Verdict::Failed })
}

fn parse(list: &str) -> Result<Vec<Fault>> {
    let mut faults: Vec<Fault> = Vec::new();
    for (number, line) in (1..).zip(list.lines()) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(name) = line.strip_prefix("fault ") {
            faults.push(Fault { name: name.to_owned(), ..Fault::default() });
            continue;
        }
        let Some(fault) = faults.last_mut() else { bail!("{LIST}:{number}: before the first fault") };
        let append =
            |text: &mut String, line: &str| *text = if text.is_empty() { line.to_owned() } else { format!("{text}\n{line}") };
        match (line.split_at(1), line.split_once(' ')) {
            (("-", line), _) => append(&mut fault.from, line),
            (("+", line), _) => append(&mut fault.to, line),
            (_, Some(("in", file))) => fault.file = file.to_owned(),
            (_, Some(("test", arguments))) => fault.tests.push(arguments.split(' ').map(str::to_owned).collect()),
            _ => bail!("{LIST}:{number}: neither of fault, in, -, +, test: {line}"),
        }
    }
    for fault in &faults {
        ensure!(
            !fault.file.is_empty() && !fault.from.is_empty() && !fault.tests.is_empty(),
            "{LIST}: {:?} is not whole",
            fault.name
        );
    }
    Ok(faults)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read() {
        let list = "# words\nfault one\nin a/b.rs\n-    x\n-    y\n+    z\ntest --lib a b\ntest --test c -- d\n\nfault two\nin c\n-e\ntest f\n";
        let faults = parse(list).unwrap();
        assert_eq!(faults.len(), 2);
        assert_eq!((&*faults[0].from, &*faults[0].to), ("    x\n    y", "    z"));
        assert_eq!(faults[0].tests, [vec!["--lib", "a", "b"], vec!["--test", "c", "--", "d"]]);
        assert_eq!((&*faults[1].file, &*faults[1].to), ("c", ""));
        assert!(parse("in nothing").is_err() && parse("fault one\nin a\ntest b").is_err() && parse("fault a\nwhat").is_err());
    }

    #[test]
    fn every_fault_fits_the_sources_once() {
        let root = cargo::root();
        for fault in parse(&fs::read_to_string(root.join(LIST)).unwrap()).unwrap() {
            let sources = fs::read_to_string(root.join(&fault.file)).unwrap();
            assert_eq!(sources.matches(&fault.from).count(), 1, "{}", fault.name);
            assert_ne!(fault.from, fault.to, "{}", fault.name);
        }
    }
}
