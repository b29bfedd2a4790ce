//! One rank's particles of gas and their steps in time.
//!
//! A step is: exchange (migrants and ghosts), densities, force pass, step in time. Only neighboring ranks wait for each other; every
//! [`RECUT`] steps all do, when the tube is cut anew. Each rank computes the densities of its ghosts itself. So the ghost layer is two
//! kernel supports wide, and there is one exchange in a step.

use std::time::Duration;

use global_arrays::{prelude::*, simulation::Work};

use crate::case::share;
use crate::checkpoint::{Saved, State};
use crate::exchange::Exchange;
use crate::gas::forces::{Derivatives, Line};
use crate::gas::tube::{Particle, Tube};
use crate::simulation::RECUT;

/// How far a particle may move in a step, over h of the densest gas; 0.16 with the default time step.
const FARTHEST: f64 = 1.0;

/// One rank's particles, and what it needs to move them.
#[derive(Debug)]
pub(crate) struct Simulation<'a> {
    job: &'a Job,
    tube: &'a Tube,
    /// This rank's, then its ghosts.
    particles: Vec<Particle>,
    own: usize,
    boundary: Vec<Particle>,
    exchange: Exchange<1>,
    line: Line,
    pub(crate) time_step: f64,
    pub(crate) steps: usize,
    /// Whether all particles were sent to their owners.
    placed: bool,
    /// In exchanges, and in what comes after them.
    pub(crate) exchanging: Duration,
    pub(crate) computing: Duration,
}

impl<'a> Simulation<'a> {
    /// Makes the particles, each rank an equal share of the numbers. Collective.
    pub(crate) fn new(job: &'a Job, tube: &'a Tube, time_step: f64) -> Result<Self, Error> {
        let particles = share(tube.particles, job.rank(), job.size()).map(|id| tube.particle(id)).collect();
        Self::with(job, tube, time_step, 0, particles)
    }

    /// Goes on with the particles of a checkpoint, of which each rank has some. Collective.
    pub(crate) fn resume(job: &'a Job, tube: &'a Tube, saved: &Saved, particles: Vec<Particle>) -> Result<Self, Error> {
        Self::with(job, tube, saved.time_step, saved.steps, particles)
    }

    fn with(job: &'a Job, tube: &'a Tube, time_step: f64, steps: usize, particles: Vec<Particle>) -> Result<Self, Error> {
        Ok(Simulation {
            job,
            tube,
            own: particles.len(),
            particles,
            boundary: tube.boundary(),
            exchange: Exchange::new(job, tube.reach(), [None])?,
            line: Line::default(),
            time_step,
            steps,
            placed: false,
            exchanging: Duration::ZERO,
            computing: Duration::ZERO,
        })
    }

    /// This rank's particles. Their densities are those of the last force pass, from before they moved.
    pub(crate) fn own(&self) -> &[Particle] {
        &self.particles[..self.own]
    }

    /// What a checkpoint keeps.
    pub(crate) fn state(&self) -> State<'_, Particle> {
        State { own: self.own(), steps: self.steps, time_step: self.time_step, refilled: 0.0 }
    }

    /// Time since the start.
    pub(crate) fn time(&self) -> f64 {
        self.steps as f64 * self.time_step
    }

    /// One step. Neighbors take part; all ranks do in one step of [`RECUT`].
    pub(crate) fn step(&mut self) -> Result<(), Error> {
        let start = self.job.now();
        let mut particles = std::mem::take(&mut self.particles);
        self.own = self.redistribute(&mut particles, self.own, self.steps.is_multiple_of(RECUT))?;
        self.particles = particles;
        let exchanged = self.job.now();
        self.line.build(self.tube, &self.particles, self.own, &self.boundary)?;
        let (dt, first, particles) = (self.time_step, self.steps == 0, &mut self.particles);
        let mut sound = true;
        let farthest = FARTHEST * self.tube.shortest();
        let work = self.line.forces(self.tube, |k, density, derivatives| {
            particles[k].density = density;
            let moved = advance(&mut particles[k], derivatives, dt, first);
            // A NaN fails too.
            sound &= moved.abs() < farthest && particles[k].energy > 0.0;
        });
        self.job.simulation().work(work);
        self.exchanging += exchanged - start;
        self.computing += self.job.now() - exchanged;
        self.steps += 1;
        if !sound {
            let (step, stable) = (self.steps, self.tube.time_step());
            return Err(Error::other(format!(
                "the flow blew up in step {step}: the time step is {dt:.3e}, and up to {stable:.3e} should be stable"
            )));
        }
        Ok(())
    }

    /// Sends particles where they belong and gets ghosts. Returns how many particles, the first, are this rank's. Collective if all
    /// are to be cut anew or do not yet belong to their ranks; else neighbors take part.
    fn redistribute(&mut self, particles: &mut Vec<Particle>, own: usize, cut: bool) -> Result<usize, Error> {
        // Ghosts from twice the reach everywhere, as beside walls.
        let everywhere = |_: &[f64; 1]| true;
        if cut || !self.placed {
            self.placed = true;
            self.exchange.recut(self.job, particles, own, everywhere)
        } else {
            let mut outside = Vec::new();
            self.exchange.inner().numbers_outside(&particles[..own], &mut outside);
            self.job.simulation().work(Work::bytes(size_of_val(&particles[..own]) as f64));
            self.exchange.step(self.job, particles, own, &mut outside, everywhere)
        }
    }

    /// A copy of the particles with the densities that they have where they are now; some may be on the ranks that they will move
    /// to. This does not change the bits of the run. Collective.
    pub(crate) fn measured(&mut self) -> Result<Vec<Particle>, Error> {
        let mut copy = self.own().to_vec();
        // Only the copies went to their owners.
        let placed = self.placed;
        let own = self.redistribute(&mut copy, self.own, false)?;
        self.placed = placed;
        self.line.build(self.tube, &copy, own, &self.boundary)?;
        self.line.densities(|k, density| copy[k].density = density);
        copy.truncate(own);
        Ok(copy)
    }
}

/// Moves a particle on, as [`crate::integrator`] does with the energy extrapolated like the velocity. Returns how far it moves.
fn advance(particle: &mut Particle, now: Derivatives, dt: f64, first: bool) -> f64 {
    let before = if first { now.acceleration } else { particle.acceleration };
    let heating_before = if first { now.heating } else { particle.heating };
    let moved = dt * (particle.velocity + dt * (now.acceleration - 0.5 * before));
    particle.position[0] += moved;
    particle.velocity += dt * (1.5 * now.acceleration - 0.5 * before);
    particle.energy += dt * (1.5 * now.heating - 0.5 * heating_before);
    (particle.acceleration, particle.heating) = (now.acceleration, now.heating);
    moved
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::checkpoint::tests::Folder;
    use crate::checkpoint::{Checkpoints, restore};
    use crate::comparison::Course;
    use crate::gas::report::Errors;
    use crate::gas::tube::END;
    use crate::particle::Moving;

    /// All particles in order of their numbers after some steps, bit by bit. `look`: their densities are measured on the way.
    fn run(tube: &Tube, ranks: usize, steps: usize, look: bool) -> Vec<Vec<u64>> {
        let all = Mutex::new(Vec::new());
        let body = |job: &Job| {
            let mut simulation = Simulation::new(job, tube, tube.time_step())?;
            for step in 0..steps {
                if look && step % 20 == 0 {
                    simulation.measured()?;
                }
                simulation.step()?;
            }
            let mut all = all.lock().unwrap();
            for particle in simulation.own() {
                let mut words = vec![f64::from(particle.id)];
                particle.write(&mut words);
                all.push(words.into_iter().map(f64::to_bits).collect::<Vec<_>>());
            }
            Ok::<(), Error>(())
        };
        Launch::new().ranks(ranks).network("threads").run(body).unwrap();
        let mut all = all.into_inner().unwrap();
        all.sort_by(|a, b| f64::from_bits(a[0]).total_cmp(&f64::from_bits(b[0])));
        assert!(all.iter().enumerate().all(|(k, words)| f64::from_bits(words[0]) == k as f64), "each particle is there once");
        all
    }

    #[test]
    fn results_do_not_depend_on_the_number_of_ranks() {
        let tube = Tube::new(100);
        // More than one cut of the tube.
        let steps = 2 * RECUT + 10;
        let one = run(&tube, 1, steps, false);
        for ranks in [2, 3, 5, 7] {
            assert!(run(&tube, ranks, steps, false) == one, "{ranks} ranks");
        }
        assert!(run(&tube, 3, steps, true) == one, "measured on the way");
    }

    #[test]
    fn a_run_goes_on_from_particles_that_are_far_from_their_ranks() {
        let tube = Tube::new(400);
        let saved = run(&tube, 2, 65, false);
        let restored: Vec<Particle> = saved.iter().map(|words| bits_read(&words[1..])).collect();
        let ends = Mutex::new(Vec::new());
        let body = |job: &Job| {
            // As far from where they belong as can be.
            let share = share(tube.particles, job.size() - 1 - job.rank(), job.size());
            let particles = restored[share.start as usize..share.end as usize].to_vec();
            let mut simulation = Simulation::with(job, &tube, tube.time_step(), 65, particles)?;
            // Looked at before all particles are where they belong.
            simulation.measured()?;
            (65..110).try_for_each(|_| simulation.step())?;
            ends.lock().unwrap().extend_from_slice(simulation.own());
            Ok::<(), Error>(())
        };
        Launch::new().ranks(3).network("threads").run(body).unwrap();
        let mut ends = ends.into_inner().unwrap();
        ends.sort_by_key(Particle::id);
        let whole: Vec<Particle> = run(&tube, 1, 110, false).iter().map(|words| bits_read(&words[1..])).collect();
        assert!(ends == whole);
    }

    #[test]
    fn a_checkpoint_goes_on_with_the_same_bits() {
        let (tube, folder) = (Tube::new(100), Folder::new("gas"));
        let body = |job: &Job| {
            let mut simulation = Simulation::new(job, &tube, tube.time_step())?;
            (0..65).try_for_each(|_| simulation.step())?;
            let checkpoints = Checkpoints { folder: &folder.0, flow: tube.flow(), instruments: Vec::new(), every: 65 };
            checkpoints.write(job, simulation.state(), 110, &[], &Course::default())
        };
        Launch::new().ranks(2).network("threads").run(body).unwrap();
        let ends = Mutex::new(Vec::new());
        let body = |job: &Job| {
            let (saved, particles) = restore(job, &folder.0, (tube.flow(), tube.particles), &[])?;
            let mut simulation = Simulation::resume(job, &tube, &saved, particles)?;
            (saved.steps..saved.planned).try_for_each(|_| simulation.step())?;
            ends.lock().unwrap().extend_from_slice(simulation.own());
            Ok::<(), Error>(())
        };
        Launch::new().ranks(3).network("threads").run(body).unwrap();
        let mut ends = ends.into_inner().unwrap();
        ends.sort_by_key(Particle::id);
        let whole: Vec<Particle> = run(&tube, 1, 110, false).iter().map(|words| bits_read(&words[1..])).collect();
        assert!(ends == whole);
        let body = |job: &Job| restore::<1, Particle>(job, &folder.0, (Tube::new(99).flow(), 99), &[]).map(drop);
        let other = Launch::new().ranks(2).network("threads").run(body).unwrap_err().to_string();
        assert!(other.contains("number of particles"), "{other}");
    }

    fn bits_read(words: &[u64]) -> Particle {
        Particle::read(&words.iter().copied().map(f64::from_bits).collect::<Vec<_>>())
    }

    #[test]
    fn errors_fall_with_the_number_of_particles() {
        let errors = |particles: u64| {
            let (tube, found) = (Tube::new(particles), Mutex::new(Errors::default()));
            let steps = (END / tube.time_step()).ceil();
            let body = |job: &Job| {
                let mut simulation = Simulation::new(job, &tube, END / steps)?;
                (0..steps as usize).try_for_each(|_| simulation.step())?;
                let mut all = simulation.measured()?;
                all.sort_by_key(Particle::id);
                *found.lock().unwrap() = Errors::of(&tube, &all, simulation.time());
                Ok::<(), Error>(())
            };
            Launch::new().ranks(1).network("threads").run(body).unwrap();
            found.into_inner().unwrap()
        };
        let (coarse, fine) = (errors(90), errors(180));
        assert!(fine.density < 0.017 && fine.velocity < 0.06 && fine.pressure < 0.018, "{fine:?}");
        assert!(fine.density < 0.6 * coarse.density, "{coarse:?} {fine:?}");
        assert!(fine.energy < 1e-4 && fine.complete, "{fine:?}");
    }

    #[test]
    fn more_ranks_than_particles() {
        let tube = Tube::new(3);
        assert!(run(&tube, 5, RECUT + 5, true) == run(&tube, 1, RECUT + 5, false));
    }

    #[test]
    fn too_long_a_time_step_ends_in_an_error() {
        let tube = Tube::new(100);
        let body = |job: &Job| {
            let mut simulation = Simulation::new(job, &tube, 20.0 * tube.time_step())?;
            (0..200).try_for_each(|_| simulation.step())
        };
        let error = Launch::new().ranks(2).network("threads").run(body).unwrap_err();
        assert!(error.to_string().contains("the flow blew up"), "{error}");
    }
}
