//! The outcome of a run: times of its phases, rates, the residual.

use std::fmt;
use std::time::Duration;

use global_arrays::{
    linalg::{Blocking, Phases, Refined},
    prelude::*,
};
use serde_json::json;

/// A residual above this has failed (HPL's threshold); a healthy run gives 10⁻³.
pub(crate) const THRESHOLD: f64 = 16.0;

/// Half the distance from 1 to the next number: ε of the scaled residual, as in HPL and LAPACK.
const EPSILON: f64 = f64::EPSILON / 2.0;

/// For each phase the longest time that any rank spent in it. Collective.
pub(crate) fn slowest(job: &Job, phases: Phases) -> Result<Phases, Error> {
    let Phases { whole, panel, swap, triangle, update } = phases;
    let mut seconds = [whole, panel, swap, triangle, update].map(|phase| phase.as_secs_f64());
    job.all_reduce(&mut seconds, ops::max)?;
    let [whole, panel, swap, triangle, update] = seconds.map(Duration::from_secs_f64);
    Ok(Phases { whole, panel, swap, triangle, update })
}

/// The largest magnitude of some numbers; unlike `f64::max`, it keeps what is not a number.
pub(crate) fn largest(values: impl IntoIterator<Item = f64>) -> f64 {
    values.into_iter().map(f64::abs).fold(0.0, |m: f64, v| if m.is_nan() || v <= m { m } else { v })
}

/// ‖A‖∞‖x‖∞ + ‖b‖∞ at least, about 2·10⁻³⁰⁵. A product below the normal numbers is off by 2⁻¹⁰⁷⁵ at most, and A·x has n of them in a row; sums of
/// such numbers are exact. So they add at most 2⁻¹⁰⁷⁵ / (ε · this sum), 2⁻¹⁰, to the scaled residual. Far below, rounding may hide any error of x.
const LEAST: f64 = 1024.0 * f64::MIN_POSITIVE;

/// HPL's scaled residual ‖Ax−b‖∞ / (ε (‖A‖∞‖x‖∞ + ‖b‖∞) n), from A·x, the sum of magnitudes of each row of A, x and b.
///
/// # Errors
/// A norm, or what they are combined to, is not finite: a quotient of such numbers says nothing, and 1/∞ would look like a success. The sum in
/// the denominator is too small for rounding to be seen, unless x and b are 0.
pub(crate) fn residual(product: &[f64], magnitudes: &[f64], x: &[f64], b: &[f64]) -> Result<f64, String> {
    let difference = largest(product.iter().zip(b).map(|(p, b)| p - b));
    let [a, x, b] = [magnitudes, x, b].map(|values| largest(values.iter().copied()));
    let scale = a * x + b;
    // In this order nothing falls below the normal numbers.
    let residual = if difference == 0.0 { 0.0 } else { difference / scale / (EPSILON * product.len() as f64) };
    let parts =
        [("‖A‖∞", a), ("‖x‖∞", x), ("‖b‖∞", b), ("‖Ax−b‖∞", difference), ("‖A‖∞‖x‖∞ + ‖b‖∞", scale), ("the residual", residual)];
    match parts.into_iter().find(|(_, value)| !value.is_finite()) {
        Some((name, value)) => Err(format!("the solution cannot be checked: {name} is {value}; scale the matrix")),
        None if scale < LEAST && (x, b) != (0.0, 0.0) => Err(format!(
            "the solution cannot be checked: ‖A‖∞‖x‖∞ + ‖b‖∞ is {scale:.1e}, and below {LEAST:.1e} rounding hides errors; scale the matrix and \
             the right-hand side"
        )),
        None => Ok(residual),
    }
}

/// The outcome of a run.
#[derive(Debug, Clone)]
pub(crate) struct Report {
    /// Order of the matrix.
    pub(crate) n: usize,
    /// File or kind of the matrix.
    pub(crate) matrix: String,
    /// Number of ranks.
    pub(crate) ranks: usize,
    /// How the matrix was cut.
    pub(crate) blocking: Blocking,
    /// Name of the conduit.
    pub(crate) network: String,
    /// Wall time of the two triangular solves.
    pub(crate) solve: Duration,
    /// Where the time of the slowest rank went.
    pub(crate) phases: Phases,
    /// HPL's scaled residual, not a number if it cannot be computed; none if nothing was.
    pub(crate) residual: Option<f64>,
    /// What refinement has done, if it was asked for.
    pub(crate) refined: Option<Refined>,
    /// An estimate of the condition number in the 1-norm, if it was asked for.
    pub(crate) condition: Option<f64>,
}

impl Report {
    /// True if the residual is small enough, or nothing was computed; a residual that is not a number is not.
    pub(crate) fn passed(&self) -> bool {
        self.residual.is_none_or(|residual| residual <= THRESHOLD)
    }

    /// GFLOP/s of factorization and solves, counted as HPL does: (2/3 n³ + 3/2 n²) operations.
    pub(crate) fn gflops(&self) -> f64 {
        let n = self.n as f64;
        (2.0 / 3.0 * n * n * n + 1.5 * n * n) / (self.phases.whole + self.solve).as_secs_f64() / 1e9
    }

    /// GFLOP/s of the factorization alone: 2/3 n³ operations, as one counts LAPACK's `dgetrf`.
    pub(crate) fn factor_gflops(&self) -> f64 {
        2.0 / 3.0 * (self.n as f64).powi(3) / self.phases.whole.as_secs_f64() / 1e9
    }

    /// One line for programs.
    pub(crate) fn json(&self) -> serde_json::Value {
        let seconds = |d: Duration| d.as_secs_f64();
        json!({
            "n": self.n,
            "matrix": self.matrix,
            "ranks": self.ranks,
            "grid": self.blocking.grid,
            "block": self.blocking.edge,
            "network": self.network,
            "seconds": seconds(self.phases.whole + self.solve),
            "factor_seconds": seconds(self.phases.whole),
            "solve_seconds": seconds(self.solve),
            "panel_seconds": seconds(self.phases.panel),
            "swap_seconds": seconds(self.phases.swap),
            "triangle_seconds": seconds(self.phases.triangle),
            "update_seconds": seconds(self.phases.update),
            "gflops": self.gflops(),
            "factor_gflops": self.factor_gflops(),
            "residual": self.residual,
            "refinement_steps": self.refined.map(|refined| refined.steps),
            "backward_error": self.refined.map(|refined| refined.after),
            "condition": self.condition,
            "reciprocal_condition": self.condition.map(|condition| 1.0 / condition),
            "passed": self.residual.map(|_| self.passed()),
        })
    }
}

/// Lines for people.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { n, matrix, ranks, blocking: Blocking { edge, grid: [p, q] }, network, .. } = self;
        let Phases { whole, panel, swap, triangle, update } = self.phases;
        let ms = |d: Duration| d.as_secs_f64() * 1e3;
        writeln!(f, "matrix     {matrix}, n = {n}")?;
        writeln!(f, "ranks      {ranks} as {p} x {q}, blocks of {edge}, network {network}")?;
        writeln!(f, "factor     {:10.2} ms  {:.1} GFLOP/s", ms(whole), self.factor_gflops())?;
        for (name, time) in [("panels", panel), ("row moves", swap), ("rows of U", triangle), ("update", update)] {
            writeln!(f, "  {name:9}{:10.2} ms", ms(time))?;
        }
        writeln!(f, "solve      {:10.2} ms", ms(self.solve))?;
        writeln!(f, "together   {:10.2} ms  {:.1} GFLOP/s", ms(self.phases.whole + self.solve), self.gflops())?;
        if let Some(Refined { steps, before, after }) = self.refined {
            let steps = if steps == 1 { "1 step".to_owned() } else { format!("{steps} steps") };
            writeln!(f, "refined    in {steps}; the backward error is {after:.2e}, and was {before:.2e}")?;
        }
        if let Some(condition) = self.condition {
            writeln!(f, "condition  {condition:.3e} in the 1-norm (estimate)")?;
        }
        let Some(residual) = self.residual else { return write!(f, "residual   not computed, and neither was anything else") };
        let verdict = if self.passed() { "passed" } else { "FAILED" };
        write!(f, "residual   {residual:.3e}  {verdict} (threshold {THRESHOLD})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn residual_by_hand() {
        // A = [[2]], x = 3, b = 5: |6 - 5| / (ε (2·3 + 5) 1).
        assert_eq!(residual(&[6.0], &[2.0], &[3.0], &[5.0]), Ok(1.0 / (EPSILON * 11.0)));
        assert_eq!(residual(&[0.0], &[0.0], &[0.0], &[0.0]), Ok(0.0));
        assert_eq!(residual(&[0.0], &[1e-310], &[0.0], &[0.0]), Ok(0.0));
    }

    #[test]
    fn what_is_too_small_fails_and_the_limit_is_named() {
        // A difference of 0 says nothing of x: 1e-320·1.0001 is rounded to 1e-320, and 1e-200·1e-200 to 0.
        for (product, a, x, b) in [(1e-310, 1e-310, 1.0, 1e-310), (1e-320, 1e-320, 1.0001, 1e-320), (0.0, 1e-200, 1e-200, 0.0)] {
            let why = residual(&[product], &[a], &[x], &[b]).expect_err("nothing that could be compared");
            assert!(why.contains("below 2.3e-305"), "{why}");
        }
        assert_eq!(residual(&[1e-300], &[1e-300], &[1.0], &[1e-300]), Ok(0.0));
        // Just above the limit, an error of 2⁻⁴³ is seen, and its size is right.
        let small = residual(&[1.5e-305 * (1.0 + 1e-13)], &[1.5e-305], &[1.0], &[1.5e-305]).unwrap();
        assert!((small / (0.5e-13 / EPSILON) - 1.0).abs() < 1e-2, "{small}");
        // A matrix of such numbers can be checked where x is large; an error of 2⁻⁴⁴ is seen.
        assert!(residual(&[1e-10 * (1.0 + 6e-14)], &[1e-310], &[1e300], &[1e-10]).unwrap() > THRESHOLD);
    }

    #[test]
    fn what_is_not_finite_fails_and_is_named() {
        const HUGE: f64 = f64::INFINITY;
        fn failed(product: &[f64], magnitudes: &[f64], x: &[f64], b: &[f64], name: &str) {
            let why = residual(product, magnitudes, x, b).expect_err("nothing that could be compared");
            assert!(why.contains(name), "{why}");
        }
        let ones = [1.0, 1.0];
        for x in [[f64::NAN, 1.0], [1.0, f64::NAN], [HUGE, 1.0]] {
            failed(&x, &ones, &x, &ones, "‖x‖∞");
            failed(&x, &ones, &ones, &ones, "‖Ax−b‖∞");
            failed(&ones, &x, &ones, &ones, "‖A‖∞ is");
            failed(&ones, &ones, &ones, &x, "‖b‖∞");
        }
        // The rows of [[1e308, 1e308], [-1e308, 1e308]] add up to infinity: 1 / ∞ is no residual of 0.
        failed(&[0.5, 0.5], &[HUGE, HUGE], &ones, &ones, "‖A‖∞ is inf");
        failed(&ones, &[1e300, 1.0], &[1e10, 1.0], &ones, "‖A‖∞‖x‖∞ + ‖b‖∞ is inf");
        failed(&[1e308, 0.0], &[1e-310, 0.0], &[1e-10, 0.0], &[0.0, 0.0], "the residual is inf");
    }
}
