//! The Lennard-Jones pair potential u(r) = 4 (r⁻¹² − r⁻⁶), in reduced units, and the four ways to cut it off at r_c.
//!
//! | name | inside the cut-off | beyond |
//! |---|---|---|
//! | truncated | u(r) | nothing |
//! | truncated-tail | u(r) | on average: the energy and pressure of a fluid of uniform density |
//! | shifted | u(r) − u(r_c): continuous energy | nothing |
//! | shifted-force | u(r) − u(r_c) − (r − r_c) u′(r_c): continuous force, too | nothing |
//!
//! With W = Σ_{i<j} r·F the *virial* and N atoms at density ρ the tail is
//!
//! U_tail = (8/9) π N ρ (r_c⁻⁹ − 3 r_c⁻³),  P_tail = (16/9) π ρ² (2 r_c⁻⁹ − 3 r_c⁻³).
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

/// The potential and its cut-off.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Potential {
    pub(crate) ending: Ending,
    pub(crate) cutoff: f64,
    /// What is taken from the energy of each pair: u(r_c), or 0.
    pub(crate) energy_shift: f64,
    /// u′(r_c), which is added to the force of each pair, or 0.
    pub(crate) force_shift: f64,
}

impl Potential {
    pub(crate) fn new(ending: Ending, cutoff: f64) -> Self {
        let sixth = cutoff.powi(-6);
        let (energy, slope) = (4.0 * sixth * (sixth - 1.0), -24.0 * sixth * (2.0 * sixth - 1.0) / cutoff);
        let (energy_shift, force_shift) = match ending {
            Ending::Truncated | Ending::TruncatedTail => (0.0, 0.0),
            Ending::Shifted => (energy, 0.0),
            Ending::ShiftedForce => (energy, slope),
        };
        Potential { ending, cutoff, energy_shift, force_shift }
    }

    /// Energy and pressure of what is beyond the cut-off, for `atoms` in `volume`.
    pub(crate) fn tail(&self, atoms: usize, volume: f64) -> (f64, f64) {
        if self.ending != Ending::TruncatedTail {
            return (0.0, 0.0);
        }
        let (atoms, third) = (atoms as f64, self.cutoff.powi(-3));
        let (density, ninth) = (atoms / volume, third.powi(3));
        let energy = 8.0 / 9.0 * PI * atoms * density * (ninth - 3.0 * third);
        (energy, 16.0 / 9.0 * PI * density * density * (2.0 * ninth - 3.0 * third))
    }

    /// Energy and r·F of a pair at distance `r`, the plain way: what the kernel is tested against.
    #[cfg(test)]
    pub(crate) fn pair(&self, r: f64) -> (f64, f64) {
        if r >= self.cutoff {
            return (0.0, 0.0);
        }
        let energy = 4.0 * (r.powi(-12) - r.powi(-6));
        let slope = -4.0 * (12.0 * r.powi(-13) - 6.0 * r.powi(-7));
        (energy - self.energy_shift - (r - self.cutoff) * self.force_shift, -r * (slope - self.force_shift))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ending_but_the_truncated_is_continuous() {
        let near = 2.5 - 1e-9;
        let end = |ending| Potential::new(ending, 2.5).pair(near);
        assert!(end(Ending::Truncated).0 < -0.016 && end(Ending::Truncated).1 < -0.09);
        assert!(end(Ending::Shifted).0.abs() < 1e-9 && end(Ending::Shifted).1 < -0.09);
        assert!(end(Ending::ShiftedForce).0.abs() < 1e-9 && end(Ending::ShiftedForce).1.abs() < 1e-8);
    }

    #[test]
    fn the_force_is_minus_the_slope_of_the_energy() {
        for ending in Ending::value_variants() {
            let potential = Potential::new(*ending, 2.5);
            for r in [0.9, 1.0, 1.2, 2.0, 2.4] {
                let slope = (potential.pair(r + 1e-6).0 - potential.pair(r - 1e-6).0) / 2e-6;
                assert!((potential.pair(r).1 + r * slope).abs() < 1e-6 * (1.0 + slope.abs()), "{ending:?} at {r}");
            }
        }
    }
}
