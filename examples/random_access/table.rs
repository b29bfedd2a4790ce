//! The table that is updated: how it is cut, and what must stand in it.

use global_arrays::prelude::*;

use crate::stream;

/// Updates for each word of the table.
const UPDATES_PER_WORD: u64 = 4;

/// A table of 2ᵐ words and the updates of it, cut among ranks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table {
    pub(crate) log2_size: u32,
    pub(crate) ranks: usize,
}

impl Table {
    pub(crate) fn words(self) -> usize {
        1 << self.log2_size
    }

    pub(crate) fn updates(self) -> u64 {
        UPDATES_PER_WORD << self.log2_size
    }

    /// Which word an update changes: the low bits of its number.
    #[inline(always)]
    pub(crate) fn index(self, a: u64) -> usize {
        a as usize & (self.words() - 1)
    }

    /// Who owns a word: words spread evenly, by one multiplication.
    #[inline(always)]
    pub(crate) fn owner(self, index: usize) -> usize {
        ((index as u64 * self.ranks as u64) >> self.log2_size) as usize
    }

    /// The first word of a rank; of the rank behind the last one, the end.
    pub(crate) fn first(self, rank: usize) -> usize {
        // The least index with index · ranks >= rank · 2ᵐ.
        ((rank as u128) << self.log2_size).div_ceil(self.ranks as u128) as usize
    }

    /// The updates that a rank generates.
    pub(crate) fn share(self, rank: usize) -> std::ops::Range<u64> {
        let at = |rank: usize| (u128::from(self.updates()) * rank as u128 / self.ranks as u128) as u64;
        at(rank)..at(rank + 1)
    }

    /// The global table, T[k] = k; collective.
    pub(crate) fn create(self, job: &Job) -> Result<GlobalArray<u64, Ix1>, Error> {
        let cuts: Vec<usize> = (0..self.ranks).map(|rank| self.first(rank)).collect();
        let mut table = GlobalArray::builder(job, [self.words()]).irregular([cuts]).name("table").create()?;
        let first = self.first(job.rank()) as u64;
        table.owner_epoch(|mut part| (first..).zip(part.iter_mut()).for_each(|(k, word)| *word = k))?;
        Ok(table)
    }

    /// Runs the whole stream again, by the recurrence alone and without communication: each rank applies to its own part what
    /// falls there, which undoes what was done. Returns how many words of all ranks do not hold their number then. Collective.
    pub(crate) fn errors(self, job: &Job, table: &mut GlobalArray<u64, Ix1>) -> Result<u64, Error> {
        /// Updates that are sorted out before they are applied, so that the search does not wait for memory.
        const BATCH: usize = 4096;
        let first = self.first(job.rank());
        let wrong = table.owner_epoch(|mut part| {
            let part = part.as_mut_slice().expect("a table without ghost cells");
            let (mut mine, mut a, mut left) = (vec![0; BATCH], stream::at(0), self.updates());
            while left > 0 {
                let count = left.min(BATCH as u64);
                left -= count;
                let mut found = 0;
                for _ in 0..count {
                    a = stream::next(a);
                    mine[found] = a;
                    // No branch: it would go wrong every other time.
                    found += usize::from(self.index(a).wrapping_sub(first) < part.len());
                }
                for &a in &mine[..found] {
                    part[self.index(a) - first] ^= a;
                }
            }
            (first as u64..).zip(part.iter()).filter(|&(k, &word)| k != word).count() as u64
        })?;
        job.all_reduce_one(wrong, ops::sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_and_every_update_has_one_rank() {
        for log2_size in [1, 2, 5, 10] {
            for ranks in [1, 2, 3, 4, 7, 64] {
                let table = Table { log2_size, ranks };
                for rank in 0..ranks {
                    let own = table.first(rank)..table.first(rank + 1);
                    assert!(own.clone().all(|index| table.owner(index) == rank), "{table:?}: rank {rank} owns {own:?}");
                    if rank > 0 {
                        assert_eq!(table.share(rank - 1).end, table.share(rank).start);
                    }
                }
                assert_eq!((table.first(0), table.first(ranks)), (0, table.words()));
                assert_eq!((0..ranks).map(|rank| table.share(rank).count()).sum::<usize>() as u64, table.updates());
            }
        }
    }
}
