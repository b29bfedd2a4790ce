//! Tables I to IV of ARMCI-ODCM: the mean number of connections of clients and servers.
//!
//! A *client* is a rank. The *servers* are the agents. Each rank sends a frame to the agent of each node that its program needs. Then the
//! connections are counted.
//!
//! The paper names the programs, and uses 22 nodes for each 128 processes, six on a node (section V.D). The patterns are chosen here:
//!
//! * *Lennard Jones*: force decomposition; all ranks need all nodes. The paper counts a rank's own node.
//! * *RandomAccess*: all nodes, without a rank's own.
//! * *STOMP*: "clique based communication": the neighbors on a grid of ranks, diagonal ones too. The grids fit the paper's numbers.
//! * *LU*: the row and column of a rank on a grid. The paper contradicts itself: on 512 and 1024 processes all clients together have
//!   another number of connections than all servers.
//!
//! The paper's server has its own queue pairs. Our agent uses those of its rank, and a pair serves both directions. So two agents whose
//! nodes need each other share one pair. The pair counts for each side whose pattern needs it.

use std::collections::{BTreeMap, BTreeSet};

use super::{SetupWay, Wire, exchange, wires};

/// Ranks of a node, and of 22 nodes: the last node is smaller.
const EACH: usize = 6;
const BLOCK: usize = 128;
const NODES: usize = 22;

fn node(rank: usize) -> usize {
    NODES * (rank / BLOCK) + rank % BLOCK / EACH
}

fn agent(node: usize) -> usize {
    BLOCK * (node / NODES) + EACH * (node % NODES)
}

/// The ranks that a rank brings something to or gets something from, itself among them.
type Partners = Box<dyn Fn(usize) -> Vec<usize>>;

fn all(ranks: usize) -> Partners {
    Box::new(move |_| (0..ranks).collect())
}

fn neighbors(grid: &'static [usize]) -> Partners {
    Box::new(move |rank| {
        let steps = |at: usize, end: usize| at.saturating_sub(1)..(at + 2).min(end);
        let (mut found, mut rest, mut stride) = (vec![0], rank, 1);
        for &edge in grid.iter().rev() {
            let next = found.iter().flat_map(|&at| steps(rest % edge, edge).map(move |to| at + stride * to));
            found = next.collect();
            (rest, stride) = (rest / edge, stride * edge);
        }
        found
    })
}

fn row_and_column([rows, columns]: [usize; 2]) -> Partners {
    Box::new(move |rank| {
        let (row, column) = (rank / columns, rank % columns);
        (0..columns).map(|k| row * columns + k).chain((0..rows).map(|k| k * columns + column)).collect()
    })
}

/// A program with some ranks, and the mean numbers of connections that the paper gives: of clients, of servers.
struct Row {
    table: usize,
    name: &'static str,
    ranks: usize,
    partners: Partners,
    counts_own: bool,
    published: [f64; 2],
}

fn rows(most: usize) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut add = |table, name, ranks, partners, counts_own, published: [u32; 2]| {
        if ranks <= most {
            rows.push(Row { table, name, ranks, partners, counts_own, published: published.map(f64::from) });
        }
    };
    for (ranks, grid, published) in
        [(128, [8, 16], [12, 71]), (256, [16, 16], [19, 112]), (512, [16, 32], [25, 197]), (1024, [32, 32], [31, 263])]
    {
        add(1, "LU", ranks, row_and_column(grid), true, published);
    }
    for (ranks, nodes) in [(128, 22), (256, 44), (512, 88), (1024, 176)] {
        add(1, "Lennard Jones", ranks, all(ranks), true, [nodes, ranks as u32]);
    }
    for (ranks, nodes, published) in [(128, 22, 123), (256, 44, 251), (512, 88, 507), (1024, 176, 1021)] {
        add(1, "RandomAccess", ranks, all(ranks), false, [nodes - 1, published]);
    }
    let grids: [(&[usize], [u32; 2]); 6] = [
        (&[16, 8], [3, 21]),
        (&[16, 16], [3, 22]),
        (&[32, 16], [3, 23]),
        (&[4, 64, 4], [6, 35]),
        (&[8, 16, 16], [10, 61]),
        (&[8, 16, 32], [10, 62]),
    ];
    for (grid, published) in grids {
        add(3, "STOMP", grid.iter().product(), neighbors(grid), true, published);
    }
    rows
}

/// What stands after a program.
struct Counted {
    clients: f64,
    servers: f64,
    /// Connections of an agent, as its memory knows them: both directions, without those of its own node.
    of_agents: f64,
}

/// Lets all ranks reach the nodes that they need, and counts.
fn count(row: &Row, budget: usize) -> Counted {
    let ranks = row.ranks;
    let nodes_of = |rank: usize| (row.partners)(rank).into_iter().map(node).collect::<BTreeSet<_>>();
    let wanted: Vec<BTreeSet<usize>> = (0..ranks).map(nodes_of).collect();
    let away = |rank: usize, nodes: &BTreeSet<usize>| nodes.iter().filter(|&&at| at != node(rank)).copied().collect::<Vec<_>>();
    let frames: Vec<(usize, usize)> = wanted
        .iter()
        .enumerate()
        .flat_map(|(rank, nodes)| away(rank, nodes).into_iter().map(move |node| (rank, agent(node))))
        .collect();
    let mut wires = wires(ranks, budget, SetupWay::Overlapped);
    exchange(&mut wires, budget, &frames);
    let stands: Vec<BTreeSet<usize>> = wires.iter().map(|wire| wire.partners().collect()).collect();
    // Both ends of each pair.
    let mut partners: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for &(from, to) in &frames {
        partners.entry(from).or_default().insert(to);
        partners.entry(to).or_default().insert(from);
    }
    for (rank, wire) in wires.iter().enumerate() {
        let counts = wire.connections().unwrap();
        if budget >= ranks {
            let count = partners.get(&rank).map_or(0, BTreeSet::len) as u64;
            assert_eq!((counts.opened, counts.reopened, counts.live), (count, 0, count), "{}: rank {rank}", row.name);
        }
    }
    let nodes = (0..ranks).map(node).max().unwrap_or(0) + 1;
    let counts = |rank: usize, at: usize| if at == node(rank) { row.counts_own } else { stands[rank].contains(&agent(at)) };
    let counted: usize = (0..ranks).map(|rank| wanted[rank].iter().filter(|&&at| counts(rank, at)).count()).sum();
    let live = |node: usize| wires[agent(node)].connections().unwrap().live;
    Counted {
        clients: counted as f64 / ranks as f64,
        servers: counted as f64 / nodes as f64,
        of_agents: (0..nodes).map(live).sum::<u64>() as f64 / nodes as f64,
    }
}

/// Ranks of the largest pattern.
fn most() -> usize {
    if std::env::var("GA_TEST_LONG").is_ok_and(|value| value == "1") { 4096 } else { 256 }
}

/// ARMCI-ODCM, Tables I to IV. Prints a line for each number, and the count of lines. Up to 4096 ranks if `GA_TEST_LONG=1`.
#[test]
#[expect(clippy::print_stdout, reason = "`cargo xtask papers` reads it")]
fn ranks_connect_with_the_nodes_that_they_need() {
    let rows = rows(most());
    for row in &rows {
        let counted = count(row, row.ranks);
        let of_agents = row.ranks as f64 / counted.of_agents;
        for (table, what, ours, published) in [
            (row.table, "of a client", counted.clients, row.published[0]),
            (row.table + 1, "of a server", counted.servers, row.published[1]),
        ] {
            println!("\nconnections;{table};{};{};{what};{published};{ours};{of_agents}", row.name, row.ranks);
        }
        assert!(row.name != "STOMP" || row.ranks < 4096 || of_agents >= 66.0, "{of_agents} times fewer connections");
    }
    println!("connections;end;{}", 2 * rows.len());
}

/// With fewer connections than an agent needs, all frames arrive, and it never holds more.
#[test]
fn agents_keep_to_their_budget() {
    let rows = rows(most());
    let stomp = rows.iter().rfind(|row| row.name == "STOMP").unwrap();
    let free = count(stomp, stomp.ranks);
    assert!(free.of_agents > 16.0, "{} connections of an agent", free.of_agents);
    let bounded = count(stomp, 16);
    assert!(bounded.of_agents > 1.0 && bounded.of_agents <= 16.0);
}
