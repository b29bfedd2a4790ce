//! The blocks of the force matrix that are tasks, and whose queue each waits in.
//!
//! The N × N matrix of pair forces is cut in blocks of m × m atoms. Since atoms are sorted in space, most blocks join regions
//! that are farther apart than the cut-off: they are never made tasks, so the cost of a step grows like N. Those on and above
//! the diagonal that remain are dealt to one queue for each rank; each belongs to the owner of its rows or of its columns,
//! whichever has less to do, the heaviest come first.
//!
//! Every rank makes the plan by itself from the same positions, so all make the same.

use crate::boxes::{Bounds, Levels};
use crate::list::Pairing;

/// The tasks of a step, the same on all ranks.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) pairings: Vec<Pairing>,
    /// For each rank the numbers of tasks that are its to begin with.
    pub(crate) queues: Vec<Vec<u32>>,
}

impl Plan {
    /// All pairs of blocks within `reach` of each other in a periodic box with edges `lengths`; `owner` tells the rank of a block.
    pub(crate) fn new(levels: &Levels, lengths: [f64; 3], reach: f64, ranks: usize, owner: impl Fn(usize) -> usize) -> Self {
        let mut weighted = Vec::new();
        for a in 0..levels.blocks() {
            let home = levels.block(a);
            for b in a..levels.blocks() {
                let images = images(&home, &levels.block(b), lengths, reach, a == b);
                let weight: f64 = images.iter().map(|&image| overlap(&home, &levels.block(b).moved(image), reach)).sum();
                if !images.is_empty() {
                    weighted.push((weight, Pairing { a, b, images }));
                }
            }
        }
        weighted.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        let mut load = vec![0.0; ranks];
        let mut plan = Plan { pairings: Vec::with_capacity(weighted.len()), queues: vec![Vec::new(); ranks] };
        for (number, (weight, pairing)) in weighted.into_iter().enumerate() {
            let (rows, columns) = (owner(pairing.a), owner(pairing.b));
            let rank = if load[columns] < load[rows] { columns } else { rows };
            load[rank] += weight;
            plan.queues[rank].push(number as u32);
            plan.pairings.push(pairing);
        }
        plan
    }
}

/// The displacements of `other` by multiples of `lengths` that bring it within reach of `home`. Where both are one box, one of
/// each two opposite displacements, and none.
fn images(home: &Bounds, other: &Bounds, lengths: [f64; 3], reach: f64, same: bool) -> Vec<[f64; 3]> {
    let range = |d: usize| {
        let least = ((home.low[d] - reach - other.high[d]) / lengths[d]).ceil() as i64;
        let most = ((home.high[d] + reach - other.low[d]) / lengths[d]).floor() as i64;
        least..=most
    };
    let mut found = Vec::new();
    for x in range(0) {
        for y in range(1) {
            for z in range(2) {
                if same && [x, y, z] < [0, 0, 0] {
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

/// The volume of `other` within `reach` of `home`, by which work is estimated.
fn overlap(home: &Bounds, other: &Bounds, reach: f64) -> f64 {
    let edge = |d: usize| (other.high[d].min(home.high[d] + reach) - other.low[d].max(home.low[d] - reach)).max(0.0);
    // On the diagonal each pair counts once; half of the neighbours of the others' atoms lie outside the overlap.
    edge(0) * edge(1) * edge(2)
}
