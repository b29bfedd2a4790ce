//! Table 2 of MVICH: how many connections the processes of a program have, on average, if they connect on demand.
//!
//! The patterns of those programs run over the protocols of connections themselves, by a test of the crate. A job would not do: its ranks also
//! connect for what the library agrees on by itself.

use super::program::Programs;
use super::row::{Kind, Paper, Row};
use crate::{cargo, child};
use anyhow::{Context, Result, ensure};
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(300);
const TEST: &str = "comm::ib::patterns::patterns_connect_as_many_as_they_need";

pub fn patterns(_: &Programs) -> Result<Vec<Row>> {
    let built = cargo::build(&["test", "--no-run", "--release", "--package", "global-arrays", "--lib"])?;
    let tests =
        built.into_iter().find(|program| program.name == "global_arrays").context("cargo has not built the unit tests")?;
    let mut command = Command::new(tests.path);
    let outcome = child::run(command.args(["--exact", TEST, "--nocapture"]), LIMIT)?;
    ensure!(outcome.success(), "{TEST}: {}\n{}", outcome.end, outcome.tail(10));
    let rows: Vec<Row> = outcome.stdout.lines().filter_map(row).collect();
    ensure!(!rows.is_empty(), "{TEST} has printed no row");
    Ok(rows)
}

/// From `connections;PATTERN;RANKS;PUBLISHED;OURS`.
fn row(line: &str) -> Option<Row> {
    let mut parts = line.strip_prefix("connections;")?.split(';');
    let (pattern, ranks) = (parts.next()?, parts.next()?);
    let (published, ours) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    let what = format!("{pattern}, {ranks} ranks, connections of a rank");
    Some(Row::near(Paper::Mvich.at(2), &what, Kind::Predicted, "", published, ours, 0.03))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_test() {
        let read = row("connections;CG;32;5.78;5.75").unwrap();
        assert_eq!((read.what.as_str(), read.published.trim()), ("CG, 32 ranks, connections of a rank", "5.78"));
        assert!(row("connections;CG;32").is_none() && row("test result: ok").is_none());
    }
}
