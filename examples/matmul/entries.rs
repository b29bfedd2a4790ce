//! Two dense matrices whose product is known without multiplying them.
//!
//! A = u vᵀ + 2·I and B = s tᵀ + 3·I with random vectors have the product
//!
//! ```text
//!   A·B = (v·s) u tᵀ + 3 u vᵀ + 2 s tᵀ + 6·I
//! ```
//!
//! of which each element takes a few operations once v·s is known. All rows and all columns differ, so that a block in the wrong place,
//! added twice or forgotten changes the product by far more than rounding does.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

const A_DIAGONAL: f64 = 2.0;
const B_DIAGONAL: f64 = 3.0;

#[derive(Debug, Clone)]
pub(crate) struct Entries {
    u: Vec<f64>,
    v: Vec<f64>,
    s: Vec<f64>,
    t: Vec<f64>,
    /// v·s.
    inner: f64,
}

impl Entries {
    /// Of order `n`; the same on every rank, with elements of u, v, s and t from −1 to 1.
    pub(crate) fn new(n: usize, seed: u64) -> Self {
        let mut random = Pcg64::seed_from_u64(seed);
        let mut vector = || (0..n).map(|_| random.random_range(-1.0..1.0)).collect::<Vec<f64>>();
        let (u, v, s, t) = (vector(), vector(), vector(), vector());
        let inner = v.iter().zip(&s).map(|(v, s)| v * s).sum();
        Entries { u, v, s, t, inner }
    }

    pub(crate) fn a(&self, i: usize, j: usize) -> f64 {
        self.u[i] * self.v[j] + if i == j { A_DIAGONAL } else { 0.0 }
    }

    pub(crate) fn b(&self, i: usize, j: usize) -> f64 {
        self.s[i] * self.t[j] + if i == j { B_DIAGONAL } else { 0.0 }
    }

    /// Of A·B.
    pub(crate) fn product(&self, i: usize, j: usize) -> f64 {
        let dense = self.inner * self.u[i] * self.t[j] + B_DIAGONAL * self.u[i] * self.v[j] + A_DIAGONAL * self.s[i] * self.t[j];
        dense + if i == j { A_DIAGONAL * B_DIAGONAL } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closed_form_is_the_product() {
        for n in [1, 2, 17] {
            let entries = Entries::new(n, 3);
            for i in 0..n {
                for j in 0..n {
                    let sum: f64 = (0..n).map(|k| entries.a(i, k) * entries.b(k, j)).sum();
                    approx::assert_abs_diff_eq!(sum, entries.product(i, j), epsilon = 1e-13);
                }
            }
        }
    }
}
