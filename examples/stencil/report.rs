//! What a run tells: the rate, the errors, and whether it passed.

use std::fmt;
use std::path::Path;

use program::plot::{self, Series};
use serde_json::{Value, json};

use crate::Run;
use crate::cli::Way;
use crate::mode::Mode;

/// The outcome of a run.
#[derive(Debug, Clone)]
pub(crate) struct Report {
    pub(crate) mode: Mode,
    pub(crate) sweeps: usize,
    /// Sweeps from one exchange to the next.
    pub(crate) depth: usize,
    pub(crate) way: Way,
    pub(crate) ranks: usize,
    pub(crate) network: String,
    pub(crate) run: Run,
    pub(crate) order: Option<Order>,
}

/// Distances from the heat equation on finer and finer grids.
#[derive(Debug, Clone, Default)]
pub(crate) struct Order {
    /// Spacing and largest error.
    errors: Vec<(f64, f64)>,
}

impl Report {
    /// Rounding at most: the values are 1 at most, so six additions and a product err by at most 3.5 ε, the mean of wrong values is
    /// no more wrong than they, and the waves themselves are rounded.
    fn tolerance(&self) -> f64 {
        f64::EPSILON * (3.5 * self.sweeps as f64 + 8.0)
    }

    fn megacells(&self) -> f64 {
        let cells = (self.mode.cells() as f64).powi(3) * self.sweeps as f64;
        cells / self.run.elapsed.as_secs_f64() * 1e-6
    }

    /// Why the run has failed, if it has. Where nothing was computed nothing can fail.
    pub(crate) fn failure(&self) -> Option<String> {
        let (error, most) = (self.run.errors?.iteration, self.tolerance());
        // What is not a number has failed too.
        if !matches!(error.partial_cmp(&most), Some(std::cmp::Ordering::Less)) {
            return Some(format!("the largest error {error:.3e} is above {most:.3e}"));
        }
        let order = self.order.as_ref()?.last();
        ((order - 2.0).abs() > 0.05).then(|| format!("the order of convergence is {order:.3}, not 2"))
    }

    pub(crate) fn json(&self) -> Value {
        let mut value = json!({
            "n": self.mode.cells(),
            "sweeps": self.sweeps,
            "periodic": self.mode.is_periodic(),
            "depth": self.depth,
            "way": self.way.name(),
            "ranks": self.ranks,
            "network": self.network,
            "seconds": self.run.elapsed.as_secs_f64(),
            "mcells_per_second": self.megacells(),
            "max_error": self.run.errors.map(|errors| errors.iteration),
            "passed": self.run.errors.map(|_| self.failure().is_none()),
        });
        if let Some(order) = &self.order {
            value["order"] = json!(order.last());
        }
        value
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (n, edges) = (self.mode.cells(), if self.mode.is_periodic() { "periodic" } else { "zero at the edges" });
        writeln!(f, "{n} x {n} x {n} cells, {edges}, {} sweeps", self.sweeps)?;
        writeln!(f, "ghost cells by {}, for {} sweeps each time", self.way.name(), self.depth)?;
        writeln!(f, "{} ranks over {}: {:.1} million cells a second", self.ranks, self.network, self.megacells())?;
        let Some(errors) = self.run.errors else { return write!(f, "no error: nothing was computed") };
        write!(f, "largest error {:.3e} (at most {:.3e})", errors.iteration, self.tolerance())?;
        if let Some(order) = &self.order {
            for (h, error) in &order.errors {
                write!(f, "\nspacing {h:.5}: {error:.3e} from the heat equation")?;
            }
            write!(f, "\norder of convergence {:.3}", order.last())?;
        }
        match self.failure() {
            None => write!(f, "\npassed"),
            Some(_) => write!(f, "\nFAILED"),
        }
    }
}

impl Order {
    pub(crate) fn push(&mut self, spacing: f64, error: f64) {
        self.errors.push((spacing, error));
    }

    /// The exponent of the spacing in the error, from the two finest grids.
    pub(crate) fn last(&self) -> f64 {
        match self.errors[..] {
            [.., (coarse, larger), (fine, smaller)] => (larger / smaller).ln() / (coarse / fine).ln(),
            _ => f64::NAN,
        }
    }

    /// Errors over spacings, by their logarithms, beside a line of slope 2.
    ///
    /// # Errors
    /// As [`plot::draw`].
    pub(crate) fn draw(&self, file: &Path) -> Result<(), String> {
        let points: Vec<(f64, f64)> = self.errors.iter().map(|(h, error)| (h.log10(), error.log10())).collect();
        let Some(&(h, error)) = points.last() else { return Ok(()) };
        let line = points.iter().map(|point| (point.0, error + 2.0 * (point.0 - h))).collect();
        let series =
            [Series { name: "second order", points: line, dots: false }, Series { name: "largest error", points, dots: true }];
        plot::draw(file, "Jacobi sweeps and the heat equation", ("log10 of the spacing", "log10 of the error"), &series)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Errors;
    use crate::mode::WAVES;
    use std::time::Duration;

    #[test]
    fn what_is_not_a_number_fails() {
        let report = |max_error: f64| Report {
            mode: Mode::new(4, true, WAVES),
            sweeps: 3,
            depth: 1,
            way: Way::Epochs,
            ranks: 1,
            network: "threads".into(),
            run: Run { elapsed: Duration::from_secs(1), errors: Some(Errors { iteration: max_error, heat: 0.0 }) },
            order: None,
        };
        assert_eq!(report(0.0).failure(), None);
        assert!(report(f64::NAN).failure().is_some() && report(1e-10).failure().is_some());
        let order = |errors: &[(f64, f64)]| Some(Order { errors: errors.to_vec() });
        let converged = Report { order: order(&[(0.2, 4e-3), (0.1, 1e-3)]), ..report(0.0) };
        assert_eq!(converged.failure(), None);
        assert!(Report { order: order(&[(0.2, 4e-3), (0.1, 2e-3)]), ..converged }.failure().is_some());
    }
}
