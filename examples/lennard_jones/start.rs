//! What a run starts from: a box, and position and velocity of each atom.

use std::f64::consts::TAU;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

/// A box with a corner at `origin`, and the atoms in it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Start {
    pub(crate) origin: [f64; 3],
    pub(crate) lengths: [f64; 3],
    /// Relative to `origin`.
    pub(crate) positions: Vec<[f64; 3]>,
    /// Empty if they are not known.
    pub(crate) velocities: Vec<[f64; 3]>,
}

/// Atoms on a face-centred cubic lattice of cubic cells with four atoms each, at a number density.
///
/// The box is as long as the lattice, or `room` if that is longer.
pub(crate) fn fcc(cells: [usize; 3], density: f64, room: f64) -> Start {
    let edge = (4.0 / density).cbrt();
    let basis = [[0.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.5, 0.0, 0.5], [0.0, 0.5, 0.5]];
    let mut positions = Vec::with_capacity(4 * cells.iter().product::<usize>());
    for z in 0..cells[2] {
        for y in 0..cells[1] {
            for x in 0..cells[0] {
                let corner = [x as f64, y as f64, z as f64];
                positions.extend(basis.map(|place| std::array::from_fn::<f64, 3, _>(|d| (corner[d] + place[d]) * edge)));
            }
        }
    }
    let lengths = cells.map(|cells| room.max(edge * cells as f64));
    Start { origin: [0.0; 3], lengths, positions, velocities: Vec::new() }
}

/// Velocities of `atoms` atoms from Maxwell's distribution: no momentum in all, and exactly the temperature
/// T = Σ v² / (3 N − 3).
///
/// A single atom rests.
pub(crate) fn maxwell(atoms: usize, temperature: f64, seed: u64) -> Vec<[f64; 3]> {
    let mut random = Pcg64::seed_from_u64(seed);
    // G. E. P. Box, M. E. Muller, Annals of Mathematical Statistics 29 (1958).
    let mut normal = || {
        let (radius, angle): (f64, f64) = (1.0 - random.random::<f64>(), random.random());
        (-2.0 * radius.ln()).sqrt() * (TAU * angle).cos()
    };
    let mut velocities: Vec<[f64; 3]> = (0..atoms).map(|_| [normal(), normal(), normal()]).collect();
    let mean = velocities.iter().fold([0.0; 3], |sum, v| std::array::from_fn(|d| sum[d] + v[d])).map(|sum| sum / atoms as f64);
    velocities.iter_mut().for_each(|v| (0..3).for_each(|d| v[d] -= mean[d]));
    let squares: f64 = velocities.iter().flatten().map(|v| v * v).sum();
    let factor = if atoms > 1 { (temperature * (3 * atoms - 3) as f64 / squares).sqrt() } else { 0.0 };
    velocities.iter_mut().flatten().for_each(|v| *v *= factor);
    velocities
}

#[cfg(test)]
mod tests {
    use approx::assert_relative_eq;

    use super::*;

    #[test]
    fn the_draw_has_its_temperature_and_no_momentum() {
        let velocities = maxwell(1000, 1.44, 3);
        let squares: f64 = velocities.iter().flatten().map(|v| v * v).sum();
        assert_relative_eq!(squares / 2997.0, 1.44, max_relative = 1e-13);
        for d in 0..3 {
            assert!(velocities.iter().map(|v| v[d]).sum::<f64>().abs() < 1e-10);
        }
        // Of a normal distribution 68.3 % lie within one standard deviation, 4.6 % beyond two.
        let beyond = |sigmas: f64| velocities.iter().flatten().filter(|v| v.abs() > sigmas * 1.2).count() as f64 / 3000.0;
        assert!((beyond(1.0) - 0.317).abs() < 0.03 && (beyond(2.0) - 0.046).abs() < 0.015);
        assert_ne!(velocities, maxwell(1000, 1.44, 4));
        assert_eq!(maxwell(1, 1.0, 1), [[0.0; 3]]);
    }
}
