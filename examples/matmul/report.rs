//! What a run tells: rates of both products, how far they are from the truth, and whether that is rounding.

use std::fmt;

use serde_json::json;

use crate::cube::{Cube, Sizes};

/// The outcome of a run.
#[derive(Debug, Clone)]
pub(crate) struct Report {
    pub(crate) sizes: Sizes,
    pub(crate) cube: Cube,
    /// Name of the conduit.
    pub(crate) network: String,
    /// Of the fastest product on the cube.
    pub(crate) seconds: f64,
    /// None where nothing was computed.
    pub(crate) library: Option<Compared>,
}

/// The product by the library, and what it shows of both.
#[derive(Debug, Clone)]
pub(crate) struct Compared {
    /// Of the fastest.
    pub(crate) seconds: f64,
    /// Largest error of an element, on the cube and by the library.
    pub(crate) errors: [f64; 2],
    /// Largest difference between the two products.
    pub(crate) difference: f64,
}

impl Report {
    /// What rounding can do: k terms of magnitude 1 at most in any order, whose partial sums grow like √k or so, and some terms of
    /// the diagonals.
    pub(crate) fn allowed(&self) -> f64 {
        16.0 * f64::EPSILON * (self.sizes.k as f64 + 16.0)
    }

    /// The largest of all errors and differences, if there are any; not a number if one is not.
    pub(crate) fn max_error(&self) -> f64 {
        let all = self.library.iter().flat_map(|compared| [compared.errors[0], compared.errors[1], compared.difference]);
        all.fold(0.0, |largest: f64, error| if error > largest || error.is_nan() { error } else { largest })
    }

    pub(crate) fn passed(&self) -> bool {
        self.max_error() <= self.allowed()
    }

    /// Billions of operations in a second; a product has 2·m·n·k.
    fn gflops(&self, seconds: f64) -> f64 {
        let Sizes { m, n, k } = self.sizes;
        2.0 * m as f64 * n as f64 * k as f64 / seconds / 1e9
    }

    /// Elements that a rank fetches or adds elsewhere.
    fn elements_moved(&self) -> f64 {
        self.cube.moved(self.sizes, 1) as f64 / self.cube.size() as f64
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        let Cube { p, q, r } = self.cube;
        json!({
            "m": self.sizes.m,
            "n": self.sizes.n,
            "k": self.sizes.k,
            "ranks": self.cube.size(),
            "cube": [p, q, r],
            "network": self.network,
            "seconds": self.seconds,
            "gflops": self.gflops(self.seconds),
            "library_gflops": self.library.as_ref().map(|library| self.gflops(library.seconds)),
            "elements_moved_per_rank": self.elements_moved(),
            "max_error": self.library.as_ref().map(|_| self.max_error()),
            "difference": self.library.as_ref().map(|library| library.difference),
            "passed": self.library.as_ref().map(|_| self.passed()),
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Cube { p, q, r } = self.cube;
        let Sizes { m, n, k } = self.sizes;
        let ranks = self.cube.size();
        writeln!(f, "{m} x {k} times {k} x {n}, {ranks} ranks as {p} x {q} x {r}, network {}", self.network)?;
        let line = |seconds: f64| format!("{seconds:9.4} s {:9.1} GFLOP/s", self.gflops(seconds));
        let Some(Compared { seconds, errors, difference }) = self.library else {
            writeln!(f, "on the cube     {}", line(self.seconds))?;
            return write!(f, "each rank moved {:.3e} elements; nothing was computed", self.elements_moved());
        };
        writeln!(f, "on the cube     {}   largest error {:.2e}", line(self.seconds), errors[0])?;
        writeln!(f, "by the library  {}   largest error {:.2e}", line(seconds), errors[1])?;
        writeln!(f, "each rank moved {:.3e} elements; the products differ by {difference:.2e}", self.elements_moved())?;
        write!(f, "{} (rounding explains {:.2e})", if self.passed() { "PASSED" } else { "FAILED" }, self.allowed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(errors: [f64; 2], difference: f64) -> Report {
        let cube = Cube { p: 2, q: 2, r: 2 };
        let library = Some(Compared { seconds: 1.0, errors, difference });
        Report { sizes: Sizes { m: 1000, n: 1000, k: 1000 }, cube, network: "threads".into(), seconds: 0.5, library }
    }

    #[test]
    fn rates_and_amounts() {
        let json = report([1e-13, 2e-13], 0.0).json();
        assert_eq!((json["gflops"].as_f64(), json["library_gflops"].as_f64()), (Some(4.0), Some(2.0)));
        assert_eq!(json["elements_moved_per_rank"].as_f64(), Some(3e6 / 8.0));
        assert_eq!(json["max_error"].as_f64(), Some(2e-13));
    }

    #[test]
    fn what_is_wrong_or_no_number_fails() {
        assert!(report([1e-13, 1e-13], 1e-13).passed());
        assert!(!report([1e-9, 0.0], 0.0).passed() && !report([0.0, 1e-9], 0.0).passed() && !report([0.0, 0.0], 1e-9).passed());
        assert!(!report([f64::NAN, 0.0], 0.0).passed() && !report([1e-13, f64::NAN], 0.0).passed());
        assert!(!report([0.0, 0.0], f64::NAN).passed());
    }
}
