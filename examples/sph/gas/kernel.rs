//! The cubic spline M₄ in one dimension, W(r) = 2/(3h) w(q) with q = r/h, zero beyond 2h.
//!
//! # Source
//! J. J. Monaghan & J. C. Lattanzio, Astron. Astrophys. 149 (1985).

/// w and dw/dq.
fn spline(q: f64) -> (f64, f64) {
    if q < 1.0 {
        (1.0 - 1.5 * q * q + 0.75 * q * q * q, -3.0 * q + 2.25 * q * q)
    } else if q < 2.0 {
        let rest = 2.0 - q;
        (0.25 * rest * rest * rest, -0.75 * rest * rest)
    } else {
        (0.0, 0.0)
    }
}

/// W at a distance, and −h ∂W/∂h = W + r dW/dr.
pub(crate) fn value(r: f64, h: f64) -> (f64, f64) {
    let (w, slope) = spline(r / h);
    (2.0 / (3.0 * h) * w, 2.0 / (3.0 * h) * (w + r / h * slope))
}

/// dW/dr at a distance.
pub(crate) fn slope(r: f64, h: f64) -> f64 {
    2.0 / (3.0 * h * h) * spline(r / h).1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integrates_to_one() {
        let (h, n) = (0.7, 10_000);
        let dr = 2.0 * h / f64::from(n);
        let sum: f64 = (0..n).map(|k| 2.0 * dr * value((f64::from(k) + 0.5) * dr, h).0).sum();
        approx::assert_relative_eq!(sum, 1.0, max_relative = 1e-7);
    }

    #[test]
    fn derivatives_are_those_of_the_kernel() {
        let (h, step) = (0.7, 1e-6);
        for r in [0.1, 0.6, 0.8, 1.3, 1.5] {
            let by_r = (value(r + step, h).0 - value(r - step, h).0) / (2.0 * step);
            approx::assert_abs_diff_eq!(slope(r, h), by_r, epsilon = 1e-8);
            let by_h = (value(r, h + step).0 - value(r, h - step).0) / (2.0 * step);
            approx::assert_abs_diff_eq!(value(r, h).1, -h * by_h, epsilon = 1e-8);
        }
    }
}
