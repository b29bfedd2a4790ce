//! Boxes around atoms: of each cluster, of each group of eight clusters, of each block.
//!
//! They are made anew with the lists. Eight neighbouring boxes lie component by component, so that one comparison of vectors
//! holds a box against all eight. A rank has those of the blocks that it holds, one after the other in *slots*, and for all others only
//! the box around the block.

use std::ops::Range;

use program::vectorized::vectorized;

use crate::cluster::{Cluster, Lanes, NOWHERE, WIDTH};

/// A box from `low` to `high`; empty if low is above high.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Bounds {
    pub(crate) low: [f64; 3],
    pub(crate) high: [f64; 3],
}

impl Bounds {
    pub(crate) const NOTHING: Bounds = Bounds { low: [NOWHERE; 3], high: [-NOWHERE; 3] };

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

/// The box of the first `atoms` atoms of these clusters.
pub(crate) fn whole(clusters: &[Cluster], atoms: usize) -> Bounds {
    vectorized(
        #[inline(always)]
        || {
            let mut bounds = Bounds::NOTHING;
            for (at, cluster) in clusters.iter().enumerate() {
                bounds.include(&around(cluster, WIDTH.min(atoms - at * WIDTH)));
            }
            bounds
        },
    )
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

/// The boxes of the blocks that a rank holds, by their slots.
#[derive(Debug)]
pub(crate) struct Levels {
    /// Clusters of a slot, a multiple of eight.
    block: usize,
    /// Of each slot.
    atoms: Vec<usize>,
    clusters: Vec<Eight>,
    groups: Vec<Eight>,
    blocks: Vec<Bounds>,
}

impl Levels {
    /// No boxes yet, of blocks of up to `block` clusters.
    pub(crate) fn new(block: usize) -> Self {
        Levels { block, atoms: Vec::new(), clusters: Vec::new(), groups: Vec::new(), blocks: Vec::new() }
    }

    /// Forgets all boxes.
    pub(crate) fn clear(&mut self) {
        self.atoms.clear();
        self.clusters.clear();
        self.groups.clear();
        self.blocks.clear();
    }

    /// The boxes of one more block: `atoms` atoms in `clusters`.
    pub(crate) fn add(&mut self, clusters: &[Cluster], atoms: usize) {
        let slot = self.blocks.len();
        self.atoms.push(atoms);
        let groups = (slot + 1) * self.block / WIDTH;
        self.clusters.resize(groups, Eight::NOTHING);
        self.groups.resize(groups.div_ceil(WIDTH), Eight::NOTHING);
        self.blocks.push(Bounds::NOTHING);
        vectorized(
            #[inline(always)]
            || self.fill(slot, clusters, atoms),
        );
    }

    #[inline(always)]
    fn fill(&mut self, slot: usize, clusters: &[Cluster], atoms: usize) {
        for (at, eight) in clusters.chunks(WIDTH).enumerate() {
            let group = slot * self.block / WIDTH + at;
            let mut whole = Bounds::NOTHING;
            for (k, cluster) in eight.iter().enumerate() {
                let bounds = around(cluster, WIDTH.min(atoms - (at * WIDTH + k) * WIDTH));
                self.clusters[group].set(k, &bounds);
                whole.include(&bounds);
            }
            self.groups[group / WIDTH].set(group % WIDTH, &whole);
            self.blocks[slot].include(&whole);
        }
    }

    /// The clusters in a slot.
    pub(crate) fn clusters_of(&self, slot: usize) -> Range<usize> {
        let start = slot * self.block;
        start..start + self.atoms[slot].div_ceil(WIDTH)
    }

    /// How many atoms a cluster has.
    #[inline(always)]
    pub(crate) fn atoms_of(&self, cluster: usize) -> usize {
        WIDTH.min(self.atoms[cluster / self.block] - cluster % self.block * WIDTH)
    }

    /// The groups in a slot.
    #[inline(always)]
    pub(crate) fn groups_of(&self, slot: usize) -> Range<usize> {
        let clusters = self.clusters_of(slot);
        clusters.start / WIDTH..clusters.end.div_ceil(WIDTH)
    }

    /// The box around a slot.
    #[inline(always)]
    pub(crate) fn block(&self, slot: usize) -> Bounds {
        self.blocks[slot]
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
