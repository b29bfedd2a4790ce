//! The Jacobian's rows of one rank, seven entries each, and an incomplete factorisation of its diagonal block.
//!
//! Coefficients are kept as bordered arrays like the fields ([`crate::field`]), so a neighbour is a fixed distance away.
//!
//! **Preconditioner.** Block Jacobi over the ranks; inside each block ILU(0). On a grid with seven-point couplings the product of
//! the strict triangles falls on the diagonal or outside the pattern, so that only the pivots differ from the matrix:
//!
//! ```text
//! M = (P + L)·P⁻¹·(P + U),      p_n = a_nn − Σ over lower neighbours j: a_nj·a_jn / p_j
//! ```
//!
//! (Meijerink & van der Vorst 1977, "DILU" where L and U are the matrix's own.) In one dimension and on one rank it is the exact
//! factorisation.

use crate::field::Layout;

/// A row for each cell of the block.
#[derive(Debug, Clone)]
pub(crate) struct SevenPoint {
    pub(crate) diagonal: Vec<f64>,
    /// `lower[a][n]`: entry for the neighbour before cell n along axis a.
    pub(crate) lower: [Vec<f64>; 3],
    /// `upper[a][n]`: entry for the neighbour behind it.
    pub(crate) upper: [Vec<f64>; 3],
    /// Reciprocals of the pivots; zero in the border, which cuts the neighbours' blocks off.
    pivots: Vec<f64>,
}

impl SevenPoint {
    pub(crate) fn zeros(layout: &Layout) -> SevenPoint {
        let field = || vec![0.0; layout.len()];
        let axes = || [field(), field(), field()];
        SevenPoint { diagonal: field(), lower: axes(), upper: axes(), pivots: field() }
    }

    /// Sets all entries to zero.
    pub(crate) fn clear(&mut self) {
        self.diagonal.fill(0.0);
        self.lower.iter_mut().chain(&mut self.upper).for_each(|band| band.fill(0.0));
    }

    /// y ← A·x; the border of x holds the neighbours' cells.
    pub(crate) fn multiply(&self, layout: &Layout, x: &[f64], y: &mut [f64]) {
        let [far, middle, near] = layout.strides;
        for row in layout.rows() {
            let at = |by: isize| &x[row.start.wrapping_add_signed(by)..row.end.wrapping_add_signed(by)];
            let (here, before, behind) = (at(0), at(-(near as isize)), at(near as isize));
            let (north, south) = (at(-(middle as isize)), at(middle as isize));
            let (below, above) = (at(-(far as isize)), at(far as isize));
            let (diagonal, [l0, l1, l2], [u0, u1, u2]) = (
                &self.diagonal[row.clone()],
                self.lower.each_ref().map(|band| &band[row.clone()]),
                self.upper.each_ref().map(|band| &band[row.clone()]),
            );
            for (k, y) in y[row.clone()].iter_mut().enumerate() {
                *y = diagonal[k] * here[k]
                    + (l2[k] * before[k] + u2[k] * behind[k])
                    + (l1[k] * north[k] + u1[k] * south[k])
                    + (l0[k] * below[k] + u0[k] * above[k]);
            }
        }
    }

    /// Computes the pivots of the block.
    pub(crate) fn factor(&mut self, layout: &Layout) {
        for row in layout.rows() {
            for n in row {
                let mut pivot = self.diagonal[n];
                for axis in 0..3 {
                    let before = n - layout.strides[axis];
                    pivot -= self.lower[axis][n] * self.pivots[before] * self.upper[axis][before];
                }
                self.pivots[n] = pivot.recip();
            }
        }
    }

    /// z ← M⁻¹·r. Afterwards the border of z is zero.
    pub(crate) fn precondition(&self, layout: &Layout, r: &[f64], z: &mut [f64]) {
        let [far, middle, near] = layout.strides;
        z.fill(0.0);
        let ([l0, l1, l2], [u0, u1, u2]) = (&self.lower, &self.upper);
        for row in layout.rows() {
            for n in row {
                let lower = l0[n] * z[n - far] + l1[n] * z[n - middle] + l2[n] * z[n - near];
                z[n] = (r[n] - lower) * self.pivots[n];
            }
        }
        for row in layout.rows().rev() {
            for n in row.rev() {
                z[n] -= (u0[n] * z[n + far] + u1[n] * z[n + middle] + u2[n] * z[n + near]) * self.pivots[n];
            }
        }
    }
}
