//! One step in time with one force pass.
//!
//! Positions and velocities go by leapfrog, v(n+½) = v(n−½) + a(n) Δt and x(n+1) = x(n) + v(n+½) Δt. Viscosity and continuity need
//! velocity and density at whole steps, which are extrapolated to second order from the last two passes (Adams & Bashforth):
//! v(n+1) = v(n) + (3a(n) − a(n−1)) Δt/2, and so ρ. As v(n+½) = v(n) + (a(n) − a(n−1)/2) Δt, a particle keeps a(n−1) and v(n) alone.
//!
//! Where fluid fills all, positions are shifted besides, by δu Δt (see [`crate::filled`]).
//!
//! # Source
//! LAMMPS' SPH package: velocity Verlet with extrapolated velocities, of which this is the form without half steps.

use crate::forces::Derivatives;
use crate::particle::Particle;

/// Moves a particle on. `first`: there was no pass before.
///
/// Returns the sum of squares of two speeds of it.
#[inline(always)]
#[allow(clippy::needless_range_loop, reason = "an axis names the same component of several vectors")]
pub(crate) fn advance<const D: usize>(particle: &mut Particle<D>, now: Derivatives<D>, dt: f64, first: bool) -> f64 {
    let (before, rate_before) = if first { (now.acceleration, now.rate) } else { (particle.acceleration, particle.rate) };
    let mut square = 0.0;
    for axis in 0..D {
        let a = now.acceleration[axis];
        let half = particle.velocity[axis] + dt * (a - 0.5 * before[axis]);
        particle.position[axis] += dt * (half + now.shift[axis]);
        particle.velocity[axis] += dt * (1.5 * a - 0.5 * before[axis]);
        square += half * half + particle.velocity[axis] * particle.velocity[axis];
    }
    particle.density += dt * (1.5 * now.rate - 0.5 * rate_before);
    particle.acceleration = now.acceleration;
    particle.rate = now.rate;
    particle.carried = now.carried;
    square
}
