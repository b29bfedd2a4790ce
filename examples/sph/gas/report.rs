//! The results of a run of the shock tube, and whether it passed.

use std::fmt;
use std::path::Path;

use program::plot::{self, Series};
use serde_json::json;

use crate::gas::riemann::State;
use crate::gas::tube::{DIAPHRAGM, LEFT, Particle, RIGHT, Tube, energy};

/// Largest error of the density.
const DENSITY: f64 = 0.03;
/// Largest error of energy and momentum, over the initial energy and (p_L − p_R) t. The sums over pairs conserve both; the
/// steps in time conserve energy to second order.
const CONSERVED: f64 = 1e-3;

/// The outcome of a run.
#[derive(Debug, Clone)]
pub(crate) struct Report {
    pub(crate) particles: u64,
    pub(crate) ranks: usize,
    pub(crate) network: String,
    pub(crate) steps: usize,
    pub(crate) time_step: f64,
    pub(crate) end_time: f64,
    /// Seconds in the steps, without output.
    pub(crate) seconds: f64,
    /// Of these, of the rank that spent most: in exchanges, and in computing.
    pub(crate) exchange_seconds: f64,
    pub(crate) computing_seconds: f64,
    pub(crate) fingerprint: u64,
    /// At the end.
    pub(crate) errors: Errors,
}

/// Errors against the exact solution.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Errors {
    /// Σ V |q − q_exact| over Σ V |q_exact|, with the volumes V = m/ρ of the particles, of density, velocity and pressure.
    pub(crate) density: f64,
    pub(crate) velocity: f64,
    pub(crate) pressure: f64,
    /// Of the sum of kinetic and internal energy, over that at first.
    pub(crate) energy: f64,
    /// Of the momentum, over that which the pressures at the ends give, (p_L − p_R) t.
    pub(crate) momentum: f64,
    /// Whether each particle is there once.
    pub(crate) complete: bool,
}

impl Errors {
    /// Compares all particles, in order of their numbers, with the exact solution.
    pub(crate) fn of(tube: &Tube, all: &[Particle], time: f64) -> Errors {
        let (mut wrong, mut exact) = ([0.0; 3], [0.0; 3]);
        let (mut energy_now, mut momentum) = (0.0, 0.0);
        for particle in all {
            let State { density, velocity, pressure } = at(tube, particle.position[0], time);
            let computed = [particle.density, particle.velocity, particle.pressure()];
            for (k, (computed, expected)) in computed.into_iter().zip([density, velocity, pressure]).enumerate() {
                wrong[k] += (computed - expected).abs() / particle.density;
                exact[k] += expected.abs() / particle.density;
            }
            energy_now += tube.mass() * (particle.energy + 0.5 * particle.velocity * particle.velocity);
            momentum += tube.mass() * particle.velocity;
        }
        let first = energy(&LEFT) * LEFT.density * DIAPHRAGM + energy(&RIGHT) * RIGHT.density * (1.0 - DIAPHRAGM);
        let given = (LEFT.pressure - RIGHT.pressure) * time;
        let numbers = all.iter().map(|particle| u64::from(particle.id));
        Errors {
            density: wrong[0] / exact[0],
            velocity: wrong[1] / exact[1],
            pressure: wrong[2] / exact[2],
            energy: (energy_now / first - 1.0).abs(),
            momentum: (momentum / given - 1.0).abs(),
            complete: numbers.eq(0..tube.particles),
        }
    }
}

/// The exact state.
fn at(tube: &Tube, x: f64, time: f64) -> State {
    match time {
        0.0 if x < DIAPHRAGM => LEFT,
        0.0 => RIGHT,
        _ => tube.exact.at((x - DIAPHRAGM) / time),
    }
}

impl Report {
    fn particle_steps_per_second(&self) -> f64 {
        self.particles as f64 * self.steps as f64 / self.seconds
    }

    /// Failed checks; empty if the run passed.
    pub(crate) fn failures(&self) -> Vec<String> {
        let mut failures = Vec::new();
        let mut limit = |what: &str, value: f64, most: f64| {
            if value > most || value.is_nan() {
                failures.push(format!("the error of the {what} is {value:.3e}, above {most}"));
            }
        };
        limit("density", self.errors.density, DENSITY);
        limit("energy", self.errors.energy, CONSERVED);
        limit("momentum", self.errors.momentum, CONSERVED);
        if !self.errors.complete {
            failures.push("mass is not conserved: particles were lost or duplicated".into());
        }
        failures
    }

    /// One line for programs.
    pub(crate) fn json(&self) -> serde_json::Value {
        json!({
            "case": "sod",
            "dimensions": 1,
            "particles": self.particles,
            "ranks": self.ranks,
            "network": self.network,
            "steps": self.steps,
            "time_step": self.time_step,
            "end_time": self.end_time,
            "seconds": self.seconds,
            "exchange_seconds": self.exchange_seconds,
            "computing_seconds": self.computing_seconds,
            "particle_steps_per_second": self.particle_steps_per_second(),
            "fingerprint": format!("{:016x}", self.fingerprint),
            "error": self.errors.density,
            "velocity_error": self.errors.velocity,
            "pressure_error": self.errors.pressure,
            "energy_error": self.errors.energy,
            "momentum_error": self.errors.momentum,
            "passed": self.failures().is_empty(),
        })
    }
}

/// Lines for people.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Errors { density, velocity, pressure, energy, momentum, .. } = self.errors;
        writeln!(f, "case       sod in 1 dimension, {} particles", self.particles)?;
        writeln!(f, "ranks      {}, network {}", self.ranks, self.network)?;
        writeln!(f, "time       {:.6} in {} steps of {:.3e}", self.end_time, self.steps, self.time_step)?;
        let speed = self.particle_steps_per_second() / 1e6;
        writeln!(f, "speed      {:.3} s, {speed:.2} million particle-steps/s", self.seconds)?;
        writeln!(f, "density    L1 error {density:.2e}, limit {DENSITY:.0e}")?;
        writeln!(f, "           velocity {velocity:.2e}, pressure {pressure:.2e} (not checked)")?;
        writeln!(f, "energy     error {energy:.1e}, momentum {momentum:.1e}, limit {CONSERVED:.0e}")?;
        match &self.failures()[..] {
            [] => write!(f, "passed"),
            failures => write!(f, "FAILED: {}", failures.join("; ")),
        }
    }
}

/// Draws the density of all particles over the tube, from places and densities, beside the exact one.
///
/// # Errors
/// One line that names the file.
pub(crate) fn draw(file: &Path, tube: &Tube, computed: Vec<(f64, f64)>, time: f64) -> Result<(), String> {
    /// Points of the exact line.
    const POINTS: u32 = 2000;
    let exact = (0..=POINTS).map(|k| f64::from(k) / f64::from(POINTS));
    let exact = exact.map(|x| (x, at(tube, x, time).density)).collect();
    // Dots over the line.
    let series = [Series { name: "exact", points: exact, dots: false }, Series { name: "SPH", points: computed, dots: true }];
    plot::draw(file, &format!("Sod's shock tube, t = {time:.3}"), ("x", "density"), &series)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The exact solution, in particles, at a time.
    fn solution(tube: &Tube, time: f64) -> Vec<Particle> {
        // Between marks of mass.
        let (count, fine) = (tube.particles, 200_000);
        let (mut all, mut mass): (Vec<Particle>, f64) = (Vec::new(), 0.0);
        for k in 0..fine {
            let x = (f64::from(k) + 0.5) / f64::from(fine);
            let state = at(tube, x, time);
            mass += state.density / f64::from(fine);
            if mass >= (all.len() as f64 + 0.5) * tube.mass() && (all.len() as u64) < count {
                let id = all.len() as u32;
                let (velocity, density) = (state.velocity, state.density);
                let energy = energy(&state);
                all.push(Particle { position: [x], velocity, energy, density, acceleration: 0.0, heating: 0.0, id });
            }
        }
        all
    }

    fn report(errors: Errors) -> Report {
        Report {
            particles: 400,
            ranks: 1,
            network: "threads".into(),
            steps: 1,
            time_step: 0.2,
            end_time: 0.2,
            seconds: 1.0,
            exchange_seconds: 0.0,
            computing_seconds: 0.0,
            fingerprint: 0,
            errors,
        }
    }

    #[test]
    fn the_exact_solution_has_no_error_and_conserves() {
        let tube = Tube::new(400);
        let errors = Errors::of(&tube, &solution(&tube, 0.2), 0.2);
        assert!(errors.density < 1e-12 && errors.velocity < 1e-12 && errors.pressure < 1e-12, "{errors:?}");
        assert!(errors.energy < 1e-3 && errors.momentum < 1e-2 && errors.complete, "{errors:?}");
    }

    #[test]
    fn errors_are_relative() {
        let tube = Tube::new(400);
        let mut all = solution(&tube, 0.2);
        // A tenth more pressure, a tenth less velocity.
        all.iter_mut()
            .for_each(|particle| (particle.energy, particle.velocity) = (1.1 * particle.energy, 0.9 * particle.velocity));
        let errors = Errors::of(&tube, &all, 0.2);
        approx::assert_relative_eq!(errors.pressure, 0.1, max_relative = 1e-9);
        approx::assert_relative_eq!(errors.velocity, 0.1, max_relative = 1e-9);
        assert!(errors.density < 1e-12 && errors.energy > 0.05 && errors.momentum > 0.05);
        // Volumes are smaller by as much everywhere.
        all.iter_mut().for_each(|particle| particle.density *= 1.1);
        approx::assert_relative_eq!(Errors::of(&tube, &all, 0.2).density, 0.1, max_relative = 1e-9);
        // Before anything moves.
        assert_eq!([0.49, 0.5, 0.51].map(|x| at(&tube, x, 0.0)), [LEFT, RIGHT, RIGHT]);
        all.pop();
        assert!(!Errors::of(&tube, &all, 0.2).complete);
    }

    #[test]
    fn limits_decide() {
        let good = Errors { density: 0.029, energy: 9e-4, momentum: 9e-4, complete: true, ..Errors::default() };
        assert_eq!(report(good).json()["passed"], true);
        assert!(report(good).to_string().ends_with("passed"));
        for bad in [
            Errors { density: 0.031, ..good },
            Errors { density: f64::NAN, ..good },
            Errors { energy: 1.1e-3, ..good },
            Errors { momentum: 1.1e-3, ..good },
            Errors { complete: false, ..good },
        ] {
            let report = report(bad);
            assert_eq!((report.failures().len(), &report.json()["passed"]), (1, &false.into()), "{bad:?}");
            assert!(report.to_string().contains("FAILED: "));
        }
    }
}
