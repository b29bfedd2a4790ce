//! The table of all ranks' statistics that a job prints at its end; `Job::stats` shows one.

use std::fmt::Write as _;

use super::stats::Stats;
use crate::{
    comm::Connections,
    error::Result,
    job::Job,
    sync::{Tally, Traffic},
};

/// Ranks with a row each.
const MOST_ROWS: usize = 24;
/// Ranks with a column each, in the table of pairs: what fits beside each other on a screen.
const MOST_COLUMNS: usize = 10;
/// Rows of the busiest ranks in larger jobs.
const BUSIEST: usize = 8;

/// Numbers of a row: peers, nodes, in flight, then operations and bytes of each kind to others and of the own part.
const WORDS: usize = 3 + 2 * 7;
/// And whether the rank has connections, with their numbers.
const MORE: usize = 1 + Connections::WORDS;

/// One rank's figures.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Row {
    rank: usize,
    peers: u64,
    nodes: u64,
    in_flight: u64,
    /// Put, get, accumulate, atomic, signal, message, and all of the own part.
    tallies: [Tally; 7],
}

impl Row {
    fn of(rank: usize, stats: &Stats) -> Self {
        let [put, get, accumulate, atomic, signal, message] = stats.remote().kinds();
        Row {
            rank,
            peers: stats.distinct_peers() as u64,
            nodes: stats.distinct_nodes() as u64,
            in_flight: stats.most_in_flight() as u64,
            tallies: [put, get, accumulate, atomic, signal, message, stats.local().total()],
        }
    }

    fn to_words(self) -> [u64; WORDS] {
        let mut words = [0; WORDS];
        words[..3].copy_from_slice(&[self.peers, self.nodes, self.in_flight]);
        for (pair, tally) in words[3..].chunks_exact_mut(2).zip(self.tallies) {
            pair.copy_from_slice(&[tally.operations, tally.bytes]);
        }
        words
    }

    fn from_words(rank: usize, words: &[u64]) -> Self {
        let tally = |k: usize| Tally { operations: words[3 + 2 * k], bytes: words[4 + 2 * k] };
        Row { rank, peers: words[0], nodes: words[1], in_flight: words[2], tallies: std::array::from_fn(tally) }
    }

    /// Bytes to others.
    fn bytes(&self) -> u64 {
        self.tallies[..6].iter().map(|tally| tally.bytes).sum()
    }
}

/// All ranks' figures.
#[derive(Debug)]
pub(super) struct Rows {
    rows: Vec<Row>,
    /// Of each rank, if the network makes any.
    connections: Vec<Connections>,
    nodes: usize,
    pairs: Vec<u64>,
}

impl Rows {
    pub(super) fn text(&self) -> String {
        table(&self.rows, self.nodes, &self.pairs) + &self::connections(&self.connections)
    }

    pub(super) fn connections(&self) -> &[Connections] {
        &self.connections
    }
}

/// Brings all ranks' figures to rank 0. Collective.
pub(super) fn gather(job: &Job, stats: &Stats) -> Result<Option<Rows>> {
    let size = job.size();
    let nodes = (0..size).map(|rank| job.inner.conduit().topology().node(rank)).max().map_or(0, |last| last + 1);
    let mut words = [0; WORDS + MORE];
    words[..WORDS].copy_from_slice(&Row::of(job.rank(), stats).to_words());
    if let Some(connections) = stats.connections() {
        words[WORDS] = 1;
        words[WORDS + 1..].copy_from_slice(&connections.to_words());
    }
    let rows = job.gather(0, &words)?;
    let pairs = if size <= MOST_COLUMNS {
        let mut bytes = vec![0; size];
        for (rank, traffic) in stats.peers() {
            bytes[rank] = Traffic::total(traffic).bytes;
        }
        job.gather(0, &bytes)?.unwrap_or_default()
    } else {
        Vec::new()
    };
    Ok(rows.map(|words| {
        let all = || words.chunks_exact(WORDS + MORE).map(|words| words.split_at(WORDS));
        let rows = all().enumerate().map(|(rank, (words, _))| Row::from_words(rank, words)).collect();
        let of_rank = |words: &[u64]| Connections::from_words(std::array::from_fn(|k| words[1 + k]));
        // All ranks have some, or none has.
        let connections = all().filter(|(_, more)| more[0] == 1).map(|(_, more)| of_rank(more)).collect();
        Rows { rows, connections, nodes, pairs }
    }))
}

const HEAD: &str = "  rank peers nodes              put              get       accumulate           atomic  signals messages in flight         own part";

/// `pairs` holds the bytes from each rank to each, or nothing.
fn table(rows: &[Row], nodes: usize, pairs: &[u64]) -> String {
    let size = rows.len();
    let plural = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let mut text = format!(
        "communication of {} on {}, as operations and bytes to other ranks\n{HEAD}\n",
        plural(size, "rank"),
        plural(nodes, "node")
    );
    let mut put = |line: String| {
        text.push_str(line.trim_end());
        text.push('\n');
    };
    if size <= MOST_ROWS {
        rows.iter().for_each(|row| put(line(&row.rank.to_string(), row)));
    } else {
        put(line("least", &combined(rows, |values| values.min().unwrap_or(0))));
        put(line("mean", &combined(rows, |values| values.sum::<u64>() / size as u64)));
        put(line("most", &combined(rows, |values| values.max().unwrap_or(0))));
        let mut busiest: Vec<&Row> = rows.iter().collect();
        busiest.sort_by_key(|row| (std::cmp::Reverse(row.bytes()), row.rank));
        busiest.truncate(BUSIEST);
        put(format!("the {BUSIEST} that moved the most bytes:"));
        busiest.iter().for_each(|row| put(line(&row.rank.to_string(), row)));
    }
    let sum = |of: fn(&Row) -> u64| rows.iter().map(of).sum::<u64>() as f64;
    let (peers, reached) = (sum(|row| row.peers), sum(|row| row.nodes));
    put(format!(
        "means: {:.1} peers and {:.1} nodes for each rank, {:.1} ranks that reached a node",
        peers / size as f64,
        reached / size as f64,
        reached / nodes as f64
    ));
    if !pairs.is_empty() && size > 1 {
        let _ = writeln!(text, "\nbytes from (row) to (column)");
        let _ = writeln!(text, "      {}", (0..size).fold(String::new(), |line, rank| format!("{line}{rank:>10}")));
        for (rank, row) in pairs.chunks_exact(size).enumerate() {
            let cells = row.iter().fold(String::new(), |line, &moved| {
                let cell = if moved == 0 { "-".into() } else { bytes(moved) };
                format!("{line}{cell:>10}")
            });
            let _ = writeln!(text, "{rank:>6}{cells}");
        }
    }
    text
}

/// A line of the ranks' connections, or nothing where there are none.
fn connections(ranks: &[Connections]) -> String {
    if ranks.is_empty() {
        return String::new();
    }
    let mean = |of: fn(&Connections) -> u64| ranks.iter().map(of).sum::<u64>() as f64 / ranks.len() as f64;
    let most = ranks.iter().map(|rank| rank.live).max().unwrap_or(0);
    let refused = match ranks.iter().map(|rank| rank.refused).sum::<u64>() {
        0 => String::new(),
        refused => format!("{refused} datagrams did not belong to this job and were refused\n"),
    };
    format!(
        "connections of a rank, as means: {:.2} opened, {:.2} of them again, {:.2} closed, {:.2} at the end ({most} at most), {} by them, \
         {:.2} datagrams sent again\n{refused}",
        mean(|rank| rank.opened),
        mean(|rank| rank.reopened),
        mean(|rank| rank.closed),
        mean(|rank| rank.live),
        bytes(mean(|rank| rank.bytes) as u64),
        mean(|rank| rank.resends)
    )
}

/// A row made of each column's numbers.
fn combined(rows: &[Row], of: impl Fn(&mut dyn Iterator<Item = u64>) -> u64) -> Row {
    let words: [u64; WORDS] = std::array::from_fn(|k| of(&mut rows.iter().map(|row| row.to_words()[k])));
    Row::from_words(0, &words)
}

fn line(name: &str, row: &Row) -> String {
    let mut line = format!("{name:>6}{:>6}{:>6}", row.peers, row.nodes);
    let [kinds @ .., signal, message, own] = &row.tallies;
    let pair = |tally: &Tally| format!("{:>7}{:>10}", count(tally.operations), bytes(tally.bytes));
    kinds.iter().for_each(|tally| line += &pair(tally));
    line + &format!("{:>9}{:>9}{:>10}", count(signal.operations), count(message.operations), row.in_flight) + &pair(own)
}

/// At most six characters.
fn count(value: u64) -> String {
    match value {
        0..100_000 => value.to_string(),
        _ => scaled(value as f64, 1000.0, &["", "k", "M", "G", "T", "P", "E"], ""),
    }
}

/// At most nine characters.
pub(super) fn bytes(value: u64) -> String {
    match value {
        0..1024 => format!("{value} B"),
        _ => scaled(value as f64, 1024.0, &["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"], " "),
    }
}

/// Three digits and a unit.
fn scaled(mut value: f64, step: f64, units: &[&str], space: &str) -> String {
    let mut unit = 0;
    // What would be rounded up to a thousand belongs to the next unit.
    while value >= 999.5 && unit + 1 < units.len() {
        value /= step;
        unit += 1;
    }
    let digits = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
    format!("{value:.digits$}{space}{}", units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(rank: usize) -> Row {
        let tally = |k: usize| Tally { operations: (rank * 1000 + k) as u64, bytes: (rank * 1_000_000 + 7 * k) as u64 };
        Row { rank, peers: rank as u64, nodes: 1, in_flight: 64, tallies: std::array::from_fn(tally) }
    }

    #[test]
    fn rows_survive_the_way_to_rank_0() {
        assert_eq!(Row::from_words(3, &row(3).to_words()), row(3));
    }

    #[test]
    fn numbers_fit_their_columns() {
        for shift in 0..64 {
            for value in [1_u64 << shift, (1 << shift) - 1, u64::MAX >> shift] {
                assert!(count(value).len() <= 6 && bytes(value).len() <= 9, "{} {}", count(value), bytes(value));
            }
        }
        assert_eq!([count(99_999), count(100_000), count(1_234_567)], ["99999", "100k", "1.23M"]);
        assert_eq!([bytes(1023), bytes(1024), bytes(1_310_720)], ["1023 B", "1.00 KiB", "1.25 MiB"]);
    }

    #[test]
    fn connections_are_told_where_there_are_any() {
        assert_eq!(connections(&[]), "");
        let text =
            connections(&[Connections::from_words([4, 1, 2, 2, 4096, 0, 0]), Connections::from_words([1, 0, 0, 1, 0, 3, 5])]);
        let told = "2.50 opened, 0.50 of them again, 1.00 closed, 1.50 at the end (2 at most), 2.00 KiB by them, 1.50 datagrams sent again\n";
        let refused = "5 datagrams did not belong to this job and were refused\n";
        assert_eq!(text, format!("connections of a rank, as means: {told}{refused}"));
    }

    #[test]
    fn few_ranks_have_a_row_each_and_many_do_not() {
        for size in [1, 2, MOST_COLUMNS, MOST_ROWS, MOST_ROWS + 1, 4096] {
            let rows: Vec<Row> = (0..size).map(row).collect();
            let pairs = if size <= MOST_COLUMNS { vec![5; size * size] } else { Vec::new() };
            let text = table(&rows, 1, &pairs);
            assert!(text.lines().all(|line| line.len() <= HEAD.len() || line.starts_with("means")), "{text}");
            assert!(text.lines().count() <= MOST_ROWS + MOST_COLUMNS + 6, "{text}");
            assert_eq!(text.contains(" most "), size > MOST_ROWS, "{text}");
            let last = line(&(size - 1).to_string(), &rows[size - 1]);
            assert!(text.contains(last.trim_end()), "the busiest rank is missing:\n{text}");
        }
    }
}
