//! Random programs on several arrays, compared with the same program on plain ndarrays.
//!
//! A program is rounds of operations between syncs. Every rank draws the whole program from the same seed and runs its own part
//! of it on the global arrays, and everybody's part on its model. Within a round an array is either written, each rank inside
//! a band of its own, or added to, by all anywhere; both give the same result in every order. Its bands may be read back by
//! their writers, with whatever was written there in the round.

mod channels;
mod messages;
#[path = "../random/mod.rs"]
mod random;
#[path = "../runner/mod.rs"]
mod runner;

use std::process::ExitCode;

use global_arrays::{FetchOp, prelude::*};
use ndarray::{Array, ArrayD};

use random::{Axis, Random, patch};

/// Programs that one process runs.
const BATCH: u64 = 10;

/// The harshest network, which the long tier gives many more programs, and how many of them a process runs.
const HARSHEST: &str = "threads+hidden+scrambled+delayed";
const MANY: u64 = 100_000;
const MANY_BATCH: u64 = 500;

/// libfabric that keeps no order and refuses at random.
const STRICT: &str = "ofi:strict+hidden";

fn main() -> ExitCode {
    let seeds = if runner::long() { 2000 } else { 50 };
    let mut cases = Vec::new();
    let mut networks = runner::networks();
    if !runner::long() && !runner::are_named() {
        // Little data, so that a network of active messages is quick enough for every day.
        networks.extend(["threads:packets+hidden", STRICT]);
    }
    if runner::long() && !runner::are_named() {
        networks.push(HARSHEST);
    }
    for network in networks {
        let (seeds, batch) = match network {
            HARSHEST if runner::long() => (MANY, MANY_BATCH),
            // It takes its time.
            STRICT if !runner::long() => (BATCH, BATCH),
            _ => (seeds, BATCH),
        };
        for first in (0..seeds).step_by(batch as usize) {
            let body = move || {
                for seed in first..first + batch {
                    let ranks = Random::new(seed).between(1, 5);
                    let run = runner::launch(network).ranks(ranks).run(|job| program(job, seed));
                    run.unwrap_or_else(|error: Error| panic!("seed {seed}, {ranks} ranks: {error}"));
                }
            };
            cases.push(runner::case(format!("{network}::seeds_{first}_to_{}", first + batch - 1), body).within(600));
            let body = move || {
                for seed in first..first + batch {
                    let ranks = Random::new(seed).between(1, 7);
                    let run = runner::launch(network).ranks(ranks).run(|job| channels::program(job, seed));
                    run.unwrap_or_else(|error: Error| panic!("seed {seed}, {ranks} ranks: {error}"));
                }
            };
            cases.push(runner::case(format!("{network}::channels_{first}_to_{}", first + batch - 1), body).within(600));
            let body = move || {
                for seed in first..first + batch {
                    let ranks = Random::new(seed).between(1, 7);
                    let run = runner::launch(network).ranks(ranks).run(|job| messages::program(job, seed));
                    run.unwrap_or_else(|error: Error| panic!("seed {seed}, {ranks} ranks: {error}"));
                }
            };
            cases.push(runner::case(format!("{network}::messages_{first}_to_{}", first + batch - 1), body).within(600));
        }
    }
    let starts = runner::launched::starts();
    for (at, &(network, ranks)) in starts.iter().enumerate() {
        // Each start has seeds of its own.
        let (first, step) = (at as u64, starts.len());
        let body = move || {
            for seed in (first..seeds).step_by(step) {
                let run = runner::launch(network).run(|job| {
                    [program, channels::program, messages::program].into_iter().try_for_each(|program| program(job, seed))
                });
                run.unwrap_or_else(|error: Error| panic!("seed {seed}: {error}"));
            }
        };
        let name = format!("{network}::{ranks}_ranks::every_{step}th_seed_from_{first}");
        cases.push(runner::case(name, body).ranks(ranks).within(600));
    }
    runner::main(cases)
}

/// A global array and what it must be.
struct Pair<D> {
    array: GlobalArray<i64, D>,
    model: ArrayD<i64>,
}

fn program(job: &Job, seed: u64) -> Result<(), Error> {
    let mut random = Random::new(seed + 1_000_000);
    let mut lines: Vec<Pair<Ix1>> = Vec::new();
    let mut planes: Vec<Pair<Ix2>> = Vec::new();
    let mut cubes: Vec<Pair<Ix3>> = Vec::new();
    for _ in 0..random.between(3, 8) {
        // Arrays come and go.
        match random.below(4) {
            0 => lines.push(create(job, &mut random)?),
            1 => planes.push(create(job, &mut random)?),
            2 => cubes.push(create(job, &mut random)?),
            _ if lines.len() > 1 => drop(lines.swap_remove(random.below(2))),
            _ => planes.drain(..planes.len().min(1)).try_for_each(|pair| pair.array.destroy())?,
        }
        for pair in &mut lines {
            pair.round(job, &mut random)?;
        }
        for pair in &mut planes {
            pair.round(job, &mut random)?;
        }
        for pair in &mut cubes {
            pair.round(job, &mut random)?;
        }
        job.sync()?;
        lines.iter_mut().try_for_each(|pair| pair.together(job, &mut random))?;
        planes.iter_mut().try_for_each(|pair| pair.together(job, &mut random))?;
        cubes.iter_mut().try_for_each(|pair| pair.together(job, &mut random))?;
        lines.iter().try_for_each(Pair::compare)?;
        planes.iter().try_for_each(Pair::compare)?;
        cubes.iter().try_for_each(Pair::compare)?;
        job.sync()?;
    }
    Ok(())
}

fn create<D: Dimension + Copy>(job: &Job, random: &mut Random) -> Result<Pair<D>, Error> {
    let mut extents = D::zeros(D::NDIM.expect("a fixed number of axes"));
    let most = [60, 16, 8][extents.ndim() - 1];
    extents.slice_mut().iter_mut().for_each(|n| *n = random.between(1, most));
    let block: Vec<usize> = extents.slice().iter().map(|&n| random.between(1, n)).collect();
    let first = random.below(100) as i64;
    let order = if random.chance(50) { Order::RowMajor } else { Order::ColumnMajor };
    // Seldom on some of the ranks only, in an order of their own.
    let mut owners: Vec<usize> = (0..job.size()).collect();
    if random.chance(30) {
        owners.rotate_left(random.below(job.size()));
        owners.truncate(random.between(1, job.size()));
    }
    let builder = GlobalArray::builder(job, extents).fill(first).order(order).restrict(owners.clone());
    let builder = match random.below(6) {
        0 => builder,
        1 => builder.block_cyclic(block),
        2 => builder.tiled(block),
        3 => {
            let mut cuts: Vec<Vec<usize>> = Vec::new();
            for &n in extents.slice() {
                let mut axis: Vec<usize> = (0..random.below(5)).map(|_| random.between(0, n)).collect();
                axis.sort_unstable();
                axis.insert(0, 0);
                cuts.push(axis);
            }
            builder.tiled_irregular(cuts)
        }
        4 => builder.ghosts(block),
        _ => {
            let mut cuts = vec![vec![0]; extents.ndim()];
            let axis = random.below(extents.ndim());
            let mut more: Vec<usize> = (1..owners.len()).map(|_| random.between(0, extents[axis])).collect();
            more.sort_unstable();
            cuts[axis].extend(more);
            builder.irregular(cuts)
        }
    };
    Ok(Pair { array: builder.create()?, model: ArrayD::from_elem(extents.slice(), first) })
}

impl<D: ndarray::RemoveAxis + Copy> Pair<D> {
    fn round(&mut self, job: &Job, random: &mut Random) -> Result<(), Error> {
        if random.chance(60) {
            for rank in 0..job.size() {
                for _ in 0..random.below(4) {
                    self.write(rank, job, random)?;
                }
            }
            return Ok(());
        }
        // Accumulates and atomics on one element must not meet: one kind for a round.
        let atomics = random.chance(40);
        for rank in 0..job.size() {
            for _ in 0..random.below(4) {
                if atomics { self.count(rank, job, random)? } else { self.add(rank, job, random)? }
            }
        }
        Ok(())
    }

    /// Operations of all ranks, seldom with a sync for each.
    fn together(&mut self, job: &Job, random: &mut Random) -> Result<(), Error> {
        if random.chance(80) {
            return (0..random.below(2)).try_for_each(|_| self.operate(random));
        }
        job.unsynced(|| (0..random.below(5)).try_for_each(|_| self.operate(random)))
    }

    fn operate(&mut self, random: &mut Random) -> Result<(), Error> {
        let axes: Vec<Axis> = self.array.shape().iter().map(|&n| Axis::random(random, 0, n)).collect();
        let number = random.below(9) as i64 - 4;
        let slice = |axis: ndarray::AxisDescription| axes[axis.axis.index()].slice();
        match random.below(7) {
            0 => {
                self.model.slice_each_axis_mut(slice).mapv_inplace(|x| x % 1000 + number);
                self.array.at_mut(patch::<D>(&axes)).map(|x| x % 1000 + number)
            }
            1 => {
                self.model.mapv_inplace(|x| x % 1000 * number);
                self.array.map(|x| x % 1000)?;
                self.array.scale(number)
            }
            2 => {
                let sum = self.model.slice_each_axis(slice).sum();
                assert_eq!(self.array.at(patch::<D>(&axes)).sum()?, sum, "sum of {axes:?} of {:?}", self.array);
                Ok(())
            }
            3 => {
                let turned = self.array.duplicate("turned").and_then(|mut turned| {
                    turned.assign_reshaped(self.array.t())?;
                    turned.zip_with(&self.array, |a, b| 2 * a - b)?;
                    self.array.assign(&turned)
                });
                let flat = self.model.t().iter().copied().collect();
                let turned_model = ArrayD::from_shape_vec(self.model.raw_dim(), flat).expect("as many elements");
                self.model = 2 * &turned_model - &self.model;
                self.model.mapv_inplace(|x| x % 10_000);
                turned.and_then(|()| self.array.map(|x| x % 10_000))
            }
            4 => {
                let axis = ndarray::Axis(random.below(self.model.ndim()));
                assert_eq!(self.array.sum_axis(axis)?.get(..)?.into_dyn(), self.model.sum_axis(axis), "{:?}", self.array);
                Ok(())
            }
            5 => {
                // The two halves of the first axis.
                let half = self.model.shape()[0] / 2;
                let mut axes: Vec<Axis> = axes.clone();
                axes[0] = Axis { start: 0, count: half, step: 1 };
                let mut to = axes.clone();
                to[0].start = half;
                let from = self.model.slice_each_axis(|axis| axes[axis.axis.index()].slice()).to_owned();
                self.model.slice_each_axis_mut(|axis| to[axis.axis.index()].slice()).assign(&from);
                self.array.copy_within(patch::<D>(&axes), patch::<D>(&to))
            }
            _ => {
                self.model.slice_each_axis_mut(slice).fill(number);
                self.array.at_mut(patch::<D>(&axes)).fill(number)
            }
        }
    }

    /// Something inside the band of a rank along the first axis.
    fn write(&mut self, rank: usize, job: &Job, random: &mut Random) -> Result<(), Error> {
        let extents = self.array.shape().to_vec();
        let (low, high) = (rank * extents[0] / job.size(), (rank + 1) * extents[0] / job.size());
        let mine = rank == job.rank();
        let first = random.below(10_000) as i64;
        let mut axes: Vec<Axis> = extents.iter().map(|&n| Axis::random(random, 0, n)).collect();
        axes[0] = Axis::random(random, low, high);
        let places = places::<D>(&axes, random);
        match random.below(5) {
            0 => {
                let values: Vec<i64> = (0..places.len() as i64).map(|k| first + k).collect();
                // Equal subscripts would leave open which value wins.
                let (places, values): (Vec<_>, Vec<_>) = distinct(places, values);
                places.iter().zip(&values).for_each(|(at, &value)| self.model[at.slice()] = value);
                if mine && first % 2 == 0 {
                    self.array.scatter(&places, &values)?;
                } else if mine {
                    places.iter().zip(&values).try_for_each(|(&at, &value)| self.array.store(at, value))?;
                }
            }
            1 => {
                if mine {
                    let mut got = vec![0; places.len()];
                    self.array.gather(&places, &mut got)?;
                    for (at, got) in places.iter().zip(got) {
                        assert_eq!(got, self.model[at.slice()], "gather {at:?} of {:?}", self.array);
                        assert_eq!(self.array.load(*at)?, got, "load {at:?} of {:?}", self.array);
                    }
                }
            }
            2 if mine => {
                let expected = self.model.slice_each_axis(|axis| axes[axis.axis.index()].slice());
                assert_eq!(self.array.get(patch::<D>(&axes))?.into_dyn(), expected, "get {axes:?} of {:?}", self.array);
            }
            2 => {}
            _ => {
                let buffer = numbers::<D>(&axes, first);
                self.model.slice_each_axis_mut(|axis| axes[axis.axis.index()].slice()).assign(&buffer.view().into_dyn());
                if mine {
                    self.array.put(patch::<D>(&axes), &buffer)?;
                }
            }
        }
        Ok(())
    }

    fn add(&mut self, rank: usize, job: &Job, random: &mut Random) -> Result<(), Error> {
        let axes: Vec<Axis> = self.array.shape().to_vec().iter().map(|&n| Axis::random(random, 0, n)).collect();
        let (first, alpha) = (random.below(1000) as i64, random.below(9) as i64 - 4);
        if random.chance(40) {
            let places = places::<D>(&axes, random);
            let values: Vec<i64> = (0..places.len() as i64).map(|k| first + k).collect();
            places.iter().zip(&values).for_each(|(at, &value)| self.model[at.slice()] += alpha * value);
            return if rank == job.rank() { self.array.scatter_accumulate(&places, alpha, &values) } else { Ok(()) };
        }
        let buffer = numbers::<D>(&axes, first);
        let mut target = self.model.slice_each_axis_mut(|axis| axes[axis.axis.index()].slice());
        target.zip_mut_with(&buffer.view().into_dyn(), |a, &b| *a += alpha * b);
        if rank == job.rank() { self.array.accumulate(patch::<D>(&axes), alpha, &buffer) } else { Ok(()) }
    }

    fn count(&mut self, rank: usize, job: &Job, random: &mut Random) -> Result<(), Error> {
        let axes: Vec<Axis> = self.array.shape().to_vec().iter().map(|&n| Axis::random(random, 0, n)).collect();
        let amount = random.below(1000) as i64;
        for at in places::<D>(&axes, random) {
            self.model[at.slice()] += amount;
            if rank == job.rank() {
                self.array.fetch_op(at, FetchOp::Add, amount)?;
            }
        }
        Ok(())
    }

    fn compare(&self) -> Result<(), Error> {
        assert_eq!(self.array.get(..)?.into_dyn(), self.model, "{:?}", self.array);
        Ok(())
    }
}

/// Some subscripts of a patch.
fn places<D: Dimension>(axes: &[Axis], random: &mut Random) -> Vec<D> {
    if axes.iter().any(|axis| axis.count == 0) {
        return Vec::new();
    }
    let some = random.below(12);
    let one = |random: &mut Random| {
        let mut at = D::zeros(axes.len());
        for (at, axis) in at.slice_mut().iter_mut().zip(axes) {
            *at = axis.start.wrapping_add_signed(axis.step * random.below(axis.count) as isize);
        }
        at
    };
    (0..some).map(|_| one(random)).collect()
}

fn distinct<D: Dimension>(places: Vec<D>, values: Vec<i64>) -> (Vec<D>, Vec<i64>) {
    let mut pairs: Vec<(D, i64)> = Vec::new();
    for (at, value) in places.into_iter().zip(values) {
        if pairs.iter().all(|(known, _)| *known != at) {
            pairs.push((at, value));
        }
    }
    pairs.into_iter().unzip()
}

fn numbers<D: Dimension>(axes: &[Axis], first: i64) -> Array<i64, D> {
    let mut k = first;
    let counted = ArrayD::from_shape_simple_fn(random::shape(axes), || {
        k += 1;
        k
    });
    counted.into_dimensionality().expect("as many axes")
}
