//! Pairs of particles: some particles, one in each lane of a vector, and one neighbor of them all, or of each.
//!
//! Eight particles (in shorter vectors four or two) that follow each other in a row of cells share the stretches where their neighbors are.
//! Each neighbor is loaded once for all lanes; there are no gathers and no list of pairs.
//!
//! Lengths are in units of 2√2 h (see [`Source::position`](crate::cells::Source)), so r² is ½q² with q = |r|/2h.

use std::ops::Range;

use pulp::{Simd, WithSimd, bytemuck};

use crate::cells::Source;

/// Widest vectors, in f64.
pub(crate) const WIDEST: usize = 8;

/// How many lanes vectors have.
pub(crate) const fn width<S: Simd>() -> usize {
    size_of::<S::f64s>() / size_of::<f64>()
}

/// Whether lanes can be turned in one instruction: in vectors of eight. Shorter ones would take many, and have few lanes to turn.
pub(crate) const fn turns<S: Simd>() -> bool {
    width::<S>() == WIDEST
}

/// So many entries each, and the rest.
pub(crate) fn groups<S: Simd>(entries: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let end = entries.end;
    entries.step_by(width::<S>()).map(move |first| first..(first + width::<S>()).min(end))
}

/// One number of each lane.
#[inline(always)]
pub(crate) fn store<S: Simd>(_: S, vector: S::f64s) -> [f64; WIDEST] {
    let mut lanes = [0.0; WIDEST];
    S::as_mut_simd_f64s(&mut lanes).0[0] = vector;
    lanes
}

/// Runs a pass with the widest vectors of the processor. Where it has none, arrays stand in: single numbers would have no halves of the same
/// size, which [`inverse_root`] asks for.
pub(crate) fn dispatch<P: WithSimd>(pass: P) -> P::Output {
    match pulp::Arch::new() {
        pulp::Arch::Scalar => pass.with_simd(pulp::Scalar256b),
        arch => arch.dispatch(pass),
    }
}

/// Sums across lanes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Across<S: Simd> {
    /// The lanes whose numbers have a zero in this bit.
    without: [S::m64s; 3],
}

impl<S: Simd> Across<S> {
    #[inline(always)]
    pub(crate) fn new(simd: S) -> Self {
        let without = |bit: usize| {
            let bits: [f64; WIDEST] = std::array::from_fn(|lane| (lane >> bit & 1) as f64);
            simd.less_than_f64s(S::as_simd_f64s(&bits).0[0], simd.splat_f64s(0.5))
        };
        Across { without: [without(0), without(1), without(2)] }
    }

    /// In each lane the sum of all lanes of one of the `vectors`, of which there are as many as lanes.
    ///
    /// If lanes can be turned, two vectors become one of which half the lanes are sums of two lanes of the first, and half of the second; and so on.
    #[inline(always)]
    pub(crate) fn sum(&self, simd: S, mut vectors: [S::f64s; WIDEST]) -> S::f64s {
        let mut count = width::<S>();
        if !turns::<S>() {
            let mut sums = [0.0; WIDEST];
            for (sum, &vector) in sums.iter_mut().zip(&vectors[..count]) {
                *sum = simd.reduce_sum_f64s(vector);
            }
            return S::as_simd_f64s(&sums).0[0];
        }
        for (bit, &without) in self.without.iter().enumerate() {
            count /= 2;
            for k in 0..count {
                let [even, odd] = [vectors[2 * k], vectors[2 * k + 1]];
                let (stay, turn) = (simd.select_f64s(without, even, odd), simd.select_f64s(without, odd, even));
                vectors[k] = simd.add_f64s(stay, simd.rotate_left_f64s(turn, 1 << bit));
            }
        }
        vectors[0]
    }
}

/// Constants of the kernel in all lanes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kernel<S: Simd> {
    pub(crate) zero: S::f64s,
    half: S::f64s,
    /// 1/√2.
    slope: S::f64s,
    /// So that a particle is apart from itself.
    apart: S::f64s,
}

impl<S: Simd> Kernel<S> {
    #[inline(always)]
    pub(crate) fn new(simd: S) -> Self {
        let splat = |x: f64| simd.splat_f64s(x);
        Kernel { zero: splat(0.0), half: splat(0.5), slope: splat(std::f64::consts::FRAC_1_SQRT_2), apart: splat(1e-26) }
    }

    /// ½w, where w = max(0, 1 − q) and q = |r|/2h. Uses a square root, which costs nothing beside many sums: the processor overlaps them.
    #[inline(always)]
    pub(crate) fn half<const D: usize>(&self, simd: S, r: [S::f64s; D]) -> S::f64s {
        let mut square = simd.mul_f64s(r[0], r[0]);
        for &x in &r[1..] {
            square = simd.mul_add_f64s(x, x, square);
        }
        simd.max_f64s(simd.negate_mul_add_f64s(simd.sqrt_f64s(square), self.slope, self.half), self.zero)
    }

    /// ½q², 1/q and ½w.
    #[inline(always)]
    pub(crate) fn at<const D: usize>(&self, simd: S, r: [S::f64s; D]) -> [S::f64s; 3] {
        let square = r.into_iter().fold(self.apart, |sum, x| simd.mul_add_f64s(x, x, sum));
        let inverse = inverse_root(simd, square);
        let half = simd.max_f64s(simd.negate_mul_add_f64s(square, inverse, self.half), self.zero);
        [square, inverse, half]
    }
}

/// 1/√(2x) of positive `half` = x, to 6·10⁻⁷ of it.
///
/// Newton's method from an estimate that halves the exponent: a fraction of the time of a root and a division, and the same bits in vectors of
/// any width. The error is a function of the distance, so the same for both particles of a pair: kernel and damping are others by some
/// millionths, and what is conserved stays so. The estimate is off by up to 3.5 %. It and the constants of both steps, a little above
/// Newton's 3/2, are those with the least error in the end, found by random search.
///
/// # Source
/// M. Robertson, *A brief history of InvSqrt* (2012): the estimate for double precision; L. Moroz et al., *Fast calculation of inverse
/// square root with the use of magic constant*, Appl. Math. Comput. 316 (2018): other constants than Newton's.
#[inline(always)]
pub(crate) fn inverse_root<S: Simd>(simd: S, half: S::f64s) -> S::f64s {
    let words: S::u32s = bytemuck::cast(half);
    // The bit that would go from the upper half of a number to its lower is lost, which does not matter to an estimate.
    let halved: S::u64s = bytemuck::cast(simd.wrapping_dyn_shr_u32s(words, simd.splat_u32s(1)));
    let mut root = simd.transmute_f64s_u64s(simd.sub_u64s(simd.splat_u64s(0x5FDE_ED86_4241_B000), halved));
    for constant in [1.500_878_03, 1.500_000_59] {
        let square = simd.mul_f64s(root, root);
        root = simd.mul_f64s(root, simd.negate_mul_add_f64s(square, half, simd.splat_f64s(constant)));
    }
    root
}

/// Particles, one in each lane.
pub(crate) struct Lanes<S: Simd, const D: usize> {
    pub(crate) position: [S::f64s; D],
    pub(crate) velocity: [S::f64s; D],
    pub(crate) density: S::f64s,
    pub(crate) pressure: S::f64s,
    pub(crate) brings: [S::f64s; D],
}

/// Where lanes without a particle are: out of everybody's reach, and the square of it is still a number.
const AWAY: f64 = 1e30;

impl<S: Simd, const D: usize> Lanes<S, D> {
    /// At most as many as there are lanes.
    #[inline(always)]
    pub(crate) fn of(_: S, sources: &[Source<D>]) -> Self {
        let mut position = [[AWAY; WIDEST]; D];
        let mut velocity = [[0.0; WIDEST]; D];
        let mut brings = [[0.0; WIDEST]; D];
        let mut density = [1.0; WIDEST];
        let mut pressure = [0.0; WIDEST];
        for (lane, source) in sources.iter().enumerate() {
            for axis in 0..D {
                position[axis][lane] = source.position[axis];
                velocity[axis][lane] = source.velocity[axis];
                brings[axis][lane] = source.brings[axis];
            }
            density[lane] = source.density;
            pressure[lane] = source.pressure;
        }
        let load = |lanes: [f64; WIDEST]| S::as_simd_f64s(&lanes).0[0];
        Lanes {
            position: position.map(load),
            velocity: velocity.map(load),
            density: load(density),
            pressure: load(pressure),
            brings: brings.map(load),
        }
    }

    /// Each particle goes to the lane so many before its own, those of the first lanes to the last.
    #[inline(always)]
    pub(crate) fn turned(&self, simd: S, by: usize) -> Self {
        let turn = |vector| simd.rotate_left_f64s(vector, by);
        Lanes {
            position: self.position.map(turn),
            velocity: self.velocity.map(turn),
            density: turn(self.density),
            pressure: turn(self.pressure),
            brings: self.brings.map(turn),
        }
    }

    /// A neighbor in all lanes.
    #[inline(always)]
    pub(crate) fn splat(simd: S, source: &Source<D>) -> Self {
        let splat = |x| simd.splat_f64s(x);
        Lanes {
            position: source.position.map(splat),
            velocity: source.velocity.map(splat),
            density: splat(source.density),
            pressure: splat(source.pressure),
            brings: source.brings.map(splat),
        }
    }

    /// r to the neighbors in the same lanes.
    #[inline(always)]
    pub(crate) fn apart(&self, simd: S, neighbor: &Self) -> [S::f64s; D] {
        std::array::from_fn(|axis| simd.sub_f64s(self.position[axis], neighbor.position[axis]))
    }

    /// v against them.
    #[inline(always)]
    pub(crate) fn against(&self, simd: S, neighbor: &Self) -> [S::f64s; D] {
        std::array::from_fn(|axis| simd.sub_f64s(self.velocity[axis], neighbor.velocity[axis]))
    }

    /// What the neighbor in each lane is to the particle there.
    #[inline(always)]
    pub(crate) fn pair(&self, simd: S, kernel: &Kernel<S>, neighbor: &Self) -> Pair<S, D> {
        let (r, v) = (self.apart(simd, neighbor), self.against(simd, neighbor));
        let [square, inverse, half] = kernel.at(simd, r);
        let mut approach = simd.mul_f64s(v[0], r[0]);
        for axis in 1..D {
            approach = simd.mul_add_f64s(v[axis], r[axis], approach);
        }
        let weight = simd.mul_f64s(simd.mul_f64s(half, half), half);
        Pair { r, v, approach, square, inverse, weight }
    }
}

/// Neighbors as seen from the lanes.
pub(crate) struct Pair<S: Simd, const D: usize> {
    pub(crate) r: [S::f64s; D],
    pub(crate) v: [S::f64s; D],
    /// v·r.
    pub(crate) approach: S::f64s,
    /// ½q², with q = |r|/2h.
    pub(crate) square: S::f64s,
    /// 1/q.
    pub(crate) inverse: S::f64s,
    /// (½w)³, to which the gradient of the kernel is in proportion.
    pub(crate) weight: S::f64s,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_across_lanes() {
        fn sums<S: Simd>(simd: S) {
            let number = |vector: usize, lane: usize| ((vector + 1) * (lane + 10) * (lane + 3)) as f64;
            let vectors =
                std::array::from_fn(|vector| S::as_simd_f64s(&[0, 1, 2, 3, 4, 5, 6, 7].map(|lane| number(vector, lane))).0[0]);
            let found = store(simd, Across::new(simd).sum(simd, vectors));
            for (vector, found) in found[..width::<S>()].iter().enumerate() {
                assert_eq!(*found, (0..width::<S>()).map(|lane| number(vector, lane)).sum::<f64>());
            }
        }
        struct Sums;
        impl WithSimd for Sums {
            type Output = ();
            fn with_simd<S: Simd>(self, simd: S) {
                sums(simd);
            }
        }
        sums(pulp::Scalar128b);
        sums(pulp::Scalar256b);
        sums(pulp::Scalar512b);
        dispatch(Sums);
    }

    #[test]
    fn inverse_roots() {
        // From a particle and itself to lanes without a particle. The error repeats with each factor of four.
        for magnitude in [1e-26_f64, 3e-7, 0.02, 0.3, 1.0, 17.0, 1e60] {
            for half in (0..3000).map(|k| magnitude * (1.0 + 1e-3 * f64::from(k))) {
                let root = inverse_root(pulp::Scalar256b, bytemuck::cast([half; 4]));
                let [root, ..]: [f64; 4] = bytemuck::cast(root);
                approx::assert_relative_eq!(root, 1.0 / (2.0 * half).sqrt(), max_relative = 6e-7);
            }
        }
    }
}
