//! Where the ranks of a job are reached.
//!
//! Every rank is an *endpoint*, which sends what the rank asks for and gets the answers. It answers others for itself, or, if the
//! wire says so, for all ranks of its node: then the lowest rank of each node is its *agent*, the data server of ARMCI (ARMCI-ODCM,
//! section II). It answers from the memory that the node shares, so a rank has one connection with each node that it needs, not
//! with each rank. A rank that shares its memory with nobody is its own agent.

use rustc_hash::FxHashMap;

use super::frame::MOST_RANKS;
use crate::comm::Topology;

/// How a rank is reached: an endpoint, and the number of the rank among those that it answers for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Route {
    pub(super) to: usize,
    pub(super) number: u16,
}

impl Route {
    /// An endpoint itself.
    pub(super) fn endpoint(rank: usize) -> Self {
        Route { to: rank, number: 0 }
    }
}

/// How this rank reaches the others.
#[derive(Debug)]
pub(super) struct Routes {
    topology: Topology,
    by_agents: bool,
    /// Routes that were searched for, where nodes are a table.
    found: FxHashMap<usize, Route>,
    /// The number of ranks that this endpoint answers for, from its own on.
    pub(super) answers_for: usize,
}

impl Routes {
    /// # Panics
    /// If a node has more ranks than an endpoint may answer for; see [`fits`].
    pub(super) fn new(topology: &Topology, by_agents: bool) -> Self {
        let by_agents = by_agents && !topology.is_hidden();
        let is_agent = by_agents && topology.is_agent(topology.rank());
        let answers_for = if is_agent { topology.ranks_here() } else { 1 };
        assert!(answers_for <= MOST_RANKS, "a node of {answers_for} ranks");
        Routes { topology: topology.clone(), by_agents, found: FxHashMap::default(), answers_for }
    }

    /// How a rank is reached.
    #[inline]
    pub(super) fn find(&mut self, rank: usize) -> Route {
        if !self.by_agents {
            return Route::endpoint(rank);
        }
        let search = |topology: &Topology| {
            let (to, number) = topology.first_and_number(rank);
            Route { to, number: number as u16 }
        };
        match self.topology.ranks_of_each_node() {
            Some(_) => search(&self.topology),
            None => *self.found.entry(rank).or_insert_with(|| search(&self.topology)),
        }
    }

    /// The agent of this rank: itself, or the lowest of its node.
    pub(super) fn agent(&mut self) -> usize {
        self.find(self.topology.rank()).to
    }
}

/// Checks that this rank's node has no more ranks than an agent may answer for. Passes also if no rank sees any memory.
///
/// # Errors
/// The number of ranks allowed.
pub(in crate::comm) fn fits(topology: &Topology) -> Result<(), usize> {
    if topology.is_hidden() || topology.ranks_here() <= MOST_RANKS { Ok(()) } else { Err(MOST_RANKS) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn routes(rank: usize, machines: &[usize], per_node: usize, by_agents: bool) -> Routes {
        Routes::new(&Topology::of_machines(rank, machines).with_ranks_per_node(per_node), by_agents)
    }

    fn all(mut routes: Routes, ranks: usize) -> Vec<(usize, u16)> {
        (0..ranks).map(|rank| routes.find(rank)).map(|route| (route.to, route.number)).collect()
    }

    #[test]
    fn the_lowest_rank_of_a_node_answers_for_it() {
        let blocks = [0, 0, 0, 0, 1, 1, 1];
        assert_eq!(all(routes(1, &blocks, 9, true), 7), [(0, 0), (0, 1), (0, 2), (0, 3), (4, 0), (4, 1), (4, 2)]);
        assert_eq!(all(routes(1, &blocks, 3, true), 7), [(0, 0), (0, 1), (0, 2), (3, 0), (4, 0), (4, 1), (4, 2)]);
        let in_turns = [0, 1, 0, 1, 0];
        assert_eq!(all(routes(3, &in_turns, 9, true), 5), [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2)]);
        let counts = |per_node| [0, 1, 2, 3, 4].map(|rank| routes(rank, &in_turns, per_node, true).answers_for);
        assert_eq!((counts(9), counts(2)), ([3, 2, 1, 1, 1], [2, 2, 1, 1, 1]));
        assert_eq!([4, 5].map(|rank| routes(rank, &blocks, 9, true).agent()), [4, 4]);
    }

    #[test]
    fn ranks_answer_for_themselves_over_other_wires_and_where_memory_is_hidden() {
        let names = [0, 0, 1];
        assert_eq!(all(routes(1, &names, 9, false), 3), [(0, 0), (1, 0), (2, 0)]);
        let hidden = Topology::of_machines(0, &names).with_hidden_memory();
        assert_eq!(all(Routes::new(&hidden, true), 3), [(0, 0), (1, 0), (2, 0)]);
        assert_eq!(Routes::new(&hidden, true).answers_for, 1);
    }
}
