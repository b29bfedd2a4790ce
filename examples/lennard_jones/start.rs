//! What a run starts from: a box, and position and velocity of each atom.

use std::f64::consts::TAU;
use std::str::FromStr;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use crate::read::{NAMELESS, number};
use crate::species::{Coefficients, Kind, MOST_KINDS};

/// A box with a corner at `origin`, and the atoms in it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Start {
    pub(crate) origin: [f64; 3],
    pub(crate) lengths: [f64; 3],
    /// Relative to `origin`.
    pub(crate) positions: Vec<[f64; 3]>,
    /// Empty if they are not known.
    pub(crate) velocities: Vec<[f64; 3]>,
    /// How far each atom has come since an earlier run began, whatever the box; empty if no run was before.
    pub(crate) ways: Vec<[f64; 3]>,
    /// The kind of each atom, as a place in `kinds`.
    pub(crate) kind_of: Vec<u16>,
    pub(crate) kinds: Vec<Kind>,
    /// What a file says of pairs of kinds.
    pub(crate) coefficients: Vec<Coefficients<usize>>,
    /// The step that the file is of, and the time, if the file tells it.
    pub(crate) step: u64,
    pub(crate) time: Option<f64>,
    /// What a thermostat has added to the energy before.
    pub(crate) heat: f64,
}

impl Start {
    /// How many atoms of each kind there are.
    pub(crate) fn counts(&self) -> Vec<usize> {
        let mut counts = vec![0; self.kinds.len()];
        self.kind_of.iter().for_each(|&kind| counts[usize::from(kind)] += 1);
        counts
    }

    /// A kind without atoms needs no potential.
    fn drop_kinds_without_atoms(&mut self) {
        let counts = self.counts();
        let place: Vec<u16> =
            (0..counts.len()).map(|kind| counts[..kind].iter().filter(|count| **count > 0).count() as u16).collect();
        self.kind_of.iter_mut().for_each(|kind| *kind = place[usize::from(*kind)]);
        let mut counts = counts.iter();
        self.kinds.retain(|_| counts.next().is_some_and(|count| *count > 0));
    }

    /// Takes from all velocities that of the whole, for kinds of these masses.
    pub(crate) fn stop_drifting(&mut self, masses: &[f64]) {
        let mass = |kind: u16| masses[usize::from(kind)];
        let total: f64 = self.kind_of.iter().map(|&kind| mass(kind)).sum();
        let pairs = || self.velocities.iter().zip(&self.kind_of);
        let drift: [f64; 3] = std::array::from_fn(|d| pairs().map(|(v, &kind)| mass(kind) * v[d]).sum::<f64>() / total);
        self.velocities.iter_mut().for_each(|v| (0..3).for_each(|d| v[d] -= drift[d]));
    }
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
    let (kind_of, kinds) = (vec![0; positions.len()], vec![Kind { name: NAMELESS.into(), mass: None }]);
    Start { lengths, positions, kind_of, kinds, ..Start::default() }
}

/// Which part of a lattice's atoms is of each kind.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Composition(Vec<f64>);

impl FromStr for Composition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Option<Vec<f64>> = text.split(',').map(|word| number(word).filter(|part| *part >= 0.0)).collect();
        let parts = parts.ok_or("parts of at least 0 are expected, as in 0.8,0.2")?;
        if (parts.iter().sum::<f64>() - 1.0).abs() > 1e-9 {
            return Err("the parts do not add up to 1".into());
        }
        if parts.len() > MOST_KINDS {
            return Err(format!("more than {MOST_KINDS} kinds of atoms"));
        }
        Ok(Composition(parts))
    }
}

impl Composition {
    /// Makes atoms of `start` kinds 1, 2 and so on, as many as the parts say to the nearest atom, drawn at random.
    pub(crate) fn apply(&self, start: &mut Start, seed: u64) {
        let atoms = start.positions.len();
        let mut part = 0.0;
        start.kind_of.clear();
        for (kind, &of_kind) in self.0.iter().enumerate() {
            part += of_kind;
            let end = if kind + 1 == self.0.len() { atoms } else { ((part * atoms as f64).round() as usize).min(atoms) };
            start.kind_of.resize(end, kind as u16);
        }
        // Velocities are drawn from another stream.
        let mut random = Pcg64::new(u128::from(seed), 1);
        // R. A. Fisher, F. Yates: each order of the kinds is as likely as any other.
        (1..atoms).rev().for_each(|last| start.kind_of.swap(last, random.random_range(0..=last)));
        start.kinds = (1..=self.0.len()).map(|kind| Kind { name: kind.to_string(), mass: None }).collect();
        start.drop_kinds_without_atoms();
    }
}

/// Velocities of atoms with these masses from Maxwell's distribution: no momentum in all, and exactly the temperature
/// T = Σ m v² / (3 N − 3).
///
/// A single atom rests.
pub(crate) fn maxwell(masses: &[f64], temperature: f64, seed: u64) -> Vec<[f64; 3]> {
    let atoms = masses.len();
    let mut random = Pcg64::seed_from_u64(seed);
    // G. E. P. Box, M. E. Muller, Annals of Mathematical Statistics 29 (1958).
    let mut normal = || {
        let (radius, angle): (f64, f64) = (1.0 - random.random::<f64>(), random.random());
        (-2.0 * radius.ln()).sqrt() * (TAU * angle).cos()
    };
    let mut velocities: Vec<[f64; 3]> =
        masses.iter().map(|mass| [normal(), normal(), normal()].map(|v| v / mass.sqrt())).collect();
    let momentum = velocities.iter().zip(masses).fold([0.0; 3], |sum, (v, m)| std::array::from_fn(|d| sum[d] + m * v[d]));
    let mean = momentum.map(|sum| sum / masses.iter().sum::<f64>());
    velocities.iter_mut().for_each(|v| (0..3).for_each(|d| v[d] -= mean[d]));
    let squares: f64 = velocities.iter().zip(masses).flat_map(|(v, m)| v.map(|v| m * v * v)).sum();
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
        let velocities = maxwell(&[1.0; 1000], 1.44, 3);
        let squares: f64 = velocities.iter().flatten().map(|v| v * v).sum();
        assert_relative_eq!(squares / 2997.0, 1.44, max_relative = 1e-13);
        for d in 0..3 {
            assert!(velocities.iter().map(|v| v[d]).sum::<f64>().abs() < 1e-10);
        }
        // Of a normal distribution 68.3 % lie within one standard deviation, 4.6 % beyond two.
        let beyond = |sigmas: f64| velocities.iter().flatten().filter(|v| v.abs() > sigmas * 1.2).count() as f64 / 3000.0;
        assert!((beyond(1.0) - 0.317).abs() < 0.03 && (beyond(2.0) - 0.046).abs() < 0.015);
        assert_ne!(velocities, maxwell(&[1.0; 1000], 1.44, 4));
        assert_eq!(maxwell(&[1.0], 1.0, 1), [[0.0; 3]]);
    }

    #[test]
    fn a_composition_is_exact_and_drawn() {
        let of = |text: &str, seed: u64| {
            let mut start = fcc([5; 3], 1.0, 0.0);
            text.parse::<Composition>().unwrap().apply(&mut start, seed);
            start
        };
        let start = of("0.7,0.1,0.2", 1);
        assert_eq!((start.counts(), start.kinds.len()), (vec![350, 50, 100], 3));
        assert_eq!(of("1", 1).counts(), [500]);
        let second = of("0,1", 1);
        assert_eq!((second.counts(), &second.kinds[0].name[..]), (vec![500], "2"));
        assert_ne!(start.kind_of, of("0.7,0.1,0.2", 2).kind_of);
        // Of the first half of all, about half of each kind.
        let minority = start.kind_of[..250].iter().filter(|kind| **kind == 2).count();
        assert!((30..70).contains(&minority), "{minority}");
        for wrong in ["", "0.5", "0.5,x", "1.5,-0.5", "nan"] {
            assert!(wrong.parse::<Composition>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn light_atoms_are_faster() {
        let masses: Vec<f64> = (0..2000).map(|atom| if atom % 2 == 0 { 1.0 } else { 9.0 }).collect();
        let velocities = maxwell(&masses, 2.0, 3);
        for d in 0..3 {
            assert!(velocities.iter().zip(&masses).map(|(v, m)| m * v[d]).sum::<f64>().abs() < 1e-9);
        }
        // Each kind has the temperature; of 3000 squares the standard deviation is 2.6 %.
        for kind in [0, 1] {
            let squares: f64 = velocities.iter().skip(kind).step_by(2).flatten().map(|v| masses[kind] * v * v).sum();
            assert_relative_eq!(squares / 3000.0, 2.0, max_relative = 0.08);
        }
    }
}
