//! Sod's shock tube: gas at rest in a tube of length 1, dense and hot left of a diaphragm at x = ½, thin right of it. At t = 0 the
//! diaphragm is removed.
//!
//! All quantities are in Sod's units, which have no dimension. All particles have the same mass, so on the left they stand eight times as close.
//! With m = M/N, particle i holds the mass from im to (i + 1)m, counted from the left. Unless N is a multiple of nine, one particle
//! straddles the diaphragm and has the mean energy of its mass. The initial state is not smoothed otherwise.
//!
//! Beyond both ends, fixed boundary particles extend the undisturbed gas. So a run must end before a wave is there.
//!
//! # Source
//! G. A. Sod, J. Comput. Phys. 27 (1978).

use crate::gas::forces::SMOOTHING;
use crate::gas::riemann::{Riemann, State};
use crate::particle::Moving;

/// γ, the ratio of specific heats of the gas.
pub(crate) const GAMMA: f64 = 1.4;

/// The gas on both sides of the diaphragm.
pub(crate) const LEFT: State = State { density: 1.0, velocity: 0.0, pressure: 1.0 };
pub(crate) const RIGHT: State = State { density: 0.125, velocity: 0.0, pressure: 0.1 };

/// Where the diaphragm is in a tube from 0 to 1.
pub(crate) const DIAPHRAGM: f64 = 0.5;

/// Default end time.
pub(crate) const END: f64 = 0.2;

/// Lowest density that a run may have, over the lowest initial density. It sets the width of the ghost layer.
const THINNEST: f64 = 0.8;

/// Courant factor, as in Price 2012.
const COURANT: f64 = 0.3;

/// A particle of gas, as its owner keeps it. Velocity and energy are those that the next force pass shall see (see [`crate::integrator`]).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Particle {
    pub(crate) position: [f64; 1],
    pub(crate) velocity: f64,
    /// Internal, for each unit of mass.
    pub(crate) energy: f64,
    /// At the last force pass. The next sum over neighbors begins with it.
    pub(crate) density: f64,
    /// dv/dt and du/dt of the last force pass.
    pub(crate) acceleration: f64,
    pub(crate) heating: f64,
    pub(crate) id: u32,
}

impl Particle {
    /// p = (γ − 1)ρu.
    pub(crate) fn pressure(&self) -> f64 {
        (GAMMA - 1.0) * self.density * self.energy
    }
}

impl Moving<1> for Particle {
    const WORDS: usize = 7;

    fn id(&self) -> u32 {
        self.id
    }

    fn position(&self) -> &[f64; 1] {
        &self.position
    }

    fn position_mut(&mut self) -> &mut [f64; 1] {
        &mut self.position
    }

    fn write(&self, message: &mut Vec<f64>) {
        let Particle { position: [x], velocity, energy, density, acceleration, heating, id } = *self;
        message.extend_from_slice(&[x, velocity, energy, density, acceleration, heating, f64::from(id)]);
    }

    fn read(words: &[f64]) -> Self {
        Particle {
            position: [words[0]],
            velocity: words[1],
            energy: words[2],
            density: words[3],
            acceleration: words[4],
            heating: words[5],
            id: words[6] as u32,
        }
    }
}

/// The tube, with its gas in so many particles.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tube {
    pub(crate) particles: u64,
    pub(crate) exact: Riemann,
}

impl Tube {
    pub(crate) fn new(particles: u64) -> Self {
        Tube { particles, exact: Riemann::new(GAMMA, LEFT, RIGHT) }
    }

    /// The description that checkpoints keep.
    pub(crate) fn flow(&self) -> String {
        format!("Sod, {} particles", self.particles)
    }

    /// Mass of a particle.
    pub(crate) fn mass(&self) -> f64 {
        (LEFT.density * DIAPHRAGM + RIGHT.density * (1.0 - DIAPHRAGM)) / self.particles as f64
    }

    /// What a particle is at first.
    pub(crate) fn particle(&self, id: u64) -> Particle {
        let mass = self.mass();
        // The mass that lies left of the diaphragm.
        let of_left = (LEFT.density * DIAPHRAGM - mass * id as f64).clamp(0.0, mass);
        let of_right = mass - of_left;
        let from_right = self.particles as f64 - id as f64;
        let position = if of_right == 0.0 {
            (id as f64 + 0.5) * mass / LEFT.density
        } else if of_left == 0.0 {
            1.0 - (from_right - 0.5) * mass / RIGHT.density
        } else {
            DIAPHRAGM + 0.5 * (of_right * of_right / RIGHT.density - of_left * of_left / LEFT.density) / mass
        };
        let energy = (of_left * energy(&LEFT) + of_right * energy(&RIGHT)) / mass;
        let density = mass / (of_left / LEFT.density + of_right / RIGHT.density);
        Particle { position: [position], velocity: 0.0, energy, density, acceleration: 0.0, heating: 0.0, id: id as u32 }
    }

    /// The boundary particles beyond the ends, with numbers after those of the tube.
    pub(crate) fn boundary(&self) -> Vec<Particle> {
        let mut boundary = Vec::new();
        for (state, end, outwards) in [(LEFT, 0.0, -1.0), (RIGHT, 1.0, 1.0)] {
            let apart = self.mass() / state.density;
            for k in 0..(2.0 * self.reach() / apart).ceil() as u64 + 1 {
                let id = self.particles as u32 + boundary.len() as u32;
                let position = [end + outwards * (k as f64 + 0.5) * apart];
                let (density, energy) = (state.density, energy(&state));
                boundary.push(Particle { position, velocity: 0.0, energy, density, acceleration: 0.0, heating: 0.0, id });
            }
        }
        boundary
    }

    /// As far as neighbors see each other: 2h of the thinnest gas.
    pub(crate) fn reach(&self) -> f64 {
        2.0 * SMOOTHING * self.mass() / (THINNEST * RIGHT.density)
    }

    /// The latest end of a run: when the first wave is within 2h of an end, as it is smeared over that much. It may be at the
    /// start.
    pub(crate) fn latest(&self) -> f64 {
        let [left, right] = self.exact.fronts();
        let smeared = |density: f64| 2.0 * SMOOTHING * self.mass() / density;
        let at_left = (DIAPHRAGM - smeared(LEFT.density)) / -left;
        let at_right = (1.0 - DIAPHRAGM - smeared(RIGHT.density)) / right;
        at_left.min(at_right).max(0.0)
    }

    /// A stable time step: [`COURANT`] of the time in which the fastest |u| + c of the exact solution crosses the shortest h. Price has
    /// the signal velocity of a pair there.
    pub(crate) fn time_step(&self) -> f64 {
        let [left, right] = self.exact.fronts();
        let contact = self.exact.contact();
        // In each gas, the signal is fastest where it is hottest: ahead of the waves or beside the contact.
        let speeds = [left, contact, right].into_iter().flat_map(|speed| [speed - 1e-9, speed + 1e-9]);
        let signals = speeds.map(|speed| {
            let state = self.exact.at(speed);
            state.velocity.abs() + state.sound(GAMMA)
        });
        let fastest = signals.fold(0.0, f64::max);
        COURANT * self.shortest() / fastest
    }

    /// h of the densest gas.
    pub(crate) fn shortest(&self) -> f64 {
        SMOOTHING * self.mass() / LEFT.density
    }
}

/// u = p/((γ − 1)ρ).
pub(crate) fn energy(state: &State) -> f64 {
    state.pressure / ((GAMMA - 1.0) * state.density)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_gas_is_in_particles() {
        for count in [9, 10, 400, 401, 450] {
            let tube = Tube::new(count);
            let all: Vec<Particle> = (0..count).map(|id| tube.particle(id)).collect();
            assert!(all.windows(2).all(|pair| pair[0].position < pair[1].position));
            let energy: f64 = all.iter().map(|particle| tube.mass() * particle.energy).sum();
            approx::assert_relative_eq!(energy, 0.5 * 1.0 / 0.4 + 0.5 * 0.1 / 0.4, max_relative = 1e-12);
            // The center of mass of the whole gas.
            let center: f64 = all.iter().map(|particle| particle.position[0]).sum::<f64>() / count as f64;
            approx::assert_relative_eq!(center, (0.5 * 0.25 + 0.0625 * 0.75) / 0.5625, max_relative = 1e-12);
            let volume: f64 = all.iter().map(|particle| tube.mass() / particle.density).sum();
            approx::assert_relative_eq!(volume, 1.0, max_relative = 1e-12);
        }
        // Nine parts: eight of them on the left.
        assert_eq!((0..450).filter(|&id| Tube::new(450).particle(id).position[0] < 0.5).count(), 400);
    }

    #[test]
    fn messages_keep_particles() {
        let [position, velocity, energy, density, acceleration, heating] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let particle = Particle { position: [position], velocity, energy, density, acceleration, heating, id: 7 };
        let mut message = Vec::new();
        particle.write(&mut message);
        assert_eq!(message.len(), Particle::WORDS);
        assert_eq!(Particle::read(&message), particle);
    }

    #[test]
    fn waves_come_to_the_right_end_first() {
        // The shock's Mach number is √((γ + 1)/(2γ) p*/p + (γ − 1)/(2γ)).
        let speed = (1.4 * 0.1 / 0.125_f64).sqrt() * (2.4 / 2.8 * 3.0313 + 0.4 / 2.8_f64).sqrt();
        approx::assert_relative_eq!(Tube::new(1_000_000_000).latest(), 0.5 / speed, max_relative = 1e-4);
        // h is 1.2 · 0.5625 / 400 / 0.125.
        approx::assert_relative_eq!(Tube::new(400).latest(), (0.5 - 0.027) / speed, max_relative = 1e-4);
        assert_eq!(Tube::new(10).latest(), 0.0);
    }
}
