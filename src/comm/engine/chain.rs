//! Follows chains of waits: which rank waits for which, by what ranks publish.

use std::collections::HashSet;

use crate::comm::{Conduit, PublishedWait, node::TOLD};

/// Follows a chain of waits.
struct Chain<'c> {
    conduit: &'c Conduit,
    /// How far behind the last rank asked the next one is, in ranks. An answer also describes ranks behind the one that gives it.
    hops: usize,
}

impl<'c> Chain<'c> {
    fn new(conduit: &'c Conduit) -> Self {
        Chain { conduit, hops: 0 }
    }

    /// What the next rank waits for.
    fn next(&mut self, rank: usize) -> Option<PublishedWait> {
        let wait = self.conduit.supervision().published_wait(rank, self.hops);
        // A rank of this machine is not asked.
        let is_asked = self.conduit.topology().is_near(rank) || self.hops == TOLD;
        self.hops = if is_asked { 0 } else { self.hops + 1 };
        wait
    }
}

/// The published waits from this rank back to itself.
pub(super) fn cycle(conduit: &Conduit) -> Option<Vec<(usize, PublishedWait)>> {
    let mut chain = Chain::new(conduit);
    let (mut rank, mut waits) = (conduit.rank(), Vec::new());
    // A rank of a cycle that this one is not in; Brent's way to find such a cycle without a list of ranks.
    let (mut mark, mut next_mark) = (None, 1);
    loop {
        let wait = chain.next(rank).filter(|wait| wait.awaited != rank)?;
        waits.push((rank, wait));
        rank = wait.awaited;
        if rank == conduit.rank() {
            return Some(waits);
        }
        if mark == Some(rank) {
            return None;
        }
        if waits.len() == next_mark {
            (mark, next_mark) = (Some(rank), 2 * next_mark);
        }
    }
}

/// The rank that a rank waits for in the end: the first on the way that waits for nobody, as far as is known.
pub(crate) fn end_of_chain(conduit: &Conduit, mut rank: usize) -> usize {
    let mut chain = Chain::new(conduit);
    for _ in 0..conduit.topology().size() {
        match chain.next(rank).filter(|wait| wait.awaited != rank) {
            Some(wait) => rank = wait.awaited,
            None => break,
        }
    }
    rank
}

/// Which of several awaited ranks to publish: one whose own wait leads to this rank, or one that waits at all, or the first. True
/// if its wait leads to this rank.
pub(crate) fn one_of(conduit: &Conduit, awaited: impl Iterator<Item = usize>) -> Option<(usize, bool)> {
    let mut visited = HashSet::new();
    let (mut any, mut first) = (None, None);
    for rank in awaited {
        any = any.or(Some(rank));
        let (mut at, mut chain) = (rank, Chain::new(conduit));
        while visited.insert(at) {
            let Some(wait) = chain.next(at) else { break };
            first = first.or((at == rank).then_some(rank));
            if wait.awaited == conduit.rank() {
                return Some((rank, true));
            }
            at = wait.awaited;
        }
    }
    first.or(any).map(|rank| (rank, false))
}
