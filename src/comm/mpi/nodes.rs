//! Which rank runs on which node.
//!
//! Where all nodes hold equally many consecutive ranks, as launchers place them by default, that is one division and no memory.
//! Any other placement is a table.

use std::{collections::HashMap, hash::Hash};

/// The placement of a job's ranks. Nodes are numbered in the order of their lowest ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Nodes {
    /// Rank `r` on node `r / per_node`.
    Blocks { ranks: usize, per_node: usize },
    /// Node and number inside it, of each rank.
    Table(Vec<(u32, u32)>),
}

impl Nodes {
    /// From what names each rank's node.
    pub(super) fn new<N: Copy + Eq + Hash>(names: &[N]) -> Self {
        let mut known: HashMap<N, u32> = HashMap::new();
        let mut sizes: Vec<u32> = Vec::new();
        let mut table = Vec::with_capacity(names.len());
        for &name in names {
            let node = *known.entry(name).or_insert(sizes.len() as u32);
            if node as usize == sizes.len() {
                sizes.push(0);
            }
            table.push((node, sizes[node as usize]));
            sizes[node as usize] += 1;
        }
        let per_node = sizes.first().map_or(1, |&size| size as usize);
        let blocks = table.iter().enumerate().all(|(rank, &(node, _))| node as usize == rank / per_node);
        if blocks { Nodes::Blocks { ranks: names.len(), per_node } } else { Nodes::Table(table) }
    }

    /// The same with at most `most` consecutive ranks of a node in each.
    pub(super) fn split(&self, ranks: usize, most: usize) -> Self {
        let names: Vec<_> = (0..ranks).map(|rank| (self.node(rank), self.local(rank) / most)).collect();
        Nodes::new(&names)
    }

    /// Node of a rank.
    #[inline]
    pub(super) fn node(&self, rank: usize) -> usize {
        match self {
            Nodes::Blocks { per_node, .. } => rank / per_node,
            Nodes::Table(table) => table[rank].0 as usize,
        }
    }

    /// Number of a rank inside its node.
    #[inline]
    pub(super) fn local(&self, rank: usize) -> usize {
        match self {
            Nodes::Blocks { per_node, .. } => rank % per_node,
            Nodes::Table(table) => table[rank].1 as usize,
        }
    }

    /// One rank of each node, the lowest.
    pub(super) fn leaders(&self) -> Vec<usize> {
        match self {
            Nodes::Blocks { ranks, per_node } => (0..*ranks).step_by(*per_node).collect(),
            Nodes::Table(table) => (0..table.len()).filter(|&rank| table[rank].1 == 0).collect(),
        }
    }

    /// The ranks of a node, ascending.
    pub(super) fn ranks_of(&self, node: usize) -> Vec<usize> {
        match self {
            Nodes::Blocks { ranks, per_node } => (node * per_node..((node + 1) * per_node).min(*ranks)).collect(),
            Nodes::Table(table) => (0..table.len()).filter(|&rank| table[rank].0 as usize == node).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(lowest: &[u32], nodes: &[(usize, usize)]) -> Nodes {
        let made = Nodes::new(lowest);
        let found: Vec<_> = (0..lowest.len()).map(|rank| (made.node(rank), made.local(rank))).collect();
        assert_eq!(found, nodes);
        for node in 0..made.leaders().len() {
            assert_eq!(made.ranks_of(node), (0..nodes.len()).filter(|&rank| nodes[rank].0 == node).collect::<Vec<_>>());
            assert_eq!(made.leaders()[node], made.ranks_of(node)[0]);
        }
        made
    }

    #[test]
    fn equal_consecutive_nodes_need_no_table() {
        let made = check(&[0, 0, 2, 2, 4], &[(0, 0), (0, 1), (1, 0), (1, 1), (2, 0)]);
        assert_eq!(made, Nodes::Blocks { ranks: 5, per_node: 2 });
        assert!(matches!(check(&[0], &[(0, 0)]), Nodes::Blocks { .. }));
    }

    #[test]
    fn nodes_are_split() {
        assert_eq!(Nodes::new(&[0, 0, 0, 0, 0]).split(5, 2), Nodes::Blocks { ranks: 5, per_node: 2 });
        assert_eq!(Nodes::new(&[0, 1, 0, 1, 0, 1]).split(6, 2), Nodes::new(&[0, 1, 0, 1, 4, 5]));
    }

    #[test]
    fn any_placement_is_found_again() {
        assert!(matches!(check(&[0, 1, 0, 1], &[(0, 0), (1, 0), (0, 1), (1, 1)]), Nodes::Table(_)));
        assert!(matches!(check(&[0, 1, 1], &[(0, 0), (1, 0), (1, 1)]), Nodes::Table(_)));
    }
}
