//! Wendland's C² kernel W(r) = α (1 − q/2)⁴ (2q + 1), q = r/h, zero beyond 2h.
//!
//! With w = max(0, 1 − q/2) its gradient is ∇W = −5α/h² w³ **r**: no division by the distance, nothing to decide at the edge, and
//! zero for a particle with itself. The passes sum over (½w)³ and multiply by 8 · 5α/h² once. (In
//! [`crate::pair`], q is r/2h.)
//!
//! # Source
//! H. Wendland, Adv. Comput. Math. 4 (1995); W. Dehnen & H. Aly, MNRAS 425 (2012), for its use in SPH: it does not let particles
//! pair.

/// α in `D` dimensions.
pub(crate) fn normalisation<const D: usize>(h: f64) -> f64 {
    use std::f64::consts::PI;
    match D {
        2 => 7.0 / (4.0 * PI * h * h),
        _ => 21.0 / (16.0 * PI * h * h * h),
    }
}

/// 5α/h²: the gradient is ∇W = −this · w³ **r**.
pub(crate) fn gradient_factor<const D: usize>(h: f64) -> f64 {
    5.0 * normalisation::<D>(h) / (h * h)
}

/// The integral of the cone w = max(0, 1 − r/2h) over space.
pub(crate) fn cone<const D: usize>(h: f64) -> f64 {
    use std::f64::consts::PI;
    match D {
        2 => 4.0 * PI * h * h / 3.0,
        _ => 8.0 * PI * h * h * h / 3.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// W from w.
    fn value<const D: usize>(r: f64, h: f64) -> f64 {
        let w = (1.0 - r / (2.0 * h)).max(0.0);
        normalisation::<D>(h) * w.powi(4) * (5.0 - 4.0 * w)
    }

    #[test]
    fn integrates_to_one() {
        let (h, n) = (0.7, 100_000);
        let dr = 2.0 * h / f64::from(n);
        let (mut plane, mut space) = (0.0, 0.0);
        let (mut cone_plane, mut cone_space) = (0.0, 0.0);
        for k in 0..n {
            let r = (f64::from(k) + 0.5) * dr;
            plane += value::<2>(r, h) * 2.0 * std::f64::consts::PI * r * dr;
            space += value::<3>(r, h) * 4.0 * std::f64::consts::PI * r * r * dr;
            let w = 1.0 - r / (2.0 * h);
            cone_plane += w * 2.0 * std::f64::consts::PI * r * dr;
            cone_space += w * 4.0 * std::f64::consts::PI * r * r * dr;
        }
        approx::assert_relative_eq!(plane, 1.0, max_relative = 1e-8);
        approx::assert_relative_eq!(space, 1.0, max_relative = 1e-8);
        approx::assert_relative_eq!(cone_plane, cone::<2>(h), max_relative = 1e-8);
        approx::assert_relative_eq!(cone_space, cone::<3>(h), max_relative = 1e-8);
    }

    #[test]
    fn the_gradient_is_that_of_the_kernel() {
        let (h, r, step) = (0.7, 0.9, 1e-6);
        let slope = (value::<2>(r + step, h) - value::<2>(r - step, h)) / (2.0 * step);
        let w: f64 = 1.0 - r / (2.0 * h);
        approx::assert_relative_eq!(slope, -gradient_factor::<2>(h) * w.powi(3) * r, max_relative = 1e-8);
    }
}
