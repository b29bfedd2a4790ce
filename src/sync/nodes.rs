//! Which members of a group are on which node, as one member sees it.
//!
//! The first member on a node, in the group's order, is its *leader*. A member knows the members on its own node, and the leaders that
//! its leader exchanges with. So its memory grows with the size of its node and the logarithm of the number of nodes; where ranks are
//! equally spaced and nodes equally large, only with the latter.
//!
//! If nothing is mapped, each member is a node. If all are on one node, they exchange without a leader.

use super::{
    members::{Members, Part, first_of},
    scratch::rounds,
};
use crate::comm::{Conduit, Topology};
use std::collections::HashSet;

/// The place of a member among the nodes of its group.
#[derive(Debug)]
pub(super) struct Nodes {
    /// The members on this one's node; none for all of the group.
    here: Option<Part>,
    /// This member's place among them.
    pub(super) position: usize,
    /// How many nodes there are.
    pub(super) count: usize,
    /// This node's number.
    pub(super) number: usize,
    /// How many exchange by recursive doubling: the leaders, or all members of the only node.
    pub(super) exchangers: usize,
    /// This member's number among them, or its leader's.
    pub(super) exchanger: usize,
    /// The members that are exchanged with in each round, then the one that this one folds with.
    partners: Box<[usize]>,
    /// The leaders 1, 2, 4 ... nodes further, round and round.
    ahead: Box<[usize]>,
}

impl Nodes {
    /// Of member `me`; `mapped` means that all are mapped.
    pub(super) fn new(conduit: &Conduit, members: &Members, me: usize, mapped: bool) -> Self {
        let (topology, size, one) = (conduit.topology(), members.len(), mapped);
        let apart = conduit.mapped_segment(conduit.rank()).is_none();
        // The members that exchange, and of them this one or its leader.
        let (leaders, here) = if one {
            (Leaders::All(size), None)
        } else if apart {
            (Leaders::All(size), Some(Part::Interval(me..me + 1)))
        } else {
            let is_here = |rank| topology.is_here(rank);
            (Leaders::new(topology, members), Some(members.part(topology.node_ranks(), is_here)))
        };
        let exchanger = leaders.number(here.as_ref().map_or(me, |here| here.member(0)));
        let exchangers = leaders.count();
        let rounds = rounds(exchangers);
        let mut partners: Vec<usize> = (0..rounds).map(|round| exchanger ^ 1 << round).collect();
        partners.push(if exchanger < 1 << rounds { exchanger + (1 << rounds) } else { exchanger - (1 << rounds) });
        // Who is beyond the largest power of two meets nobody in rounds.
        let partner = |at: usize| if at < exchangers { leaders.member(at) } else { NOBODY };
        let partners = partners.into_iter().map(partner).collect();
        let count = if one { 1 } else { exchangers };
        let ahead = (0..usize::BITS).map(|k| 1 << k).take_while(|&far| far < count);
        let ahead = ahead.map(|far| leaders.member((exchanger + far) % count)).collect();
        let position = here.as_ref().map_or(me, |here| here.place(me).expect("it is here"));
        Nodes { here, position, count, number: if one { 0 } else { exchanger }, exchangers, exchanger, partners, ahead }
    }

    /// The members of this node that have a leader among other leaders; `None` where each exchanges for itself.
    #[inline]
    pub(super) fn led(&self) -> Option<&Part> {
        self.here.as_ref().filter(|here| here.len() > 1)
    }

    /// How many members of a group of `size` are on this node.
    pub(super) fn near(&self, size: usize) -> usize {
        self.here.as_ref().map_or(size, Part::len)
    }

    /// The member at a place of this node.
    pub(super) fn member(&self, position: usize) -> usize {
        self.here.as_ref().map_or(position, |here| here.member(position))
    }

    /// The place of a member, if it is on this node.
    pub(super) fn place(&self, member: usize) -> Option<usize> {
        self.here.as_ref().map_or(Some(member), |here| here.place(member))
    }

    /// The member that this one exchanges with in a round of recursive doubling.
    #[inline]
    pub(super) fn partner(&self, round: usize) -> usize {
        self.partners[round]
    }

    /// The leader of the node `1 << level` nodes further.
    pub(super) fn ahead(&self, level: usize) -> usize {
        self.ahead[level]
    }
}

/// The leaders of a group's nodes, in its order.
enum Leaders<'a> {
    /// So many members, each of whom exchanges for itself.
    All(usize),
    /// The first member on each node, where members are equally spaced ranks, none so far from the next that a node is left out, and
    /// nodes are equally large.
    Evenly {
        members: &'a Members,
        each: usize,
    },
    Some(Vec<usize>),
}

impl<'a> Leaders<'a> {
    fn new(topology: &Topology, members: &'a Members) -> Self {
        match (members, topology.ranks_of_each_node()) {
            (Members::Range { stride, .. }, Some(each)) if stride.unsigned_abs() <= each => Leaders::Evenly { members, each },
            (Members::Range { len, .. }, Some(_)) => Leaders::All(*len),
            _ => {
                let mut seen = HashSet::new();
                let node = |member: &usize| topology.node(members.rank(*member));
                Leaders::Some((0..members.len()).filter(|member| seen.insert(node(member))).collect())
            }
        }
    }

    /// How many nodes a member is away from the first.
    fn far(members: &Members, each: usize, member: usize) -> usize {
        (members.rank(member) / each).abs_diff(members.rank(0) / each)
    }

    fn count(&self) -> usize {
        match self {
            Leaders::All(count) => *count,
            Leaders::Evenly { members, each } => Self::far(members, *each, members.len() - 1) + 1,
            Leaders::Some(leaders) => leaders.len(),
        }
    }

    fn member(&self, number: usize) -> usize {
        match self {
            Leaders::All(_) => number,
            Leaders::Evenly { members, each } => first_of(members.len(), |member| Self::far(members, *each, member) >= number),
            Leaders::Some(leaders) => leaders[number],
        }
    }

    /// The number of one of them.
    fn number(&self, leader: usize) -> usize {
        match self {
            Leaders::All(_) => leader,
            Leaders::Evenly { members, each } => Self::far(members, *each, leader),
            Leaders::Some(leaders) => leaders.binary_search(&leader).expect("a leader is one of them"),
        }
    }
}

/// In the place of a partner that does not exist; no member has this number.
const NOBODY: usize = usize::MAX;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaders_are_the_first_members_on_their_nodes() {
        const RANKS: usize = 13;
        let irregular = Topology::of_machines(0, &[0, 1, 0, 2, 2, 1, 0, 3, 3, 3, 4, 4, 0]);
        let regular = (1..=RANKS).map(|each| Topology::one_machine(0, RANKS).with_ranks_per_node(each));
        for topology in regular.chain([irregular]) {
            for (first, stride) in (0..RANKS).flat_map(|first| (1..RANKS as isize).map(move |stride| (first, stride))) {
                for stride in [stride, -stride] {
                    let is_rank = |member: usize| (0..RANKS as isize).contains(&(first as isize + member as isize * stride));
                    let len = (0..RANKS).take_while(|&member| is_rank(member)).count();
                    let members = Members::all(RANKS).every(first, stride, len, |_| unreachable!("a range"));
                    let node = |member: usize| topology.node(members.rank(member));
                    let expected: Vec<usize> = (0..len).filter(|&m| (0..m).all(|before| node(before) != node(m))).collect();
                    let leaders = Leaders::new(&topology, &members);
                    let found: Vec<usize> = (0..leaders.count()).map(|number| leaders.member(number)).collect();
                    assert_eq!(found, expected, "{members:?} on {topology:?}");
                    expected.iter().enumerate().for_each(|(number, &leader)| assert_eq!(leaders.number(leader), number));
                }
            }
        }
    }
}
