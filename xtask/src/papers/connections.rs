//! Table 2 of MVICH, and Tables I to IV of ARMCI-ODCM: how many connections the processes of a program have, on average, if they connect on
//! demand.
//!
//! The patterns of those programs run over the protocols of connections themselves, by tests of the crate. Nothing else connects there; the ranks
//! of a job also connect for what the library agrees on by itself. Rows of our programs are in `reached`.

use super::program::Programs;
use super::row::{Kind, Paper, Row};
use crate::{cargo, child};
use anyhow::{Context, Result, bail, ensure};
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(600);
const PATTERNS: &str = "comm::ib::tests::patterns::patterns_connect_as_many_as_they_need";
const AGENTS: &str = "comm::ib::tests::patterns::agents::ranks_connect_with_the_nodes_that_they_need";

pub fn patterns(_: &Programs) -> Result<Vec<Row>> {
    rows(PATTERNS, &run(PATTERNS)?, pattern)
}

pub fn agents(_: &Programs) -> Result<Vec<Row>> {
    let mut rows = rows(AGENTS, &run(AGENTS)?, client_or_server)?;
    // Tables I and II, then III and IV.
    rows.sort_by_key(|row| row.place.to_string());
    Ok(rows)
}

/// What a test of the crate prints, at its full size.
fn run(test: &str) -> Result<String> {
    let built = cargo::build(&["test", "--no-run", "--release", "--package", "global-arrays", "--lib"])?;
    let mut command = Command::new(cargo::path(&built, "global_arrays")?);
    let outcome = child::run(command.args(["--exact", test, "--nocapture"]).env("GA_TEST_LONG", "1"), LIMIT)?;
    Ok(outcome.succeeded(test)?.stdout)
}

/// From lines `connections;...`, and a last one that has their number.
fn rows(test: &str, lines: &str, row: impl Fn(&[&str]) -> Option<Row>) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for line in lines.lines().filter_map(|line| line.strip_prefix("connections;")) {
        match line.strip_prefix("end;") {
            Some(count) => {
                ensure!(count.parse() == Ok(rows.len()), "{test} has printed {} rows of {count}", rows.len());
                return Ok(rows);
            }
            None => {
                let parts: Vec<&str> = line.split(';').collect();
                rows.push(row(&parts).with_context(|| format!("{test} has printed {line:?}"))?);
            }
        }
    }
    bail!("{test} has not printed all of its rows")
}

/// `PATTERN;RANKS;PUBLISHED;OURS`
fn pattern(parts: &[&str]) -> Option<Row> {
    let &[pattern, ranks, published, ours] = parts else { return None };
    let (published, ours) = (published.parse().ok()?, ours.parse().ok()?);
    let what = format!("{pattern}, {ranks} ranks, connections of a rank");
    Some(Row::near(Paper::Mvich.at(2), &what, Kind::Replayed, "", published, ours, 0.03))
}

/// `TABLE;PROGRAM;RANKS;OF WHOM;PUBLISHED;OURS;TIMES FEWER`. The paper gives whole numbers. Of clients they are rounded down.
fn client_or_server(parts: &[&str]) -> Option<Row> {
    let &[table, program, ranks, whom, published, ours, fewer] = parts else { return None };
    let (table, published) = (table.parse().ok()?, published.parse().ok()?);
    let (ours, fewer): (f64, f64) = (ours.parse().ok()?, fewer.parse().ok()?);
    let is_client = table % 2 == 1;
    let ours = if is_client { ours.floor() } else { ours };
    let tolerance = if program == "STOMP" { 0.07 } else { 0.03 };
    let beside = if is_client { String::new() } else { format!("; of an agent {fewer:.1} times fewer than static") };
    let what = format!("{program}, {ranks} ranks, connections {whom}{beside}");
    let row = Row::near(Paper::Odcm.at(table), &what, Kind::Replayed, "", published, ours, tolerance);
    Some(if program == "LU" { row.unless("the paper's rows of LU contradict each other") } else { row })
}

#[cfg(test)]
mod tests {
    use super::super::row::Verdict;
    use super::*;

    #[test]
    fn lines_of_the_test() {
        let read = rows("a", "test a ...\nconnections;CG;32;5.78;5.75\nconnections;end;1\ntest result: ok", pattern).unwrap();
        assert_eq!((read[0].what.as_str(), read[0].published.as_str()), ("CG, 32 ranks, connections of a rank", "5.78"));
        for wrong in ["", "connections;CG;32;5.78;5.75", "connections;CG;32\nconnections;end;1", "connections;end;1"] {
            assert!(rows("a", wrong, pattern).is_err(), "{wrong}");
        }
    }

    #[test]
    fn clients_are_compared_as_whole_numbers() {
        let row = |line: &str| client_or_server(&line.split(';').collect::<Vec<_>>()).map(|row| (row.verdict, row.ours));
        assert_eq!(row("3;STOMP;128;of a client;3;3.6;7.9"), Some((Verdict::Holds, "3.000".into())));
        assert_eq!(row("4;STOMP;128;of a server;21;19.4;7.9").map(|(verdict, _)| verdict), Some(Verdict::Fails));
        assert!(matches!(row("2;LU;128;of a server;71;59;2.2"), Some((Verdict::Explained(_), _))));
        assert_eq!(row("4;STOMP;128;of a server;21;19.4"), None);
    }
}
