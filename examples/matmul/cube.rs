//! The cube of ranks.

use std::str::FromStr;

use program::command_line::positive;

/// A is m × k, B is k × n, C is m × n.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
}

/// Ranks along x (rows of C), y (columns of C) and z (terms of the sum).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cube {
    pub(crate) p: usize,
    pub(crate) q: usize,
    pub(crate) r: usize,
}

impl Cube {
    /// The cube for this number of ranks, which must be its size if the user chose one.
    ///
    /// A rank owns a slice of each matrix. It fetches (q − 1) such slices of A and (p − 1) of B, and adds (r − 1) of C. An element that is added
    /// goes there and back, so it counts twice. Of cubes that move equally much the one with the smallest r is taken, whose C is added to by
    /// fewer ranks.
    ///
    /// # Errors
    /// A chosen cube of another size.
    pub(crate) fn choose(chosen: Option<Cube>, ranks: usize, sizes: Sizes) -> Result<Cube, String> {
        if let Some(cube) = chosen {
            let Cube { p, q, r } = cube;
            let size = cube.size();
            return if size == ranks {
                Ok(cube)
            } else {
                Err(format!("a cube of {p} x {q} x {r} needs {size} ranks, not {ranks}"))
            };
        }
        let divisors = |number: usize| (1..=number).filter(move |d| number.is_multiple_of(*d));
        let cubes = divisors(ranks).flat_map(|r| divisors(ranks / r).map(move |p| Cube { p, q: ranks / r / p, r }));
        Ok(cubes.min_by_key(|cube| (cube.moved(sizes, 2), cube.r, cube.p)).unwrap_or(Cube { p: 1, q: 1, r: 1 }))
    }

    /// Number of ranks.
    pub(crate) fn size(self) -> usize {
        self.p * self.q * self.r
    }

    /// Elements that all ranks fetch, and those that they add, the latter counted `additions` times.
    pub(crate) fn moved(self, Sizes { m, n, k }: Sizes, additions: usize) -> u128 {
        let moved = |rows: usize, columns: usize, times: usize| (rows as u128 * columns as u128).saturating_mul(times as u128);
        let parts = [moved(m, k, self.q - 1), moved(k, n, self.p - 1), moved(m, n, additions * (self.r - 1))];
        parts.into_iter().fold(0, u128::saturating_add)
    }

    /// x, y and z of a rank; z is the fastest, so that who adds to one block of C are neighbours.
    pub(crate) fn place(self, rank: usize) -> [usize; 3] {
        [rank / (self.q * self.r), rank / self.r % self.q, rank % self.r]
    }

    /// The rank at a place.
    pub(crate) fn rank(self, [x, y, z]: [usize; 3]) -> usize {
        (x * self.q + y) * self.r + z
    }
}

impl FromStr for Cube {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text.split(['x', 'X']).map(positive).collect::<Result<Vec<_>, _>>()?;
        let &[p, q, r] = numbers.as_slice() else { return Err("three numbers with x between are expected, as in 2x2x1".into()) };
        p.checked_mul(q).and_then(|pq| pq.checked_mul(r)).ok_or("too many ranks")?;
        Ok(Cube { p, q, r })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cubes_for_any_number_of_ranks() {
        let square = Sizes { m: 100, n: 100, k: 100 };
        let of = |ranks, sizes| Cube::choose(None, ranks, sizes).map(|c| [c.p, c.q, c.r]).unwrap();
        let cube = |ranks| of(ranks, square);
        assert_eq!([1, 2, 3, 4, 6, 7].map(cube), [[1, 1, 1], [1, 2, 1], [1, 3, 1], [2, 2, 1], [2, 3, 1], [1, 7, 1]]);
        // Twice the ranks: the third axis comes in where it moves less than longer rows.
        assert_eq!([8, 16, 32, 64].map(cube), [[2, 4, 1], [4, 4, 1], [4, 4, 2], [4, 8, 2]]);
        // Long sums of a small product; tall and wide matrices.
        assert_eq!(of(4, Sizes { m: 10, n: 10, k: 10_000 }), [1, 1, 4]);
        assert_eq!((of(4, Sizes { m: 10_000, ..square }), of(4, Sizes { n: 10_000, ..square })), ([4, 1, 1], [1, 4, 1]));
        let two = Cube { p: 2, q: 2, r: 2 };
        assert_eq!(Cube::choose(Some(two), 8, square).map(|cube| cube.moved(square, 2)), Ok(40_000));
        assert!(Cube::choose(Some(two), 4, square).unwrap_err().contains("needs 8 ranks, not 4"));
    }

    #[test]
    fn places_are_ranks() {
        let cube = Cube { p: 2, q: 3, r: 4 };
        assert!((0..24).all(|rank| cube.rank(cube.place(rank)) == rank));
        assert_eq!(cube.place(23), [1, 2, 3]);
    }

    #[test]
    fn a_cube_is_read() {
        assert_eq!("2x3x1".parse(), Ok(Cube { p: 2, q: 3, r: 1 }));
        for wrong in ["2x3", "2x0x1", "", "axbxc", "2x3x1x1"] {
            assert!(wrong.parse::<Cube>().is_err(), "{wrong}");
        }
    }
}
