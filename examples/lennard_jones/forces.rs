//! The force phase of a step: tasks from counters, forces by accumulate.
//!
//! Each rank holds the blocks of atoms that its tasks touch ([`held`](crate::held)): positions, fetched once a step and in bulk for those it
//! needed the step before, and a buffer of forces, which it accumulates into the global array when no task is left. Between, it
//! touches nothing but its own memory and the counters.
//!
//! **Queues.** Each rank has a queue with an atomic counter ([`queues`](crate::queues)), and any rank may take any task: first from its own
//! queue until that is empty, then from the others'. In the first step of a plan all tasks lack their lists, and whoever takes one makes its list;
//! then the task waits in that rank's queue from then on, which nobody else has to be told. So work is dealt by how fast
//! each rank got on, list making is shared by all, and hardly any list is made twice: later a rank takes a task from
//! another whose list it lacks only if so much is left in that queue that the list is worth its while.
//!
//! **Other queues.** To look at the queue of every other rank in each step is too much where there are thousands. If no queue has a task for
//! others, which all know from the all-reduce of the step, no rank visits any. Else it visits those at distances 1, 2, 4 and so on
//! first, which are others for each rank, and gives up after [`PATIENCE`] queues without a task for it. No task is left by that: the
//! owner of a queue empties it.
//!
//! # Source
//! A. Vishnu, J. Daily, B. Palmer, *Designing scalable PGAS communication subsystems on Cray Gemini interconnect*, HiPC 2012,
//! §IV-C: blocks of the force matrix by a shared counter, forces returned by accumulate.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use global_arrays::{prelude::*, simulation::Work};
use ndarray::{ArrayView1, ArrayViewMut1};

use crate::boxes::{Bounds, whole};
use crate::cluster::{Cluster, NUMBERS, WIDTH, numbers, numbers_mut};
use crate::held::Held;
use crate::kernel::{self, Sums, add_forces};
use crate::list::{List, Pairing, Scratch};
use crate::pace::Pace;
use crate::plan::{Plan, Shares, Task};
use crate::potential::Potential;
use crate::queues::Queues;
use crate::radial::Radial;
use crate::simulation::Method;

/// How many queues without a task for it a rank visits one after the other before it gives up.
const PATIENCE: usize = 16;

/// How many times a task's own cost must be left in another rank's queue before the task is taken without its list.
///
/// Measured, 32,000 atoms of the melt: to make a list takes 3.1 times as long as to use it once.
const WORTH: u64 = 5;

/// The same where nobody has lists: more than the task itself, which its rank is about to take.
const WORTH_AT_FIRST: u64 = 2;

/// The estimated cost of a task is a part of 1, or a few.
const ESTIMATES: f64 = (1 << 20) as f64;

/// The part of a job's state that makes forces.
#[derive(Debug)]
pub(crate) struct Forces<'j> {
    pace: Pace<'j>,
    atoms: usize,
    /// Clusters of a block.
    block: usize,
    potential: Potential,
    /// Cut-off plus skin.
    reach: f64,
    lengths: [f64; 3],
    shares: Shares,
    queues: Queues,
    /// Other queues may have a task for this rank.
    visits: bool,
    /// No step has been done by the plan.
    fresh: bool,
    /// The box around each block of the system.
    boxes: Vec<Bounds>,
    held: Held,
    lists: BTreeMap<Task, List>,
    spare: Vec<List>,
    scratch: Scratch,
    /// Positions when the plan was made, by which all lists are made, also those that are made later.
    reference: GlobalArray<f64, Ix1>,
    /// The reference of this rank's atoms.
    own: Vec<Cluster>,
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

impl<'j> Forces<'j> {
    /// For `atoms` atoms in a box with edges `lengths`, in blocks of `block` clusters; `reference` has room for their positions. Collective.
    pub(crate) fn new(
        pace: Pace<'j>,
        (atoms, lengths): (usize, [f64; 3]),
        (block, shares): (usize, Shares),
        reference: GlobalArray<f64, Ix1>,
        method: &Method,
    ) -> Result<Self, Error> {
        let potential = method.potential.clone();
        Ok(Forces {
            pace,
            atoms,
            block,
            reach: potential.cutoff() + method.skin,
            lengths,
            shares,
            queues: Queues::new(pace.job, shares)?,
            visits: true,
            fresh: true,
            boxes: Vec::new(),
            held: Held::new((atoms, block), potential.is_mixed()),
            potential,
            lists: BTreeMap::new(),
            spare: Vec::new(),
            scratch: Scratch::default(),
            reference,
            own: Vec::new(),
            tasks: 0,
            lists_made: 0,
            times: Times::default(),
        })
    }

    /// Throws all lists away and plans the tasks anew from where atoms are now. Collective.
    pub(crate) fn plan(&mut self, positions: &GlobalArray<f64, Ix1>, tags: &GlobalArray<u64, Ix1>) -> Result<(), Error> {
        let job = self.pace.job;
        self.refer(positions)?;
        self.spare.extend(std::mem::take(&mut self.lists).into_values());
        let tasks = self.pace.keep(|| self.tasks());
        let blocks: BTreeSet<u32> = tasks.iter().flat_map(|(task, _)| [task.a, task.b]).collect();
        self.held.hold(job, blocks.into_iter(), positions, tags)?;
        self.pace.keep(|| {
            self.held.measure();
            ((), boxes(self.held.numbers()))
        });
        self.queues.fill(job, tasks, WORTH_AT_FIRST)?;
        self.queues.open()?;
        (self.fresh, self.visits) = (true, true);
        Ok(())
    }

    /// Makes the present positions the reference, and the boxes of all blocks. Collective.
    fn refer(&mut self, positions: &GlobalArray<f64, Ix1>) -> Result<(), Error> {
        let job = self.pace.job;
        let blocks = self.shares.owned(job.rank());
        let clusters = blocks.start * self.block..(blocks.end * self.block).min(self.atoms.div_ceil(WIDTH));
        let patch = clusters.start * NUMBERS..clusters.end * NUMBERS;
        self.own.resize(clusters.len(), Cluster::EMPTY);
        if !self.own.is_empty() {
            positions.get_into(patch.clone(), ArrayViewMut1::from(numbers_mut(&mut self.own)))?;
            // Read in later steps; in this one, positions are the reference.
            self.reference.put(patch, ArrayView1::from(numbers(&self.own)))?;
        }
        // Both ends of the boxes as maxima; what others own is smaller than all.
        let ends = |bounds: Bounds| [bounds.low.map(|low| -low), bounds.high];
        let mut all = vec![ends(Bounds::NOTHING); self.shares.blocks];
        self.pace.keep(|| {
            for (clusters, block) in self.own.chunks(self.block).zip(blocks) {
                all[block] = ends(whole(clusters, self.atoms - block * self.block * WIDTH));
            }
            ((), boxes(NUMBERS * self.own.len()))
        });
        job.all_reduce(all.as_flattened_mut().as_flattened_mut(), f64::max)?;
        self.boxes = all.into_iter().map(|[low, high]| Bounds { low: low.map(|low| -low), high }).collect();
        Ok(())
    }

    /// This rank's tasks by the plan. All blocks are held against those that it has or shares, with some 40 operations for two of them.
    fn tasks(&self) -> (Vec<(Task, u64)>, Work) {
        let rank = self.pace.job.rank();
        let plan = Plan { boxes: &self.boxes, lengths: self.lengths, reach: self.reach, shares: self.shares };
        let tasks = plan.tasks(rank);
        let tried = self.shares.shared(rank).len() * self.shares.blocks;
        let cost = |cost: f64| (cost * ESTIMATES) as u64;
        (tasks.into_iter().map(|(task, estimate)| (task, cost(estimate))).collect(), Work::flops(20.0 * tried as f64))
    }

    /// Gets the own queue ready for the next step; after the first step of a plan, it has the tasks whose lists this rank has made. Returns
    /// whether it has any for others. One-sided, between two steps, when no rank takes tasks.
    pub(crate) fn next_round(&mut self) -> Result<bool, Error> {
        // Queues are what they were, and so is what all know of them, until they are filled.
        let mut for_others = self.visits;
        if std::mem::take(&mut self.fresh) {
            let tasks = self.lists.iter().map(|(&task, list)| (task, list.cost())).collect();
            for_others = self.queues.fill(self.pace.job, tasks, WORTH)?;
        }
        self.queues.open()?;
        Ok(for_others)
    }

    /// Whether any rank has tasks for others in this step.
    pub(crate) fn visit(&mut self, others: bool) {
        self.visits = others;
    }

    /// Adds the forces of this rank's share of all pairs to the global array, and returns energy and virial of the share if
    /// `sums`. One-sided; the forces are whole after the next sync.
    pub(crate) fn compute(
        &mut self,
        positions: &GlobalArray<f64, Ix1>,
        tags: &GlobalArray<u64, Ix1>,
        forces: &GlobalArray<f64, Ix1>,
        sums: bool,
    ) -> Result<Sums, Error> {
        let job = self.pace.job;
        self.held.prefetch(job, positions)?;
        let mut total = Sums::default();
        while let Some(task) = self.queues.take_own()? {
            self.task(task, (positions, tags), sums, &mut total)?;
        }
        let mut misses = 0;
        let ranks = if self.visits { job.size() } else { 1 };
        for queue in others(job.rank(), ranks) {
            let before = self.tasks;
            while self.worth_while(queue)?
                && let Some(task) = self.queues.take(queue)?
            {
                self.task(task, (positions, tags), sums, &mut total)?;
            }
            misses = if self.tasks > before { 0 } else { misses + 1 };
            if misses == PATIENCE {
                break;
            }
        }
        let start = job.now();
        self.held.give(job, forces, self.shares.shared(job.rank()).start)?;
        self.times.accumulate += job.now() - start;
        Ok(total)
    }

    /// True if this rank should take the next task of another's queue, so far as a look at it can tell.
    fn worth_while(&self, queue: usize) -> Result<bool, Error> {
        Ok(self.queues.next(queue)?.is_some_and(|(task, worth)| worth || self.lists.contains_key(&task)))
    }

    /// Counts the pairs of present positions. One-sided, after a sync.
    pub(crate) fn sample(
        &self,
        radial: &mut Radial,
        positions: &GlobalArray<f64, Ix1>,
        tags: &GlobalArray<u64, Ix1>,
    ) -> Result<(), Error> {
        // Since the boxes were made, two atoms may have come nearer by half a skin each.
        let reach = radial.range() + self.reach - self.potential.cutoff();
        let plan = Plan { boxes: &self.boxes, lengths: self.lengths, reach, shares: self.shares };
        let held = Held::new((self.atoms, self.block), self.potential.is_mixed());
        radial.sample(self.pace.job, &plan, held, (positions, tags))
    }

    /// The positions of this rank's atoms when the plan was made.
    pub(crate) fn reference(&self) -> &[Cluster] {
        &self.own
    }

    /// One block of the force matrix.
    fn task(
        &mut self,
        task: Task,
        (positions, tags): (&GlobalArray<f64, Ix1>, &GlobalArray<u64, Ix1>),
        sums: bool,
        total: &mut Sums,
    ) -> Result<(), Error> {
        let job = self.pace.job;
        let reference = if self.fresh { positions } else { &self.reference };
        let a = self.held.touch(job, task.a, (positions, tags), reference)?;
        let b = self.held.touch(job, task.b, (positions, tags), reference)?;
        let start = job.now();
        let share = self.pace.keep(|| self.pairs(task, (a, b), sums));
        self.times.computing += job.now() - start;
        total.energy += share.energy;
        total.virial += share.virial;
        self.tasks += 1;
        Ok(())
    }

    /// The pairs of two slots.
    fn pairs(&mut self, task: Task, (a, b): (usize, usize), sums: bool) -> (Sums, Work) {
        let mut work = Work::default();
        let Held { reference, positions, kinds, forces, levels, .. } = &mut self.held;
        if !self.lists.contains_key(&task) {
            let plan = Plan { boxes: &self.boxes, lengths: self.lengths, reach: self.reach, shares: self.shares };
            let pairing = Pairing { a, b, images: plan.images(task) };
            let mut list = self.spare.pop().unwrap_or_default();
            work = list.build(&pairing, levels, reference, self.reach, &mut self.scratch);
            self.lists.insert(task, list);
            self.lists_made += 1;
        }
        let list = &self.lists[&task];
        let share = add_forces(list, &self.potential, (positions, kinds), forces, sums);
        (share, work + kernel::work(list, &self.potential, sums))
    }
}

/// What it takes to make boxes around so many coordinates: 6 operations for each, which is read and copied.
fn boxes(numbers: usize) -> Work {
    Work::flops(6.0 * numbers as f64) + Work::bytes(24.0 * numbers as f64)
}

/// All ranks but `rank`, in the order in which it visits their queues.
fn others(rank: usize, ranks: usize) -> impl Iterator<Item = usize> {
    let powers = (0..usize::BITS).map(|power| 1 << power).take_while(move |&distance: &usize| distance < ranks);
    let rest = (3..ranks).filter(|distance| !distance.is_power_of_two());
    powers.chain(rest).map(move |distance| (rank + distance) % ranks)
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
