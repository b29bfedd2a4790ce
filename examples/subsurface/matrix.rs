//! The Jacobian's rows of one rank, seven entries each.
//!
//! Coefficients are kept as bordered arrays like the fields ([`crate::field`]), so a neighbor is a fixed distance away.

use crate::field::Layout;

/// A row for each cell of the block.
#[derive(Debug, Clone)]
pub(crate) struct SevenPoint {
    pub(crate) diagonal: Vec<f64>,
    /// `lower[a][n]`: entry for the neighbor before cell n along axis a.
    pub(crate) lower: [Vec<f64>; 3],
    /// `upper[a][n]`: entry for the neighbor behind it.
    pub(crate) upper: [Vec<f64>; 3],
}

impl SevenPoint {
    pub(crate) fn zeros(layout: &Layout) -> SevenPoint {
        let field = || vec![0.0; layout.len()];
        let axes = || [field(), field(), field()];
        SevenPoint { diagonal: field(), lower: axes(), upper: axes() }
    }

    /// Sets all entries to zero.
    pub(crate) fn clear(&mut self) {
        self.diagonal.fill(0.0);
        self.lower.iter_mut().chain(&mut self.upper).for_each(|band| band.fill(0.0));
    }

    /// y ← A·x; the border of x holds the neighbors' cells.
    pub(crate) fn multiply(&self, layout: &Layout, x: &[f64], y: &mut [f64]) {
        // Where axis 0 has one cell, its bands are zero: they are not even read.
        if layout.extents[0] > 1 { self.product::<true>(layout, x, y) } else { self.product::<false>(layout, x, y) }
    }

    fn product<const DEEP: bool>(&self, layout: &Layout, x: &[f64], y: &mut [f64]) {
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
                *y = diagonal[k] * here[k] + (l2[k] * before[k] + u2[k] * behind[k]) + (l1[k] * north[k] + u1[k] * south[k]);
                if DEEP {
                    *y += l0[k] * below[k] + u0[k] * above[k];
                }
            }
        }
    }

    /// The entries for the neighbors along `axis`: those behind if `upper`, else those before.
    pub(crate) fn band(&self, axis: usize, upper: bool) -> &[f64] {
        if upper { &self.upper[axis] } else { &self.lower[axis] }
    }
}

#[cfg(test)]
impl SevenPoint {
    /// The matrix with these entries between neighbors, and on the diagonal what makes each row's sum of magnitudes off it
    /// smaller by `excess`. As from the system, cells in the border have their entries for cells of the block.
    pub(crate) fn of(layout: &Layout, excess: f64, entry: impl Fn([usize; 3], [usize; 3]) -> f64) -> SevenPoint {
        let mut a = SevenPoint::zeros(layout);
        for (cell, n) in layout.cells() {
            a.diagonal[n] = excess;
            for axis in 0..3 {
                let mut neighbor = cell;
                if cell[axis] > 0 {
                    neighbor[axis] = cell[axis] - 1;
                    a.lower[axis][n] = entry(cell, neighbor);
                    a.upper[axis][layout.step(n, axis, false)] = entry(neighbor, cell);
                    a.diagonal[n] += a.lower[axis][n].abs();
                }
                if cell[axis] + 1 < layout.extents[axis] {
                    neighbor[axis] = cell[axis] + 1;
                    a.upper[axis][n] = entry(cell, neighbor);
                    a.lower[axis][layout.step(n, axis, true)] = entry(neighbor, cell);
                    a.diagonal[n] += a.upper[axis][n].abs();
                }
            }
        }
        a
    }
}
