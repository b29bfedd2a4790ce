//! A thermostat: velocities are scaled, now and then, by a random factor that makes the kinetic energy that of a canonical ensemble.
//!
//! In a time Δt the kinetic energy K of N_f degrees of freedom goes to
//!
//! K' = c K + (1 − c) K̄/N_f Σ R_i² + 2 R_1 √(c (1 − c) K K̄/N_f),  c = exp(−Δt/τ),  K̄ = N_f T/2,
//!
//! with N_f independent normal numbers R_i. One factor for all atoms: momentum is conserved, and ranks need no random numbers of their own.
//! The total energy less what the thermostat has added is conserved as well as the energy without one.
//!
//! # Source
//! G. Bussi, D. Donadio, M. Parrinello, J. Chem. Phys. 126 (2007) 014101, equation A7 and §II.D.

use rand::SeedableRng;
use rand_distr::{ChiSquared, Distribution, StandardNormal};
use rand_pcg::Pcg64;

/// Steps from one scaling to the next. The formula is exact for any time; between two scalings the kinetic energy is exchanged with the
/// potential energy alone.
pub(crate) const EVERY: usize = 10;

/// What the thermostat is set to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Thermostat {
    pub(crate) temperature: f64,
    /// τ: how long it takes the kinetic energy to forget.
    pub(crate) relaxation: f64,
    pub(crate) seed: u64,
}

impl Thermostat {
    /// The kinetic energy that follows `kinetic` after a `time`, for so many degrees of freedom. The draw is that of this step and no other, so
    /// that a run that goes on from a file draws as if it had not ended.
    pub(crate) fn next(&self, kinetic: f64, freedoms: usize, time: f64, step: u64) -> f64 {
        // A lone atom has no motion but that of the whole.
        if freedoms == 0 || kinetic == 0.0 {
            return kinetic;
        }
        let mut random = Pcg64::seed_from_u64(self.seed ^ step.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let first: f64 = StandardNormal.sample(&mut random);
        // The sum of the squares of the others.
        let others = match ChiSquared::new((freedoms - 1) as f64) {
            Ok(squares) => squares.sample(&mut random),
            Err(_) => 0.0,
        };
        let kept = (-time / self.relaxation).exp();
        let each = 0.5 * self.temperature;
        let new = kept * kinetic
            + (1.0 - kept) * each * (first * first + others)
            + 2.0 * first * (kept * (1.0 - kept) * kinetic * each).sqrt();
        // It is a sum of squares, so it is below 0 by rounding only.
        new.max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mean and the variance of a chain of 40,000 kinetic energies are those of the canonical ensemble, N_f T/2 and N_f T²/2, for many
    /// degrees of freedom, one and two.
    #[test]
    fn kinetic_energies_are_canonical() {
        for freedoms in [1, 2, 30] {
            let thermostat = Thermostat { temperature: 0.7, relaxation: 1.0, seed: 5 };
            let (mut kinetic, mut sum, mut squares, count) = (10.0, 0.0, 0.0, 40_000);
            for step in 0..count + 20 {
                kinetic = thermostat.next(kinetic, freedoms, 1.0, step);
                if step >= 20 {
                    sum += kinetic;
                    squares += kinetic * kinetic;
                }
            }
            let (mean, n) = (sum / count as f64, freedoms as f64);
            let variance = squares / count as f64 - mean * mean;
            // Neighbors are correlated by exp(−1): some 18,500 of them are independent.
            let error = 0.7 * (0.5 * n / 18_500.0).sqrt();
            assert!((mean - 0.35 * n).abs() < 4.0 * error, "{freedoms}: {mean}");
            assert!((variance / (0.245 * n) - 1.0).abs() < 0.12, "{freedoms}: {variance}");
        }
    }

    #[test]
    fn short_times_change_little_and_each_step_draws_anew() {
        let thermostat = Thermostat { temperature: 1.0, relaxation: 1.0, seed: 5 };
        assert!((thermostat.next(150.0, 300, 1e-12, 0) - 150.0).abs() < 1e-3);
        assert_eq!(thermostat.next(150.0, 300, 0.1, 7), thermostat.next(150.0, 300, 0.1, 7));
        assert_ne!(thermostat.next(150.0, 300, 0.1, 7), thermostat.next(150.0, 300, 0.1, 8));
        assert_eq!(thermostat.next(0.0, 0, 0.1, 7), 0.0);
        // At temperature 0 the energy decays.
        let cold = Thermostat { temperature: 0.0, ..thermostat };
        approx::assert_relative_eq!(cold.next(150.0, 300, 1.0, 7), 150.0 * (-1.0_f64).exp(), max_relative = 1e-14);
    }
}
