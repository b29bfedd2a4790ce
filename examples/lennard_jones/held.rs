//! What a rank holds of other ranks' atoms: the blocks that its tasks touch, and nothing else.
//!
//! Each held block has a *slot*, in which lie its positions when the plan was made, by which lists are made; its positions of
//! this step; the kinds of its atoms, if there are several; and the forces on its atoms, until they are accumulated. Slots stay
//! where they are as long as the plan holds, because lists point at them. Neighbouring blocks lie in neighbouring slots, so that
//! runs of them come and go in one piece; blocks of tasks that were taken from others follow behind.

use std::collections::BTreeMap;
use std::ops::Range;

use global_arrays::prelude::*;
use ndarray::{ArrayView1, ArrayViewMut1};

use crate::boxes::Levels;
use crate::cluster::{Cluster, Lanes, NUMBERS, WIDTH, numbers, numbers_mut};
use crate::tag;

/// Blocks in their slots.
#[derive(Debug)]
pub(crate) struct Held {
    /// Atoms of the whole system.
    atoms: usize,
    /// Clusters of a block.
    block: usize,
    /// By the number of the block.
    slots: BTreeMap<u32, usize>,
    states: Vec<State>,
    /// Positions when the plan was made.
    pub(crate) reference: Vec<Cluster>,
    pub(crate) positions: Vec<Cluster>,
    /// The kind of each atom as a number; empty where there is one kind.
    pub(crate) kinds: Vec<Lanes>,
    /// There are several kinds.
    mixed: bool,
    pub(crate) forces: Vec<Cluster>,
    /// Of the reference.
    pub(crate) levels: Levels,
}

/// What a slot has.
#[derive(Debug, Clone, Copy)]
struct State {
    block: usize,
    /// The step before needed it.
    wanted: bool,
    /// Its positions are those of this step.
    fetched: bool,
    /// Forces on its atoms wait to be accumulated.
    touched: bool,
}

/// Neighbouring blocks in neighbouring slots.
struct Run {
    block: usize,
    slots: Range<usize>,
}

impl Held {
    /// Nothing yet, of `atoms` atoms in blocks of `block` clusters; whether they are of several kinds.
    pub(crate) fn new((atoms, block): (usize, usize), mixed: bool) -> Self {
        Held {
            atoms,
            block,
            slots: BTreeMap::new(),
            states: Vec::new(),
            reference: Vec::new(),
            positions: Vec::new(),
            kinds: Vec::new(),
            mixed,
            forces: Vec::new(),
            levels: Levels::new(block),
        }
    }

    /// Holds these blocks, ascending, in place of what it held. Their positions, which it fetches, are the reference. Call
    /// [`measure`](Self::measure) before the next use. One-sided.
    pub(crate) fn hold(
        &mut self,
        job: &Job,
        blocks: impl Iterator<Item = u32>,
        positions: &GlobalArray<f64, Ix1>,
        tags: &GlobalArray<u64, Ix1>,
    ) -> Result<(), Error> {
        self.slots.clear();
        self.states.clear();
        self.levels.clear();
        blocks.for_each(|block| {
            self.slots.insert(block, self.states.len());
            self.states.push(State { block: block as usize, wanted: true, fetched: false, touched: false });
        });
        self.resize();
        let runs = self.runs(|state| state.wanted);
        self.fetch_kinds(tags, &runs)?;
        fetch(job, positions, &mut self.reference, runs, (self.block, self.atoms))
    }

    /// Makes the boxes of all blocks, from where their atoms were when the plan was made.
    pub(crate) fn measure(&mut self) {
        self.positions.copy_from_slice(&self.reference);
        for (slot, state) in self.states.iter_mut().enumerate() {
            state.fetched = true;
            add(&mut self.levels, slot, state.block, &self.reference, (self.block, self.atoms));
        }
    }

    /// The slot of a block that is held.
    pub(crate) fn slot(&self, block: u32) -> usize {
        self.slots[&block]
    }

    /// Fetches the blocks that the step before needed. One-sided.
    pub(crate) fn prefetch(&mut self, job: &Job, positions: &GlobalArray<f64, Ix1>) -> Result<(), Error> {
        let runs = self.runs(|state| state.wanted && !state.fetched);
        runs.iter().for_each(|run| self.states[run.slots.clone()].iter_mut().for_each(|state| state.fetched = true));
        fetch(job, positions, &mut self.positions, runs, (self.block, self.atoms))
    }

    /// The slot of a block that a task touches; fetches what is not there. One-sided.
    pub(crate) fn touch(
        &mut self,
        job: &Job,
        block: u32,
        (positions, tags): (&GlobalArray<f64, Ix1>, &GlobalArray<u64, Ix1>),
        reference: &GlobalArray<f64, Ix1>,
    ) -> Result<usize, Error> {
        let next = self.states.len();
        let slot = *self.slots.entry(block).or_insert(next);
        let block = block as usize;
        let run = || vec![Run { block, slots: slot..slot + 1 }];
        if slot == next {
            self.states.push(State { block, wanted: false, fetched: false, touched: false });
            self.resize();
            self.fetch_kinds(tags, &run())?;
            fetch(job, reference, &mut self.reference, run(), (self.block, self.atoms))?;
            add(&mut self.levels, slot, block, &self.reference, (self.block, self.atoms));
        }
        if !self.states[slot].fetched {
            fetch(job, positions, &mut self.positions, run(), (self.block, self.atoms))?;
        }
        let state = &mut self.states[slot];
        (state.fetched, state.touched) = (true, true);
        Ok(slot)
    }

    /// Accumulates the forces on the blocks that were touched, and forgets them. One-sided.
    ///
    /// It begins behind `first`, and comes to the blocks before it last. If all ranks began with the same block, they would wait for each other.
    pub(crate) fn give(&mut self, job: &Job, forces: &GlobalArray<f64, Ix1>, first: usize) -> Result<(), Error> {
        let mut runs = self.runs(|state| state.touched && state.block > first);
        runs.extend(self.runs(|state| state.touched && state.block <= first));
        job.scope(|scope| {
            for run in &runs {
                let clusters = clusters(run, self.block, self.atoms);
                let start = run.slots.start * self.block;
                let from = ArrayView1::from(numbers(&self.forces[start..start + clusters.len()]));
                scope.accumulate(forces, clusters.start * NUMBERS..clusters.end * NUMBERS, 1.0, from)?;
            }
            Ok(())
        })?;
        for (slot, state) in self.states.iter_mut().enumerate() {
            if state.touched {
                self.forces[slot * self.block..(slot + 1) * self.block].fill(Cluster::ZERO);
            }
            (state.wanted, state.fetched, state.touched) = (state.touched, false, false);
        }
        Ok(())
    }

    /// Numbers in all slots.
    pub(crate) fn numbers(&self) -> usize {
        NUMBERS * self.positions.len()
    }

    fn resize(&mut self) {
        let clusters = self.states.len() * self.block;
        // Forces come first, to lie below positions: else a store of a cluster's forces may have the low twelve bits of the address of the next
        // cluster's positions, for which the load waits (12 % of the kernel, measured).
        self.forces.resize(clusters, Cluster::ZERO);
        self.positions.resize(clusters, Cluster::EMPTY);
        self.reference.resize(clusters, Cluster::EMPTY);
        if self.mixed {
            self.kinds.resize(clusters, [0.0; WIDTH]);
        }
    }

    /// Fetches the kinds of atoms in runs, if there are several kinds. Atoms keep their places as long as a plan holds.
    fn fetch_kinds(&mut self, tags: &GlobalArray<u64, Ix1>, runs: &[Run]) -> Result<(), Error> {
        for run in runs.iter().filter(|_| self.mixed) {
            let clusters = clusters(run, self.block, self.atoms);
            let fetched = tags.get(s![clusters.start * WIDTH..clusters.end * WIDTH])?;
            let to = self.kinds[run.slots.start * self.block..].as_flattened_mut();
            to.iter_mut().zip(fetched).for_each(|(to, tag)| *to = tag::kind(tag) as f64);
        }
        Ok(())
    }

    fn runs(&self, wanted: impl Fn(&State) -> bool) -> Vec<Run> {
        let mut runs: Vec<Run> = Vec::new();
        for (slot, state) in self.states.iter().enumerate().filter(|(_, state)| wanted(state)) {
            match runs.last_mut() {
                Some(run) if run.slots.end == slot && run.block + run.slots.len() == state.block => run.slots.end += 1,
                _ => runs.push(Run { block: state.block, slots: slot..slot + 1 }),
            }
        }
        runs
    }
}

/// The clusters of the system in a run; the last block may be shorter than others.
fn clusters(run: &Run, block: usize, atoms: usize) -> Range<usize> {
    run.block * block..((run.block + run.slots.len()) * block).min(atoms.div_ceil(WIDTH))
}

/// Fetches runs into their slots, all at once.
fn fetch(
    job: &Job,
    from: &GlobalArray<f64, Ix1>,
    to: &mut [Cluster],
    runs: Vec<Run>,
    (block, atoms): (usize, usize),
) -> Result<(), Error> {
    job.scope(|scope| {
        let (mut rest, mut at) = (to, 0);
        for run in runs {
            let clusters = clusters(&run, block, atoms);
            let start = run.slots.start * block - at;
            let (part, behind) = std::mem::take(&mut rest).split_at_mut(start).1.split_at_mut(clusters.len());
            at += start + clusters.len();
            rest = behind;
            scope.get_into(from, clusters.start * NUMBERS..clusters.end * NUMBERS, ArrayViewMut1::from(numbers_mut(part)))?;
        }
        Ok(())
    })
}

/// The boxes of one more block.
fn add(levels: &mut Levels, slot: usize, block: usize, reference: &[Cluster], (clusters, atoms): (usize, usize)) {
    let atoms = (clusters * WIDTH).min(atoms - block * clusters * WIDTH);
    levels.add(&reference[slot * clusters..][..atoms.div_ceil(WIDTH)], atoms);
}
