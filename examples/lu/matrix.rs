//! The system to solve: a matrix from a file or a generated one, and its right-hand side.
//!
//! Generated entries are HPL-like, evenly distributed in [−0.5, 0.5), and a pure function of row, column, order and seed
//! (one step of SplitMix64: G. L. Steele, D. Lea, C. H. Flood, *Fast splittable pseudorandom number generators*, OOPSLA
//! 2014). So each rank makes the elements that it needs without asking anyone, and the residual is computed from the matrix itself
//! after the factors have overwritten it, without a copy of it.

use std::ops::Range;

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

    /// The element at a place.
    pub(crate) fn element(&self, row: usize, column: usize) -> f64 {
        match self {
            Matrix::Generated { order, seed } => generated(row, column, *order, *seed),
            Matrix::Read { sparse, .. } => {
                let found = sparse.entries.binary_search_by_key(&(column, row), |&(row, column, _)| (column, row));
                found.map_or(0.0, |at| sparse.entries[at].2)
            }
        }
    }

    /// Calls `f` with row, column and value of each element of some columns that may differ from 0, and returns how many there are.
    pub(crate) fn entries(&self, columns: Range<usize>, mut f: impl FnMut(usize, usize, f64)) -> usize {
        match self {
            Matrix::Generated { order, .. } => {
                columns.clone().for_each(|column| (0..*order).for_each(|row| f(row, column, self.element(row, column))));
                columns.len() * order
            }
            Matrix::Read { sparse, .. } => {
                let [start, end] =
                    [columns.start, columns.end].map(|column| sparse.entries.partition_point(|entry| entry.1 < column));
                sparse.entries[start..end].iter().for_each(|&(row, column, value)| f(row, column, value));
                end - start
            }
        }
    }
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
    use global_arrays::prelude::*;

    use super::*;

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
    fn shares_of_the_columns_make_up_the_whole() {
        let sparse = Sparse { order: 7, entries: vec![(0, 0, 1.0), (6, 2, -2.0), (3, 6, 4.0)] };
        for (matrix, all) in [(Matrix::Generated { order: 7, seed: 1 }, 49), (Matrix::Read { sparse, seed: 1 }, 3)] {
            let (mut left, mut count) = (Array2::from_shape_fn((7, 7), |(i, j)| matrix.element(i, j)), 0);
            for columns in [0..2, 2..2, 2..7] {
                count += matrix.entries(columns.clone(), |row, column, value| {
                    assert!(columns.contains(&column));
                    left[[row, column]] -= value;
                });
            }
            assert_eq!((left, count), (Array2::zeros((7, 7)), all));
        }
    }
}
