//! How large the blocks of a product are.

use super::{caches::Caches, pack::Packable, tile::Kernel};

/// Depth of a panel from which reading and writing C no longer counts: a tile of C is then read and written once for 256 multiplications
/// and additions of each element. Chosen from sweeps on one core of Zen 4 with AVX2 and AVX-512.
const DEEP: usize = 256;

/// Elements of a block along each axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Blocking {
    pub(super) m: usize,
    pub(super) n: usize,
    pub(super) k: usize,
}

impl Blocking {
    pub(super) fn of<T: Packable>(kernel: &Kernel<T::Real>, caches: Caches, [m, n, k]: [usize; 3]) -> Self {
        let float = size_of::<T::Real>();
        // A panel of A stays in three quarters of the first cache, narrow panels of B stream through the rest. Where tiles are so
        // large that such a panel would not be deep, A streams too, at a rate as low, and C counts: two thirds for a panel of B.
        let held = caches.first / 4 * 3 / (kernel.rows * float);
        let depth = if held >= DEEP { held } else { caches.first / 3 * 2 / (kernel.columns * float) };
        let k = even(k, depth / T::PARTS, 8);
        // Bytes of one row of packed A, and of one column of packed B.
        let (row, column) = (k * T::PARTS * T::PARTS * float, k * T::PARTS * float);
        let n = even(n, caches.second / 2 / column, kernel.columns);
        let m = even(m, caches.last / 2 / row, kernel.rows / T::PARTS);
        Blocking { m, n, k }
    }
}

/// The length of pieces of `len` that are about equal: a multiple of `unit`, and at most `most` or the next multiple above.
fn even(len: usize, most: usize, unit: usize) -> usize {
    len.div_ceil(len.div_ceil(most.max(unit)).max(1)).next_multiple_of(unit).max(unit)
}

#[cfg(test)]
mod tests {
    use super::{super::tile::Real, *};
    use num_complex::Complex;

    #[test]
    fn blocks_fit_their_caches() {
        let sizes = [
            Caches { first: 32 << 10, second: 256 << 10, last: 1 << 20 },
            Caches { first: 48 << 10, second: 2 << 20, last: 64 << 20 },
        ];
        for caches in sizes {
            for shape in [[1, 1, 1], [5, 3000, 7], [4096, 4096, 4096], [1 << 20, 3, 1 << 20]] {
                for (_, kernel) in f64::kernels() {
                    let real = Blocking::of::<f64>(kernel, caches, shape);
                    let complex = Blocking::of::<Complex<f64>>(kernel, caches, shape);
                    for (block, rows, left, right) in [(real, kernel.rows, 8, 8), (complex, kernel.rows / 2, 32, 16)] {
                        assert!(block.m > 0 && block.n > 0 && block.k > 0, "{block:?}");
                        let of_a = (block.m - (block.m - 1) % rows - 1) * block.k * left;
                        assert!(of_a <= caches.last / 2 + rows * block.k * left, "{block:?} of {shape:?}");
                        assert!(block.n * block.k * right <= caches.second / 2 + kernel.columns * block.k * right, "{block:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn pieces_are_even() {
        assert_eq!([even(512, 341, 8), even(300, 341, 8), even(0, 10, 8), even(7, 1, 8)], [256, 304, 8, 8]);
    }
}
