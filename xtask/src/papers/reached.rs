//! Tables I to IV of ARMCI-ODCM by the workspace's own programs: how many nodes a rank reaches, and how many ranks reach a node.
//!
//! The statistics of a run (`GA_STATS=FILE.json`) say which ranks moved data from or to which others, from the start of the program to its end. A
//! node has one agent, so the nodes that a rank reaches are the connections of a client, and the ranks that reach a node are those of a server.
//! A rank's own node counts where the paper counts it.
//!
//! Up to [`CONNECTED`] ranks, the protocols themselves connect the ranks (`simulated:ib`). Each agent must hold at least the connections that
//! this traffic needs, and the row of the server says how many agents hold, as a mean. The library needs some for itself. More ranks run over a
//! model that has no connections.
//!
//! Six ranks are on a node, as in the paper. It had 22 nodes for each 128 processes, of which the last was not full. Ours fill all nodes but one,
//! so they are fewer: 171 in place of 176 for 1024 ranks, which is 2.8 %.

use super::program::{Job, Programs};
use super::row::{Kind, Paper, Row};
use crate::cargo;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;

const EACH: usize = 6;
const CONNECTED: usize = 256;
const TOLERANCE: f64 = 0.03;

/// Why rows of programs that the paper does not describe are not judged.
const OTHERS: &str = "the paper does not give its program";

/// A program, and how the paper counts.
struct Program {
    name: &'static str,
    /// The table of the clients; the next one is that of the servers.
    table: u32,
    with_own_node: bool,
    is_judged: bool,
    runs: &'static [Run],
}

/// A run, and what the paper has for it: connections of a client, of a server.
struct Run {
    ranks: usize,
    arguments: &'static [&'static str],
    published: [u32; 2],
}

const fn run(ranks: usize, published: [u32; 2], arguments: &'static [&'static str]) -> Run {
    Run { ranks, arguments, published }
}

const LU: Program = Program {
    name: "lu",
    table: 1,
    with_own_node: true,
    is_judged: false,
    runs: &[
        run(128, [12, 71], &["--n", "1536", "--block", "96"]),
        run(256, [19, 112], &["--n", "2048", "--block", "64"]),
        run(512, [25, 197], &["--n", "2048", "--block", "64"]),
        run(1024, [31, 263], &["--n", "2048", "--block", "64"]),
    ],
};

/// Droplets with a block of 64 atoms for each rank. The cut-off is longer than the droplet: as in the paper, all blocks of the force matrix
/// are computed.
const LENNARD_JONES: Program = Program {
    name: "lennard_jones",
    table: 1,
    with_own_node: true,
    is_judged: true,
    runs: &[
        run(128, [22, 128], &["--fcc", "8x16x16", "--box", "75", "--cutoff", "45", "--block", "64", "--steps", "1"]),
        run(256, [44, 256], &["--fcc", "16x16x16", "--box", "75", "--cutoff", "45", "--block", "64", "--steps", "1"]),
        run(512, [88, 512], &["--fcc", "16x16x32", "--box", "150", "--cutoff", "70", "--block", "64", "--steps", "1"]),
        run(1024, [176, 1024], &["--fcc", "16x32x32", "--box", "180", "--cutoff", "88", "--block", "64", "--steps", "1"]),
    ],
};

/// "A total of 1024 updates are coalesced before the update vector is actually transferred."
const RANDOM_ACCESS: Program = Program {
    name: "random_access",
    table: 1,
    with_own_node: false,
    is_judged: true,
    runs: &[
        run(128, [21, 123], &["--way", "buckets", "--log2-size", "16"]),
        run(256, [43, 251], &["--way", "buckets", "--log2-size", "17"]),
        run(512, [87, 507], &["--way", "buckets", "--log2-size", "18"]),
        run(1024, [175, 1021], &["--way", "buckets", "--log2-size", "19"]),
    ],
};

/// In place of STOMP, which solves the same kind of problem.
const SUBSURFACE: Program = Program {
    name: "subsurface",
    table: 3,
    with_own_node: true,
    is_judged: false,
    runs: &[
        run(128, [3, 21], &["--case", "heterogeneous", "--cells", "4x64x32", "--end-time", "3600"]),
        run(256, [3, 22], &["--case", "heterogeneous", "--cells", "4x64x64", "--end-time", "3600"]),
        run(512, [3, 23], &["--case", "heterogeneous", "--cells", "4x128x64", "--end-time", "3600"]),
    ],
};

/// Tables I and II: LU, Lennard-Jones, RandomAccess.
pub fn benchmarks(programs: &Programs) -> Result<Vec<Row>> {
    rows(programs, &[LU, LENNARD_JONES, RANDOM_ACCESS])
}

/// Tables III and IV.
pub fn subsurface(programs: &Programs) -> Result<Vec<Row>> {
    rows(programs, &[SUBSURFACE])
}

/// Rows of clients, and behind them those of servers.
fn rows(programs: &Programs, all: &[Program]) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for program in all {
        rows.extend(program.rows(programs)?);
    }
    rows.sort_by_key(|row| row.place.to_string());
    Ok(rows)
}

impl Program {
    fn rows(&self, programs: &Programs) -> Result<Vec<Row>> {
        let folder = cargo::folder("papers")?;
        let mut rows = Vec::new();
        for run in self.runs {
            let file = folder.join(format!("{}-{}-{}.json", self.name, run.ranks, std::process::id()));
            let reached = self.reached(programs, run, file.to_str().context("a folder whose name is text")?);
            let _ = fs::remove_file(&file);
            rows.extend(self.rows_of(run, &reached.with_context(|| format!("{} on {} ranks", self.name, run.ranks))?));
        }
        Ok(rows)
    }

    fn reached(&self, programs: &Programs, run: &Run, file: &str) -> Result<Reached> {
        let network = if run.ranks <= CONNECTED { "simulated:ib" } else { "simulated:infiniband" };
        let variables = &[("GA_STATS", file)];
        let job = Job { network, ranks: run.ranks, ranks_per_node: Some(EACH), skips: false, variables };
        programs.application(self.name, run.arguments, job)?;
        let text = fs::read_to_string(file).with_context(|| format!("cannot read {file}"))?;
        let reached = Reached::of(&serde_json::from_str(&text)?, self.with_own_node)?;
        ensure!(reached.ranks == run.ranks, "it ran on {} ranks", reached.ranks);
        ensure!(reached.held.is_some() == (run.ranks <= CONNECTED), "{network} has other connections than it should");
        Ok(reached)
    }

    fn rows_of(&self, run: &Run, reached: &Reached) -> [Row; 2] {
        let ranks = run.ranks;
        // A static agent is connected with all ranks but those of its own node.
        let times = |held: f64| (ranks - EACH) as f64 / held;
        let beside =
            reached.held.map(|held| format!("; an agent holds {held:.1}, static set-up {:.1} times as many", times(held)));
        let row = |table, of_whom: &str, published, ours| {
            let what = format!("{} itself, {ranks} ranks, connections of {of_whom}", self.name);
            let row = Row::near(Paper::Odcm.at(table), &what, Kind::Counted, "", f64::from(published), ours, TOLERANCE);
            if self.is_judged { row } else { row.shown(OTHERS) }
        };
        [
            row(self.table, "a client", run.published[0], reached.clients),
            row(self.table + 1, &format!("a server{}", beside.unwrap_or_default()), run.published[1], reached.servers),
        ]
    }
}

/// Mean numbers of connections: those that the traffic of a program needs, and those that stand.
#[derive(Debug, PartialEq)]
struct Reached {
    ranks: usize,
    /// Nodes that a rank has reached.
    clients: f64,
    /// Ranks that have reached a node.
    servers: f64,
    /// Connections that an agent had at the end, on a network that has connections.
    held: Option<f64>,
}

impl Reached {
    fn of(report: &Value, with_own_node: bool) -> Result<Self> {
        let ranks = report["ranks"].as_u64().context("no number of ranks")? as usize;
        let node = |rank: usize| rank / EACH;
        let nodes = ranks.div_ceil(EACH);
        ensure!(report["nodes"].as_u64() == Some(nodes as u64), "it ran on {} nodes, not {nodes}", report["nodes"]);
        let mut away = BTreeSet::new();
        for pair in report["bytes"].as_array().context("no bytes")? {
            let rank = |at: usize| pair[at].as_u64().map(|rank| rank as usize).context("no pair of ranks");
            let (from, to) = (rank(0)?, node(rank(1)?));
            if node(from) != to {
                away.insert((from, to));
            }
        }
        let held = report["connections"].as_array().map(|counts| held(counts, &away)).transpose()?;
        let pairs = (away.len() + if with_own_node { ranks } else { 0 }) as f64;
        Ok(Reached { ranks, clients: pairs / ranks as f64, servers: pairs / nodes as f64, held })
    }
}

/// The mean number of connections of an agent. Each agent must have those that the pairs need, each a rank and another node. A connection
/// serves both directions.
fn held(counts: &[Value], pairs: &BTreeSet<(usize, usize)>) -> Result<f64> {
    let mut all = 0;
    let agents = (0..counts.len()).step_by(EACH);
    for agent in agents.clone() {
        // Opened, opened again, closed, live.
        let live = counts[agent][3].as_u64().context("no number of connections")? as usize;
        let partner = |&(from, to): &(usize, usize)| match from == agent {
            true => Some(to * EACH),
            false => Some(from).filter(|_| to * EACH == agent),
        };
        let needed = pairs.iter().filter_map(partner).collect::<BTreeSet<_>>().len();
        ensure!(live >= needed, "agent {agent} holds {live} connections, and needs {needed}");
        all += live;
    }
    Ok(all as f64 / agents.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::super::row::Verdict;
    use super::*;
    use serde_json::json;

    /// Ranks 0 to 5, and 6 to 7. Rank 0 reaches its own node and, twice, the other one. Rank 7 reaches rank 0.
    fn report() -> Value {
        json!({ "ranks": 8, "nodes": 2, "bytes": [[0, 1, 8], [0, 6, 8], [0, 7, 8], [7, 0, 8]] })
    }

    #[test]
    fn nodes_are_counted_once_for_each_rank() {
        let reached = |report: &Value, with_own_node| Reached::of(report, with_own_node).unwrap();
        assert_eq!(reached(&report(), false), Reached { ranks: 8, clients: 2.0 / 8.0, servers: 1.0, held: None });
        assert_eq!(reached(&report(), true), Reached { ranks: 8, clients: 10.0 / 8.0, servers: 5.0, held: None });
        assert!(Reached::of(&json!({ "ranks": 8, "nodes": 3, "bytes": [] }), true).is_err());
        assert!(Reached::of(&json!({ "ranks": 8, "nodes": 2, "bytes": [["0", 1, 8]] }), true).is_err());
    }

    #[test]
    fn agents_hold_what_the_traffic_needs() {
        let with = |live: [u64; 8]| {
            let mut report = report();
            report["connections"] = live.map(|live| json!([9, 0, 0, live, 0, 0, 0])).to_vec().into();
            Reached::of(&report, true).map(|reached| reached.held)
        };
        // Agents are ranks 0 and 6. Rank 0 needs agent 6 and rank 7; agent 6 needs rank 0.
        assert_eq!(with([3, 9, 9, 9, 9, 9, 2, 9]).unwrap(), Some(2.5));
        assert!(with([1, 9, 9, 9, 9, 9, 2, 9]).unwrap_err().to_string().contains("agent 0 holds 1 connections, and needs 2"));
        assert!(with([3, 9, 9, 9, 9, 9, 0, 9]).is_err());
    }

    #[test]
    fn a_run_has_two_rows() {
        let reached = Reached { ranks: 128, clients: 21.0, servers: 119.0, held: Some(122.0) };
        let [client, server] = RANDOM_ACCESS.rows_of(&RANDOM_ACCESS.runs[0], &reached);
        assert_eq!((client.place, client.verdict), (Paper::Odcm.at(1), Verdict::Holds));
        assert_eq!((server.place, server.verdict), (Paper::Odcm.at(2), Verdict::Fails));
        assert!(server.what.ends_with("an agent holds 122.0, static set-up 1.0 times as many"), "{}", server.what);
        let [client, _] = LU.rows_of(&LU.runs[0], &reached);
        assert_eq!(client.verdict, Verdict::Shown(OTHERS));
    }
}
