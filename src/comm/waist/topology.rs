//! Where the ranks of a job are.
//!
//! A *machine* shares memory and processors. A *node* is a machine, or a part of one that `GA_RANKS_PER_NODE` cuts out to try a
//! network. Only ranks of one node see each other's memory.
//!
//! If all machines hold equally many consecutive ranks, a rank's place is one division. Any other placement is a table, one for
//! ranks that share memory.

use std::{
    collections::HashMap,
    fmt,
    hash::Hash,
    ops::{Deref, Range},
    sync::Arc,
};

/// Where the ranks of a job are, as one of them sees it. Machines and nodes are numbered from 0 in the order of their lowest ranks.
#[derive(Clone, Debug)]
pub(crate) struct Topology {
    rank: usize,
    size: usize,
    machines: Placement,
    nodes: Placement,
    /// Of this rank; every operation asks for them.
    machine: usize,
    node: usize,
    /// No rank sees any memory, not even its own.
    hidden: bool,
}

impl Topology {
    /// Of a job whose ranks are all on one machine, seen by one of them.
    pub(crate) fn one_machine(rank: usize, size: usize) -> Self {
        let all = Placement::Blocks { ranks: size, each: size };
        Topology { rank, size, machines: all.clone(), nodes: all, machine: 0, node: 0, hidden: false }
    }

    /// From what names each rank's machine.
    pub(crate) fn of_machines<N: Copy + Eq + Hash>(rank: usize, names: &[N]) -> Self {
        let machines = Placement::new(names);
        let machine = machines.part(rank);
        Topology { rank, size: names.len(), nodes: machines.clone(), machines, machine, node: machine, hidden: false }
    }

    /// The same with at most `most` consecutive ranks of a machine in each node.
    pub(crate) fn with_ranks_per_node(self, most: usize) -> Self {
        let nodes = self.machines.split(self.size, most);
        Topology { node: nodes.part(self.rank), nodes, ..self }
    }

    /// The same with all memory hidden: every operation takes the network.
    pub(crate) fn with_hidden_memory(self) -> Self {
        Topology { hidden: true, ..self }
    }

    /// The tables that it needs, one behind the other: none, one, or two.
    pub(crate) fn tables(&self) -> Vec<Spot> {
        let both = [&self.machines, &self.nodes];
        let both = if self.machines == self.nodes { &both[..1] } else { &both[..] };
        both.iter().filter_map(|placement| placement.table()).flat_map(|table| table.iter().copied()).collect()
    }

    /// The same with its [`tables`](Self::tables) at the beginning of some memory.
    pub(crate) fn with_tables(self, spots: &Spots) -> Self {
        let mut begin = 0;
        let mut moved = |placement: &Placement| match placement {
            Placement::Table(table) => {
                let range = begin..begin + table.len();
                begin = range.end;
                Placement::Table(Table { spots: spots.clone(), range })
            }
            blocks => blocks.clone(),
        };
        let machines = moved(&self.machines);
        let nodes = if self.machines == self.nodes { machines.clone() } else { moved(&self.nodes) };
        Topology { machines, nodes, ..self }
    }

    /// The rank that sees it so.
    #[inline]
    pub(crate) fn rank(&self) -> usize {
        self.rank
    }

    /// Number of ranks.
    #[inline]
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// The node of a rank.
    #[inline]
    pub(crate) fn node(&self, rank: usize) -> usize {
        self.nodes.part(rank)
    }

    /// The machine of a rank.
    #[inline]
    pub(crate) fn machine(&self, rank: usize) -> usize {
        self.machines.part(rank)
    }

    /// The number of machines.
    pub(crate) fn machines(&self) -> usize {
        self.machines.parts(self.size)
    }

    /// The lowest rank of a machine.
    pub(crate) fn first_of_machine(&self, machine: usize) -> usize {
        self.machines.first_of(machine)
    }

    /// Returns true if a rank is on this one's machine.
    pub(crate) fn is_near(&self, rank: usize) -> bool {
        self.machine(rank) == self.machine
    }

    /// Returns true if a rank is on this one's node.
    pub(crate) fn is_here(&self, rank: usize) -> bool {
        self.node(rank) == self.node
    }

    /// Returns true if this rank sees the memory of another.
    pub(crate) fn is_mapped(&self, rank: usize) -> bool {
        !self.hidden && self.is_here(rank)
    }

    /// The ranks whose memory this rank sees, where every node has equally many consecutive ones.
    pub(crate) fn mapped_ranks(&self) -> Option<Range<usize>> {
        if self.hidden { Some(0..0) } else { self.nodes.interval(self.node) }
    }

    /// The number of consecutive ranks that each node has, but for the last; none where the nodes differ.
    pub(crate) fn ranks_of_each_node(&self) -> Option<usize> {
        self.nodes.each()
    }

    /// The ranks of this one's node, as [`mapped_ranks`](Self::mapped_ranks).
    pub(crate) fn node_ranks(&self) -> Option<Range<usize>> {
        self.nodes.interval(self.node)
    }

    /// The ranks of this one's machine, as [`mapped_ranks`](Self::mapped_ranks).
    pub(crate) fn near_ranks(&self) -> Option<Range<usize>> {
        self.machines.interval(self.machine)
    }

    /// Returns true if every rank sees the memory of all.
    pub(crate) fn is_all_mapped(&self) -> bool {
        !self.hidden && self.nodes.is_one_part(self.size)
    }

    /// The number of a rank of this one's machine among those of the machine.
    #[inline]
    pub(crate) fn local(&self, rank: usize) -> usize {
        debug_assert!(self.is_near(rank), "rank {rank} is on another machine than {}", self.rank);
        self.machines.number(rank)
    }

    /// The rank with a number among those of this one's machine.
    pub(crate) fn nth_of_machine(&self, local: usize) -> usize {
        self.near_ranks().map_or_else(|| self.machine_ranks()[local], |ranks| ranks.start + local)
    }

    /// The ranks of a machine, ascending.
    pub(crate) fn ranks_of_machine(&self, machine: usize) -> Vec<usize> {
        self.machines.ranks_of(machine)
    }

    /// The ranks of this one's machine, ascending.
    pub(crate) fn machine_ranks(&self) -> Vec<usize> {
        self.machines.ranks_of(self.machine)
    }

    /// The lowest rank of a rank's node, and the number of the rank among those of the node. By a search where nodes are a table.
    pub(crate) fn first_and_number(&self, rank: usize) -> (usize, usize) {
        (self.nodes.first_of(self.node(rank)), self.nodes.number(rank))
    }

    /// The number of ranks of this one's node.
    pub(crate) fn ranks_here(&self) -> usize {
        self.node_ranks().map_or_else(|| self.nodes.ranks_of(self.node).len(), |ranks| ranks.len())
    }

    /// Returns true if no rank sees any memory.
    pub(crate) fn is_hidden(&self) -> bool {
        self.hidden
    }

    /// Returns true if a rank can answer for its node, as the lowest one that sees its memory. Where no rank sees it, each
    /// answers for itself.
    pub(crate) fn is_agent(&self, rank: usize) -> bool {
        self.hidden || self.nodes.number(rank) == 0
    }

    /// One rank of each node, the lowest.
    pub(crate) fn leaders(&self) -> Vec<usize> {
        self.nodes.leaders()
    }
}

/// A rank's part and its number inside it.
pub(crate) type Spot = [u32; 2];

/// Where a table may lie.
pub(crate) type Spots = Arc<dyn AsRef<[Spot]> + Send + Sync>;

/// Ranks in numbered parts.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Placement {
    /// Rank `r` in part `r / each`.
    Blocks {
        ranks: usize,
        each: usize,
    },
    Table(Table),
}

/// The spot of each rank, in a part of some memory.
#[derive(Clone)]
struct Table {
    spots: Spots,
    range: Range<usize>,
}

impl Deref for Table {
    type Target = [Spot];

    fn deref(&self) -> &[Spot] {
        &(*self.spots).as_ref()[self.range.clone()]
    }
}

impl PartialEq for Table {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Table {}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl Placement {
    /// From what names each rank's part.
    fn new<N: Copy + Eq + Hash>(names: &[N]) -> Self {
        let mut known: HashMap<N, u32> = HashMap::new();
        let mut sizes: Vec<u32> = Vec::new();
        let mut table = Vec::with_capacity(names.len());
        for &name in names {
            let part = *known.entry(name).or_insert(sizes.len() as u32);
            if part as usize == sizes.len() {
                sizes.push(0);
            }
            table.push([part, sizes[part as usize]]);
            sizes[part as usize] += 1;
        }
        let each = sizes.first().map_or(1, |&size| size as usize);
        let blocks = table.iter().enumerate().all(|(rank, &[part, _])| part as usize == rank / each);
        if blocks {
            return Placement::Blocks { ranks: names.len(), each };
        }
        Placement::Table(Table { range: 0..table.len(), spots: Arc::new(table) })
    }

    /// The same with at most `most` consecutive ranks of a part in each.
    fn split(&self, ranks: usize, most: usize) -> Self {
        if let &Placement::Blocks { ranks, each } = self
            && (each >= ranks || most >= each || each.is_multiple_of(most))
        {
            return Placement::Blocks { ranks, each: each.min(most) };
        }
        let names: Vec<_> = (0..ranks).map(|rank| (self.part(rank), self.number(rank) / most)).collect();
        Placement::new(&names)
    }

    /// Part of a rank.
    #[inline]
    fn part(&self, rank: usize) -> usize {
        match self {
            // Mostly all are in one part.
            Placement::Blocks { each, .. } if rank < *each => 0,
            Placement::Blocks { each, .. } => rank / each,
            Placement::Table(table) => table[rank][0] as usize,
        }
    }

    /// Number of a rank inside its part.
    #[inline]
    fn number(&self, rank: usize) -> usize {
        match self {
            Placement::Blocks { each, .. } if rank < *each => rank,
            Placement::Blocks { each, .. } => rank % each,
            Placement::Table(table) => table[rank][1] as usize,
        }
    }

    /// Returns true if all ranks are in one part.
    fn is_one_part(&self, size: usize) -> bool {
        match self {
            Placement::Blocks { each, .. } => *each >= size,
            Placement::Table(table) => table.iter().all(|&[part, _]| part == 0),
        }
    }

    /// One rank of each part, the lowest.
    fn leaders(&self) -> Vec<usize> {
        match self {
            Placement::Blocks { ranks, each } => (0..*ranks).step_by(*each).collect(),
            Placement::Table(table) => (0..table.len()).filter(|&rank| table[rank][1] == 0).collect(),
        }
    }

    /// The number of consecutive ranks that each part has, but for the last; none where the parts differ.
    fn each(&self) -> Option<usize> {
        match self {
            Placement::Blocks { each, .. } => Some(*each),
            Placement::Table(_) => None,
        }
    }

    fn table(&self) -> Option<&Table> {
        match self {
            Placement::Blocks { .. } => None,
            Placement::Table(table) => Some(table),
        }
    }

    /// The ranks of a part, where each has equally many consecutive ones.
    fn interval(&self, part: usize) -> Option<Range<usize>> {
        match self {
            Placement::Blocks { ranks, each } => Some(part * each..((part + 1) * each).min(*ranks)),
            Placement::Table(_) => None,
        }
    }

    /// Number of parts.
    fn parts(&self, size: usize) -> usize {
        match self {
            Placement::Blocks { each, .. } => size.div_ceil((*each).max(1)),
            Placement::Table(table) => table.iter().map(|&[part, _]| part as usize + 1).max().unwrap_or(0),
        }
    }

    /// The lowest rank of a part.
    fn first_of(&self, part: usize) -> usize {
        match self {
            Placement::Blocks { each, .. } => part * each,
            Placement::Table(table) => table.iter().position(|&[of, _]| of as usize == part).unwrap_or(0),
        }
    }

    /// The ranks of a part, ascending.
    fn ranks_of(&self, part: usize) -> Vec<usize> {
        match self {
            Placement::Blocks { .. } => self.interval(part).into_iter().flatten().collect(),
            Placement::Table(table) => (0..table.len()).filter(|&rank| table[rank][0] as usize == part).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(lowest: &[u32], parts: &[(usize, usize)]) -> Placement {
        let made = Placement::new(lowest);
        let found: Vec<_> = (0..lowest.len()).map(|rank| (made.part(rank), made.number(rank))).collect();
        assert_eq!(found, parts);
        for part in 0..made.leaders().len() {
            assert_eq!(made.ranks_of(part), (0..parts.len()).filter(|&rank| parts[rank].0 == part).collect::<Vec<_>>());
            assert_eq!(made.leaders()[part], made.ranks_of(part)[0]);
            assert_eq!(made.first_of(part), made.ranks_of(part)[0]);
            assert!(made.interval(part).is_none_or(|ranks| ranks.eq(made.ranks_of(part))));
        }
        assert_eq!(made.parts(lowest.len()), made.leaders().len());
        assert_eq!(made.is_one_part(lowest.len()), made.leaders().len() == 1);
        made
    }

    #[test]
    fn equal_consecutive_parts_need_no_table() {
        let made = check(&[0, 0, 2, 2, 4], &[(0, 0), (0, 1), (1, 0), (1, 1), (2, 0)]);
        assert_eq!(made, Placement::Blocks { ranks: 5, each: 2 });
        assert!(matches!(check(&[0], &[(0, 0)]), Placement::Blocks { .. }));
        assert!(matches!(check(&[7, 7, 7], &[(0, 0), (0, 1), (0, 2)]), Placement::Blocks { .. }));
    }

    #[test]
    fn parts_are_split() {
        assert_eq!(Placement::new(&[0, 0, 0, 0, 0]).split(5, 2), Placement::Blocks { ranks: 5, each: 2 });
        assert_eq!(Placement::new(&[0, 1, 0, 1, 0, 1]).split(6, 2), Placement::new(&[0, 1, 0, 1, 4, 5]));
        assert_eq!(Placement::new(&[0, 0, 0]).split(3, usize::MAX), Placement::Blocks { ranks: 3, each: 3 });
        assert_eq!(Placement::new(&[0, 0, 0, 0, 1, 1, 1, 1]).split(8, 2), Placement::Blocks { ranks: 8, each: 2 });
        assert_eq!(Placement::new(&[0, 0, 0, 1, 1, 1]).split(6, 2), Placement::new(&[0, 0, 2, 3, 3, 5]));
    }

    #[test]
    fn any_placement_is_found_again() {
        assert!(matches!(check(&[0, 1, 0, 1], &[(0, 0), (1, 0), (0, 1), (1, 1)]), Placement::Table(_)));
        assert!(matches!(check(&[0, 1, 1], &[(0, 0), (1, 0), (1, 1)]), Placement::Table(_)));
    }

    #[test]
    fn tables_may_lie_anywhere() {
        for (names, most) in [(&[0, 1, 0, 1, 1][..], 9), (&[0, 1, 0, 1, 0], 2), (&[0, 0, 0, 1, 1, 1], 2), (&[3, 3, 4, 4], 1)] {
            let own = Topology::of_machines(1, names).with_ranks_per_node(most);
            let mut memory = own.tables();
            memory.push([77, 77]);
            let moved = own.clone().with_tables(&(Arc::new(memory) as Spots));
            assert_eq!((&moved.machines, &moved.nodes), (&own.machines, &own.nodes), "{names:?}");
            let is_moved =
                |placement: &Placement| placement.table().is_none_or(|table| table.spots.as_ref().as_ref().len() > table.len());
            assert!(is_moved(&moved.machines) && is_moved(&moved.nodes));
        }
    }

    #[test]
    fn a_rank_sees_its_node_unless_memory_is_hidden() {
        let whole = Topology::one_machine(2, 5);
        assert!(whole.is_all_mapped() && whole.is_mapped(0));
        let split = whole.clone().with_ranks_per_node(2);
        assert_eq!([0, 1, 2, 3, 4].map(|rank| split.is_mapped(rank)), [false, false, true, true, false]);
        assert!(!split.is_all_mapped() && split.is_near(0) && split.local(4) == 4);
        assert_eq!((split.mapped_ranks(), split.node_ranks(), split.near_ranks()), (Some(2..4), Some(2..4), Some(0..5)));
        let hidden = whole.with_hidden_memory();
        assert!(!hidden.is_mapped(2) && hidden.is_here(4) && !hidden.is_all_mapped());
        assert_eq!((hidden.mapped_ranks(), hidden.node_ranks()), (Some(0..0), Some(0..5)));
    }
}
