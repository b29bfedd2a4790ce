//! Updates sorted by owner and handed over in buckets: puts with signals, and no atomic operation at all.
//!
//! Each rank has a *box* for each other rank, with two slots in turn. A round of a rank:
//!
//! 1. wait until its buckets of two rounds before are applied everywhere;
//! 2. generate [`ROUND`] updates into a bucket for each owner;
//! 3. put each bucket into the owner's slot for this round, and raise the owner's signal;
//! 4. apply the own bucket;
//! 5. for each other rank, wait for its bucket of the round *before*, apply it and say so.
//!
//! So two rounds of a rank's updates are under way at most, 1024, which is what the rules allow; and while a bucket travels its
//! owner applies those before it. Nobody but its owner touches a word, in one epoch around all rounds: plain loads and stores, many
//! of them waiting for memory at once, and no error even where the rules would allow some.
//!
//! | signal | raised by | at | index | counts |
//! |---|---|---|---|---|
//! | bucket there | its sender, with the put | its owner | the sender | rounds |
//! | bucket applied | its owner | its sender | ranks + the owner | rounds |

use global_arrays::{epoch::OwnedPartMut, prelude::*};

use crate::{LOOK_AHEAD, stream, table::Table};

/// Updates of a round.
const ROUND: usize = LOOK_AHEAD / 2;
/// Words of a slot: how many updates there are, and they.
const SLOT: usize = 1 + ROUND;

/// Updates between the one whose cache line is asked for and the one that is applied.
const AHEAD: usize = 64;

/// Where buckets go and come from.
#[derive(Debug)]
pub(crate) struct Exchange<'j> {
    job: &'j Job,
    table: Table,
    boxes: GlobalArray<u64, Ix1>,
    signal: Signal,
}

impl<'j> Exchange<'j> {
    /// Collective.
    pub(crate) fn new(job: &'j Job, table: Table) -> Result<Self, Error> {
        let ranks = job.size();
        let boxes = GlobalArray::builder(job, [ranks * 2 * ranks * SLOT]).name("buckets").create()?;
        Ok(Exchange { job, table, boxes, signal: Signal::with_count(job, 2 * ranks)? })
    }

    /// The slot at `owner` for what `sender` generates in a round.
    fn slot(&self, owner: usize, round: usize, sender: usize) -> usize {
        ((owner * 2 + round % 2) * self.job.size() + sender) * SLOT
    }

    /// Generates this rank's share of the updates and applies to `part`, which is this rank's, what all ranks generate for it. All
    /// ranks together.
    pub(crate) fn run(&self, mut part: OwnedPartMut<'_, u64, Ix1>, progress: impl Fn(u64)) -> Result<(), Error> {
        let (me, ranks, first) = (self.job.rank(), self.job.size(), self.table.first(self.job.rank()));
        let share = self.table.share(me);
        // All shares are equal but for one update, and every rank sends a bucket in every round.
        let rounds = self.table.updates().div_ceil(ranks as u64).div_ceil(ROUND as u64) as usize;
        let others = || (1..ranks).map(move |step| (me + step) % ranks);
        let mut apply = |updates: &[u64]| {
            let place = |a: u64| self.table.index(a).wrapping_sub(first);
            updates.iter().take(AHEAD).for_each(|&a| part.prefetch(place(a)));
            for (k, &a) in updates.iter().enumerate() {
                if let Some(&coming) = updates.get(k + AHEAD) {
                    part.prefetch(place(coming));
                }
                part.as_mut_slice().expect("a table without ghost cells")[place(a)] ^= a;
            }
        };
        let mut buckets = vec![[0; SLOT]; ranks];
        let mut arrived = [0; SLOT];
        let (mut a, mut left) = (stream::at(share.start), share.end - share.start);
        for round in 0..=rounds {
            if round < rounds {
                let before = round.saturating_sub(1);
                others().try_for_each(|owner| self.signal.wait_at_least(ranks + owner, before))?;
                let count = left.min(ROUND as u64);
                left -= count;
                a = fill(&mut buckets, self.table, a, count as usize);
                for owner in others() {
                    let bucket = &buckets[owner][..=buckets[owner][0] as usize];
                    let at = self.slot(owner, round, me);
                    self.boxes.put_signal(s![at..at + bucket.len()], bucket, self.signal.at(owner, me))?;
                }
                apply(updates(&buckets[me]));
                progress(count);
            }
            let Some(due) = round.checked_sub(1) else { continue };
            for sender in others() {
                self.signal.wait_at_least(sender, round)?;
                let at = self.slot(me, due, sender);
                let count = self.boxes.load([at])?.min(ROUND as u64) as usize;
                self.boxes.get_into(s![at..=at + count], &mut arrived[..=count])?;
                apply(updates(&arrived));
                self.signal.at(sender, ranks + me).notify()?;
            }
        }
        Ok(())
    }
}

/// The updates in a bucket.
fn updates(bucket: &[u64; SLOT]) -> &[u64] {
    &bucket[1..=bucket[0] as usize]
}

/// The next updates behind `a`, each in its owner's bucket; returns the last of them.
fn fill(buckets: &mut [[u64; SLOT]], table: Table, mut a: u64, count: usize) -> u64 {
    buckets.iter_mut().for_each(|bucket| bucket[0] = 0);
    for _ in 0..count {
        a = stream::next(a);
        let bucket = &mut buckets[table.owner(table.index(a))];
        bucket[0] += 1;
        let end = bucket[0] as usize;
        bucket[end] = a;
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_hold_every_update_once_at_its_owner() {
        let table = Table { log2_size: 10, ranks: 3 };
        let mut buckets = vec![[9; SLOT]; 3];
        let last = fill(&mut buckets, table, stream::at(40), 100);
        assert_eq!(last, stream::at(140));
        let mut all: Vec<u64> = Vec::new();
        for (owner, bucket) in buckets.iter().enumerate() {
            assert!(updates(bucket).iter().all(|&a| table.owner(table.index(a)) == owner));
            all.extend(updates(bucket));
        }
        let mut expected: Vec<u64> = (41..=140).map(stream::at).collect();
        all.sort_unstable();
        expected.sort_unstable();
        assert_eq!(all, expected);
    }
}
