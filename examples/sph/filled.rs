//! The force pass where fluid fills all: of a box with walls that hold it, or without any.
//!
//! Of what [`crate::forces`] tells, these differ:
//!
//! * The viscosity is laminar: −Σ m F 2ν/ρ₀ v in place of Π.
//! * Particles are shifted to where there are fewer, by δu Δt with δu = −K ∇C, C = Σ W m/ρ₀ and K in proportion to hc. Else a flow with
//!   points of stagnation draws them out into threads.
//! * So a particle moves with v + δu, and its density and velocity change by δu·∇ρ and (δu·∇)v. Without the latter, vortices on
//!   40 x 40 particles are wrong by 2 % at Re = 100 and 3 % at Re = 400; with it by 0.7 % and 1.4 %.
//! * (δu·∇)v does not conserve momentum. Its mean over the neighbors is taken back: the term is Σ V w (e_i − e_j) / ∫w with
//!   e = (δu·∇)v of the pass before, which each particle carries. Pairs of fluid then give opposite results. The shifts are disorder
//!   on the scale of the kernel, so that mean is small. Walls have e = 0.
//! * Gradients are divided by the matrix Σ F **r** ⊗ **r**, which makes them exact in linear flows. With v·r alone the sum of
//!   the densities follows that of Σ W m, which grows when the first lattice breaks up: the mean pressure rises to ρU².
//! * Diffusion is 2δhc (ρ_i − ρ_j)/ρ₀, and conserves the sum of the densities but for what walls exchange.
//!
//! Neighbors on walls are neighbors as others are. A pair is computed from both sides with exactly opposite results, so momentum is conserved to
//! rounding: there are some twenty sums for each particle, too many to be handed to neighbors. As each lane adds term by term in the order of the cells,
//! the width of the vectors does not matter, nor who owns what.
//!
//! # Sources
//! * J. P. Morris, P. J. Fox & Y. Zhu, J. Comput. Phys. 136 (1997): laminar viscosity. Their r·∇W/(r² + 0.01h²) is F here.
//! * S. J. Lind, R. Xu, P. K. Stansby & B. D. Rogers, J. Comput. Phys. 231 (2012): shifting by the gradient of concentration; A.
//!   Skillen et al., Comput. Meth. Appl. Mech. Eng. 265 (2013): in proportion to Δt, there with the local speed in place of c.
//! * P. N. Sun, A. Colagrossi, S. Marrone, M. Antuono & A.-M. Zhang, Comput. Meth. Appl. Mech. Eng. 348 (2019): what shifting does to density
//!   and velocity. That the mean over the neighbors is taken back is ours.
//! * P. W. Randles & L. D. Libersky, Comput. Meth. Appl. Mech. Eng. 139 (1996), section 3: the matrix.

use pulp::{Simd, WithSimd};

use crate::cells::{Cells, Source};
use crate::forces::Found;
use crate::pair::{Kernel, Lanes, WIDEST, groups, store};
use crate::particle::Fluid;
use crate::wendland;

/// K over hc. A step of sound across h/4.4 shifts by 0.28 h² ∇C; from 0.5 on it is unstable.
const SPREADING: f64 = 1.25;

/// The pass over a fluid of this kinematic viscosity.
///
/// Of floating-point operations, a fused one as two, it has 4D² + 15D + 12 for a particle and an entry of a stretch around it. For a particle there
/// are 20 for each axis and 82 more, with the integrator and (4 for each axis) its cell.
pub(crate) struct Pass<'a, const D: usize, E> {
    pub(crate) fluid: &'a Fluid<D>,
    pub(crate) viscosity: f64,
    pub(crate) cells: &'a Cells<D>,
    pub(crate) each: E,
}

impl<const D: usize, E: FnMut(usize, &Found<D>, usize)> WithSimd for Pass<'_, D, E> {
    /// How many particles, and how many floating-point operations for them.
    type Output = [usize; 2];

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) -> [usize; 2] {
        let (mut particles, mut pairs) = (0, 0);
        let kernel = Kernel::new(simd);
        let law = Law {
            friction: simd.splat_f64s(2.0 * self.viscosity / self.fluid.density),
            diffusion: simd.splat_f64s(self.fluid.spreading() / self.fluid.density),
        };
        let cells = self.cells;
        for row in 0..cells.rows() {
            for group in groups::<S>(cells.row(&cells.fluid, row..row + 1)) {
                if group.clone().all(|entry| cells.own(entry).is_none()) {
                    continue;
                }
                let lanes = Lanes::of(simd, &cells.fluid.sources[group.clone()]);
                let mut sums = Sums::zero(simd);
                let columns = cells.columns(&cells.fluid, row, &group);
                for kind in [&cells.fluid, &cells.walls] {
                    for other in cells.around(row) {
                        let stretch = cells.stretch(kind, other, &columns);
                        pairs += group.len() * stretch.len();
                        for source in &kind.sources[stretch] {
                            sums.add(simd, &kernel, &law, &lanes, source);
                        }
                    }
                }
                let found = sums.finish(simd, self.fluid, &lanes);
                for (lane, entry) in group.enumerate() {
                    if let Some(particle) = cells.own(entry) {
                        particles += 1;
                        (self.each)(particle, &found, lane);
                    }
                }
            }
        }
        [particles, (4 * D * D + 15 * D + 12) * pairs + (20 * D + 82) * particles]
    }
}

/// Constants in all lanes.
struct Law<S: Simd> {
    /// 2ν/ρ₀.
    friction: S::f64s,
    /// 2δhc/ρ₀.
    diffusion: S::f64s,
}

/// The sums so far of particles, one in each lane, with ½w in place of w.
struct Sums<S: Simd, const D: usize> {
    /// Σ w³ (p_i/ρ_i² + p_j/ρ_j²) r.
    push: [S::f64s; D],
    /// Σ w³ 2ν/ρ₀ v.
    drag: [S::f64s; D],
    /// Diffusion of density, Σ w³ 2δhc/ρ₀ (ρ_i − ρ_j).
    thinning: S::f64s,
    /// Σ w (e_i − e_j).
    mixing: [S::f64s; D],
    /// Σ w³ r.
    spread: [S::f64s; D],
    /// Σ w³ r ⊗ r.
    moments: [[S::f64s; D]; D],
    /// Σ w³ v ⊗ r, a row for each component of v.
    bending: [[S::f64s; D]; D],
    /// Σ w³ (ρ_i − ρ_j) r.
    slope: [S::f64s; D],
}

impl<S: Simd, const D: usize> Sums<S, D> {
    #[inline(always)]
    fn zero(simd: S) -> Self {
        let zero = simd.splat_f64s(0.0);
        Sums {
            push: [zero; D],
            drag: [zero; D],
            thinning: zero,
            mixing: [zero; D],
            spread: [zero; D],
            moments: [[zero; D]; D],
            bending: [[zero; D]; D],
            slope: [zero; D],
        }
    }

    /// Adds what one neighbor does to all lanes.
    #[inline(always)]
    #[allow(clippy::needless_range_loop, reason = "an axis names the same component of several vectors")]
    fn add(&mut self, simd: S, kernel: &Kernel<S>, law: &Law<S>, lanes: &Lanes<S, D>, source: &Source<D>) {
        let neighbor = Lanes::splat(simd, source);
        let (r, v) = (lanes.apart(simd, &neighbor), lanes.against(simd, &neighbor));
        let half = kernel.half(simd, r);
        let weight = simd.mul_f64s(simd.mul_f64s(half, half), half);
        let denser = simd.sub_f64s(lanes.density, neighbor.density);
        let stress = simd.add_f64s(lanes.pressure, neighbor.pressure);
        self.thinning = simd.mul_add_f64s(simd.mul_f64s(weight, law.diffusion), denser, self.thinning);
        let friction = simd.mul_f64s(weight, law.friction);
        let push = simd.mul_f64s(weight, stress);
        for axis in 0..D {
            let apart = simd.sub_f64s(lanes.brings[axis], neighbor.brings[axis]);
            self.mixing[axis] = simd.mul_add_f64s(half, apart, self.mixing[axis]);
            self.drag[axis] = simd.mul_add_f64s(friction, v[axis], self.drag[axis]);
            self.push[axis] = simd.mul_add_f64s(push, r[axis], self.push[axis]);
            let pull = simd.mul_f64s(weight, r[axis]);
            self.spread[axis] = simd.add_f64s(pull, self.spread[axis]);
            self.slope[axis] = simd.mul_add_f64s(pull, denser, self.slope[axis]);
            for other in 0..D {
                self.moments[other][axis] = simd.mul_add_f64s(pull, r[other], self.moments[other][axis]);
                self.bending[other][axis] = simd.mul_add_f64s(pull, v[other], self.bending[other][axis]);
            }
        }
    }

    /// The derivatives of the particle in each lane: with the shift, and with gradients that are exact in linear flows.
    #[inline(always)]
    #[allow(clippy::needless_range_loop, reason = "an axis names the same component of several vectors")]
    fn finish(&self, simd: S, fluid: &Fluid<D>, lanes: &Lanes<S, D>) -> Found<D> {
        let h = fluid.smoothing();
        // Sums are of ½w, and of r over the unit of pairs.
        let gradient_factor = 8.0 * wendland::gradient_factor::<D>(h);
        let unit = fluid.unit();
        let volume = fluid.mass() / fluid.density;
        let factor = simd.splat_f64s(fluid.mass() * gradient_factor);
        let (long, short) = (simd.splat_f64s(unit), simd.splat_f64s(1.0 / unit));
        let spreading = simd.splat_f64s(SPREADING * h * fluid.sound * volume * gradient_factor * unit);
        let mixing = simd.splat_f64s(2.0 * volume / wendland::cone::<D>(h));
        let shift = self.spread.map(|sum| simd.mul_f64s(spreading, sum));
        let inverse = inverse(simd, self.moments).map(|row| row.map(|x| simd.mul_f64s(x, short)));
        let mut rate = dot(simd, shift, times(simd, inverse, self.slope));
        rate = simd.negate_mul_add_f64s(factor, self.thinning, rate);
        let (mut acceleration, mut carried) = ([[0.0; WIDEST]; D], [[0.0; WIDEST]; 2]);
        for axis in 0..D {
            let of_velocity = times(simd, inverse, self.bending[axis]);
            rate = simd.negate_mul_add_f64s(lanes.density, of_velocity[axis], rate);
            carried[axis] = store(simd, dot(simd, shift, of_velocity));
            let mixed = simd.mul_add_f64s(mixing, self.mixing[axis], simd.splat_f64s(fluid.gravity[axis]));
            let force = simd.sub_f64s(simd.mul_f64s(long, self.push[axis]), self.drag[axis]);
            acceleration[axis] = store(simd, simd.mul_add_f64s(factor, force, mixed));
        }
        Found { acceleration, rate: store(simd, rate), shift: shift.map(|axis| store(simd, axis)), carried }
    }
}

#[inline(always)]
fn dot<S: Simd, const D: usize>(simd: S, a: [S::f64s; D], b: [S::f64s; D]) -> S::f64s {
    let mut sum = simd.mul_f64s(a[0], b[0]);
    for axis in 1..D {
        sum = simd.mul_add_f64s(a[axis], b[axis], sum);
    }
    sum
}

/// A symmetric matrix times a vector.
#[inline(always)]
fn times<S: Simd, const D: usize>(simd: S, matrix: [[S::f64s; D]; D], vector: [S::f64s; D]) -> [S::f64s; D] {
    matrix.map(|row| dot(simd, row, vector))
}

/// The inverse of a symmetric, positive definite matrix, by Gauss and Jordan. Such a matrix needs no pivots.
#[inline(always)]
#[allow(clippy::needless_range_loop, reason = "an axis names the same component of several vectors")]
fn inverse<S: Simd, const D: usize>(simd: S, mut matrix: [[S::f64s; D]; D]) -> [[S::f64s; D]; D] {
    let one = simd.splat_f64s(1.0);
    let mut inverse = [[simd.splat_f64s(0.0); D]; D];
    (0..D).for_each(|axis| inverse[axis][axis] = one);
    for pivot in 0..D {
        let scale = simd.div_f64s(one, matrix[pivot][pivot]);
        for column in 0..D {
            matrix[pivot][column] = simd.mul_f64s(matrix[pivot][column], scale);
            inverse[pivot][column] = simd.mul_f64s(inverse[pivot][column], scale);
        }
        for row in (0..D).filter(|&row| row != pivot) {
            let times = matrix[row][pivot];
            for column in 0..D {
                matrix[row][column] = simd.negate_mul_add_f64s(times, matrix[pivot][column], matrix[row][column]);
                inverse[row][column] = simd.negate_mul_add_f64s(times, inverse[pivot][column], inverse[row][column]);
            }
        }
    }
    inverse
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inverse_times_matrix_is_one() {
        let matrix = [[4.0, 1.0, 0.5], [1.0, 3.0, -0.2], [0.5, -0.2, 2.0]];
        let simd = pulp::Scalar;
        let inverse = inverse(simd, matrix);
        // Symmetric matrices: a row of one is a column of it.
        for (i, row) in matrix.iter().enumerate() {
            for (j, column) in inverse.iter().enumerate() {
                approx::assert_abs_diff_eq!(dot(simd, *row, *column), f64::from(i == j), epsilon = 1e-14);
            }
        }
    }
}
