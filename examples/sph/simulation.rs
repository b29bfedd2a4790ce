//! A rank's share of the flow, and its steps.
//!
//! A step is: exchange (migrants and ghosts), snapshot in order of cells, wall pass, force pass with the integrator. Only
//! neighboring ranks wait for each other. In one step of [`RECUT`] and, where fluid fills all, of [`REFILL`], all ranks do.

use std::time::Duration;

use global_arrays::{prelude::*, simulation::Work};

use crate::case::Case;
use crate::cells::{Cells, Places};
use crate::checkpoint::{Saved, State};
use crate::domain::Region;
use crate::exchange::Exchange;
use crate::particle::Particle;
use crate::{forces, integrator, walls};

/// Steps between cuts of the domain. In so many steps the fluid moves by a few particles.
pub(crate) const RECUT: usize = 50;

/// Steps between corrections of the mean density where fluid fills all: between them the mean pressure drifts by up to 0.03 ρU² in
/// the coarsest vortices that are checked.
const REFILL: usize = 25;

/// How far a particle may move in a step, in smoothing lengths; stable runs stay below 0.05.
const FARTHEST: f64 = 0.25;

/// One rank's particles, and what it needs to move them.
#[derive(Debug)]
pub(crate) struct Simulation<'a, const D: usize> {
    job: &'a Job,
    pub(crate) case: &'a Case<D>,
    /// This rank's, then its ghosts.
    particles: Vec<Particle<D>>,
    own: usize,
    exchange: Exchange<D>,
    cells: Cells<D>,
    around: Vec<(usize, walls::Around<D>)>,
    /// The numbers of own particles that other ranks may have to know of, or this one as images.
    outside: Vec<u32>,
    /// Where particles are; after a step, all own ones.
    places: Places<D>,
    pub(crate) time_step: f64,
    pub(crate) steps: usize,
    /// Whether each particle is on the rank that it belongs to.
    placed: bool,
    /// The sum of the magnitudes by which the volume was put right after the start, over that of the domain.
    pub(crate) refilled: f64,
    /// In exchanges, and in what comes after them.
    pub(crate) exchanging: Duration,
    pub(crate) computing: Duration,
}

impl<'a, const D: usize> Simulation<'a, D> {
    /// Makes the particles, each rank an equal share of the numbers; the first step sends them where they belong. Collective.
    pub(crate) fn new(job: &'a Job, case: &'a Case<D>, time_step: f64) -> Result<Self, Error> {
        let particles = case.share(job.rank(), job.size()).map(|id| case.particle(id)).collect();
        Self::with(job, case, time_step, particles)
    }

    /// Goes on after so many steps with the particles of a checkpoint, of which each rank has some. Collective.
    pub(crate) fn resume(job: &'a Job, case: &'a Case<D>, saved: &Saved, particles: Vec<Particle<D>>) -> Result<Self, Error> {
        let simulation = Self::with(job, case, saved.time_step, particles)?;
        Ok(Simulation { steps: saved.steps, refilled: saved.refilled, ..simulation })
    }

    fn with(job: &'a Job, case: &'a Case<D>, time_step: f64, particles: Vec<Particle<D>>) -> Result<Self, Error> {
        let own = particles.len();
        let exchange = Exchange::new(job, case.fluid.support(), case.period)?;
        Ok(Simulation {
            job,
            case,
            particles,
            own,
            exchange,
            cells: Cells::new(),
            around: Vec::new(),
            outside: Vec::new(),
            places: Places::new(&case.fluid),
            time_step,
            refilled: 0.0,
            steps: 0,
            placed: false,
            exchanging: Duration::ZERO,
            computing: Duration::ZERO,
        })
    }

    /// This rank's particles.
    pub(crate) fn own(&self) -> &[Particle<D>] {
        &self.particles[..self.own]
    }

    /// What a checkpoint keeps.
    pub(crate) fn state(&self) -> State<'_, Particle<D>> {
        State { own: self.own(), steps: self.steps, time_step: self.time_step, refilled: self.refilled }
    }

    /// Seconds since the start.
    pub(crate) fn time(&self) -> f64 {
        self.steps as f64 * self.time_step
    }

    /// One step. Neighbors take part; all ranks do in one step of [`RECUT`] and, where fluid fills all, in one of [`REFILL`].
    pub(crate) fn step(&mut self) -> Result<(), Error> {
        let case = self.case;
        let start = self.job.now();
        let beside_wall = |position: &[f64; D]| case.beside_wall(position);
        if !case.fluid.free_surface && self.steps.is_multiple_of(REFILL) {
            self.fill_domain()?;
        }
        // How many particles, the first, are where the last step noted them, or in `outside`.
        let mut noted = 0;
        self.own = if self.steps.is_multiple_of(RECUT) || !self.placed {
            self.check_lost()?;
            if self.placed {
                self.cells.arrange(&mut self.particles[..self.own]);
                // Read and written.
                self.job.simulation().work(Work::bytes(2.0 * size_of_val(self.own()) as f64));
            }
            self.exchange.recut(self.job, &mut self.particles, self.own, beside_wall)?
        } else {
            noted = self.own - self.outside.len();
            self.exchange.step(self.job, &mut self.particles, self.own, &mut self.outside, beside_wall)?
        };
        self.placed = true;
        let exchanged = self.job.now();
        let fluid = &self.case.fluid;
        self.places.note_rest(&self.particles, noted, &self.outside);
        let sorted = self.cells.build(
            fluid,
            &self.particles,
            self.own,
            &self.places,
            &self.case.walls,
            self.steps as f64 * self.time_step,
        );
        let walls = walls::pass(fluid, &mut self.cells, &mut self.around);

        let (dt, first) = (self.time_step, self.steps == 0);
        let particles = &mut self.particles;
        let highest: [f64; D] = std::array::from_fn(|axis| if axis == 1 { f64::INFINITY } else { case.length(axis) });
        let fastest = (FARTHEST * fluid.smoothing() / dt).powi(2);
        let mut blown_up = false;
        let (inside, outside, places) = (self.exchange.inner(), &mut self.outside, &mut self.places);
        outside.clear();
        // Where nothing is to be done but in obstacles: in the tank, and away from other ranks.
        let easy = Region {
            low: inside.low.map(|low| low.max(0.0)),
            high: std::array::from_fn(|axis| highest[axis].min(inside.high[axis])),
        };
        let obstacles = !case.obstacles.is_empty();
        // Branches, rarely taken: a running minimum or maximum would make each particle wait for the last.
        let forces = forces::pass(fluid, &self.cells, |k, found, lane| {
            let particle = &mut particles[k];
            let square = integrator::advance(particle, found.of(lane), dt, first);
            if obstacles || !easy.holds(&particle.position, 0.0) {
                if fluid.free_surface {
                    case.keep_inside(particle);
                }
                if !inside.holds(&particle.position, 0.0) {
                    outside.push(k as u32);
                }
            }
            places.note(k, particle);
            // NaN fails the comparisons as well.
            if !(square <= fastest && particle.density > 0.0) {
                blown_up = true;
            }
        });
        // One after the other: what streams memory does not hide behind what computes.
        [sorted, walls, forces].into_iter().for_each(|work: Work| self.job.simulation().work(work));
        self.exchanging += exchanged - start;
        self.computing += self.job.now() - exchanged;
        self.steps += 1;
        if blown_up {
            let (step, advised) = (self.steps, fluid.time_step());
            let cause = if dt > advised {
                format!("the time step of {dt:.3e} s is too long; {advised:.3e} s is stable")
            } else {
                format!("at a time step of {dt:.3e} s, which should be stable; particles may be alone or much too dense")
            };
            return Err(Error::other(format!("the flow blew up in step {step}: {cause}")));
        }
        Ok(())
    }

    /// Scales all densities so that the volumes m/ρ of the particles add up to that of the domain, which they fill. Collective.
    ///
    /// The continuity equation loses this sum to errors of the divergence, a thousandth while the first lattice breaks up. The mean
    /// pressure, which no flow in a full domain depends on, would be off by a thousandth of ρc².
    fn fill_domain(&mut self) -> Result<(), Error> {
        /// A sum of integers does not depend on its order, so not on the number of ranks. One is 2⁻³² of a particle's volume: a billion
        /// particles may be twice as large as they should be.
        const UNIT: f64 = (1_u64 << 32) as f64;
        let rest = self.case.fluid.density;
        let excess = |particle: &Particle<D>| ((rest / particle.density - 1.0) * UNIT) as i64;
        let sum = self.own().iter().map(excess).fold(0_i64, i64::wrapping_add);
        let sum = self.job.all_reduce_one(sum, |a: i64, b| a.wrapping_add(b))?;
        let filled = 1.0 + sum as f64 / UNIT / self.case.particles() as f64;
        if (filled - 1.0).abs() > 0.1 {
            return Err(Error::other(format!(
                "the flow blew up by step {}: its volume is {filled:.2} of the domain",
                self.steps
            )));
        }
        if self.steps > 0 {
            self.refilled += (filled - 1.0).abs();
        }
        self.particles[..self.own].iter_mut().for_each(|particle| particle.density *= filled);
        Ok(())
    }

    fn check_lost(&self) -> Result<(), Error> {
        match self.own().iter().find(|particle| self.case.lost(&particle.position)) {
            None => Ok(()),
            Some(Particle { id, position, .. }) => {
                Err(Error::other(format!("particle {id} left the tank by step {} at {position:.4?} m", self.steps)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::case::{Column, Kind, Water};
    use crate::particle::Moving;
    use crate::tank::Block;

    /// All particles in the order of their numbers after some steps, bit by bit.
    fn run<const D: usize>(case: &Case<D>, ranks: usize, steps: usize) -> Vec<Vec<u64>> {
        let all = Mutex::new(Vec::new());
        let body = |job: &Job| {
            let mut simulation = Simulation::new(job, case, case.fluid.time_step())?;
            (0..steps).try_for_each(|_| simulation.step())?;
            all.lock().unwrap().extend(simulation.own().iter().map(|particle| {
                let mut words = Vec::new();
                particle.write(&mut words);
                (u64::from(particle.id), words.into_iter().map(f64::to_bits).collect::<Vec<_>>())
            }));
            Ok::<(), Error>(())
        };
        Launch::new().ranks(ranks).network("threads").run(body).unwrap();
        let mut all = all.into_inner().unwrap();
        all.sort();
        assert!(all.iter().enumerate().all(|(k, particle)| particle.0 == k as u64), "each particle is there once");
        all.into_iter().map(|particle| particle.1).collect()
    }

    #[test]
    fn results_do_not_depend_on_the_number_of_ranks() {
        let dam = Case::column(Kind::DamBreak, 0.05, Column::plain([0.5, 1.0], [2.0, 1.5]), Water::default());
        let gate = Column {
            gate: Some(2.0),
            obstacles: vec![Block { low: [0.8, 0.0], high: [1.0, 0.2] }],
            ..Column::plain([0.5, 1.0], [2.0, 1.5])
        };
        let gate = Case::column(Kind::DamBreak, 0.05, gate, Water::default());
        let vortices = Case::taylor_green(0.05, 1.0, 100.0);
        let plates = Case::poiseuille(1e-4, 6e-4, 1e-3);
        let space = Case::column(Kind::DamBreak, 0.1, Column::plain([0.5, 1.0, 0.3], [2.0, 1.5, 0.3]), Water::default());
        // More than one cut of the domain.
        let steps = 2 * RECUT + 10;
        let one = (run(&dam, 1, steps), run(&vortices, 1, steps), run(&plates, 1, steps), run(&space, 1, 20), run(&gate, 1, 400));
        for ranks in [2, 3, 4, 7] {
            assert!(run(&dam, ranks, steps) == one.0, "dam break on {ranks} ranks");
            assert!(run(&vortices, ranks, steps) == one.1, "vortices on {ranks} ranks");
            assert!(run(&plates, ranks, steps) == one.2, "plates on {ranks} ranks");
            assert!(run(&space, ranks, 20) == one.3, "dam break in space on {ranks} ranks");
            assert!(run(&gate, ranks, 400) == one.4, "dam break with gate and obstacle on {ranks} ranks");
        }
    }

    #[test]
    fn a_gate_that_hardly_moves_holds_the_water() {
        let column = Column { gate: Some(1e-9), ..Column::plain([0.5, 1.0], [2.0, 1.5]) };
        let case = Case::column(Kind::DamBreak, 0.05, column, Water::default());
        let body = |job: &Job| {
            let mut simulation = Simulation::new(job, &case, case.fluid.time_step())?;
            while simulation.time() < 0.5 {
                simulation.step()?;
            }
            assert!(simulation.own().iter().all(|particle| particle.position[0] < 0.5), "a particle went through the gate");
            Ok::<(), Error>(())
        };
        Launch::new().ranks(1).network("threads").run(body).unwrap();
    }

    #[test]
    fn particles_on_points_of_stagnation() {
        // 22 particles a side, but for their offset, stand on points of stagnation; 20 do not.
        for count in [20, 22] {
            let case = Case::taylor_green(1.0 / f64::from(count), 1.0, 100.0);
            let seen = Mutex::new(None);
            let body = |job: &Job| {
                let mut simulation = Simulation::new(job, &case, case.fluid.time_step())?;
                while simulation.time() < 0.5 {
                    simulation.step()?;
                }
                *seen.lock().unwrap() = Some(crate::observation::observe(job, &simulation)?);
                Ok::<(), Error>(())
            };
            Launch::new().ranks(1).network("threads").run(body).unwrap();
            let seen = seen.into_inner().unwrap().unwrap();
            assert!(seen.error < 0.015 && seen.velocity_error < 0.015 && seen.mean_pressure.abs() < 0.03, "{count}: {seen:?}");
            assert!(seen.unbalanced < 1e-14, "{count}: {seen:?}");
        }
    }

    #[test]
    fn more_ranks_than_particles() {
        let drop = Case::column(Kind::DamBreak, 0.1, Column::plain([0.1, 0.2], [1.0, 0.5]), Water::default());
        assert_eq!(drop.particles(), 2);
        assert!(run(&drop, 5, RECUT + 5) == run(&drop, 1, RECUT + 5));
    }

    #[test]
    fn a_time_step_that_is_too_long_is_refused() {
        let case = Case::column(Kind::DamBreak, 0.1, Column::plain([0.5, 1.0], [2.0, 1.5]), Water::default());
        let body = |job: &Job| {
            let mut simulation = Simulation::new(job, &case, 50.0 * case.fluid.time_step())?;
            (0..200).try_for_each(|_| simulation.step())
        };
        let error = Launch::new().ranks(2).network("threads").run(body).unwrap_err();
        assert!(error.to_string().contains("the time step"), "{error}");
    }
}
