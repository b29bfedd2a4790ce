//! Sizes, blocks of states, and who calculates which pair; the first states.

use std::collections::BTreeSet;
use std::ops::Range;

use num_complex::Complex;

/// Coefficients of each state for each state that there is, at least: the eigenvalues of the overlap of random states then lie
/// below (1 + √¼)² = 2.25 (Marchenko and Pastur), and the iteration converges up to 3.
const COEFFICIENTS_PER_STATE: usize = 4;

/// What is to be made orthonormal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) states: usize,
    pub(crate) planes: usize,
    pub(crate) points: usize,
    /// States of a block.
    pub(crate) grain: usize,
    pub(crate) seed: u64,
}

/// A plane and a block of states: what a pair calculator gets, and gives back.
pub(crate) type Place = (usize, usize);

/// Two blocks of states that meet in a plane, `column` not behind `row`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pair {
    pub(crate) plane: usize,
    pub(crate) row: usize,
    pub(crate) column: usize,
}

impl Pair {
    pub(crate) fn is_diagonal(self) -> bool {
        self.row == self.column
    }

    /// Where its two blocks come from.
    pub(crate) fn places(self) -> [Place; 2] {
        [(self.plane, self.row), (self.plane, self.column)]
    }
}

impl Shape {
    /// Refuses states that the iteration could not make orthonormal.
    pub(crate) fn check(self) -> Result<(), String> {
        let Shape { states, planes, points, .. } = self;
        let least = states.checked_mul(COEFFICIENTS_PER_STATE);
        match (planes.checked_mul(points), least) {
            (Some(coefficients), Some(least)) if coefficients >= least => Ok(()),
            (Some(coefficients), Some(least)) => Err(format!(
                "{planes} planes of {points} points give each state {coefficients} coefficients; {states} states need {least}"
            )),
            _ => Err("so many states or coefficients cannot be counted".into()),
        }
    }

    pub(crate) fn blocks(self) -> usize {
        self.states.div_ceil(self.grain)
    }

    /// The states of a block.
    pub(crate) fn block(self, block: usize) -> Range<usize> {
        block * self.grain..self.states.min((block + 1) * self.grain)
    }

    /// The pairs of a rank: all are dealt round, the same in each iteration.
    pub(crate) fn pairs(self, rank: usize, ranks: usize) -> Vec<Pair> {
        let all = (0..self.planes)
            .flat_map(|plane| (0..self.blocks()).flat_map(move |row| (0..=row).map(move |column| Pair { plane, row, column })));
        all.skip(rank).step_by(ranks).collect()
    }

    /// The coefficient of a state at a point of a plane before the first iteration: random, of a length near 1.
    pub(crate) fn first(self, state: usize, plane: usize, point: usize) -> Complex<f64> {
        let at = ((state * self.planes + plane) * self.points + point) as u64;
        // Parts evenly distributed in [-1, 1) have a mean square of a third.
        let scale = (1.5 / (self.planes * self.points) as f64).sqrt();
        let part = |k: u64| (mix(self.seed ^ mix(2 * at + k)) >> 11) as f64 / (1_u64 << 52) as f64 - 1.0;
        Complex::new(scale * part(0), scale * part(1))
    }
}

/// The places that some pairs need, each once.
pub(crate) fn places(pairs: &[Pair]) -> BTreeSet<Place> {
    pairs.iter().flat_map(|pair| pair.places()).collect()
}

/// A bijection of words that leaves no pattern (the finaliser of SplitMix64: G. Steele, D. Lea, C. Flood, OOPSLA 2014).
fn mix(word: u64) -> u64 {
    let word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Shape = Shape { states: 10, planes: 3, points: 40, grain: 4, seed: 1 };

    #[test]
    fn every_pair_is_calculated_once() {
        for ranks in [1, 2, 5, 100] {
            let pairs: Vec<Pair> = (0..ranks).flat_map(|rank| SHAPE.pairs(rank, ranks)).collect();
            assert_eq!(pairs.len(), SHAPE.planes * 6, "three blocks make six pairs in each plane");
            for plane in 0..SHAPE.planes {
                for (row, column) in [(0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2)] {
                    assert_eq!(pairs.iter().filter(|&&pair| pair == Pair { plane, row, column }).count(), 1);
                }
            }
        }
        assert!((0..SHAPE.blocks()).flat_map(|block| SHAPE.block(block)).eq(0..SHAPE.states));
    }

    #[test]
    fn first_states_have_a_length_near_one_and_no_two_are_alike() {
        let state = |state| (0..40).flat_map(move |point| (0..3).map(move |plane| SHAPE.first(state, plane, point)));
        for i in 0..10 {
            for j in 0..10 {
                let overlap: Complex<f64> = state(i).zip(state(j)).map(|(a, b)| a * b.conj()).sum();
                let expected = if i == j { 1.0 } else { 0.0 };
                assert!((overlap - expected).norm() < 0.35, "{i}, {j}: {overlap}");
            }
        }
    }

    #[test]
    fn too_many_states_are_refused() {
        assert!(SHAPE.check().is_ok());
        assert!(Shape { states: 31, ..SHAPE }.check().unwrap_err().contains("124"));
        assert!(Shape { planes: usize::MAX, ..SHAPE }.check().is_err());
    }
}
