//! Density, acceleration and heating of the gas, from the particles in a line.
//!
//! With r = |x_i − x_j|, W_i = W(r, h_i), and the pair's velocity of separation v = (v_i − v_j) sign(x_i − x_j):
//!
//! * density   ρ_i = Σ m W_i with h_i = η m/ρ_i, solved together by Newton's method; Ω_i = 1 + (h_i/ρ_i) Σ m ∂W_i/∂h;
//! * momentum  dv_i/dt = −Σ m (p_i/(Ω_i ρ_i²) W_i' + p_j/(Ω_j ρ_j²) W_j') sign(x_i − x_j);
//! * energy    du_i/dt = p_i/(Ω_i ρ_i²) Σ m v W_i';
//! * artificial viscosity, of pairs that approach: dv_i/dt += Σ m αs v F/ρ̄ sign(x_i − x_j) and du_i/dt −= Σ m ½αs v² F/ρ̄, where
//!   F = ½(W_i'/Ω_i + W_j'/Ω_j), ρ̄ = ½(ρ_i + ρ_j), and the signal velocity s = ½(c_i + c_j − βv);
//! * artificial conductivity: du_i/dt += Σ m α_u √(|p_i − p_j|/ρ̄) (u_i − u_j) F/ρ̄.
//!
//! With α = 1, β = 2, α_u = 1, η = 1.2: the usual values, without switches. Each pair conserves momentum and energy.
//!
//! The line is sorted by position, then number. Every rank sees the same order, and all sums run along it: so they have the same bits.
//!
//! # Sources
//! * D. J. Price, J. Comput. Phys. 231 (2012), *Smoothed particle hydrodynamics and magnetohydrodynamics*: all of these equations.
//! * D. J. Price, J. Comput. Phys. 227 (2008): conductivity with this signal velocity.
//! * J. J. Monaghan, J. Comput. Phys. 136 (1997): signal velocities.

use global_arrays::{prelude::*, simulation::Work};

use crate::gas::kernel;
use crate::gas::tube::{GAMMA, Particle, Tube};

/// η: h over the mean distance m/ρ.
pub(crate) const SMOOTHING: f64 = 1.2;

/// α and β of the artificial viscosity, and α_u of the artificial conductivity.
const VISCOSITY: f64 = 1.0;
const SQUARE_VISCOSITY: f64 = 2.0;
const CONDUCTIVITY: f64 = 1.0;

/// The relative change of h at which its iteration ends, and after how many steps it has failed.
const ACCURACY: f64 = 1e-12;
const ITERATIONS: usize = 100;

/// dv/dt and du/dt of a particle.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Derivatives {
    pub(crate) acceleration: f64,
    pub(crate) heating: f64,
}

/// What neighbors see of a particle.
#[derive(Debug, Clone, Copy)]
struct Source {
    x: f64,
    v: f64,
    u: f64,
    h: f64,
    omega: f64,
    density: f64,
    pressure: f64,
    sound: f64,
    id: u32,
    /// Which of the particles it is; beyond an end of the tube, none.
    particle: Option<usize>,
}

impl Source {
    fn new(mass: f64, of: &Particle, particle: Option<usize>) -> Self {
        let mut source = Source {
            x: of.position[0],
            v: of.velocity,
            u: of.energy,
            h: 0.0,
            omega: 1.0,
            density: 0.0,
            pressure: 0.0,
            sound: 0.0,
            id: of.id,
            particle,
        };
        source.set(mass, of.density, 1.0);
        source
    }

    fn set(&mut self, mass: f64, density: f64, omega: f64) {
        (self.density, self.omega) = (density, omega);
        self.h = SMOOTHING * mass / density;
        self.pressure = (GAMMA - 1.0) * density * self.u;
        self.sound = (GAMMA * self.pressure / density).sqrt();
    }

    /// p/(Ωρ²).
    fn push(&self) -> f64 {
        self.pressure / (self.omega * self.density * self.density)
    }
}

/// All particles that a rank sees, in order.
#[derive(Debug, Default)]
pub(crate) struct Line {
    sources: Vec<Source>,
    /// Indices into [`Line::sources`] of those that are this rank's.
    own: Vec<usize>,
    /// Pairs that were looked at.
    pairs: usize,
}

impl Line {
    /// Takes the particles, of which the first `own` are this rank's and the others ghosts, and the fixed ones of the `boundary`, and
    /// finds the densities of all that own ones see.
    ///
    /// # Errors
    /// A kernel that is wider than the ghost layer allows.
    pub(crate) fn build(&mut self, tube: &Tube, particles: &[Particle], own: usize, boundary: &[Particle]) -> Result<(), Error> {
        let (mass, reach) = (tube.mass(), tube.reach());
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for Particle { position: [x], .. } in &particles[..own] {
            (low, high) = (low.min(*x), high.max(*x));
        }
        let seen = |x: f64, margin: f64| low - margin <= x && x <= high + margin;
        let all = particles.iter().enumerate().map(|(k, particle)| Source::new(mass, particle, Some(k)));
        let fixed = boundary.iter().map(|particle| Source::new(mass, particle, None));
        self.sources.clear();
        self.sources.extend(all.chain(fixed).filter(|source| seen(source.x, 2.0 * reach)));
        self.sources.sort_unstable_by(|a, b| a.x.total_cmp(&b.x).then(a.id.cmp(&b.id)));
        self.own.clear();
        self.pairs = 0;
        for k in 0..self.sources.len() {
            let Source { x, particle, .. } = self.sources[k];
            if seen(x, reach) {
                let (density, omega) = self.density(tube, k)?;
                self.sources[k].set(mass, density, omega);
            }
            if particle.is_some_and(|particle| particle < own) {
                self.own.push(k);
            }
        }
        Ok(())
    }

    /// Other entries than `k` that are nearer than `reach`, with their distance: those before it, then those behind it.
    fn around(&self, k: usize, reach: f64) -> impl Iterator<Item = (f64, &Source)> {
        let x = self.sources[k].x;
        let before = self.sources[..k].iter().rev().map(move |source| (x - source.x, source));
        let behind = self.sources[k + 1..].iter().map(move |source| (source.x - x, source));
        before.take_while(move |(r, _)| *r < reach).chain(behind.take_while(move |(r, _)| *r < reach))
    }

    /// ρ and Ω of an entry: h Σ W = η grows with h, so there is one solution.
    fn density(&mut self, tube: &Tube, k: usize) -> Result<(f64, f64), Error> {
        let (mass, reach, id) = (tube.mass(), tube.reach(), self.sources[k].id);
        let mut h = self.sources[k].h;
        for _ in 0..ITERATIONS {
            // Its own W first.
            let (mut sum, mut by_h) = kernel::value(0.0, h);
            let mut pairs = 0;
            for (r, _) in self.around(k, 2.0 * h) {
                let (w, slope) = kernel::value(r, h);
                (sum, by_h) = (sum + w, by_h + slope);
                pairs += 1;
            }
            self.pairs += pairs;
            // With ρ = m Σ W: Ω = 1 − Σ (−h ∂W/∂h) / Σ W.
            let omega = 1.0 - by_h / sum;
            let change = (SMOOTHING / (h * sum) - 1.0) / omega;
            if change.abs() < ACCURACY {
                return Ok((mass * sum, omega));
            }
            if 2.0 * h >= reach && change > 0.0 || change.is_nan() {
                break;
            }
            // Within what the ghosts allow, and with a limited step.
            h = (h * (1.0 + change.clamp(-0.5, 0.5))).min(0.5 * reach);
        }
        Err(Error::other(format!(
            "the flow blew up: the smoothing length of particle {id} grew beyond {:.3e}, and the ghosts allow no more; \
             the time step may be too long",
            0.5 * reach
        )))
    }

    /// Hands the derivatives of all own particles to `each`, with their numbers and densities. Returns what was computed: about 20 operations for
    /// a neighbor in a sum for the density, and 40 for one that acts.
    pub(crate) fn forces(&self, tube: &Tube, mut each: impl FnMut(usize, f64, Derivatives)) -> Work {
        let (mass, reach) = (tube.mass(), tube.reach());
        let mut pairs = 0;
        for &k in &self.own {
            let me = &self.sources[k];
            let mut sum = Derivatives { acceleration: 0.0, heating: 0.0 };
            for (r, other) in self.around(k, reach) {
                if r > 0.0 && r < 2.0 * me.h.max(other.h) {
                    act(&mut sum, r, me, other);
                    pairs += 1;
                }
            }
            let derivatives = Derivatives { acceleration: mass * sum.acceleration, heating: mass * sum.heating };
            if let Some(particle) = me.particle {
                each(particle, me.density, derivatives);
            }
        }
        Work::flops((20 * self.pairs + 40 * pairs) as f64) + Work::bytes((3 * size_of_val(&self.sources[..])) as f64)
    }

    /// Hands the densities of all own particles to `each`.
    pub(crate) fn densities(&self, mut each: impl FnMut(usize, f64)) {
        self.own.iter().map(|&k| &self.sources[k]).for_each(|source| {
            source.particle.into_iter().for_each(|particle| each(particle, source.density));
        });
    }
}

/// Adds what a neighbor at the distance `r` does, for each unit of its mass.
fn act(sum: &mut Derivatives, r: f64, me: &Source, other: &Source) {
    let outwards = (me.x - other.x).signum();
    let parting = (me.v - other.v) * outwards;
    let (mine, others) = (kernel::slope(r, me.h), kernel::slope(r, other.h));
    let mean = 0.5 * (mine / me.omega + others / other.omega);
    let density = 0.5 * (me.density + other.density);
    let mut push = -(me.push() * mine + other.push() * others);
    sum.heating += me.push() * parting * mine;
    if parting < 0.0 {
        let signal = 0.5 * (me.sound + other.sound - SQUARE_VISCOSITY * parting);
        let damping = VISCOSITY * signal * parting * mean / density;
        push += damping;
        sum.heating -= 0.5 * damping * parting;
    }
    let signal = ((me.pressure - other.pressure).abs() / density).sqrt();
    sum.heating += CONDUCTIVITY * signal * (me.u - other.u) * mean / density;
    sum.acceleration += push * outwards;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gas in disorder: the tube at first, moved and heated here and there.
    fn disorder(tube: &Tube) -> Vec<Particle> {
        let stir = |id: u64, times: f64| (times * id as f64).sin();
        (0..tube.particles)
            .map(|id| {
                let mut particle = tube.particle(id);
                particle.position[0] += 0.3 * tube.mass() / particle.density * stir(id, 12.9);
                particle.velocity = stir(id, 7.3);
                particle.energy *= 1.0 + 0.3 * stir(id, 3.7);
                particle
            })
            .collect()
    }

    fn derivatives(tube: &Tube, particles: &[Particle]) -> (Vec<Derivatives>, Vec<f64>) {
        let mut line = Line::default();
        line.build(tube, particles, particles.len(), &tube.boundary()).unwrap();
        let mut found = vec![(Derivatives { acceleration: f64::NAN, heating: f64::NAN }, 0.0); particles.len()];
        let _: Work = line.forces(tube, |k, density, derivatives| found[k] = (derivatives, density));
        found.into_iter().unzip()
    }

    #[test]
    fn gas_at_rest_stays_at_rest() {
        // Only around the diaphragm does anything happen.
        let tube = Tube::new(90);
        let all: Vec<Particle> = (0..90).map(|id| tube.particle(id)).collect();
        let (found, densities) = derivatives(&tube, &all);
        for (particle, (derivatives, density)) in all.iter().zip(found.iter().zip(densities)) {
            let apart = (particle.position[0] - 0.5).abs();
            if apart > 2.0 * tube.reach() {
                approx::assert_abs_diff_eq!(derivatives.acceleration, 0.0, epsilon = 1e-9);
                approx::assert_abs_diff_eq!(derivatives.heating, 0.0, epsilon = 1e-12);
                // The sum over a lattice is right within 0.2 %.
                approx::assert_relative_eq!(density, particle.density, max_relative = 2e-3);
            }
        }
        let fastest = found.iter().map(|derivatives| derivatives.acceleration).fold(0.0, f64::max);
        assert!(fastest > 10.0, "{fastest}");
    }

    #[test]
    fn pairs_conserve_momentum_and_energy() {
        let tube = Tube::new(90);
        // At rest near the ends, which else take both.
        let mut all = disorder(&tube);
        all.iter_mut().filter(|particle| !(0.1..0.7).contains(&particle.position[0])).for_each(|particle| {
            *particle = tube.particle(u64::from(particle.id));
        });
        let (found, _) = derivatives(&tube, &all);
        let momentum: f64 = found.iter().map(|derivatives| derivatives.acceleration * tube.mass()).sum();
        let power: f64 = all.iter().zip(&found).map(|(p, d)| tube.mass() * (p.velocity * d.acceleration + d.heating)).sum();
        let scale: f64 = all.iter().zip(&found).map(|(p, d)| tube.mass() * (p.velocity * d.acceleration).abs()).sum();
        assert!(scale > 0.1, "{scale}");
        // The ends push with the pressures of both sides: on a lattice, the terms of Ω make that exact.
        approx::assert_relative_eq!(momentum, 0.9, max_relative = 1e-9);
        approx::assert_abs_diff_eq!(power, 0.0, epsilon = 1e-10 * scale);
    }

    #[test]
    fn without_dissipation_the_force_is_the_gradient_of_the_energy() {
        // Equal velocities and energies: neither viscosity nor conductivity. At constant entropy du = p/ρ² dρ, so m dv/dt = −∂E/∂x with
        // E = Σ m u. Only with the terms of Ω does that hold where h varies.
        let tube = Tube::new(90);
        let mut all = disorder(&tube);
        all.iter_mut().for_each(|particle| (particle.velocity, particle.energy) = (0.0, 1.0));
        let (found, densities) = derivatives(&tube, &all);
        let energy = |k: usize, by: f64| {
            let mut moved = all.clone();
            moved[k].position[0] += by;
            let (_, after) = derivatives(&tube, &moved);
            let isentropic = |(now, before): (&f64, &f64)| tube.mass() * (now / before).powf(GAMMA - 1.0);
            after.iter().zip(&densities).map(isentropic).sum::<f64>()
        };
        for k in [40, 70, 79, 80, 81, 83] {
            let step = 1e-6;
            let force = -(energy(k, step) - energy(k, -step)) / (2.0 * step);
            approx::assert_relative_eq!(tube.mass() * found[k].acceleration, force, max_relative = 1e-5, epsilon = 1e-6);
        }
    }

    #[test]
    fn viscosity_slows_what_approaches_and_heats_it() {
        let tube = Tube::new(90);
        let mut all: Vec<Particle> = (0..90).map(|id| tube.particle(id)).collect();
        let (rest, _) = derivatives(&tube, &all);
        let (left, right) = (30, 31);
        // Pushed together, pulled apart.
        for (speed, slowed) in [(0.1, true), (-0.1, false)] {
            (all[left].velocity, all[right].velocity) = (speed, -speed);
            let (found, _) = derivatives(&tube, &all);
            let of_left = found[left].acceleration - rest[left].acceleration;
            assert_eq!(of_left < -1.0, slowed, "{of_left}");
            let both = found[left].heating + found[right].heating;
            let work = found.iter().zip(&all).map(|(d, p)| d.heating + d.acceleration * p.velocity).sum::<f64>();
            assert_eq!(both > 0.0, slowed, "{both}");
            approx::assert_abs_diff_eq!(work, 0.0, epsilon = 1e-7);
        }
    }

    #[test]
    fn conductivity_cools_the_hotter() {
        let tube = Tube::new(90);
        let mut all: Vec<Particle> = (0..90).map(|id| tube.particle(id)).collect();
        all[30].energy *= 1.5;
        let (found, _) = derivatives(&tube, &all);
        assert!(found[30].heating < -1.0 && found[29].heating > 1.0, "{:?}", &found[28..33]);
        approx::assert_abs_diff_eq!(found.iter().map(|d| d.heating).sum::<f64>(), 0.0, epsilon = 1e-8);
    }
}
