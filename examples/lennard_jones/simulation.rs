//! A box of atoms that moves: global arrays of positions, velocities and forces, and velocity Verlet.
//!
//! **Arrays.** Position, velocity, force and tag (number and kind) of each atom lie in global arrays, in the order of
//! [`order`](crate::order): blocks of m atoms, a share of neighbouring blocks for each rank. The order is made anew now and then;
//! between, atoms keep their places and move where they will, without being folded back into the box.
//!
//! **Time.** Velocities are those of half a step before the positions, v(t − Δt/2), so that one pass moves all:
//!
//! 1. v ← v + Δt f/m,  x ← x + Δt v,  f ← 0 by each rank on its own atoms, in an epoch;
//! 2. the farthest that an atom has come since lists were made, by an all-reduce: beyond half the skin, new lists;
//! 3. forces, by [`Forces::compute`].
//!
//! v(t) = v(t − Δt/2) + Δt/2 f(t)/m is computed where it is asked for. This is velocity Verlet with its two half kicks joined: the
//! same trajectory up to rounding (W. C. Swope et al., J. Chem. Phys. 76 (1982) 637; leapfrog: R. W. Hockney, 1970).

use std::ops::Range;

use global_arrays::{epoch::OwnedPartMut, prelude::*, simulation::Work};
use ndarray::ArrayViewMut1;
use program::vectorized::vectorized;

use crate::cluster::{Cluster, Lanes, NUMBERS, WIDTH, numbers_mut};
use crate::forces::Forces;
use crate::kernel::Sums;
use crate::order::{Point, order};
use crate::pace::Pace;
use crate::plan::Shares;
use crate::potential::Potential;
use crate::radial::Radial;
use crate::start::Start;
use crate::tag;

/// Lists that are made in one order of the atoms, before they are ordered anew.
///
/// Measured, 32,000 atoms of the melt, 500 steps: 8, 16 and 32 give the same time in the kernel within 3 %, and 21, 9 and 5 ms of
/// ordering in 1.4 s.
const LISTS_OF_AN_ORDER: u32 = 24;

/// How a run is done, beyond its physics.
#[derive(Debug, Clone)]
pub(crate) struct Method {
    pub(crate) potential: Potential,
    /// Of each kind.
    pub(crate) masses: Vec<f64>,
    pub(crate) step: f64,
    /// Atoms of a block of the force matrix, a multiple of 64.
    pub(crate) block: usize,
    /// How much farther than the cut-off lists reach.
    pub(crate) skin: f64,
    /// How far each atom has come is kept.
    pub(crate) ways: bool,
    /// The rank that works at half speed.
    pub(crate) slow: Option<usize>,
}

/// What is measured at one step, sums over all atoms.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Measured {
    pub(crate) potential_energy: f64,
    pub(crate) virial: f64,
    pub(crate) kinetic_energy: f64,
    pub(crate) momentum: [f64; 3],
}

/// The state of a run on one rank.
#[derive(Debug)]
pub(crate) struct Simulation<'j> {
    job: &'j Job,
    pace: Pace<'j>,
    pub(crate) method: Method,
    pub(crate) lengths: [f64; 3],
    pub(crate) atoms: usize,
    positions: GlobalArray<f64, Ix1>,
    velocities: GlobalArray<f64, Ix1>,
    forces: GlobalArray<f64, Ix1>,
    /// The [`tag`](crate::tag) of each place.
    tags: GlobalArray<u64, Ix1>,
    /// Where each atom has come from: its position less its way. Only if ways are asked for.
    origins: Option<GlobalArray<f64, Ix1>>,
    /// This rank's clusters.
    own: Range<usize>,
    /// The masses of their atoms; 1 where there is none.
    masses: Vec<Lanes>,
    pub(crate) pairs: Forces<'j>,
    lists_in_order: u32,
    share: Sums,
}

impl<'j> Simulation<'j> {
    /// Spreads the atoms of `start` over the job and computes their first forces. Collective; all ranks come with the same start.
    pub(crate) fn new(job: &'j Job, start: &Start, method: Method) -> Result<Self, Error> {
        let (atoms, pace) = (start.positions.len(), Pace { job, slow: method.slow == Some(job.rank()) });
        let clusters = atoms.div_ceil(WIDTH);
        let block = method.block / WIDTH;
        let shares = Shares { blocks: clusters.div_ceil(block), ranks: job.size() };
        // Of thousands of ranks few own atoms: arrays that name these alone have short tables.
        let owners: Vec<usize> = (0..job.size()).filter(|&rank| !shares.owned(rank).is_empty()).collect();
        let cuts: Vec<usize> = owners.iter().map(|&rank| shares.owned(rank).start * block).collect();
        let cuts_of = |each: usize| [cuts.iter().map(|cut| cut * each).collect::<Vec<_>>()];
        let array = |name: &str| {
            let all = GlobalArray::<f64, Ix1>::builder(job, [clusters * NUMBERS]).irregular(cuts_of(NUMBERS));
            all.restrict(owners.iter().copied()).name(name).zeros().create()
        };
        let tags = GlobalArray::builder(job, [clusters * WIDTH]).irregular(cuts_of(WIDTH)).restrict(owners.iter().copied());
        let own = shares.owned(job.rank());
        let mut simulation = Simulation {
            job,
            pace,
            lengths: start.lengths,
            atoms,
            positions: array("positions")?,
            velocities: array("velocities")?,
            forces: array("forces")?,
            tags: tags.name("tags").zeros().create()?,
            origins: if method.ways { Some(array("origins")?) } else { None },
            own: (own.start * block).min(clusters)..(own.end * block).min(clusters),
            masses: Vec::new(),
            pairs: Forces::new(pace, (atoms, start.lengths), (block, shares), array("reference")?, &method)?,
            lists_in_order: 0,
            share: Sums::default(),
            method,
        };
        simulation.place(&start.positions, |place| Atom {
            velocity: start.velocities[place],
            tag: tag::tag(place as u64 + 1, start.kind_of[place]),
            way: start.ways.get(place).copied().unwrap_or_default(),
        })?;
        simulation.pairs.plan(&simulation.positions, &simulation.tags)?;
        simulation.compute(true)?;
        // From v(0) to v(−Δt/2).
        let (half, masses) = (0.5 * simulation.method.step, &simulation.masses);
        job.epoch((simulation.velocities.owned_mut(), simulation.forces.owned()), |(mut v, f)| {
            for (at, (v, f)) in v.iter_mut().zip(f.iter()).enumerate() {
                *v -= half * f / mass(masses, at);
            }
        })?;
        Ok(simulation)
    }

    /// Moves all atoms by one step; afterwards [`measure`](Self::measure) may be called if `sums`. Collective.
    pub(crate) fn step(&mut self, sums: bool) -> Result<(), Error> {
        let farthest = self.drift()?;
        // The epoch has begun, so all ranks have taken their last task; none takes another before the all-reduce.
        let for_others = self.pairs.next_round()?;
        let limit = 0.25 * self.method.skin * self.method.skin;
        let mut known = [farthest, f64::from(u8::from(for_others))];
        self.job.all_reduce(&mut known, greater)?;
        let [farthest, for_others] = known;
        self.pairs.visit(for_others > 0.0);
        // An atom that moves by more than a diameter in one step has left what the potential can follow. Before this step none had
        // moved by more than half the skin.
        let before = 0.5 * self.method.skin;
        let sane = farthest.sqrt() <= self.method.potential.diameter() + before;
        if !sane {
            return Err(Error::other(format!(
                "an atom moved by more than {:.3e} in one step of {:?}: the time step is too long, or atoms overlap",
                farthest.sqrt() - before,
                self.method.step
            )));
        }
        if farthest > limit {
            self.lists_in_order += 1;
            if self.lists_in_order >= LISTS_OF_AN_ORDER {
                self.sort()?;
            }
            self.pairs.plan(&self.positions, &self.tags)?;
        }
        self.compute(sums)
    }

    /// v ← v + Δt f/m, x ← x + Δt v, f ← 0; the square of the longest way that an own atom is from where its list was made.
    fn drift(&mut self) -> Result<f64, Error> {
        let (step, pace, masses, reference) = (self.method.step, self.pace, &self.masses, self.pairs.reference());
        let claims = (self.positions.owned_mut(), self.velocities.owned_mut(), self.forces.owned_mut());
        self.job.epoch(claims, |(mut x, mut v, mut f)| {
            pace.keep(|| {
                let x = slice(&mut x);
                // Eight operations on each number; x, v, f are read and written, the reference and the masses are read.
                let numbers = x.len() as f64;
                let work = Work::flops(8.0 * numbers) + Work::bytes((56.0 + 8.0 / 3.0) * numbers);
                (drift(step, (x, slice(&mut v), slice(&mut f)), masses, reference), work)
            })
        })
    }

    fn compute(&mut self, sums: bool) -> Result<(), Error> {
        self.share = self.pairs.compute(&self.positions, &self.tags, &self.forces, sums)?;
        Ok(())
    }

    /// Energies, virial and momentum of the present step. Collective.
    pub(crate) fn measure(&mut self) -> Result<Measured, Error> {
        let (half, masses) = (0.5 * self.method.step, &self.masses);
        self.job.simulation().work(self.streamed(2));
        let (kinetic, momentum) = self.job.epoch((self.velocities.owned(), self.forces.owned()), |(v, f)| {
            let (mut kinetic, mut momentum) = (0.0, [0.0; 3]);
            for (at, (v, f)) in v.iter().zip(f.iter()).enumerate() {
                let mass = mass(masses, at);
                let v = v + half * f / mass;
                kinetic += 0.5 * mass * v * v;
                momentum[at / WIDTH % 3] += mass * v;
            }
            (kinetic, momentum)
        })?;
        let [x, y, z] = momentum;
        let mut sums = [self.share.energy, self.share.virial, kinetic, x, y, z];
        self.job.all_reduce(&mut sums, ops::sum)?;
        let [potential_energy, virial, kinetic_energy, x, y, z] = sums;
        Ok(Measured { potential_energy, virial, kinetic_energy, momentum: [x, y, z] })
    }

    /// Multiplies all velocities v(t) by `factor`. Collective.
    pub(crate) fn scale_velocities(&mut self, factor: f64) -> Result<(), Error> {
        let (half, masses) = (0.5 * self.method.step, &self.masses);
        self.job.simulation().work(self.streamed(3));
        self.job.epoch((self.velocities.owned_mut(), self.forces.owned()), |(mut v, f)| {
            for (at, (v, f)) in v.iter_mut().zip(f.iter()).enumerate() {
                let kick = half * f / mass(masses, at);
                *v = factor * (*v + kick) - kick;
            }
        })
    }

    /// Lets the ways of all atoms begin where they are now. Collective; nothing if ways are not kept.
    pub(crate) fn begin_ways(&mut self) -> Result<(), Error> {
        let Some(origins) = &mut self.origins else { return Ok(()) };
        self.job.epoch((origins.owned_mut(), self.positions.owned()), |(mut origins, x)| {
            origins.iter_mut().zip(x.iter()).for_each(|(origin, x)| *origin = *x);
        })
    }

    /// For each kind the sum of the squares of the ways that its atoms have come. Collective; only if ways are kept.
    pub(crate) fn squared_ways(&mut self) -> Result<Vec<f64>, Error> {
        let mut sums = vec![0.0; self.method.masses.len()];
        self.job.simulation().work(self.streamed(2));
        if let Some(origins) = &mut self.origins {
            let own = sums.clone();
            sums = self.job.epoch((self.positions.owned(), origins.owned(), self.tags.owned()), |(x, origins, tags)| {
                let (mut sums, tags) = (own, tags.iter().copied().collect::<Vec<u64>>());
                for (at, (x, origin)) in x.iter().zip(origins.iter()).enumerate() {
                    let tag = tags[at / NUMBERS * WIDTH + at % WIDTH];
                    if tag::number(tag) > 0 {
                        sums[tag::kind(tag)] += (x - origin) * (x - origin);
                    }
                }
                sums
            })?;
        }
        self.job.all_reduce(&mut sums, ops::sum)?;
        Ok(sums)
    }

    /// Counts pairs by their distances. One-sided, after a sync.
    pub(crate) fn sample(&self, radial: &mut Radial) -> Result<(), Error> {
        self.pairs.sample(radial, &self.positions, &self.tags)
    }

    /// So many passes through one of this rank's own arrays.
    fn streamed(&self, passes: usize) -> Work {
        Work::bytes((8 * passes * NUMBERS * self.own.len()) as f64)
    }

    /// Positions folded into the box, velocities v(t) and forces of all atoms by their numbers, on the caller. Not collective, but
    /// after a sync.
    pub(crate) fn snapshot(&self) -> Result<Snapshot, Error> {
        let clusters = self.atoms.div_ceil(WIDTH);
        let read = |array: &GlobalArray<f64, Ix1>| {
            let mut all = vec![Cluster::ZERO; clusters];
            array.get_into(.., ArrayViewMut1::from(numbers_mut(&mut all))).map(|()| all)
        };
        let (x, v, f) = (read(&self.positions)?, read(&self.velocities)?, read(&self.forces)?);
        let zero = || vec![[0.0; 3]; self.atoms];
        let origins = self.origins.as_ref().map(read).transpose()?;
        let ways = if origins.is_some() { zero() } else { Vec::new() };
        let mut snapshot = Snapshot { positions: zero(), velocities: zero(), forces: zero(), ways };
        for (place, tag) in self.tags.get(..)?.into_iter().enumerate().filter(|(_, tag)| tag::number(*tag) > 0) {
            let (cluster, lane, number) = (place / WIDTH, place % WIDTH, tag::number(tag) as usize - 1);
            let (velocity, force) = (v[cluster].atom(lane), f[cluster].atom(lane));
            let kick = 0.5 * self.method.step / self.method.masses[tag::kind(tag)];
            snapshot.positions[number] = fold(x[cluster].atom(lane), self.lengths);
            snapshot.velocities[number] = std::array::from_fn(|d| velocity[d] + kick * force[d]);
            snapshot.forces[number] = force;
            if let Some(origins) = &origins {
                let (at, origin) = (x[cluster].atom(lane), origins[cluster].atom(lane));
                snapshot.ways[number] = std::array::from_fn(|d| at[d] - origin[d]);
            }
        }
        Ok(snapshot)
    }

    /// Orders all atoms by where they are now. Collective.
    fn sort(&mut self) -> Result<(), Error> {
        if self.own.is_empty() {
            return self.place(&[], |_| Atom::default());
        }
        let clusters = self.atoms.div_ceil(WIDTH);
        let mut read = vec![Cluster::ZERO; clusters];
        let mut all = |array: &GlobalArray<f64, Ix1>| -> Result<Vec<[f64; 3]>, Error> {
            array.get_into(.., ArrayViewMut1::from(numbers_mut(&mut read)))?;
            Ok((0..self.atoms).map(|at| read[at / WIDTH].atom(at % WIDTH)).collect())
        };
        let (positions, velocities) = (all(&self.positions)?, all(&self.velocities)?);
        let origins = self.origins.as_ref().map(&mut all).transpose()?;
        drop(read);
        let tags = self.tags.get(s![..self.atoms])?;
        let way = |place: usize| match &origins {
            Some(origins) => std::array::from_fn(|d| positions[place][d] - origins[place][d]),
            None => [0.0; 3],
        };
        self.place(&positions, |place| Atom { velocity: velocities[place], tag: tags[place], way: way(place) })
    }

    /// Puts atoms into the arrays, in order; every rank that owns any comes with the positions of all, and what else they have by
    /// place. The old contents are read by nobody after. Forces become 0. Collective.
    fn place(&mut self, positions: &[[f64; 3]], atom: impl Fn(usize) -> Atom) -> Result<(), Error> {
        self.lists_in_order = 0;
        // Before the epoch, in which a rank waits for others with all that it holds.
        let own: Vec<(Point, Atom)> =
            self.ordered(positions).into_iter().map(|point| (point, atom(point.place as usize))).collect();
        self.masses.clear();
        self.masses.resize(self.own.len(), [1.0; WIDTH]);
        for (place, (_, atom)) in own.iter().enumerate() {
            self.masses[place / WIDTH][place % WIDTH] = self.method.masses[tag::kind(atom.tag)];
        }
        let claims = (self.positions.owned_mut(), self.velocities.owned_mut(), self.forces.owned_mut(), self.tags.owned_mut());
        self.job.epoch(claims, |(mut x, mut v, mut f, mut tags)| {
            f.fill(0.0);
            tags.fill(0);
            let (x, v, tags) = (slice(&mut x), slice(&mut v), slice(&mut tags));
            let parts = x.chunks_exact_mut(NUMBERS).zip(v.chunks_exact_mut(NUMBERS)).zip(tags.chunks_exact_mut(WIDTH));
            for (((x, v), tags), atoms) in parts.zip(own.chunks(WIDTH)) {
                let (mut at, mut moves) = (Cluster::EMPTY, Cluster::ZERO);
                for (lane, (point, atom)) in atoms.iter().enumerate() {
                    at.set(lane, point.at);
                    moves.set(lane, atom.velocity);
                    tags[lane] = atom.tag;
                }
                x.copy_from_slice(crate::cluster::numbers(&[at]));
                v.copy_from_slice(crate::cluster::numbers(&[moves]));
            }
        })?;
        let Some(origins) = &mut self.origins else { return Ok(()) };
        self.job.epoch(origins.owned_mut(), |mut origins| {
            for (origins, atoms) in slice(&mut origins).chunks_exact_mut(NUMBERS).zip(own.chunks(WIDTH)) {
                let mut from = Cluster::EMPTY;
                for (lane, (point, atom)) in atoms.iter().enumerate() {
                    from.set(lane, std::array::from_fn(|d| point.at[d] - atom.way[d]));
                }
                origins.copy_from_slice(crate::cluster::numbers(&[from]));
            }
        })
    }

    /// This rank's atoms of all, in order.
    fn ordered(&self, positions: &[[f64; 3]]) -> Vec<Point> {
        let own = self.own.start * WIDTH..(self.own.end * WIDTH).min(self.atoms);
        if own.is_empty() {
            return Vec::new();
        }
        let lengths = self.lengths;
        let point = |(place, at): (usize, &[f64; 3])| Point { at: fold(*at, lengths), place: place as u32 };
        let mut points: Vec<Point> = positions.iter().enumerate().map(point).collect();
        order(&mut points, lengths, self.method.block, &own);
        // All points are halved once, half of them again and so on, down to the own share: twice all in sum. The share goes on down to
        // clusters. A selection passes through its points some three times, and moves some of them.
        let levels = (own.len().max(WIDTH) / WIDTH).ilog2() as usize;
        self.job.simulation().work(Work::bytes((4 * size_of::<Point>() * (2 * points.len() + levels * own.len())) as f64));
        points[own].to_vec()
    }
}

/// A part of an array without ghost cells.
fn slice<'p, T: Element>(part: &'p mut OwnedPartMut<'_, T, Ix1>) -> &'p mut [T] {
    part.as_mut_slice().expect("an array without ghost cells")
}

/// Moves own atoms; see [`Simulation::drift`].
fn drift(step: f64, (x, v, f): (&mut [f64], &mut [f64], &mut [f64]), masses: &[Lanes], reference: &[Cluster]) -> f64 {
    let parts = x.chunks_exact_mut(NUMBERS).zip(v.chunks_exact_mut(NUMBERS)).zip(f.chunks_exact_mut(NUMBERS));
    vectorized(
        #[inline(always)]
        || {
            let mut farthest = [0.0; WIDTH];
            for ((((x, v), f), reference), masses) in parts.zip(reference).zip(masses) {
                let (mut way, steps) = ([0.0; WIDTH], masses.map(|mass| step / mass));
                for d in 0..3 {
                    for k in 0..WIDTH {
                        let at = d * WIDTH + k;
                        v[at] += steps[k] * f[at];
                        x[at] += step * v[at];
                        f[at] = 0.0;
                        let moved = x[at] - reference.0[d][k];
                        way[k] += moved * moved;
                    }
                }
                for k in 0..WIDTH {
                    farthest[k] = greater(farthest[k], way[k]);
                }
            }
            farthest.into_iter().fold(0.0, greater)
        },
    )
}

/// The mass of the atom that has number `at` of a rank's positions, velocities or forces.
fn mass(masses: &[Lanes], at: usize) -> f64 {
    masses[at / NUMBERS][at % WIDTH]
}

/// The greater of two numbers, or the one that is none.
#[inline(always)]
fn greater(a: f64, b: f64) -> f64 {
    if b > a || b.is_nan() { b } else { a }
}

/// All atoms by their numbers, counted from 0.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Snapshot {
    pub(crate) positions: Vec<[f64; 3]>,
    pub(crate) velocities: Vec<[f64; 3]>,
    pub(crate) forces: Vec<[f64; 3]>,
    /// How far they have come, whatever the box; empty if that is not kept.
    pub(crate) ways: Vec<[f64; 3]>,
}

/// What an atom has besides its position.
#[derive(Debug, Clone, Copy, Default)]
struct Atom {
    velocity: [f64; 3],
    tag: u64,
    way: [f64; 3],
}

/// The image of a position in a box from 0 to `lengths`.
pub(crate) fn fold(at: [f64; 3], lengths: [f64; 3]) -> [f64; 3] {
    std::array::from_fn(|d| {
        let folded = at[d] - lengths[d] * (at[d] / lengths[d]).floor();
        // A tiny negative coordinate comes to lie on the upper face, which is the lower one.
        if folded < lengths[d] { folded } else { 0.0 }
    })
}
