//! The blocks of the force matrix that are tasks, and whose queue each waits in.
//!
//! The N × N matrix of pair forces is cut in blocks of m × m atoms. Since atoms are sorted in space, most blocks join regions
//! that are farther apart than the cut-off: they are never made tasks, so the cost of a step grows like N. Those on and above
//! the diagonal that remain belong to the rows or to the columns of the matrix, as on a board of chess, so that each block of atoms has
//! half of its tasks. They go to the rank that owns the block. With more ranks than blocks, several ranks share a block, and deal its tasks
//! among themselves, the heaviest first.
//!
//! So a rank finds its own tasks without looking at those of others, from the boxes of all blocks.
//!
//! # Source
//! S. Plimpton, J. Comput. Phys. 117 (1995): the matrix as a board of chess, where pairs are computed once.

use std::ops::Range;

use crate::boxes::Bounds;

/// A block of the force matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Task {
    /// First block of atoms.
    pub(crate) a: u32,
    /// Second block of atoms, not before the first.
    pub(crate) b: u32,
}

/// How blocks of atoms are shared out: which are whose.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shares {
    pub(crate) blocks: usize,
    pub(crate) ranks: usize,
}

impl Shares {
    /// The blocks that a rank owns.
    pub(crate) fn owned(self, rank: usize) -> Range<usize> {
        rank * self.blocks / self.ranks..(rank + 1) * self.blocks / self.ranks
    }

    /// The rank that owns a block.
    pub(crate) fn owner(self, block: usize) -> usize {
        ((block + 1) * self.ranks - 1) / self.blocks
    }

    /// The ranks that share a block: its owner and those before it that own none.
    pub(crate) fn sharers(self, block: usize) -> Range<usize> {
        let owner = self.owner(block);
        owner.min((block * self.ranks).div_ceil(self.blocks))..owner + 1
    }

    /// The blocks that a rank has or shares.
    pub(crate) fn shared(self, rank: usize) -> Range<usize> {
        let owned = self.owned(rank);
        // A rank without a block comes before the owner of the next one.
        owned.start..owned.end.max(owned.start + 1).min(self.blocks)
    }
}

/// What all ranks know when they make a plan.
#[derive(Debug)]
pub(crate) struct Plan<'a> {
    /// The box around each block of atoms.
    pub(crate) boxes: &'a [Bounds],
    /// Edges of the periodic box.
    pub(crate) lengths: [f64; 3],
    /// How far apart atoms of a pair may be.
    pub(crate) reach: f64,
    pub(crate) shares: Shares,
}

impl Plan<'_> {
    /// The tasks of one rank, each with an estimate of its cost.
    pub(crate) fn tasks(&self, rank: usize) -> Vec<(Task, f64)> {
        let mut own = Vec::new();
        for block in self.shares.shared(rank) {
            let sharers = self.shares.sharers(block);
            let mut tasks: Vec<(Task, f64)> = (0..self.boxes.len())
                .filter(|&other| has(block, other))
                .map(|other| Task { a: block.min(other) as u32, b: block.max(other) as u32 })
                .filter_map(|task| Some((task, self.cost(task)?)))
                .collect();
            if sharers.len() == 1 {
                own.append(&mut tasks);
                continue;
            }
            tasks.sort_by(|(_, a), (_, b)| b.total_cmp(a));
            let mut load = vec![0.0; sharers.len()];
            for (task, cost) in tasks {
                let least = (1..load.len()).fold(0, |least, k| if load[k] < load[least] { k } else { least });
                load[least] += cost;
                if sharers.start + least == rank {
                    own.push((task, cost));
                }
            }
        }
        own
    }

    /// The part of the pairs of two blocks that is within reach, by the volume; `None` if there are none.
    fn cost(&self, task: Task) -> Option<f64> {
        let (home, other) = (self.boxes[task.a as usize], self.boxes[task.b as usize]);
        let images = self.images(task);
        let within = |image: &[f64; 3]| overlap(&home, &other.moved(*image), self.reach);
        // On the diagonal each pair counts once; other images of it are opposite pairs already.
        let half = |image: &[f64; 3]| if task.a == task.b && *image == [0.0; 3] { 0.5 } else { 1.0 };
        (!images.is_empty()).then(|| images.iter().map(|image| half(image) * within(image)).sum())
    }

    /// The displacements of the second block by multiples of the box that bring it within reach of the first. Where both are one, one of each
    /// two opposite displacements, and none.
    pub(crate) fn images(&self, task: Task) -> Vec<[f64; 3]> {
        let Plan { lengths, reach, .. } = *self;
        let (home, other) = (self.boxes[task.a as usize], self.boxes[task.b as usize]);
        let range = |d: usize| {
            let least = ((home.low[d] - reach - other.high[d]) / lengths[d]).ceil() as i64;
            let most = ((home.high[d] + reach - other.low[d]) / lengths[d]).floor() as i64;
            least..=most
        };
        let mut found = Vec::new();
        for x in range(0) {
            for y in range(1) {
                for z in range(2) {
                    if task.a == task.b && [x, y, z] < [0, 0, 0] {
                        continue;
                    }
                    let image = [x as f64 * lengths[0], y as f64 * lengths[1], z as f64 * lengths[2]];
                    if home.gap_squared(&other.moved(image)) < reach * reach {
                        found.push(image);
                    }
                }
            }
        }
        found
    }
}

/// True if the task of two blocks is one of `block`.
///
/// The colors of a chessboard alone would not do: in the order of blocks, neighbours across a cut are a power of two apart, so all of their
/// squares have one color, and the rank on one side of the cut would have all of them. So all bits but the last, which makes
/// each two neighbouring squares of a row differ, change the color too, by how many the two blocks have in common.
fn has(block: usize, other: usize) -> bool {
    let common = ((block >> 1) & (other >> 1)).count_ones() as usize;
    let first = (block + other + common).is_multiple_of(2);
    block == other || first == (block < other)
}

/// The part of the volume of `other` that is within `reach` of `home`.
fn overlap(home: &Bounds, other: &Bounds, reach: f64) -> f64 {
    let part = |d: usize| {
        let edge = other.high[d] - other.low[d];
        let within = other.high[d].min(home.high[d] + reach) - other.low[d].max(home.low[d] - reach);
        if edge > 0.0 { within.max(0.0) / edge } else { 1.0 }
    };
    part(0) * part(1) * part(2)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn each_block_has_one_owner_and_each_rank_a_block() {
        for (blocks, ranks) in [(1, 1), (1, 5), (7, 3), (3, 7), (8, 8), (16, 5), (5, 64)] {
            let shares = Shares { blocks, ranks };
            for block in 0..blocks {
                assert!((0..ranks).filter(|&rank| shares.owned(rank).contains(&block)).eq([shares.owner(block)]));
                let sharers = (0..ranks).filter(|&rank| shares.shared(rank).contains(&block));
                assert!(sharers.eq(shares.sharers(block)), "{blocks} blocks, {ranks} ranks");
            }
            assert!((0..ranks).all(|rank| !shares.shared(rank).is_empty()));
        }
    }

    #[test]
    fn each_of_two_halves_has_half_of_what_lies_across_their_cut() {
        for half in [4, 8, 16, 64] {
            let across = (0..half).filter(|&block| has(block, block + half)).count();
            assert_eq!(across, half / 2);
            // And of all pairs of the two.
            let all = (0..half).map(|block| (half..2 * half).filter(|&other| has(block, other)).count()).sum::<usize>();
            assert_eq!(all, half * half / 2);
        }
    }

    /// Boxes in a row of which all are within reach of each other.
    #[test]
    fn each_task_has_one_rank_and_ranks_have_equal_shares() {
        for (blocks, ranks) in [(1, 3), (2, 2), (9, 4), (16, 64), (5, 3), (128, 512), (128, 8192)] {
            let corner = |k: usize, d: usize| if d == 0 { k as f64 } else { 0.0 };
            let around = |k: usize| Bounds {
                low: std::array::from_fn(|d| corner(k, d)),
                high: std::array::from_fn(|d| corner(k, d) + 1.0),
            };
            let boxes: Vec<Bounds> = (0..blocks).map(around).collect();
            let plan = Plan { boxes: &boxes, lengths: [1e4; 3], reach: 500.0, shares: Shares { blocks, ranks } };
            let mut found = BTreeMap::new();
            let mut most: f64 = 0.0;
            for rank in 0..ranks {
                let own = plan.tasks(rank);
                most = most.max(own.iter().map(|(_, cost)| cost).sum());
                own.into_iter().for_each(|(task, _)| assert_eq!(found.insert(task, rank), None));
            }
            assert_eq!(found.len(), blocks * (blocks + 1) / 2);
            assert!(found.keys().all(|task| task.a <= task.b));
            if blocks == 128 {
                assert!(most <= (blocks * blocks / 2) as f64 / ranks as f64 + 0.5, "{most} on {ranks} ranks");
            }
        }
    }
}
