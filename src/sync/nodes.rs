//! Which members of a group are on which node, as one member sees it.
//!
//! The first member on a node, in the group's order, is its *leader*. Nodes are numbered in the order of their leaders. A member knows the
//! members on its own node, and those leaders that it would exchange with if it were a leader. So its memory grows with the size of its
//! node and with the logarithm of the number of nodes.
//!
//! If nothing is mapped, each member is a separate node. If all members are on one node, they exchange without a leader.

use super::scratch::rounds;
use crate::comm::Conduit;

/// The place of a member among the nodes of its group.
#[derive(Debug)]
pub(super) struct Nodes {
    /// The members on this one's node; none for all of the group.
    here: Option<Box<[usize]>>,
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
    /// Of member `me` of `size`, whose ranks `rank_of` returns; `mapped` means that all are mapped.
    pub(super) fn new(conduit: &dyn Conduit, size: usize, me: usize, mapped: bool, rank_of: impl Fn(usize) -> usize) -> Self {
        let one = mapped;
        let apart = conduit.mapped(conduit.rank()).is_none();
        let node = |member: usize| conduit.topology().node(rank_of(member));
        // The members that exchange, and of them this one or its leader.
        let (leaders, here): (Vec<usize>, Option<Box<[usize]>>) = if one {
            ((0..size).collect(), None)
        } else if apart {
            ((0..size).collect(), Some([me].into()))
        } else {
            let mut seen = vec![false; conduit.size()];
            let first = (0..size).filter(|&member| !std::mem::replace(&mut seen[node(member)], true)).collect();
            (first, Some((0..size).filter(|&member| node(member) == node(me)).collect()))
        };
        let leader = here.as_ref().map_or(me, |here| here[0]);
        let exchanger = leaders.iter().position(|&member| member == leader).expect("a leader is one of them");
        let exchangers = leaders.len();
        let rounds = rounds(exchangers);
        let mut partners: Vec<usize> = (0..rounds).map(|round| exchanger ^ 1 << round).collect();
        partners.push(if exchanger < 1 << rounds { exchanger + (1 << rounds) } else { exchanger - (1 << rounds) });
        // Who is beyond the largest power of two meets nobody in rounds.
        let partners = partners.into_iter().map(|at| leaders.get(at).copied().unwrap_or(NOBODY)).collect();
        let count = if one { 1 } else { exchangers };
        let ahead = (0..usize::BITS).map(|k| 1 << k).take_while(|&far| far < count);
        let ahead = ahead.map(|far| leaders[(exchanger + far) % count]).collect();
        let position = here.as_ref().map_or(me, |here| here.iter().position(|&member| member == me).expect("it is here"));
        Nodes { here, position, count, number: if one { 0 } else { exchanger }, exchangers, exchanger, partners, ahead }
    }

    /// The members of this node that have a leader among other leaders; `None` where each exchanges for itself.
    #[inline]
    pub(super) fn led(&self) -> Option<&[usize]> {
        self.here.as_deref().filter(|here| here.len() > 1)
    }

    /// How many members of a group of `size` are on this node.
    pub(super) fn near(&self, size: usize) -> usize {
        self.here.as_ref().map_or(size, |here| here.len())
    }

    /// The member at a place of this node.
    pub(super) fn member(&self, position: usize) -> usize {
        self.here.as_ref().map_or(position, |here| here[position])
    }

    /// The place of a member, if it is on this node.
    pub(super) fn place(&self, member: usize) -> Option<usize> {
        self.here.as_ref().map_or(Some(member), |here| here.iter().position(|&other| other == member))
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

/// In the place of a partner that does not exist; no member has this number.
const NOBODY: usize = usize::MAX;
