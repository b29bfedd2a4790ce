//! The Lennard-Jones pair potential u(r) = 4ε ((σ/r)¹² − (σ/r)⁶), one for each two kinds of atoms, and the four ways to cut it off at r_c.
//!
//! | name | inside the cut-off | beyond |
//! |---|---|---|
//! | truncated | u(r) | nothing |
//! | truncated-tail | u(r) | on average: the energy and pressure of a fluid of uniform density |
//! | shifted | u(r) − u(r_c): continuous energy | nothing |
//! | shifted-force | u(r) − u(r_c) − (r − r_c) u′(r_c): continuous force, too | nothing |
//!
//! With W = Σ_{i<j} r·F the *virial*, N_a atoms of kind a in volume V, and s = σ/r_c, the tail is a sum over all a and b:
//!
//! U_tail = (8/9) π Σ N_a N_b/V εσ³ (s⁹ − 3 s³),  P_tail = (16/9) π Σ N_a N_b/V² εσ³ (2 s⁹ − 3 s³).
//!
//! # Source
//! M. P. Allen, D. J. Tildesley, *Computer Simulation of Liquids*, 2nd edition, §2.8 and §5.2; V. K. Shen et al., *NIST
//! Standard Reference Simulation Website*, "Lennard-Jones Fluid Reference Calculations", whose "linear force shift" is the last.

use std::f64::consts::PI;

use clap::ValueEnum;

/// How the potential ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Ending {
    /// Cut off.
    Truncated,
    /// Cut off, with the average of what is beyond.
    TruncatedTail,
    /// Raised to end at zero.
    Shifted,
    /// Bent to end at zero with zero force.
    ShiftedForce,
}

/// What holds between atoms of two kinds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Law {
    pub(crate) epsilon: f64,
    pub(crate) sigma: f64,
    pub(crate) cutoff: f64,
    /// 48 ε σ¹², the part of r·F with r⁻¹².
    pub(crate) repulsion: f64,
    /// −24 ε σ⁶, the part of r·F with r⁻⁶.
    pub(crate) attraction: f64,
    /// What is taken from the energy of each pair: u(r_c), or 0.
    pub(crate) energy_shift: f64,
    /// u′(r_c), which is added to the force of each pair, or 0.
    pub(crate) force_shift: f64,
}

impl Law {
    pub(crate) fn new(ending: Ending, epsilon: f64, sigma: f64, cutoff: f64) -> Self {
        let sixth = (sigma / cutoff).powi(6);
        let energy = 4.0 * epsilon * sixth * (sixth - 1.0);
        let slope = -24.0 * epsilon * sixth * (2.0 * sixth - 1.0) / cutoff;
        let (energy_shift, force_shift) = match ending {
            Ending::Truncated | Ending::TruncatedTail => (0.0, 0.0),
            Ending::Shifted => (energy, 0.0),
            Ending::ShiftedForce => (energy, slope),
        };
        let (repulsion, attraction) = (48.0 * epsilon * sigma.powi(12), -24.0 * epsilon * sigma.powi(6));
        Law { epsilon, sigma, cutoff, repulsion, attraction, energy_shift, force_shift }
    }

    /// Energy and r·F of a pair at distance `r`, the plain way: what the kernel is tested against.
    #[cfg(test)]
    pub(crate) fn pair(&self, r: f64) -> (f64, f64) {
        if r >= self.cutoff {
            return (0.0, 0.0);
        }
        let (epsilon, s) = (self.epsilon, self.sigma / r);
        let energy = 4.0 * epsilon * (s.powi(12) - s.powi(6));
        let slope = -4.0 * epsilon * (12.0 * s.powi(12) - 6.0 * s.powi(6)) / r;
        (energy - self.energy_shift - (r - self.cutoff) * self.force_shift, -r * (slope - self.force_shift))
    }
}

/// The potentials between all kinds of atoms.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Potential {
    ending: Ending,
    kinds: usize,
    /// For each kind one with each kind.
    laws: Vec<Law>,
}

impl Potential {
    /// Between `kinds` kinds; `law` gives ε, σ and cut-off of two of them, the same in both orders.
    pub(crate) fn new(ending: Ending, kinds: usize, law: impl Fn(usize, usize) -> (f64, f64, f64)) -> Self {
        let laws = (0..kinds * kinds).map(|at| {
            let (epsilon, sigma, cutoff) = law(at / kinds, at % kinds);
            Law::new(ending, epsilon, sigma, cutoff)
        });
        Potential { ending, kinds, laws: laws.collect() }
    }

    pub(crate) fn kinds(&self) -> usize {
        self.kinds
    }

    /// Whether there is more than one kind of atoms.
    pub(crate) fn is_mixed(&self) -> bool {
        self.kinds > 1
    }

    /// Whether the force ends at zero.
    pub(crate) fn is_bent(&self) -> bool {
        self.ending == Ending::ShiftedForce
    }

    /// What holds between atoms of one kind and those of each.
    pub(crate) fn laws(&self, kind: usize) -> &[Law] {
        &self.laws[kind * self.kinds..][..self.kinds]
    }

    /// The longest cut-off.
    pub(crate) fn cutoff(&self) -> f64 {
        self.laws.iter().fold(0.0, |longest, law| law.cutoff.max(longest))
    }

    /// The diameter of the smallest atoms: the least σ of those that act on each other.
    pub(crate) fn diameter(&self) -> f64 {
        let sigmas = self.laws.iter().filter(|law| law.epsilon > 0.0).map(|law| law.sigma);
        sigmas.reduce(f64::min).unwrap_or(f64::INFINITY)
    }

    /// Energy and pressure of what is beyond the cut-offs, for so many atoms of each kind in `volume`.
    pub(crate) fn tail(&self, counts: &[usize], volume: f64) -> (f64, f64) {
        if self.ending != Ending::TruncatedTail {
            return (0.0, 0.0);
        }
        let (mut energy, mut pressure) = (0.0, 0.0);
        for (a, &of_a) in counts.iter().enumerate() {
            for (law, &of_b) in self.laws(a).iter().zip(counts) {
                let third = (law.sigma / law.cutoff).powi(3);
                let pairs = of_a as f64 * of_b as f64 / volume * law.epsilon * law.sigma.powi(3);
                energy += 8.0 / 9.0 * PI * pairs * (third.powi(3) - 3.0 * third);
                pressure += 16.0 / 9.0 * PI * pairs / volume * (2.0 * third.powi(3) - 3.0 * third);
            }
        }
        (energy, pressure)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ending_but_the_truncated_is_continuous() {
        let near = 2.5 - 1e-9;
        let end = |ending| Law::new(ending, 1.0, 1.0, 2.5).pair(near);
        assert!(end(Ending::Truncated).0 < -0.016 && end(Ending::Truncated).1 < -0.09);
        assert!(end(Ending::Shifted).0.abs() < 1e-9 && end(Ending::Shifted).1 < -0.09);
        assert!(end(Ending::ShiftedForce).0.abs() < 1e-9 && end(Ending::ShiftedForce).1.abs() < 1e-8);
    }

    #[test]
    fn the_force_is_minus_the_slope_of_the_energy() {
        for ending in Ending::value_variants() {
            let law = Law::new(*ending, 1.5, 0.8, 2.0);
            for r in [0.7, 0.9, 1.0, 1.2, 1.9] {
                let slope = (law.pair(r + 1e-6).0 - law.pair(r - 1e-6).0) / 2e-6;
                assert!((law.pair(r).1 + r * slope).abs() < 1e-6 * (1.0 + slope.abs()), "{ending:?} at {r}");
            }
        }
    }
    /// Two kinds that are one by another name have the tail of that one.
    #[test]
    fn the_tail_of_a_mixture() {
        let one = Potential::new(Ending::TruncatedTail, 1, |_, _| (1.0, 1.0, 3.0));
        let two = Potential::new(Ending::TruncatedTail, 2, |_, _| (1.0, 1.0, 3.0));
        let ((energy, pressure), mixed) = (one.tail(&[800], 1000.0), two.tail(&[300, 500], 1000.0));
        // NIST's value for 800 atoms in a cube of 10.
        approx::assert_relative_eq!(energy, -198.49, max_relative = 5e-5);
        approx::assert_relative_eq!(mixed.0, energy, max_relative = 1e-14);
        approx::assert_relative_eq!(mixed.1, pressure, max_relative = 1e-14);
        // Twice as large atoms at an eighth of the density, with half the depth.
        let large = Potential::new(Ending::TruncatedTail, 1, |_, _| (0.5, 2.0, 6.0));
        approx::assert_relative_eq!(large.tail(&[800], 8000.0).0, 0.5 * energy, max_relative = 1e-14);
        assert_eq!((one.cutoff(), large.cutoff(), large.diameter()), (3.0, 6.0, 2.0));
    }
}
