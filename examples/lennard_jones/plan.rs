//! The blocks of the force matrix that are tasks, and whose queue each waits in.
//!
//! The N × N matrix of pair forces is cut in blocks of m × m atoms. Since atoms are sorted in space, most blocks join regions
//! that are farther apart than the cut-off: they are never made tasks, so the cost of a step grows like N. Those on and above
//! the diagonal that remain are dealt to one queue for each rank, the heaviest first: before anything is known of them by an
//! estimate, to the owner of their rows or of their columns, whichever has less to do (with more ranks than blocks, to one of the
//! ranks without a block before either owner, too); after the first step by what was measured, to the rank that made their list.
//!
//! Every rank makes the plan by itself from the same positions, so all make the same.

use std::ops::Range;

use crate::boxes::{Bounds, Levels};
use crate::list::Pairing;

/// How many times a task's own cost must be left in another rank's queue before the task is taken without its list.
///
/// Measured, 32,000 atoms of the melt: to make a list takes 3.1 times as long as to use it once.
const WORTH: u64 = 5;

/// The tasks of a step, the same on all ranks.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) pairings: Vec<Pairing>,
    /// For each rank the tasks that are its to begin with.
    pub(crate) queues: Vec<Queue>,
}

/// Tasks in the order in which they are handed out.
#[derive(Debug, Clone, Default)]
pub(crate) struct Queue {
    /// Numbers of tasks.
    pub(crate) tasks: Vec<u32>,
    /// What each costs together with those after it.
    pub(crate) remaining: Vec<u64>,
}

impl Queue {
    /// True if a rank without a list may take a task of the queue at any time.
    pub(crate) fn is_worth_a_visit(&self) -> bool {
        (0..self.tasks.len()).any(|place| self.is_worth_a_list(place))
    }

    /// True if so much is left when this task is next that another rank should make a list of its own for it.
    pub(crate) fn is_worth_a_list(&self, place: usize) -> bool {
        let cost = self.remaining[place] - self.remaining.get(place + 1).copied().unwrap_or(0);
        self.remaining[place] >= WORTH * cost
    }
}

impl Plan {
    /// All pairs of blocks within `reach` of each other in a periodic box with edges `lengths`; `near` tells the owner of a block, and the
    /// ranks without a block before it.
    pub(crate) fn new(
        levels: &Levels,
        lengths: [f64; 3],
        reach: f64,
        ranks: usize,
        near: impl Fn(usize) -> Range<usize>,
    ) -> Self {
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
        let mut plan = Plan { pairings: Vec::with_capacity(weighted.len()), queues: vec![Queue::default(); ranks] };
        for (number, (weight, pairing)) in weighted.into_iter().enumerate() {
            let either = near(pairing.a).chain(near(pairing.b));
            let rank = either.reduce(|least, rank| if load[rank] < load[least] { rank } else { least });
            let rank = rank.expect("a block has an owner");
            load[rank] += weight;
            plan.queues[rank].tasks.push(number as u32);
            plan.pairings.push(pairing);
        }
        plan
    }

    /// Deals the tasks anew: `known` has the rank and the cost of each.
    pub(crate) fn deal(&mut self, known: &[(usize, u64)]) {
        let mut tasks: Vec<u32> = (0..known.len() as u32).collect();
        tasks.sort_by_key(|&task| std::cmp::Reverse(known[task as usize].1));
        self.queues.fill(Queue::default());
        for task in tasks {
            self.queues[known[task as usize].0].tasks.push(task);
        }
        for queue in &mut self.queues {
            let mut sum = 0;
            let costs = queue.tasks.iter().rev().map(|&task| {
                sum += known[task as usize].1;
                sum
            });
            queue.remaining = costs.collect();
            queue.remaining.reverse();
        }
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
