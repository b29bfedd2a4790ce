//! `cargo xtask lint --lines`: how much code each folder of the crate has, beside its budget. The lint fails above it.
//!
//! A folder of `src` is one row, and so are each floor and each network of `src/comm`, `ga-run` and `xtask`. Code is what `code` says.

use super::source::{self, Source};
use crate::cargo;
use anyhow::Result;
use std::collections::BTreeMap;

/// Of each row. A folder that shrinks takes its budget with it; what makes one grow has to find the lines elsewhere in it.
const BUDGETS: &[(&str, usize)] = &[
    ("ga-run", 1084),
    ("src", 720),
    ("src/array", 7508),
    ("src/calls", 379),
    ("src/comm", 30),
    ("src/comm/am", 3906),
    ("src/comm/engine", 2103),
    ("src/comm/extoll", 687),
    ("src/comm/gemini", 898),
    ("src/comm/ib", 4939),
    ("src/comm/kit", 332),
    ("src/comm/layers", 440),
    ("src/comm/mpi", 1019),
    ("src/comm/node", 2161),
    ("src/comm/ofi", 1291),
    ("src/comm/protocol", 1403),
    ("src/comm/rma", 927),
    ("src/comm/simulated", 1960),
    ("src/comm/soft", 1650),
    ("src/comm/start", 3425),
    ("src/comm/waist", 630),
    ("src/distribution", 1501),
    ("src/file", 6290),
    ("src/guide", 21),
    ("src/index", 641),
    ("src/job", 1868),
    ("src/linalg", 3124),
    ("src/memory", 3587),
    ("src/message", 1900),
    ("src/sparse", 612),
    ("src/sync", 2974),
    ("xtask", 7431),
];

/// What has rows.
pub const FOLDERS: [&str; 3] = ["src", "ga-run", "xtask"];

/// Prints the report. `Ok(true)` if every folder keeps to its budget.
pub fn report() -> Result<bool> {
    let mut rows = BTreeMap::new();
    for folder in FOLDERS {
        rows.extend(self::rows(&product(&source::read_all(&cargo::root(), folder)?)));
    }
    print!("{}", table(&rows));
    Ok(over(&rows).is_empty())
}

fn budget(row: &str) -> Option<usize> {
    BUDGETS.iter().find(|(of, _)| *of == row).map(|&(_, budget)| budget)
}

/// What is wrong with folders that exceed their budgets, or have none.
pub fn over(rows: &BTreeMap<String, usize>) -> Vec<String> {
    let over = |(row, &lines): (&String, &usize)| match budget(row) {
        Some(budget) if lines <= budget => None,
        Some(budget) => Some(format!("{row}: {lines} lines of code, its budget is {budget}")),
        None => Some(format!("{row}: {lines} lines of code and no budget in xtask/src/lint/lines.rs")),
    };
    rows.iter().filter_map(over).collect()
}

/// The sources that are not for tests or benches.
pub fn product(sources: &[Source]) -> Vec<&Source> {
    let for_tests: Vec<String> = sources.iter().flat_map(test_modules).collect();
    let is_in = |path: &str, module: &String| path == format!("{module}.rs") || path.starts_with(&format!("{module}/"));
    sources.iter().filter(|source| !for_tests.iter().any(|module| is_in(&source.path, module))).collect()
}

/// The lines of code of each row.
pub fn rows(product: &[&Source]) -> BTreeMap<String, usize> {
    let mut rows = BTreeMap::new();
    for source in product {
        *rows.entry(row_of(&source.path)).or_default() += source.code.lines.len();
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

/// The row that a file belongs to: a floor or a network, a folder of `src`, or `src` itself.
fn row_of(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').collect();
    match parts[..] {
        ["src", "comm", folder, _, ..] => format!("src/comm/{folder}"),
        ["src", folder, _, ..] => format!("src/{folder}"),
        [folder, ..] => folder.to_owned(),
        [] => String::new(),
    }
}

fn table(rows: &BTreeMap<String, usize>) -> String {
    let mut table = format!("{:<24}{:>8}{:>8}\n", "folder", "lines", "budget");
    for (row, &lines) in rows {
        let budget = budget(row).unwrap_or_default();
        let mark = lines.checked_sub(budget).filter(|&over| over > 0).map_or_else(String::new, |over| format!("  {over} over"));
        table += format!("{row:<24}{lines:>8}{budget:>8}{mark}").trim_end();
        table.push('\n');
    }
    let of_the_crate = rows.iter().filter(|(row, _)| row.starts_with("src")).map(|(_, lines)| lines);
    table + &format!("{:<24}{:>8}\n", "total of src", of_the_crate.sum::<usize>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source::parse(path, text).expect("Rust")
    }

    #[test]
    fn floors_and_networks_are_rows_of_their_own() {
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
            source("xtask/src/main.rs", "mod lint;\n"),
            source("xtask/src/lint/mod.rs", "fn f() {}\n"),
        ];
        let rows = rows(&product(&sources));
        let rows: Vec<(&str, usize)> = rows.iter().map(|(row, &lines)| (row.as_str(), lines)).collect();
        let crate_rows = [("src", 2), ("src/comm", 2), ("src/comm/mpi", 3), ("src/comm/node", 2), ("src/sync", 3)];
        assert_eq!(rows, [&crate_rows[..], &[("xtask", 2)]].concat());
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
        assert_eq!(rows(&product(&sources)), BTreeMap::from([("src/comm".to_owned(), 3)]));
    }

    #[test]
    fn what_exceeds_its_budget_is_found() {
        let of = |row: &str| budget(row).expect("a budget");
        let [array, kit] = ["src/array", "src/comm/kit"].map(of);
        let rows = [("src/array", array), ("src/comm/kit", kit + 1), ("src/comm/new", 3)];
        let rows = rows.map(|(row, lines)| (row.to_owned(), lines)).into();
        let expected = [
            format!("src/comm/kit: {} lines of code, its budget is {kit}", kit + 1),
            "src/comm/new: 3 lines of code and no budget in xtask/src/lint/lines.rs".to_owned(),
        ];
        assert_eq!(over(&rows), expected);
        assert!(table(&rows).contains("  1 over\n"));
    }
}
