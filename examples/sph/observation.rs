//! What is measured of the flow at some times, over all ranks.

use global_arrays::prelude::*;

use crate::case::{Case, GRAVITY, Kind, PLATES_FORCE, PLATES_VISCOSITY, VORTEX_SPEED};
use crate::closed_forms::{plates_speed, vortex_decay, vortex_velocity};
use crate::particle::Moving;
use crate::simulation::Simulation;

/// The flow at one time.
#[derive(Debug, Clone, Copy, serde::Serialize, serde::Deserialize)]
pub(crate) struct Observation {
    /// Seconds since the start.
    pub(crate) time: f64,
    /// Particles there are.
    pub(crate) particles: u64,
    /// The sum of their numbers.
    pub(crate) numbers: i64,
    /// x of the front: of the foremost particle, and half a spacing.
    pub(crate) front: f64,
    /// The highest speed.
    pub(crate) fastest: f64,
    /// Σ v², over the number of particles.
    pub(crate) square_speed: f64,
    /// |Σ v| over Σ |v|: of momentum, what is not balanced.
    pub(crate) unbalanced: f64,
    /// What the case is checked by: the largest error at this time, relative to the scale of the flow.
    pub(crate) error: f64,
    /// Vortices: the L2 norm of the error of the velocity, over that of the first velocity.
    pub(crate) velocity_error: f64,
    /// The same over the norm of the exact velocity at this time.
    pub(crate) velocity_error_now: f64,
    /// Kinetic, potential and of compression, in joules; in a plane for each meter of depth. The same bits on any number of ranks.
    pub(crate) energy: [f64; 3],
    /// The mean pressure, over ρU² of the vortices.
    pub(crate) mean_pressure: f64,
}

/// mc², in the integers that energies are summed in: the sum does not depend on the number of ranks. A billion particles with a twentieth of
/// it each fit.
const UNIT: f64 = (1_u64 << 36) as f64;

/// Looks at all particles. Collective.
pub(crate) fn observe<const D: usize>(job: &Job, simulation: &Simulation<'_, D>) -> Result<Observation, Error> {
    let (case, time) = (simulation.case, simulation.time());
    let scale = scale(case);
    let mut largest = [f64::NEG_INFINITY, 0.0, 0.0];
    let mut sums = [0.0; 10];
    let (mut energy, mut numbers) = ([0_i64; 3], [0_i64]);
    for particle in simulation.own() {
        let square: f64 = particle.velocity.iter().map(|v| v * v).sum();
        largest[0] = greater(largest[0], particle.position[0]);
        largest[1] = greater(largest[1], square.sqrt());
        let error = match case.kind {
            Kind::Hydrostatic => {
                let expected = case.fluid.density * GRAVITY * (case.column_height() - particle.position[1]);
                case.fluid.pressure(particle.density) - expected
            }
            Kind::Poiseuille => {
                let expected = plates_speed(PLATES_FORCE, PLATES_VISCOSITY, case.column_height(), particle.position[1], time);
                particle.velocity[0] - expected
            }
            Kind::DamBreak | Kind::TaylorGreen => 0.0,
        };
        largest[2] = greater(largest[2], error.abs() / scale);
        sums[0] += 1.0;
        sums[1] += square;
        sums[2] += square.sqrt();
        numbers[0] = numbers[0].wrapping_add(i64::from(particle.id));
        let height: f64 = (0..D).map(|axis| case.fluid.gravity[axis] * particle.position[axis]).sum();
        let energies = [0.5 * square, -height, case.fluid.compression(particle.density)];
        for (sum, energy) in energy.iter_mut().zip(energies) {
            *sum = sum.wrapping_add((energy / (case.fluid.sound * case.fluid.sound) * UNIT).round() as i64);
        }
        sums[7] += case.fluid.pressure(particle.density);
        if case.kind == Kind::TaylorGreen {
            let exact = vortex_velocity(case.laminar(), case.column_width(), &particle.position, time);
            for (v, exact) in particle.velocity.iter().zip(exact) {
                sums[8] += (v - VORTEX_SPEED * exact).powi(2);
                sums[9] += (VORTEX_SPEED * exact).powi(2);
            }
        }
        (0..D).for_each(|axis| sums[3 + axis] += particle.velocity[axis]);
    }
    job.all_reduce(&mut largest, greater)?;
    job.all_reduce(&mut sums, ops::sum)?;
    job.all_reduce(&mut energy, |a: i64, b| a.wrapping_add(b))?;
    job.all_reduce(&mut numbers, |a: i64, b| a.wrapping_add(b))?;
    let [front, fastest, mut error] = largest;
    let square_speed = sums[1] / sums[0];
    if case.kind == Kind::TaylorGreen {
        // The mean square of the first speeds is half that of the highest.
        let decay = (2.0 * square_speed).sqrt() / VORTEX_SPEED;
        error = (decay - vortex_decay(case.laminar(), case.column_width(), time)).abs();
    }
    let momentum = (sums[3] * sums[3] + sums[4] * sums[4] + sums[5] * sums[5]).sqrt();
    Ok(Observation {
        time,
        particles: sums[0] as u64,
        numbers: numbers[0],
        front: front + 0.5 * case.fluid.spacing,
        fastest,
        square_speed,
        unbalanced: if sums[2] > 0.0 { momentum / sums[2] } else { 0.0 },
        error,
        // The mean square of the first speeds is half that of the highest.
        velocity_error: (2.0 * sums[8] / sums[0]).sqrt() / VORTEX_SPEED,
        velocity_error_now: if sums[9] > 0.0 { (sums[8] / sums[9]).sqrt() } else { 0.0 },
        energy: energy.map(|sum| sum as f64 / UNIT * case.fluid.mass() * case.fluid.sound * case.fluid.sound),
        mean_pressure: sums[7] / sums[0] / (case.fluid.density * VORTEX_SPEED * VORTEX_SPEED),
    })
}

/// The greater of two numbers, or the one that is none.
pub(crate) fn greater(a: f64, b: f64) -> f64 {
    if b > a || b.is_nan() { b } else { a }
}

/// What errors are relative to.
fn scale<const D: usize>(case: &Case<D>) -> f64 {
    match case.kind {
        Kind::Hydrostatic => case.fluid.density * GRAVITY * case.column_height(),
        Kind::Poiseuille => PLATES_FORCE * case.column_height().powi(2) / (8.0 * PLATES_VISCOSITY),
        Kind::DamBreak | Kind::TaylorGreen => 1.0,
    }
}

/// A number that is the same for the same particles in the same states, whoever owns them. `own` are this rank's. Collective.
pub(crate) fn fingerprint<const D: usize, P: Moving<D>>(job: &Job, own: &[P]) -> Result<u64, Error> {
    /// Odd, and close to 2⁶⁴ over the golden ratio.
    const MIX: u64 = 0x9E37_79B9_7F4A_7C15;
    let one = |particle: &P| {
        let mut words = Vec::new();
        particle.write(&mut words);
        words.iter().fold(0_u64, |hash, word| (hash ^ word.to_bits()).wrapping_mul(MIX).rotate_left(29))
    };
    let sum = own.iter().map(one).fold(0_u64, u64::wrapping_add);
    job.all_reduce_one(sum, |a: u64, b| a.wrapping_add(b))
}
