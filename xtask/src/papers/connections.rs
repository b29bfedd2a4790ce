//! Table 2 of MVICH: how many connections the processes of a program have, on average, if they connect on demand.
//!
//! The patterns of those programs run over the protocols of connections themselves, by a test of the crate. A job would not do: its ranks also
//! connect for what the library agrees on by itself.

use super::program::Programs;
use super::row::{Kind, Paper, Row};
use crate::{cargo, child};
use anyhow::{Context, Result, bail, ensure};
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
    rows(&outcome.stdout)
}

/// From lines `connections;PATTERN;RANKS;PUBLISHED;OURS`, and a last one that has their number.
fn rows(lines: &str) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for line in lines.lines().filter_map(|line| line.strip_prefix("connections;")) {
        match line.strip_prefix("end;") {
            Some(count) => {
                ensure!(count.parse() == Ok(rows.len()), "{TEST} has printed {} rows of {count}", rows.len());
                return Ok(rows);
            }
            None => rows.push(row(line).with_context(|| format!("{TEST} has printed {line:?}"))?),
        }
    }
    bail!("{TEST} has not printed all of its rows")
}

fn row(line: &str) -> Option<Row> {
    let mut parts = line.split(';');
    let (pattern, ranks) = (parts.next()?, parts.next()?);
    let (published, ours) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    let what = format!("{pattern}, {ranks} ranks, connections of a rank");
    Some(Row::near(Paper::Mvich.at(2), &what, Kind::Replayed, "", published, ours, 0.03))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_test() {
        let read = rows("test a ...\nconnections;CG;32;5.78;5.75\nconnections;end;1\ntest result: ok").unwrap();
        assert_eq!((read[0].what.as_str(), read[0].published.as_str()), ("CG, 32 ranks, connections of a rank", "5.78"));
        for wrong in ["", "connections;CG;32;5.78;5.75", "connections;CG;32\nconnections;end;1", "connections;end;1"] {
            assert!(rows(wrong).is_err(), "{wrong}");
        }
    }
}
