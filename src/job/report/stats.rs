//! Communication statistics: how much each rank moved to and from every other rank, counted by the program's own operations.
//!
//! `Job::stats` lists what counts, and `array::counted` explains it. A signal counts for the rank where it is raised; `access` does not
//! count. Messages of the library do not count, because they depend on its algorithms.
//!
//! Peers are ranks of the job, whatever the group of the array. Where one agent serves a node, a program must connect to the nodes of its
//! peers (ARMCI-ODCM, Tables I and III), and the ranks that reach a node are that agent's connections (Tables II and IV). Where ranks
//! connect to each other directly, a program needs a connection for each distinct peer (MVICH, Table 2).
//!
//! Each counted call takes a lock and looks up its peer; `Launch::stats` has the cost.

use std::collections::BTreeMap;

use crate::{
    comm::Connections,
    job::Job,
    sync::{Tally, Traffic},
};

/// What this rank has moved to which others so far; returned by [`Job::stats`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stats {
    local: Traffic,
    /// By rank: its node, and what was done to its memory.
    peers: BTreeMap<usize, (usize, Traffic)>,
    most_in_flight: usize,
    connections: Option<Connections>,
}

impl Stats {
    /// The other ranks that this one reached, in ascending order, with its operations on the memory of each.
    pub fn peers(&self) -> impl Iterator<Item = (usize, &Traffic)> {
        self.peers.iter().map(|(&rank, (_, traffic))| (rank, traffic))
    }

    /// The number of other ranks that this one reached.
    #[must_use]
    pub fn distinct_peers(&self) -> usize {
        self.peers.len()
    }

    /// The number of nodes of these peers. This rank's own node counts if it reached another rank there.
    #[must_use]
    pub fn distinct_nodes(&self) -> usize {
        self.nodes().len()
    }

    fn nodes(&self) -> std::collections::BTreeSet<usize> {
        self.peers.values().map(|&(node, _)| node).collect()
    }

    /// This rank's operations on the memory of all other ranks together.
    #[must_use]
    pub fn remote(&self) -> Traffic {
        self.peers.values().fold(Traffic::default(), |sum, (_, traffic)| sum.zip(traffic, Tally::plus))
    }

    /// The same calls' operations on this rank's own part; epochs do not count.
    #[must_use]
    pub fn local(&self) -> Traffic {
        self.local
    }

    /// The largest number of transfers that this rank had in flight on the network at once since the job began, including those of
    /// collectives. Zero if all memory is mapped: what the processor copies is complete when the call returns.
    #[must_use]
    pub fn most_in_flight(&self) -> usize {
        self.most_in_flight
    }

    /// This rank's connections with ranks of other nodes; `None` if the network makes none. What the library sends by
    /// itself, such as agreements, needs connections too.
    ///
    /// # Source
    /// ARMCI-ODCM, Tables I to IV; MVICH, Table 2.
    #[must_use]
    pub fn connections(&self) -> Option<Connections> {
        self.connections
    }

    /// The statistics of the phase from `earlier` to this. [`most_in_flight`](Self::most_in_flight) stays that of the whole job, and
    /// the connections that stand are those that stand now.
    #[must_use]
    pub fn since(&self, earlier: &Stats) -> Stats {
        let mut stats = self.clone();
        stats.local = stats.local.zip(&earlier.local, Tally::since);
        for (rank, (_, traffic)) in &mut stats.peers {
            if let Some((_, before)) = earlier.peers.get(rank) {
                *traffic = traffic.zip(before, Tally::since);
            }
        }
        stats.connections = self.connections.zip(earlier.connections).map(|(now, before)| now.since(before));
        stats.peers.retain(|_, (_, traffic)| traffic.total().operations > 0);
        stats
    }
}

impl Job {
    /// This rank's operations on the memory of others and on its own part since the job began; `None` unless the job counts
    /// (`GA_STATS=1` or [`Launch::stats`](crate::Launch::stats)). Local.
    ///
    /// A call counts once for each owner that it accesses, with the bytes of the elements there, whatever the network and
    /// the number of transfers. [`load`](crate::GlobalArray::load) counts as a get and [`store`](crate::GlobalArray::store) as a
    /// put; lists count as the operation that they repeat; integer atomics, counters and locks (each check of one) as atomic
    /// operations. Whole-array operations count the patches that they fetch and put back; ghost cells and periodic patches count by
    /// boxes. Epochs do not count, except for the ghost cells that they fill. Messages of collectives do not count.
    ///
    /// A job that counts prints a table like this one to stderr when it ends successfully (here the example `jacobi` on four ranks):
    ///
    /// ```text
    /// communication of 4 ranks on 1 node, as operations and bytes to other ranks
    ///   rank peers nodes              put              get       accumulate           atomic  signals messages in flight         own part
    ///      0     3     1      6  29.3 KiB  19890  2.59 MiB      0       0 B      0       0 B        0        0         0  13261  60.8 MiB
    ///      1     3     1      0       0 B  19890  2.59 MiB      0       0 B      0       0 B        0        0         0  13259  60.7 MiB
    ///      2     3     1      0       0 B  19890  2.59 MiB      0       0 B      0       0 B        0        0         0  13259  60.7 MiB
    ///      3     3     1      0       0 B  19890  2.59 MiB      0       0 B      0       0 B        0        0         0  13259  60.7 MiB
    /// means: 3.0 peers and 1.0 nodes for each rank, 4.0 ranks that reached a node
    ///
    /// bytes from (row) to (column)
    ///                0         1         2         3
    ///      0         -  1.28 MiB  1.28 MiB  66.4 KiB
    ///      1  1.27 MiB         -  56.7 KiB  1.27 MiB
    ///      2  1.27 MiB  56.7 KiB         -  1.27 MiB
    ///      3  56.7 KiB  1.27 MiB  1.27 MiB         -
    /// ```
    ///
    /// For many ranks it shows the minimum, mean and maximum of each figure, and the ranks that moved the most bytes. Over a network that
    /// connects ranks, a line behind the table has the number of connections of a rank.
    ///
    /// # Examples
    /// ```
    /// use global_arrays::prelude::*;
    /// # fn main() -> Result<(), Error> {
    /// Launch::new().ranks(4).network("threads").stats(true).run(|job| {
    ///     let a = GlobalArray::<f64, Ix1>::builder(job, [400]).zeros().create()?; // 100 elements each
    ///     let Some(before) = job.stats() else { return Ok(()) };
    ///     if job.rank() == 0 {
    ///         a.get(s![150..250])?; // 50 elements of rank 1, 50 of rank 2
    ///         a.store([399], 1.0)?;
    ///     }
    ///     let phase = job.stats().expect("a job that counts").since(&before);
    ///     if job.rank() == 0 {
    ///         assert_eq!((phase.distinct_peers(), phase.distinct_nodes()), (3, 1));
    ///         assert_eq!((phase.remote().get.operations, phase.remote().get.bytes), (2, 800));
    ///         assert_eq!((phase.remote().put.operations, phase.remote().put.bytes), (1, 8));
    ///     }
    ///     job.sync()
    /// })
    /// # }
    /// ```
    ///
    /// # Source
    /// ARMCI-ODCM, Tables I to IV (A. Vishnu, M. Krishnan, CCGrid 2010); MVICH, Table 2 (J. Wu et al., CLUSTER 2002). GA:
    /// `GA_Print_stats`.
    #[doc(alias = "GA_Print_stats")]
    #[must_use]
    pub fn stats(&self) -> Option<Stats> {
        let mut counts = self.inner.counts.as_ref()?.by_rank();
        let local = counts.remove(&self.rank()).unwrap_or_default();
        let conduit = self.inner.conduit();
        let peers = counts.into_iter().map(|(rank, traffic)| (rank, (conduit.topology().node(rank), traffic))).collect();
        let (most_in_flight, connections) = (self.inner.engine.most_in_flight(), conduit.connections());
        Some(Stats { local, peers, most_in_flight, connections })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stats(peers: &[(usize, usize, u64)]) -> Stats {
        let traffic = |operations| Traffic { put: Tally { operations, bytes: 8 * operations }, ..Traffic::default() };
        let peers = peers.iter().map(|&(rank, node, operations)| (rank, (node, traffic(operations)))).collect();
        Stats { local: traffic(1), peers, most_in_flight: 3, connections: None }
    }

    #[test]
    fn a_phase_knows_only_whom_it_reached() {
        let (before, after) = (stats(&[(1, 0, 4), (5, 2, 1)]), stats(&[(1, 0, 4), (5, 2, 3), (6, 2, 7)]));
        let phase = after.since(&before);
        assert_eq!(phase.peers().map(|(rank, traffic)| (rank, traffic.put.operations)).collect::<Vec<_>>(), [(5, 2), (6, 7)]);
        assert_eq!((phase.distinct_peers(), phase.distinct_nodes()), (2, 1));
        assert_eq!(phase.remote().total(), Tally { operations: 9, bytes: 72 });
        assert_eq!(phase.local().total(), Tally::default());
        assert_eq!((after.distinct_peers(), after.distinct_nodes(), after.most_in_flight()), (3, 2, 3));
    }
}
