//! `cargo xtask lint --lines`: how much code each folder of the crate has, beside its budget.
//!
//! A folder of `src` is one row. Of `src/comm`, each network is a row of its own, so is how ranks meet before there is one, and the
//! software fabric, and the rest is another. What a network asks of a device, its devices and its bindings are rows beside it. Code is what `code`
//! says.

use super::source::{self, Source};
use crate::cargo;
use anyhow::Result;
use std::collections::BTreeMap;

/// Of what all networks share.
const BUDGET_OF_COMM: usize = 8500;
/// Of a network, and of the other parts.
const BUDGET_OF_PART: usize = 1500;
/// Beside the networks, rows of their own.
const PARTS: [&str; 2] = ["bootstrap", "soft"];
/// Folders of networks that are rows of their own.
const DEVICES: [&str; 4] = ["device", "ffi", "soft", "verbs"];

/// Prints the report.
pub fn report() -> Result<()> {
    let root = cargo::root();
    let mut networks = super::networks(&root);
    networks.extend(PARTS.map(str::to_owned));
    let sources = source::read_all(&root, "src")?;
    print!("{}", table(&rows(&sources, &networks), &networks));
    Ok(())
}

/// The lines of code of each row.
fn rows(sources: &[Source], networks: &[String]) -> BTreeMap<String, usize> {
    let for_tests: Vec<String> = sources.iter().flat_map(test_modules).collect();
    let mut rows = BTreeMap::new();
    for source in sources {
        let path = source.path.as_str();
        let is_for_tests = |module: &String| path == format!("{module}.rs") || path.starts_with(&format!("{module}/"));
        if !for_tests.iter().any(is_for_tests) {
            *rows.entry(row_of(path, networks)).or_default() += source.code.lines.len();
        }
    }
    rows
}

/// The modules for tests that a file declares, as paths without an ending.
fn test_modules(source: &Source) -> Vec<String> {
    let (folder, file) = source.path.rsplit_once('/').unwrap_or_default();
    let folder = match file {
        "mod.rs" | "lib.rs" => folder,
        _ => source.path.trim_end_matches(".rs"),
    };
    source.code.test_modules.iter().map(|module| format!("{folder}/{module}")).collect()
}

/// The row that a file belongs to: a network, a folder of `src`, or `src` itself.
fn row_of(path: &str, networks: &[String]) -> String {
    let parts: Vec<&str> = path.split('/').collect();
    match parts[..] {
        ["src", "comm", network, folder, _, ..] if networks.iter().any(|name| name == network) && DEVICES.contains(&folder) => {
            format!("src/comm/{network}/{folder}")
        }
        ["src", "comm", network, _, ..] if networks.iter().any(|name| name == network) => format!("src/comm/{network}"),
        ["src", folder, _, ..] => format!("src/{folder}"),
        _ => "src".to_owned(),
    }
}

fn table(rows: &BTreeMap<String, usize>, networks: &[String]) -> String {
    let mut table = format!("{:<24}{:>8}{:>8}\n", "folder", "lines", "budget");
    for (row, &lines) in rows {
        let is_network = row.strip_prefix("src/comm/").is_some_and(|name| networks.iter().any(|network| network == name));
        let budget = if is_network { Some(BUDGET_OF_PART) } else { (row == "src/comm").then_some(BUDGET_OF_COMM) };
        let beside = budget.map_or_else(String::new, |budget| budget.to_string());
        let over = budget.and_then(|budget| lines.checked_sub(budget)).filter(|&over| over > 0);
        let mark = over.map_or_else(String::new, |over| format!("  {over} over"));
        table += format!("{row:<24}{lines:>8}{beside:>8}{mark}").trim_end();
        table.push('\n');
    }
    table + &format!("{:<24}{:>8}\n", "total", rows.values().sum::<usize>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source::parse(path, text).expect("Rust")
    }

    #[test]
    fn networks_are_rows_of_their_own() {
        let sources = [
            source("src/lib.rs", "mod comm;\nmod sync;\n"),
            source("src/comm/mod.rs", "mod node;\nmod mpi;\n"),
            source("src/comm/node/mod.rs", "// Nothing.\nfn f() {}\n"),
            source("src/comm/mpi/mod.rs", "mod ffi;\n"),
            source("src/comm/mpi/ffi.rs", "fn f() {}\n"),
            source("src/comm/mpi/soft/deep/mod.rs", "fn f() {}\n"),
            source("src/comm/node/soft/mod.rs", "fn f() {}\n"),
            source("src/sync/mod.rs", "fn f() {\n}\n"),
            source("src/sync/deep/er/mod.rs", "fn f() {}\n"),
        ];
        let rows = rows(&sources, &["mpi".to_owned()]);
        let rows: Vec<(&str, usize)> = rows.iter().map(|(row, &lines)| (row.as_str(), lines)).collect();
        assert_eq!(rows, [("src", 2), ("src/comm", 4), ("src/comm/mpi", 2), ("src/comm/mpi/soft", 1), ("src/sync", 3)]);
    }

    #[test]
    fn files_for_tests_do_not_count() {
        let sources = [
            source("src/comm/mod.rs", "#[cfg(test)]\nmod fake;\nmod fakes;\nmod real;\n"),
            source("src/comm/fake.rs", "fn f() {}\n"),
            source("src/comm/fake/part.rs", "fn f() {}\n"),
            source("src/comm/fakes.rs", "fn f() {}\n"),
            source("src/comm/real.rs", "#[cfg(test)]\nmod tests;\n"),
            source("src/comm/real/tests.rs", "fn f() {}\n"),
        ];
        assert_eq!(rows(&sources, &[]), BTreeMap::from([("src/comm".to_owned(), 3)]));
    }

    #[test]
    fn what_exceeds_its_budget_is_marked() {
        let rows = [("src/array", 9000), ("src/comm", 8501), ("src/comm/ib", 1500), ("src/comm/mpi", 1600)];
        let rows = rows.map(|(row, lines)| (row.to_owned(), lines)).into();
        let expected = "\
folder                     lines  budget
src/array                   9000
src/comm                    8501    8500  1 over
src/comm/ib                 1500    1500
src/comm/mpi                1600    1500  100 over
total                      20601
";
        assert_eq!(table(&rows, &["ib".to_owned(), "mpi".to_owned()]), expected);
    }
}
