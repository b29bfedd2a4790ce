//! Tables I to IV of ARMCI-ODCM by the workspace's own programs: how many nodes a rank reaches, and how many ranks reach a node.
//!
//! The statistics of a run (`GA_STATS=FILE.json`) say which ranks moved data from or to which others. A node has one agent, so the nodes that a
//! rank reaches are the connections of a client, and the ranks that reach a node are those of a server. Up to [`CONNECTED`] ranks the
//! protocols themselves connect the ranks (`simulated:ib`). The row of the server then says how many connections an agent held at the end,
//! with those that the library needed for itself. More ranks run over a model that has no connections.
//!
//! Six ranks are on a node, as in the paper, which had a few more nodes: 22 for each 128 processes.

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

/// A run of a program, and what the paper has for it: connections of a client, of a server.
struct Run {
    arguments: &'static [&'static str],
    ranks: usize,
    published: [u32; 2],
}

const fn on(ranks: usize, arguments: &'static [&'static str], published: [u32; 2]) -> Run {
    Run { arguments, ranks, published }
}

const RANDOM_ACCESS: [Run; 4] = [
    on(128, &["--log2-size", "16"], [21, 123]),
    on(256, &["--log2-size", "17"], [43, 251]),
    on(512, &["--log2-size", "18"], [87, 507]),
    on(1024, &["--log2-size", "20"], [175, 1021]),
];

/// Droplets in which all blocks of atoms interact, with a block of 64 for each rank.
const LENNARD_JONES: [Run; 4] = [
    on(128, &["--fcc", "8x16x16", "--box", "75", "--cutoff", "45", "--block", "64", "--steps", "1"], [22, 128]),
    on(256, &["--fcc", "16x16x16", "--box", "75", "--cutoff", "45", "--block", "64", "--steps", "1"], [44, 256]),
    on(512, &["--fcc", "16x16x32", "--box", "150", "--cutoff", "70", "--block", "64", "--steps", "1"], [88, 512]),
    on(1024, &["--fcc", "16x32x32", "--box", "180", "--cutoff", "88", "--block", "64", "--steps", "1"], [176, 1024]),
];

const LU: [Run; 4] = [
    on(128, &["--n", "1536", "--block", "96"], [12, 71]),
    on(256, &["--n", "2048", "--block", "64"], [19, 112]),
    on(512, &["--n", "2048", "--block", "64"], [25, 197]),
    on(1024, &["--n", "2048", "--block", "64"], [31, 263]),
];

const SUBSURFACE: [Run; 3] = [
    on(128, &["--case", "heterogeneous", "--cells", "4x64x32", "--end-time", "3600"], [3, 21]),
    on(256, &["--case", "heterogeneous", "--cells", "4x64x64", "--end-time", "3600"], [3, 22]),
    on(512, &["--case", "heterogeneous", "--cells", "4x128x64", "--end-time", "3600"], [3, 23]),
];

/// What the paper gives in Tables I and II, and does not explain.
const CONTRADICTS: &str = "the paper's rows of LU contradict each other";
/// Why a node of `subsurface` is reached by fewer ranks than one of STOMP.
const FACES: &str = "ours reaches across faces of its boxes only";

/// Tables I and II: LU, Lennard-Jones, RandomAccess.
pub fn benchmarks(programs: &Programs) -> Result<Vec<Row>> {
    let lu = of_program(programs, "lu", 1, true, &LU)?;
    let mut rows: Vec<Row> = lu.into_iter().map(|row| row.unless(CONTRADICTS)).collect();
    rows.extend(of_program(programs, "lennard_jones", 1, true, &LENNARD_JONES)?);
    // The paper's clients have a connection with each node but their own.
    rows.extend(of_program(programs, "random_access", 1, false, &RANDOM_ACCESS)?);
    Ok(rows)
}

/// Tables III and IV: in place of STOMP our program of the same kind.
pub fn subsurface(programs: &Programs) -> Result<Vec<Row>> {
    Ok(of_program(programs, "subsurface", 3, true, &SUBSURFACE)?.into_iter().map(|row| row.unless(FACES)).collect())
}

/// Two rows for each run. `with_own`: a rank's own node counts, if the rank moved data there.
fn of_program(programs: &Programs, name: &str, table: u32, with_own: bool, runs: &[Run]) -> Result<Vec<Row>> {
    let folder = cargo::target()?.join("papers");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let file = folder.join("reached.json");
    let file = file.to_str().context("a folder whose name is text")?;
    let mut rows = Vec::new();
    for &Run { arguments, ranks, published } in runs {
        let network = if ranks <= CONNECTED { "simulated:ib" } else { "simulated:infiniband" };
        let variables = &[("GA_STATS", file)];
        let job = Job { network, ranks, ranks_per_node: Some(EACH), skips: false, variables };
        programs.application(name, arguments, job)?;
        let text = fs::read_to_string(file).with_context(|| format!("cannot read {file}"))?;
        let reached = Reached::of(&serde_json::from_str(&text)?, with_own).with_context(|| format!("statistics of {name}"))?;
        ensure!(reached.ranks == ranks, "{name} ran on {} ranks", reached.ranks);
        // The paper gives whole numbers, and says nowhere how it came to them. Those of STOMP's clients are rounded down.
        let clients = if table == 3 { reached.clients.floor() } else { reached.clients };
        let beside = reached.held.map_or(String::new(), |held| {
            format!("; an agent held {held:.1}, {:.1} times fewer than static", ranks as f64 / held)
        });
        for (place, of_whom, published, ours) in [
            (table, "a client".into(), published[0], clients),
            (table + 1, format!("a server{beside}"), published[1], reached.servers),
        ] {
            let what = format!("{name} itself, {ranks} ranks, connections of {of_whom}");
            rows.push(Row::near(Paper::Odcm.at(place), &what, Kind::Counted, "", f64::from(published), ours, TOLERANCE));
        }
    }
    Ok(rows)
}

/// Who has reached whom, as means.
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
    fn of(report: &Value, with_own: bool) -> Result<Self> {
        let ranks = report["ranks"].as_u64().context("no number of ranks")? as usize;
        let node = |rank: u64| rank as usize / EACH;
        let nodes = ranks.div_ceil(EACH);
        ensure!(report["nodes"].as_u64() == Some(nodes as u64), "{ranks} ranks are on {} nodes", report["nodes"]);
        let mut pairs = BTreeSet::new();
        for triple in report["bytes"].as_array().context("no bytes")? {
            let rank = |at: usize| triple[at].as_u64().context("a rank");
            let (from, to) = (rank(0)?, node(rank(1)?));
            if with_own || node(from) != to {
                pairs.insert((from, to));
            }
        }
        let held = report["connections"].as_array().map(|of_ranks| {
            // Opened, opened again, closed, live.
            let live = of_ranks.iter().step_by(EACH).filter_map(|counts| counts[3].as_u64());
            live.sum::<u64>() as f64 / nodes as f64
        });
        let pairs = pairs.len() as f64;
        Ok(Reached { ranks, clients: pairs / ranks as f64, servers: pairs / nodes as f64, held })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn nodes_are_counted_once_for_each_rank() {
        // Ranks 0 to 5, and 6 to 7. Rank 0 reaches its own node and, twice, the other one. Rank 7 reaches rank 0.
        let mut report = json!({ "ranks": 8, "nodes": 2, "bytes": [[0, 1, 8], [0, 6, 8], [0, 7, 8], [7, 0, 8]] });
        let reached = |report: &Value, with_own| Reached::of(report, with_own).unwrap();
        assert_eq!(reached(&report, true), Reached { ranks: 8, clients: 3.0 / 8.0, servers: 1.5, held: None });
        assert_eq!(reached(&report, false), Reached { ranks: 8, clients: 2.0 / 8.0, servers: 1.0, held: None });
        // Agents are ranks 0 and 6.
        let of_rank = |live: u64| json!([9, 0, 0, live, 0, 0, 0]);
        report["connections"] = [3, 1, 1, 1, 1, 1, 2, 1].map(of_rank).into();
        assert_eq!(reached(&report, true).held, Some(2.5));
        report["nodes"] = json!(3);
        assert!(Reached::of(&report, true).is_err());
    }
}
