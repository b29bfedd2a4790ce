//! The force phase of a step: tasks from counters, forces by accumulate.
//!
//! Each rank keeps copies of the positions that its tasks need, fetched once a step block by block and in bulk for those it
//! needed the step before, and a buffer of forces, which it accumulates into the global array block by block when no task is
//! left. Between, it touches nothing but its own memory and the counters.
//!
//! **Counters.** Each rank's queue has an atomic counter, and any rank may take any task: first from its own queue until that is
//! empty, then from the others'. In the first step of a plan all tasks lack their lists, and whoever takes one makes its list;
//! then all ranks agree on who made which, and the task waits in that rank's queue from then on. So work is dealt by how fast
//! each rank got on, list making is shared by all, and hardly any list is made twice: later a rank takes a task from
//! another whose list it lacks only if so much is left in that queue that the list is worth its while.
//!
//! A counter is never set back: between two steps, when nobody counts, its owner moves it on to the next [`ROUND`]. So all ranks know
//! where it began, and none has to ask.
//!
//! **Other queues.** To look at the queue of every other rank in each step is too much where there are thousands. What a queue had to begin with is
//! known to all, so one that never has a task for others is passed over. Of the rest a rank visits those at distances 1, 2, 4 and so on
//! first, which are others for each rank, and gives up after [`PATIENCE`] queues without a task for it. No task is left by that: the
//! owner of a queue empties it.
//!
//! # Source
//! A. Vishnu, J. Daily, B. Palmer, *Designing scalable PGAS communication subsystems on Cray Gemini interconnect*, HiPC 2012,
//! §IV-C: blocks of the force matrix by a shared counter, forces returned by accumulate.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use global_arrays::{Work, prelude::*};
use ndarray::{ArrayView1, ArrayViewMut1};

use crate::boxes::Levels;
use crate::cluster::{Cluster, NUMBERS, numbers, numbers_mut};
use crate::kernel::{self, Sums, add_forces};
use crate::list::{List, Scratch};
use crate::pace::Pace;
use crate::plan::Plan;
use crate::potential::Potential;
use crate::simulation::Method;

/// Of a counter: more than the tasks of a queue and the ranks that may count in a step.
const ROUND: u64 = 1 << 32;

/// Enough for the cost of a task: its list has 32-bit places.
const COST_BITS: u32 = 40;

/// How many queues without a task for it a rank visits one after the other before it gives up.
const PATIENCE: usize = 16;

/// The part of a job's state that makes forces.
#[derive(Debug)]
pub(crate) struct Forces<'j> {
    rank: usize,
    pace: Pace<'j>,
    atoms: usize,
    /// Clusters of a block.
    block: usize,
    potential: Potential,
    /// Cut-off plus skin.
    reach: f64,
    lengths: [f64; 3],
    /// First block of each rank, and the number of blocks.
    cuts: Vec<usize>,
    ranks: usize,
    /// The counter of each rank's queue, at that rank.
    counters: GlobalArray<u64, Ix1>,
    /// Where all counters began in this step.
    round: u64,
    plan: Plan,
    /// The queues of others that may have a task for this rank, in the order in which it visits them.
    visits: Vec<usize>,
    /// No step has been done by the plan.
    fresh: bool,
    levels: Levels,
    /// By the number of the task.
    lists: BTreeMap<usize, List>,
    spare: Vec<List>,
    scratch: Scratch,
    /// Positions when the plan was made, by which all lists are made, also those that are made later.
    reference: Vec<Cluster>,
    positions: Vec<Cluster>,
    forces: Vec<Cluster>,
    blocks: Vec<State>,
    /// Tasks done by this rank.
    pub(crate) tasks: u64,
    /// Lists made by this rank.
    pub(crate) lists_made: u64,
    pub(crate) times: Times,
}

/// What this rank has spent so far.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Times {
    /// In tasks.
    pub(crate) computing: Duration,
    /// In bringing forces back.
    pub(crate) accumulate: Duration,
}

/// What this rank has of a block.
#[derive(Debug, Clone, Copy, Default)]
struct State {
    /// The step before needed it.
    wanted: bool,
    /// Its positions are those of this step.
    fetched: bool,
    /// Forces on its atoms wait to be accumulated.
    touched: bool,
}

impl<'j> Forces<'j> {
    /// For `atoms` atoms in a box with edges `lengths`, in blocks of `block` clusters, of which rank r owns those from `cuts[r]`
    /// on. Collective.
    pub(crate) fn new(
        job: &Job,
        pace: Pace<'j>,
        (atoms, lengths): (usize, [f64; 3]),
        (block, cuts): (usize, Vec<usize>),
        method: &Method,
    ) -> Result<Self, Error> {
        let clusters = atoms.div_ceil(crate::cluster::WIDTH);
        Ok(Forces {
            rank: job.rank(),
            pace,
            atoms,
            block,
            potential: method.potential,
            reach: method.potential.cutoff + method.skin,
            lengths,
            ranks: job.size(),
            counters: GlobalArray::builder(job, [job.size()]).name("tasks taken").zeros().create()?,
            round: 0,
            plan: Plan::default(),
            visits: Vec::new(),
            fresh: true,
            levels: Levels::new(&[], 0, block),
            lists: BTreeMap::new(),
            spare: Vec::new(),
            scratch: Scratch::default(),
            reference: vec![Cluster::EMPTY; clusters],
            positions: vec![Cluster::EMPTY; clusters],
            forces: vec![Cluster::ZERO; clusters],
            blocks: vec![State::default(); clusters.div_ceil(block)],
            cuts,
            tasks: 0,
            lists_made: 0,
            times: Times::default(),
        })
    }

    /// Throws all lists away and plans the tasks anew from where atoms are now. One-sided, but all ranks must do it after the
    /// same step.
    pub(crate) fn plan(&mut self, positions: &GlobalArray<f64, Ix1>) -> Result<(), Error> {
        let all = 0..self.positions.len();
        fetch(positions, &mut self.reference, all)?;
        self.pace.keep(|| self.replan());
        Ok(())
    }

    /// The same by the reference. All blocks are held against each other, with some 40 operations for two of them; boxes take 6 for
    /// each coordinate, which is read and copied.
    fn replan(&mut self) -> ((), Work) {
        self.positions.copy_from_slice(&self.reference);
        self.blocks.iter_mut().for_each(|block| block.fetched = true);
        self.levels = Levels::new(&self.reference, self.atoms, self.block);
        let cuts = &self.cuts;
        let near = |block: usize| {
            let owner = cuts.partition_point(|&cut| cut <= block) - 1;
            cuts.partition_point(|&cut| cut < cuts[owner])..owner + 1
        };
        self.plan = Plan::new(&self.levels, self.lengths, self.reach, self.ranks, near);
        self.visits = others(self.rank, self.ranks).filter(|&rank| !self.plan.queues[rank].tasks.is_empty()).collect();
        self.spare.extend(std::mem::take(&mut self.lists).into_values());
        self.fresh = true;
        let (blocks, numbers) = (self.levels.blocks() as f64, (NUMBERS * self.positions.len()) as f64);
        ((), Work::flops(20.0 * blocks * (blocks + 1.0) + 6.0 * numbers) + Work::bytes(24.0 * numbers))
    }

    /// After the first step of a plan, gives each task to the rank that made its list. Collective.
    pub(crate) fn deal(&mut self, job: &Job) -> Result<(), Error> {
        if !std::mem::take(&mut self.fresh) {
            return Ok(());
        }
        // Each task was done by one rank, so all others add zeros. A word has the rank above the cost.
        let mut words = vec![0; self.plan.pairings.len()];
        for (&task, list) in &self.lists {
            words[task] = (self.rank as u64) << COST_BITS | list.cost();
        }
        job.all_reduce(&mut words, ops::sum)?;
        let known: Vec<(usize, u64)> =
            words.into_iter().map(|word| ((word >> COST_BITS) as usize, word & ((1 << COST_BITS) - 1))).collect();
        self.plan.deal(&known);
        self.visits = others(self.rank, self.ranks).filter(|&rank| self.plan.queues[rank].is_worth_a_visit()).collect();
        Ok(())
    }

    /// Moves the own counter on to the next round: one-sided, between two steps, when no rank takes tasks.
    pub(crate) fn next_round(&mut self) -> Result<(), Error> {
        self.round += ROUND;
        self.counters.swap([self.rank], self.round)?;
        Ok(())
    }

    /// Adds the forces of this rank's share of all pairs to the global array, and returns energy and virial of the share if
    /// `sums`. One-sided; the forces are whole after the next sync.
    pub(crate) fn compute(
        &mut self,
        positions: &GlobalArray<f64, Ix1>,
        forces: &GlobalArray<f64, Ix1>,
        sums: bool,
    ) -> Result<Sums, Error> {
        self.prefetch(positions)?;
        let mut total = Sums::default();
        let mut misses = 0;
        for visit in 0..=self.visits.len() {
            let queue = if visit == 0 { self.rank } else { self.visits[visit - 1] };
            let before = self.tasks;
            while self.worth_while(queue)?
                && let Some(task) = self.take(queue)?
            {
                self.fetch_blocks(task, positions)?;
                let start = self.pace.job.now();
                let share = self.pace.keep(|| self.task(task, sums));
                self.times.computing += self.pace.job.now() - start;
                total.energy += share.energy;
                total.virial += share.virial;
                self.tasks += 1;
            }
            misses = if self.tasks > before { 0 } else { misses + 1 };
            if misses == PATIENCE {
                break;
            }
        }
        let start = self.pace.job.now();
        self.give(forces)?;
        self.times.accumulate += self.pace.job.now() - start;
        Ok(total)
    }

    /// True if this rank should take the next task of a queue, so far as a look at the counter can tell.
    fn worth_while(&self, queue: usize) -> Result<bool, Error> {
        if queue == self.rank || self.fresh {
            return Ok(true);
        }
        let (waiting, place) = (&self.plan.queues[queue], self.counters.load([queue])? - self.round);
        let place = place as usize;
        let Some(&task) = waiting.tasks.get(place) else { return Ok(false) };
        Ok(self.lists.contains_key(&(task as usize)) || waiting.is_worth_a_list(place))
    }

    /// Takes the next task of a queue, if there is one.
    fn take(&self, queue: usize) -> Result<Option<usize>, Error> {
        let place = self.counters.fetch_add([queue], 1)? - self.round;
        Ok(self.plan.queues[queue].tasks.get(place as usize).map(|&task| task as usize))
    }

    /// The positions of these clusters when the plan was made.
    pub(crate) fn reference(&self, clusters: Range<usize>) -> &[Cluster] {
        &self.reference[clusters]
    }

    /// Fetches the blocks that the step before needed, neighbours together.
    fn prefetch(&mut self, positions: &GlobalArray<f64, Ix1>) -> Result<(), Error> {
        for run in runs(&self.blocks, |block| block.wanted && !block.fetched) {
            fetch(positions, &mut self.positions, clusters(&run, self.block, self.forces.len()))?;
            self.blocks[run].iter_mut().for_each(|block| block.fetched = true);
        }
        Ok(())
    }

    /// Fetches what a block of the force matrix needs, if it is not there.
    fn fetch_blocks(&mut self, number: usize, positions: &GlobalArray<f64, Ix1>) -> Result<(), Error> {
        let pairing = &self.plan.pairings[number];
        for block in [pairing.a, pairing.b] {
            if !self.blocks[block].fetched {
                fetch(positions, &mut self.positions, self.levels.clusters_of(block))?;
                self.blocks[block].fetched = true;
            }
            self.blocks[block].touched = true;
        }
        Ok(())
    }

    /// One block of the force matrix.
    fn task(&mut self, number: usize, sums: bool) -> (Sums, Work) {
        let pairing = &self.plan.pairings[number];
        let mut work = Work::default();
        let list = self.lists.entry(number).or_insert_with(|| {
            let mut list = self.spare.pop().unwrap_or_default();
            work = list.build(pairing, &self.levels, &self.reference, self.atoms, self.reach, &mut self.scratch);
            self.lists_made += 1;
            list
        });
        let share = add_forces(list, &self.potential, &self.positions, &mut self.forces, sums);
        (share, work + kernel::work(list, &self.potential, sums))
    }

    /// Accumulates what the tasks have left in the buffer, neighbouring blocks together, and empties it.
    fn give(&mut self, forces: &GlobalArray<f64, Ix1>) -> Result<(), Error> {
        for run in runs(&self.blocks, |block| block.touched) {
            let run = clusters(&run, self.block, self.forces.len());
            let (start, end) = (run.start * NUMBERS, run.end * NUMBERS);
            forces.accumulate(start..end, 1.0, ArrayView1::from(numbers(&self.forces[run.clone()])))?;
            self.forces[run].fill(Cluster::ZERO);
        }
        for block in &mut self.blocks {
            *block = State { wanted: block.touched, fetched: false, touched: false };
        }
        Ok(())
    }
}

/// All ranks but `rank`, in the order in which it visits their queues.
fn others(rank: usize, ranks: usize) -> impl Iterator<Item = usize> {
    let powers = (0..usize::BITS).map(|power| 1 << power).take_while(move |&distance: &usize| distance < ranks);
    let rest = (3..ranks).filter(|distance| !distance.is_power_of_two());
    powers.chain(rest).map(move |distance| (rank + distance) % ranks)
}

/// Clusters of a run of blocks.
fn clusters(run: &Range<usize>, block: usize, count: usize) -> Range<usize> {
    run.start * block..(run.end * block).min(count)
}

fn fetch(positions: &GlobalArray<f64, Ix1>, to: &mut [Cluster], clusters: Range<usize>) -> Result<(), Error> {
    let patch = clusters.start * NUMBERS..clusters.end * NUMBERS;
    positions.get_into(patch, ArrayViewMut1::from(numbers_mut(&mut to[clusters])))
}

/// Runs of neighbouring blocks that are `wanted`.
fn runs(blocks: &[State], wanted: impl Fn(&State) -> bool) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for block in (0..blocks.len()).filter(|&block| wanted(&blocks[block])) {
        match runs.last_mut() {
            Some(run) if run.end == block => run.end += 1,
            _ => runs.push(block..block + 1),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_other_rank_is_visited_once() {
        assert_eq!(others(0, 1).count(), 0);
        assert!(others(5, 7).eq([6, 0, 2, 1, 3, 4]));
        for ranks in [2, 16, 33] {
            let mut all: Vec<usize> = others(1, ranks).chain([1]).collect();
            all.sort_unstable();
            assert!(all.into_iter().eq(0..ranks));
        }
    }
}
