//! The system to solve: a matrix from a file or a generated one, and its right-hand side.
//!
//! Generated entries are HPL-like, evenly distributed in [−0.5, 0.5), and a pure function of row, column, order and seed
//! (one step of SplitMix64: G. L. Steele, D. Lea, C. H. Flood, *Fast splittable pseudorandom number generators*, OOPSLA
//! 2014). So each process fills its own part without asking anyone, and the residual is computed from the matrix itself
//! after the factors have overwritten it, without a copy of it.

use ndarray::ArrayViewMut2;

use crate::axis::Axis;
use crate::market::Sparse;

/// A square matrix that can tell each of its entries again at any time.
#[derive(Debug, Clone)]
pub(crate) enum Matrix {
    /// Pseudo-random.
    Generated {
        /// Rows and columns.
        order: usize,
        /// Another seed, another matrix.
        seed: u64,
    },
    /// From a file, with the seed of the right-hand side.
    Read {
        /// The entries.
        sparse: Sparse,
        /// Seed of the right-hand side.
        seed: u64,
    },
}

impl Matrix {
    /// Rows and columns.
    pub(crate) fn order(&self) -> usize {
        match self {
            Matrix::Generated { order, .. } => *order,
            Matrix::Read { sparse, .. } => sparse.order,
        }
    }

    /// Entry `row` of the right-hand side: column n of the n × (n + 1) generated matrix.
    pub(crate) fn right_hand_side(&self, row: usize) -> f64 {
        let (Matrix::Generated { seed, .. } | Matrix::Read { seed, .. }) = *self;
        generated(row, self.order(), self.order() + 1, seed)
    }

    /// Writes the part with the own indices of `rows` and `columns`.
    pub(crate) fn fill(&self, rows: Axis, columns: Axis, mut part: ArrayViewMut2<'_, f64>) {
        part.fill(0.0);
        self.for_each(rows, columns, |entry| part[entry.local] = entry.value);
    }

    /// Calls `f` with row, column and value of each own entry that may differ from 0.
    pub(crate) fn entries(&self, rows: Axis, columns: Axis, mut f: impl FnMut(usize, usize, f64)) {
        self.for_each(rows, columns, |Entry { row, column, value, .. }| f(row, column, value));
    }

    /// Calls `f` with each own entry that may differ from 0, column by column.
    fn for_each(&self, rows: Axis, columns: Axis, mut f: impl FnMut(Entry)) {
        match self {
            Matrix::Generated { order, seed } => {
                let own_rows: Vec<usize> = (0..rows.local_extent()).map(|local| rows.global(local)).collect();
                for j in 0..columns.local_extent() {
                    let column = columns.global(j);
                    for (i, &row) in own_rows.iter().enumerate() {
                        f(Entry { local: [i, j], row, column, value: generated(row, column, *order, *seed) });
                    }
                }
            }
            Matrix::Read { sparse, .. } => {
                for &(row, column, value) in &sparse.entries {
                    if rows.mine(row) && columns.mine(column) {
                        f(Entry { local: [rows.first_local(row), columns.first_local(column)], row, column, value });
                    }
                }
            }
        }
    }
}

/// One entry of a process's part.
#[derive(Debug, Clone, Copy)]
struct Entry {
    /// Where it stands in the part.
    local: [usize; 2],
    row: usize,
    column: usize,
    value: f64,
}

/// Entry (row, column) of the generated matrix whose rows have `width` entries.
fn generated(row: usize, column: usize, width: usize, seed: u64) -> f64 {
    /// 2⁶⁴ divided by the golden ratio: the stride of SplitMix64.
    const STRIDE: u64 = 0x9E37_79B9_7F4A_7C15;
    let place = (row as u64).wrapping_mul(width as u64).wrapping_add(column as u64);
    let mut z = place.wrapping_add(STRIDE.wrapping_mul(seed)).wrapping_add(STRIDE);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^= z >> 31;
    (z >> 11) as f64 * (1.0 / (1u64 << 53) as f64) - 0.5
}

#[cfg(test)]
mod tests {
    use ndarray::{Array2, s};

    use super::*;

    fn axis(extent: usize, block: usize, processes: usize, me: usize) -> Axis {
        Axis { extent, block, processes, me }
    }

    const GOLDEN: [(usize, usize, usize, f64); 4] = [
        (0, 0, 1, 0.271_546_556_331_567),
        (1, 2, 4096, -0.247_377_616_594_871),
        (4095, 4095, 4096, -0.13052248864008886),
        (17, 479, 480, 0.36099798889104584),
    ];

    /// Values of `rnd` in an independent program in C (the one that times ScaLAPACK), seed 7.
    #[test]
    fn generated_entries_are_those_of_the_comparison() {
        for (row, column, width, value) in GOLDEN {
            assert_eq!(generated(row, column, width, 7), value);
        }
    }

    #[test]
    fn the_parts_make_up_the_whole() {
        let sparse = Sparse { order: 7, entries: vec![(0, 0, 1.0), (6, 2, -2.0), (3, 6, 4.0)] };
        for matrix in [Matrix::Generated { order: 7, seed: 1 }, Matrix::Read { sparse, seed: 1 }] {
            let all = axis(7, 2, 1, 0);
            let mut whole = Array2::zeros((7, 7));
            matrix.fill(all, all, whole.view_mut());
            let x: Vec<f64> = (1..8).map(f64::from).collect();
            let (mut product, mut magnitudes) = (vec![0.0; 7], vec![0.0; 7]);
            for (p, q) in (0..2).flat_map(|p| (0..3).map(move |q| (p, q))) {
                let (rows, columns) = (axis(7, 2, 2, p), axis(7, 2, 3, q));
                let mut part = Array2::from_elem((rows.local_extent(), columns.local_extent()), f64::NAN);
                matrix.fill(rows, columns, part.view_mut());
                for ((i, j), value) in part.indexed_iter() {
                    assert_eq!(*value, whole[[rows.global(i), columns.global(j)]]);
                }
                matrix.entries(rows, columns, |row, column, value| {
                    product[row] += value * x[column];
                    magnitudes[row] += value.abs();
                });
            }
            for i in 0..7 {
                let row = whole.slice(s![i, ..]);
                assert!((product[i] - row.iter().zip(&x).map(|(a, x)| a * x).sum::<f64>()).abs() < 1e-12);
                assert!((magnitudes[i] - row.iter().map(|a| a.abs()).sum::<f64>()).abs() < 1e-12);
            }
        }
    }
}
