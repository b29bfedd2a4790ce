//! Boxes around atoms: of each cluster, of each group of eight clusters, of each block.
//!
//! They are made anew with the lists. Eight neighbouring boxes lie component by component, so that one comparison of vectors
//! holds a box against all eight.

use std::ops::Range;

use crate::cluster::{Cluster, Lanes, NOWHERE, WIDTH};

/// A box from `low` to `high`; empty if low is above high.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Bounds {
    pub(crate) low: [f64; 3],
    pub(crate) high: [f64; 3],
}

impl Bounds {
    const NOTHING: Bounds = Bounds { low: [NOWHERE; 3], high: [-NOWHERE; 3] };

    #[inline(always)]
    fn include(&mut self, other: &Bounds) {
        for d in 0..3 {
            self.low[d] = self.low[d].min(other.low[d]);
            self.high[d] = self.high[d].max(other.high[d]);
        }
    }

    /// The box displaced.
    #[inline(always)]
    pub(crate) fn moved(&self, by: [f64; 3]) -> Bounds {
        let add = |x: [f64; 3]| std::array::from_fn(|d| x[d] + by[d]);
        Bounds { low: add(self.low), high: add(self.high) }
    }

    /// The square of the distance between two boxes, 0 if they meet.
    #[inline(always)]
    pub(crate) fn gap_squared(&self, other: &Bounds) -> f64 {
        let gap = |d: usize| (other.low[d] - self.high[d]).max(self.low[d] - other.high[d]).max(0.0);
        gap(0) * gap(0) + gap(1) * gap(1) + gap(2) * gap(2)
    }
}

/// The box of the first `count` atoms of a cluster, one at least.
#[inline(always)]
fn around(cluster: &Cluster, count: usize) -> Bounds {
    let mut bounds = Bounds::NOTHING;
    for d in 0..3 {
        // The first atom stands in for those that are not there. Halves are compared with halves, a vector at a time.
        let mut low = cluster.0[d];
        low[count..].fill(cluster.0[d][0]);
        let mut high = low;
        for half in [4, 2, 1] {
            for k in 0..half {
                low[k] = if low[k + half] < low[k] { low[k + half] } else { low[k] };
                high[k] = if high[k + half] > high[k] { high[k + half] } else { high[k] };
            }
        }
        bounds.low[d] = low[0];
        bounds.high[d] = high[0];
    }
    bounds
}

/// Eight boxes side by side.
#[derive(Debug, Clone, Copy)]
struct Eight {
    low: [Lanes; 3],
    high: [Lanes; 3],
}

impl Eight {
    const NOTHING: Eight = Eight { low: [[NOWHERE; WIDTH]; 3], high: [[-NOWHERE; WIDTH]; 3] };

    #[inline(always)]
    fn get(&self, k: usize) -> Bounds {
        Bounds { low: self.low.map(|x| x[k]), high: self.high.map(|x| x[k]) }
    }

    #[inline(always)]
    fn set(&mut self, k: usize, bounds: &Bounds) {
        for d in 0..3 {
            self.low[d][k] = bounds.low[d];
            self.high[d][k] = bounds.high[d];
        }
    }

    #[inline(always)]
    fn gaps(&self, home: &Bounds) -> Lanes {
        let mut squared = [0.0; WIDTH];
        for d in 0..3 {
            for k in 0..WIDTH {
                let gap = (self.low[d][k] - home.high[d]).max(home.low[d] - self.high[d][k]).max(0.0);
                squared[k] += gap * gap;
            }
        }
        squared
    }
}

/// Which boxes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Level {
    Clusters,
    Groups,
}

/// The boxes of all atoms.
#[derive(Debug)]
pub(crate) struct Levels {
    /// Clusters of a block, a multiple of eight.
    block: usize,
    count: usize,
    clusters: Vec<Eight>,
    groups: Vec<Eight>,
    blocks: Vec<Bounds>,
}

impl Levels {
    /// The boxes of `atoms` atoms at `positions`, in blocks of `block` clusters.
    pub(crate) fn new(positions: &[Cluster], atoms: usize, block: usize) -> Self {
        let groups = positions.len().div_ceil(WIDTH);
        let mut levels = Levels {
            block,
            count: positions.len(),
            clusters: vec![Eight::NOTHING; groups],
            groups: vec![Eight::NOTHING; groups.div_ceil(WIDTH)],
            blocks: vec![Bounds::NOTHING; positions.len().div_ceil(block)],
        };
        crate::vectorized::vectorized(
            #[inline(always)]
            || levels.fill(positions, atoms),
        );
        levels
    }

    #[inline(always)]
    fn fill(&mut self, positions: &[Cluster], atoms: usize) {
        for group in 0..self.clusters.len() {
            let mut whole = Bounds::NOTHING;
            for cluster in group * WIDTH..((group + 1) * WIDTH).min(positions.len()) {
                let bounds = around(&positions[cluster], WIDTH.min(atoms - cluster * WIDTH));
                self.clusters[group].set(cluster % WIDTH, &bounds);
                whole.include(&bounds);
            }
            self.groups[group / WIDTH].set(group % WIDTH, &whole);
            self.blocks[group * WIDTH / self.block].include(&whole);
        }
    }

    /// The clusters of a block.
    pub(crate) fn clusters_of(&self, block: usize) -> Range<usize> {
        block * self.block..((block + 1) * self.block).min(self.count)
    }

    /// The groups of a block.
    #[inline(always)]
    pub(crate) fn groups_of(&self, block: usize) -> Range<usize> {
        let clusters = self.clusters_of(block);
        clusters.start / WIDTH..clusters.end.div_ceil(WIDTH)
    }

    /// Number of blocks.
    pub(crate) fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// The box of a block.
    #[inline(always)]
    pub(crate) fn block(&self, block: usize) -> Bounds {
        self.blocks[block]
    }

    /// The box of a cluster.
    #[inline(always)]
    pub(crate) fn cluster(&self, cluster: usize) -> Bounds {
        self.clusters[cluster / WIDTH].get(cluster % WIDTH)
    }

    /// The squares of the distances of the eight boxes with numbers from `eight` · 8 on from a box.
    #[inline(always)]
    pub(crate) fn gaps(&self, level: Level, eight: usize, home: &Bounds) -> Lanes {
        match level {
            Level::Clusters => self.clusters[eight].gaps(home),
            Level::Groups => self.groups[eight].gaps(home),
        }
    }
}
