//! The rows of a scaling study, for people and as CSV.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::measure::Row;

/// Kinds of calls that have a name in the picture; the rest are one.
pub const KINDS: usize = 6;

/// Columns before those of the calls.
const FIRST: [&str; 5] = ["ranks", "nodes", "seconds", "efficiency", "computing"];
/// Columns after those of the calls. The last is what was run.
const LAST: [&str; 3] = [OTHER, "real_seconds", "command"];
const OTHER: &str = "other calls";

/// Less than that rounds to nothing in the table.
const NOTHING: f64 = 0.000_05;

pub const HEAD: &str = "   ranks   nodes       seconds  efficiency  computing  most of the rest";

/// How much of the first row's ranks' speed each rank still has.
pub fn efficiency(rows: &[Row], at: usize) -> f64 {
    let work = |row: &Row| row.ranks as f64 * row.seconds;
    work(&rows[0]) / work(&rows[at]).max(f64::MIN_POSITIVE)
}

pub fn line(rows: &[Row], at: usize) -> String {
    let row = &rows[at];
    let share = |seconds: f64| 100.0 * seconds / row.seconds.max(f64::MIN_POSITIVE);
    let most = row.calls.iter().max_by(|a, b| a.1.total_cmp(b.1));
    let most = most.map_or(String::new(), |(name, &seconds)| format!("{name} {:.0} %", share(seconds)));
    format!(
        "{:>8}{:>8}{:>14.6}{:>10.1} %{:>9.1} %  {most}",
        row.ranks,
        row.nodes,
        row.seconds,
        100.0 * efficiency(rows, at),
        share(row.computing)
    )
}

/// At most `most` kinds of calls, those that take the most, and for each row their shares of its time; the last is what all others take.
pub fn shares(rows: &[Row], most: usize) -> (Vec<String>, Vec<Vec<f64>>) {
    let share = |row: &Row, seconds: f64| seconds / row.seconds.max(f64::MIN_POSITIVE);
    // Of each kind the sum and the largest.
    let mut sizes = BTreeMap::<&str, (f64, f64)>::new();
    for (row, (name, &seconds)) in rows.iter().flat_map(|row| row.calls.iter().map(move |call| (row, call))) {
        let (sum, largest) = sizes.entry(name).or_default();
        *sum += share(row, seconds);
        *largest = largest.max(share(row, seconds));
    }
    let mut kinds: Vec<(&str, (f64, f64))> = sizes.into_iter().filter(|(_, (_, largest))| *largest >= NOTHING).collect();
    kinds.sort_by(|a, b| b.1.0.total_cmp(&a.1.0));
    kinds.truncate(most);
    let mut names: Vec<String> = kinds.iter().map(|kind| kind.0.to_owned()).collect();
    let of = |row: &Row| {
        let mut shares: Vec<f64> =
            names.iter().map(|name| row.calls.get(name).map_or(0.0, |&seconds| share(row, seconds))).collect();
        let rest = 1.0 - share(row, row.computing) - shares.iter().sum::<f64>();
        shares.push(rest.max(0.0));
        shares
    };
    let shares = rows.iter().map(of).collect();
    names.push(OTHER.to_owned());
    (names, shares)
}

/// A row for each number of ranks: times in seconds, the rest as parts of 1. `what` was run.
pub fn write(path: &Path, what: &str, rows: &[Row]) -> Result<()> {
    let (mut kinds, shares) = shares(rows, usize::MAX);
    kinds.pop();
    let mut file = csv::Writer::from_path(path).with_context(|| format!("cannot write {}", path.display()))?;
    file.write_record(FIRST.into_iter().chain(kinds.iter().map(String::as_str)).chain(LAST))?;
    for (at, row) in rows.iter().enumerate() {
        let computing = row.computing / row.seconds.max(f64::MIN_POSITIVE);
        let first = [row.ranks.to_string(), row.nodes.to_string(), format!("{:.9}", row.seconds)];
        let parts = [efficiency(rows, at), computing].into_iter().chain(shares[at].iter().copied());
        let parts = parts.map(|part| format!("{part:.4}"));
        file.write_record(first.into_iter().chain(parts).chain([format!("{:.1}", row.real), what.to_owned()]))?;
    }
    file.flush().with_context(|| format!("cannot write {}", path.display()))
}

/// The rows of a table that [`write`] has written, none if there is no table.
///
/// # Errors
/// It is no such table, or something else was run for it.
pub fn read(path: &Path, what: &str) -> Result<Vec<Row>> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let mut file = csv::Reader::from_path(path).with_context(|| format!("cannot read {}", path.display()))?;
    let head = file.headers().with_context(|| format!("cannot read {}", path.display()))?.clone();
    let columns: Vec<&str> = head.iter().collect();
    let ours = columns.starts_with(&FIRST) && columns.ends_with(&LAST);
    ensure!(ours, "{} has other columns than this command writes: measure it anew, without --resume", path.display());
    let mut rows: Vec<Row> = Vec::new();
    for (line, record) in file.records().enumerate() {
        let record = record?;
        let fields: Vec<&str> = record.iter().collect();
        let command = fields[fields.len() - 1];
        ensure!(command == what, "{} is of {command:?}, not of {what:?}", path.display());
        let row = row(&columns, &fields).with_context(|| format!("{}, row {}", path.display(), line + 1))?;
        ensure!(rows.last().is_none_or(|last| last.ranks < row.ranks), "{}: the ranks do not grow", path.display());
        rows.push(row);
    }
    Ok(rows)
}

fn row(columns: &[&str], fields: &[&str]) -> Result<Row> {
    let seconds: f64 = fields[2].parse()?;
    let calls = FIRST.len()..fields.len() - LAST.len();
    let share = |field: usize| -> Result<f64> { Ok(seconds * fields[field].parse::<f64>()?) };
    let calls: BTreeMap<String, f64> = calls.map(|at| Ok((columns[at].to_owned(), share(at)?))).collect::<Result<_>>()?;
    let real = fields[fields.len() - 2].parse()?;
    Ok(Row { ranks: fields[0].parse()?, nodes: fields[1].parse()?, seconds, computing: share(4)?, calls, real })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(ranks: usize, seconds: f64, calls: &[(&str, f64)]) -> Row {
        let calls: BTreeMap<String, f64> = calls.iter().map(|&(name, seconds)| (name.to_owned(), seconds)).collect();
        Row { ranks, nodes: 1, seconds, computing: seconds - calls.values().sum::<f64>(), calls, real: 0.0 }
    }

    #[test]
    fn shares_add_up_to_all_time() {
        let many: Vec<(String, f64)> = (0..9).map(|k| (format!("call {k}"), f64::from(k) * 0.01)).collect();
        let many: Vec<(&str, f64)> = many.iter().map(|(name, seconds)| (name.as_str(), *seconds)).collect();
        let rows = [row(2, 1.0, &many), row(4, 0.75, &[("get", 0.25)])];
        let (kinds, shares) = shares(&rows, KINDS);
        assert_eq!((kinds.len(), kinds[0].as_str(), kinds[KINDS].as_str()), (KINDS + 1, "get", "other calls"));
        for (row, shares) in rows.iter().zip(shares) {
            assert!((shares.iter().sum::<f64>() + row.computing / row.seconds - 1.0).abs() < 1e-12);
        }
        assert!((efficiency(&rows, 1) - 2.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn what_is_written_is_read_and_written_alike() {
        let path = std::env::temp_dir().join(format!("scale-{}.csv", std::process::id()));
        assert_eq!(read(&path, "a program").unwrap(), []);
        let rows = [row(2, 1.25, &[("get", 0.3), ("put", 0.1), ("load", 1e-6)]), row(4, 0.7, &[("fence, all", 0.1 / 3.0)])];
        write(&path, "a program", &rows).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let again = read(&path, "a program").unwrap();
        assert_eq!((again.len(), again[1].ranks, again[1].seconds), (2, 4, 0.7));
        assert!(read(&path, "another").unwrap_err().to_string().contains("not of \"another\""));
        write(&path, "a program", &again).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        std::fs::write(&path, "ranks,nodes,seconds\n2,1,1.0\n").unwrap();
        assert!(read(&path, "a program").unwrap_err().to_string().contains("other columns"));
        std::fs::remove_file(&path).unwrap();
    }
}
