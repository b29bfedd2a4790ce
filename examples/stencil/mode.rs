//! An exact solution: a product of three waves.
//!
//! On a grid of spacing h the mean of the two neighbours of sin(κξ + φ) is cos(κh) times it, so a product of one wave for each axis is
//! an eigenvector of the sweep: after k sweeps every cell is λᵏ times its first value, with λ the mean of cos(κh) over the
//! axes. There is no truncation in that: what is left is rounding. The heat equation takes the same mode to exp(−|κ|²t), at t = kh²/6,
//! which λᵏ approaches with the second order of h.
//!
//! Periodic: κ = 2πm, with a phase of its own on each axis. Zero on the boundary: κ = πm and no phase, so that the wave is zero at
//! both ends. The waves differ from axis to axis: confused axes do not go unseen.

use std::f64::consts::PI;

use global_arrays::Boundary;

/// Waves along each axis.
pub(crate) const WAVES: [u32; 3] = [1, 2, 3];

/// Phases of a periodic mode, any numbers.
const PHASES: [f64; 3] = [0.3, 1.1, 2.0];

/// The solution on a cube of cells.
#[derive(Debug, Clone)]
pub(crate) struct Mode {
    periodic: bool,
    /// κ of each axis.
    waves: [f64; 3],
    /// The wave of each axis at each index.
    tables: [Vec<f64>; 3],
}

impl Mode {
    /// `n` cells along each edge, that many waves (or half waves) along each axis.
    pub(crate) fn new(n: usize, periodic: bool, waves: [u32; 3]) -> Self {
        let waves = waves.map(|m| f64::from(m) * if periodic { 2.0 * PI } else { PI });
        let mut mode = Mode { periodic, waves, tables: [const { Vec::new() }; 3] };
        mode.tables[0].resize(n, 0.0);
        let h = mode.spacing();
        mode.tables = [0, 1, 2].map(|axis| {
            let at = |i: usize| if periodic { i as f64 * h } else { (i + 1) as f64 * h };
            let phase = if periodic { PHASES[axis] } else { 0.0 };
            (0..n).map(|i| (waves[axis] * at(i) + phase).sin()).collect()
        });
        mode
    }

    /// Cells along an edge.
    pub(crate) fn cells(&self) -> usize {
        self.tables[0].len()
    }

    pub(crate) fn is_periodic(&self) -> bool {
        self.periodic
    }

    /// What lies beyond the edges.
    pub(crate) fn boundary(&self) -> Boundary {
        if self.periodic { Boundary::Periodic } else { Boundary::Open }
    }

    /// h.
    pub(crate) fn spacing(&self) -> f64 {
        1.0 / (self.cells() + usize::from(!self.periodic)) as f64
    }

    /// A cell before the first sweep.
    pub(crate) fn first(&self, (i, j, k): (usize, usize, usize)) -> f64 {
        self.tables[0][i] * self.tables[1][j] * self.tables[2][k]
    }

    /// λᵏ after k sweeps.
    pub(crate) fn decay(&self, sweeps: usize) -> f64 {
        let h = self.spacing();
        (self.waves.map(|wave| (wave * h).cos()).iter().sum::<f64>() / 3.0).powf(sweeps as f64)
    }

    /// exp(−|κ|²t) at the time of so many sweeps.
    pub(crate) fn heat(&self, sweeps: usize) -> f64 {
        let time = sweeps as f64 * self.spacing().powi(2) / 6.0;
        (-self.waves.map(|wave| wave * wave).iter().sum::<f64>() * time).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_multiplies_the_mode() {
        for periodic in [true, false] {
            let mode = Mode::new(9, periodic, WAVES);
            let value = |i: i64, j: i64, k: i64| {
                let inside = |i: i64| (0..9).contains(&i);
                if !(periodic || inside(i) && inside(j) && inside(k)) {
                    return 0.0;
                }
                let wrap = |i: i64| i.rem_euclid(9) as usize;
                mode.first((wrap(i), wrap(j), wrap(k)))
            };
            for (i, j, k) in [(0, 4, 8), (8, 0, 0), (3, 3, 5)] {
                let sum = value(i - 1, j, k) + value(i + 1, j, k) + value(i, j - 1, k) + value(i, j + 1, k);
                let mean = (sum + value(i, j, k - 1) + value(i, j, k + 1)) / 6.0;
                approx::assert_relative_eq!(mean, mode.decay(1) * value(i, j, k), max_relative = 1e-13);
            }
        }
    }

    #[test]
    fn the_sweep_approaches_the_heat_equation_with_second_order() {
        for periodic in [true, false] {
            let error = |n: usize, sweeps: usize| {
                let mode = Mode::new(if periodic { n } else { n - 1 }, periodic, [1; 3]);
                (mode.decay(sweeps) - mode.heat(sweeps)).abs()
            };
            let ratio = error(32, 64) / error(64, 256);
            assert!((ratio.log2() - 2.0).abs() < 0.05, "{ratio}");
        }
    }
}
