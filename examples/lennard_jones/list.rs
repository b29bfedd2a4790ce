//! Which pairs of a task are near enough to look at: rows of clusters for each atom.
//!
//! A list is good as long as no atom has moved farther than half the *skin* since it was made: it holds every pair within
//! cut-off plus skin. Candidates come down a small hierarchy of boxes (block, group of eight clusters, cluster), eight boxes in
//! one comparison; then each atom of the one cluster is held against the atoms of the other, so that an atom's row has only
//! clusters with an atom in its own reach.

use global_arrays::simulation::Work;
use program::vectorized::vectorized;

use crate::boxes::{Bounds, Level, Levels};
use crate::cluster::{Cluster, Lanes, NOWHERE, WIDTH};

/// The clusters that one atom meets in one image of the box.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Row {
    /// The atom's place in the slots.
    pub(crate) atom: u32,
    /// Which of the list's images the clusters are taken from.
    pub(crate) image: u16,
    /// It meets the later atoms of its own cluster, too.
    pub(crate) itself: bool,
    /// Where the row's clusters end; they begin where those of the row before end.
    pub(crate) end: u32,
}

/// The pairs of one task.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct List {
    /// Displacements of the second block, multiples of the box.
    pub(crate) images: Vec<[f64; 3]>,
    pub(crate) rows: Vec<Row>,
    pub(crate) clusters: Vec<u32>,
    /// Rows that meet atoms of their own cluster.
    own: usize,
}

/// A block of the force matrix as far as its images are within reach.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Pairing {
    /// The slot of the first block.
    pub(crate) a: usize,
    /// The slot of the second block.
    pub(crate) b: usize,
    /// Displacements of the second block, multiples of the box. On the diagonal of the matrix only one of each two opposite
    /// ones, and zero.
    pub(crate) images: Vec<[f64; 3]>,
}

/// Room that the builder uses again and again.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    candidates: Vec<u32>,
    nearest: Vec<Lanes>,
    /// Vectors of eight boxes held against a cluster, and candidates, in one list.
    boxes: usize,
    measured: usize,
}

impl List {
    /// What its pairs cost in a step, in vectors of eight.
    pub(crate) fn cost(&self) -> u64 {
        // To begin and end a row takes about as long as two of its clusters.
        (self.clusters.len() + 2 * self.rows.len()) as u64
    }

    /// Atoms with eight others, in all rows.
    pub(crate) fn vectors(&self) -> usize {
        self.clusters.len() + self.own
    }

    /// Makes the list of `pairing` for all pairs within `reach`; `positions` are those in all slots.
    ///
    /// Returns what was computed: 18 operations to hold a box against another, of which eight go together; for each of the 64 pairs of
    /// atoms in two clusters 9; and 8 to choose rows.
    pub(crate) fn build(
        &mut self,
        pairing: &Pairing,
        levels: &Levels,
        positions: &[Cluster],
        reach: f64,
        scratch: &mut Scratch,
    ) -> Work {
        self.rows.clear();
        self.clusters.clear();
        self.own = 0;
        (scratch.boxes, scratch.measured) = (0, 0);
        self.images.clone_from(&pairing.images);
        vectorized(
            #[inline(always)]
            || {
                for (image, &displacement) in pairing.images.iter().enumerate() {
                    let diagonal = pairing.a == pairing.b && displacement == [0.0; 3];
                    for cluster in levels.clusters_of(pairing.a) {
                        let home = levels.cluster(cluster).moved(displacement.map(|x| -x));
                        if !diagonal && home.gap_squared(&levels.block(pairing.b)) > reach * reach {
                            continue;
                        }
                        scratch.candidates.clear();
                        let first = if diagonal { cluster + 1 } else { 0 };
                        scratch.boxes += find(levels, pairing.b, &home, reach, first, &mut scratch.candidates);
                        scratch.measured += scratch.candidates.len();
                        if !diagonal && scratch.candidates.is_empty() {
                            continue;
                        }
                        measure(&positions[cluster], displacement, positions, &scratch.candidates, &mut scratch.nearest);
                        self.append((cluster, levels.atoms_of(cluster)), image, diagonal, reach, scratch);
                    }
                }
            },
        );
        let flops = 18 * WIDTH * scratch.boxes + (9 * WIDTH * WIDTH + 8) * scratch.measured;
        Work::flops(flops as f64) + Work::bytes((size_of_val(&self.rows[..]) + size_of_val(&self.clusters[..])) as f64)
    }

    /// The rows of one cluster's atoms.
    #[inline(always)]
    fn append(&mut self, (cluster, atoms): (usize, usize), image: usize, itself: bool, reach: f64, scratch: &Scratch) {
        for lane in 0..atoms {
            let start = self.clusters.len();
            // Without branches: each candidate is written, and kept if it is near.
            self.clusters.resize(start + scratch.candidates.len(), 0);
            let room = &mut self.clusters[start..];
            let mut count = 0;
            for (&candidate, nearest) in scratch.candidates.iter().zip(&scratch.nearest) {
                room[count] = candidate;
                count += usize::from(nearest[lane] < reach * reach);
            }
            self.clusters.truncate(start + count);
            if count > 0 || itself {
                let (atom, end) = ((cluster * WIDTH + lane) as u32, self.clusters.len() as u32);
                self.own += usize::from(itself);
                self.rows.push(Row { atom, image: image as u16, itself, end });
            }
        }
    }
}

/// The clusters of block `b` from number `first` on whose boxes are within reach of `home`. Returns how many eights of boxes it looked at.
#[inline(always)]
fn find(levels: &Levels, b: usize, home: &Bounds, reach: f64, first: usize, found: &mut Vec<u32>) -> usize {
    let groups = levels.groups_of(b);
    let mut eights = groups.end.div_ceil(WIDTH) - groups.start / WIDTH;
    for over in groups.start / WIDTH..groups.end.div_ceil(WIDTH) {
        let gaps = levels.gaps(Level::Groups, over, home);
        for (k, gap) in gaps.into_iter().enumerate() {
            let group = over * WIDTH + k;
            if gap > reach * reach || !groups.contains(&group) || (group + 1) * WIDTH <= first {
                continue;
            }
            eights += 1;
            for (k, gap) in levels.gaps(Level::Clusters, group, home).into_iter().enumerate() {
                let cluster = group * WIDTH + k;
                if gap < reach * reach && cluster >= first {
                    found.push(cluster as u32);
                }
            }
        }
    }
    eights
}

/// For each candidate the square of the distance of its nearest atom from each atom of `home`.
#[inline(always)]
fn measure(home: &Cluster, displacement: [f64; 3], positions: &[Cluster], candidates: &[u32], nearest: &mut Vec<Lanes>) {
    let mut i = home.0;
    for (component, displacement) in i.iter_mut().zip(displacement) {
        component.iter_mut().for_each(|x| *x -= displacement);
    }
    nearest.clear();
    nearest.resize(candidates.len(), [NOWHERE; WIDTH]);
    // A loop and no iterator's closure, which would be compiled without the vectors of its caller.
    for (least, &candidate) in nearest.iter_mut().zip(candidates) {
        let j = &positions[candidate as usize].0;
        for k in 0..WIDTH {
            for lane in 0..WIDTH {
                let (x, y, z) = (i[0][lane] - j[0][k], i[1][lane] - j[1][k], i[2][lane] - j[2][k]);
                let squared = x * x + y * y + z * z;
                least[lane] = if squared < least[lane] { squared } else { least[lane] };
            }
        }
    }
}
