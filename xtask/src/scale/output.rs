//! The rows of a scaling study, for people and as CSV.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};

use super::measure::Row;

/// Kinds of calls that have a name; the rest are one.
const KINDS: usize = 6;

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

/// The kinds of calls that take the most, and for each row their shares of its time; the last is what all others take.
pub fn shares(rows: &[Row]) -> (Vec<String>, Vec<Vec<f64>>) {
    let mut sums = BTreeMap::<&str, f64>::new();
    for row in rows {
        row.calls
            .iter()
            .for_each(|(name, &seconds)| *sums.entry(name).or_default() += seconds / row.seconds.max(f64::MIN_POSITIVE));
    }
    let mut kinds: Vec<(&str, f64)> = sums.into_iter().collect();
    kinds.sort_by(|a, b| b.1.total_cmp(&a.1));
    kinds.truncate(KINDS);
    let mut names: Vec<String> = kinds.iter().map(|kind| kind.0.to_owned()).collect();
    let of = |row: &Row| {
        let share = |seconds: f64| seconds / row.seconds.max(f64::MIN_POSITIVE);
        let mut shares: Vec<f64> = names.iter().map(|name| row.calls.get(name).map_or(0.0, |&seconds| share(seconds))).collect();
        let rest = 1.0 - share(row.computing) - shares.iter().sum::<f64>();
        shares.push(rest.max(0.0));
        shares
    };
    let shares = rows.iter().map(of).collect();
    names.push("other calls".to_owned());
    (names, shares)
}

/// A row for each number of ranks: times in seconds, the rest as parts of 1.
pub fn write(path: &Path, rows: &[Row]) -> Result<()> {
    let (kinds, shares) = shares(rows);
    let mut file = csv::Writer::from_path(path).with_context(|| format!("cannot write {}", path.display()))?;
    let head = ["ranks", "nodes", "seconds", "efficiency", "computing"].into_iter().map(str::to_owned);
    file.write_record(head.chain(kinds).chain(["real_seconds".to_owned()]))?;
    for (at, row) in rows.iter().enumerate() {
        let computing = row.computing / row.seconds.max(f64::MIN_POSITIVE);
        let first = [row.ranks.to_string(), row.nodes.to_string(), format!("{:.9}", row.seconds)];
        let parts = [efficiency(rows, at), computing].into_iter().chain(shares[at].iter().copied());
        let parts = parts.map(|part| format!("{part:.4}"));
        file.write_record(first.into_iter().chain(parts).chain([format!("{:.1}", row.real)]))?;
    }
    file.flush().with_context(|| format!("cannot write {}", path.display()))
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
        let (kinds, shares) = shares(&rows);
        assert_eq!((kinds.len(), kinds[0].as_str(), kinds[KINDS].as_str()), (KINDS + 1, "get", "other calls"));
        for (row, shares) in rows.iter().zip(shares) {
            assert!((shares.iter().sum::<f64>() + row.computing / row.seconds - 1.0).abs() < 1e-12);
        }
        assert!((efficiency(&rows, 1) - 2.0 / 3.0).abs() < 1e-12);
    }
}
