//! The radial distribution function: how many atoms there are at a distance from another, against a gas of the same density.
//!
//! g_ab(r) = (pairs of an atom of kind a and one of kind b with distances in a shell) / (those that would be there if all were spread evenly).
//! It is 1 far away. Each sample takes lists of pairs as forces do, but as far as the range, and counts them.
//!
//! # Source
//! M. P. Allen, D. J. Tildesley, *Computer Simulation of Liquids*, 2nd edition, §8.2.

use std::collections::BTreeSet;
use std::f64::consts::PI;

use global_arrays::{prelude::*, simulation::Work};

use crate::cluster::{Cluster, Lanes, WIDTH};
use crate::held::Held;
use crate::list::{List, Pairing, Scratch};
use crate::plan::Plan;

/// Shells of a table.
const SHELLS: usize = 200;

/// Pairs by distance and kinds, as this rank has counted them.
#[derive(Debug)]
pub(crate) struct Radial {
    range: f64,
    kinds: usize,
    samples: u64,
    /// For each shell and each two kinds, a not after b.
    pairs: Vec<f64>,
    list: List,
    scratch: Scratch,
}

/// A row of the table.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Shell {
    /// The middle of the shell.
    pub(crate) distance: f64,
    pub(crate) all: f64,
    /// g of kinds (0, 0), (0, 1) … (1, 1) …, a not after b.
    pub(crate) of_kinds: Vec<f64>,
}

impl Radial {
    /// Of distances below `range`, between so many kinds.
    pub(crate) fn new(range: f64, kinds: usize) -> Self {
        let pairs = vec![0.0; SHELLS * kinds * kinds];
        Radial { range, kinds, samples: 0, pairs, list: List::default(), scratch: Scratch::default() }
    }

    pub(crate) fn range(&self) -> f64 {
        self.range
    }

    /// Counts the pairs of this rank's tasks by `plan`, whose reach is the range and what atoms may have moved since its boxes were made.
    /// One-sided, after a sync.
    pub(crate) fn sample(
        &mut self,
        job: &Job,
        plan: &Plan<'_>,
        mut held: Held,
        (positions, tags): (&GlobalArray<f64, Ix1>, &GlobalArray<u64, Ix1>),
    ) -> Result<(), Error> {
        let tasks = plan.tasks(job.rank());
        let blocks: BTreeSet<u32> = tasks.iter().flat_map(|(task, _)| [task.a, task.b]).collect();
        held.hold(job, blocks.into_iter(), positions, tags)?;
        held.measure();
        let mut list = std::mem::take(&mut self.list);
        for (task, _) in tasks {
            let (a, b) = (held.slot(task.a), held.slot(task.b));
            let pairing = Pairing { a, b, images: plan.images(task) };
            let work = list.build(&pairing, &held.levels, &held.reference, self.range, &mut self.scratch);
            self.count(&list, &held.reference, &held.kinds);
            // For each pair a distance, a root and the shell.
            job.simulation().work(work + Work::flops((12 * WIDTH * list.vectors()) as f64));
        }
        self.list = list;
        self.samples += 1;
        Ok(())
    }

    fn count(&mut self, list: &List, positions: &[Cluster], kinds: &[Lanes]) {
        let kind = |cluster: usize, lane: usize| kinds.get(cluster).map_or(0, |lanes| lanes[lane] as usize);
        let scale = SHELLS as f64 / self.range;
        let mut start = 0;
        for row in &list.rows {
            let (cluster, atom) = (row.atom as usize / WIDTH, row.atom as usize % WIDTH);
            let image = list.images[usize::from(row.image)];
            let (home, a) = (positions[cluster].atom(atom), kind(cluster, atom));
            let mut add = |j: usize, lane: usize| {
                let other = positions[j].atom(lane);
                let squared = (0..3).map(|d| (home[d] - image[d] - other[d]).powi(2)).sum::<f64>();
                let shell = (squared.sqrt() * scale) as usize;
                if shell < SHELLS {
                    let b = kind(j, lane);
                    self.pairs[(shell * self.kinds + a.min(b)) * self.kinds + a.max(b)] += 1.0;
                }
            };
            if row.itself {
                (atom + 1..WIDTH).for_each(|lane| add(cluster, lane));
            }
            for &j in &list.clusters[start..row.end as usize] {
                (0..WIDTH).for_each(|lane| add(j as usize, lane));
            }
            start = row.end as usize;
        }
    }

    /// The table of all ranks' samples, for so many atoms of each kind in a volume. Collective.
    pub(crate) fn table(mut self, job: &Job, counts: &[usize], volume: f64) -> Result<Vec<Shell>, Error> {
        job.all_reduce(&mut self.pairs, ops::sum)?;
        let kinds = self.kinds;
        let width = self.range / SHELLS as f64;
        let shells = (0..SHELLS).map(|shell| {
            let edge = |shell: usize| 4.0 / 3.0 * PI * (shell as f64 * width).powi(3);
            let part = self.samples as f64 * (edge(shell + 1) - edge(shell)) / volume;
            // Pairs in the shell if atoms were spread evenly, whatever the others.
            let even = |a: usize, b: usize| {
                let (of_a, of_b) = (counts[a] as f64, counts[b] as f64);
                part * if a == b { 0.5 * of_a * (of_a - 1.0) } else { of_a * of_b }
            };
            let ratio = |found: f64, even: f64| if even > 0.0 { found / even } else { 0.0 };
            let of = |a: usize, b: usize| self.pairs[(shell * kinds + a) * kinds + b];
            let each = || (0..kinds).flat_map(|a| (a..kinds).map(move |b| (a, b)));
            let (found, possible) = each().fold((0.0, 0.0), |sums, (a, b)| (sums.0 + of(a, b), sums.1 + even(a, b)));
            Shell {
                distance: (shell as f64 + 0.5) * width,
                all: ratio(found, possible),
                of_kinds: each().map(|(a, b)| ratio(of(a, b), even(a, b))).collect(),
            }
        });
        Ok(shells.collect())
    }
}
