//! Two dense matrices whose product is known without multiplying them.
//!
//! A = u vᵀ + 2·I and B = s tᵀ + 3·I with random vectors have the product
//!
//! ```text
//!   A·B = (v·s) u tᵀ + 3 u vᵀ + 2 s tᵀ + 6·I
//! ```
//!
//! where I has ones on its diagonal, whatever its shape, and v and s count as 0 beyond their length k. Each
//! element takes a few operations once v·s is known. All rows and all columns differ, so that a block in the wrong place, added twice or forgotten
//! changes the product by far more than rounding does.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use crate::cube::Sizes;

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
    /// The same on every rank, with elements of u, v, s and t from −1 to 1.
    pub(crate) fn new(Sizes { m, n, k }: Sizes, seed: u64) -> Self {
        let mut random = Pcg64::seed_from_u64(seed);
        let mut vector = |len: usize| (0..len).map(|_| random.random_range(-1.0..1.0)).collect::<Vec<f64>>();
        let (u, v, s, t) = (vector(m), vector(k), vector(k), vector(n));
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
        let at = |vector: &[f64], k: usize| vector.get(k).copied().unwrap_or(0.0);
        let (v, s) = (at(&self.v, j), at(&self.s, i));
        let dense = self.inner * self.u[i] * self.t[j] + B_DIAGONAL * self.u[i] * v + A_DIAGONAL * s * self.t[j];
        dense + if i == j && i < self.v.len() { A_DIAGONAL * B_DIAGONAL } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closed_form_is_the_product() {
        for (m, n, k) in [(1, 1, 1), (2, 2, 2), (17, 17, 17), (3, 9, 5), (9, 3, 5), (4, 6, 9), (7, 8, 2)] {
            let entries = Entries::new(Sizes { m, n, k }, 3);
            for i in 0..m {
                for j in 0..n {
                    let sum: f64 = (0..k).map(|k| entries.a(i, k) * entries.b(k, j)).sum();
                    approx::assert_abs_diff_eq!(sum, entries.product(i, j), epsilon = 1e-13);
                }
            }
        }
    }
}
