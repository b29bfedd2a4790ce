//! What the flows should do, in closed form.

use std::f64::consts::PI;

/// Taylor-Green: all speeds over the first ones at time `t`, exp(−8π²νt/L²).
pub(crate) fn vortex_decay(viscosity: f64, side: f64, t: f64) -> f64 {
    (-8.0 * PI * PI * viscosity * t / (side * side)).exp()
}

/// Taylor-Green: the velocity at a point at time `t`, over the highest first speed.
pub(crate) fn vortex_velocity(viscosity: f64, side: f64, position: &[f64], t: f64) -> [f64; 2] {
    let k = 2.0 * PI / side;
    let (x, y) = (k * position[0], k * position[1]);
    let decay = vortex_decay(viscosity, side, t);
    [-decay * x.cos() * y.sin(), decay * x.sin() * y.cos()]
}

/// Poiseuille: speed at height `y` between plates at 0 and `gap`, `t` after the body force set in.
///
/// # Source
/// J. P. Morris, P. J. Fox & Y. Zhu, J. Comput. Phys. 136 (1997), eq. 21.
pub(crate) fn plates_speed(force: f64, viscosity: f64, gap: f64, y: f64, t: f64) -> f64 {
    let steady = force / (2.0 * viscosity) * y * (gap - y);
    let transient: f64 = (0..200)
        .map(|n| f64::from(2 * n + 1))
        .map(|odd| {
            let decay = (-(odd * PI / gap).powi(2) * viscosity * t).exp();
            4.0 * force * gap * gap / (viscosity * (PI * odd).powi(3)) * (PI * y * odd / gap).sin() * decay
        })
        .sum();
    steady - transient
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::{PLATES_FORCE, PLATES_VISCOSITY};
    use crate::experiments::rows;

    #[test]
    fn decay_is_that_of_the_table() {
        let table = rows(include_str!("data/taylor_green.csv"), 4);
        assert_eq!(table.len(), 22);
        for row in table {
            let decay = vortex_decay(1.0 / row[0], 1.0, row[1]);
            approx::assert_relative_eq!(decay, row[2], max_relative = 1e-8);
            approx::assert_relative_eq!(decay * decay, row[3], max_relative = 1e-8);
        }
    }

    #[test]
    fn start_up_is_that_of_the_table() {
        let table = rows(include_str!("data/poiseuille_morris1997.csv"), 4);
        assert!(table.len() > 100);
        for row in table {
            let speed = plates_speed(PLATES_FORCE, PLATES_VISCOSITY, 1e-3, row[0], row[1]);
            approx::assert_abs_diff_eq!(speed, row[2], epsilon = 1e-14);
        }
    }
}
