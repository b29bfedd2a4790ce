//! Updates sorted by owner and handed over in buckets: channels, and no atomic operation at all.
//!
//! Each rank has a channel to each other rank. A round of a rank:
//!
//! 1. generate [`ROUND`] updates into a bucket for each owner;
//! 2. put each bucket, which waits until the one of two rounds before is applied there: a channel has two slots;
//! 3. apply the own bucket;
//! 4. for each other rank, wait for its bucket of the round *before*, and apply it in place.
//!
//! So a rank holds one round of its updates and two are under way at most, together not more than the 1024 that the rules allow; and while a
//! bucket travels its owner applies those before it. Nobody but its owner touches a word, in one epoch around all rounds: plain loads and
//! stores, many of them waiting for memory at once, and no error even where the rules would allow some.

use global_arrays::{
    channel::{Inlet, Outlet, from, to},
    epoch::OwnedPartMut,
    prelude::*,
};

use crate::{LOOK_AHEAD, stream, table::Table};

/// Updates of a round.
pub(crate) const ROUND: usize = LOOK_AHEAD / 3;

/// Updates between the one whose cache line is asked for and the one that is applied.
const AHEAD: usize = 64;

/// Where buckets go and come from, in the order of the ranks behind this one.
#[derive(Debug)]
pub(crate) struct Exchange<'j> {
    job: &'j Job,
    table: Table,
    outlets: Vec<Outlet<u64>>,
    inlets: Vec<Inlet<u64>>,
}

impl<'j> Exchange<'j> {
    /// Collective.
    pub(crate) fn new(job: &'j Job, table: Table) -> Result<Self, Error> {
        let others = || (1..job.size()).map(|step| (job.rank() + step) % job.size());
        let (outlets, inlets) = job.channels(
            others().map(|owner| to(owner, 0, ROUND)).collect::<Vec<_>>(),
            others().map(|sender| from(sender, 0)).collect::<Vec<_>>(),
        )?;
        Ok(Exchange { job, table, outlets, inlets })
    }

    /// Generates this rank's share of the updates and applies to `part`, which is this rank's, what all ranks generate for it. All
    /// ranks together.
    pub(crate) fn run(&mut self, mut part: OwnedPartMut<'_, u64, Ix1>, progress: impl Fn(u64)) -> Result<(), Error> {
        let (me, ranks, table) = (self.job.rank(), self.job.size(), self.table);
        let share = table.share(me);
        // All shares are equal but for one update, and every rank sends a bucket in every round.
        let rounds = table.updates().div_ceil(ranks as u64).div_ceil(ROUND as u64) as usize;
        let mut apply = |updates: &[u64]| apply(&mut part, table, me, updates);
        let mut buckets = vec![Vec::with_capacity(ROUND); ranks];
        let (mut a, mut left) = (stream::at(share.start), share.end - share.start);
        for round in 0..=rounds {
            if round < rounds {
                let count = left.min(ROUND as u64);
                left -= count;
                a = fill(&mut buckets, table, a, count as usize);
                for out in &mut self.outlets {
                    out.put(&buckets[out.member()])?;
                }
                apply(&buckets[me]);
                progress(count);
            }
            if round > 0 {
                for inlet in &mut self.inlets {
                    apply(&inlet.wait()?);
                }
            }
        }
        Ok(())
    }
}

/// Applies updates to the part of a rank.
pub(crate) fn apply(part: &mut OwnedPartMut<'_, u64, Ix1>, table: Table, rank: usize, updates: &[u64]) {
    let first = table.first(rank);
    let place = |a: u64| table.index(a).wrapping_sub(first);
    updates.iter().take(AHEAD).for_each(|&a| part.prefetch(place(a)));
    for (k, &a) in updates.iter().enumerate() {
        if let Some(&coming) = updates.get(k + AHEAD) {
            part.prefetch(place(coming));
        }
        part.as_mut_slice().expect("a table without ghost cells")[place(a)] ^= a;
    }
}

/// The next updates behind `a`, each in its owner's bucket; returns the last of them.
pub(crate) fn fill(buckets: &mut [Vec<u64>], table: Table, mut a: u64, count: usize) -> u64 {
    buckets.iter_mut().for_each(Vec::clear);
    for _ in 0..count {
        a = stream::next(a);
        buckets[table.owner(table.index(a))].push(a);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_hold_every_update_once_at_its_owner() {
        let table = Table { log2_size: 10, ranks: 3 };
        let mut buckets = vec![vec![9]; 3];
        let last = fill(&mut buckets, table, stream::at(40), 100);
        assert_eq!(last, stream::at(140));
        let mut all: Vec<u64> = Vec::new();
        for (owner, bucket) in buckets.iter().enumerate() {
            assert!(bucket.iter().all(|&a| table.owner(table.index(a)) == owner));
            all.extend(bucket);
        }
        let mut expected: Vec<u64> = (41..=140).map(stream::at).collect();
        all.sort_unstable();
        expected.sort_unstable();
        assert_eq!(all, expected);
    }
}
